//! A decorator that writes down every flash operation of the chip it is put around.
//!
//! A row has the first data move of its command, as a trace of the kernel's raw NAND operations has:
//! a whole page is `page_bytes` at column 0, whether its OOB follows or not.

use crate::chip::{pass_on, Done, Flash, Kind, Moves, Span};
use crate::units::{BlockNo, Ns, PageNo};

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

/// Who issues flash operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// The program, within a system call.
    #[default]
    Program,
    /// The kernel's threads that have no name of their own here: the flusher, workqueues.
    Background,
    /// UBI's thread.
    UbiThread,
    /// UBIFS's thread.
    UbifsThread,
    /// JFFS2's collector.
    Jffs2Thread,
    /// YAFFS2's background thread.
    Yaffs2Thread,
    /// RCU's thread, which never sees the flash.
    RcuThread,
    /// A worker that looks how fast pages were written (wb_update_bandwidth_workfn), which never sees it either.
    BandwidthWorker,
}

/// How many there are.
pub const TASKS: usize = 8;

/// Names by `Task as usize`.
pub const TASK_NAMES: [&str; TASKS] = [
    "program",
    "background",
    "ubi_bgt0d",
    "ubifs_bgt0_0",
    "jffs2_gcd",
    "yaffs-bg-0",
    "rcu_sched",
    "kworker",
];

impl Task {
    /// All of them, in order.
    pub const ALL: [Task; TASKS] = [
        Task::Program,
        Task::Background,
        Task::UbiThread,
        Task::UbifsThread,
        Task::Jffs2Thread,
        Task::Yaffs2Thread,
        Task::RcuThread,
        Task::BandwidthWorker,
    ];
}

/// Some of the tasks, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSet(u8);

impl TaskSet {
    /// Whether a task is one of them.
    #[inline]
    pub fn contains(self, task: Task) -> bool {
        self.0 >> task as u32 & 1 == 1
    }

    /// Whether there are two or more.
    #[inline]
    pub fn has_several(self) -> bool {
        self.0 & self.0.wrapping_sub(1) != 0
    }

    /// Puts a task in.
    #[inline]
    pub fn insert(&mut self, task: Task) {
        self.0 |= 1 << task as u32;
    }

    /// Takes a task out.
    #[inline]
    pub fn remove(&mut self, task: Task) {
        self.0 &= !(1 << task as u32);
    }

    /// They, in the order of `Task::ALL`.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Task> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let first = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            Task::ALL.get(first).copied()
        })
    }
}

/// Records while it is told to.
#[derive(Clone, Debug)]
pub struct Traced<F> {
    inner: F,
    task: Task,
    /// The operations recorded since `start`.
    record: Option<Vec<FlashOp>>,
}

impl<F: Flash> Traced<F> {
    /// Around `inner`, not recording yet.
    pub fn new(inner: F) -> Traced<F> {
        Traced { inner, task: Task::default(), record: None }
    }

    fn note(&mut self, start: Ns, kind: Kind, page: PageNo, span: Span) {
        let task = self.task;
        let Span { column, length } = span;
        if let Some(record) = &mut self.record {
            record.push(FlashOp { start, kind, page, column, length, task });
        }
    }
}

impl<F: Flash> Flash for Traced<F> {
    pass_on! {
        profile change_column counts block_erases set_block_erases is_factory_bad
        programmed_bytes can_lose_power cut_power_in power_on wrong_bits begin_faults
    }

    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Done {
        self.note(now, Kind::Read, page, moves.first);
        self.inner.read(now, page, moves)
    }

    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.note(now, Kind::Program, page, moves.first);
        self.inner.program(now, page, moves, cells)
    }

    fn erase(&mut self, now: Ns, block: BlockNo) -> Done {
        let pages = self.profile().pages_per_block;
        let length = self.profile().page_bytes * pages;
        self.note(now, Kind::Erase, PageNo(block.0 * pages), Span { column: 0, length });
        self.inner.erase(now, block)
    }

    fn set_task(&mut self, task: Task) {
        self.task = task;
    }

    fn start_recording(&mut self) {
        self.record = Some(Vec::new());
    }

    fn take_record(&mut self) -> Vec<FlashOp> {
        self.record.take().unwrap_or_default()
    }
}
