//! The seam between the run queue and its scheduler, and shares of the processor.
//!
//! Mirrors struct sched_class of kernel/sched/sched.h, sched_prio_to_weight of kernel/sched/core.c,
//! and __calc_delta and calc_delta_fair of kernel/sched/fair.c, Linux 6.1.

use super::task::{Task, TaskSet};

/// sched_prio_to_weight of nice 0 and of nice 10.
pub(super) const WEIGHT: u64 = 1024;
const WEIGHT_NICE_10: u64 = 110;

/// se->load.weight. Only JFFS2's thread changes its nice value (set_user_nice).
pub(super) fn weight(task: Task) -> u64 {
    match task {
        Task::Jffs2Thread => WEIGHT_NICE_10,
        _ => WEIGHT,
    }
}

/// __calc_delta: `delta_ns * weight / total` by an inverse that is rounded down, so that half of 6
/// ms is 2,999,998 ns.
pub(super) fn calc_delta(delta_ns: u64, weight: u64, total: u64) -> u64 {
    let factor = weight * (u64::from(u32::MAX) / total);
    let surplus = 64 - (factor >> 32).leading_zeros();
    ((u128::from(delta_ns) * u128::from(factor >> surplus)) >> (32 - surplus)) as u64
}

/// calc_delta_fair: a time scaled by the task's weight.
pub(super) fn fair_ns(delta_ns: u64, task: Task) -> u64 {
    match weight(task) {
        WEIGHT => delta_ns,
        other => calc_delta(delta_ns, WEIGHT, other),
    }
}

/// What a scheduler sees of the run queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The tasks that can run, the running one among them.
    pub runnable: TaskSet,
    /// The running task.
    pub current: Option<Task>,
}

/// struct sched_class: which of the runnable tasks runs, and for how long.
pub(super) trait SchedClass {
    /// update_curr: the running task has had `delta_ns` more. Returns whether it is to be
    /// preempted.
    fn update_curr(&mut self, delta_ns: u64, queue: Queue) -> bool;

    /// task_tick, after update_curr. Returns whether the running task is to be preempted.
    fn task_tick(&mut self, queue: Queue) -> bool;

    /// enqueue_task of a task that wakes.
    fn enqueue_task(&mut self, task: Task, queue: Queue);

    /// The same, as if `task` had woken before the others that ended the processor's idleness.
    fn enqueue_first(&mut self, task: Task, queue: Queue);

    /// wake_up_new_task.
    fn enqueue_new(&mut self, task: Task, queue: Queue);

    /// task_fork of a task that then sleeps.
    fn task_fork(&mut self, task: Task, queue: Queue);

    /// dequeue_task of the running task, which sleeps or, if it `is_dead`, has ended. `queue` is
    /// without it.
    fn dequeue_task(&mut self, task: Task, queue: Queue, is_dead: bool);

    /// wakeup_preempt: whether the task that has just woken preempts the running one, which
    /// `is_due` to be preempted already.
    fn wakeup_preempt(&mut self, task: Task, queue: Queue, is_due: bool) -> bool;

    /// pick_next_task. `before` has run until now and remains runnable.
    fn pick_next_task(&mut self, before: Option<Task>, queue: Queue) -> Option<Task>;

    /// Whether a task keeps its lag while it sleeps. On such kernels the agent makes ksoftirqd of
    /// user-mode Linux a real-time task, which is none of the scheduler's.
    fn has_lag(&self) -> bool;

    /// put_prev_task of the running task: a real-time task runs now.
    fn put_prev_task(&mut self);

    /// yield_task of the running task, before schedule().
    fn yield_task(&mut self, queue: Queue);

    /// Two sleeping tasks exchange their entities.
    fn swap(&mut self, one: Task, other: Task);

    /// The running task continues under another name.
    fn rename(&mut self, from: Task, to: Task);
}
