//! Which task has the processor when, in the cases that the rules were written for.

use super::cfs::Cfs;
use super::*;
use crate::profile::Scheduler;

const MS: u64 = 1_000_000;

const TICK_NS: u64 = 4 * MS;

/// The scheduler of a board's kernel, or of user-mode Linux if the clock counts ticks.
fn new(clock_step_ns: u64) -> Sched {
    let is_uml = clock_step_ns == TICK_NS;
    let facts = if is_uml { KernelFacts::USER_MODE } else { KernelFacts::DEBIAN };
    Sched::new(clock_step_ns, &facts)
}

/// The queue of a kernel before 6.6.
fn cfs(sched: &mut Sched) -> &mut Cfs {
    match &mut sched.fair {
        Fair::Cfs(cfs) => cfs,
        Fair::Eevdf(_) => panic!("the kernel is older"),
    }
}

fn after_sleep(clock_step_ns: u64) -> Sched {
    let mut sched = new(clock_step_ns);
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

/// By ticks: a tick within its run charges the task 4 ms, more than its sleeper bonus.
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

/// The interrupt at which a write-buffer's timer and the program's sleep end wakes both.
#[test]
fn of_the_tasks_that_an_interrupt_wakes_from_idle_the_leftmost_runs() {
    for (charged_ns, next) in [(0, Task::UbifsThread), (4 * MS, Task::Program)] {
        let mut sched = after_sleep(TICK_NS);
        sched.sleep(Ns(401 * MS));
        let queue = cfs(&mut sched);
        queue.vruntime_ns[Task::UbifsThread as usize] = queue.min_vruntime_ns - 3 * MS + charged_ns;
        sched.wake(Ns(402 * MS), Task::Program);
        sched.wake(Ns(402 * MS), Task::UbifsThread);
        assert_eq!(sched.resched(Ns(402 * MS)), Some(next));
    }
}

#[test]
fn of_equal_tasks_the_one_that_woke_first_runs() {
    let pair = [Task::Background, Task::UbifsThread];
    for [first, second] in [pair, [pair[1], pair[0]]] {
        let mut sched = after_sleep(1);
        sched.sleep(Ns(401 * MS));
        sched.wake(Ns(500 * MS), first);
        sched.wake(Ns(500 * MS), second);
        assert_eq!(sched.resched(Ns(500 * MS)), Some(first));
    }
}

#[test]
fn the_programs_timer_expires_before_the_flushers() {
    let mut sched = after_sleep(1);
    sched.sleep(Ns(401 * MS));
    let queue = cfs(&mut sched);
    queue.vruntime_ns[Task::Program as usize] = queue.min_vruntime_ns - 3 * MS;
    sched.wake(Ns(500 * MS), Task::Background);
    sched.wake(Ns(500 * MS), Task::Program);
    assert_eq!(sched.resched(Ns(500 * MS)), Some(Task::Program));
}

#[test]
fn a_task_that_yields_is_passed_by_one_not_far_behind() {
    let mut sched = after_sleep(1);
    sched.wake(Ns(400 * MS), Task::UbiThread);
    assert_eq!(sched.resched(Ns(400 * MS)), Some(Task::UbiThread));
    assert_eq!(sched.yield_now(Ns(401 * MS)), Some(Task::UbiThread), "two behind");
    assert_eq!(sched.yield_now(Ns(402_500_000)), Some(Task::Program));
}

/// By nanoseconds: a run of 2.3 ms leaves 0.7 ms of the sleeper bonus, too little to preempt.
#[test]
fn a_thread_that_has_just_run_waits_for_the_tick_by_a_finer_clock_too() {
    let mut sched = after_sleep(1);
    sched.wake(Ns(400 * MS), Task::UbiThread);
    assert_eq!(sched.resched(Ns(400 * MS)), Some(Task::UbiThread));
    assert_eq!(sched.sleep(Ns(402_300_000)), Some(Task::Program));
    sched.wake(Ns(402_300_000), Task::UbiThread);
    assert_eq!(sched.resched(Ns(402_300_000)), Some(Task::Program));
}

/// A thread that ran 0.8 ms after its wake-up has had 2.5 ms after running 1.7 ms. The program has
/// had none since.
#[test]
fn time_from_a_wake_up_to_the_preemption_is_charged_to_the_next_task() {
    let mut sched = after_sleep(1);
    sched.wake(Ns(400 * MS), Task::UbiThread);
    assert_eq!(sched.resched(Ns(400_800_000)), Some(Task::UbiThread));
    assert_eq!(sched.sleep(Ns(402_500_000)), Some(Task::Program));
    sched.wake(Ns(402_500_000), Task::UbiThread);
    assert_eq!(sched.resched(Ns(402_500_000)), Some(Task::Program), "0.5 ms behind");
}

/// Weights of 1,024 and 110: by ticks, a thread of nice 10 that was running at one tick is charged
/// 37 ms.
#[test]
fn a_nice_thread_waits_for_ticks() {
    let mut sched = after_sleep(TICK_NS);
    sched.wake(Ns(401 * MS), Task::Jffs2Thread);
    assert_eq!(sched.resched(Ns(403 * MS)), Some(Task::Program), "3 ms behind are not enough");
    assert_eq!(sched.resched(Ns(404 * MS)), Some(Task::Jffs2Thread), "a tick");
    assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::Program), "the next");
    assert_eq!(sched.resched(Ns(436 * MS)), Some(Task::Program));
    assert_eq!(sched.resched(Ns(444 * MS)), Some(Task::Jffs2Thread));
}

/// A task that sleeps while the nice thread runs comes back 3 ms behind it, not 37.
#[test]
fn a_program_that_waited_for_the_nice_thread_does_not_get_ahead_of_it() {
    let mut sched = after_sleep(TICK_NS);
    sched.wake(Ns(401 * MS), Task::Jffs2Thread);
    assert_eq!(sched.sleep(Ns(402 * MS)), Some(Task::Jffs2Thread));
    sched.wake(Ns(405 * MS), Task::Program);
    assert_eq!(sched.resched(Ns(405 * MS)), Some(Task::Program));
    assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::Program));
    assert_eq!(sched.resched(Ns(412 * MS)), Some(Task::Jffs2Thread), "two ticks later");
}

#[test]
fn a_tick_with_a_callback_reschedules_the_task() {
    let mut sched = after_sleep(TICK_NS);
    sched.call_rcu(Ns(401 * MS));
    sched.resched(Ns(404 * MS));
    assert!(!matches!(sched.rcu, Waiting::Tiny { waits: true }));
    assert_eq!(cfs(&mut sched).ran_ns, 0);
}

/// A thread that is slightly behind waits for ten milliseconds, or until a tick wakes RCU's thread.
#[test]
fn a_task_that_is_behind_runs_after_rcus_thread() {
    for frees in [false, true] {
        let mut sched = after_sleep(1);
        sched.wake(Ns(400 * MS), Task::UbiThread);
        sched.resched(Ns(400 * MS));
        sched.sleep(Ns(402_300_000));
        sched.wake(Ns(402_300_000), Task::UbiThread);
        if frees {
            sched.call_rcu(Ns(403 * MS));
        }
        let next = if frees { Task::UbiThread } else { Task::Program };
        assert_eq!(sched.resched(Ns(404 * MS)), Some(next));
    }
}

/// Seen on user-mode Linux when JFFS2 is mounted: a third of 6 ms, not half, and min_vruntime
/// advances.
#[test]
fn a_thread_is_created_by_kthreadd_and_has_begun_when_its_creator_goes_on() {
    let mut sched = new(TICK_NS);
    let before = cfs(&mut sched).min_vruntime_ns;
    cfs(&mut sched).vruntime_ns[Task::Kthreadd as usize] = 0; // it has slept for long
    sched.create_kthread(Ns(1000), Task::Jffs2Thread);
    assert_eq!(sched.current(), Some(Task::Program));
    assert!(!sched.is_contended(), "the thread sleeps until it is woken");
    assert_eq!(cfs(&mut sched).vruntime_ns[Task::Jffs2Thread as usize], before + 1_999_999);
    assert_eq!(cfs(&mut sched).min_vruntime_ns, before + 1_999_999);
}

/// YAFFS2's thread was a slice ahead of the program that stopped it, so it went through do_exit
/// only after the next mount had created another.
#[test]
fn a_thread_preempted_while_it_exits_stays_in_the_queue() {
    for (ahead_ns, is_left) in [(0, false), (2_000_000, true)] {
        let mut sched = new(TICK_NS);
        let queue = cfs(&mut sched);
        queue.vruntime_ns[Task::Yaffs2Thread as usize] = queue.min_vruntime_ns + ahead_ns;
        sched.wake(Ns(0), Task::Yaffs2Thread);
        sched.sleep(Ns(0));
        assert_eq!(sched.current(), Some(Task::Yaffs2Thread));
        sched.exit_kthread(Ns(0), Task::Program);
        assert_eq!(sched.current(), Some(Task::Program));
        assert_eq!(sched.is_runnable(Task::Exiting), is_left);
        assert!(!sched.is_runnable(Task::Yaffs2Thread));
    }
}

fn since_6_6(scheduler: Scheduler) -> Sched {
    let facts = KernelFacts { scheduler, ..KernelFacts::USER_MODE };
    let mut sched = Sched::new(TICK_NS, &facts);
    sched.resched(Ns(400 * MS));
    sched
}

const EEVDF: [Scheduler; 2] = [Scheduler::Eevdf6_12, Scheduler::Eevdf7_3];

/// Neither has lag, and both deadlines are a slice away: the running task keeps the processor only
/// if its deadline is the earlier one.
#[test]
fn a_thread_that_wakes_without_lag_runs_at_once_since_6_6() {
    for scheduler in EEVDF {
        let mut sched = since_6_6(scheduler);
        sched.wake(Ns(401 * MS), Task::UbiThread);
        assert_eq!(sched.current(), Some(Task::Program), "until it asks");
        assert_eq!(sched.resched(Ns(401 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.sleep(Ns(403 * MS)), Some(Task::Program));
    }
}

/// A tick charges it 4 ms: V is 2 ms behind it then.
#[test]
fn a_thread_that_has_had_more_than_its_share_waits_for_a_tick_since_6_6() {
    for scheduler in EEVDF {
        let mut sched = since_6_6(scheduler);
        sched.wake(Ns(402 * MS), Task::UbiThread);
        sched.resched(Ns(402 * MS));
        assert_eq!(sched.resched(Ns(405 * MS)), Some(Task::Program), "the tick at 404 ms");
        assert_eq!(sched.resched(Ns(407 * MS)), Some(Task::Program));
        assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::UbiThread), "the next one");
    }
}

/// 6.6 keeps the running task at equal deadlines, so the thread waits for a tick: it is eligible
/// then, and the program is not.
#[test]
fn a_thread_that_wakes_without_lag_waits_for_a_tick_in_6_6() {
    let mut sched = since_6_6(Scheduler::Eevdf6_6);
    sched.wake(Ns(401 * MS), Task::UbiThread);
    assert_eq!(sched.resched(Ns(401 * MS)), Some(Task::Program));
    assert_eq!(sched.resched(Ns(404 * MS)), Some(Task::UbiThread));
}

/// DELAY_DEQUEUE: a thread that sleeps while it is 2 ms ahead of V does not lose that.
#[test]
fn a_thread_cannot_sleep_its_debt_away_since_6_6() {
    for scheduler in EEVDF {
        let mut sched = since_6_6(scheduler);
        sched.wake(Ns(402 * MS), Task::UbiThread);
        sched.resched(Ns(402 * MS));
        assert_eq!(sched.sleep(Ns(405 * MS)), Some(Task::Program), "after the tick at 404 ms");
        assert!(!sched.is_runnable(Task::UbiThread));
        sched.wake(Ns(406 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(406 * MS)), Some(Task::Program));
        assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::UbiThread), "the next tick");
    }
}

/// PLACE_LAG: the program ran through a tick before it let the thread run. The thread is owed 2 ms
/// when it sleeps, and is placed so that it is owed 2 ms again.
#[test]
fn a_thread_keeps_what_it_is_owed_while_it_sleeps_since_6_6() {
    for scheduler in EEVDF {
        let mut sched = since_6_6(scheduler);
        sched.wake(Ns(401 * MS), Task::UbiThread);
        assert_eq!(sched.resched(Ns(405 * MS)), Some(Task::UbiThread));
        assert_eq!(sched.sleep(Ns(406 * MS)), Some(Task::Program));
        let Fair::Eevdf(queue) = &sched.fair else { panic!("6.6 has it") };
        assert_eq!(queue.entities[Task::UbiThread as usize].vlag_ns, 2_000_000);
        sched.wake(Ns(407 * MS), Task::UbiThread);
        let Fair::Eevdf(queue) = &sched.fair else { panic!("6.6 has it") };
        let placed = |task| queue.entities[task as usize].vruntime_ns;
        assert_eq!(placed(Task::Program) - placed(Task::UbiThread), 4_000_000);
    }
}

/// The deadline of nice 10 is 6.5 ms away, and a tick charges it 37 ms.
#[test]
fn a_nice_thread_waits_for_ticks_since_6_6() {
    for scheduler in EEVDF {
        let mut sched = since_6_6(scheduler);
        sched.wake(Ns(401 * MS), Task::Jffs2Thread);
        assert_eq!(sched.resched(Ns(403 * MS)), Some(Task::Program), "its deadline is earlier");
        assert_eq!(sched.resched(Ns(404 * MS)), Some(Task::Jffs2Thread), "a tick");
        assert_eq!(sched.resched(Ns(408 * MS)), Some(Task::Program), "the next");
        assert_eq!(sched.resched(Ns(440 * MS)), Some(Task::Program));
        assert_eq!(sched.resched(Ns(444 * MS)), Some(Task::Jffs2Thread));
    }
}
