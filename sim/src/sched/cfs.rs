//! The completely fair scheduler, of Linux before 6.6.
//!
//! Mirrors kernel/sched/fair.c of Linux 6.1: update_curr, place_entity, check_preempt_wakeup,
//! check_preempt_tick, pick_next_entity, yield_task_fair and task_fork_fair. The task of the least
//! `vruntime` runs.
//!
//! Left out: the last buddy (used from eight tasks on).
//!
//! Invariant: `min_vruntime` never decreases.

use super::fair::{calc_delta, fair_ns, weight, Queue, SchedClass, WEIGHT};
use super::task::{Task, TaskSet, TASKS};

/// sysctl_sched_latency and sysctl_sched_min_granularity on one processor.
const LATENCY_NS: u64 = 6_000_000;
const MIN_GRANULARITY_NS: u64 = 750_000;
/// sysctl_sched_wakeup_granularity on one processor.
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;
/// GENTLE_FAIR_SLEEPERS: a woken sleeper is placed half the latency ahead.
const SLEEPER_BONUS_NS: u64 = LATENCY_NS / 2;

/// cfs_rq.
#[derive(Clone, Debug)]
pub(super) struct Cfs {
    pub(super) vruntime_ns: [u64; TASKS],
    pub(super) min_vruntime_ns: u64,
    /// The order in which tasks entered the tree. Of equal `vruntime` the first one is leftmost.
    entered: [u64; TASKS],
    entries: u64,
    /// How long the running task has run since it was picked.
    pub(super) ran_ns: u64,
    /// cfs_rq->next: the woken task that preempts the running one.
    next: Option<Task>,
    /// cfs_rq->skip: the task that yields.
    skip: Option<Task>,
    /// CONFIG_FAIR_GROUP_SCHED.
    task_groups: bool,
}

impl Cfs {
    /// A queue on which no task has run.
    pub fn new(task_groups: bool) -> Cfs {
        Cfs {
            vruntime_ns: [LATENCY_NS; TASKS],
            min_vruntime_ns: LATENCY_NS,
            entered: [0; TASKS],
            entries: 0,
            ran_ns: 0,
            next: None,
            skip: None,
            task_groups,
        }
    }

    fn update_min_vruntime(&mut self, runnable: TaskSet) {
        if let Some(least) = runnable.iter().map(|task| self.vruntime_ns[task as usize]).min() {
            self.min_vruntime_ns = self.min_vruntime_ns.max(least);
        }
    }

    /// sched_slice.
    fn slice_ns(task: Task, runnable: TaskSet) -> u64 {
        let mut all = runnable;
        all.insert(task);
        let weights: u64 = all.iter().map(weight).sum();
        calc_delta(LATENCY_NS, weight(task), weights).max(MIN_GRANULARITY_NS)
    }

    fn leftmost_but(&self, task: Option<Task>, runnable: TaskSet) -> Option<(Task, u64)> {
        let others = runnable.iter().filter(|&other| Some(other) != task);
        let first = others
            .min_by_key(|&other| (self.vruntime_ns[other as usize], self.entered[other as usize]));
        first.map(|other| (other, self.vruntime_ns[other as usize]))
    }

    /// __enqueue_entity: right of the tasks of equal `vruntime`.
    fn enter(&mut self, task: Task) {
        self.entries += 1;
        self.entered[task as usize] = self.entries;
    }

    /// The task that runs unless a buddy does. Of equal tasks not the one that was running.
    fn pick_left(&self, before: Option<Task>, runnable: TaskSet) -> Option<(Task, u64)> {
        let other = self.leftmost_but(before, runnable);
        let own = before.map(|task| (task, self.vruntime_ns[task as usize]));
        let yields = self.skip.is_some() && self.skip == before;
        match (other, own) {
            // wakeup_preempt_entity: a task that yields is passed by one not far behind.
            (Some((_, least)), Some((_, own_ns)))
                if yields && least > own_ns + WAKEUP_GRANULARITY_NS =>
            {
                own
            }
            (Some((_, least)), Some((_, own_ns))) if !yields && own_ns < least => own,
            (None, _) => own,
            _ => other,
        }
    }
}

impl SchedClass for Cfs {
    fn update_curr(&mut self, delta_ns: u64, queue: Queue) -> bool {
        if let Some(task) = queue.current {
            self.vruntime_ns[task as usize] += fair_ns(delta_ns, task);
            self.ran_ns += delta_ns;
        }
        self.update_min_vruntime(queue.runnable);
        false
    }

    /// check_preempt_tick.
    fn task_tick(&mut self, queue: Queue) -> bool {
        let Some(current) = queue.current.filter(|_| queue.runnable.has_several()) else {
            return false;
        };
        let ideal_ns = Cfs::slice_ns(current, queue.runnable);
        if self.ran_ns > ideal_ns {
            // clear_buddies: the task has used up its slice, so it does not remain the buddy.
            self.next = self.next.filter(|&next| next != current);
            return true;
        }
        // Within its slice a task is preempted only if it is a slice ahead of the leftmost one.
        let own = self.vruntime_ns[current as usize];
        let ahead = self
            .leftmost_but(Some(current), queue.runnable)
            .map_or(0, |(_, least)| own.saturating_sub(least));
        self.ran_ns >= MIN_GRANULARITY_NS && ahead > ideal_ns
    }

    fn enqueue_task(&mut self, task: Task, _queue: Queue) {
        self.enter(task);
        let least = self.min_vruntime_ns - SLEEPER_BONUS_NS;
        let own = &mut self.vruntime_ns[task as usize];
        *own = (*own).max(least);
    }

    fn enqueue_first(&mut self, task: Task, queue: Queue) {
        self.enqueue_task(task, queue);
        self.entered[task as usize] = 0;
    }

    fn enqueue_new(&mut self, task: Task, queue: Queue) {
        self.task_fork(task, queue);
        self.enter(task);
    }

    /// place_entity with START_DEBIT: a slice behind the other tasks. Its nice value is still 0.
    fn task_fork(&mut self, task: Task, queue: Queue) {
        let others = queue.runnable.iter().filter(|&other| other != task).count() as u64;
        self.vruntime_ns[task as usize] =
            self.min_vruntime_ns + calc_delta(LATENCY_NS, WEIGHT, WEIGHT * (others + 1));
    }

    fn dequeue_task(&mut self, task: Task, queue: Queue, _is_dead: bool) {
        self.next = self.next.filter(|&next| next != task);
        self.update_min_vruntime(queue.runnable);
    }

    fn wakeup_preempt(&mut self, task: Task, queue: Queue, is_due: bool) -> bool {
        let Some(current) = queue.current.filter(|_| !is_due) else { return false };
        let own = self.vruntime_ns[task as usize];
        let ahead = self.vruntime_ns[current as usize].saturating_sub(own);
        let preempts = ahead > fair_ns(WAKEUP_GRANULARITY_NS, task);
        if preempts {
            self.next = Some(task);
        }
        preempts
    }

    /// pick_next_task_fair: the smallest vruntime, or the task whose wake-up preempts, unless that
    /// is unfair.
    fn pick_next_task(&mut self, before: Option<Task>, queue: Queue) -> Option<Task> {
        if let Some(task) = before {
            self.enter(task);
        }
        let left = self.pick_left(before, queue.runnable);
        self.skip = None;
        let buddy = self.next.take().zip(left).and_then(|(next, (left, least))| {
            // wakeup_preempt_entity: a buddy may be at most a wake-up granularity behind.
            let behind = self.vruntime_ns[next as usize].saturating_sub(least);
            (behind <= fair_ns(WAKEUP_GRANULARITY_NS, left)).then_some(next)
        });
        let next = buddy.or(left.map(|(task, _)| task));
        // With task groups, a task that keeps running has not been picked again.
        if next != queue.current || before.is_none() || !self.task_groups {
            self.ran_ns = 0;
        }
        next
    }

    fn has_lag(&self) -> bool {
        false
    }

    fn put_prev_task(&mut self) {}

    fn yield_task(&mut self, queue: Queue) {
        self.skip = queue.current;
    }

    fn swap(&mut self, one: Task, other: Task) {
        self.vruntime_ns.swap(one as usize, other as usize);
    }

    fn rename(&mut self, from: Task, to: Task) {
        self.vruntime_ns[to as usize] = self.vruntime_ns[from as usize];
        self.enter(to);
    }
}
