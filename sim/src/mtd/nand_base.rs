//! The driver of raw NAND, which a controller connects.
//!
//! Mirrors drivers/mtd/nand/raw/nand_base.c of Linux 6.1 (nand_scan_tail, nand_do_read_ops,
//! nand_read_subpage, nand_do_write_ops, nand_do_write_oob, nand_erase_nand) and its 2.6.37
//! ancestor drivers/mtd/nand/nand_base.c. The two do not differ in anything modelled: both keep the
//! page that was last read in part (`pagebuf`, later `pagecache`), and both leave that buffer alone
//! when they read whole pages. Since 6.4 there are sequential cache reads, too (cache_reads.rs).
//! Left out: read retry, bounce buffers of DMA controllers.
//!
//! Invariants:
//! 1. Only partial reads fill the page buffer, and none do if sub-pages can be read. It is emptied
//!    when its page is programmed, its block erased, or a part of any page written. It never holds
//!    a page with uncorrectable bits.
//! 2. A program transfers a whole page, whatever part of it is written: no driver here has
//!    `write_subpage`.

use super::cache_reads::CacheReads;
use super::{MtdInfo, NandDriver};
use crate::flash::{Done, Failed, Flash, Moves, Span, BAD_MARK_BYTES};
use crate::profile::{BoardProfile, Cells, EccKind};
use crate::units::{BlockNo, Ns, PageNo};

/// ECC bytes of a step: 3 for 1-bit Hamming over 256 bytes (mtd/nand_ecc).
const ECC_BYTES_PER_STEP: u32 = 3;

/// A page up to this size is always read whole (`page_shift > 9`).
const SMALL_PAGE_BYTES: u32 = 512;

/// A raw NAND chip and its driver.
#[derive(Clone, Debug)]
pub struct RawNand<F> {
    flash: F,
    /// The page in the page buffer, and the most bits corrected in one of its steps
    /// (`pagecache.bitflips`).
    page_buffer: Option<(PageNo, u32)>,
    /// Whether a part of a page can be read alone (NAND_HAS_SUBPAGE_READ).
    subpage_reads: bool,
    /// A controller with ECC reads and writes whole pages.
    has_controller: bool,
    /// A whole page as the driver transfers it: with the OOB if that holds the driver's ECC.
    whole_page: Moves,
    /// Processor time for an ECC step; 0 if hardware computes it.
    ecc_step_ns: Ns,
    /// The smallest unit of a program.
    subpage_bytes: u32,
    free_oob_bytes: u32,
    /// Sequential cache reads: whether the driver uses them (rawnand_late_check_supported_ops), and
    /// the present one.
    reads_cached: bool,
    cache_reads: CacheReads,
}

/// `mtd->subpage_sft`. Only software ECC with two, four, eight or sixteen steps divides a page:
/// hardware ECC has NAND_NO_SUBPAGE_WRITE, and without ECC a page is one step. Nor does a page
/// whose cells hold several bits (nand_is_slc).
fn subpage_shift(board: &BoardProfile) -> u32 {
    if board.chip.cells != Cells::Slc {
        return 0;
    }
    match (board.ecc.kind, board.chip.page_bytes / board.ecc.step_bytes) {
        (EccKind::SoftwareSubpage, 2) => 1,
        (EccKind::SoftwareSubpage, 4 | 8 | 16) => 2,
        _ => 0,
    }
}

/// ECC bytes of a page, which are in its OOB. A controller's are those of a BCH code, log2 of the
/// bits of a step each corrected bit; real controllers round up.
fn code_bytes(board: &BoardProfile) -> u32 {
    let steps = board.chip.page_bytes / board.ecc.step_bytes;
    match board.ecc.kind {
        EccKind::SoftwareSubpage => steps * ECC_BYTES_PER_STEP,
        EccKind::HardwarePage => {
            let bits = (board.ecc.step_bytes * 8).ilog2() + 1;
            steps * (board.ecc.strength_bits * bits).div_ceil(8)
        }
        EccKind::NoEcc | EccKind::OnDie => 0,
    }
}

impl<F: Flash> RawNand<F> {
    /// The driver of `board` for its chip.
    pub fn new(flash: F, board: &BoardProfile) -> RawNand<F> {
        let page_bytes = board.chip.page_bytes;
        let (oob_bytes, ecc_step_ns) = match board.ecc.kind {
            EccKind::SoftwareSubpage => (board.chip.oob_bytes, board.software.ecc_step_ns),
            EccKind::HardwarePage => (board.chip.oob_bytes, Ns::ZERO),
            // On-die ECC is SPI-NAND's, which spinand.rs drives (BoardProfile::check).
            EccKind::NoEcc | EccKind::OnDie => (0, Ns::ZERO),
        };
        RawNand {
            flash,
            page_buffer: None,
            subpage_reads: board.ecc.kind == EccKind::SoftwareSubpage
                && page_bytes > SMALL_PAGE_BYTES,
            has_controller: board.ecc.kind == EccKind::HardwarePage,
            whole_page: Moves::one(0, page_bytes).and(oob_bytes),
            ecc_step_ns,
            subpage_bytes: page_bytes >> subpage_shift(board),
            free_oob_bytes: board.chip.oob_bytes.saturating_sub(code_bytes(board) + BAD_MARK_BYTES),
            reads_cached: board.chip.cache_read_ns.is_some()
                && board.ecc.kind == EccKind::SoftwareSubpage,
            cache_reads: CacheReads::default(),
        }
    }

    /// Whether the page buffer holds a page. Its corrected bits count again.
    #[inline]
    fn is_buffered(&self, mtd: &mut MtdInfo, page: PageNo) -> bool {
        let Some((_, bits)) = self.page_buffer.filter(|&(buffered, _)| buffered == page) else {
            return false;
        };
        mtd.bit_flips = mtd.bit_flips.max(bits);
        true
    }

    /// One iteration of nand_do_read_ops. It is a function of its own, so that what reads pages
    /// with their OOB stays small (`read`).
    #[inline(never)]
    fn read_main(&mut self, mtd: &mut MtdInfo, mut now: Ns, page: PageNo, part: Span) -> Done {
        let bytes = part.length;
        let (buffered, whole) = (self.is_buffered(mtd, page), bytes == mtd.chip.page_bytes);
        if whole && !buffered {
            now = self.fetch_page(mtd, now, page, self.whole_page)?.0;
        } else if !buffered {
            now = self.read_partial(mtd, now, page, part)?;
        }
        if buffered || !whole {
            now += Ns::from_ps(u64::from(bytes), mtd.costs.nand_bounce_byte_ps);
        }
        Ok(now)
    }

    /// ecc.read_page; returns the most bits corrected in a step.
    #[inline]
    fn fetch_page(
        &mut self,
        mtd: &mut MtdInfo,
        now: Ns,
        page: PageNo,
        moves: Moves,
    ) -> core::result::Result<(Ns, u32), Failed> {
        let read = if self.cache_reads.has(page) {
            self.cache_reads.read(&mut self.flash, (now, mtd.task), page, moves)?
        } else {
            self.flash.read(now, mtd.task, page, moves)?
        };
        let read = read + mtd.costs.nand_read_ns;
        let read = read + Ns::from_ps(u64::from(moves.bytes), mtd.costs.nand_byte_ps);
        let page_bytes = mtd.chip.page_bytes;
        let bits = mtd.correct(self.flash.wrong_bits(), page, 0, mtd.steps(page_bytes));
        let over = self.software_ecc(mtd, read, page_bytes);
        mtd.since_resched = over - if self.subpage_reads { read } else { now };
        Ok((over, bits))
    }

    /// Reads a part of a page: the steps it touches, or the whole page into the page buffer.
    #[inline]
    fn read_partial(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        if self.subpage_reads {
            return self.read_subpage(mtd, now, page, part);
        }
        let failed = mtd.failed_steps();
        let (now, bits) = self.fetch_page(mtd, now, page, self.whole_page)?;
        self.page_buffer = (mtd.failed_steps() == failed).then_some((page, bits));
        Ok(now)
    }

    /// nand_read_subpage: reads the ECC steps that hold the bytes, then their ECC after a column
    /// change.
    #[inline]
    fn read_subpage(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let first = mtd.steps(part.column);
        let steps = mtd.steps(part.column + part.length - 1) - first + 1;
        let data = mtd.step_bytes(steps);
        let code = steps * ECC_BYTES_PER_STEP;
        let moves = Moves::one(mtd.step_bytes(first), data);
        let read = self.flash.read(now, mtd.task, page, moves)? + mtd.costs.nand_read_ns;
        let now = self.flash.change_column(read, code);
        mtd.correct(self.flash.wrong_bits(), page, first, steps);
        let now = now + Ns::from_ps(u64::from(data + code), mtd.costs.nand_byte_ps);
        let over = self.software_ecc(mtd, now, data);
        mtd.since_resched = over - read;
        Ok(over)
    }

    /// nand_read_oob_std: the OOB alone.
    #[inline(never)]
    fn read_oob(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo) -> Done {
        let moves = Moves::one(mtd.chip.page_bytes, mtd.chip.oob_bytes);
        let over = self.flash.read(now, mtd.task, page, moves)? + mtd.costs.nand_read_ns;
        let over = over + Ns::from_ps(u64::from(mtd.chip.oob_bytes), mtd.costs.nand_byte_ps);
        mtd.since_resched = over - now;
        Ok(over)
    }

    #[inline]
    fn software_ecc(&self, mtd: &MtdInfo, now: Ns, bytes: u32) -> Ns {
        now + self.ecc_step_ns * u64::from(mtd.steps(bytes))
    }

    /// One iteration of nand_do_write_ops: pads the page with ones around `written` and transfers
    /// it whole (nand_write_page_swecc). Padding uses the page buffer's memory (nand_get_data_buf),
    /// so the buffer loses its page.
    #[inline]
    fn program_main(
        &mut self,
        mtd: &mut MtdInfo,
        now: Ns,
        page: PageNo,
        (written, moves): (Span, Moves),
    ) -> Done {
        if written.length < mtd.chip.page_bytes {
            self.page_buffer = None;
        } else {
            self.forget_pages(page, page);
        }
        let moved = Ns::from_ps(u64::from(moves.bytes), mtd.costs.nand_byte_ps);
        let begun = now + mtd.costs.nand_program_ns + moved;
        let ready = self.software_ecc(mtd, begun, mtd.chip.page_bytes);
        let over = self.flash.program(ready, mtd.task, page, moves, written)?;
        mtd.since_resched = if self.has_controller { over - now } else { Ns::ZERO };
        Ok(over)
    }

    /// nand_write_oob_std: transfers the whole OOB, padded with ones.
    fn program_oob(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, written: Span) -> Done {
        self.forget_pages(page, page);
        mtd.since_resched = Ns::ZERO;
        let moves = Moves::one(mtd.chip.page_bytes, mtd.chip.oob_bytes);
        self.flash.program(now + mtd.costs.nand_program_ns, mtd.task, page, moves, written)
    }

    fn forget_pages(&mut self, first: PageNo, last: PageNo) {
        if self.page_buffer.is_some_and(|(page, _)| first <= page && page <= last) {
            self.page_buffer = None;
        }
    }
}

impl<F: Flash> NandDriver for RawNand<F> {
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
        self.subpage_bytes
    }

    fn free_oob_bytes(&self) -> u32 {
        self.free_oob_bytes
    }

    fn forget(&mut self) {
        self.page_buffer = None;
        self.cache_reads = CacheReads::default();
    }

    fn begin_read(&mut self, mtd: &MtdInfo, page: PageNo, column: u32, length: u32) {
        if self.reads_cached {
            self.cache_reads.begin(&mtd.chip, page, column, length);
        }
    }

    #[inline(always)]
    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let page_bytes = mtd.chip.page_bytes;
        if part.column + part.length <= page_bytes {
            return self.read_main(mtd, now, page, part);
        }
        if part.column >= page_bytes {
            return self.read_oob(mtd, now, page);
        }
        // Data and OOB together neither use nor fill the page buffer.
        let moves = Moves::one(0, page_bytes).and(mtd.chip.oob_bytes);
        Ok(self.fetch_page(mtd, now, page, moves)?.0)
    }

    #[inline]
    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let page_bytes = mtd.chip.page_bytes;
        if part.column + part.length <= page_bytes {
            return self.program_main(mtd, now, page, (part, self.whole_page));
        }
        if part.column >= page_bytes {
            return self.program_oob(mtd, now, page, part);
        }
        let moves = Moves::one(0, page_bytes).and(mtd.chip.oob_bytes);
        let written = Span { column: 0, length: page_bytes };
        self.program_main(mtd, now, page, (written, moves))
    }

    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
        mtd.since_resched = Ns::ZERO;
        let pages = mtd.chip.pages_per_block;
        self.forget_pages(PageNo(block.0 * pages), PageNo(block.0 * pages + pages - 1));
        self.flash.erase(now + mtd.costs.nand_erase_ns, mtd.task, block)
    }
}
