//! Reads in order while the array loads ahead: sequential cache reads of raw NAND.

use crate::support;
use sim::flash::{Chip, Traced};
use sim::mtd::{Mtd, RawNand};
use sim::profile::{BoardProfile, EccKind, Transfer};
use sim::units::Ns;

const ARRAY: u64 = 25_000;
const CACHE: u64 = 3_000;
/// A page and its OOB, at 25 ns a byte.
const BUS: u64 = 52_800;

fn board() -> BoardProfile {
    let mut board = support::board("emulated");
    board.software = support::free_software();
    board.chip.transfer = Transfer::Bytes;
    board.chip.bus_read_ns = Ns(BUS);
    board.chip.read_array_ns = Ns(ARRAY);
    board.chip.column_change_ns = Ns::ZERO;
    board.chip.cache_read_ns = Some(Ns(CACHE));
    board
}

fn mtd(board: &BoardProfile) -> Mtd<RawNand<Traced<Chip>>> {
    Mtd::new(Traced::new(Chip::new(board.chip)), board)
}

/// The time of a read, and the pages that the chip read.
fn read(board: &BoardProfile, offset: u64, length: u32) -> (u64, Vec<u32>) {
    let mut mtd = mtd(board);
    mtd.flash_mut().start_recording();
    let over = mtd.read(Ns::ZERO, offset, length).expect("a read");
    assert_eq!(mtd.counts().busy, over);
    (over.0, mtd.flash_mut().take_record().iter().map(|op| op.page.0).collect())
}

fn plain(pages: u64) -> u64 {
    pages * (ARRAY + BUS)
}

#[test]
fn the_pages_of_a_block_cost_the_array_once() {
    let (time, pages) = read(&board(), 0, 64 * 2048);
    assert_eq!(time, ARRAY + 64 * (CACHE + BUS));
    assert_eq!(pages, (0..64).collect::<Vec<u32>>());
}

#[test]
fn two_whole_pages_are_a_sequence_and_parts_are_not() {
    assert_eq!(read(&board(), 0, 4096).0, ARRAY + 2 * (CACHE + BUS));
    assert_eq!(read(&board(), 0, 2048).0, plain(1));
    // Parts of three pages, of which one is whole.
    let step = |bytes: u64| ARRAY + (BUS * bytes / 2112) + (BUS * 3 * bytes / 256 / 2112);
    assert_eq!(read(&board(), 1024, 4096).0, step(1024) + plain(1) + step(1024));
    assert_eq!(read(&board(), 1024, 6144).0, step(1024) + ARRAY + 2 * (CACHE + BUS) + step(1024));
}

#[test]
fn a_transfer_shorter_than_the_array_waits_for_it() {
    let mut fast = board();
    fast.chip.bus_read_ns = Ns(10_560);
    let (time, _) = read(&fast, 0, 3 * 2048);
    assert_eq!(time, ARRAY + CACHE + 10_560 + 2 * (ARRAY + CACHE));
}

#[test]
fn only_software_ecc_and_chips_that_have_them_read_so() {
    let mut controller = board();
    controller.ecc.kind = EccKind::HardwarePage;
    assert_eq!(read(&controller, 0, 8 * 2048).0, plain(8));
    let mut without = board();
    without.chip.cache_read_ns = None;
    assert_eq!(read(&without, 0, 8 * 2048).0, plain(8));
}

/// Linux 6.12.117 continues with READ CACHE SEQUENTIAL after READ CACHE END.
#[test]
fn behind_the_end_of_a_block_the_chip_is_a_page_behind_the_driver() {
    let (time, pages) = read(&board(), 60 * 2048, 8 * 2048);
    assert_eq!(pages, [60, 61, 62, 63, 63, 64, 65, 66]);
    assert_eq!(time, ARRAY + 8 * (CACHE + BUS));
    // A sequence that would begin with the last but one page of a block begins again behind it.
    assert_eq!(read(&board(), 62 * 2048, 4 * 2048).1, [62, 63, 64, 65]);
    let restarted = 2 * ARRAY + 4 * (CACHE + BUS);
    assert_eq!(read(&board(), 62 * 2048, 4 * 2048).0, restarted);
    assert_eq!(read(&board(), 63 * 2048, 3 * 2048).0, plain(1) + ARRAY + 2 * (CACHE + BUS));
}

#[test]
fn a_chip_that_moves_whole_pages_has_none() {
    let mut board = board();
    board.chip.transfer = Transfer::Page;
    assert!(board.check().is_err_and(|why| why.starts_with("chip.cache_read_ns: only a chip")));
}
