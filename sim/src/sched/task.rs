//! Tasks: the program, and the threads of the kernel that take the processor from it.

/// A task that can have the processor and issue flash operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// The program, within a system call.
    #[default]
    Program,
    /// Kernel threads without a name of their own here: the flusher, workqueues.
    Background,
    /// UBI's thread.
    UbiThread,
    /// UBIFS's thread.
    UbifsThread,
    /// JFFS2's garbage collector thread.
    Jffs2Thread,
    /// YAFFS2's background thread.
    Yaffs2Thread,
    /// RCU's thread, which never accesses the flash.
    RcuThread,
    /// A worker that updates the write bandwidth (wb_update_bandwidth_workfn) and never accesses
    /// the flash.
    BandwidthWorker,
    /// The flusher of a file system that has nothing to write, or a worker that finds no work.
    OtherFlusher,
    /// kthreadd, which creates the threads of others.
    Kthreadd,
    /// ksoftirqd, which runs RCU's callbacks.
    Ksoftirqd,
    /// A thread that has signalled its end and still has to finish do_exit.
    Exiting,
}

/// The number of tasks.
pub const TASKS: usize = 12;

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
    "kworker-other",
    "kthreadd",
    "ksoftirqd",
    "exiting",
];

impl Task {
    /// All tasks, in order.
    pub const ALL: [Task; TASKS] = [
        Task::Program,
        Task::Background,
        Task::UbiThread,
        Task::UbifsThread,
        Task::Jffs2Thread,
        Task::Yaffs2Thread,
        Task::RcuThread,
        Task::BandwidthWorker,
        Task::OtherFlusher,
        Task::Kthreadd,
        Task::Ksoftirqd,
        Task::Exiting,
    ];
}

/// A set of tasks, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSet(u16);

impl TaskSet {
    /// Whether it has a task.
    #[inline]
    pub fn contains(self, task: Task) -> bool {
        self.0 >> task as u32 & 1 == 1
    }

    /// Whether it has two or more tasks.
    #[inline]
    pub fn has_several(self) -> bool {
        self.0 & self.0.wrapping_sub(1) != 0
    }

    /// Adds a task.
    #[inline]
    pub fn insert(&mut self, task: Task) {
        self.0 |= 1 << task as u32;
    }

    /// Removes a task.
    #[inline]
    pub fn remove(&mut self, task: Task) {
        self.0 &= !(1 << task as u32);
    }

    /// Exchanges two tasks.
    pub fn swap(&mut self, one: Task, other: Task) {
        let bits = (self.contains(one), self.contains(other));
        self.0 &= !(1 << one as u32 | 1 << other as u32);
        self.0 |= u16::from(bits.0) << other as u32 | u16::from(bits.1) << one as u32;
    }

    /// Its tasks, in the order of `Task::ALL`.
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
