//! UBIFS when names are removed and space runs short, seen in its flash operations and by the
//! program.

use crate::support;
use sim::errno::ENOSPC;
use sim::fs::ubifs::Ubifs;
use sim::mtd::Mtd;
use sim::run::{run_cases, CaseInput, FsKind, Measured};
use sim::units::Ns;
use std::fmt::Write;

/// A partition of so many blocks of the emulated board, of which UBI reserves 44.
fn run_on(blocks: u32, body: &str) -> Measured {
    run_of("6.1", blocks, body)
}

fn run_of(kernel: &str, blocks: u32, body: &str) -> Measured {
    let (mut board, kernel) = (support::board("emulated"), support::kernel(kernel));
    board.partition.blocks = blocks;
    let prepare = "flashbed-ops 1\nprepared\n";
    let body = format!("flashbed-ops 1\n{body}\n");
    let fs = FsKind::Ubifs;
    let setting = support::setting(&board, &kernel, fs, prepare);
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    let result = run_cases(&setting, &[case]).remove(0);
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn programs(body: &str) -> u64 {
    run_on(400, body).flash_programs
}

/// create_default_filesystem: zstd on 6.1, LZO before 5.14, another LZO before 3.9.
#[test]
fn data_is_compressed_as_the_kernel_does_by_default() {
    let mut body = String::from("open 0 a rw,create\nmark\n");
    for page in 0..250 {
        writeln!(body, "write 0 {} 4096 {} 90", page * 4096, page + 1).unwrap();
    }
    body.push_str("sync");
    let programs = |kernel| run_of(kernel, 400, &body).flash_programs;
    let (zstd, lzo, older) = (programs("6.1"), programs("4.0"), programs("2.6.37"));
    assert!(zstd + 4 <= lzo && older < lzo, "{zstd} {lzo} {older}");
}

/// ubifs_jnl_delete_inode: no second deletion inode in the journal before the next commit.
#[test]
fn an_inode_without_a_name_is_written_again_only_after_a_commit() {
    let create = "open 0 a rw,create\nwrite 0 0 4096 1 0\nsync\n";
    let at_once = programs(&format!("{create}mark\nunlink a\nclose 0\nsync"));
    let later = programs(&format!("{create}unlink a\nsync\nmark\nclose 0\nsync"));
    let nothing = programs(&format!("{create}unlink a\nclose 0\nsync\nmark\nsync"));
    assert_eq!(nothing, 0);
    assert!(later > 0 && at_once > 0);
}

/// ubifs_orphan_start_commit: an orphan takes a page of its area, after the volume header of the
/// LEB.
#[test]
fn a_commit_notes_an_open_file_without_a_name() {
    let create = "open 0 a rw,create\nwrite 0 0 4096 1 0\nsync\nmark\nunlink a\n";
    let open = programs(&format!("{create}sync"));
    let closed = programs(&format!("{create}close 0\nsync"));
    assert_eq!(open, closed + 2);
}

/// ubifs_jnl_truncate: writes the remainder of the last block with the inode, except at a page's
/// boundary.
#[test]
fn a_truncation_writes_the_rest_of_the_last_block_again() {
    let write = "open 0 a rw,create\nwrite 0 0 16384 1 0\nsync\nmark\n";
    let to = |size: u32| programs(&format!("{write}truncate 0 {size}\nfsync 0"));
    assert_eq!(to(8192), 1, "an inode and a truncation node");
    assert_eq!(to(10_192), 2, "and 2,048 bytes of data, 216 and 2,000 in all");
}

/// do_rename: the renamed inode is dirty because of its time, and not written with the group.
#[test]
fn a_rename_leaves_the_inode_to_write_back() {
    let create = "open 0 a rw,create\nsync\nmark\nrename a b\n";
    assert_eq!(programs(&format!("{create}fdatasync 0")), 0);
    assert_eq!(programs(&format!("{create}fsync 0")), 1);
}

fn write_file(body: &mut String, name: &str, bytes: u64, seed: u64) {
    writeln!(body, "open 0 {name} rw,create").expect("a String");
    for offset in (0..bytes).step_by(4096) {
        writeln!(body, "write 0 {offset} 4096 {seed} 0").expect("a String");
    }
    writeln!(body, "close 0").expect("a String");
}

/// make_free_space: deleted space comes back through a commit and garbage collection, repeatedly.
#[test]
fn what_is_deleted_on_a_small_partition_is_collected() {
    let mut body = String::from("mark\n");
    for round in 0..30 {
        for file in 0..4 {
            let name = format!("f{}", (round + file * 7) % 9);
            write_file(&mut body, &name, 300_000, round);
        }
        writeln!(body, "unlink f{}\nsync", round % 9).expect("a String");
    }
    let measured = run_on(90, &body);
    let full = measured.requests.iter().filter(|request| request.result == ENOSPC).count();
    assert!(measured.flash_erases > 150, "{} erases", measured.flash_erases);
    assert!(full < measured.requests.len() / 2, "{full} of {}", measured.requests.len());
}

/// A file that is rewritten in place never needs more space, however full the partition is: without
/// an empty LEB the index grows into its own gaps (layout_in_gaps).
#[test]
fn a_file_that_fits_can_be_rewritten_for_ever() {
    let mut body = String::new();
    write_file(&mut body, "a", 3_400_000, 1);
    body += "sync\nmark\nopen 0 a rw\n";
    let mut page: u64 = 1;
    for round in 0..4000 {
        page = page * 5_101 % 830;
        writeln!(body, "write 0 {} 4096 {round} 0", page * 4096).expect("a String");
        if round % 16 == 15 {
            body += "fsync 0\n";
        }
    }
    let measured = run_on(90, &body);
    let failed = measured.requests.iter().find(|request| request.result < 0);
    assert!(failed.is_none(), "{failed:?}");
    assert!(measured.flash_erases > 60);
}

#[test]
fn the_fewest_blocks_there_can_be_hold_a_file() {
    let mut board = support::board("emulated");
    board.partition.blocks = 44 + 17;
    let flash = sim::flash::Chip::new(board.chip);
    Ubifs::format(
        Mtd::new(flash, &board),
        Ns::ZERO,
        support::kernel("6.1").ubifs,
        support::facts(),
    )
    .expect("17 LEBs");
    let mut body = String::from("mark\n");
    write_file(&mut body, "a", 100_000, 1);
    let measured = run_on(44 + 17, &(body + "sync\nunlink a\nsync"));
    assert!(measured.requests.iter().all(|request| request.result >= 0));
}
