//! The MTD layer and its raw NAND driver over one partition of a chip.
//!
//! Mirrors drivers/mtd/nand/raw/nand_base.c of Linux 6.1 (nand_do_read_ops, nand_read_subpage,
//! nand_do_write_ops, nand_erase_nand) and its 2.6.37 ancestor drivers/mtd/nand/nand_base.c, which
//! differ in nothing that is modelled: both keep the page that was last read in part (`pagebuf`,
//! later `pagecache`) and both leave it alone for whole pages. Left out: retries, bit flips, bad
//! blocks, bounce buffers of DMA controllers.
//!
//! Everything is synchronous: a call returns the time at which it is over.
//!
//! Invariants:
//! 1. The page buffer is filled by partial reads on hardware-ECC boards only, and forgotten when its page is programmed or its block erased.
//! 2. Offsets are within the partition; a write starts and ends on a page.

use crate::chip::{Counts, Flash};
use crate::profile::{
    BoardProfile, ChipProfile, EccKind, EccProfile, PartitionProfile, SoftwareCosts,
};
use crate::units::{BlockNo, Ns, PageNo};

/// Bytes of ECC per step and what is fetched of them: 3 for 1-bit Hamming over 256 bytes
/// (mtd/nand_ecc).
const ECC_BYTES_PER_STEP: u32 = 3;

/// One partition of one chip.
#[derive(Clone, Debug)]
pub struct Mtd<F> {
    flash: F,
    chip: ChipProfile,
    ecc: EccProfile,
    partition: PartitionProfile,
    costs: SoftwareCosts,
    page_buffer: Option<PageNo>,
    /// page_shift, and the same of an ECC step: pages and steps are powers of two.
    page_shift: u32,
    step_shift: u32,
}

impl<F: Flash> Mtd<F> {
    /// The partition of `board` on `flash`.
    pub fn new(flash: F, board: &BoardProfile) -> Mtd<F> {
        let (page_bytes, step_bytes) = (board.chip.page_bytes, board.ecc.step_bytes);
        assert!(page_bytes.is_power_of_two() && step_bytes.is_power_of_two(), "checked profiles");
        Mtd {
            page_shift: page_bytes.trailing_zeros(),
            step_shift: step_bytes.trailing_zeros(),
            flash,
            chip: board.chip,
            ecc: board.ecc,
            partition: board.partition,
            costs: board.software,
            page_buffer: None,
        }
    }

    /// The chip below.
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// The chip below, for an observer that wants to be told something.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// What the CPU needs on this board.
    pub fn costs(&self) -> &SoftwareCosts {
        &self.costs
    }

    /// Operations of the chip so far.
    pub fn counts(&self) -> Counts {
        self.flash.counts()
    }

    /// Page size (`mtd->writesize`).
    #[inline]
    pub fn page_bytes(&self) -> u32 {
        self.chip.page_bytes
    }

    /// Smallest unit of a program (`mtd->writesize >> mtd->subpage_sft`): a quarter of a page with
    /// software ECC over sub-pages, else a page.
    pub fn subpage_bytes(&self) -> u32 {
        match self.ecc.kind {
            EccKind::SoftwareSubpage => self.chip.page_bytes / 4,
            EccKind::HardwarePage => self.chip.page_bytes,
        }
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

    /// Partition size.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.block_bytes()) * u64::from(self.partition.blocks)
    }

    fn page_at(&self, offset: u64) -> PageNo {
        let first = self.partition.first_block * self.chip.pages_per_block;
        PageNo(first + (offset >> self.page_shift) as u32)
    }

    /// mtd_read: `length` bytes at `offset` of the partition, page by page.
    #[inline]
    pub fn read(&mut self, now: Ns, offset: u64, length: u32) -> Ns {
        debug_assert!(offset + u64::from(length) <= self.size_bytes(), "read past the partition");
        let page_bytes = self.chip.page_bytes;
        let mut page = self.page_at(offset);
        let mut column = offset as u32 & (page_bytes - 1);
        let mut left = length;
        let mut now = now + self.costs.mtd_call_ns;
        while left > 0 {
            let bytes = left.min(page_bytes - column);
            now = if bytes == page_bytes {
                self.read_page(now, page)
            } else {
                self.read_partial(now, page, column, bytes)
            };
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        now
    }

    /// ecc.read_page: main area and OOB.
    #[inline]
    fn read_page(&mut self, now: Ns, page: PageNo) -> Ns {
        if self.page_buffer == Some(page) {
            return now;
        }
        let bytes = self.chip.page_bytes + self.chip.oob_bytes;
        let now = self.flash.read(now, page, 0, bytes) + self.costs.nand_read_ns;
        self.software_ecc(
            now + Ns::from_ps(u64::from(bytes), self.costs.nand_byte_ps),
            self.chip.page_bytes,
        )
    }

    /// Part of a page: the steps it touches, or the whole page into the page buffer.
    #[inline]
    fn read_partial(&mut self, now: Ns, page: PageNo, column: u32, bytes: u32) -> Ns {
        if self.page_buffer == Some(page) {
            return now;
        }
        match self.ecc.kind {
            EccKind::HardwarePage => {
                let now = self.read_page(now, page);
                self.page_buffer = Some(page);
                now
            }
            EccKind::SoftwareSubpage => self.read_subpage(now, page, column, bytes),
        }
    }

    /// nand_read_subpage: the ECC steps that hold the bytes, then their ECC after a change of
    /// column.
    #[inline]
    fn read_subpage(&mut self, now: Ns, page: PageNo, column: u32, bytes: u32) -> Ns {
        let first = column >> self.step_shift;
        let steps = ((column + bytes - 1) >> self.step_shift) - first + 1;
        let data = steps << self.step_shift;
        let code = steps * ECC_BYTES_PER_STEP;
        let column = first << self.step_shift;
        let now = self.flash.read(now, page, column, data) + self.costs.nand_read_ns;
        let now = self.flash.change_column(now, code);
        self.software_ecc(now + Ns::from_ps(u64::from(data + code), self.costs.nand_byte_ps), data)
    }

    fn software_ecc(&self, now: Ns, bytes: u32) -> Ns {
        match self.ecc.kind {
            EccKind::HardwarePage => now,
            EccKind::SoftwareSubpage => {
                now + self.costs.ecc_step_ns * u64::from(bytes >> self.step_shift)
            }
        }
    }

    /// mtd_read_oob of whole pages: data and OOB together, one read command a page; the page buffer
    /// is neither asked nor filled.
    #[inline]
    pub fn read_with_oob(&mut self, now: Ns, offset: u64, pages: u32) -> Ns {
        let mut now = now + self.costs.mtd_call_ns;
        let first = self.page_at(offset);
        let bytes = self.chip.page_bytes + self.chip.oob_bytes;
        for page in first.0..first.0 + pages {
            now = self.flash.read(now, PageNo(page), 0, bytes) + self.costs.nand_read_ns;
            now = self.software_ecc(
                now + Ns::from_ps(u64::from(bytes), self.costs.nand_byte_ps),
                self.chip.page_bytes,
            );
        }
        now
    }

    /// mtd_write: whole pages, or whole sub-pages of one page.
    pub fn write(&mut self, now: Ns, offset: u64, length: u32) -> Ns {
        assert!(offset + u64::from(length) <= self.size_bytes(), "write past the partition");
        assert!(
            offset % u64::from(self.subpage_bytes()) == 0 && length % self.subpage_bytes() == 0,
            "write of part of a sub-page"
        );
        let page_bytes = self.chip.page_bytes;
        let mut page = self.page_at(offset);
        let mut column = (offset % u64::from(page_bytes)) as u32;
        let mut left = length;
        let mut now = now + self.costs.mtd_call_ns;
        while left > 0 {
            let bytes = left.min(page_bytes - column);
            now = self.program(now, page, column, bytes);
            left -= bytes;
            column = 0;
            page.0 += 1;
        }
        now
    }

    /// mtd_write_oob: only the OOB of a page (a JFFS2 cleanmarker).
    pub fn write_oob(&mut self, now: Ns, offset: u64, length: u32) -> Ns {
        let page = self.page_at(offset);
        self.forget(page, page);
        let now = now + self.costs.mtd_call_ns + self.costs.nand_program_ns;
        self.flash.program(now, page, self.chip.page_bytes, length)
    }

    fn program(&mut self, now: Ns, page: PageNo, column: u32, bytes: u32) -> Ns {
        self.forget(page, page);
        let moved = u64::from(self.chip.page_bytes + self.chip.oob_bytes);
        let now = now + self.costs.nand_program_ns + Ns::from_ps(moved, self.costs.nand_byte_ps);
        let now = self.software_ecc(now, self.chip.page_bytes);
        let whole = bytes == self.chip.page_bytes;
        let length = if whole { bytes + self.chip.oob_bytes } else { bytes };
        self.flash.program(now, page, column, length)
    }

    /// mtd_erase of one block of the partition.
    pub fn erase(&mut self, now: Ns, block: u32) -> Ns {
        assert!(block < self.partition.blocks, "erase past the partition");
        let pages = self.chip.pages_per_block;
        let number = self.partition.first_block + block;
        self.forget(PageNo(number * pages), PageNo(number * pages + pages - 1));
        self.flash.erase(now + self.costs.mtd_call_ns + self.costs.nand_erase_ns, BlockNo(number))
    }

    fn forget(&mut self, first: PageNo, last: PageNo) {
        if self.page_buffer.is_some_and(|page| first <= page && page <= last) {
            self.page_buffer = None;
        }
    }
}
