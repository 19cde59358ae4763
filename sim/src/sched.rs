//! The scheduler: which of the tasks that want to run has the processor.
//!
//! Mirrors kernel/sched/fair.c of Linux 6.1 (update_curr, place_entity, check_preempt_wakeup,
//! check_preempt_tick, pick_next_entity) on one processor with 250 ticks a second and voluntary
//! preemption, for tasks of nice 0 in one group. A task that should make way does so when it next
//! asks (`resched`: cond_resched, might_sleep, the return to user space), not before.
//!
//! The scheduler's clock counts nanoseconds where an architecture has such a clock, and ticks
//! where it has none (user-mode Linux: the weak sched_clock of kernel/sched/clock.c). By ticks a
//! task that slept through every tick has never run.
//!
//! Left out: other nice levels, more processors, tasks that are in no one's way.
//!
//! Invariants:
//! 1. Some task has the processor if any is runnable.
//! 2. `min_vruntime` never goes back.

use crate::trace::{Task, TASKS};
use crate::units::Ns;

/// CONFIG_HZ of 250.
const TICK_NS: u64 = 4_000_000;
/// sysctl_sched_latency and sysctl_sched_min_granularity on one processor.
const LATENCY_NS: u64 = 6_000_000;
const MIN_GRANULARITY_NS: u64 = 750_000;
/// sysctl_sched_wakeup_granularity on one processor.
const WAKEUP_GRANULARITY_NS: u64 = 1_000_000;
/// GENTLE_FAIR_SLEEPERS: half of the latency is what a sleeper is given in advance.
const SLEEPER_BONUS_NS: u64 = LATENCY_NS / 2;

/// One processor's run queue.
#[derive(Clone, Debug)]
pub struct Sched {
    /// What the scheduler's clock counts in.
    clock_step_ns: u64,
    clock_ns: u64,
    ticks: u64,
    vruntime_ns: [u64; TASKS],
    runnable: [bool; TASKS],
    min_vruntime_ns: u64,
    current: Option<Task>,
    /// What `current` has run since it was picked.
    ran_ns: u64,
    need_resched: bool,
}

impl Sched {
    /// Only the program runs.
    pub fn new(clock_step_ns: u64) -> Sched {
        let mut runnable = [false; TASKS];
        runnable[Task::Program as usize] = true;
        Sched {
            clock_step_ns,
            clock_ns: 0,
            ticks: 0,
            vruntime_ns: [LATENCY_NS; TASKS],
            runnable,
            min_vruntime_ns: LATENCY_NS,
            current: Some(Task::Program),
            ran_ns: 0,
            need_resched: false,
        }
    }

    /// Who has the processor.
    #[inline]
    pub fn current(&self) -> Option<Task> {
        self.current
    }

    /// Whether more than one task wants the processor.
    #[inline]
    pub fn is_contended(&self) -> bool {
        self.runnable.iter().filter(|&&runnable| runnable).count() > 1
    }

    /// Whether a task runs or wants to.
    #[inline]
    pub fn is_runnable(&self, task: Task) -> bool {
        self.runnable[task as usize]
    }

    /// update_curr.
    fn update_current(&mut self, now: Ns) {
        let clock = now.0 / self.clock_step_ns * self.clock_step_ns;
        let delta = clock.saturating_sub(self.clock_ns);
        self.clock_ns += delta;
        if let Some(task) = self.current {
            self.vruntime_ns[task as usize] += delta;
            self.ran_ns += delta;
        }
        self.update_min_vruntime();
    }

    fn update_min_vruntime(&mut self) {
        let runnable = (0..TASKS).filter(|&task| self.runnable[task]);
        if let Some(least) = runnable.map(|task| self.vruntime_ns[task]).min() {
            self.min_vruntime_ns = self.min_vruntime_ns.max(least);
        }
    }

    /// The ticks up to `now` (scheduler_tick, check_preempt_tick).
    fn pass(&mut self, now: Ns) {
        let ticks = now.0 / TICK_NS;
        if self.current.is_none() {
            self.ticks = ticks;
        }
        while self.ticks < ticks {
            self.ticks += 1;
            self.update_current(Ns(self.ticks * TICK_NS));
            self.check_preempt_tick();
        }
        self.update_current(now);
    }

    fn check_preempt_tick(&mut self) {
        let running = self.runnable.iter().filter(|&&runnable| runnable).count() as u64;
        let Some(current) = self.current.filter(|_| running > 1) else { return };
        let ideal_ns = LATENCY_NS / running;
        let own = self.vruntime_ns[current as usize];
        let ahead =
            self.leftmost_but(Some(current)).map_or(0, |(_, least)| own.saturating_sub(least));
        self.need_resched |=
            self.ran_ns > ideal_ns || (self.ran_ns >= MIN_GRANULARITY_NS && ahead > ideal_ns);
    }

    fn leftmost_but(&self, task: Option<Task>) -> Option<(Task, u64)> {
        let others = Task::ALL.into_iter().filter(|&other| Some(other) != task);
        let runnable = others.filter(|&other| self.runnable[other as usize]);
        runnable.map(|other| (other, self.vruntime_ns[other as usize])).min_by_key(|&(_, v)| v)
    }

    /// A thread of this name is made (task_fork_fair, with START_DEBIT): a slice behind the others, the
    /// thread that makes it among them. It sleeps as yet.
    pub fn fork(&mut self, now: Ns, task: Task) {
        self.pass(now);
        let others = Task::ALL.into_iter().filter(|&other| self.is_runnable(other)).count() as u64;
        self.runnable[task as usize] = false;
        self.vruntime_ns[task as usize] = self.min_vruntime_ns + LATENCY_NS / (others + 1);
    }

    /// try_to_wake_up, with place_entity and check_preempt_wakeup.
    pub fn wake(&mut self, now: Ns, task: Task) {
        self.pass(now);
        if std::mem::replace(&mut self.runnable[task as usize], true) {
            return;
        }
        let own = self.vruntime_ns[task as usize].max(self.min_vruntime_ns - SLEEPER_BONUS_NS);
        self.vruntime_ns[task as usize] = own;
        match self.current {
            None => self.pick(None),
            Some(current) => {
                let ahead = self.vruntime_ns[current as usize].saturating_sub(own);
                self.need_resched |= ahead > WAKEUP_GRANULARITY_NS;
            }
        }
    }

    /// The task that has the processor goes to sleep; who has it next.
    pub fn sleep(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        if let Some(task) = self.current.take() {
            self.runnable[task as usize] = false;
        }
        self.update_min_vruntime();
        self.pick(None);
        self.current
    }

    /// schedule, if the running task should make way; who runs then.
    pub fn resched(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        if self.need_resched {
            self.pick(self.current);
        }
        self.current
    }

    /// yield: the next task runs, unless it is far behind the one that yields (wakeup_preempt_entity).
    pub fn yield_now(&mut self, now: Ns) -> Option<Task> {
        self.pass(now);
        let own = self.current.map_or(0, |task| self.vruntime_ns[task as usize]);
        match self.leftmost_but(self.current) {
            Some((next, vruntime)) if vruntime <= own + WAKEUP_GRANULARITY_NS => {
                (self.current, self.ran_ns, self.need_resched) = (Some(next), 0, false);
            }
            _ => {}
        }
        self.current
    }

    /// pick_next_task_fair: the least vruntime; of equals not the one that was running.
    fn pick(&mut self, before: Option<Task>) {
        self.need_resched = false;
        let other = self.leftmost_but(before);
        let own = before.map(|task| (task, self.vruntime_ns[task as usize]));
        let next = match (other, own) {
            (Some((_, least)), Some((task, own))) if own < least => Some(task),
            (Some((task, _)), _) => Some(task),
            (None, own) => own.map(|(task, _)| task),
        };
        if next != self.current || before.is_none() {
            self.ran_ns = 0;
        }
        self.current = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after_sleep(clock_step_ns: u64) -> Sched {
        let mut sched = Sched::new(clock_step_ns);
        sched.resched(Ns(400 * MS));
        sched
    }

    #[test]
    fn a_thread_that_has_slept_long_runs_at_once() {
        let mut sched = after_sleep(TICK_NS);
        sched.wake(Ns(401 * MS), Task::UbiThread);
        assert_eq!(sched.current(), Some(Task::Program), "until it asks");
        assert_eq!(sched.resched(Ns(401 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.sleep(Ns(403 * MS)), Some(Task::Program));
    }

    /// By ticks: one that fell into its run counts four milliseconds, more than it had in advance.
    #[test]
    fn a_thread_that_a_tick_found_running_waits_for_the_next() {
        let mut sched = after_sleep(TICK_NS);
        sched.wake(Ns(402 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(402 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.resched(Ns(405 * MS)), Some(Task::Program), "the tick at 404 ms");
        assert_eq!(sched.resched(Ns(407 * MS)), Some(Task::Program));
        assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::UbiThread), "the next one");
        assert_eq!(sched.sleep(Ns(409 * MS)), Some(Task::Program));
        sched.wake(Ns(409 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(409 * MS)), Some(Task::UbiThread), "three behind the program");
    }

    #[test]
    fn who_yields_is_passed_by_who_is_not_far_behind() {
        let mut sched = after_sleep(1);
        sched.wake(Ns(400 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(400 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.yield_now(Ns(401 * MS)), Some(Task::UbiThread), "two behind");
        assert_eq!(sched.yield_now(Ns(402_500_000)), Some(Task::Program));
    }

    /// By nanoseconds: a run of 2.3 ms leaves 0.7 of what it had in advance, too little to be let in.
    #[test]
    fn a_thread_that_has_just_run_waits_for_the_tick_by_a_finer_clock_too() {
        let mut sched = after_sleep(1);
        sched.wake(Ns(400 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(400 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.sleep(Ns(402_300_000)), Some(Task::Program));
        sched.wake(Ns(402_300_000), Task::UbiThread);
        assert_eq!(sched.resched(Ns(402_300_000)), Some(Task::Program));
    }
}
