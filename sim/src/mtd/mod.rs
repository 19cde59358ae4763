//! The MTD layer over one partition of a chip.
//!
//! Mirrors drivers/mtd/mtdcore.c and mtdpart.c of Linux 6.1 and the part of a NAND driver that
//! walks over pages. What a page takes is the driver's ([`NandDriver`]): nand_base.rs drives raw
//! NAND, spinor.rs SPI-NOR. The driver builds its bad block table from the marks when it is loaded
//! (nand_create_bbt) and keeps it in memory (nand_bbt.c). Left out: a bad block table on flash.
//!
//! Everything is synchronous: a call returns the time at which it is over.
//!
//! Invariants:
//! 1. Offsets are within the partition; a write starts and ends on a sub-page.
//! 2. Every programmed byte has a cause.

mod cache_reads;
mod char;
mod driven;
mod driver;
mod nand_base;
mod partition;
mod power;
mod spinand;
mod spinor;

pub use self::char::{Access, MtdChar};
pub use driven::Driven;
pub use driver::{Judged, MtdInfo, NandDriver};
pub use nand_base::RawNand;
pub(crate) use partition::PARTITION;
pub use partition::{Device, Partition};
pub use power::TornAt;
pub use spinand::SpiNand;
pub use spinor::SpiNor;

use crate::causes::{Cause, Causes};
use crate::compress::work::{Packing, Priced};
use crate::flash::{Counts, Done, Failed, Fault, Flash, Span};
use crate::profile::{
    BoardProfile, ChipProfile, EccKind, EccProfile, PartitionProfile, SoftwareCosts,
};
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};
use crate::waits::{Meter, Wait, Waits};

/// ECC statistics (`struct mtd_ecc_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EccStats {
    /// Corrected bits.
    pub corrected: u64,
    /// Steps with more wrong bits than ECC corrects.
    pub failed: u64,
}

/// One partition of one chip, and what drives it.
#[derive(Clone, Debug)]
pub struct Mtd<D> {
    driver: D,
    info: MtdInfo,
    /// See [`Mtd::can_lose_power`].
    can_lose_power: bool,
    causes: Causes,
    /// How often a compressor without prices on this board ran, and which one was last.
    unpriced: (u64, Option<Packing>),
    /// See [`Mtd::time`].
    time: Ns,
    /// What the current call waits for.
    meter: Meter,
    /// The bad block table.
    bad: Vec<bool>,
}

impl<F: Flash> Mtd<RawNand<F>> {
    /// The partition of `board` on `flash`, which is raw NAND.
    pub fn new(flash: F, board: &BoardProfile) -> Mtd<RawNand<F>> {
        Mtd::with_driver(RawNand::new(flash, board), board)
    }
}

impl<D: NandDriver> Mtd<D> {
    /// The partition of `board` on the chip of a driver.
    pub fn with_driver(driver: D, board: &BoardProfile) -> Mtd<D> {
        let first = board.partition.first_block;
        let is_bad = |block| driver.flash().block(BlockNo(first + block)).is_factory_bad;
        Mtd {
            info: MtdInfo::new(board),
            can_lose_power: false,
            causes: Causes::default(),
            unpriced: (0, None),
            time: Ns::ZERO,
            meter: Meter::default(),
            bad: (0..board.partition.blocks).map(is_bad).collect(),
            driver,
        }
    }

    /// The chip below.
    #[inline]
    pub fn flash(&self) -> &D::Flash {
        self.driver.flash()
    }

    /// The chip below, to be changed by the laboratory.
    pub fn flash_mut(&mut self) -> &mut D::Flash {
        self.driver.flash_mut()
    }

    /// How long calls into the driver have taken so far, the chip's time included. Calls that
    /// failed are left out.
    pub fn time(&self) -> Ns {
        self.time
    }

    /// A call from `began` on, which is over.
    #[inline]
    fn took(&mut self, began: Ns, over: Ns) -> Ns {
        self.time += over - began;
        over
    }

    /// A call whose waits are recorded begins.
    pub fn begin_waits(&mut self, now: Ns) {
        let busy = self.counts().busy;
        self.meter.begin(now, busy);
    }

    /// It is over; returns what it waited for.
    pub fn end_waits(&mut self, now: Ns) -> Waits {
        let busy = self.counts().busy;
        self.meter.end(now, busy)
    }

    /// Whether the current call's waits are recorded.
    #[inline]
    pub fn records_waits(&self) -> bool {
        self.meter.is_on()
    }

    /// Work for another cause begins, or the one before it continues; returns the cause before.
    #[inline]
    pub fn enter(&mut self, now: Ns, wait: Wait) -> Wait {
        if !self.meter.is_on() {
            return Wait::Call;
        }
        let busy = self.counts().busy;
        self.meter.enter(now, busy, wait)
    }

    /// Sets the task that makes the next calls.
    #[inline]
    pub fn set_task(&mut self, task: Task) {
        self.info.task = task;
    }

    /// The processor costs of this board.
    pub fn costs(&self) -> &SoftwareCosts {
        &self.info.costs
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
        self.flash().counts()
    }

    /// Page size (`mtd->writesize`).
    #[inline]
    pub fn page_bytes(&self) -> u32 {
        self.info.chip.page_bytes
    }

    /// The length or offset rounded down to whole pages.
    #[inline]
    pub fn whole_pages(&self, bytes: u32) -> u32 {
        bytes & !(self.info.chip.page_bytes - 1)
    }

    /// The smallest unit of a program (`mtd->writesize >> mtd->subpage_sft`).
    pub fn subpage_bytes(&self) -> u32 {
        self.driver.subpage_bytes()
    }

    /// Block size (`mtd->erasesize`).
    #[inline]
    pub fn block_bytes(&self) -> u32 {
        self.info.chip.page_bytes * self.info.chip.pages_per_block
    }

    /// Whether the chip is NOR (MTD_NORFLASH).
    pub fn is_nor(&self) -> bool {
        self.info.chip.nor.is_some()
    }

    /// Blocks in the partition.
    pub fn blocks(&self) -> u32 {
        self.info.partition.blocks
    }

    /// OOB bytes of a page.
    pub fn oob_bytes(&self) -> u32 {
        self.info.chip.oob_bytes
    }

    /// Free bytes of an OOB (`mtd->oobavail`).
    pub fn free_oob_bytes(&self) -> u32 {
        self.driver.free_oob_bytes()
    }

    /// mtd_block_isbad: looks in the table in memory, without an access to the chip.
    pub fn is_bad(&self, block: u32) -> bool {
        self.bad[block as usize]
    }

    /// Bad blocks of the partition.
    pub fn bad_blocks(&self) -> u32 {
        self.bad.iter().filter(|&&bad| bad).count() as u32
    }

    /// mtd_block_markbad: erases the block if the driver does, ignoring failure, writes the mark
    /// into the OOB of the first page, and updates the table.
    pub fn mark_bad(&mut self, now: Ns, block: u32) -> Done {
        if self.is_bad(block) {
            return Ok(now);
        }
        let mut now = now;
        if self.driver.erases_before_mark() {
            now = self.erase(now, block).unwrap_or_else(|failed| failed.at);
        }
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
        self.info.since_resched
    }

    /// The ECC statistics so far.
    pub fn ecc_stats(&self) -> EccStats {
        self.info.ecc_stats
    }

    /// Whether the last read would return -EUCLEAN: at least `mtd->bitflip_threshold` bits of a
    /// step were corrected, which is three quarters of the maximum (nand_scan_tail), or on SPI the
    /// maximum (add_mtd_device).
    pub fn is_unclean(&self) -> bool {
        let EccProfile { kind, strength_bits, .. } = self.info.ecc;
        let threshold =
            if kind == EccKind::OnDie { strength_bits } else { (strength_bits * 3).div_ceil(4) };
        self.info.bit_flips > 0 && self.info.bit_flips >= threshold
    }

    /// Whether the last read, which failed, has wrong bytes in this range.
    pub fn is_wrong(&self, offset: u64, length: u32) -> bool {
        let end = offset + u64::from(length);
        self.info.wrong.iter().any(|wrong| wrong.start < end && offset < wrong.end)
    }

    /// Partition size.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.block_bytes()) * u64::from(self.info.partition.blocks)
    }

    /// mtd_read: reads `length` bytes at `offset` of the partition, page by page.
    #[inline]
    pub fn read(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.read_pages(now, now + self.info.costs.mtd_call_ns, offset, length)
    }

    /// mtd_read of another partition of the chip, which begins at `first_block`.
    pub fn read_partition(&mut self, now: Ns, first_block: u32, offset: u64, length: u32) -> Done {
        let begin = u64::from(first_block) * u64::from(self.block_bytes()) + offset;
        let whole = PartitionProfile { first_block: 0, blocks: self.info.chip.blocks };
        let own = std::mem::replace(&mut self.info.partition, whole);
        let done = self.read(now, begin, length);
        self.info.partition = own;
        done
    }

    /// Reads the remaining pages of a call whose first pages were read before.
    #[inline]
    pub fn read_on(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.read_pages(now, now, offset, length)
    }

    /// Reads page by page from `now` on, of a call that began at `began`.
    #[inline]
    fn read_pages(&mut self, began: Ns, now: Ns, offset: u64, length: u32) -> Done {
        debug_assert!(offset + u64::from(length) <= self.size_bytes(), "read past the partition");
        self.info.since_resched = Ns::ZERO;
        let page_bytes = self.info.chip.page_bytes;
        let mut page = self.info.page_at(offset);
        let mut column = offset as u32 & (page_bytes - 1);
        let mut left = length;
        let mut now = now;
        let failed = self.info.begin_read();
        if column + length > page_bytes {
            self.driver.begin_read(&self.info, page, column, length);
        }
        let whole = self.driver.reads_across_pages();
        while left > 0 {
            let bytes = if whole { left } else { left.min(page_bytes - column) };
            self.has_power(now)?;
            let part = Span { column, length: bytes };
            now = self.driver.read(&mut self.info, now, page, part)?;
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        self.took(began, now);
        self.info.outcome(now, failed)
    }

    /// Reads the same part of so many pages.
    #[inline(always)]
    fn read_parts(&mut self, mut now: Ns, offset: u64, pages: u32, part: Span) -> Done {
        let began = now;
        now += self.info.costs.mtd_call_ns;
        let first = self.info.page_at(offset);
        for page in first.0..first.0 + pages {
            self.has_power(now)?;
            now = self.driver.read(&mut self.info, now, PageNo(page), part)?;
        }
        Ok(self.took(began, now))
    }

    /// mtd_read_oob of whole pages: data and OOB together, one read command a page.
    #[inline]
    pub fn read_with_oob(&mut self, now: Ns, offset: u64, pages: u32) -> Done {
        let failed = self.info.begin_read();
        let now = self.read_parts(now, offset, pages, self.page_with_oob())?;
        self.info.outcome(now, failed)
    }

    /// mtd_read_oob of only the OOBs of `pages`: one read command a page.
    pub fn read_oob(&mut self, now: Ns, offset: u64, pages: u32) -> Done {
        let ChipProfile { page_bytes, oob_bytes, .. } = self.info.chip;
        self.read_parts(now, offset, pages, Span { column: page_bytes, length: oob_bytes })
    }

    /// A whole page with its OOB.
    #[inline]
    fn page_with_oob(&self) -> Span {
        Span { column: 0, length: self.info.chip.page_bytes + self.info.chip.oob_bytes }
    }

    /// mtd_write of metadata.
    pub fn write(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        self.write_for(now, offset, length, &Causes::of(Cause::Metadata, length))
    }

    /// mtd_write: whole pages, or whole sub-pages of one page. `causes` are the causes of the
    /// bytes.
    pub fn write_for(&mut self, now: Ns, offset: u64, length: u32, causes: &Causes) -> Done {
        self.write_pages(now, now + self.info.costs.mtd_call_ns, offset, length, causes)
    }

    /// Writes the remaining pages of a call whose first pages were written before.
    pub fn write_on(&mut self, now: Ns, offset: u64, length: u32, causes: &Causes) -> Done {
        self.write_pages(now, now, offset, length, causes)
    }

    /// Writes page by page from `now` on, of a call that began at `began`.
    fn write_pages(
        &mut self,
        began: Ns,
        now: Ns,
        offset: u64,
        length: u32,
        causes: &Causes,
    ) -> Done {
        debug_assert_eq!(causes.total(), u64::from(length), "every byte has a cause");
        assert!(offset + u64::from(length) <= self.size_bytes(), "write past the partition");
        let ends = offset | u64::from(length);
        assert!(ends & u64::from(self.subpage_bytes() - 1) == 0, "write of part of a sub-page");
        let page_bytes = self.info.chip.page_bytes;
        let mut page = self.info.page_at(offset);
        let mut column = offset as u32 & (page_bytes - 1);
        let mut left = length;
        let mut now = now;
        while left > 0 {
            let bytes = left.min(page_bytes - column);
            now = self.program(now, page, Span { column, length: bytes })?;
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        self.causes.add(*causes);
        Ok(self.took(began, now))
    }

    #[inline]
    fn program(&mut self, now: Ns, page: PageNo, part: Span) -> Done {
        self.has_power(now)?;
        self.driver.program(&mut self.info, now, page, part)
    }

    /// mtd_write_oob of a whole page with its OOB (a YAFFS2 chunk and its tags).
    pub fn write_with_oob(&mut self, now: Ns, offset: u64, causes: Causes) -> Done {
        let page_bytes = self.info.chip.page_bytes;
        assert!(offset % u64::from(page_bytes) == 0, "write of part of a page");
        debug_assert_eq!(causes.total(), u64::from(page_bytes), "every byte has a cause");
        let (began, page) = (now, self.info.page_at(offset));
        let now = now + self.info.costs.mtd_call_ns;
        let now = self.program(now, page, self.page_with_oob())?;
        self.causes.add(causes);
        Ok(self.took(began, now))
    }

    /// mtd_write_oob of `length` bytes in the OOB of a page (a JFFS2 cleanmarker).
    pub fn write_oob(&mut self, now: Ns, offset: u64, length: u32) -> Done {
        let (began, page) = (now, self.info.page_at(offset));
        let now = now + self.info.costs.mtd_call_ns;
        let part = Span { column: self.info.chip.page_bytes, length };
        let now = self.program(now, page, part)?;
        self.causes.add(Causes::of(Cause::Metadata, length));
        Ok(self.took(began, now))
    }

    /// mtd_erase of one block of the partition.
    pub fn erase(&mut self, now: Ns, block: u32) -> Done {
        assert!(block < self.info.partition.blocks, "erase past the partition");
        let called = now + self.info.costs.mtd_call_ns;
        if self.is_bad(block) {
            // nand_erase_nand refuses a bad block.
            return Err(Failed { at: called, fault: Fault::EraseFailed });
        }
        self.has_power(now)?;
        let number = BlockNo(self.info.partition.first_block + block);
        let before = self.enter(now, Wait::Erase);
        let done = self.driver.erase(&mut self.info, called, number);
        let over = done.as_ref().map_or_else(|failed| failed.at, |&over| over);
        self.enter(over, before);
        Ok(self.took(now, done?))
    }

    /// The end of the last programmed bytes in a block of the partition.
    pub fn programmed_bytes(&self, block: u32) -> u32 {
        self.flash().block(BlockNo(self.info.partition.first_block + block)).programmed_bytes
    }

    /// The erase count of a block of the partition.
    pub fn block_erases(&self, block: u32) -> u32 {
        self.flash().block(BlockNo(self.info.partition.first_block + block)).erases
    }

    /// Drops the pages that the driver keeps in memory.
    pub fn forget_page_buffer(&mut self) {
        self.driver.forget();
    }
}
