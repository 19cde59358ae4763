//! The MTD layer and its raw NAND driver over one partition of a chip.
//!
//! Mirrors drivers/mtd/nand/raw/nand_base.c of Linux 6.1 (nand_scan_tail, nand_do_read_ops,
//! nand_read_subpage, nand_do_write_ops, nand_do_write_oob, nand_erase_nand) and its 2.6.37
//! ancestor drivers/mtd/nand/nand_base.c. The two do not differ in anything modelled: both keep the
//! page that was last read in part (`pagebuf`, later `pagecache`), and both leave that buffer alone
//! when they read whole pages. The driver builds its bad block table from the marks when it is
//! loaded (nand_create_bbt) and keeps it in memory (nand_bbt.c). Left out: read retry, a bad block
//! table on flash, bounce buffers of DMA controllers.
//!
//! Everything is synchronous: a call returns the time at which it is over.
//!
//! Invariants:
//! 1. Only partial reads fill the page buffer, and none do if sub-pages can be read. It is emptied
//!    when its page is programmed, its block erased, or a part of any page written. It never holds
//!    a page with uncorrectable bits.
//! 2. Offsets are within the partition; a write starts and ends on a sub-page.
//! 3. A program transfers a whole page, whatever part of it is written: no driver here has
//!    `write_subpage`.

mod char;
mod power;
mod time;

pub use self::char::{Access, MtdChar};
pub use power::TornAt;

use crate::causes::{Cause, Causes};
use crate::compress::work::{Packing, Priced};
use crate::flash::{Counts, Done, Failed, Fault, Flash, Moves, Span};
use crate::profile::{
    BoardProfile, ChipProfile, EccKind, EccProfile, PartitionProfile, SoftwareCosts,
};
use crate::sched::Task;
use crate::stop::Stop;
use crate::units::{BlockNo, Ns, PageNo};
use std::ops::Range;

/// ECC bytes of a step: 3 for 1-bit Hamming over 256 bytes (mtd/nand_ecc).
const ECC_BYTES_PER_STEP: u32 = 3;

/// A page up to this size is always read whole (`page_shift > 9`).
const SMALL_PAGE_BYTES: u32 = 512;

/// ECC statistics (`struct mtd_ecc_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EccStats {
    /// Corrected bits.
    pub corrected: u64,
    /// Steps with more wrong bits than ECC corrects.
    pub failed: u64,
}

/// One partition of one chip.
#[derive(Clone, Debug)]
pub struct Mtd<F> {
    flash: F,
    /// The task that calls.
    task: Task,
    /// See [`Mtd::can_lose_power`].
    can_lose_power: bool,
    chip: ChipProfile,
    ecc: EccProfile,
    partition: PartitionProfile,
    costs: SoftwareCosts,
    /// The page in the page buffer, and the most bits corrected in one of its steps
    /// (`pagecache.bitflips`).
    page_buffer: Option<(PageNo, u32)>,
    causes: Causes,
    /// How often a compressor without prices on this board ran, and which one was last.
    unpriced: (u64, Option<Packing>),
    /// Whether a part of a page can be read alone (NAND_HAS_SUBPAGE_READ).
    subpage_reads: bool,
    /// A controller with ECC reads and writes whole pages.
    has_controller: bool,
    /// A whole page as the driver transfers it: with the OOB if that holds the driver's ECC.
    whole_page: Moves,
    /// Processor time for an ECC step; 0 if hardware computes it.
    ecc_step_ns: Ns,
    /// See [`Mtd::since_resched`].
    since_resched: Ns,
    /// See [`Mtd::time`].
    time: Ns,
    /// page_shift, and the same for an ECC step. Both sizes are powers of two.
    page_shift: u32,
    step_shift: u32,
    /// The smallest unit of a program.
    subpage_bytes: u32,
    /// The bad block table.
    bad: Vec<bool>,
    ecc_stats: EccStats,
    /// The most bits corrected in a step by the last call.
    bit_flips: u32,
    /// Bytes of the partition that the last read could not correct.
    wrong: Vec<Range<u64>>,
    stop: Stop,
}

/// `mtd->subpage_sft`. Only software ECC with two, four, eight or sixteen steps divides a page:
/// hardware ECC has NAND_NO_SUBPAGE_WRITE, and without ECC a page is one step.
fn subpage_shift(board: &BoardProfile) -> u32 {
    match (board.ecc.kind, board.chip.page_bytes / board.ecc.step_bytes) {
        (EccKind::SoftwareSubpage, 2) => 1,
        (EccKind::SoftwareSubpage, 4 | 8 | 16) => 2,
        _ => 0,
    }
}

impl<F: Flash> Mtd<F> {
    /// The partition of `board` on `flash`.
    pub fn new(flash: F, board: &BoardProfile) -> Mtd<F> {
        let (page_bytes, step_bytes) = (board.chip.page_bytes, board.ecc.step_bytes);
        assert!(page_bytes.is_power_of_two() && step_bytes.is_power_of_two(), "checked profiles");
        let (oob_bytes, ecc_step_ns) = match board.ecc.kind {
            EccKind::SoftwareSubpage => (board.chip.oob_bytes, board.software.ecc_step_ns),
            EccKind::HardwarePage => (board.chip.oob_bytes, Ns::ZERO),
            EccKind::NoEcc => (0, Ns::ZERO),
        };
        Mtd {
            has_controller: board.ecc.kind == EccKind::HardwarePage,
            subpage_reads: board.ecc.kind == EccKind::SoftwareSubpage
                && page_bytes > SMALL_PAGE_BYTES,
            whole_page: Moves::one(0, page_bytes).and(oob_bytes),
            subpage_bytes: page_bytes >> subpage_shift(board),
            page_shift: page_bytes.trailing_zeros(),
            step_shift: step_bytes.trailing_zeros(),
            bad: (0..board.partition.blocks)
                .map(|block| flash.block(BlockNo(board.partition.first_block + block)))
                .map(|block| block.is_factory_bad)
                .collect(),
            ecc_stats: EccStats::default(),
            bit_flips: 0,
            wrong: Vec::new(),
            stop: Stop::default(),
            flash,
            task: Task::Program,
            can_lose_power: false,
            chip: board.chip,
            ecc: board.ecc,
            partition: board.partition,
            costs: board.software,
            page_buffer: None,
            causes: Causes::default(),
            unpriced: (0, None),
            ecc_step_ns,
            since_resched: Ns::ZERO,
            time: Ns::ZERO,
        }
    }

    /// The chip below.
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// The chip below, to be changed by the laboratory.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// Sets the task that makes the next calls.
    #[inline]
    pub fn set_task(&mut self, task: Task) {
        self.task = task;
    }

    /// The processor costs of this board.
    pub fn costs(&self) -> &SoftwareCosts {
        &self.costs
    }

    /// The time of a compressor; 0 for one without a price here, which is recorded.
    #[inline]
    pub fn charge(&mut self, priced: Priced) -> Ns {
        priced.unwrap_or_else(|packing| {
            self.unpriced = (self.unpriced.0 + 1, Some(packing));
            Ns::ZERO
        })
    }

    /// How often a price was missing, and for which compressor the last time.
    pub fn unpriced(&self) -> (u64, Option<Packing>) {
        self.unpriced
    }

    /// The bytes programmed so far, by cause.
    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// The chip's operations so far.
    pub fn counts(&self) -> Counts {
        self.flash.counts()
    }

    /// Page size (`mtd->writesize`).
    #[inline]
    pub fn page_bytes(&self) -> u32 {
        self.chip.page_bytes
    }

    /// The length or offset rounded down to whole pages.
    #[inline]
    pub fn whole_pages(&self, bytes: u32) -> u32 {
        bytes & !(self.chip.page_bytes - 1)
    }

    /// The smallest unit of a program (`mtd->writesize >> mtd->subpage_sft`).
    pub fn subpage_bytes(&self) -> u32 {
        self.subpage_bytes
    }

    /// Block size (`mtd->erasesize`).
    #[inline]
    pub fn block_bytes(&self) -> u32 {
        self.chip.page_bytes * self.chip.pages_per_block
    }

    /// Blocks in the partition.
    pub fn blocks(&self) -> u32 {
        self.partition.blocks
    }

    /// OOB bytes of a page.
    pub fn oob_bytes(&self) -> u32 {
        self.chip.oob_bytes
    }

    /// mtd_block_isbad: looks in the table in memory, without an access to the chip.
    pub fn is_bad(&self, block: u32) -> bool {
        self.bad[block as usize]
    }

    /// Bad blocks of the partition.
    pub fn bad_blocks(&self) -> u32 {
        self.bad.iter().filter(|&&bad| bad).count() as u32
    }

    /// mtd_block_markbad (nand_block_markbad_lowlevel): erases the block, ignoring failure, writes
    /// the mark into the OOB of the first page, and updates the table.
    pub fn mark_bad(&mut self, now: Ns, block: u32) -> Done {
        if self.is_bad(block) {
            return Ok(now);
        }
        let erased = self.erase(now, block);
        let now = erased.unwrap_or_else(|failed| failed.at);
        let start = u64::from(block) * u64::from(self.block_bytes());
        let marked = self.write_oob(now, start, 1);
        self.bad[block as usize] = true;
        marked
    }

    /// The time between the last cond_resched() of the last call and the call's end. Each operation
    /// of the chip begins with a lock that may sleep, so the time after the last such lock has
    /// none. After a program or an erase it is the read of the status, unless a controller writes
    /// pages by itself. After a read it is the data transfer, or the ECC bytes if the processor
    /// corrects.
    #[inline]
    pub fn since_resched(&self) -> Ns {
        self.since_resched
    }

    /// The ECC statistics so far.
    pub fn ecc_stats(&self) -> EccStats {
        self.ecc_stats
    }

    /// Whether the last read would return -EUCLEAN: at least `mtd->bitflip_threshold` bits of a
    /// step were corrected, which is three quarters of the maximum (nand_scan_tail).
    pub fn is_unclean(&self) -> bool {
        self.bit_flips > 0 && self.bit_flips >= (self.ecc.strength_bits * 3).div_ceil(4)
    }

    /// Whether the last read, which failed, has wrong bytes in this range.
    pub fn is_wrong(&self, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        self.wrong.iter().any(|wrong| wrong.start < end && offset < wrong.end)
    }

    /// Partition size.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.block_bytes()) * u64::from(self.partition.blocks)
    }

    fn page_at(&self, offset: u64) -> PageNo {
        let first = self.partition.first_block * self.chip.pages_per_block;
        PageNo(first + (offset >> self.page_shift) as u32)
    }

    /// mtd_read: reads `length` bytes at `offset` of the partition, page by page.
    #[inline]
    pub fn read(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.read_pages(now, now + self.costs.mtd_call_ns, offset, length)
    }

    /// Reads the remaining pages of a call whose first pages were read before.
    #[inline]
    pub fn read_on(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.read_pages(now, now, offset, length)
    }

    /// nand_do_read_ops from `now` on, of a call that began at `began`.
    fn read_pages(&mut self, began: Ns, now: Ns, offset: u64, length: u32) -> Done {
        debug_assert!(offset + u64::from(length) <= self.size_bytes(), "read past the partition");
        self.since_resched = Ns::ZERO;
        let page_bytes = self.chip.page_bytes;
        let mut page = self.page_at(offset);
        let mut column = offset as u32 & (page_bytes - 1);
        let mut left = length;
        let mut now = now;
        let failed = self.begin_read();
        while left > 0 {
            let bytes = left.min(page_bytes - column);
            let (buffered, whole) = (self.is_buffered(page), bytes == page_bytes);
            if whole && !buffered {
                now = self.fetch_page(now, page, self.whole_page)?.0;
            } else if !buffered {
                now = self.read_partial(now, page, column, bytes)?;
            }
            if buffered || !whole {
                now += Ns::from_ps(u64::from(bytes), self.costs.nand_bounce_byte_ps);
            }
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        self.took(began, now);
        self.outcome(now, failed)
    }

    /// Begins a read: clears the wrong bytes, and returns the failed steps so far.
    #[inline]
    fn begin_read(&mut self) -> u64 {
        self.bit_flips = 0;
        self.wrong.clear();
        self.ecc_stats.failed
    }

    /// Ends a read: -EBADMSG if steps failed since there were `failed` of them. All pages are read
    /// anyway.
    #[inline]
    fn outcome(&self, at: Ns, failed: u64) -> Done {
        if self.ecc_stats.failed == failed {
            return Ok(at);
        }
        Err(Failed { at, fault: Fault::Uncorrectable })
    }

    /// ecc.correct for steps `first..first + steps` of `page`, which was read. Returns the most
    /// bits corrected in one of them.
    #[inline]
    fn correct(&mut self, page: PageNo, first: u32, steps: u32) -> u32 {
        let Some(wrong) = self.flash.wrong_bits() else { return 0 };
        let met = wrong.steps.start.max(first)..wrong.steps.end.min(first + steps);
        if met.is_empty() || self.ecc.kind == EccKind::NoEcc {
            return 0;
        }
        let start = self.offset_of(page);
        match &wrong.bits {
            Some(bits) if bits.len() as u32 <= self.ecc.strength_bits => {
                let bits = bits.len() as u32;
                self.ecc_stats.corrected += u64::from(bits);
                self.bit_flips = self.bit_flips.max(bits);
                return bits;
            }
            Some(bits) => {
                let bytes = bits.iter().map(|&bit| start + u64::from(bit / 8));
                self.wrong.extend(bytes.map(|byte| byte..byte + 1));
            }
            None => {
                let byte = |step: u32| start + (u64::from(step) << self.step_shift);
                self.wrong.push(byte(met.start)..byte(met.end));
            }
        }
        self.ecc_stats.failed += u64::from(met.end - met.start);
        0
    }

    /// The offset of a page in the partition.
    fn offset_of(&self, page: PageNo) -> u64 {
        let first = self.partition.first_block * self.chip.pages_per_block;
        u64::from(page.0 - first) << self.page_shift
    }

    /// Whether the page buffer holds a page. Its corrected bits count again.
    #[inline]
    fn is_buffered(&mut self, page: PageNo) -> bool {
        let Some((_, bits)) = self.page_buffer.filter(|&(buffered, _)| buffered == page) else {
            return false;
        };
        self.bit_flips = self.bit_flips.max(bits);
        true
    }

    /// ecc.read_page; returns the most bits corrected in a step.
    #[inline]
    fn fetch_page(
        &mut self,
        now: Ns,
        page: PageNo,
        moves: Moves,
    ) -> core::result::Result<(Ns, u32), Failed> {
        self.has_power(now)?;
        let read = self.flash.read(now, self.task, page, moves)? + self.costs.nand_read_ns;
        let read = read + Ns::from_ps(u64::from(moves.bytes), self.costs.nand_byte_ps);
        let bits = self.correct(page, 0, self.chip.page_bytes >> self.step_shift);
        let over = self.software_ecc(read, self.chip.page_bytes);
        self.since_resched = over - if self.subpage_reads { read } else { now };
        Ok((over, bits))
    }

    /// Reads a part of a page: the steps it touches, or the whole page into the page buffer.
    #[inline]
    fn read_partial(&mut self, now: Ns, page: PageNo, column: u32, bytes: u32) -> Done {
        if self.subpage_reads {
            return self.read_subpage(now, page, column, bytes);
        }
        let failed = self.ecc_stats.failed;
        let (now, bits) = self.fetch_page(now, page, self.whole_page)?;
        self.page_buffer = (self.ecc_stats.failed == failed).then_some((page, bits));
        Ok(now)
    }

    /// nand_read_subpage: reads the ECC steps that hold the bytes, then their ECC after a column
    /// change.
    #[inline]
    fn read_subpage(&mut self, now: Ns, page: PageNo, column: u32, bytes: u32) -> Done {
        let first = column >> self.step_shift;
        let steps = ((column + bytes - 1) >> self.step_shift) - first + 1;
        let data = steps << self.step_shift;
        let code = steps * ECC_BYTES_PER_STEP;
        let column = first << self.step_shift;
        let moves = Moves::one(column, data);
        self.has_power(now)?;
        let read = self.flash.read(now, self.task, page, moves)? + self.costs.nand_read_ns;
        let now = self.flash.change_column(read, code);
        self.correct(page, first, steps);
        let now = now + Ns::from_ps(u64::from(data + code), self.costs.nand_byte_ps);
        let over = self.software_ecc(now, data);
        self.since_resched = over - read;
        Ok(over)
    }

    #[inline]
    fn software_ecc(&self, now: Ns, bytes: u32) -> Ns {
        now + self.ecc_step_ns * u64::from(bytes >> self.step_shift)
    }

    /// mtd_read_oob of whole pages: data and OOB together, one read command a page. Neither uses
    /// nor fills the page buffer.
    #[inline]
    pub fn read_with_oob(&mut self, now: Ns, offset: u64, pages: u32) -> Done {
        let began = now;
        let mut now = now + self.costs.mtd_call_ns;
        let first = self.page_at(offset);
        let failed = self.begin_read();
        for page in first.0..first.0 + pages {
            now = self.fetch_page(now, PageNo(page), self.page_with_oob())?.0;
        }
        self.took(began, now);
        self.outcome(now, failed)
    }

    /// mtd_read_oob of only the OOBs of `pages` (nand_read_oob_std): one read command a page.
    /// Neither uses nor fills the page buffer.
    pub fn read_oob(&mut self, now: Ns, offset: u64, pages: u32) -> Done {
        let began = now;
        let mut now = now + self.costs.mtd_call_ns;
        let first = self.page_at(offset);
        let moves = Moves::one(self.chip.page_bytes, self.chip.oob_bytes);
        for page in first.0..first.0 + pages {
            self.has_power(now)?;
            let resched_at = now;
            now = self.flash.read(now, self.task, PageNo(page), moves)? + self.costs.nand_read_ns;
            now += Ns::from_ps(u64::from(self.chip.oob_bytes), self.costs.nand_byte_ps);
            self.since_resched = now - resched_at;
        }
        Ok(self.took(began, now))
    }

    /// A whole page with its OOB.
    #[inline]
    fn page_with_oob(&self) -> Moves {
        Moves::one(0, self.chip.page_bytes).and(self.chip.oob_bytes)
    }

    /// mtd_write of metadata.
    pub fn write(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.write_for(now, offset, length, &Causes::of(Cause::Metadata, length))
    }

    /// mtd_write: whole pages, or whole sub-pages of one page. `causes` are the causes of the
    /// bytes.
    pub fn write_for(&mut self, now: Ns, offset: u64, length: u32, causes: &Causes) -> Done {
        debug_assert_eq!(causes.total(), u64::from(length), "every byte has a cause");
        assert!(offset + u64::from(length) <= self.size_bytes(), "write past the partition");
        let ends = offset | u64::from(length);
        assert!(ends & u64::from(self.subpage_bytes - 1) == 0, "write of part of a sub-page");
        let page_bytes = self.chip.page_bytes;
        let mut page = self.page_at(offset);
        let mut column = offset as u32 & (page_bytes - 1);
        let mut left = length;
        let began = now;
        let mut now = now + self.costs.mtd_call_ns;
        while left > 0 {
            let bytes = left.min(page_bytes - column);
            now = self.program(now, page, Span { column, length: bytes }, self.whole_page)?;
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        self.causes.add(*causes);
        Ok(self.took(began, now))
    }

    /// mtd_write_oob of a whole page with its OOB (a YAFFS2 chunk and its tags).
    pub fn write_with_oob(&mut self, now: Ns, offset: u64, causes: Causes) -> Done {
        assert!(offset % u64::from(self.chip.page_bytes) == 0, "write of part of a page");
        let whole = Span { column: 0, length: self.chip.page_bytes };
        let began = now;
        let now = now + self.costs.mtd_call_ns;
        let now = self.program(now, self.page_at(offset), whole, self.page_with_oob())?;
        debug_assert_eq!(causes.total(), u64::from(whole.length), "every byte has a cause");
        self.causes.add(causes);
        Ok(self.took(began, now))
    }

    /// mtd_write_oob of `length` bytes in the OOB of a page (a JFFS2 cleanmarker):
    /// nand_write_oob_std transfers the whole OOB, padded with ones.
    pub fn write_oob(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        let page = self.page_at(offset);
        self.forget(page, page);
        self.since_resched = Ns::ZERO;
        let began = now;
        let now = now + self.costs.mtd_call_ns + self.costs.nand_program_ns;
        let column = self.chip.page_bytes;
        let moves = Moves::one(column, self.chip.oob_bytes);
        self.has_power(now)?;
        let now = self.flash.program(now, self.task, page, moves, Span { column, length })?;
        self.causes.add(Causes::of(Cause::Metadata, length));
        Ok(self.took(began, now))
    }

    /// One iteration of nand_do_write_ops: pads the page with ones around `written` and transfers
    /// it whole (nand_write_page_swecc). Padding uses the page buffer's memory (nand_get_data_buf),
    /// so the buffer loses its page.
    #[inline]
    fn program(&mut self, now: Ns, page: PageNo, written: Span, moves: Moves) -> Done {
        if written.length < self.chip.page_bytes {
            self.page_buffer = None;
        } else {
            self.forget(page, page);
        }
        let moved = Ns::from_ps(u64::from(moves.bytes), self.costs.nand_byte_ps);
        let ready =
            self.software_ecc(now + self.costs.nand_program_ns + moved, self.chip.page_bytes);
        self.has_power(now)?;
        let over = self.flash.program(ready, self.task, page, moves, written)?;
        self.since_resched = if self.has_controller { over - now } else { Ns::ZERO };
        Ok(over)
    }

    /// mtd_erase of one block of the partition.
    pub fn erase(&mut self, now: Ns, block: u32) -> Done {
        assert!(block < self.partition.blocks, "erase past the partition");
        if self.is_bad(block) {
            // nand_erase_nand refuses a bad block.
            return Err(Failed { at: now + self.costs.mtd_call_ns, fault: Fault::EraseFailed });
        }
        self.since_resched = Ns::ZERO;
        let pages = self.chip.pages_per_block;
        let number = self.partition.first_block + block;
        self.forget(PageNo(number * pages), PageNo(number * pages + pages - 1));
        let ready = now + self.costs.mtd_call_ns + self.costs.nand_erase_ns;
        self.has_power(now)?;
        let over = self.flash.erase(ready, self.task, BlockNo(number))?;
        Ok(self.took(now, over))
    }

    /// The end of the last programmed bytes in a block of the partition.
    pub fn programmed_bytes(&self, block: u32) -> u32 {
        self.flash.block(BlockNo(self.partition.first_block + block)).programmed_bytes
    }

    /// The erase count of a block of the partition.
    pub fn block_erases(&self, block: u32) -> u32 {
        self.flash.block(BlockNo(self.partition.first_block + block)).erases
    }

    /// Empties the page buffer.
    pub fn forget_page_buffer(&mut self) {
        self.page_buffer = None;
    }

    fn forget(&mut self, first: PageNo, last: PageNo) {
        if self.page_buffer.is_some_and(|(page, _)| first <= page && page <= last) {
            self.page_buffer = None;
        }
    }
}
