//! Tasks: the program, and the threads of the kernel that take the processor from it.

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
    /// A worker that looks how fast pages were written (wb_update_bandwidth_workfn), which never
    /// sees it either.
    BandwidthWorker,
    /// kthreadd, which creates the threads of others.
    Kthreadd,
    /// ksoftirqd, for the callbacks of RCU.
    Ksoftirqd,
    /// A thread that has told its end and still has to go through do_exit.
    Exiting,
}

/// How many there are.
pub const TASKS: usize = 11;

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
    "kthreadd",
    "ksoftirqd",
    "exiting",
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
        Task::Kthreadd,
        Task::Ksoftirqd,
        Task::Exiting,
    ];
}

/// Some of the tasks, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskSet(u16);

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
