//! The NAND driver issues the commands nand_base.c issues.

mod support;

use sim::chip::{Chip, Flash, Kind};
use sim::mtd::Mtd;
use sim::trace::Traced;
use sim::units::Ns;

fn driver(board: &str) -> Mtd<Traced<Chip>> {
    let board = support::board(board);
    let mut mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    mtd.flash_mut().start_recording();
    mtd
}

/// (page, column, length) of the reads since the last call.
fn reads(mtd: &mut Mtd<Traced<Chip>>) -> Vec<(u32, u32, u32)> {
    let record = mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    assert!(record.iter().all(|op| op.kind == Kind::Read));
    record.iter().map(|op| (op.page.0, op.column, op.length)).collect()
}

#[test]
fn software_ecc_reads_only_the_steps_that_hold_the_bytes() {
    let mut mtd = driver("emulated");
    mtd.read(Ns::ZERO, 100, 68);
    assert_eq!(reads(&mut mtd), [(0, 0, 256)]);
    mtd.read(Ns::ZERO, 200, 68);
    assert_eq!(reads(&mut mtd), [(0, 0, 512)]);
    mtd.read(Ns::ZERO, 2048 + 1024, 2048);
    assert_eq!(reads(&mut mtd), [(1, 1024, 1024), (2, 0, 1024)]);
    mtd.read(Ns::ZERO, 2048 + 1024, 4096);
    assert_eq!(reads(&mut mtd), [(1, 1024, 1024), (2, 0, 2112), (3, 0, 1024)]);
}

#[test]
fn software_ecc_never_remembers_a_page() {
    let mut mtd = driver("emulated");
    mtd.read(Ns::ZERO, 0, 68);
    mtd.read(Ns::ZERO, 0, 68);
    assert_eq!(reads(&mut mtd).len(), 2);
}

#[test]
fn hardware_ecc_reads_whole_pages_and_remembers_the_last_one_read_in_part() {
    let mut mtd = driver("omap3evm");
    mtd.read(Ns::ZERO, 100, 68);
    assert_eq!(reads(&mut mtd), [(0, 0, 2112)]);
    mtd.read(Ns::ZERO, 168, 4096);
    assert_eq!(reads(&mut mtd), [(1, 0, 2112), (2, 0, 2112)], "page 0 is in the buffer");
    mtd.read(Ns::ZERO, 2 * 2048 + 500, 68);
    assert_eq!(reads(&mut mtd), [], "page 2 is, page 1 was read whole and is not");
    mtd.read(Ns::ZERO, 2048, 10);
    assert_eq!(reads(&mut mtd), [(1, 0, 2112)]);
}

#[test]
fn programming_or_erasing_forgets_the_remembered_page() {
    let mut mtd = driver("omap3evm");
    mtd.read(Ns::ZERO, 0, 68);
    mtd.write(Ns::ZERO, 0, 2048);
    mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    mtd.read(Ns::ZERO, 0, 68);
    assert_eq!(reads(&mut mtd).len(), 1);
    mtd.erase(Ns::ZERO, 0);
    mtd.flash_mut().take_record();
    mtd.flash_mut().start_recording();
    mtd.read(Ns::ZERO, 0, 68);
    assert_eq!(reads(&mut mtd).len(), 1);
}

#[test]
fn the_driver_of_the_omap3evm_takes_the_slides_185_065_and_407_600_ns() {
    let mut mtd = driver("omap3evm");
    assert_eq!(mtd.read(Ns::ZERO, 0, 2048), Ns(185_065));
    assert_eq!(mtd.write(Ns::ZERO, 0, 2048), Ns(407_600));
}
