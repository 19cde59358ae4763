//! Threads of the kernel: how they are created, and how they end.
//!
//! Mirrors kernel/kthread.c (__kthread_create_on_node, create_kthread, kthread), kernel/fork.c
//! (kernel_thread) and task_fork_fair of kernel/sched/fair.c, Linux 6.1. kthreadd creates a thread,
//! which tells its creator that it has begun and then sleeps until it is woken. Each of them takes
//! no time, but has its turn: min_vruntime goes on to the new thread, and the creator is woken
//! behind it.
//!
//! Left out: threads created while another creation is under way (there is one creator at a time).
//!
//! Invariant: the creator runs again after the new thread has begun.

use super::fair::{calc_delta, LATENCY_NS, WEIGHT};
use super::{is_momentary, Sched, Task};
use crate::units::Ns;

impl Sched {
    /// kthread_create of the task that has the processor, up to its wait for the new thread: others
    /// may have the processor now. The thread sleeps when it has begun.
    pub fn create_kthread(&mut self, now: Ns, task: Task) {
        let Some(creator) = self.current else {
            self.place_child(task);
            return;
        };
        self.pass(now);
        self.update_current(now);
        self.runnable.remove(task);
        self.newborn = Some((task, creator));
        self.enqueue(now, Task::Kthreadd);
        self.resched(now);
        if self.current != Some(creator) {
            return; // It sleeps before it has to go on.
        }
        if self.newborn.is_some() {
            self.sleep(now);
        }
    }

    /// The thread of a file system whose creation is not followed in turns: a slice behind the
    /// others, the thread that makes it among them. It sleeps as yet.
    pub fn fork(&mut self, now: Ns, task: Task) {
        self.pass(now);
        self.update_current(now);
        self.runnable.remove(task);
        self.place_child(task);
    }

    /// kernel_thread of kthreadd: the thread wants to begin.
    pub(super) fn clone_newborn(&mut self) {
        if let Some((task, _)) = self.newborn {
            self.place_child(task);
            self.runnable.insert(task);
        }
    }

    /// place_entity with START_DEBIT: a slice behind the others, kthreadd among them.
    fn place_child(&mut self, task: Task) {
        let others = self.runnable.iter().filter(|&other| other != task).count() as u64;
        // It is of nice 0 still.
        self.vruntime_ns[task as usize] =
            self.min_vruntime_ns + calc_delta(LATENCY_NS, WEIGHT, WEIGHT * (others + 1));
    }

    /// Whether a task is done as soon as it has the processor.
    pub(super) fn ends_at_once(&self, task: Task) -> bool {
        is_momentary(task) || self.newborn.is_some_and(|(newborn, _)| newborn == task)
    }

    /// complete(&create->done) in kthread.
    pub(super) fn begin_newborn(&mut self, now: Ns) {
        if let Some((_, creator)) = self.newborn.take() {
            self.enqueue(now, creator);
        }
    }

    /// The thread that has the processor ends (kthread_stop waits for it): `waiter` is woken, and
    /// if that takes the processor at once, the rest of do_exit comes later.
    pub fn exit_kthread(&mut self, now: Ns, waiter: Task) {
        let Some(task) = self.current else { return };
        self.wake(now, waiter);
        if self.need_resched && !self.runnable.contains(Task::Exiting) {
            self.vruntime_ns[Task::Exiting as usize] = self.vruntime_ns[task as usize];
            self.runnable.insert(Task::Exiting);
        }
        self.sleep(now);
    }
}
