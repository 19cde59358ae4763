//! The NAND chip: blocks of pages that are read, programmed once and in order, and erased whole.
//!
//! Mirrors a datasheet, not code. Array time (cell to register and back) and bus time (register to
//! controller) are charged apart. The chip holds no data: contents follow from the operations, so
//! what is kept is what the rules need, the next page that may be programmed in each block and the
//! number of its erases. Left out: planes, cache and multi-plane commands, read disturb, faults
//! other than blocks that are bad from the factory, whose programs and erases fail (a decorator's
//! business).
//!
//! Invariants:
//! 1. A cell of a main area is programmed at most once between two erases of its block, whatever is
//!    transferred with it.
//! 2. Cells of a block are programmed in ascending order: pages, and the sub-pages of a page. What
//!    is skipped is lost until the erase.
//! 3. Only programming the OOB of a page (a JFFS2 cleanmarker) leaves its main area programmable. A
//!    bad block may be marked at any time.
//! 4. `Counts::busy` is the sum of the times that operations take.

use crate::flash::{Block, Counts, Done, Failed, Fault, Flash, Moves, Span, WrongBits};
use crate::profile::{ChipProfile, Transfer};
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};
use std::collections::BTreeSet;

/// What marks a bad block: the first bytes of the OOB.
const BAD_MARK_BYTES: u32 = 2;

/// A chip without faults.
#[derive(Clone, Debug)]
pub struct Chip {
    profile: ChipProfile,
    blocks: Vec<Block>,
    /// Blocks whose next erase makes a file system and is not counted as theirs.
    unformatted: BTreeSet<BlockNo>,
    /// Pages of the chip, and log2 of those of a block, so that nothing has to divide to know where
    /// a page is.
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

    /// The same with blocks that were bad from the beginning.
    pub fn with_bad_blocks(profile: ChipProfile, bad: impl IntoIterator<Item = BlockNo>) -> Chip {
        let mut chip = Chip::new(profile);
        for block in bad {
            chip.blocks[block.0 as usize].is_factory_bad = true;
        }
        chip
    }

    /// Says how often a block was erased before it is used. If it `is_formatted` by its next erase,
    /// that one is left out.
    pub fn set_block_erases(&mut self, block: BlockNo, erases: u32, is_formatted: bool) {
        self.blocks[block.0 as usize].erases = erases;
        if is_formatted {
            self.unformatted.insert(block);
        }
    }

    /// The part of a whole page's bus time that `length` bytes take.
    #[inline]
    fn bus(&self, whole: Ns, length: u32) -> Ns {
        if self.profile.transfer == Transfer::Page {
            return whole;
        }
        let page = self.profile.page_bytes + self.profile.oob_bytes;
        if length == page {
            return whole;
        }
        Ns(whole.0 * u64::from(length) / u64::from(page))
    }

    /// The chip is busy for `time` from `now`.
    #[inline]
    fn spend(&mut self, now: Ns, time: Ns) -> Ns {
        self.counts.busy += time;
        now + time
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
        debug_assert!(self.in_page(moves.first), "read past the OOB");
        assert!(page.0 < self.pages, "read of page {} past the chip", page.0);
        self.counts.reads += 1;
        let bus = self.bus(self.profile.bus_read_ns, moves.bytes);
        Ok(self.spend(now, self.profile.read_array_ns + bus))
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        let moved = match self.profile.transfer {
            Transfer::Page => Ns::ZERO,
            Transfer::Bytes => self.bus(self.profile.bus_read_ns, length),
        };
        self.spend(now, self.profile.column_change_ns + moved)
    }

    fn program(&mut self, now: Ns, _task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        assert!(self.in_page(moves.first) && self.in_page(cells), "program past the OOB");
        let page_bytes = self.profile.page_bytes;
        let number = page.0 >> self.block_shift;
        let start = (page.0 - (number << self.block_shift)) * page_bytes;
        let main_area = cells.column < page_bytes;
        let first = if main_area { start + cells.column } else { start };
        let bus = self.bus(self.profile.bus_program_ns, moves.bytes);
        let time = bus + self.profile.program_array_ns;
        let block = &mut self.blocks[number as usize];
        if block.is_factory_bad {
            self.counts.programs += 1;
            return Err(Failed { at: self.spend(now, time), fault: Fault::ProgramFailed });
        }
        let marks_bad = !main_area && cells.length <= BAD_MARK_BYTES;
        assert!(
            first >= block.programmed_bytes || marks_bad,
            "page {} programmed twice or out of order (byte {first} of its block, next is {})",
            page.0,
            block.programmed_bytes
        );
        if main_area {
            block.programmed_bytes = start + page_bytes.min(cells.column + cells.length);
        }
        self.counts.programs += 1;
        Ok(self.spend(now, time))
    }

    fn erase(&mut self, now: Ns, _task: Task, block: BlockNo) -> Done {
        let state = &mut self.blocks[block.0 as usize];
        self.counts.erases += 1;
        if state.is_factory_bad {
            let at = self.spend(now, self.profile.erase_array_ns);
            return Err(Failed { at, fault: Fault::EraseFailed });
        }
        state.programmed_bytes = 0;
        if !self.unformatted.remove(&block) {
            state.erases += 1;
        }
        Ok(self.spend(now, self.profile.erase_array_ns))
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn block(&self, block: BlockNo) -> &Block {
        &self.blocks[block.0 as usize]
    }

    /// What was written is what is read.
    fn wrong_bits(&self) -> Option<&WrongBits> {
        None
    }
}
