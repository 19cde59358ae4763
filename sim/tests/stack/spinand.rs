//! SPI-NAND and its driver, held against cycles counted by hand.

use crate::support;
use sim::causes::{Cause, Causes};
use sim::flash::{Chip, Done, Fault, Faults, Faulty, Kind, Traced};
use sim::mtd::{Driven, Mtd};
use sim::profile::{BoardProfile, EccKind, EccStatus, SpiBus};
use sim::units::Ns;

/// 20 ns a cycle: every figure below is whole.
const CLOCK_HZ: u64 = 50_000_000;
const CYCLE: u64 = 20;

/// A W25N01GV on four lines.
fn board() -> BoardProfile {
    let mut board = support::board("emulated");
    board.software = support::free_software();
    board.chip.blocks = 1024;
    board.chip.oob_bytes = 64;
    board.chip.read_array_ns = Ns(60_000);
    board.chip.program_array_ns = Ns(250_000);
    board.chip.erase_array_ns = Ns(2_000_000);
    board.ecc.kind = EccKind::OnDie;
    board.ecc.step_bytes = 512;
    board.chip.spi = Some(SpiBus {
        clock_hz: CLOCK_HZ,
        read_address_lines: 4,
        read_address_bytes: 2,
        read_dummy_bytes: 2,
        read_data_lines: 4,
        program_address_lines: 1,
        program_data_lines: 4,
        dtr: false,
        oob_free_bytes: 24,
        ecc_status: EccStatus::Core,
        polls_sleep: true,
        continuous_reads: false,
        op_ns: Ns::ZERO,
    });
    board
}

fn mtd(board: &BoardProfile) -> Mtd<Driven<Traced<Chip>>> {
    Mtd::with_driver(Driven::new(Traced::new(Chip::new(board.chip)), board), board)
}

const STATUS: u64 = 24 * CYCLE;
/// 60 us end in the eleventh poll: 6,480 + 10 x 5,480 = 61,280.
const READ_POLLED: u64 = 6_000 + STATUS + 10 * (5_000 + STATUS);
/// 250 us: 75,480 + 12 x 15,480.
const PROGRAM_POLLED: u64 = 75_000 + STATUS + 12 * (15_000 + STATUS);
/// 2 ms: 250,480 + 35 x 50,480.
const ERASE_POLLED: u64 = 250_000 + STATUS + 35 * (50_000 + STATUS);
const ROW: u64 = 32 * CYCLE;
const ENABLE: u64 = 8 * CYCLE;

#[test]
fn a_part_of_a_page_costs_what_the_page_costs_and_is_read_again() {
    let board = board();
    let mut mtd = mtd(&board);
    let whole = ROW + READ_POLLED + (8 + 8 + 2_048 * 2) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 68).expect("a part"), Ns(whole));
    assert_eq!(mtd.read(Ns::ZERO, 68, 200).expect("another"), Ns(whole));
    assert_eq!((mtd.counts().reads, mtd.counts().busy), (2, Ns(2 * whole)));
    let oob = ROW + READ_POLLED + (8 + 8 + 64 * 2) * CYCLE;
    assert_eq!(mtd.read_oob(Ns::ZERO, 0, 1).expect("the OOB"), Ns(oob));
}

#[test]
fn a_program_moves_the_page_with_its_oob() {
    let board = board();
    let mut mtd = mtd(&board);
    let program = ENABLE + (24 + 2_112 * 2) * CYCLE + ROW + PROGRAM_POLLED;
    let causes = Causes::of(Cause::Data, 2_048);
    assert_eq!(mtd.write_for(Ns::ZERO, 0, 2_048, &causes).expect("a page"), Ns(program));
    assert_eq!(mtd.write_oob(Ns::ZERO, 131_072, 8).expect("a marker"), Ns(program));
    assert_eq!(mtd.subpage_bytes(), 2_048);
    assert_eq!(mtd.erase(Ns::ZERO, 0).expect("a block"), Ns(ENABLE + ROW + ERASE_POLLED));
}

#[test]
fn a_bad_block_is_marked_without_an_erase_and_without_ecc() {
    let board = board();
    let mut mtd = mtd(&board);
    mtd.flash_mut().start_recording();
    let program = ENABLE + (24 + 2_112 * 2) * CYCLE + ROW + PROGRAM_POLLED;
    let register = 24 * CYCLE;
    // spinand_markbad enables writing, then spinand_write_page does so again.
    assert_eq!(mtd.mark_bad(Ns::ZERO, 3).expect("marked"), Ns(ENABLE + register + program));
    let kinds: Vec<Kind> = mtd.flash_mut().take_record().iter().map(|op| op.kind).collect();
    assert_eq!(kinds, [Kind::Program]);
    let next = register + ROW + READ_POLLED + (8 + 8 + 2_048 * 2) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 2_048).expect("ECC on again"), Ns(next));
}

/// Feature set, the first page's array, all pages in one operation, status, feature cleared.
#[test]
fn pages_of_a_block_are_one_continuous_read() {
    let mut board = board();
    board.chip.spi.as_mut().expect("on SPI").continuous_reads = true;
    let mut mtd = mtd(&board);
    mtd.flash_mut().start_recording();
    let of = |pages: u64| 3 * STATUS + ROW + READ_POLLED + (8 + 8 + pages * 2_048 * 2) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 8_192).expect("four pages"), Ns(of(4)));
    // A hundred bytes of two pages are two whole pages.
    assert_eq!(mtd.read(Ns::ZERO, 2_000, 100).expect("parts of two"), Ns(of(2)));
    let pages: Vec<u32> = mtd.flash_mut().take_record().iter().map(|op| op.page.0).collect();
    assert_eq!(pages, [0, 1, 2, 3, 0, 1]);
    let whole = ROW + READ_POLLED + (8 + 8 + 2_048 * 2) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 2_048).expect("one page"), Ns(whole));
    assert_eq!(mtd.read(Ns::ZERO, 129_024, 4_096).expect("of two blocks"), Ns(2 * whole));
    assert_eq!(mtd.counts().busy, Ns(of(4) + of(2) + 3 * whole));
}

/// 1S-8S-8S: the column on eight lines too.
#[test]
fn eight_lines_carry_column_and_data_at_single_rate() {
    let mut board = board();
    let spi = board.chip.spi.as_mut().expect("on SPI");
    (spi.read_address_lines, spi.read_data_lines, spi.read_dummy_bytes) = (8, 8, 8);
    (spi.program_address_lines, spi.program_data_lines) = (8, 8);
    assert_eq!(board.check(), Ok(()));
    let mut mtd = mtd(&board);
    let read = ROW + READ_POLLED + (8 + 10 + 2_048) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 2_048).expect("a page"), Ns(read));
    let program = ENABLE + (8 + 2 + 2_112) * CYCLE + ROW + PROGRAM_POLLED;
    let causes = Causes::of(Cause::Data, 2_048);
    assert_eq!(mtd.write_for(Ns::ZERO, 0, 2_048, &causes).expect("a page"), Ns(program));
}

/// 8D-8D-8D: two bytes a cycle, the command twice; 14 bytes pass before a register's value.
#[test]
fn octal_dtr_moves_two_bytes_a_cycle_and_waits_for_the_status() {
    let mut board = board();
    let spi = board.chip.spi.as_mut().expect("on SPI");
    spi.dtr = true;
    let whole = board.check();
    assert_eq!(whole, Err("spi.dtr: octal DTR has 8 lines everywhere".to_owned()));
    let spi = board.chip.spi.as_mut().expect("on SPI");
    (spi.read_address_lines, spi.read_data_lines, spi.read_dummy_bytes) = (8, 8, 24);
    (spi.program_address_lines, spi.program_data_lines) = (8, 8);
    assert_eq!(board.check(), Ok(()));
    let mut mtd = mtd(&board);
    let status = 10 * CYCLE;
    let polled = |first: u64, then: u64, array: u64| {
        first + status + (array - first - status).div_ceil(then + status) * (then + status)
    };
    let read = 2 * CYCLE + polled(6_000, 5_000, 60_000) + (1 + 13 + 1_024) * CYCLE;
    assert_eq!(mtd.read(Ns::ZERO, 0, 2_048).expect("a page"), Ns(read));
    let program = CYCLE + (1 + 1 + 1_056) * CYCLE + 2 * CYCLE;
    let program = program + polled(75_000, 15_000, 250_000);
    let causes = Causes::of(Cause::Data, 2_048);
    assert_eq!(mtd.write_for(Ns::ZERO, 0, 2_048, &causes).expect("a page"), Ns(program));
    let erase = 3 * CYCLE + polled(250_000, 50_000, 2_000_000);
    assert_eq!(mtd.erase(Ns::ZERO, 0).expect("a block"), Ns(erase));
    let ecc_off = 3 * CYCLE;
    assert_eq!(mtd.mark_bad(Ns::ZERO, 3).expect("marked"), Ns(CYCLE + ecc_off + program));
}

#[test]
fn only_spi_nand_corrects_by_itself() {
    let mut raw = board();
    raw.chip.spi = None;
    assert_eq!(
        raw.check(),
        Err("ecc.kind: only SPI-NAND, which has a table [spi], corrects on-die".to_owned())
    );
    let mut outside = board();
    outside.ecc.kind = EccKind::HardwarePage;
    assert!(outside.check().is_err_and(|why| why.starts_with("ecc.kind: SPI-NAND")));
}

/// What the driver takes 1 to 8 corrected bits for, from the functions of Linux 6.12.
#[test]
fn each_maker_tells_corrected_bits_in_its_own_way() {
    let told = |status: EccStatus| (1..=8).map(|bits| status.told(bits, 8)).collect::<Vec<_>>();
    assert_eq!(told(EccStatus::Core), [8; 8]);
    for status in [EccStatus::W25n02kv, EccStatus::Macronix, EccStatus::Xt26g0xa] {
        assert_eq!(told(status), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
    assert_eq!(told(EccStatus::Micron8), [3, 3, 3, 6, 6, 6, 8, 8]);
    assert_eq!(told(EccStatus::Gd5fxgq4xa), [7, 7, 7, 7, 7, 7, 7, 8]);
    assert_eq!(told(EccStatus::Gd5fxgq4uexxg), [4, 4, 4, 4, 5, 6, 7, 8]);
    assert_eq!(told(EccStatus::Gd5fxgq4ufxxg), [3, 3, 3, 4, 5, 6, 7, 8]);
}

/// SPINAND_GET_FEATURE_OP, 24 cycles, tells a corrected page of Winbond's. A lost page is one
/// failure.
#[test]
fn a_page_is_judged_once_whatever_is_wanted_of_it() {
    let mut board = board();
    board.ecc.strength_bits = 4;
    let whole = ROW + READ_POLLED + (8 + 8 + 2_048 * 2) * CYCLE;
    for (status, bits, told, asked) in [
        (EccStatus::Core, 1, 4, 0),
        (EccStatus::W25n02kv, 3, 3, STATUS),
        (EccStatus::Gd5fxgq5xexxg, 4, 4, STATUS),
    ] {
        board.chip.spi.as_mut().expect("a bus").ecc_status = status;
        let (mut mtd, read) = read_with_flips(&board, bits);
        assert_eq!(read, Ok(Ns(whole + asked)), "{status:?}");
        assert_eq!((mtd.ecc_stats().corrected, mtd.ecc_stats().failed), (told, 0));
        assert!(mtd.read(Ns::ZERO, 4_096, 68).is_ok());
        assert_eq!(mtd.ecc_stats().corrected, 2 * told);
    }
    let (mtd, read) = read_with_flips(&board, 5);
    assert_eq!(read.expect_err("lost").fault, Fault::Uncorrectable);
    assert_eq!((mtd.ecc_stats().corrected, mtd.ecc_stats().failed), (0, 1));
}

/// A chip that gets bits of every page wrong, and a read of its first page.
fn read_with_flips(board: &BoardProfile, bits: u32) -> (Mtd<Driven<Faulty<Chip>>>, Done) {
    let faults = Faults { bit_flip_ppm: 1_000_000, bits_flipped: bits, ..Faults::default() };
    let flash = Faulty::new(Chip::new(board.chip), faults, board.ecc.step_bytes);
    let mut mtd = Mtd::with_driver(Driven::new(flash, board), board);
    mtd.flash_mut().begin_faults(Ns::ZERO);
    let read = mtd.read(Ns::ZERO, 0, 2_048);
    (mtd, read)
}

/// 60 us after the command the 125th status of 480 ns ends: spinand_wait of 5.10.
#[test]
fn before_5_15_the_status_is_read_again_and_again() {
    let mut board = board();
    board.chip.spi.as_mut().expect("a bus").polls_sleep = false;
    let polled = 60_000_u64.div_ceil(STATUS) * STATUS;
    let whole = ROW + polled + (8 + 8 + 2_048 * 2) * CYCLE;
    assert_eq!(mtd(&board).read(Ns::ZERO, 0, 2_048).expect("a page"), Ns(whole));
    assert_eq!(polled, 125 * 480);
}
