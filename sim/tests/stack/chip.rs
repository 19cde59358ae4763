//! The chip keeps the rules of NAND and the arithmetic of its datasheet.

use crate::support;
use sim::flash::{Chip, Flash, Moves, Span};
use sim::sched::Task;
use sim::units::{BlockNo, Ns, PageNo};

const PAGE: u32 = 2048;
const WHOLE: Moves = Moves::one(0, PAGE).and(64);
const CELLS: Span = Span { column: 0, length: PAGE };
const HEADER: Span = Span { column: 512, length: 512 };

#[test]
fn a_page_read_takes_the_datasheets_130_us_on_the_omap3evm() {
    let mut chip = Chip::new(support::board("omap3evm").chip);
    assert_eq!(chip.read(Ns::ZERO, Task::Program, PageNo(0), WHOLE).unwrap(), Ns(130_000));
}

#[test]
fn part_of_a_page_pays_its_share_of_the_bus_on_a_real_chip_and_a_whole_page_on_nandsim() {
    let mut real = Chip::new(support::board("omap3evm").chip);
    assert_eq!(
        real.read(Ns::ZERO, Task::Program, PageNo(0), Moves::one(0, (PAGE + 64) / 2)).unwrap(),
        Ns(25_000 + 52_500)
    );
    let mut nandsim = Chip::new(support::board("emulated").chip);
    assert_eq!(
        nandsim.read(Ns::ZERO, Task::Program, PageNo(0), Moves::one(0, 256)).unwrap(),
        Ns(127_000)
    );
    assert_eq!(nandsim.change_column(Ns::ZERO, 3), Ns(127_000));
}

#[test]
fn array_and_bus_time_add_up_and_erases_are_counted_by_block() {
    let mut chip = Chip::new(support::board("emulated").chip);
    let now = chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, CELLS).unwrap();
    assert_eq!(now, Ns(281_000));
    assert_eq!(chip.erase(now, Task::Program, BlockNo(0)).unwrap(), Ns(2_281_000));
    assert_eq!(chip.block(BlockNo(0)).erases, 1);
    assert_eq!(chip.block(BlockNo(1)).erases, 0);
    assert_eq!((chip.counts().programs, chip.counts().erases), (1, 1));
}

#[test]
fn the_chip_is_busy_for_as_long_as_its_operations_take() {
    for board in ["emulated", "omap3evm"] {
        let mut chip = Chip::new(support::board(board).chip);
        let mut now = chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, CELLS).unwrap();
        now = chip.read(now, Task::Program, PageNo(0), Moves::one(256, 512)).unwrap();
        now = chip.change_column(now, 6);
        now = chip.erase(now, Task::Program, BlockNo(0)).unwrap();
        assert_eq!(chip.counts().busy, now, "{board}");
    }
}

/// nand_do_write_ops pads a header with ones: the whole page is transferred, the sub-page is
/// programmed.
#[test]
fn part_of_a_page_pays_the_bus_for_what_is_moved_and_uses_up_what_is_programmed() {
    let mut chip = Chip::new(support::board("omap3evm").chip);
    let first = Span { column: 0, length: 512 };
    assert_eq!(
        chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, first).unwrap(),
        Ns(305_000)
    );
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, HEADER).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(1), WHOLE, CELLS).unwrap();
    assert_eq!(chip.counts().programs, 3);
}

#[test]
#[should_panic(
    expected = "page 0 programmed twice or out of order (byte 512 of its block, next is 1024)"
)]
fn programming_a_sub_page_twice_is_our_bug() {
    let mut chip = Chip::new(support::board("omap3evm").chip);
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, HEADER).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, HEADER).unwrap();
}

#[test]
#[should_panic(expected = "page 0 programmed twice or out of order")]
fn programming_a_page_over_a_sub_page_is_our_bug() {
    let mut chip = Chip::new(support::board("omap3evm").chip);
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, HEADER).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, CELLS).unwrap();
}

#[test]
fn an_erase_makes_a_programmed_page_free_again() {
    let mut chip = Chip::new(support::board("emulated").chip);
    chip.program(Ns::ZERO, Task::Program, PageNo(5), WHOLE, CELLS).unwrap();
    chip.erase(Ns::ZERO, Task::Program, BlockNo(0)).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(5), WHOLE, CELLS).unwrap();
}

#[test]
fn a_cleanmarker_in_the_oob_leaves_the_page_programmable() {
    let mut chip = Chip::new(support::board("emulated").chip);
    chip.program(
        Ns::ZERO,
        Task::Program,
        PageNo(0),
        Moves::one(PAGE, 64),
        Span { column: PAGE, length: 8 },
    )
    .unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(0), WHOLE, CELLS).unwrap();
}

#[test]
#[should_panic(expected = "programmed twice or out of order")]
fn programming_a_page_twice_is_our_bug() {
    let mut chip = Chip::new(support::board("emulated").chip);
    chip.program(Ns::ZERO, Task::Program, PageNo(3), WHOLE, CELLS).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(3), WHOLE, CELLS).unwrap();
}

#[test]
#[should_panic(expected = "programmed twice or out of order")]
fn programming_a_block_out_of_order_is_our_bug() {
    let mut chip = Chip::new(support::board("emulated").chip);
    chip.program(Ns::ZERO, Task::Program, PageNo(3), WHOLE, CELLS).unwrap();
    chip.program(Ns::ZERO, Task::Program, PageNo(2), WHOLE, CELLS).unwrap();
}
