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

/// What a chip knows of one of its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its erases so far.
    pub erases: u32,
    /// How many of its bytes, OOBs not counted, cannot be programmed any more without an erase:
    /// everything before the end of what was programmed last.
    pub programmed_bytes: u32,
    /// Whether it was marked bad by the factory.
    pub is_factory_bad: bool,
}

/// The lowest seam of the stack: a chip, or a decorator around one.
///
/// An operation takes the time and the task that issues it, and gives the time at which it is over;
/// nobody owns a clock. A decorator may fail it. What the laboratory does to a chip from outside
/// (cutting its power, recording its operations) is `run/laboratory.rs`.
///
/// # Examples
///
/// A decorator holds the flash below it. This one makes every erase 1 ms longer:
///
/// ```
/// # use sim::flash::{Block, Counts, Done, Flash, Moves, Span, WrongBits};
/// # use sim::{profile::ChipProfile, sched::Task, units::{BlockNo, Ns, PageNo}};
/// #[derive(Clone)]
/// struct SlowErase<F>(F);
///
/// impl<F: Flash> Flash for SlowErase<F> {
///     fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done {
///         self.0.erase(now, task, block).map(|over| over + Ns(1_000_000))
///     }
///     fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done {
///         self.0.read(now, task, page, moves)
///     }
///     // The other methods are passed on likewise.
/// #   fn profile(&self) -> &ChipProfile { self.0.profile() }
/// #   fn change_column(&mut self, now: Ns, length: u32) -> Ns {
/// #       self.0.change_column(now, length)
/// #   }
/// #   fn program(&mut self, now: Ns, by: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
/// #       self.0.program(now, by, page, moves, cells)
/// #   }
/// #   fn counts(&self) -> Counts { self.0.counts() }
/// #   fn block(&self, block: BlockNo) -> &Block { self.0.block(block) }
/// #   fn wrong_bits(&self) -> Option<&WrongBits> { self.0.wrong_bits() }
/// }
/// ```
pub trait Flash: Clone {
    /// Geometry and timing.
    fn profile(&self) -> &ChipProfile;
    /// Reads `page` into its register and `moves` from there into the controller.
    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done;
    /// Moves on to another column of the page that was read last, and transfers `length` bytes.
    fn change_column(&mut self, now: Ns, length: u32) -> Ns;
    /// Moves bytes to the register and programs `page`. `cells` are those that change: a driver
    /// that pads part of a page with ones moves more than it programs.
    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done;
    /// Erases a block.
    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done;
    /// Operations so far, and their time.
    fn counts(&self) -> Counts;
    /// What is known of a block.
    fn block(&self, block: BlockNo) -> &Block;
    /// What went wrong with the read before.
    fn wrong_bits(&self) -> Option<&WrongBits>;
}
