//! The scheduler: which of the tasks that want to run has the processor.
//!
//! Mirrors kernel/sched/fair.c of Linux 6.1 (update_curr, place_entity, check_preempt_wakeup,
//! check_preempt_tick, pick_next_entity) on one processor with voluntary preemption. Its tasks wait
//! on a [`Mutex`]. A task that should make way does so when it next asks (`resched`: cond_resched,
//! might_sleep, the return to user space), not before.
//!
//! The scheduler's clock counts nanoseconds where an architecture has such a clock, and ticks
//! where it has none (user-mode Linux: the weak sched_clock of kernel/sched/clock.c). By ticks a
//! task that slept through every tick has never run.
//!
//! Left out: more processors and what only they need (spinning on a mutex), the last buddy (for
//! eight tasks or more), tasks that are in no one's way.
//!
//! Invariants:
//! 1. Some task has the processor if any is runnable.
//! 2. `min_vruntime` never goes back.

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

/// GENTLE_FAIR_SLEEPERS: half of the latency is what a sleeper is given in advance.
const SLEEPER_BONUS_NS: u64 = LATENCY_NS / 2;
/// BANDWIDTH_INTERVAL of mm/page-writeback.c.
const BANDWIDTH_INTERVAL_NS: u64 = 200_000_000;
/// How much later than it asked a sleeping program wakes up at the latest (timer_slack_ns of an
/// ordinary thread).
pub const TIMER_SLACK: Ns = Ns(50_000);

/// Whether what a task does takes no time here.
fn is_momentary(task: Task) -> bool {
    matches!(
        task,
        Task::RcuThread | Task::BandwidthWorker | Task::Kthreadd | Task::Ksoftirqd | Task::Exiting
    )
}

/// One processor's run queue.
#[derive(Clone, Debug)]
pub struct Sched {
    /// What the scheduler's clock counts in.
    clock_step_ns: u64,
    /// 1 / CONFIG_HZ.
    tick_ns: u64,
    clock_ns: u64,
    ticks: u64,
    /// When the tick after these is.
    next_tick: Ns,
    vruntime_ns: [u64; TASKS],
    runnable: TaskSet,
    min_vruntime_ns: u64,
    current: Option<Task>,
    /// What `current` has run since it was picked.
    ran_ns: u64,
    need_resched: bool,
    /// RQCF_REQ_SKIP: somebody was woken when `current` was to make way already, so the clock is
    /// not looked at again when it does, and what it still runs until then is charged to who comes
    /// next.
    skips_clock: bool,
    /// cfs_rq->next: whose wake-up asks `current` to make way.
    next: Option<Task>,
    rcu: Waiting,
    /// CONFIG_FAIR_GROUP_SCHED.
    task_groups: bool,
    first_idle_tick: bool,
    /// The tick at whose end the worker for the bandwidth is woken (bw_dwork).
    bandwidth_tick: Option<u64>,
    /// The idle ones of the two workers, the one that became idle last at the end (the pool's
    /// idle_list).
    idle_workers: Vec<Task>,
    /// Who sleeps for what another has locked.
    blocked: TaskSet,
    /// A thread that kthreadd is to create, or that has not begun, and who waits for it.
    newborn: Option<(Task, Task)>,
    /// When a task with a moment's work last had the processor, and how many had it then.
    served: (Ns, u64),
}

impl Sched {
    /// Only the program runs.
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
            min_vruntime_ns: LATENCY_NS,
            current: Some(Task::Program),
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
        }
    }

    /// call_rcu: something is freed when every task has been scheduled.
    #[inline]
    pub fn call_rcu(&mut self, now: Ns) {
        self.pass(now);
        match &mut self.rcu {
            Waiting::Tiny { waits } => *waits = self.current.is_some(),
            Waiting::Tree(grace) => grace.call(),
            Waiting::Softirqs => {}
        }
    }

    /// wb_inode_writeback_end: how fast pages are written is looked at when BANDWIDTH_INTERVAL has
    /// passed, unless that is on its way.
    #[inline]
    pub fn pages_were_written(&mut self, now: Ns) {
        if self.bandwidth_tick.is_none() {
            let due = now.0 / self.tick_ns + BANDWIDTH_INTERVAL_NS / self.tick_ns + 1;
            self.bandwidth_tick = Some(due);
        }
    }

    /// When the timer interrupt comes next.
    pub fn next_tick_after(&self, now: Ns) -> Ns {
        Ns((now.0 / self.tick_ns + 1) * self.tick_ns)
    }

    /// Who has the processor.
    #[inline]
    pub fn current(&self) -> Option<Task> {
        self.current
    }

    /// Whether more than one task wants the processor.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.runnable.has_several()
    }

    /// The same of tasks that need it for more than a moment.
    fn is_contended_but_for_a_moment(&self) -> bool {
        self.runnable.iter().filter(|&task| !is_momentary(task)).count() > 1
    }

    /// Whether the next tick comes: one that is idle stops them.
    pub fn has_next_tick(&self) -> bool {
        let is_busy = matches!(&self.rcu, Waiting::Tree(grace) if grace.is_busy());
        self.current.is_some() || is_busy || self.first_idle_tick
    }

    /// How many tasks with a moment's work have had the processor at that time.
    pub fn served_at(&self, now: Ns) -> u64 {
        let (at, count) = self.served;
        if at == now {
            count
        } else {
            0
        }
    }

    /// Whether a task runs or wants to.
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

    /// The ticks up to `now` (scheduler_tick, check_preempt_tick).
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
            self.need_resched |= matches!(self.rcu, Waiting::Tiny { waits: true });
            self.check_preempt_tick();
            self.run_softirqs();
            if self.need_resched && !self.is_contended_but_for_a_moment() {
                let tick = Ns(self.ticks * self.tick_ns);
                self.schedule(tick, self.current); // It asks before it is seen here again.
            }
        }
    }

    /// Ticks of an idle processor: they go on as long as RCU has something to do, and who is woken
    /// is done at once.
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

    /// What a tick has raised: timers, then RCU.
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
            self.next = self.next.filter(|&next| next != current);
            return;
        }
        let own = self.vruntime_ns[current as usize];
        let ahead =
            self.leftmost_but(Some(current)).map_or(0, |(_, least)| own.saturating_sub(least));
        self.need_resched |= self.ran_ns >= MIN_GRANULARITY_NS && ahead > ideal_ns;
    }

    fn leftmost_but(&self, task: Option<Task>) -> Option<(Task, u64)> {
        let others = self.runnable.iter().filter(|&other| Some(other) != task);
        others.map(|other| (other, self.vruntime_ns[other as usize])).min_by_key(|&(_, v)| v)
    }

    /// try_to_wake_up, with place_entity and check_preempt_wakeup.
    pub fn wake(&mut self, now: Ns, task: Task) {
        self.pass(now);
        self.blocked.remove(task);
        self.enqueue(now, task);
    }

    /// The wake-up itself.
    fn enqueue(&mut self, now: Ns, task: Task) {
        if self.runnable.contains(task) {
            return;
        }
        self.update_current(now);
        self.take_worker(task);
        self.runnable.insert(task);
        let own = self.vruntime_ns[task as usize].max(self.min_vruntime_ns - SLEEPER_BONUS_NS);
        self.vruntime_ns[task as usize] = own;
        match self.current {
            None => self.pick(now, None),
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

    /// wake_up_worker: the flusher and the bandwidth are works of one pool, and the worker that
    /// became idle last does whichever comes next.
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

    /// worker_enter_idle: the flusher, which has the processor, has nothing left to do.
    pub fn end_work(&mut self, now: Ns) {
        self.idle_workers.push(Task::Background);
        self.sleep(now);
    }

    /// The task that has the processor goes to sleep; who has it next.
    pub fn sleep(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
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

    /// The task that has the processor goes to sleep until what it needs is unlocked.
    pub fn block(&mut self, now: Ns) {
        if let Some(task) = self.current {
            self.blocked.insert(task);
        }
        self.sleep(now);
    }

    /// What tasks needed is unlocked.
    #[inline]
    pub fn unblock(&mut self, now: Ns) {
        for task in self.blocked.iter() {
            self.wake(now, task);
        }
    }

    /// schedule of a task that could go on, because a signal is pending: who runs then.
    pub fn yields(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.schedule(now, self.current);
        self.current
    }

    /// schedule, if the running task should make way; who runs then.
    #[inline]
    pub fn resched(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        if self.need_resched {
            self.schedule(now, self.current);
        }
        self.current
    }

    /// yield: the next task runs, unless it is far behind the one that yields
    /// (wakeup_preempt_entity).
    pub fn yield_now(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.update_current(now);
        let own = self.current.map_or(0, |task| self.vruntime_ns[task as usize]);
        match self.leftmost_but(self.current) {
            Some((next, vruntime)) if vruntime <= own + WAKEUP_GRANULARITY_NS => {
                (self.current, self.ran_ns, self.need_resched) = (Some(next), 0, false);
                self.skips_clock = false;
            }
            _ => {}
        }
        self.current
    }

    /// The head of __schedule: the clock goes on, unless that is to be left out.
    fn see_clock(&mut self, now: Ns) {
        if !std::mem::take(&mut self.skips_clock) {
            self.update_current(now);
        }
    }

    /// rcu_qs at the head of __schedule: callbacks that wait wake ksoftirqd (tiny.c).
    fn raise_rcu(&mut self, now: Ns) {
        if matches!(self.rcu, Waiting::Tiny { waits: true }) {
            self.rcu = Waiting::Tiny { waits: false };
            self.enqueue(now, Task::Ksoftirqd);
        }
    }

    /// __schedule of a task that could go on.
    #[inline(never)]
    fn schedule(&mut self, now: Ns, before: Option<Task>) {
        self.raise_rcu(now);
        self.see_clock(now);
        self.pick(now, before);
    }

    /// pick_next_task. Who has only a moment's work is done with it and sleeps.
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

    /// What a task does that has only a moment's work.
    fn do_momentary(&mut self, now: Ns, task: Task) {
        match task {
            Task::Kthreadd => self.clone_newborn(),
            Task::Ksoftirqd | Task::Exiting => {}
            Task::BandwidthWorker => {
                self.idle_workers.push(task);
                self.served = (now, self.served_at(now) + 1);
            }
            Task::RcuThread => {
                if let Waiting::Tree(grace) = &mut self.rcu {
                    grace.go_on();
                }
                self.served = (now, self.served_at(now) + 1);
            }
            _ => self.begin_newborn(now),
        }
    }

    /// pick_next_task_fair: the least vruntime, or the task whose wake-up asked for it if that is
    /// not unfair; of equals not the one that was running.
    fn pick_next(&mut self, before: Option<Task>) {
        self.need_resched = false;
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
            let behind = self.vruntime_ns[next as usize].saturating_sub(least);
            (behind <= fair_ns(WAKEUP_GRANULARITY_NS, left)).then_some(next)
        });
        let next = buddy.or(left.map(|(task, _)| task));
        // With groups of tasks who goes on has not been picked anew.
        if next != self.current || before.is_none() || !self.task_groups {
            self.ran_ns = 0;
        }
        self.current = next;
    }
}

#[cfg(test)]
mod tests;
