//! The flash: the trait [`Flash`], the chip, and the decorators around it.
//!
//! `chip.rs` is a chip without faults. `traced.rs` records its operations, `faulty.rs` fails some
//! of them and makes bits wrong (`draws.rs`, `errors.rs`), `power_cut.rs` cuts the power in one.
//! Each decorator owns the flash below it, and the type of the stack says which of them a run has.

mod chip;
mod draws;
pub mod errors;
mod faulty;
mod power_cut;
mod traced;

pub use chip::Chip;
pub use errors::{ErrorCurve, Term};
pub use faulty::{Faults, Faulty};
pub use power_cut::PowerCut;
pub use traced::Traced;

use crate::errno::FsError;
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};

/// The size of a bad block's mark, at the start of the OOB; a large page's.
pub const BAD_MARK_BYTES: u32 = 2;

/// What three wrong bits of a step are to the kernel's software ECC.
pub(crate) const MISCORRECTED: &str = "a Hamming code that takes three wrong bits for one";

/// The kind of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Array to register, then the transfer.
    Read,
    /// Transfer, then register to array.
    Program,
    /// A whole block.
    Erase,
}

/// A range of bytes of a page: the main area first, the OOB from `page_bytes` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub column: u32,
    /// Bytes.
    pub length: u32,
}

/// The bytes that one command transfers over the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The first data transfer: the argument of the kernel's operation (nand_read_page_op,
    /// nand_prog_page_begin_op), and what a trace shows.
    pub first: Span,
    /// Bytes of all transfers of the command, including later ones: the OOB after a whole page.
    pub bytes: u32,
}

impl Moves {
    /// A single transfer.
    pub const fn one(column: u32, length: u32) -> Moves {
        Moves { first: Span { column, length }, bytes: length }
    }

    /// The same with `more` bytes transferred after it.
    pub const fn and(self, more: u32) -> Moves {
        Moves { first: self.first, bytes: self.bytes + more }
    }
}

/// How a chip operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A page has more wrong bits than its ECC corrects (-EBADMSG).
    Uncorrectable,
    /// The same, and the kernel's ECC takes them for fewer. What it makes of them is not modelled.
    Miscorrected,
    /// The status after a program reports failure (-EIO).
    ProgramFailed,
    /// The status after an erase reports failure (-EIO).
    EraseFailed,
    /// There is no power; every later operation fails, too.
    PowerLost,
}

/// A failed operation, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// When it was over.
    pub at: Ns,
    /// The failure.
    pub fault: Fault,
}

/// MTD's error for it (mtd_read, mtd_write, mtd_erase).
impl From<Failed> for FsError {
    fn from(Failed { at, fault }: Failed) -> FsError {
        match fault {
            Fault::PowerLost => FsError::PowerLost(at),
            Fault::Uncorrectable => FsError::Unreadable(at),
            Fault::Miscorrected => FsError::NotModelled(MISCORRECTED),
            Fault::ProgramFailed | Fault::EraseFailed => FsError::Io(at),
        }
    }
}

/// The operation that a power cut interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// The program of these cells of a page.
    Program(PageNo, Span),
    /// The erase of a block.
    Erase(BlockNo),
}

/// When an operation was over, or how it failed.
pub type Done = core::result::Result<Ns, Failed>;

/// The wrong bits of the page that was read last: its ECC steps with some, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBits(pub Vec<WrongStep>);

/// An ECC step with wrong bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongStep {
    /// The step.
    pub step: u32,
    /// Its wrong bits, counted from the page's first; none if they are unknown, and more than ECC
    /// corrects.
    pub bits: Option<Vec<u32>>,
}

/// Counts of a chip's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Read commands.
    pub reads: u64,
    /// Program commands.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// The array and bus time of all of them and of column changes.
    pub busy: Ns,
}

impl Counts {
    /// Programs and erases: the operations that change the chip.
    pub fn changes(&self) -> u64 {
        self.programs + self.erases
    }

    /// What was counted after these.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            erases: self.erases - before.erases,
            busy: self.busy - before.busy,
        }
    }
}

/// One flash operation, a row of the `flash` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// When it was issued.
    pub start: Ns,
    /// The kind of operation.
    pub kind: Kind,
    /// First page, or the first page of the block for an erase.
    pub page: PageNo,
    /// First byte within the page of the first transfer.
    pub column: u32,
    /// Bytes of the first transfer; for an erase the block's.
    pub length: u32,
    /// The task that issued it.
    pub task: Task,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its erase count.
    pub erases: u32,
    /// Bytes, without OOBs, that cannot be programmed before an erase: all up to the end of the
    /// last program.
    pub programmed_bytes: u32,
    /// Whether the factory marked it bad.
    pub is_factory_bad: bool,
}

/// The lowest interface of the stack: a chip, or a decorator around one.
///
/// An operation takes the time and the task that issues it, and returns the time at which it is
/// over. No implementation owns a clock. A decorator may fail an operation. What the laboratory
/// does to a chip from outside (cutting its power, recording its operations) is in
/// `run/laboratory.rs`.
///
/// # Examples
///
/// A decorator owns the flash below it. This one makes every erase 1 ms longer:
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
/// #   fn read_next(&mut self, now: Ns, by: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
/// #       self.0.read_next(now, by, page, moves, time)
/// #   }
/// #   fn profile(&self) -> &ChipProfile { self.0.profile() }
/// #   fn change_column(&mut self, now: Ns, length: u32) -> Ns {
/// #       self.0.change_column(now, length)
/// #   }
/// #   fn command(&mut self, now: Ns, time: Ns) -> Ns { self.0.command(now, time) }
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
    /// Reads `page` into its register, and transfers `moves` to the controller.
    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done;
    /// Reads `page` after the one before it, which was read last, while the array loads ahead: a
    /// sequential cache read, or a continuous read. It takes `time`, transfers included.
    fn read_next(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, time: Ns) -> Done;
    /// Changes the column in the page that was read last, and transfers `length` bytes.
    fn change_column(&mut self, now: Ns, length: u32) -> Ns;
    /// A command that touches no cell, such as one for a register; it takes `time`.
    fn command(&mut self, now: Ns, time: Ns) -> Ns;
    /// Transfers bytes to the register and programs `page`. `cells` are those that change: a driver
    /// that pads a part of a page with ones transfers more than it programs.
    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done;
    /// Erases a block.
    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done;
    /// Operations so far, and their time.
    fn counts(&self) -> Counts;
    /// The state of a block.
    fn block(&self, block: BlockNo) -> &Block;
    /// The wrong bits of the last read.
    fn wrong_bits(&self) -> Option<&WrongBits>;
}
