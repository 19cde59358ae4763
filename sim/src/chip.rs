//! The NAND chip: blocks of pages that are read, programmed once and in order, and erased whole.
//!
//! Mirrors a datasheet, not code. Array time (cell to register and back) and bus time (register to
//! controller) are charged apart. The chip holds no data: contents follow from the operations, so
//! what is kept is what the rules need, the next page that may be programmed in each block and the
//! number of its erases. Left out: planes, cache and multi-plane commands, read disturb, faults other than
//! blocks that are bad from the factory, whose programs and erases fail (a decorator's business).
//!
//! Invariants:
//! 1. A cell of a main area is programmed at most once between two erases of its block, whatever is transferred with it.
//! 2. Cells of a block are programmed in ascending order: pages, and the sub-pages of a page. What is skipped is lost until the erase.
//! 3. Only programming the OOB of a page (a JFFS2 cleanmarker) leaves its main area programmable. A bad block may be marked at any time.
//! 4. `Counts::busy` is the sum of the times that operations take.

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

/// Bytes of a page: the main area first, the OOB from `page_bytes` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub column: u32,
    /// Bytes.
    pub length: u32,
}

/// What one command moves over the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The first data move: what the kernel's operation is given (nand_read_page_op,
    /// nand_prog_page_begin_op), and what a trace shows.
    pub first: Span,
    /// Bytes in all, those of the moves that follow under the same command included: the OOB after a
    /// whole page.
    pub bytes: u32,
}

impl Moves {
    /// One data move and nothing after it.
    pub const fn one(column: u32, length: u32) -> Moves {
        Moves { first: Span { column, length }, bytes: length }
    }

    /// The same, and so many bytes after it.
    pub const fn and(self, more: u32) -> Moves {
        Moves { first: self.first, bytes: self.bytes + more }
    }
}

/// Why a chip did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More bits of a page are wrong than its ECC corrects (-EBADMSG).
    Uncorrectable,
    /// The status after a program says that it failed (-EIO).
    ProgramFailed,
    /// The status after an erase says that it failed (-EIO).
    EraseFailed,
    /// There is no power from here on: nothing else will be answered.
    PowerLost,
}

/// An operation that failed, and when that was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// When it was over.
    pub at: Ns,
    /// What went wrong.
    pub fault: Fault,
}

/// What was being done when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// The program of these cells of a page.
    Program(PageNo, Span),
    /// The erase of a block.
    Erase(BlockNo),
}

/// When an operation was over, or that it failed.
pub type Done = core::result::Result<Ns, Failed>;

/// What marks a bad block: the first bytes of the OOB.
const BAD_MARK_BYTES: u32 = 2;

/// Bits that came out wrong in the page that was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBits {
    /// The ECC steps that they are in, of the page.
    pub steps: core::ops::Range<u32>,
    /// Which bits of the main area, or none where it is not known: more than ECC corrects, in every one of the steps.
    pub bits: Option<Vec<u32>>,
}

/// What a chip has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Read commands.
    pub reads: u64,
    /// Program commands.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// How long they and the changes of column took: array and bus.
    pub busy: Ns,
}

impl Counts {
    /// Programs and erases: what leaves something on the chip.
    pub fn changes(&self) -> u64 {
        self.programs + self.erases
    }
}

/// The lowest seam of the stack: a chip, or a decorator around one. Operations take the time and
/// give the time at which they are over; nobody owns a clock. A decorator may fail them.
pub trait Flash: Clone {
    /// Geometry and timing.
    fn profile(&self) -> &ChipProfile;
    /// Reads `page` into its register and `moves` from there into the controller.
    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Done;
    /// Moves on to another column of the page that was read last, and transfers `length` bytes.
    fn change_column(&mut self, now: Ns, length: u32) -> Ns;
    /// Moves bytes to the register and programs `page`. `cells` are those that change: a driver
    /// that pads part of a page with ones moves more than it programs.
    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Done;
    /// Erases a block.
    fn erase(&mut self, now: Ns, block: BlockNo) -> Done;
    /// Operations so far, and their time.
    fn counts(&self) -> Counts;
    /// Erases of one block so far.
    fn block_erases(&self, block: BlockNo) -> u32;
    /// How many bytes of a block, OOBs not counted, cannot be programmed any more without an erase:
    /// everything before the end of what was programmed last.
    fn programmed_bytes(&self, block: BlockNo) -> u32;
    /// Whether the power can fail at all, so that it is worth remembering what bytes are on flash.
    fn can_lose_power(&self) -> bool;
    /// The power is going to fail in the `changes`th program or erase from here on.
    fn cut_power_in(&mut self, changes: u64);
    /// The power is back; what it failed in, if it did.
    fn power_on(&mut self) -> Option<Torn>;
    /// Says how often a block was erased, before it is used.
    fn set_block_erases(&mut self, block: BlockNo, erases: u32);
    /// Whether the block was marked bad by the factory.
    fn is_factory_bad(&self, block: BlockNo) -> bool;
    /// What went wrong with the read before.
    fn wrong_bits(&self) -> Option<&WrongBits>;
    /// Tells a decorator that fails operations to begin with it.
    fn begin_faults(&mut self);
    /// Who causes the operations that follow; for observers.
    fn set_task(&mut self, task: Task);
    /// Asks an observer to write operations down.
    fn start_recording(&mut self);
    /// What an observer has written down; nothing without one.
    fn take_record(&mut self) -> Vec<FlashOp>;
}

/// Methods of [`Flash`] that a decorator passes on to its `inner` as they are, by name. It writes the others itself;
/// one that it forgets does not compile, for the trait has no defaults.
macro_rules! pass_on {
    ($($method:ident)*) => { $( crate::chip::pass_on!(@ $method); )* };
    (@ profile) => {
        fn profile(&self) -> &crate::profile::ChipProfile { self.inner.profile() }
    };
    (@ change_column) => {
        #[inline]
        fn change_column(&mut self, now: crate::units::Ns, length: u32) -> crate::units::Ns { self.inner.change_column(now, length) }
    };
    (@ counts) => {
        fn counts(&self) -> crate::chip::Counts { self.inner.counts() }
    };
    (@ block_erases) => {
        fn block_erases(&self, block: crate::units::BlockNo) -> u32 { self.inner.block_erases(block) }
    };
    (@ set_block_erases) => {
        fn set_block_erases(&mut self, block: crate::units::BlockNo, erases: u32) { self.inner.set_block_erases(block, erases); }
    };
    (@ is_factory_bad) => {
        fn is_factory_bad(&self, block: crate::units::BlockNo) -> bool { self.inner.is_factory_bad(block) }
    };
    (@ programmed_bytes) => {
        fn programmed_bytes(&self, block: crate::units::BlockNo) -> u32 { self.inner.programmed_bytes(block) }
    };
    (@ can_lose_power) => {
        fn can_lose_power(&self) -> bool { self.inner.can_lose_power() }
    };
    (@ cut_power_in) => {
        fn cut_power_in(&mut self, changes: u64) { self.inner.cut_power_in(changes); }
    };
    (@ power_on) => {
        fn power_on(&mut self) -> Option<crate::chip::Torn> { self.inner.power_on() }
    };
    (@ wrong_bits) => {
        fn wrong_bits(&self) -> Option<&crate::chip::WrongBits> { self.inner.wrong_bits() }
    };
    (@ begin_faults) => {
        fn begin_faults(&mut self) { self.inner.begin_faults(); }
    };
    (@ set_task) => {
        fn set_task(&mut self, task: crate::trace::Task) { self.inner.set_task(task); }
    };
    (@ start_recording) => {
        fn start_recording(&mut self) { self.inner.start_recording(); }
    };
    (@ take_record) => {
        fn take_record(&mut self) -> Vec<crate::trace::FlashOp> { self.inner.take_record() }
    };
}
pub(crate) use pass_on;

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// First byte of the block, OOBs not counted, that may still be programmed.
    next: u32,
    erases: u32,
    factory_bad: bool,
}

/// A chip without faults.
#[derive(Clone, Debug)]
pub struct Chip {
    profile: ChipProfile,
    blocks: Vec<Block>,
    /// Pages of the chip, and log2 of those of a block, so that nothing has to divide to know where a page is.
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
        Chip { profile, blocks, pages, block_shift, counts: Counts::default() }
    }

    /// The same with blocks that were bad from the beginning.
    pub fn with_bad_blocks(profile: ChipProfile, bad: impl IntoIterator<Item = BlockNo>) -> Chip {
        let mut chip = Chip::new(profile);
        for block in bad {
            chip.blocks[block.0 as usize].factory_bad = true;
        }
        chip
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
    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Done {
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

    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Done {
        assert!(self.in_page(moves.first) && self.in_page(cells), "program past the OOB");
        let page_bytes = self.profile.page_bytes;
        let number = page.0 >> self.block_shift;
        let start = (page.0 - (number << self.block_shift)) * page_bytes;
        let main_area = cells.column < page_bytes;
        let first = if main_area { start + cells.column } else { start };
        let bus = self.bus(self.profile.bus_program_ns, moves.bytes);
        let time = bus + self.profile.program_array_ns;
        let block = &mut self.blocks[number as usize];
        if block.factory_bad {
            self.counts.programs += 1;
            return Err(Failed { at: self.spend(now, time), fault: Fault::ProgramFailed });
        }
        let marks_bad = !main_area && cells.length <= BAD_MARK_BYTES;
        assert!(
            first >= block.next || marks_bad,
            "page {} programmed twice or out of order (byte {first} of its block, next is {})",
            page.0,
            block.next
        );
        if main_area {
            block.next = start + page_bytes.min(cells.column + cells.length);
        }
        self.counts.programs += 1;
        Ok(self.spend(now, time))
    }

    fn erase(&mut self, now: Ns, block: BlockNo) -> Done {
        let state = &mut self.blocks[block.0 as usize];
        self.counts.erases += 1;
        if state.factory_bad {
            let at = self.spend(now, self.profile.erase_array_ns);
            return Err(Failed { at, fault: Fault::EraseFailed });
        }
        state.next = 0;
        state.erases += 1;
        Ok(self.spend(now, self.profile.erase_array_ns))
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn block_erases(&self, block: BlockNo) -> u32 {
        self.blocks[block.0 as usize].erases
    }

    fn can_lose_power(&self) -> bool {
        false
    }

    fn programmed_bytes(&self, block: BlockNo) -> u32 {
        self.blocks[block.0 as usize].next
    }

    fn set_block_erases(&mut self, block: BlockNo, erases: u32) {
        self.blocks[block.0 as usize].erases = erases;
    }

    fn is_factory_bad(&self, block: BlockNo) -> bool {
        self.blocks[block.0 as usize].factory_bad
    }

    /// A chip without a decorator keeps its power, reads what was written and is watched by nobody.
    fn cut_power_in(&mut self, _changes: u64) {}

    fn power_on(&mut self) -> Option<Torn> {
        None
    }

    fn wrong_bits(&self) -> Option<&WrongBits> {
        None
    }

    fn begin_faults(&mut self) {}

    fn set_task(&mut self, _task: Task) {}

    fn start_recording(&mut self) {}

    fn take_record(&mut self) -> Vec<FlashOp> {
        Vec::new()
    }
}
