//! The flash: the seam [`Flash`], the chip behind it, and the decorators that stand around a chip.
//!
//! `chip.rs` is a chip without faults. `traced.rs` records its operations, `faulty.rs` fails some
//! of them, and `power_cut.rs` cuts the power in one. Each decorator holds the flash below it, and
//! the type of the stack says which of them a run has.

mod chip;
mod faulty;
mod power_cut;
mod traced;

pub use chip::Chip;
pub use faulty::{Faults, Faulty};
pub use power_cut::PowerCut;
pub use traced::Traced;

use crate::errno::FsError;
use crate::profile::ChipProfile;
use crate::sched::Task;
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
    /// Bytes in all, those of the moves that follow under the same command included: the OOB after
    /// a whole page.
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

/// What MTD answers (mtd_read, mtd_write, mtd_erase).
impl From<Failed> for FsError {
    fn from(Failed { at, fault }: Failed) -> FsError {
        match fault {
            Fault::PowerLost => FsError::PowerLost(at),
            Fault::Uncorrectable => FsError::Unreadable(at),
            Fault::ProgramFailed | Fault::EraseFailed => FsError::Io(at),
        }
    }
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

/// Bits that came out wrong in the page that was read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBits {
    /// The ECC steps that they are in, of the page.
    pub steps: core::ops::Range<u32>,
    /// Which bits of the main area, or none where it is not known: more than ECC corrects, in every
    /// one of the steps.
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

/// One flash operation, as the `flash` table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// When it was issued.
    pub start: Ns,
    /// What it was.
    pub kind: Kind,
    /// First page, or the first page of the block for an erase.
    pub page: PageNo,
    /// First byte within the page of the first data move.
    pub column: u32,
    /// Its bytes; those of the block for an erase.
    pub length: u32,
    /// Who caused it.
    pub task: Task,
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

/// Methods of [`Flash`] that a decorator passes on to its `inner` as they are, by name. It writes
/// the others itself; one that it forgets does not compile, for the trait has no defaults.
macro_rules! pass_on {
    ($($method:ident)*) => { $( crate::flash::pass_on!(@ $method); )* };
    (@ profile) => {
        fn profile(&self) -> &crate::profile::ChipProfile { self.inner.profile() }
    };
    (@ change_column) => {
        #[inline]
        fn change_column(&mut self, now: crate::units::Ns, length: u32) -> crate::units::Ns {
            self.inner.change_column(now, length)
        }
    };
    (@ counts) => {
        fn counts(&self) -> crate::flash::Counts { self.inner.counts() }
    };
    (@ block_erases) => {
        fn block_erases(&self, block: crate::units::BlockNo) -> u32 {
            self.inner.block_erases(block)
        }
    };
    (@ set_block_erases) => {
        fn set_block_erases(&mut self, block: crate::units::BlockNo, erases: u32) {
            self.inner.set_block_erases(block, erases);
        }
    };
    (@ is_factory_bad) => {
        fn is_factory_bad(&self, block: crate::units::BlockNo) -> bool {
            self.inner.is_factory_bad(block)
        }
    };
    (@ programmed_bytes) => {
        fn programmed_bytes(&self, block: crate::units::BlockNo) -> u32 {
            self.inner.programmed_bytes(block)
        }
    };
    (@ can_lose_power) => {
        fn can_lose_power(&self) -> bool { self.inner.can_lose_power() }
    };
    (@ cut_power_in) => {
        fn cut_power_in(&mut self, changes: u64) { self.inner.cut_power_in(changes); }
    };
    (@ power_on) => {
        fn power_on(&mut self) -> Option<crate::flash::Torn> { self.inner.power_on() }
    };
    (@ wrong_bits) => {
        fn wrong_bits(&self) -> Option<&crate::flash::WrongBits> { self.inner.wrong_bits() }
    };
    (@ begin_faults) => {
        fn begin_faults(&mut self) { self.inner.begin_faults(); }
    };
    (@ set_task) => {
        fn set_task(&mut self, task: crate::sched::Task) { self.inner.set_task(task); }
    };
    (@ start_recording) => {
        fn start_recording(&mut self) { self.inner.start_recording(); }
    };
    (@ take_record) => {
        fn take_record(&mut self) -> Vec<crate::flash::FlashOp> { self.inner.take_record() }
    };
}
pub(crate) use pass_on;
