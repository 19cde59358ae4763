//! How file systems handle a failing chip, in whole programs.
//!
//! tests/agreement/test_state_and_faults.py compares this with the kernel's, operation by
//! operation.

use crate::support;
use sim::causes::Cause;
use sim::errno::{EIO, EROFS};
use sim::flash::Faults;
use sim::run::{run_cases_on, CaseInput, ChipState, FsKind, Measured, RunError};
use std::fmt::Write;

fn run(fs: FsKind, state: &ChipState, body: &str) -> Result<Measured, RunError> {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let setting = support::setting(&board, &kernel, fs, "flashbed-ops 1\n");
    let body = format!("flashbed-ops 1\n{body}");
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    run_cases_on(&setting, state, &[case]).pop().expect("one case")
}

fn failing(faults: Faults) -> ChipState {
    ChipState { faults, ..ChipState::default() }
}

/// A file of so many 64 KiB that is written so many times, and synced now and then.
fn written(parts: u64, times: u64) -> String {
    let mut body = String::from("mark\nopen 0 a rw,create\n");
    for turn in 0..times {
        for part in 0..parts {
            let offset = part * 65_536;
            writeln!(body, "write 0 {offset} 65536 {turn} 0").expect("into a string");
            if part % 4 == 3 {
                body.push_str("fsync 0\n");
            }
        }
    }
    body
}

fn results(measured: &Measured) -> Vec<i64> {
    measured.requests.iter().map(|request| request.result).collect()
}

#[test]
fn what_a_failed_program_held_is_on_flash_elsewhere() {
    // Without fsync, at which JFFS2 would collect.
    let body = written(3, 10) + "sync\ndrop_caches\nread 0 0 196608\n";
    for fs in [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs] {
        let without = run(fs, &ChipState::default(), &body).expect("ran");
        let faults = Faults { program_fail: vec![30, 400], ..Faults::default() };
        let with = run(fs, &failing(faults), &body).expect("ran");
        assert_eq!(results(&with), results(&without), "{fs:?}");
        let again = match fs {
            FsKind::Jffs2 => Cause::Collection,
            FsKind::Ubifs => Cause::WearLevelling,
            _ => continue, // YAFFS2 moves the rest of the block later.
        };
        assert!(with.causes.bytes(again) > without.causes.bytes(again), "{fs:?}");
    }
}

#[test]
fn ubi_moves_what_had_wrong_bits_once() {
    let faults = Faults { bit_flip_ppm: 20_000, bits_flipped: 1, seed: 3, ..Faults::default() };
    let body = written(20, 1) + "sync\ndrop_caches\nread 0 0 1310720\npause 60000000000\n";
    let with = run(FsKind::Ubifs, &failing(faults.clone()), &body).expect("ran");
    assert!(with.ecc_corrected > 3 && with.ecc_failed == 0);
    assert!(with.causes.bytes(Cause::WearLevelling) > 64 * 1024);
    assert!(results(&with).iter().all(|&result| result >= 0));
    let jffs2 = run(FsKind::Jffs2, &failing(faults), &body).expect("ran");
    assert!(jffs2.ecc_corrected > 3);
    let without = run(FsKind::Jffs2, &ChipState::default(), &body).expect("ran");
    assert_eq!(jffs2.flash_programs, without.flash_programs, "JFFS2 does not care");
}

/// A task that unmaps a LEB holds its lock. The LEB's move is therefore cancelled and started again
/// until the thread finds move_mutex taken.
#[test]
fn a_leb_that_is_unmapped_while_its_block_is_moved_is_moved_no_further() {
    let turn =
        "open 0 a rw,create\nwrite 0 0 4096 1 10\nwrite 0 4096 40000 2 10\nclose 0\nremount\n\
                open 0 a rw\nread 0 0 16384\nwrite 0 4096 512 3 50\nclose 0\nremount\n\
                open 0 a rw\nwrite 0 26130 11461 4 100\nclose 0\nsync\n";
    let body = String::from("mark\n") + &turn.repeat(3);
    for seed in 0..80 {
        let faults = Faults { bit_flip_ppm: 50_000, bits_flipped: 1, seed, ..Faults::default() };
        let ran = run(FsKind::Ubifs, &failing(faults), &body).expect("ran");
        assert!(results(&ran).iter().all(|&result| result >= 0), "seed {seed}");
    }
}

#[test]
fn ubi_marks_worn_blocks_bad_until_it_has_no_reserve() {
    let faults = Faults { endurance_erases: 500, ..Faults::default() };
    let state = ChipState { erases: vec![1000; 400], ..failing(faults) };
    let body = written(40, 8) + "open 1 b rw,create\nread 0 0 65536\n";
    let worn = run(FsKind::Ubifs, &state, &body).expect("ran");
    assert_eq!(worn.bad_blocks, 40, "20 in 1024 of the chip's 2048");
    let results = results(&worn);
    assert_eq!(results[results.len() - 2..], [EROFS, 65_536], "what is there can be read");
}

#[test]
fn jffs2_gives_a_block_two_erases_and_marks_it_bad_then() {
    let faults = Faults { erase_fail_ppm: 500_000, seed: 5, ..Faults::default() };
    let bad = run(FsKind::Jffs2, &failing(faults), &written(100, 9)).expect("ran");
    assert!(bad.bad_blocks > 3, "{}", bad.bad_blocks);
    assert!(results(&bad).iter().all(|&result| result >= 0), "there is room without them");
}

#[test]
fn a_page_that_cannot_be_read_is_an_error_each_time_and_no_longer_than_it_lasts() {
    let body = "open 0 a rw,create\nwrite 0 0 8192 1 0\nfsync 0\ndrop_caches\nmark\n\
                read 0 0 8192\nread 0 0 8192\ndrop_caches\nread 0 4096 4096\n";
    let faults = Faults { bit_flip_ppm: 1_000_000, bits_flipped: 2, ..Faults::default() };
    let failed = run(FsKind::Jffs2, &failing(faults), body).expect("ran");
    assert_eq!(results(&failed), [EIO, EIO, 0, EIO]);
}

#[test]
fn yaffs2_retires_a_block_whose_erase_failed() {
    let faults = Faults { erase_fail_ppm: 200_000, seed: 5, ..Faults::default() };
    let bad = run(FsKind::Yaffs2, &failing(faults), &written(100, 9)).expect("ran");
    assert!(bad.bad_blocks > 3, "{}", bad.bad_blocks);
    assert!(results(&bad).iter().all(|&result| result >= 0), "there is room without them");
}

/// The first chunk of a block that was not erased since the mount is read back. Another chunk that
/// fails only causes its block to be collected.
#[test]
fn yaffs2_retires_a_block_whose_first_program_failed() {
    let mut bodies = [1, 2].map(|fails| {
        let faults = Faults { program_fail: vec![fails], ..Faults::default() };
        run(FsKind::Yaffs2, &failing(faults), &written(100, 9)).expect("ran")
    });
    assert_eq!(bodies.each_mut().map(|run| run.bad_blocks), [1, 0]);
}

#[test]
fn yaffs2_collects_what_had_wrong_bits_and_returns_what_could_not_be_corrected() {
    // Without sync: it does not collect the blocks of a checkpoint.
    let body = written(20, 1) + "drop_caches\nread 0 0 1310720\npause 60000000000\n";
    for bits_flipped in [1, 2] {
        let faults = Faults { bit_flip_ppm: 20_000, bits_flipped, seed: 3, ..Faults::default() };
        let with = run(FsKind::Yaffs2, &failing(faults), &body).expect("ran");
        assert!(with.causes.bytes(Cause::Collection) > 64 * 1024);
        assert!(results(&with).iter().all(|&result| result >= 0), "no read of YAFFS2 fails");
        assert_eq!(with.ecc_failed > 0, bits_flipped == 2);
    }
}

#[test]
fn a_checkpoint_that_outlives_its_end_is_refused_by_name() {
    let body = "open 0 a rw,create\nsync\nmark\nwrite 0 0 8192 1 0\nclose 0\nremount\n";
    let faults = Faults { erase_fail: vec![1, 2], ..Faults::default() };
    let error = run(FsKind::Yaffs2, &failing(faults), body).expect_err("refused");
    assert!(error.to_string().ends_with("could not be erased is not modelled"), "{error}");
}
