//! The scheduler: which runnable task has the processor.
//!
//! Mirrors kernel/sched/core.c of Linux 6.1 and 6.12 (try_to_wake_up, __schedule, scheduler_tick)
//! on one processor with voluntary preemption, over the fair scheduler of the kernel: `cfs` before
//! 6.6, `eevdf` since. Tasks block on a [`Mutex`]. A task that should be preempted is so at its
//! next preemption point (`resched`: cond_resched, might_sleep, the return to user space), not
//! before.
//!
//! The scheduler's clock counts nanoseconds if the architecture has such a clock, else ticks
//! (user-mode Linux: the weak sched_clock of kernel/sched/clock.c). By ticks, a task that was
//! asleep at every tick has never run.
//!
//! Left out: multiple processors and what only they need (spinning on a mutex), the lazy preemption
//! of kernels since 6.13 on machines that have it (CONFIG_PREEMPT_LAZY), and tasks that compete
//! with none of the modelled ones.
//!
//! Invariant: some task has the processor if any is runnable.

mod cfs;
mod eevdf;
mod fair;
mod fair_class;
mod kthread;
mod mutex;
mod rcu;
mod task;
mod ticks;
mod workers;

pub use mutex::Mutex;
pub use task::{Task, TaskSet, TASKS, TASK_NAMES};
pub use ticks::Ticks;

use crate::profile::KernelFacts;
use crate::units::Ns;
use fair::Queue;
use fair_class::Fair;
use rcu::Waiting;
use workers::Workers;

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
    fair: Fair,
    runnable: TaskSet,
    current: Option<Task>,
    /// The interrupt that ended the processor's idleness, until a task runs. It may wake several
    /// tasks; the processor then picks one of them all. The program enters the tree first: its
    /// hrtimer expires before the timer wheel, and before the timers with more slack.
    left_idle: Option<Ns>,
    need_resched: bool,
    /// RQCF_REQ_SKIP: a task was woken when `current` was already to be preempted. The preemption
    /// then does not update the clock, and the time until it is charged to the next task.
    skips_clock: bool,
    rcu: Waiting,
    first_idle_tick: bool,
    /// The tick at which the bandwidth worker is woken (bw_dwork).
    bandwidth_tick: Option<u64>,
    workers: Workers,
    /// Threads that were woken to start (kthread_run), and have nothing to do yet.
    starting: TaskSet,
    /// A call into MTD has the chip's lock, on which UBI's thread blocks.
    chip_is_locked: bool,
    thread_blocks: bool,
    /// Another file system has a flusher, for which `sync` waits first.
    other_flusher: bool,
    /// Tasks that sleep until another releases a lock.
    blocked: TaskSet,
    /// A thread that kthreadd will create, or that has not started yet, and the task that waits for
    /// it.
    newborn: Option<(Task, Task)>,
    /// When momentary tasks last ran, and how many ran then.
    served: (Ns, u64),
    /// The flusher has no work left. It ends as soon as it has the processor.
    flusher_ends: bool,
    /// When the program's timer expires, within a step of another task.
    alarm: Option<Ns>,
    /// ksoftirqd is a real-time task and has been woken: it runs before any other.
    softirqs_pend: bool,
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
            fair: Fair::new(facts, tick_ns),
            runnable,
            current: Some(Task::Program),
            left_idle: None,
            need_resched: false,
            skips_clock: false,
            rcu: Waiting::new(facts.rcu),
            first_idle_tick: facts.first_idle_tick,
            bandwidth_tick: None,
            workers: Workers::new(),
            starting: TaskSet::default(),
            chip_is_locked: false,
            thread_blocks: false,
            other_flusher: facts.other_flusher,
            blocked: TaskSet::default(),
            newborn: None,
            served: (Ns::ZERO, 0),
            flusher_ends: false,
            alarm: None,
            softirqs_pend: false,
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
            | Task::OtherFlusher
            | Task::Kthreadd
            | Task::Ksoftirqd
            | Task::Exiting => true,
            Task::Background => self.flusher_ends,
            Task::Program => self.sleeps_next(),
            Task::UbiThread => self.chip_is_locked || self.starting.contains(task),
            _ => self.starting.contains(task),
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
        let queue = self.queue();
        self.need_resched |= self.fair.class().update_curr(delta, queue);
    }

    /// What the scheduler's class sees.
    fn queue(&self) -> Queue {
        Queue { runnable: self.runnable, current: self.current }
    }

    /// Handles the ticks up to `now` (scheduler_tick).
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
            if let Some(rang) = self.alarm.take_if(|due| due.0 <= self.ticks * self.tick_ns) {
                self.enqueue(rang, Task::Program);
            }
            self.update_current(Ns(self.ticks * self.tick_ns));
            // rcu_sched_clock_irq: a callback waits until the running task has been scheduled.
            self.need_resched |= matches!(self.rcu, Waiting::Tiny { waits: true });
            let queue = self.queue();
            self.need_resched |= self.fair.class().task_tick(queue);
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
            if self.fair.class().has_lag() {
                // Alone on the queue it loses its lag.
                let queue = self.queue();
                self.fair.class().enqueue_task(Task::BandwidthWorker, queue);
                self.fair.class().dequeue_task(Task::BandwidthWorker, queue, false);
            }
            self.enter_idle(Task::BandwidthWorker);
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

    /// Handles the ticks up to `now` of a call into MTD. Returns whether UBI's thread was scheduled
    /// meanwhile and blocks on the chip's lock.
    pub fn pass_locked(&mut self, now: Ns) -> bool {
        if !self.fair.class().has_lag() {
            return false;
        }
        self.chip_is_locked = true;
        self.pass(now);
        self.chip_is_locked = false;
        std::mem::take(&mut self.thread_blocks)
    }

    /// The sleeping program's timer expires then, before a tick of the next step of a task.
    pub fn set_alarm(&mut self, due: Option<Ns>) {
        self.alarm = due;
    }

    /// try_to_wake_up.
    pub fn wake(&mut self, now: Ns, task: Task) {
        self.pass(now);
        self.blocked.remove(task);
        self.starting.remove(task);
        match task {
            Task::Background => self.flusher_ends = false,
            Task::Program => self.sleeps_no_more(),
            _ => {}
        }
        self.enqueue(now, task);
    }

    /// The wake-up itself: puts the task on the run queue.
    fn enqueue(&mut self, now: Ns, task: Task) {
        if self.runnable.contains(task) {
            return;
        }
        self.take_worker(task);
        self.make_runnable(now, task);
    }

    /// The same of a worker that already has its work.
    fn make_runnable(&mut self, now: Ns, task: Task) {
        if self.runnable.contains(task) {
            return;
        }
        self.update_current(now);
        let left_idle = self.left_idle == Some(now) && self.current.is_some();
        let queue = self.queue();
        if left_idle && task == Task::Program {
            self.fair.class().enqueue_first(task, queue);
        } else {
            self.fair.class().enqueue_task(task, queue);
        }
        self.runnable.insert(task);
        match self.current {
            None => {
                self.left_idle = Some(now);
                self.pick(now, None);
            }
            Some(_) if left_idle => self.pick(now, None),
            Some(_) => {
                let queue = self.queue();
                let is_due = self.need_resched;
                self.need_resched |= self.fair.class().wakeup_preempt(task, queue, is_due);
            }
        }
        self.skips_clock |= self.need_resched;
    }

    /// The running flusher has no work left. It ends at once if it is preempted before it sleeps,
    /// whatever locks other tasks hold then.
    pub fn flusher_ends(&mut self) {
        self.flusher_ends = true;
    }

    /// worker_enter_idle: the running flusher has no work left.
    pub fn end_work(&mut self, now: Ns) {
        self.flusher_ends = false;
        self.pass(now);
        self.finish_flusher(now);
        self.sleep(now);
    }

    /// The running task goes to sleep; returns the next one.
    pub fn sleep(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.left_idle = None;
        self.raise_rcu(now);
        self.see_clock(now);
        if let Some(task) = self.current {
            self.dequeue(task);
        }
        self.pick(now, None);
        self.current
    }

    /// try_to_block_task of the running task.
    fn dequeue(&mut self, task: Task) {
        self.current = None;
        self.runnable.remove(task);
        let queue = self.queue();
        self.fair.class().dequeue_task(task, queue, task == Task::Exiting);
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

    /// yield(): the next task runs, unless the scheduler keeps the yielding one.
    pub fn yield_now(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        self.update_current(now);
        let queue = self.queue();
        self.fair.class().yield_task(queue);
        self.skips_clock = true;
        self.schedule(now, self.current);
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
            match self.fair.class().has_lag() {
                true => self.softirqs_pend = true,
                false => self.enqueue(now, Task::Ksoftirqd),
            }
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
        if std::mem::take(&mut self.softirqs_pend) {
            self.fair.class().put_prev_task();
        }
        self.pick_next(before);
        while let Some(task) = self.current.filter(|&task| self.ends_at_once(task)) {
            self.update_current(now);
            let sleeps = self.do_momentary(now, task);
            if sleeps {
                self.dequeue(task);
            }
            self.pick_next(Some(task).filter(|_| !sleeps));
        }
    }

    /// The work of a momentary task. Returns whether the task sleeps then, or is preempted before.
    fn do_momentary(&mut self, now: Ns, task: Task) -> bool {
        match task {
            _ if self.newborn.is_some_and(|(newborn, _)| newborn == task) => {
                self.begin_newborn(now);
            }
            Task::Kthreadd => self.clone_newborn(),
            Task::Ksoftirqd | Task::Exiting => {}
            Task::Background => {
                self.flusher_ends = false;
                self.finish_flusher(now);
            }
            Task::BandwidthWorker => {
                if self.do_momentary_work(now, task) {
                    self.end_flush(now);
                    self.served = (now, self.served_at(now) + 1);
                }
            }
            Task::OtherFlusher => _ = self.do_momentary_work(now, task),
            Task::Program => return self.begin_wait(now),
            Task::UbiThread if self.chip_is_locked => self.thread_blocks = true,
            Task::RcuThread => {
                if let Waiting::Tree(grace) = &mut self.rcu {
                    grace.run_thread();
                }
                self.served = (now, self.served_at(now) + 1);
            }
            _ => self.starting.remove(task),
        }
        true
    }

    /// The end of __schedule.
    fn pick_next(&mut self, before: Option<Task>) {
        self.need_resched = false;
        if let Waiting::Tiny { waits } = &mut self.rcu {
            *waits = false;
        }
        let queue = self.queue();
        self.current = self.fair.class().pick_next_task(before, queue);
    }
}

#[cfg(test)]
mod tests;
