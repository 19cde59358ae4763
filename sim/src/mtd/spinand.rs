//! The driver of SPI-NAND.
//!
//! Mirrors drivers/mtd/nand/spi/core.c of Linux 6.1 (spinand_read_page, spinand_write_page,
//! spinand_erase, spinand_markbad). A read loads a page into the chip's page register, polls the
//! status, and moves the whole main area into a bounce buffer, with the OOB if that is wanted too.
//! No page is kept: a page that is read in parts is read as often. A program moves the whole page
//! with its OOB. ECC is the chip's, over the main area, and judges a page once, whatever part of it
//! is wanted. What the driver hears of corrected bits is each maker's own
//! ([`EccStatus`](crate::profile::EccStatus)). How long the operations take on the bus is the
//! profile's ([`SpiBus`](crate::profile::SpiBus)).
//!
//! The table of bad blocks is complete from the start, as on raw NAND. Linux reads a block's mark
//! when a file system first asks for it: one read of an OOB a block after a boot.
//!
//! Several pages of a block are one continuous read, if kernel and chip have those: the feature is
//! set, the first page loaded, and all pages are moved whole by one operation, without their OOBs.
//! Then the driver reads the status of all of them and clears the feature.
//!
//! Left out: several dies, dirmaps that a controller cuts into pieces.
//!
//! Linux' code has the price of an operation of spi-mem times their number ([`READ_OPERATIONS`] and
//! its like), besides the prices that raw NAND has as well.
//!
//! Invariants:
//! 1. Every operation on cells begins with ECC as it needs it: off for a bad block's mark, else on.
//! 2. The smallest unit of a program is a page.

use super::{Judged, MtdInfo, NandDriver};
use crate::flash::{Done, Flash, Moves, Span, BAD_MARK_BYTES};
use crate::profile::{BoardProfile, ChipProfile, SpiBus};
use crate::units::{BlockNo, Ns, PageNo};

/// spinand_read_page: the array, the polls, the page register.
const READ_OPERATIONS: u64 = 3;
/// spinand_write_page besides spinand_write_enable_op: the page register, the array, the polls.
const PROGRAM_OPERATIONS: u64 = 3;
/// spinand_erase besides spinand_write_enable_op: the array, the polls.
const ERASE_OPERATIONS: u64 = 2;

/// An SPI-NAND chip and its driver.
#[derive(Clone, Debug)]
pub struct SpiNand<F> {
    flash: F,
    spi: SpiBus,
    /// CFG_ECC_ENABLE, as the driver last set it (`cfg_cache`).
    ecc_on: bool,
    continuous: Option<Continuous>,
}

/// A continuous read of the pages of a block (spinand_mtd_continuous_page_read).
#[derive(Clone, Copy, Debug)]
struct Continuous {
    first: PageNo,
    last: PageNo,
    /// Bytes that the caller wants.
    wanted: u32,
    /// Of its pages: see [`MtdInfo::gather`].
    judged: Judged,
}

impl<F: Flash> SpiNand<F> {
    /// The driver of `board`, whose chip has `spi`.
    pub fn new(flash: F, board: &BoardProfile) -> SpiNand<F> {
        let spi = board.chip.spi.expect("a chip on SPI");
        SpiNand { flash, spi, ecc_on: true, continuous: None }
    }

    /// spinand_ecc_enable: nothing if it is so already.
    #[inline]
    fn set_ecc(&mut self, mtd: &MtdInfo, now: Ns, on: bool) -> Ns {
        if self.ecc_on == on {
            return now;
        }
        self.ecc_on = on;
        self.flash.command(now + mtd.costs.spi_operation_ns, self.spi.set_feature_ns())
    }

    /// A page of a continuous read.
    fn read_on(
        &mut self,
        mtd: &mut MtdInfo,
        mut now: Ns,
        page: PageNo,
        (part, mut continuous): (Span, Continuous),
    ) -> Done {
        let page_bytes = mtd.chip.page_bytes;
        let moves = Moves::one(0, page_bytes);
        let operation = mtd.costs.spi_operation_ns;
        if page == continuous.first {
            now = self.flash.command(now + operation, self.spi.set_feature_ns());
            now = self.set_ecc(mtd, now, true);
            now = self.flash.read(now, mtd.task, page, moves)?;
            now += mtd.costs.nand_read_ns + operation * READ_OPERATIONS;
        } else {
            let before = page.0 - continuous.first.0;
            let of = |pages| self.spi.from_cache_ns(pages * page_bytes);
            let time = of(before + 1) - of(before);
            now = self.flash.read_next(now, mtd.task, page, moves, time)?;
        }
        let steps = mtd.steps(page_bytes);
        continuous.judged = mtd.gather(self.flash.wrong_bits(), page, steps, continuous.judged);
        now += Ns::from_ps(u64::from(page_bytes), mtd.costs.nand_byte_ps);
        now += Ns::from_ps(u64::from(part.length), mtd.costs.nand_bounce_byte_ps);
        self.continuous = (page != continuous.last).then_some(continuous);
        if page == continuous.last {
            now = self.end_continuous(mtd, now, continuous);
        }
        Ok(now)
    }

    /// The status of all pages, what tells more of their corrected bits, and the feature again.
    fn end_continuous(&mut self, mtd: &mut MtdInfo, now: Ns, read: Continuous) -> Ns {
        let operation = mtd.costs.spi_operation_ns;
        let mut now = self.flash.command(now + operation, self.spi.feature_ns());
        let most = mtd.judge(read.judged, read.wanted / mtd.chip.page_bytes);
        if let Some(ask) = self.spi.ecc_asked_ns(most) {
            now = self.flash.command(now + operation, ask);
        }
        mtd.since_resched = self.spi.set_feature_ns();
        self.flash.command(now + operation, self.spi.set_feature_ns())
    }

    #[inline]
    fn write_enable(&mut self, mtd: &MtdInfo, now: Ns) -> Ns {
        self.flash.command(now + mtd.costs.spi_operation_ns, self.spi.write_enable_ns())
    }
}

impl<F: Flash> NandDriver for SpiNand<F> {
    type Flash = F;

    #[inline]
    fn flash(&self) -> &F {
        &self.flash
    }

    #[inline]
    fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    #[inline]
    fn subpage_bytes(&self) -> u32 {
        self.flash.profile().page_bytes
    }

    fn free_oob_bytes(&self) -> u32 {
        self.spi.oob_free_bytes
    }

    fn forget(&mut self) {
        self.continuous = None;
    }

    /// spinand_use_cont_read.
    fn begin_read(&mut self, mtd: &MtdInfo, page: PageNo, column: u32, length: u32) {
        let ChipProfile { page_bytes, pages_per_block, .. } = mtd.chip;
        let last = PageNo(page.0 + (column + length - 1) / page_bytes);
        let one_block = page.0 / pages_per_block == last.0 / pages_per_block;
        self.continuous = (self.spi.continuous_reads && one_block).then_some(Continuous {
            first: page,
            last,
            wanted: length,
            judged: Judged::default(),
        });
    }

    /// spinand_markbad, unlike nand_block_markbad_lowlevel, only writes the mark.
    fn erases_before_mark(&self) -> bool {
        false
    }

    /// The methods for pages are never inlined, so that the code around raw NAND stays small.
    #[inline(never)]
    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        if let Some(continuous) = self.continuous {
            return self.read_on(mtd, now, page, (part, continuous));
        }
        let (page_bytes, oob_bytes) = (mtd.chip.page_bytes, mtd.chip.oob_bytes);
        let now = self.set_ecc(mtd, now, true);
        let moves = if part.column >= page_bytes {
            Moves::one(page_bytes, oob_bytes)
        } else if part.column + part.length > page_bytes {
            Moves::one(0, page_bytes).and(oob_bytes)
        } else {
            Moves::one(0, page_bytes)
        };
        let code = mtd.costs.nand_read_ns + mtd.costs.spi_operation_ns * READ_OPERATIONS;
        let read = self.flash.read(now, mtd.task, page, moves)? + code;
        let bits = mtd.correct(self.flash.wrong_bits(), page, 0, mtd.steps(page_bytes));
        let asks = self.spi.ecc_asked_ns(bits);
        let asked =
            asks.map_or(read, |ask| self.flash.command(read + mtd.costs.spi_operation_ns, ask));
        let moved = Ns::from_ps(u64::from(moves.bytes), mtd.costs.nand_byte_ps);
        let bounced = Ns::from_ps(u64::from(part.length), mtd.costs.nand_bounce_byte_ps);
        let last = asks.unwrap_or_else(|| self.spi.from_cache_ns(moves.bytes));
        mtd.since_resched = last + moved + bounced;
        Ok(asked + moved + bounced)
    }

    #[inline(never)]
    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let page_bytes = mtd.chip.page_bytes;
        let is_mark = part.column >= page_bytes && part.length <= BAD_MARK_BYTES;
        // spinand_markbad enables writing once more than spinand_write_page, which it calls.
        let now = if is_mark { self.write_enable(mtd, now) } else { now };
        let now = self.set_ecc(mtd, now, !is_mark);
        let now = self.write_enable(mtd, now);
        let whole = Moves::one(0, page_bytes).and(mtd.chip.oob_bytes);
        let main = part.length.min(page_bytes.saturating_sub(part.column));
        let cells = Span { length: if main > 0 { main } else { part.length }, ..part };
        let moved = Ns::from_ps(u64::from(whole.bytes), mtd.costs.nand_byte_ps);
        let code = mtd.costs.nand_program_ns + mtd.costs.spi_operation_ns * PROGRAM_OPERATIONS;
        let ready = now + code + moved;
        mtd.since_resched = self.spi.program_ends_ns(mtd.chip.program_array_ns);
        self.flash.program(ready, mtd.task, page, whole, cells)
    }

    #[inline(never)]
    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
        let code = mtd.costs.nand_erase_ns + mtd.costs.spi_operation_ns * ERASE_OPERATIONS;
        let now = self.write_enable(mtd, now + code);
        mtd.since_resched = self.spi.erase_ends_ns(mtd.chip.erase_array_ns);
        self.flash.erase(now, mtd.task, block)
    }
}
