//! What the kernel keeps in memory and when it writes it back, seen in the flash operations.

use crate::support;
use sim::flash::FlashOp;
use sim::run::{run_cases, CaseInput, FsKind, Measured, RunError, Setting};
use sim::units::Ns;

fn try_run(
    fs: FsKind,
    prepare: &str,
    read_ahead_kib: u32,
    body: &str,
) -> Result<Measured, RunError> {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let prepare = format!("flashbed-ops 1\n{prepare}\nprepared\n");
    let body = format!("flashbed-ops 1\n{body}\n");
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, &prepare) };
    run_cases(&setting, &[CaseInput { read_ahead_kib, body: &body, cuts: &[], gc_choices: &[] }])
        .remove(0)
}

fn run(fs: FsKind, prepare: &str, body: &str) -> Measured {
    try_run(fs, prepare, 0, body).unwrap_or_else(|error| panic!("{error}"))
}

/// The flash operations of a measured operation.
fn flash_of(measured: &Measured, index: usize) -> Vec<FlashOp> {
    let request = measured.requests[index];
    let end = request.start + request.latency;
    let within = |op: &&FlashOp| op.start >= request.start && op.start < end;
    measured.flash.iter().filter(within).copied().collect()
}

fn flash_counts(measured: &Measured) -> Vec<usize> {
    (0..measured.requests.len()).map(|index| flash_of(measured, index).len()).collect()
}

/// Where the data nodes begin that these single-page reads, the last measured operations, read.
fn places<const N: usize>(measured: &Measured) -> [u32; N] {
    let first = measured.requests.len() - N;
    std::array::from_fn(|n| {
        let reads = flash_of(measured, first + n);
        reads[reads.len() - 3].page.0 // a node of 4,144 bytes lies in three pages
    })
}

const TWO_FILES: &str = "open 0 a rw,create\nwrite 0 0 4096 1 0\nclose 0\nsync\npause 10000000000";

#[test]
fn a_missing_name_is_looked_up_once_until_caches_are_dropped() {
    let body =
        "drop_caches\nmark\nopen 0 no ro\nopen 1 no ro\nopen 2 a ro\ndrop_caches\nopen 3 no ro";
    let measured = run(FsKind::Ubifs, TWO_FILES, body);
    let results: Vec<i64> = measured.requests.iter().map(|request| request.result).collect();
    assert_eq!(results, [-2, -2, 0, 0, -2]);
    let counts = flash_counts(&measured);
    assert!(counts[0] > 0 && counts[4] > 0, "the index is read: {counts:?}");
    assert_eq!(counts[1], 0, "a negative dentry");
    let jffs2 = flash_counts(&run(FsKind::Jffs2, TWO_FILES, body));
    assert_eq!((jffs2[0], jffs2[4]), (0, 0), "the root's entries are in memory");
}

#[test]
fn a_name_that_is_made_is_looked_up_first() {
    let body = |make: &str| format!("drop_caches\nmark\nopen 0 b ro\n{make}");
    for make in ["mkdir b", "open 1 b rw,create"] {
        let counts = flash_counts(&run(FsKind::Ubifs, TWO_FILES, &body(make)));
        assert!(counts[0] > 0 && counts[1] == 0, "{make}: {counts:?}");
    }
    let counts = flash_counts(&run(FsKind::Ubifs, TWO_FILES, "drop_caches\nmark\nmkdir a"));
    assert!(counts[0] > 2, "index, name and inode of what is in the way: {counts:?}");
}

/// A directory of JFFS2 has an inode node, and a node for each entry. Reading it takes one flash
/// read a node (none of these crosses a page) and another for the header of the inode node.
#[test]
fn a_directory_of_jffs2_is_read_with_its_entries() {
    let prepare = "mkdir d\nopen 0 d/e rw,create\nopen 1 d/f rw,create\nclose 0\nclose 1\nsync";
    let body = "drop_caches\nmark\nopen 0 d/no ro\nmkdir d\ndrop_caches\nmkdir d\nopen 1 d/e ro";
    let measured = run(FsKind::Jffs2, prepare, body);
    assert_eq!(flash_counts(&measured), [4, 0, 0, 4, 2], "d/e has one node, read twice");
}

#[test]
fn an_open_file_keeps_its_directories_and_not_their_other_files() {
    let prepare = "mkdir d\nopen 0 d/e rw,create\nopen 1 d/f rw,create\nclose 0\nclose 1\nsync";
    let body = "open 0 d/e ro\ndrop_caches\nmark\nopen 1 d/e ro\nopen 2 d/no ro\nopen 3 d/f ro";
    assert_eq!(flash_counts(&run(FsKind::Jffs2, prepare, body)), [0, 0, 2]);
}

/// Two files with a page each; the order of their creation does not matter.
#[test]
fn sync_writes_inodes_in_the_order_in_which_they_became_dirty() {
    let order = |first: u32, then: u32| {
        let prepare = format!(
            "open 0 a rw,create\nopen 1 b rw,create\nwrite {first} 0 4096 1 0\n\
             write {then} 0 4096 1 0\nwrite {first} 4096 4096 1 0\nclose 0\nclose 1\nsync"
        );
        let body = "open 0 a ro\nopen 1 b ro\nread 0 0 1\nread 1 0 1\ndrop_caches\nmark\n\
                    read 0 0 1\nread 1 0 1";
        let [a, b] = places(&run(FsKind::Ubifs, &prepare, body));
        a < b
    };
    assert!(order(0, 1));
    assert!(!order(1, 0));
}

/// a is dirty before b, and fsync writes its first page; its second is written before b's.
#[test]
fn fsync_leaves_an_inode_where_it_is_in_the_list() {
    let prepare = "open 0 a rw,create\nopen 1 b rw,create\nwrite 0 0 4096 1 0\nfsync 0\n\
                   write 1 0 4096 1 0\nwrite 0 4096 4096 1 0\nclose 0\nclose 1\nsync";
    let body = "drop_caches\nopen 0 a ro\nopen 1 b ro\nmark\nread 0 4096 1\nread 1 0 1";
    let [a, b] = places(&run(FsKind::Ubifs, prepare, body));
    assert!(a < b);
}

/// fsync ends at page 3, so the flusher begins there and writes pages 0 to 2 in a second round.
#[test]
fn the_flusher_goes_on_where_an_fsync_has_ended_and_sync_begins_anew() {
    let order = |end: &str| {
        let prepare = format!(
            "open 0 a rw,create\nwrite 0 0 16384 1 0\n{end}\nwrite 0 0 16384 2 0\n\
             pause 60000000000\nclose 0"
        );
        let body = "drop_caches\nopen 0 a ro\nmark\nread 0 0 1\nread 0 4096 1\nread 0 12288 1";
        places(&run(FsKind::Ubifs, &prepare, body))
    };
    let [zero, one, three] = order("fsync 0");
    assert!(three < zero && zero < one);
    let [zero, one, three] = order("sync");
    assert!(zero < one && one < three);
}

/// PG_reclaim, set on a dirty page that could not be dropped, is the same bit as PG_readahead. Page
/// 0 therefore starts a window of two pages (get_init_ra_size of 1, at most 4) and is its first
/// page.
#[test]
fn a_dirty_page_that_dropping_caches_has_left_begins_a_read_ahead() {
    let prepare = "open 0 a rw,create\nwrite 0 0 16384 1 0\nclose 0\nsync\npause 10000000000";
    let body =
        "drop_caches\nopen 0 a rw\nwrite 0 0 4096 2 0\nmark\nread 0 0 1\ndrop_caches\nread 0 0 1";
    let adds = |kib| try_run(FsKind::Ubifs, prepare, kib, body).expect("it runs").cache_adds;
    assert_eq!((adds(0), adds(16)), (0, 1));
}

#[test]
fn fdatasync_leaves_out_an_inode_whose_size_is_the_same() {
    let body =
        |sync: &str| format!("open 0 a rw\npause 2000000000\nwrite 0 0 4096 2 0\nmark\n{sync} 0");
    let programs = |sync: &str| run(FsKind::Ubifs, TWO_FILES, &body(sync)).flash_programs;
    assert!(programs("fdatasync") < programs("fsync"));
}

#[test]
fn the_zeroes_of_a_hole_take_no_room() {
    for fs in [FsKind::Jffs2, FsKind::Ubifs] {
        let programs = |offset: u64| {
            let length = 4096 - offset;
            let body = format!("open 0 a rw,create\nmark\nwrite 0 {offset} {length} 1 0\nfsync 0");
            run(fs, "sync", &body).flash_programs
        };
        assert!(programs(3000) < programs(0), "{fs:?}");
    }
}

/// A device has no share in the dirty limit until the write of one of its pages has completed
/// (wb_over_bg_thresh).
#[test]
fn the_flusher_writes_all_of_a_fresh_mount_after_five_seconds_and_else_after_thirty() {
    let body = |seconds: u64| {
        format!("mark\nopen 0 b rw,create\nwrite 0 0 40960 1 0\npause {seconds}000000000")
    };
    let programs = |prepare: &str, seconds| {
        let measured = run(FsKind::Ubifs, prepare, &body(seconds));
        flash_of(&measured, 2).len()
    };
    let written = "open 0 a rw,create\nwrite 0 0 40960 1 0\nclose 0\nsync\npause 10000000000";
    let remounted = format!("{written}\nremount");
    assert!(programs("", 8) > 20, "ten pages of two flash pages and some");
    assert!(programs(&remounted, 8) > 20);
    assert!(programs(written, 8) < 5, "what the write-buffers' timers write");
    assert!(programs(written, 40) > 20);
}

/// 50,000 bytes are 13 pages; a directory is an inode as well.
#[test]
fn unmounting_takes_pages_and_inodes_out_of_memory() {
    let kernel = support::kernel("6.1");
    let made = "open 0 a rw,create\nwrite 0 0 50000 1 0\nclose 0\nmkdir b\nsync";
    let prepare = format!("flashbed-ops 1\n{made}\npause 60000000000\nprepared\n");
    for fs in [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs] {
        let remount_ns = |page_ns: u64, inode_ns: u64, before: &str| {
            let mut board = support::board("emulated");
            board.software = support::free_software();
            board.software.page_drop_ns = Ns(page_ns);
            board.software.inode_drop_ns = Ns(inode_ns);
            let setting = support::setting(&board, &kernel, fs, &prepare);
            let setting = Setting { recorded: support::TRACED, ..setting };
            let body = format!("flashbed-ops 1\n{before}mark\nremount\n");
            let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
            let measured = run_cases(&setting, &[case]).remove(0).expect("it runs");
            measured.requests[0].latency.0
        };
        assert_eq!(remount_ns(1000, 0, "") - remount_ns(0, 0, ""), 13_000, "{fs:?}");
        assert_eq!(remount_ns(0, 1000, "") - remount_ns(0, 0, ""), 2000, "{fs:?}");
        let again = "remount\n";
        assert_eq!(remount_ns(1000, 1000, again), remount_ns(0, 0, again), "{fs:?}");
    }
}
