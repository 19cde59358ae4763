//! Kernel threads: creation and exit.
//!
//! Mirrors kernel/kthread.c (__kthread_create_on_node, create_kthread, kthread), kernel/fork.c
//! (kernel_thread) of Linux 6.1. kthreadd creates a thread. The thread signals its creator that it
//! has started, then sleeps until it is woken. Each step takes no time, but is scheduled.
//!
//! Left out: concurrent creations (there is one creator at a time).
//!
//! Invariant: the creator runs again only after the new thread has started.

use super::{Sched, Task};
use crate::units::Ns;

impl Sched {
    /// kthread_create by the running task, up to its wait for the new thread. Other tasks may run
    /// now. The thread sleeps once it has started.
    pub fn create_kthread(&mut self, now: Ns, task: Task) {
        let Some(creator) = self.current else {
            self.fork(now, task);
            return;
        };
        self.pass(now);
        self.update_current(now);
        self.runnable.remove(task);
        self.newborn = Some((task, creator));
        self.enqueue(now, Task::Kthreadd);
        self.resched(now);
        if self.current != Some(creator) {
            return; // The thread goes to sleep before the creator continues.
        }
        if self.newborn.is_some() {
            self.sleep(now);
        }
    }

    /// wake_up_process of a thread that was created and has nothing to do yet.
    pub fn start_kthread(&mut self, now: Ns, task: Task) {
        self.wake(now, task);
        if self.current != Some(task) {
            self.starting.insert(task);
        }
    }

    /// Creates a file system's thread without scheduling the steps of its creation. It is placed a
    /// slice behind the other tasks, its creator included, and sleeps.
    pub fn fork(&mut self, now: Ns, task: Task) {
        self.pass(now);
        self.update_current(now);
        self.runnable.remove(task);
        let queue = self.queue();
        self.fair.class().task_fork(task, queue);
    }

    /// kernel_thread of kthreadd: the new thread becomes runnable.
    pub(super) fn clone_newborn(&mut self) {
        if let Some((task, _)) = self.newborn {
            let queue = self.queue();
            self.fair.class().enqueue_new(task, queue);
            self.runnable.insert(task);
        }
    }

    /// Whether a task is done as soon as it has the processor.
    pub(super) fn ends_at_once(&self, task: Task) -> bool {
        self.is_momentary(task) || self.newborn.is_some_and(|(newborn, _)| newborn == task)
    }

    /// complete(&create->done) in kthread.
    pub(super) fn begin_newborn(&mut self, now: Ns) {
        if let Some((_, creator)) = self.newborn.take() {
            self.enqueue(now, creator);
        }
    }

    /// The running thread exits, and kthread_stop waits for it: wakes `waiter`. If that preempts
    /// the thread at once, it finishes do_exit later.
    pub fn exit_kthread(&mut self, now: Ns, waiter: Task) {
        let Some(task) = self.current else { return };
        self.wake(now, waiter);
        if self.need_resched && !self.runnable.contains(Task::Exiting) {
            self.fair.class().rename(task, Task::Exiting);
            self.runnable.remove(task);
            self.runnable.insert(Task::Exiting);
            self.current = Some(Task::Exiting);
            self.yields(now);
        } else {
            self.sleep(now);
        }
    }
}
