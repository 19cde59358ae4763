//! Earliest eligible virtual deadline first, the scheduler of Linux since 6.6.
//!
//! Mirrors kernel/sched/fair.c of Linux 6.6, 6.12 and 7.3: avg_vruntime, entity_lag,
//! entity_eligible, update_deadline, place_entity, set_protect_slice, pick_eevdf, update_curr,
//! requeue_delayed_entity, dequeue_entity, check_preempt_wakeup_fair (7.3: wakeup_preempt_fair) and
//! yield_task_fair. A task is eligible if it has had no more than its share (`vruntime` at or below
//! the average, V). Of the eligible tasks the one with the earliest deadline runs.
//!
//! Since 6.12 a task that goes to sleep while it is not eligible stays in the queue until it would
//! be picked or is woken (DELAY_DEQUEUE).
//!
//! Left out: which of several waiting tasks 6.6 finds first if their deadlines are equal (the shape
//! of its tree), slices of a task's own (sched_attr), task groups, the nice value that JFFS2's
//! thread has before set_user_nice, and 64-bit division where 7.3 scales a time by a weight
//! (calc_delta_fair; a nanosecond of difference).
//!
//! Invariants:
//! 1. A delayed task is on the queue and not runnable.
//! 2. Some task on the queue is eligible if there is any.

use super::fair::{fair_ns, weight, Queue, SchedClass};
use super::task::{Task, TaskSet, TASKS};
use crate::profile::Scheduler;

/// sched_entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    pub(super) vruntime_ns: i64,
    pub(super) deadline_ns: i64,
    /// V - vruntime when the task left the queue.
    pub(super) vlag_ns: i64,
    /// 6.12: the deadline at which the task was picked (set_protect_slice). 7.3: vprot.
    protects_ns: i64,
    /// The order in which tasks entered the tree. Of equal deadlines the first one is leftmost.
    entered: u64,
}

/// cfs_rq.
#[derive(Clone, Debug)]
pub(super) struct Eevdf {
    version: Version,
    /// sysctl_sched_base_slice on one processor.
    slice_ns: u64,
    tick_ns: u64,
    pub(super) entities: [Entity; TASKS],
    on_rq: TaskSet,
    /// sched_delayed.
    delayed: TaskSet,
    current: Option<Task>,
    entries: u64,
    /// zero_vruntime: V when it was last asked for. The average of an empty queue.
    zero_ns: i64,
}

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V6_6,
    V6_12,
    V7_3,
}

impl Eevdf {
    /// A queue on which only the program runs.
    pub fn new(scheduler: Scheduler, tick_ns: u64) -> Eevdf {
        let version = match scheduler {
            Scheduler::Eevdf6_6 => Version::V6_6,
            Scheduler::Eevdf7_3 => Version::V7_3,
            _ => Version::V6_12,
        };
        let slice_ns = if version == Version::V6_6 { 750_000 } else { 700_000 };
        let mut queue = Eevdf {
            version,
            slice_ns,
            tick_ns,
            entities: [Entity::default(); TASKS],
            on_rq: TaskSet::default(),
            delayed: TaskSet::default(),
            current: None,
            entries: 0,
            zero_ns: 0,
        };
        queue.place_entity(Task::Program, false);
        queue.enter(Task::Program);
        queue.set_next(Task::Program);
        queue
    }

    /// The sums of avg_vruntime: weighted `vruntime` relative to `zero_ns`, and weights.
    fn sums(&self) -> (i64, i64) {
        self.on_rq.iter().fold((0, 0), |(sum, load), task| {
            let weight = weight(task) as i64;
            let key = self.entities[task as usize].vruntime_ns - self.zero_ns;
            (sum + key * weight, load + weight)
        })
    }

    /// avg_vruntime: V, rounded down.
    fn avg_vruntime(&mut self) -> i64 {
        let (sum, load) = self.sums();
        if load > 0 {
            self.zero_ns += sum.div_euclid(load);
        }
        self.zero_ns
    }

    fn is_eligible(&self, task: Task) -> bool {
        let (sum, load) = self.sums();
        sum >= (self.entities[task as usize].vruntime_ns - self.zero_ns) * load
    }

    /// calc_delta_fair of the base slice.
    fn vslice_ns(&self, task: Task) -> i64 {
        fair_ns(self.slice_ns, task) as i64
    }

    /// entity_lag of a task on the queue.
    fn entity_lag(&mut self, task: Task) -> i64 {
        let longest_ns = match self.version {
            Version::V6_6 | Version::V6_12 => (2 * self.slice_ns).max(self.tick_ns),
            Version::V7_3 => self.slice_ns + self.tick_ns,
        };
        let limit = fair_ns(longest_ns, task) as i64;
        let average = self.avg_vruntime();
        (average - self.entities[task as usize].vruntime_ns).clamp(-limit, limit)
    }

    /// place_entity of a task that is not on the queue: so that its lag there is the lag with which
    /// it left.
    fn place_entity(&mut self, task: Task, is_new: bool) {
        let average = self.avg_vruntime();
        let (_, load) = self.sums();
        let weight = weight(task) as i64;
        let vslice = self.vslice_ns(task);
        let own = &mut self.entities[task as usize];
        let lag = if load > 0 { own.vlag_ns * (load + weight) / load } else { 0 };
        own.vruntime_ns = average - lag;
        // PLACE_DEADLINE_INITIAL: a new task joins as if half its slice were over.
        own.deadline_ns = own.vruntime_ns + if is_new { vslice / 2 } else { vslice };
    }

    /// __enqueue_entity: right of the tasks of equal deadline.
    fn enter(&mut self, task: Task) {
        self.on_rq.insert(task);
        self.entries += 1;
        self.entities[task as usize].entered = self.entries;
    }

    /// set_next_entity.
    fn set_next(&mut self, task: Task) {
        self.current = Some(task);
        let own = &mut self.entities[task as usize];
        own.protects_ns = own.deadline_ns;
    }

    /// protect_slice: RUN_TO_PARITY keeps the running task until its slice is over.
    fn is_protected(&self, task: Task) -> bool {
        let own = &self.entities[task as usize];
        match self.version {
            Version::V6_6 | Version::V6_12 => own.protects_ns == own.deadline_ns,
            Version::V7_3 => own.vruntime_ns < own.protects_ns,
        }
    }

    /// update_deadline; returns whether the task has had its slice.
    fn update_deadline(&mut self, task: Task) -> bool {
        let vslice = self.vslice_ns(task);
        let own = &mut self.entities[task as usize];
        let is_over = own.vruntime_ns >= own.deadline_ns;
        if is_over {
            own.deadline_ns = own.vruntime_ns + vslice;
            self.avg_vruntime();
        }
        is_over
    }

    fn pick_eevdf(&self) -> Option<Task> {
        if !self.on_rq.has_several() {
            return self.on_rq.iter().next();
        }
        let running = self.current.filter(|&task| self.on_rq.contains(task));
        let current = running.filter(|&task| self.is_eligible(task));
        if let Some(task) = current.filter(|&task| self.is_protected(task)) {
            return Some(task);
        }
        let (sum, load) = self.sums();
        let best = self
            .on_rq
            .iter()
            .filter(|&task| Some(task) != running)
            .map(|task| (task, &self.entities[task as usize]))
            .filter(|(_, entity)| sum >= (entity.vruntime_ns - self.zero_ns) * load)
            .min_by_key(|(_, entity)| (entity.deadline_ns, entity.entered));
        let (Some((first, entity)), Some(task)) = (best, current) else {
            return best.map(|(first, _)| first).or(current);
        };
        let own_ns = self.entities[task as usize].deadline_ns;
        // __pick_eevdf of 6.6 begins with the running task.
        let keeps = own_ns < entity.deadline_ns
            || self.version == Version::V6_6 && own_ns == entity.deadline_ns;
        Some(if keeps { task } else { first })
    }

    /// pick_next_entity, until the task is not one that sleeps.
    fn pick_next_entity(&mut self) -> Option<Task> {
        loop {
            let task = self.pick_eevdf()?;
            if !self.delayed.contains(task) {
                return Some(task);
            }
            self.finish_delayed(task);
        }
    }

    /// update_entity_lag of a delayed task. With DELAY_ZERO it gains nothing by having been kept.
    fn update_delayed_lag(&mut self, task: Task) -> i64 {
        let lag = self.entity_lag(task);
        let own = &mut self.entities[task as usize];
        own.vlag_ns = match self.version {
            Version::V7_3 => lag.max(own.vlag_ns).min(0),
            _ => lag.min(0),
        };
        lag
    }

    /// dequeue_entity with DEQUEUE_DELAYED.
    fn finish_delayed(&mut self, task: Task) {
        self.update_delayed_lag(task);
        self.delayed.remove(task);
        self.on_rq.remove(task);
    }

    /// requeue_delayed_entity: a delayed task is woken.
    fn requeue_delayed(&mut self, task: Task) {
        let average = self.avg_vruntime();
        let lag = self.update_delayed_lag(task);
        let own = &self.entities[task as usize];
        let is_moved = match self.version {
            Version::V7_3 => average - own.vlag_ns != own.vruntime_ns,
            _ => lag > 0,
        };
        if is_moved {
            self.on_rq.remove(task);
            self.place_entity(task, false);
            self.enter(task);
        }
        self.delayed.remove(task);
    }

    /// update_protect_slice of 7.3.
    fn update_protect_slice(&mut self, task: Task) {
        let (average, vslice) = (self.avg_vruntime(), self.vslice_ns(task));
        let own = &mut self.entities[task as usize];
        let until = own.vruntime_ns.min(average) + vslice;
        own.protects_ns = own.protects_ns.min(until);
    }
}

impl SchedClass for Eevdf {
    fn update_curr(&mut self, delta_ns: u64, queue: Queue) -> bool {
        let Some(task) = queue.current.filter(|_| delta_ns > 0) else { return false };
        self.entities[task as usize].vruntime_ns += fair_ns(delta_ns, task) as i64;
        let is_over = self.update_deadline(task);
        let is_left = match self.version {
            Version::V6_6 => false,
            // did_preempt_short.
            Version::V6_12 => !self.is_protected(task) && !self.is_eligible(task),
            Version::V7_3 => !self.is_protected(task),
        };
        self.on_rq.has_several() && (is_over || is_left)
    }

    /// entity_tick only updates the running task.
    fn task_tick(&mut self, _queue: Queue) -> bool {
        false
    }

    fn enqueue_task(&mut self, task: Task, _queue: Queue) {
        if self.delayed.contains(task) {
            self.requeue_delayed(task);
        } else {
            self.place_entity(task, false);
            self.enter(task);
        }
    }

    /// Places `task` on the empty queue, and then the tasks that woke since the queue was empty.
    fn enqueue_first(&mut self, task: Task, _queue: Queue) {
        let mut woken: Vec<Task> = self.on_rq.iter().collect();
        woken.sort_by_key(|&other| self.entities[other as usize].entered);
        if let Some(&first) = woken.first() {
            self.zero_ns = self.entities[first as usize].vruntime_ns;
        }
        self.on_rq = TaskSet::default();
        self.current = None;
        for next in std::iter::once(task).chain(woken) {
            self.place_entity(next, false);
            self.enter(next);
        }
    }

    fn enqueue_new(&mut self, task: Task, queue: Queue) {
        self.task_fork(task, queue);
        self.place_entity(task, true);
        self.enter(task);
    }

    /// __sched_fork.
    fn task_fork(&mut self, task: Task, _queue: Queue) {
        self.on_rq.remove(task);
        self.delayed.remove(task);
        self.entities[task as usize].vlag_ns = 0;
    }

    fn dequeue_task(&mut self, task: Task, _queue: Queue, is_dead: bool) {
        let lag = self.entity_lag(task);
        let is_delayed = self.version != Version::V6_6 && !is_dead && !self.is_eligible(task);
        self.entities[task as usize].vlag_ns = lag;
        if is_delayed {
            self.delayed.insert(task);
        } else {
            self.on_rq.remove(task);
        }
    }

    fn wakeup_preempt(&mut self, task: Task, queue: Queue, is_due: bool) -> bool {
        let Some(current) = queue.current else { return false };
        if self.version != Version::V7_3 {
            return !is_due && self.pick_eevdf() == Some(task);
        }
        let preempts = self.pick_next_entity() == Some(task);
        if preempts && self.is_protected(current) {
            // cancel_protect_slice.
            self.entities[current as usize].protects_ns =
                self.entities[current as usize].vruntime_ns;
        } else if !preempts {
            self.update_protect_slice(current);
        }
        preempts
    }

    fn pick_next_task(&mut self, before: Option<Task>, _queue: Queue) -> Option<Task> {
        let running =
            self.current.filter(|&task| self.on_rq.contains(task) && !self.delayed.contains(task));
        // The interrupt that ended the idleness has woken another task: nothing was picked yet.
        if before.is_none() && running.is_some() {
            self.current = None;
        }
        let next = self.pick_next_entity();
        if next != self.current {
            self.put_prev_task();
            if let Some(task) = next {
                self.set_next(task);
            }
        }
        next
    }

    fn has_lag(&self) -> bool {
        true
    }

    fn put_prev_task(&mut self) {
        if let Some(last) = self.current.take().filter(|&last| self.on_rq.contains(last)) {
            self.enter(last);
        }
    }

    /// yield_task_fair: an eligible task gives up what is left of its slice. In 6.6 its deadline
    /// moves by a slice.
    fn yield_task(&mut self, queue: Queue) {
        let Some(task) = queue.current.filter(|_| self.on_rq.has_several()) else { return };
        if self.version == Version::V6_6 {
            self.entities[task as usize].deadline_ns += self.vslice_ns(task);
        } else if self.is_eligible(task) {
            let own = &mut self.entities[task as usize];
            own.vruntime_ns = own.deadline_ns;
            self.update_deadline(task);
        }
    }

    fn swap(&mut self, one: Task, other: Task) {
        self.entities.swap(one as usize, other as usize);
        self.on_rq.swap(one, other);
        self.delayed.swap(one, other);
        self.current = self.current.map(|task| match task {
            _ if task == one => other,
            _ if task == other => one,
            _ => task,
        });
    }

    fn rename(&mut self, from: Task, to: Task) {
        self.on_rq.remove(to);
        self.delayed.remove(to);
        self.swap(from, to);
    }
}
