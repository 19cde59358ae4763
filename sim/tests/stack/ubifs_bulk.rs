//! Bulk-read, seen in its flash operations: nodes of 4,144 bytes, 31 to a LEB of 129,024 bytes,
//! pages of 2 KiB.

use crate::support;
use sim::flash::Faults;
use sim::run::{run_cases_on, CaseInput, ChipState, Measured, Mount, Setting};

const MIB: u64 = 1 << 20;

fn run(kernel: &str, read_ahead_kib: u32, prepare: &str, body: &str, faults: Faults) -> Measured {
    let (board, kernel) = (support::board("emulated"), support::kernel(kernel));
    let prepare = format!("flashbed-ops 1\n{prepare}\nprepared\n");
    let body = format!("flashbed-ops 1\n{body}\n");
    let fs: Mount = "ubifs,bulk_read".parse().expect("modelled");
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, &prepare) };
    let case = CaseInput { read_ahead_kib, body: &body, cuts: &[], gc_choices: &[] };
    let state = ChipState { faults, ..ChipState::default() };
    run_cases_on(&setting, &state, &[case]).remove(0).unwrap_or_else(|error| panic!("{error}"))
}

/// The flash reads for each page of a file of random bytes that is read in this order, with the
/// index in memory; 0 for cached pages.
fn reads_of(prepare: &str, pages: impl IntoIterator<Item = u64>) -> Vec<usize> {
    let mut body = String::from("open 0 a ro\nread 0 0 1048576\nfadvise 0 0 0 dontneed\nmark");
    pages.into_iter().for_each(|page| body += &format!("\nread 0 {} 4096", page * 4096));
    let measured = run("6.1", 0, prepare, &body, Faults::default());
    let of = |request: &sim::run::Request| {
        let end = request.start + request.latency;
        measured.flash.iter().filter(|op| op.start >= request.start && op.start < end).count()
    };
    measured.requests.iter().map(of).collect()
}

fn written(bytes: u64) -> String {
    format!("open 0 a rw,create\nwrite 0 0 {bytes} 1 0\nclose 0\nsync\npause 10000000000")
}

#[test]
fn the_third_page_in_a_row_brings_the_rest_of_its_leb() {
    let reads = reads_of(&written(MIB), 0..70);
    let waited: Vec<usize> = (0..70).filter(|&page| reads[page] > 0).collect();
    // The first LEB begins with page 0; 31 nodes each: 0..31, 31..62, 62..
    assert_eq!(waited, [0, 1, 2, 31, 62]);
    let counts: Vec<usize> = waited.iter().map(|&page| reads[page]).collect();
    // One, 29 or 31 nodes of 4,144 bytes, in one read.
    assert_eq!(counts, [3, 3, 59, 63, 63]);
}

#[test]
fn a_jump_switches_it_off_and_the_page_after_the_last_it_added_goes_on() {
    let reads = reads_of(&written(MIB), [10, 11, 12, 100, 101, 102]);
    assert_eq!(reads[..2], [3, 3]);
    assert!(reads[2] > 3 && reads[5] > 3 && reads[3..5] == [3, 3], "{reads:?}");
    let reads = reads_of(&written(MIB), [5, 6, 7, 31]);
    assert!(reads[2] > 40 && reads[3] > 40, "7..31 are there, and 31 follows: {reads:?}");
    let reads = reads_of(&written(MIB), [5, 6, 7, 32, 33]);
    assert!(reads[2] > 3 && reads[3] <= 4 && reads[4] <= 4, "32 does not follow: {reads:?}");
}

/// The page before was the second in a row, so bulk-read starts with this one; a read elsewhere
/// ends it.
#[test]
fn a_node_that_lies_elsewhere_ends_it() {
    let prepare = written(MIB) + "\nopen 0 a rw\nwrite 0 40960 4096 2 0\nclose 0\nsync";
    let reads = reads_of(&prepare, 0..31);
    let waited: Vec<usize> = (0..31).filter(|&page| reads[page] > 0).collect();
    assert_eq!(waited, [0, 1, 2, 10, 11]);
}

#[test]
fn pages_of_a_hole_come_for_nothing_and_count() {
    let write = |at: u64| format!("write 0 {at} 16384 1 0\n");
    let prepare = format!("open 0 a rw,create\n{}{}close 0\nsync", write(0), write(80 * 4096));
    let body =
        "drop_caches\nopen 0 a ro\nmark\nread 0 0 4096\nread 0 4096 4096\nread 0 8192 4096\n\
                read 0 131072 4096\nread 0 135168 4096\nread 0 139264 4096";
    let measured = run("6.1", 0, &prepare, body, Faults::default());
    // Page 2 and 31 more, pages 3 and 4..34, of which 32 and 33 are read; 34 is next.
    assert_eq!(measured.cache_adds, 3 + 31 + 32);
    assert_eq!(measured.cache_misses, 4);
}

/// Since 5.8 the pages of a window are in the cache and locked before the first is read, so each
/// page reads its whole run and uses one page of it.
#[test]
fn under_read_ahead_each_page_reads_in_bulk_for_itself_since_5_8() {
    let body = "drop_caches\nopen 0 a ro\nmark\nread 0 0 131072";
    let reads =
        |kernel, window| run(kernel, window, &written(MIB), body, Faults::default()).flash_reads;
    let off = reads("6.1", 0);
    assert_eq!(reads("4.0", 0), off);
    assert!(reads("6.1", 128) > 5 * off, "{} and {off}", reads("6.1", 128));
    assert!(reads("4.0", 128) < 2 * off, "{} and {off}", reads("4.0", 128));
}

/// Three of four reads are uncorrectable. Bulk-read accepts wrong bits where the kernel does not
/// check; everything else is read page by page again, so no more calls fail than before.
#[test]
fn what_cannot_be_read_in_bulk_is_read_by_the_page() {
    let reads: String = (0..64).map(|page| format!("\nread 0 {} 4096", page * 4096)).collect();
    let body = format!("drop_caches\nopen 0 a ro\nmark{reads}");
    let faults = Faults { seed: 3, bit_flip_ppm: 20_000, bits_flipped: 2, ..Faults::default() };
    let clean = run("6.1", 0, &written(MIB), &body, Faults::default());
    let failing = run("6.1", 0, &written(MIB), &body, faults);
    assert!(failing.flash_reads > clean.flash_reads + 4, "UBI and UBIFS read again");
    assert!(failing.ecc_failed > 0);
    assert!(failing.requests.iter().all(|request| request.result == 4096));
}
