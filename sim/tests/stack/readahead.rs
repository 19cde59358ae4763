//! What read-ahead does to the read benchmark, as a table: it shows changes of the algorithm.
//!
//! The figures follow from mm/readahead.c alone: pages added to the cache with a window of 128 KiB,
//! for 4 KiB reads of a 5 MiB file.

use crate::support;
use sim::run::FsKind;

const REQUESTS: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

fn pages_added(kernel: &str, pages: &[u64], read_ahead_kib: u32) -> u64 {
    let prepare = support::written_file(5 << 20);
    let body = support::page_reads(pages);
    let (board, kernel) = (support::board("omap3evm"), support::kernel(kernel));
    support::run(&board, &kernel, FsKind::Yaffs2, &prepare, read_ahead_kib, &body).cache_adds
}

/// 8 requests end in the third window: 4 + 8 + 16 pages; the others likewise.
#[test]
fn sequential_windows_bring_in_the_pages_every_kernel_brings_in() {
    let wanted = [28, 60, 92, 124, 188, 316, 572, 1084];
    for kernel in ["2.6.37", "2.6.37-64bit", "3.12", "3.13", "4.0", "6.1"] {
        for (requests, wanted) in REQUESTS.into_iter().zip(wanted) {
            let pages: Vec<u64> = (0..requests).collect();
            assert_eq!(pages_added(kernel, &pages, 128), wanted, "{kernel}, {requests} requests");
            assert_eq!(pages_added(kernel, &pages, 0), requests, "{kernel}, off");
        }
    }
}

/// A backward jump brings a window of four pages on 32 bits before 3.13, and one page after.
#[test]
fn backward_jumps() {
    let pages = [1000, 900, 800, 700, 600];
    assert_eq!(pages_added("2.6.37", &pages, 128), 1 + 4 * 4);
    assert_eq!(pages_added("2.6.37-64bit", &pages, 128), 5);
    assert_eq!(pages_added("6.1", &pages, 128), 5);
}

/// A page next to a cached one starts a window before 3.12, and only after a longer history then.
#[test]
fn neighbours_of_cached_pages() {
    let pages = [100, 900, 101];
    assert_eq!(pages_added("2.6.37-64bit", &pages, 128), 2 + 4 + 8);
    assert_eq!(pages_added("3.13", &pages, 128), 3);
    assert_eq!(pages_added("6.1", &pages, 128), 3);
}
