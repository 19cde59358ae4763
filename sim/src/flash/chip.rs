//! The chip. NAND: blocks of pages that are read, programmed once and in order, and erased whole.
//! NOR: any bytes are read; those of a page are programmed, in any order and again.
//!
//! Mirrors a datasheet, not code. Array time (cell to register and back) and bus time (register to
//! controller) are separate; an operation's time is its profile's (`ChipProfile::read_ns`). The
//! chip stores no data, because contents follow from the operations.
//! It keeps what the rules of NAND need: of each block the next programmable page and the erase
//! count. How long the array loads ahead is the driver's to know (cache_reads.rs, spinand.rs). Left
//! out: planes, multi-plane commands, cached programs, read disturb, and faults other than
//! factory-bad blocks, whose programs and erases fail (faulty.rs adds faults).
//!
//! Invariants, of which the first three are NAND's:
//! 1. A cell of a main area is programmed at most once between two erases of its block, whatever is
//!    transferred with it.
//! 2. Cells of a block are programmed in ascending order: pages, and the sub-pages of a page.
//!    Skipped cells are lost until the erase.
//! 3. Only programming the OOB of a page (a JFFS2 cleanmarker) leaves its main area programmable. A
//!    bad block may be marked at any time.
//! 4. `Counts::busy` is the sum of the times that operations take.

use crate::flash::{
    Block, Counts, Done, Failed, Fault, Flash, Moves, Span, WrongBits, BAD_MARK_BYTES,
};
use crate::profile::{ChipProfile, Transfer};
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};
use std::collections::BTreeSet;

/// A chip without faults.
#[derive(Clone, Debug)]
pub struct Chip {
    profile: ChipProfile,
    blocks: Vec<Block>,
    /// Blocks whose next erase belongs to formatting and is not counted.
    unformatted: BTreeSet<BlockNo>,
    /// Pages of the chip, and log2 of the pages of a block, which makes a page's block a shift.
    pages: u32,
    block_shift: u32,
    counts: Counts,
}

impl Chip {
    /// A new chip, every block erased.
    pub fn new(profile: ChipProfile) -> Chip {
        let blocks = vec![Block::default(); profile.blocks as usize];
        let pages = profile.blocks * profile.pages_per_block;
        assert!(profile.pages_per_block.is_power_of_two(), "checked profiles");
        let block_shift = profile.pages_per_block.trailing_zeros();
        let (unformatted, counts) = (BTreeSet::new(), Counts::default());
        Chip { profile, blocks, unformatted, pages, block_shift, counts }
    }

    /// A new chip with factory-bad blocks.
    pub fn with_bad_blocks(profile: ChipProfile, bad: impl IntoIterator<Item = BlockNo>) -> Chip {
        let mut chip = Chip::new(profile);
        for block in bad {
            chip.blocks[block.0 as usize].is_factory_bad = true;
        }
        chip
    }

    /// Sets a block's erase count before the chip is used. If formatting erases the block next
    /// (`is_formatted`), that erase is not counted.
    pub fn set_block_erases(&mut self, block: BlockNo, erases: u32, is_formatted: bool) {
        self.blocks[block.0 as usize].erases = erases;
        if is_formatted {
            self.unformatted.insert(block);
        }
    }

    /// Adds `time` to the busy time; returns when it is over.
    #[inline]
    fn spend(&mut self, now: Ns, time: Ns) -> Ns {
        self.counts.busy += time;
        now + time
    }

    /// Whether a read may be of this span: on NOR of any that ends within the chip.
    fn is_readable(&self, page: PageNo, span: Span) -> bool {
        let end = u64::from(page.0) * u64::from(self.profile.page_bytes)
            + u64::from(span.column + span.length);
        let size = u64::from(self.pages) * u64::from(self.profile.page_bytes);
        self.in_page(span) || self.profile.nor.is_some() && end <= size
    }

    fn in_page(&self, span: Span) -> bool {
        span.column + span.length <= self.profile.page_bytes + self.profile.oob_bytes
    }
}

impl Flash for Chip {
    fn profile(&self) -> &ChipProfile {
        &self.profile
    }

    #[inline]
    fn read(&mut self, now: Ns, _task: Task, page: PageNo, moves: Moves) -> Done {
        debug_assert!(self.is_readable(page, moves.first), "read past the OOB");
        assert!(page.0 < self.pages, "read of page {} past the chip", page.0);
        self.counts.reads += 1;
        Ok(self.spend(now, self.profile.read_ns(moves.bytes)))
    }

    fn read_next(&mut self, now: Ns, _: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
        debug_assert!(self.in_page(moves.first), "read past the OOB");
        assert!(page.0 < self.pages, "read of page {} past the chip", page.0);
        self.counts.reads += 1;
        Ok(self.spend(now, time))
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        let moved = match self.profile.transfer {
            Transfer::Page => Ns::ZERO,
            Transfer::Bytes => self.profile.share(self.profile.bus_read_ns, length),
        };
        self.spend(now, self.profile.column_change_ns + moved)
    }

    fn command(&mut self, now: Ns, time: Ns) -> Ns {
        self.spend(now, time)
    }

    #[inline]
    fn program(&mut self, now: Ns, _task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        assert!(self.in_page(moves.first) && self.in_page(cells), "program past the OOB");
        let page_bytes = self.profile.page_bytes;
        let number = page.0 >> self.block_shift;
        let start = (page.0 - (number << self.block_shift)) * page_bytes;
        let main_area = cells.column < page_bytes;
        let first = if main_area { start + cells.column } else { start };
        let time = self.profile.program_ns(moves.bytes);
        let block = &mut self.blocks[number as usize];
        if block.is_factory_bad {
            self.counts.programs += 1;
            return Err(Failed { at: self.spend(now, time), fault: Fault::ProgramFailed });
        }
        let marks_bad = !main_area && cells.length <= BAD_MARK_BYTES;
        let is_nor = self.profile.nor.is_some();
        assert!(
            first >= block.programmed_bytes || marks_bad || is_nor,
            "page {} programmed twice or out of order (byte {first} of its block, next is {})",
            page.0,
            block.programmed_bytes
        );
        if main_area {
            let end = start + page_bytes.min(cells.column + cells.length);
            block.programmed_bytes = block.programmed_bytes.max(end);
        }
        self.counts.programs += 1;
        Ok(self.spend(now, time))
    }

    fn erase(&mut self, now: Ns, _task: Task, block: BlockNo) -> Done {
        let state = &mut self.blocks[block.0 as usize];
        self.counts.erases += 1;
        if state.is_factory_bad {
            let at = self.spend(now, self.profile.erase_ns());
            return Err(Failed { at, fault: Fault::EraseFailed });
        }
        state.programmed_bytes = 0;
        if !self.unformatted.remove(&block) {
            state.erases += 1;
        }
        Ok(self.spend(now, self.profile.erase_ns()))
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn block(&self, block: BlockNo) -> &Block {
        &self.blocks[block.0 as usize]
    }

    /// This chip never reads wrong bits.
    fn wrong_bits(&self) -> Option<&WrongBits> {
        None
    }
}
