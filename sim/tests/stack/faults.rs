//! A failing chip, and how the driver handles it.

use crate::support;
use sim::flash::{Chip, Failed, Fault, Faults, Faulty, Flash, Moves, Span};
use sim::mtd::{Mtd, RawNand};
use sim::profile::BoardProfile;
use sim::sched::Task;
use sim::units::{BlockNo, Ns, PageNo};

fn board() -> BoardProfile {
    let mut board = support::board("emulated");
    board.software = support::free_software();
    board
}

fn failing(board: &BoardProfile, faults: Faults) -> Faulty<Chip> {
    let mut chip = Faulty::new(Chip::new(board.chip), faults, board.ecc.step_bytes);
    chip.begin_faults(Ns::ZERO);
    chip
}

fn program(chip: &mut Faulty<Chip>, page: u32) -> Result<Ns, Failed> {
    let bytes = chip.profile().page_bytes;
    let span = Span { column: 0, length: bytes };
    chip.program(Ns::ZERO, Task::Program, PageNo(page), Moves::one(0, bytes), span)
}

/// Which of the first operations of a kind fail with this seed and rate; the numbers are those that
/// kernel/flashbed_nand draws (splitmix64 of seed, kind and number).
#[test]
fn draws_are_those_of_the_kernel_module() {
    let faults = Faults { seed: 7, program_fail_ppm: 250_000, ..Faults::default() };
    let mut chip = failing(&board(), faults);
    let failed: Vec<u32> = (0..32).filter(|&page| program(&mut chip, page).is_err()).collect();
    assert_eq!(failed, expected(7, 2, 32));
    let faults = Faults { seed: 7, erase_fail_ppm: 250_000, ..Faults::default() };
    let mut chip = failing(&board(), faults);
    let erase = |block: &u32| chip.erase(Ns::ZERO, Task::Program, BlockNo(*block)).is_err();
    let failed: Vec<u32> = (0..32).filter(erase).collect();
    assert_eq!(failed, expected(7, 3, 32));
}

/// faults.c once more: `fbn_draw` and `fbn_hit` at a rate of a quarter.
fn expected(seed: u64, kind: u64, count: u64) -> Vec<u32> {
    fn mix(z: u64) -> u64 {
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }
    let draw = |number| mix(mix(mix(seed + 1).wrapping_add(kind + 1)).wrapping_add(number + 1));
    (0..count).filter(|&number| draw(number) >> 62 == 0).map(|number| number as u32).collect()
}

#[test]
fn chosen_operations_fail_and_are_counted() {
    let faults = Faults { program_fail: vec![2], erase_fail: vec![1], ..Faults::default() };
    let mut chip = failing(&board(), faults);
    assert!(program(&mut chip, 0).is_ok());
    let failed = program(&mut chip, 1).expect_err("the second");
    assert_eq!(failed.fault, Fault::ProgramFailed);
    assert!(program(&mut chip, 2).is_ok());
    let before = chip.counts();
    let failed = chip.erase(Ns::ZERO, Task::Program, BlockNo(0)).expect_err("the first");
    assert_eq!((failed.fault, failed.at), (Fault::EraseFailed, chip.profile().erase_array_ns));
    assert_eq!(chip.block(BlockNo(0)).erases, 0);
    assert_eq!(chip.counts().erases, before.erases + 1);
    assert!(chip.erase(Ns::ZERO, Task::Program, BlockNo(0)).is_ok());
}

#[test]
fn a_block_stands_its_endurance_and_no_more() {
    let faults = Faults { endurance_erases: 100, seed: 3, ..Faults::default() };
    let mut chip = failing(&board(), faults);
    let stood =
        (0..200).take_while(|_| chip.erase(Ns::ZERO, Task::Program, BlockNo(5)).is_ok()).count();
    assert!((90..=110).contains(&stood), "{stood}");
    assert!(chip.erase(Ns::ZERO, Task::Program, BlockNo(5)).is_err(), "once worn, always worn");
}

#[test]
fn nothing_fails_before_it_begins() {
    let board = board();
    let faults = Faults { program_fail_ppm: 1_000_000, ..Faults::default() };
    let mut chip = Faulty::new(Chip::new(board.chip), faults, board.ecc.step_bytes);
    assert!(program(&mut chip, 0).is_ok());
    chip.begin_faults(Ns::ZERO);
    assert!(program(&mut chip, 1).is_err());
}

fn flipping(board: &BoardProfile, bits: u32) -> Mtd<RawNand<Faulty<Chip>>> {
    let faults = Faults { bit_flip_ppm: 1_000_000, bits_flipped: bits, ..Faults::default() };
    Mtd::new(failing(board, faults), board)
}

#[test]
fn the_driver_corrects_what_it_can_and_says_when_that_is_near_its_limit() {
    let mut mtd = flipping(&board(), 1);
    assert!(mtd.read(Ns::ZERO, 0, 2048).is_ok());
    assert_eq!((mtd.ecc_stats().corrected, mtd.ecc_stats().failed), (1, 0));
    assert!(mtd.is_unclean(), "one bit of one");
    let mut strong = board();
    (strong.ecc.strength_bits, strong.ecc.kind) = (4, sim::profile::EccKind::HardwarePage);
    let mut mtd = flipping(&strong, 2);
    assert!(mtd.read(Ns::ZERO, 0, 2048).is_ok());
    assert_eq!(mtd.ecc_stats().corrected, 2);
    assert!(!mtd.is_unclean(), "two bits of four");
}

#[test]
fn what_cannot_be_corrected_is_said_when_all_is_read() {
    let board = board();
    let mut mtd = flipping(&board, 2);
    let failed = mtd.read(Ns::ZERO, 0, 4096).expect_err("two bits of one");
    assert_eq!(failed.fault, Fault::Uncorrectable);
    assert_eq!(mtd.ecc_stats().failed, 2);
    assert_eq!(mtd.counts().reads, 2);
}

#[test]
fn a_sub_page_without_the_wrong_bits_is_right() {
    let board = board();
    let mut wrong = 0;
    for step in 0..8 {
        let mut mtd = flipping(&board, 1);
        mtd.read(Ns::ZERO, step * 256, 256).expect("corrected, or not there");
        wrong += mtd.ecc_stats().corrected;
    }
    assert_eq!(wrong, 1, "the bits of a read are in one step of eight");
}

#[test]
fn bad_blocks_are_in_the_table_and_never_erased() {
    let mut board = board();
    board.partition.first_block = 10;
    board.partition.blocks = 20;
    let chip = Chip::with_bad_blocks(board.chip, [BlockNo(13)]);
    let mut mtd = Mtd::new(chip, &board);
    assert!(mtd.is_bad(3) && !mtd.is_bad(4));
    let failed = mtd.erase(Ns::ZERO, 3).expect_err("bad");
    assert_eq!(failed.fault, Fault::EraseFailed);
    assert_eq!(mtd.counts().erases, 0);
    mtd.write(Ns::ZERO, 4 * u64::from(mtd.block_bytes()), 2048).expect("a good one");
    mtd.mark_bad(Ns::ZERO, 4).expect("marked");
    assert_eq!((mtd.counts().erases, mtd.counts().programs, mtd.bad_blocks()), (1, 2, 2));
    assert!(mtd.is_bad(4));
}
