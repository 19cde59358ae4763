//! The scheduler: which runnable task has the processor.
//!
//! Mirrors kernel/sched/fair.c of Linux 6.1 (update_curr, place_entity, check_preempt_wakeup,
//! check_preempt_tick, pick_next_entity) on one processor with voluntary preemption. Tasks block on
//! a [`Mutex`]. A task that should be preempted is so at its next preemption point (`resched`:
//! cond_resched, might_sleep, the return to user space), not before.
//!
//! The scheduler's clock counts nanoseconds if the architecture has such a clock, else ticks
//! (user-mode Linux: the weak sched_clock of kernel/sched/clock.c). By ticks, a task that was
//! asleep at every tick has never run.
//!
//! Left out: multiple processors and what only they need (spinning on a mutex), the last buddy
//! (used from eight tasks on), and tasks that compete with none of the modelled ones.
//!
//! Invariants:
//! 1. Some task has the processor if any is runnable.
//! 2. `min_vruntime` never decreases.

mod fair;
mod kthread;
mod mutex;
mod rcu;
mod task;
mod ticks;

pub use mutex::Mutex;
pub use task::{Task, TaskSet, TASKS, TASK_NAMES};
pub use ticks::Ticks;

use crate::profile::KernelFacts;
use crate::units::Ns;
use fair::{calc_delta, fair_ns, weight, LATENCY_NS, MIN_GRANULARITY_NS, WAKEUP_GRANULARITY_NS};
use rcu::Waiting;

/// GENTLE_FAIR_SLEEPERS: a woken sleeper is placed half the latency ahead.
const SLEEPER_BONUS_NS: u64 = LATENCY_NS / 2;
/// BANDWIDTH_INTERVAL of mm/page-writeback.c.
const BANDWIDTH_INTERVAL_NS: u64 = 200_000_000;
/// The longest delay of a sleeping program's wake-up (timer_slack_ns of an ordinary thread).
pub const TIMER_SLACK: Ns = Ns(50_000);

/// One processor's run queue.
#[derive(Clone, Debug)]
pub struct Sched {
    /// The resolution of the scheduler's clock.
    clock_step_ns: u64,
    /// 1 / CONFIG_HZ.
    tick_ns: u64,
    clock_ns: u64,
    ticks: u64,
    /// The time of the next tick.
    next_tick: Ns,
    vruntime_ns: [u64; TASKS],
    runnable: TaskSet,
    /// The order in which tasks entered the tree. Of equal `vruntime` the first one is leftmost.
    entered: [u64; TASKS],
    entries: u64,
    min_vruntime_ns: u64,
    current: Option<Task>,
    /// The interrupt that ended the processor's idleness, until a task runs. It may wake several
    /// tasks; the processor then picks one of them all. The program enters the tree first: its
    /// hrtimer expires before the timer wheel, and before the timers with more slack.
    left_idle: Option<Ns>,
    /// How long `current` has run since it was picked.
    ran_ns: u64,
    need_resched: bool,
    /// RQCF_REQ_SKIP: a task was woken when `current` was already to be preempted. The preemption
    /// then does not update the clock, and the time until it is charged to the next task.
    skips_clock: bool,
    /// cfs_rq->next: the woken task that preempts `current`.
    next: Option<Task>,
    rcu: Waiting,
    /// CONFIG_FAIR_GROUP_SCHED.
    task_groups: bool,
    first_idle_tick: bool,
    /// The tick at which the bandwidth worker is woken (bw_dwork).
    bandwidth_tick: Option<u64>,
    /// The idle ones of the two workers, the most recently idle last (the pool's idle_list).
    idle_workers: Vec<Task>,
    /// Tasks that sleep until another releases a lock.
    blocked: TaskSet,
    /// A thread that kthreadd will create, or that has not started yet, and the task that waits for
    /// it.
    newborn: Option<(Task, Task)>,
    /// When momentary tasks last ran, and how many ran then.
    served: (Ns, u64),
    /// The flusher has no work left. It ends as soon as it has the processor.
    flusher_ends: bool,
}

impl Sched {
    /// A run queue on which only the program runs.
    pub fn new(clock_step_ns: u64, facts: &KernelFacts) -> Sched {
        let tick_ns = Ticks::new(facts.ticks_per_second).tick_ns();
        let mut runnable = TaskSet::default();
        runnable.insert(Task::Program);
        Sched {
            clock_step_ns,
            tick_ns,
            clock_ns: 0,
            ticks: 0,
            next_tick: Ns(tick_ns),
            vruntime_ns: [LATENCY_NS; TASKS],
            runnable,
            entered: [0; TASKS],
            entries: 0,
            min_vruntime_ns: LATENCY_NS,
            current: Some(Task::Program),
            left_idle: None,
            ran_ns: 0,
            need_resched: false,
            skips_clock: false,
            next: None,
            rcu: Waiting::new(facts.rcu),
            task_groups: facts.task_groups,
            first_idle_tick: facts.first_idle_tick,
            bandwidth_tick: None,
            idle_workers: vec![Task::BandwidthWorker, Task::Background],
            blocked: TaskSet::default(),
            newborn: None,
            served: (Ns::ZERO, 0),
            flusher_ends: false,
        }
    }

    /// call_rcu: something will be freed after a grace period.
    #[inline]
    pub fn call_rcu(&mut self, now: Ns) {
        self.pass(now);
        match &mut self.rcu {
            Waiting::Tiny { waits } => *waits = self.current.is_some(),
            Waiting::Tree(grace) => grace.call(),
            Waiting::Softirqs => {}
        }
    }

    /// wb_inode_writeback_end: schedules an update of the write bandwidth after BANDWIDTH_INTERVAL,
    /// unless one is already scheduled.
    #[inline]
    pub fn pages_were_written(&mut self, now: Ns) {
        if self.bandwidth_tick.is_none() {
            let due = now.0 / self.tick_ns + BANDWIDTH_INTERVAL_NS / self.tick_ns + 1;
            self.bandwidth_tick = Some(due);
        }
    }

    /// The time of the next timer interrupt.
    pub fn next_tick_after(&self, now: Ns) -> Ns {
        Ns((now.0 / self.tick_ns + 1) * self.tick_ns)
    }

    /// The task that has the processor.
    #[inline]
    pub fn current(&self) -> Option<Task> {
        self.current
    }

    /// Whether more than one task is runnable.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.runnable.has_several()
    }

    /// Whether what is left of a task's work takes no time in this model.
    fn is_momentary(&self, task: Task) -> bool {
        match task {
            Task::RcuThread
            | Task::BandwidthWorker
            | Task::Kthreadd
            | Task::Ksoftirqd
            | Task::Exiting => true,
            Task::Background => self.flusher_ends,
            _ => false,
        }
    }

    /// The same without momentary tasks.
    fn is_contended_but_for_a_moment(&self) -> bool {
        self.is_contended()
            && self.runnable.iter().filter(|&task| !self.is_momentary(task)).count() > 1
    }

    /// When the next timer of the wheel expires, of those that are known here.
    pub fn next_timer(&self) -> Option<Ns> {
        self.bandwidth_tick.map(|tick| Ns(tick * self.tick_ns))
    }

    /// Whether the next tick comes: an idle processor stops its ticks.
    pub fn has_next_tick(&self) -> bool {
        let is_busy = matches!(&self.rcu, Waiting::Tree(grace) if grace.is_busy());
        self.current.is_some() || is_busy || self.first_idle_tick
    }

    /// How many momentary tasks ran at that time.
    pub fn served_at(&self, now: Ns) -> u64 {
        let (at, count) = self.served;
        if at == now {
            count
        } else {
            0
        }
    }

    /// Whether a task is runnable or running.
    #[inline]
    pub fn is_runnable(&self, task: Task) -> bool {
        self.runnable.contains(task)
    }

    /// update_rq_clock and update_curr.
    fn update_current(&mut self, now: Ns) {
        let clock = match self.clock_step_ns {
            1 => now.0,
            step_ns => now.0 / step_ns * step_ns,
        };
        let delta = clock.saturating_sub(self.clock_ns);
        self.clock_ns += delta;
        if let Some(task) = self.current {
            self.vruntime_ns[task as usize] += fair_ns(delta, task);
            self.ran_ns += delta;
        }
        self.update_min_vruntime();
    }

    fn update_min_vruntime(&mut self) {
        if let Some(least) = self.runnable.iter().map(|task| self.vruntime_ns[task as usize]).min()
        {
            self.min_vruntime_ns = self.min_vruntime_ns.max(least);
        }
    }

    /// Handles the ticks up to `now` (scheduler_tick, check_preempt_tick).
    #[inline]
    fn pass(&mut self, now: Ns) {
        if now >= self.next_tick {
            self.pass_ticks(now.0 / self.tick_ns);
            self.next_tick = Ns((self.ticks + 1) * self.tick_ns);
        }
    }

    #[inline(never)]
    fn pass_ticks(&mut self, ticks: u64) {
        if self.current.is_none() {
            self.pass_idle(ticks);
        }
        while self.ticks < ticks {
            self.ticks += 1;
            self.update_current(Ns(self.ticks * self.tick_ns));
            // rcu_sched_clock_irq: a callback waits until the running task has been scheduled.
            self.need_resched |= matches!(self.rcu, Waiting::Tiny { waits: true });
            self.check_preempt_tick();
            self.run_softirqs();
            if self.need_resched && !self.is_contended_but_for_a_moment() {
                let tick = Ns(self.ticks * self.tick_ns);
                // The task reaches a preemption point before this point is seen again.
                self.schedule(tick, self.current);
            }
        }
    }

    /// Ticks of an idle processor: they continue while RCU has work, and a momentary task that they
    /// wake is done at once.
    fn pass_idle(&mut self, ticks: u64) {
        while self.ticks < ticks && matches!(&self.rcu, Waiting::Tree(grace) if grace.is_busy()) {
            self.ticks += 1;
            self.run_softirqs();
        }
        self.ticks = self.ticks.max(ticks);
        if self.bandwidth_tick.take_if(|due| *due <= ticks).is_some() {
            self.take_worker(Task::BandwidthWorker);
            self.idle_workers.push(Task::BandwidthWorker);
        }
    }

    /// The softirqs that a tick raises: timers, then RCU.
    fn run_softirqs(&mut self) {
        let tick = Ns(self.ticks * self.tick_ns);
        if self.bandwidth_tick.take_if(|due| *due <= self.ticks).is_some() {
            self.enqueue(tick, Task::BandwidthWorker);
        }
        let Waiting::Tree(grace) = &mut self.rcu else { return };
        if grace.pass_tick() {
            self.enqueue(tick, Task::RcuThread);
        }
    }

    /// sched_slice.
    fn slice_ns(&self, task: Task) -> u64 {
        let mut all = self.runnable;
        all.insert(task);
        let weights: u64 = all.iter().map(weight).sum();
        calc_delta(LATENCY_NS, weight(task), weights).max(MIN_GRANULARITY_NS)
    }

    fn check_preempt_tick(&mut self) {
        let Some(current) = self.current.filter(|_| self.is_contended()) else { return };
        let ideal_ns = self.slice_ns(current);
        if self.ran_ns > ideal_ns {
            self.need_resched = true;
            // clear_buddies: the task has used up its slice, so it does not remain the buddy.
            self.next = self.next.filter(|&next| next != current);
            return;
        }
        // Within its slice a task is preempted only if it is a slice ahead of the leftmost one.
        let own = self.vruntime_ns[current as usize];
        let ahead =
            self.leftmost_but(Some(current)).map_or(0, |(_, least)| own.saturating_sub(least));
        self.need_resched |= self.ran_ns >= MIN_GRANULARITY_NS && ahead > ideal_ns;
    }

    fn leftmost_but(&self, task: Option<Task>) -> Option<(Task, u64)> {
        let others = self.runnable.iter().filter(|&other| Some(other) != task);
        let first = others
            .min_by_key(|&other| (self.vruntime_ns[other as usize], self.entered[other as usize]));
        first.map(|other| (other, self.vruntime_ns[other as usize]))
    }

    /// __enqueue_entity: right of the tasks of equal `vruntime`.
    fn enter(&mut self, task: Task) {
        self.runnable.insert(task);
        self.entries += 1;
        self.entered[task as usize] = self.entries;
    }

    /// try_to_wake_up, with place_entity and check_preempt_wakeup.
    pub fn wake(&mut self, now: Ns, task: Task) {
        self.pass(now);
        self.blocked.remove(task);
        if task == Task::Background {
            self.flusher_ends = false;
        }
        self.enqueue(now, task);
    }

    /// The wake-up itself: puts the task on the run queue.
    fn enqueue(&mut self, now: Ns, task: Task) {
        if self.runnable.contains(task) {
            return;
        }
        self.update_current(now);
        self.take_worker(task);
        self.enter(task);
        let own = self.vruntime_ns[task as usize].max(self.min_vruntime_ns - SLEEPER_BONUS_NS);
        self.vruntime_ns[task as usize] = own;
        match self.current {
            None => {
                self.left_idle = Some(now);
                self.pick(now, None);
            }
            Some(_) if self.left_idle == Some(now) => {
                if task == Task::Program {
                    self.entered[task as usize] = 0;
                }
                self.pick(now, None);
            }
            Some(_) if self.need_resched => {}
            Some(current) => {
                let ahead = self.vruntime_ns[current as usize].saturating_sub(own);
                if ahead > fair_ns(WAKEUP_GRANULARITY_NS, task) {
                    self.need_resched = true;
                    self.next = Some(task);
                }
            }
        }
        self.skips_clock |= self.need_resched;
    }

    /// wake_up_worker: the flusher's and the bandwidth's work share one worker pool. The most
    /// recently idle worker takes the next work, whichever it is.
    fn take_worker(&mut self, task: Task) {
        if !self.idle_workers.contains(&task) {
            return;
        }
        let worker = self.idle_workers.pop().expect("one is idle");
        if worker != task {
            self.vruntime_ns.swap(task as usize, worker as usize);
            self.idle_workers[0] = worker;
        }
    }

    /// The running flusher has no work left. It ends at once if it is preempted before it sleeps,
    /// whatever locks other tasks hold then.
    pub fn flusher_ends(&mut self) {
        self.flusher_ends = true;
    }

    /// worker_enter_idle: the running flusher has no work left.
    pub fn end_work(&mut self, now: Ns) {
        self.flusher_ends = false;
        self.idle_workers.push(Task::Background);
        self.sleep(now);
    }

    /// The running task goes to sleep; returns the next one.
    pub fn sleep(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.left_idle = None;
        self.raise_rcu(now);
        self.see_clock(now);
        if let Some(task) = self.current.take() {
            self.runnable.remove(task);
            self.next = self.next.filter(|&next| next != task);
        }
        self.update_min_vruntime();
        self.pick(now, None);
        self.current
    }

    /// The running task sleeps until `unblock`.
    pub fn block(&mut self, now: Ns) {
        if let Some(task) = self.current {
            self.blocked.insert(task);
        }
        self.sleep(now);
    }

    /// Wakes the tasks that `block` put to sleep.
    #[inline]
    pub fn unblock(&mut self, now: Ns) {
        for task in self.blocked.iter() {
            self.wake(now, task);
        }
    }

    /// schedule() of a running task that stays runnable because a signal is pending. Returns the
    /// task that runs then.
    pub fn yields(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.left_idle = None;
        self.schedule(now, self.current);
        self.current
    }

    /// schedule(), if the running task should be preempted. Returns the task that runs then.
    #[inline]
    pub fn resched(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.left_idle = None;
        if self.need_resched {
            self.schedule(now, self.current);
        }
        self.current
    }

    /// yield(): the next task runs, unless it is far behind the yielding one
    /// (wakeup_preempt_entity).
    pub fn yield_now(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.update_current(now);
        let own = self.current.map_or(0, |task| self.vruntime_ns[task as usize]);
        match self.leftmost_but(self.current) {
            Some((next, vruntime)) if vruntime <= own + WAKEUP_GRANULARITY_NS => {
                if let Some(before) = self.current.replace(next) {
                    self.enter(before);
                }
                (self.ran_ns, self.need_resched, self.skips_clock) = (0, false, false);
            }
            _ => {}
        }
        self.current
    }

    /// The head of __schedule: updates the clock, unless that is to be skipped.
    fn see_clock(&mut self, now: Ns) {
        if !std::mem::take(&mut self.skips_clock) {
            self.update_current(now);
        }
    }

    /// rcu_qs at the head of __schedule: pending callbacks wake ksoftirqd (tiny.c).
    fn raise_rcu(&mut self, now: Ns) {
        if matches!(self.rcu, Waiting::Tiny { waits: true }) {
            self.rcu = Waiting::Tiny { waits: false };
            self.enqueue(now, Task::Ksoftirqd);
        }
    }

    /// __schedule of a task that stays runnable.
    #[inline(never)]
    fn schedule(&mut self, now: Ns, before: Option<Task>) {
        self.raise_rcu(now);
        self.see_clock(now);
        self.pick(now, before);
    }

    /// pick_next_task. Momentary tasks do their work at once and sleep.
    fn pick(&mut self, now: Ns, before: Option<Task>) {
        self.pick_next(before);
        while let Some(task) = self.current.filter(|&task| self.ends_at_once(task)) {
            self.update_current(now);
            self.do_momentary(now, task);
            self.current = None;
            self.runnable.remove(task);
            self.update_min_vruntime();
            self.pick_next(None);
        }
    }

    /// The work of a momentary task.
    fn do_momentary(&mut self, now: Ns, task: Task) {
        match task {
            Task::Kthreadd => self.clone_newborn(),
            Task::Ksoftirqd | Task::Exiting => {}
            Task::Background => {
                self.flusher_ends = false;
                self.idle_workers.push(task);
            }
            Task::BandwidthWorker => {
                self.idle_workers.push(task);
                self.served = (now, self.served_at(now) + 1);
            }
            Task::RcuThread => {
                if let Waiting::Tree(grace) = &mut self.rcu {
                    grace.run_thread();
                }
                self.served = (now, self.served_at(now) + 1);
            }
            _ => self.begin_newborn(now),
        }
    }

    /// pick_next_task_fair: the smallest vruntime, or the task whose wake-up preempts, unless that
    /// is unfair. Of equal tasks not the one that was running.
    fn pick_next(&mut self, before: Option<Task>) {
        self.need_resched = false;
        if let Some(task) = before {
            self.enter(task);
        }
        if let Waiting::Tiny { waits } = &mut self.rcu {
            *waits = false;
        }
        let other = self.leftmost_but(before);
        let own = before.map(|task| (task, self.vruntime_ns[task as usize]));
        let left = match (other, own) {
            (Some((_, least)), Some((_, own_ns))) if own_ns < least => own,
            (None, _) => own,
            _ => other,
        };
        let buddy = self.next.take().zip(left).and_then(|(next, (left, least))| {
            // wakeup_preempt_entity: a buddy may be at most a wake-up granularity behind.
            let behind = self.vruntime_ns[next as usize].saturating_sub(least);
            (behind <= fair_ns(WAKEUP_GRANULARITY_NS, left)).then_some(next)
        });
        let next = buddy.or(left.map(|(task, _)| task));
        // With task groups, a task that keeps running has not been picked again.
        if next != self.current || before.is_none() || !self.task_groups {
            self.ran_ns = 0;
        }
        self.current = next;
    }
}

#[cfg(test)]
mod tests;
