//! Names, sizes and mounts on JFFS2, seen in its flash operations.

use crate::support;
use sim::flash::{FlashOp, Kind};
use sim::run::{run_cases, CaseInput, FsKind, Measured, Setting};

const PAGES: u32 = 64;

fn run(prepare: &str, body: &str) -> Measured {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let prepare = format!("flashbed-ops 1\n{prepare}\nprepared\n");
    let body = format!("flashbed-ops 1\n{body}\n");
    let fs = FsKind::Jffs2;
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, &prepare) };
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).unwrap_or_else(|error| panic!("{error}"))
}

/// (column, bytes) of every read of the last operation.
fn last_reads(measured: &Measured) -> Vec<(u32, u32)> {
    let start = measured.requests.last().expect("operations").start;
    let reads = measured.flash.iter().filter(|op| op.start >= start && op.kind == Kind::Read);
    reads.map(|op| (op.column, op.length)).collect()
}

fn of_block(measured: &Measured, block: u32) -> Vec<(u32, u32, u32)> {
    let within = |op: &&FlashOp| op.page.0 / PAGES == block;
    let place = |op: &FlashOp| (op.page.0 % PAGES, op.column, op.length);
    measured.flash.iter().filter(within).map(place).collect()
}

/// An entry is 40 bytes and the name, and a deletion dirent is as long. All of these fit into the
/// page that a sync pads. The deleted inode is not read; a renamed one has the same node as before.
#[test]
fn taking_a_name_away_is_an_entry_and_renaming_is_two() {
    let header = |before: &str| {
        let made = "open 0 aaaa rw,create\nclose 0\n";
        let body = format!("mark\n{made}{before}\nsync\ndrop_caches\nopen 0 aaaa ro,create");
        let measured = run("", &body);
        let programs = measured.flash.iter().filter(|op| op.kind == Kind::Program);
        (programs.count(), last_reads(&measured).len())
    };
    assert_eq!(header(""), (1, 2), "the inode, from its start and once more");
    assert_eq!(header("unlink aaaa").0, 1, "all in one page");
    assert_eq!(header("unlink aaaa").1, 0, "there is nothing to read of what is gone");
    assert_eq!(header("rename aaaa bbbb\nrename bbbb aaaa"), (1, 2));
}

/// 68 bytes of inode and two entries of 44 bytes: nothing is written when the inode is deleted. 14
/// files exceed one flash page.
#[test]
fn a_deleted_file_takes_an_inode_and_two_entries_of_the_log() {
    let programs = |files: u32| {
        let made =
            (0..files).map(|n| format!("open 0 f{n:03} rw,create\nclose 0\nunlink f{n:03}\n"));
        let measured = run("", &format!("mark\n{}sync", made.collect::<String>()));
        measured.flash.iter().filter(|op| op.kind == Kind::Program).count()
    };
    assert_eq!(programs(13), 1, "13 * 156 = 2,028");
    assert_eq!(programs(14), 2);
}

/// Data beyond the end are no longer read. A file that grows has a hole there, which is a header.
#[test]
fn a_truncated_file_is_read_to_its_end_and_a_hole_is_a_header() {
    let file = "open 0 a rw,create\nwrite 0 0 4096 1 0\nwrite 0 4096 4096 1 0\nclose 0\nsync";
    let reads = |sizes: &str| {
        let body = format!("open 0 a rw\n{sizes}sync\ndrop_caches\nmark\nread 0 4096 4096");
        last_reads(&run(file, &body)).len()
    };
    assert_eq!(reads(""), 4, "a node of 4,164 bytes: its header, and three pages of data");
    assert_eq!(reads("truncate 0 4096\n"), 0, "the file ends there");
    assert_eq!(reads("truncate 0 4096\ntruncate 0 8192\n"), 1, "the header of a hole");
    assert_eq!(reads("truncate 0 4097\ntruncate 0 8192\n"), 5, "the first byte, and the hole");
}

/// 4,096 zeros become a few bytes, in one flash page with their header.
#[test]
fn data_that_compresses_take_the_compressed_size() {
    let programs = |compressibility: u32| {
        let written = (0..8).map(|n| format!("write 0 {} 4096 1 {compressibility}\n", n * 4096));
        let body = format!("open 0 a rw,create\nmark\n{}sync", written.collect::<String>());
        run("", &body).flash.iter().filter(|op| op.kind == Kind::Program).count()
    };
    assert_eq!(programs(0), 17);
    assert_eq!(programs(100), 1);
    assert!((8..12).contains(&programs(50)));
}

/// A mount of an empty partition reads of each block the cleanmarker, the page in which a summary
/// would end, 256 bytes, and the OOBs of four pages. Afterwards the list of free blocks is as after
/// the first mount.
#[test]
fn a_mount_looks_at_an_empty_block_seven_times() {
    let measured = run("", "mark\nremount\nopen 0 a rw,create\nsync");
    let empty = [(0, 2048, 64), (63, 0, 2048), (0, 0, 256)];
    let oobs = [(0, 2048, 64), (1, 2048, 64), (2, 2048, 64), (3, 2048, 64)];
    assert_eq!(of_block(&measured, 3), [&empty[..], &oobs[..]].concat());
    let program = measured.flash.iter().find(|op| op.kind == Kind::Program).expect("the file");
    assert_eq!(program.page.0 / PAGES, 398, "the last block but one");
}

/// A partly written block is read twice from where it is erased. The scan has read 256 bytes and
/// then the rest. It comes to the end of the nodes, and reads what is after the first four erased
/// bytes once more. Of a full block only the summary is read.
#[test]
fn a_mount_reads_a_full_block_by_its_summary_and_another_whole() {
    let written = (0..40).map(|n| format!("write 0 {} 4096 1 0\n", n * 4096));
    let file = format!("open 0 a rw,create\n{}close 0\nsync", written.collect::<String>());
    let measured = run(&file, "mark\nremount");
    let full = of_block(&measured, 398);
    assert_eq!(full[..2], [(0, 2048, 64), (63, 0, 2048)], "{full:?}");
    assert!(full.len() < 4, "and the rest of the summary: {full:?}");
    let partial = of_block(&measured, 397);
    let whole = partial.iter().filter(|&&(page, ..)| page == 40).count();
    assert_eq!(whole, 2, "{partial:?}");
    assert_eq!(partial.iter().filter(|&&(page, ..)| page == 2).count(), 1, "{partial:?}");
}

#[test]
fn whatever_was_there_is_there_after_a_mount() {
    let files = "mkdir d\nopen 0 d/a rw,create\nwrite 0 0 9000 1 30\nclose 0\nopen 0 b rw,create\n\
                 write 0 5000 100 2 0\ntruncate 0 4000\nclose 0\nrename b d/c\nunlink d/a";
    let body = "mark\nremount\nopen 0 d/a ro\nopen 1 d/c ro\nread 1 0 9000\nclose 1\nrmdir d";
    let results: Vec<i64> =
        run(files, body).requests.iter().map(|request| request.result).collect();
    assert_eq!(results, [0, -2, 0, 4000, 0, -39]);
}
