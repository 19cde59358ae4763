//! The NAND chip: blocks of pages that are read, programmed once and in order, and erased whole.
//!
//! Mirrors a datasheet, not code. Array time (cell to register and back) and bus time (register to
//! controller) are charged apart. The chip holds no data: contents follow from the operations, so
//! what is kept is what the rules need, the next page that may be programmed in each block and the
//! number of its erases. Left out: planes, cache and multi-plane commands, read disturb, faults (a
//! decorator's business).
//!
//! Invariants:
//! 1. A page is programmed at most once between two erases of its block.
//! 2. The pages of a block are programmed in ascending order; a page may be skipped, and is then lost until the erase.
//! 3. Only programming the OOB of a page (a JFFS2 cleanmarker) leaves its main area programmable.

use crate::profile::{ChipProfile, Transfer};
use crate::trace::{FlashOp, Task};
use crate::units::{BlockNo, Ns, PageNo};

/// What a flash operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Array to register, and the transfer that followed.
    Read,
    /// Transfer, then register to array.
    Program,
    /// A whole block.
    Erase,
}

/// How many operations a chip has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Read commands.
    pub reads: u64,
    /// Program commands.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

/// The lowest seam of the stack: a chip, or a decorator around one. Operations take the time and
/// give the time at which they are over; nobody owns a clock.
pub trait Flash: Clone {
    /// Geometry and timing.
    fn profile(&self) -> &ChipProfile;
    /// Reads `length` bytes at `column` of `page` into the controller; columns from `page_bytes` on
    /// are the OOB.
    fn read(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns;
    /// Moves on to another column of the page that was read last, and transfers `length` bytes.
    fn change_column(&mut self, now: Ns, length: u32) -> Ns;
    /// Programs `length` bytes at `column` of `page`.
    fn program(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns;
    /// Erases a block.
    fn erase(&mut self, now: Ns, block: BlockNo) -> Ns;
    /// Operations so far.
    fn counts(&self) -> Counts;
    /// Erases of one block so far.
    fn block_erases(&self, block: BlockNo) -> u32;
    /// Who causes the operations that follow; for observers.
    fn set_task(&mut self, _task: Task) {}
    /// Asks an observer to write operations down.
    fn start_recording(&mut self) {}
    /// What an observer has written down; nothing without one.
    fn take_record(&mut self) -> Vec<FlashOp> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    next_page: u32,
    erases: u32,
}

/// A chip without faults.
#[derive(Clone, Debug)]
pub struct Chip {
    profile: ChipProfile,
    blocks: Vec<Block>,
    /// Pages of the chip, so that a read need not divide to know that its page exists.
    pages: u32,
    counts: Counts,
}

impl Chip {
    /// A new chip, every block erased.
    pub fn new(profile: ChipProfile) -> Chip {
        let blocks = vec![Block::default(); profile.blocks as usize];
        let pages = profile.blocks * profile.pages_per_block;
        Chip { profile, blocks, pages, counts: Counts::default() }
    }

    fn bus_read(&self, length: u32) -> Ns {
        match self.profile.transfer {
            Transfer::Page => self.profile.bus_read_ns,
            Transfer::Bytes => self.share(self.profile.bus_read_ns, length),
        }
    }

    /// The part of a whole page's bus time that `length` bytes take.
    fn share(&self, whole: Ns, length: u32) -> Ns {
        let page = self.profile.page_bytes + self.profile.oob_bytes;
        if length == page {
            return whole;
        }
        Ns(whole.0 * u64::from(length) / u64::from(page))
    }

    fn block_of(&self, page: PageNo) -> usize {
        (page.0 / self.profile.pages_per_block) as usize
    }
}

impl Flash for Chip {
    fn profile(&self) -> &ChipProfile {
        &self.profile
    }

    #[inline]
    fn read(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns {
        debug_assert!(
            column + length <= self.profile.page_bytes + self.profile.oob_bytes,
            "read past the OOB"
        );
        assert!(page.0 < self.pages, "read of page {} past the chip", page.0);
        self.counts.reads += 1;
        now + self.profile.read_array_ns + self.bus_read(length)
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        match self.profile.transfer {
            Transfer::Page => now + self.profile.column_change_ns,
            Transfer::Bytes => {
                now + self.profile.column_change_ns + self.share(self.profile.bus_read_ns, length)
            }
        }
    }

    fn program(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns {
        assert!(
            column + length <= self.profile.page_bytes + self.profile.oob_bytes,
            "program past the OOB"
        );
        let index = self.block_of(page);
        let in_block = page.0 % self.profile.pages_per_block;
        let oob_only = column >= self.profile.page_bytes;
        let block = &mut self.blocks[index];
        assert!(
            in_block >= block.next_page,
            "page {} programmed twice or out of order (next is {})",
            page.0,
            block.next_page
        );
        if !oob_only && column + length >= self.profile.page_bytes {
            block.next_page = in_block + 1;
        }
        self.counts.programs += 1;
        let bus = match self.profile.transfer {
            Transfer::Page => self.profile.bus_program_ns,
            Transfer::Bytes => self.share(self.profile.bus_program_ns, length),
        };
        now + bus + self.profile.program_array_ns
    }

    fn erase(&mut self, now: Ns, block: BlockNo) -> Ns {
        let state = &mut self.blocks[block.0 as usize];
        state.next_page = 0;
        state.erases += 1;
        self.counts.erases += 1;
        now + self.profile.erase_array_ns
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn block_erases(&self, block: BlockNo) -> u32 {
        self.blocks[block.0 as usize].erases
    }
}
