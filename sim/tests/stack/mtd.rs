//! The NAND driver issues the commands nand_base.c issues.

use crate::support;
use sim::causes::{Cause, Causes};
use sim::flash::{Chip, Flash, Kind, Traced};
use sim::mtd::{Mtd, RawNand};
use sim::profile::{BoardProfile, EccKind};
use sim::units::Ns;

fn driver(board: &str) -> Mtd<RawNand<Traced<Chip>>> {
    driver_of(&support::board(board))
}

fn driver_of(board: &BoardProfile) -> Mtd<RawNand<Traced<Chip>>> {
    let mut mtd = Mtd::new(Traced::new(Chip::new(board.chip)), board);
    mtd.flash_mut().start_recording();
    mtd
}

/// (page, column, length) of the operations of this kind since the last call.
fn operations(mtd: &mut Mtd<RawNand<Traced<Chip>>>, kind: Kind) -> Vec<(u32, u32, u32)> {
    let record = mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    assert!(record.iter().all(|op| op.kind == kind), "{record:?}");
    record.iter().map(|op| (op.page.0, op.column, op.length)).collect()
}

fn reads(mtd: &mut Mtd<RawNand<Traced<Chip>>>) -> Vec<(u32, u32, u32)> {
    operations(mtd, Kind::Read)
}

#[test]
fn software_ecc_reads_only_the_steps_that_hold_the_bytes() {
    let mut mtd = driver("emulated");
    mtd.read(Ns::ZERO, 100, 68).unwrap();
    assert_eq!(reads(&mut mtd), [(0, 0, 256)]);
    mtd.read(Ns::ZERO, 200, 68).unwrap();
    assert_eq!(reads(&mut mtd), [(0, 0, 512)]);
    mtd.read(Ns::ZERO, 2048 + 1024, 2048).unwrap();
    assert_eq!(reads(&mut mtd), [(1, 1024, 1024), (2, 0, 1024)]);
    mtd.read(Ns::ZERO, 2048 + 1024, 4096).unwrap();
    assert_eq!(reads(&mut mtd), [(1, 1024, 1024), (2, 0, 2048), (3, 0, 1024)]);
}

#[test]
fn software_ecc_never_remembers_a_page() {
    let mut mtd = driver("emulated");
    mtd.read(Ns::ZERO, 0, 68).unwrap();
    mtd.read(Ns::ZERO, 0, 68).unwrap();
    assert_eq!(reads(&mut mtd).len(), 2);
}

#[test]
fn hardware_ecc_reads_whole_pages_and_remembers_the_last_one_read_in_part() {
    let mut mtd = driver("omap3evm");
    mtd.read(Ns::ZERO, 100, 68).unwrap();
    assert_eq!(reads(&mut mtd), [(0, 0, 2048)]);
    mtd.read(Ns::ZERO, 168, 4096).unwrap();
    assert_eq!(reads(&mut mtd), [(1, 0, 2048), (2, 0, 2048)], "page 0 is in the buffer");
    mtd.read(Ns::ZERO, 2 * 2048 + 500, 68).unwrap();
    assert_eq!(reads(&mut mtd), [], "page 2 is, page 1 was read whole and is not");
    mtd.read(Ns::ZERO, 2048, 10).unwrap();
    assert_eq!(reads(&mut mtd), [(1, 0, 2048)]);
}

#[test]
fn parts_of_pages_are_copied_out_of_the_page_buffer_whole_pages_only_if_it_has_them() {
    let mut board = support::board("omap3evm");
    board.software.nand_bounce_byte_ps = 1_000;
    let mut mtd = driver_of(&board);
    let took = |mtd: &mut Mtd<RawNand<Traced<Chip>>>, offset, length, pages: u64| {
        let page = mtd.read(Ns::ZERO, 64 * 2048, 2048).unwrap();
        mtd.forget_page_buffer();
        (mtd.read(Ns::ZERO, offset, length).unwrap() - Ns(page.0 * pages)).0
    };
    assert_eq!(took(&mut mtd, 2048, 4096, 2), 0);
    assert_eq!(took(&mut mtd, 2000, 100, 2), 100);
    let read = mtd.read(Ns::ZERO, 2048, 2048).unwrap();
    assert_eq!(read, Ns(2048), "the part of page 1 has left the page in the buffer");
}

#[test]
fn programming_or_erasing_forgets_the_remembered_page() {
    let mut mtd = driver("omap3evm");
    mtd.read(Ns::ZERO, 0, 68).unwrap();
    mtd.write(Ns::ZERO, 0, 2048).unwrap();
    mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    mtd.read(Ns::ZERO, 0, 68).unwrap();
    assert_eq!(reads(&mut mtd).len(), 1);
    mtd.erase(Ns::ZERO, 0).unwrap();
    mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    mtd.read(Ns::ZERO, 0, 68).unwrap();
    assert_eq!(reads(&mut mtd).len(), 1);
}

#[test]
fn the_driver_of_the_omap3evm_takes_the_slides_185_065_and_407_600_ns() {
    let mut mtd = driver("omap3evm");
    assert_eq!(mtd.read(Ns::ZERO, 0, 2048).unwrap(), Ns(185_065));
    assert_eq!(mtd.write(Ns::ZERO, 0, 2048).unwrap(), Ns(407_600));
}

/// The emulated board's chip on a bus with a price per byte, with this ECC: 100 ns for each of
/// 2,112 bytes, software free.
fn by_the_byte(kind: EccKind) -> Mtd<RawNand<Traced<Chip>>> {
    let (mut board, chip) = (support::board("emulated"), support::board("omap3evm").chip);
    board.chip = chip;
    (board.chip.bus_read_ns, board.chip.bus_program_ns) = (Ns(211_200), Ns(211_200));
    board.ecc.kind = kind;
    if kind == EccKind::NoEcc {
        board.ecc.step_bytes = chip.page_bytes;
    }
    board.software = support::free_software();
    driver_of(&board)
}

#[test]
fn a_header_is_programmed_as_a_page_filled_up_with_ones() {
    for (kind, bus) in [(EccKind::SoftwareSubpage, 211_200), (EccKind::NoEcc, 204_800)] {
        let mut mtd = by_the_byte(kind);
        let bytes = mtd.subpage_bytes();
        let now = mtd.write(Ns::ZERO, 0, bytes).unwrap();
        assert_eq!(now, Ns(200_000 + bus), "{kind:?}");
        assert_eq!(operations(&mut mtd, Kind::Program), [(0, 0, 2048)]);
    }
}

#[test]
fn the_second_header_may_follow_on_the_same_page() {
    let mut mtd = driver("emulated");
    mtd.write(Ns::ZERO, 0, 512).unwrap();
    mtd.write(Ns::ZERO, 512, 512).unwrap();
    mtd.write(Ns::ZERO, 2048, 4096).unwrap();
    let whole = [(0, 0, 2048), (0, 0, 2048), (1, 0, 2048), (2, 0, 2048)];
    assert_eq!(operations(&mut mtd, Kind::Program), whole);
}

#[test]
#[should_panic(expected = "programmed twice or out of order")]
fn the_first_header_may_not_be_written_again() {
    let mut mtd = driver("emulated");
    mtd.write(Ns::ZERO, 0, 512).unwrap();
    mtd.write(Ns::ZERO, 0, 512).unwrap();
}

#[test]
fn a_cleanmarker_moves_the_whole_oob_and_nothing_else() {
    let mut mtd = by_the_byte(EccKind::HardwarePage);
    assert_eq!(mtd.write_oob(Ns::ZERO, 0, 8).unwrap(), Ns(200_000 + 6_400));
    assert_eq!(operations(&mut mtd, Kind::Program), [(0, 2048, 64)]);
}

/// nand_read_page_raw and nand_write_page_raw leave the OOB out unless it was requested.
#[test]
fn without_ecc_pages_are_whole_and_the_oob_stays_where_it_is() {
    let mut mtd = by_the_byte(EccKind::NoEcc);
    assert_eq!(mtd.subpage_bytes(), 2048);
    assert_eq!(mtd.read(Ns::ZERO, 100, 68).unwrap(), Ns(25_000 + 204_800));
    assert_eq!(mtd.read(Ns::ZERO, 500, 68).unwrap(), Ns::ZERO, "the page is in the page buffer");
    assert_eq!(mtd.read_with_oob(Ns::ZERO, 0, 1).unwrap(), Ns(25_000 + 211_200));
    assert_eq!(reads(&mut mtd), [(0, 0, 2048); 2]);
    assert_eq!(
        mtd.write_with_oob(Ns::ZERO, 0, Causes::of(Cause::Data, 2048)).unwrap(),
        Ns(200_000 + 211_200)
    );
}

/// nand_scan_tail: steps of 256 bytes, and the sub-pages that follow from them.
#[test]
fn sub_pages_are_quarters_of_a_page_of_four_to_sixteen_steps_and_halves_of_one_of_two() {
    for (page_bytes, subpage_bytes) in
        [(256, 256), (512, 256), (1024, 256), (2048, 512), (4096, 1024), (8192, 8192)]
    {
        let mut board = support::board("emulated");
        board.chip.page_bytes = page_bytes;
        assert_eq!(driver_of(&board).subpage_bytes(), subpage_bytes, "{page_bytes}");
        board.ecc.kind = EccKind::HardwarePage;
        assert_eq!(driver_of(&board).subpage_bytes(), page_bytes);
    }
}

/// NAND_SUBPAGE_READ is for large pages.
#[test]
fn a_page_of_512_bytes_is_read_whole_and_remembered() {
    let mut mtd = driver_of(&support::small_pages());
    mtd.read(Ns::ZERO, 0, 64).unwrap();
    mtd.read(Ns::ZERO, 256, 64).unwrap();
    assert_eq!(reads(&mut mtd), [(0, 0, 512)]);
    mtd.write(Ns::ZERO, 1024, 512).unwrap();
    operations(&mut mtd, Kind::Program);
    mtd.read(Ns::ZERO, 0, 64).unwrap();
    assert_eq!(reads(&mut mtd), [], "another page was programmed, whole");
}

/// nand_get_data_buf: padding uses the memory of the page buffer.
#[test]
fn writing_part_of_any_page_forgets_the_remembered_one() {
    let mut mtd = driver_of(&support::small_pages());
    mtd.read(Ns::ZERO, 0, 64).unwrap();
    mtd.write(Ns::ZERO, 1024, 256).unwrap();
    assert_eq!(mtd.flash().counts().reads, 1);
    mtd.read(Ns::ZERO, 0, 64).unwrap();
    assert_eq!(mtd.flash().counts().reads, 2);
}

/// The time since the driver's last cond_resched(), and the last operation's own time.
fn since_resched(board: &str, call: impl Fn(&mut Mtd<RawNand<Traced<Chip>>>) -> Ns) -> (Ns, Ns) {
    let mut board = support::board(board);
    board.software = support::free_software();
    let mut mtd = driver_of(&board);
    let over = call(&mut mtd);
    let last = mtd.flash_mut().take_record().last().expect("an operation").start;
    (mtd.since_resched(), over - last)
}

#[test]
fn a_controller_that_reads_and_writes_pages_does_not_ask_after_the_last_of_a_call() {
    let (since, last) = since_resched("emulated-4k", |mtd| mtd.read(Ns::ZERO, 0, 8192).unwrap());
    assert_eq!(since, last, "the second page");
    let page = |mtd: &mut Mtd<RawNand<Traced<Chip>>>| mtd.write(Ns::ZERO, 0, 4096).unwrap();
    let (since, last) = since_resched("emulated-4k", page);
    assert_eq!(since, last);
    let marker = |mtd: &mut Mtd<RawNand<Traced<Chip>>>| mtd.write_oob(Ns::ZERO, 0, 12).unwrap();
    assert_eq!(since_resched("emulated-4k", marker).0, Ns::ZERO, "its status is read");
    assert_eq!(since_resched("emulated-4k", |mtd| mtd.erase(Ns::ZERO, 1).unwrap()).0, Ns::ZERO);
}

#[test]
fn without_a_controller_only_the_ecc_bytes_of_a_partial_read_are_not_followed_by_a_question() {
    let column_change = support::board("emulated").chip.column_change_ns;
    let part = |mtd: &mut Mtd<RawNand<Traced<Chip>>>| mtd.read(Ns::ZERO, 0, 256).unwrap();
    assert!(since_resched("emulated", part).0 >= column_change);
    for bytes in [2048, 4096] {
        let whole = |mtd: &mut Mtd<RawNand<Traced<Chip>>>| mtd.read(Ns::ZERO, 0, bytes).unwrap();
        assert_eq!(since_resched("emulated", whole).0, Ns::ZERO);
    }
    let page = |mtd: &mut Mtd<RawNand<Traced<Chip>>>| mtd.write(Ns::ZERO, 0, 2048).unwrap();
    assert_eq!(since_resched("emulated", page).0, Ns::ZERO);
}
