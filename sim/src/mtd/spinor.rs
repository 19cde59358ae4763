//! The driver of SPI-NOR.
//!
//! Mirrors drivers/mtd/spi-nor/core.c of Linux 6.1 (spi_nor_read, spi_nor_write, spi_nor_erase). A
//! read is one command of any length. A write is cut at the ends of pages; each program is preceded
//! by a write enable and followed by polls of the status. After an erase writing is disabled again.
//! How long the operations take on the bus is the profile's ([`NorBus`](crate::profile::NorBus)).
//!
//! Linux' code has the price of an operation of spi-mem times their number, besides the prices that
//! NAND has as well: a read, a program and an erase.
//!
//! Left out: erases of other sizes than a block, controllers that limit the length of a read, and
//! everything about bad blocks, of which NOR has none.
//!
//! Invariant: nothing of the chip's content is kept.

use super::{MtdInfo, NandDriver};
use crate::flash::{Done, Flash, Moves, Span};
use crate::profile::{BoardProfile, NorBus};
use crate::units::{BlockNo, Ns, PageNo};

/// spi_nor_write besides spi_nor_write_enable, or an erase of a sector: the command, the polls.
const CHANGE_OPERATIONS: u64 = 2;

/// An SPI-NOR chip and its driver.
#[derive(Clone, Debug)]
pub struct SpiNor<F> {
    flash: F,
    nor: NorBus,
}

impl<F: Flash> SpiNor<F> {
    /// The driver of `board`, whose chip has `nor`.
    pub fn new(flash: F, board: &BoardProfile) -> SpiNor<F> {
        let nor = board.chip.nor.expect("a chip of SPI-NOR");
        SpiNor { flash, nor }
    }

    /// spi_nor_write_enable, spi_nor_write_disable.
    fn set_writes(&mut self, mtd: &MtdInfo, now: Ns) -> Ns {
        self.flash.command(now + mtd.costs.spi_operation_ns, self.nor.opcode_ns())
    }
}

impl<F: Flash> NandDriver for SpiNor<F> {
    type Flash = F;

    #[inline]
    fn flash(&self) -> &F {
        &self.flash
    }

    #[inline]
    fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    fn subpage_bytes(&self) -> u32 {
        1
    }

    fn free_oob_bytes(&self) -> u32 {
        0
    }

    fn forget(&mut self) {}

    fn reads_across_pages(&self) -> bool {
        true
    }

    #[inline(never)]
    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let moves = Moves::one(part.column, part.length);
        let read = self.flash.read(now, mtd.task, page, moves)?;
        let moved = Ns::from_ps(u64::from(part.length), mtd.costs.nand_byte_ps);
        mtd.since_resched = self.nor.read_ns(part.length) + moved;
        Ok(read + mtd.costs.nand_read_ns + mtd.costs.spi_operation_ns + moved)
    }

    #[inline(never)]
    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let now = self.set_writes(mtd, now);
        let moved = Ns::from_ps(u64::from(part.length), mtd.costs.nand_byte_ps);
        let code = mtd.costs.nand_program_ns + mtd.costs.spi_operation_ns * CHANGE_OPERATIONS;
        mtd.since_resched = self.nor.program_polled_ns(mtd.chip.program_array_ns, part.length);
        let moves = Moves::one(part.column, part.length);
        self.flash.program(now + code + moved, mtd.task, page, moves, part)
    }

    #[inline(never)]
    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
        let code = mtd.costs.nand_erase_ns + mtd.costs.spi_operation_ns * CHANGE_OPERATIONS;
        let now = self.set_writes(mtd, now + code);
        let erased = self.flash.erase(now, mtd.task, block)?;
        mtd.since_resched = self.nor.opcode_ns();
        Ok(self.set_writes(mtd, erased))
    }
}
