//! Scheduling the foreground, which calls the file system, and the background thread.
//!
//! Mirrors the gross lock of kernel/yaffs2 (yfs_lock). It is held around every call into the core
//! and around a whole turn of the thread. The foreground is one task at a time, the program or a
//! worker.
//!
//! Time passes only in calls into MTD. There cond_resched() follows each operation of the chip,
//! except the last column change of a read. A task that is scheduled there finds the gross lock
//! taken and blocks on it. It gets past the lock only where the foreground does not hold it: before
//! the foreground takes it, and between two system calls.
//!
//! Approximate: if the program gets the processor within a turn of the thread, before the program's
//! next call, it counts as blocked on the lock at once, unless that call is a sleep.
//!
//! Invariant: a task that waits for the lock sleeps, or has been woken and not run yet.

use super::background::Thread;
use super::Yaffs2;
use crate::fs::{tasks as tasks_of_all, FsError, PageCache, Result};
use crate::mtd::NandDriver;
use crate::profile::KernelFacts;
use crate::sched::{Mutex, Sched, Task};
use crate::units::Ns;
use crate::waits::{over, Wait};

/// The processor and the gross lock.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    pub sched: Sched,
    gross_lock: Mutex,
    /// The task that calls the file system; none while only the thread can run.
    pub foreground: Option<Task>,
    /// A sleep that is the program's next call, and when the program made it.
    sleep: Option<Sleep>,
}

/// A call to sleep.
#[derive(Clone, Copy, Debug)]
enum Sleep {
    /// Not made yet: the program makes it when it gets the processor.
    Next,
    /// Made at this time, within the thread's turn.
    Begun(Ns),
}

impl Tasks {
    /// The state in which only the program runs.
    pub fn new(clock_step_ns: u64, facts: &KernelFacts) -> Tasks {
        Tasks {
            sched: Sched::new(clock_step_ns, facts),
            gross_lock: Mutex::default(),
            foreground: Some(Task::Program),
            sleep: None,
        }
    }
}

impl<D: NandDriver> Yaffs2<D> {
    /// Resets all tasks when the machine reboots.
    pub(super) fn forget_tasks(&mut self) {
        self.tasks = Tasks::new(self.mtd.costs().sched_clock_ns, &self.facts);
        self.thread = Thread::default();
    }

    /// Whether the thread is runnable.
    #[inline]
    pub(super) fn is_shared(&mut self, now: Ns) -> bool {
        if let Some(until) = self.thread.until.take_if(|until| *until <= now) {
            self.tasks.sched.wake(until, Task::Yaffs2Thread);
        }
        self.tasks.sched.is_runnable(Task::Yaffs2Thread)
    }

    /// A place where the kernel's code may schedule another task (cond_resched, might_sleep), with
    /// the lock free.
    #[inline]
    fn might_resched(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.tasks.foreground else { return Ok(now) };
        if !self.is_shared(now) || self.tasks.sched.resched(now) == Some(task) {
            return Ok(now);
        }
        self.run_others_until(now, task)
    }

    /// Runs other tasks until `task` has the processor. The thread works; any other task blocks
    /// until `task` is done.
    fn run_others_until(&mut self, mut now: Ns, task: Task) -> Result<Ns> {
        while self.tasks.sched.current() != Some(task) {
            if self.tasks.sched.current() == Some(Task::Yaffs2Thread) {
                now = self.run_thread(now)?;
            } else {
                assert!(self.tasks.sched.current().is_some(), "{task:?} waits, but no task runs");
                self.tasks.sched.block(now);
            }
        }
        self.mtd.set_task(task);
        Ok(now)
    }

    /// The thread has the processor: takes a turn if it gets the lock.
    pub(super) fn run_thread(&mut self, now: Ns) -> Result<Ns> {
        if !self.thread_locks(now) {
            self.tasks.sched.sleep(now);
            return Ok(now);
        }
        self.mtd.set_task(Task::Yaffs2Thread);
        self.thread.is_working = true;
        let before = self.mtd.enter(now, Wait::Collection);
        let turned = self.turn(now);
        self.mtd.enter(over(&turned, now), before);
        self.thread.is_working = false;
        let now = turned?;
        self.release(now);
        self.sleep_until_next_turn(now);
        self.tasks.sched.sleep(now);
        Ok(now)
    }

    /// mutex_lock of the thread; returns whether it has the lock. Its schedule begins with the
    /// first call.
    fn thread_locks(&mut self, now: Ns) -> bool {
        let jiffies = self.ticks.jiffies(now);
        self.thread.schedule.get_or_insert((jiffies, jiffies));
        self.tasks.gross_lock.lock(Task::Yaffs2Thread)
    }

    fn release(&mut self, now: Ns) {
        if let Some(waiter) = self.tasks.gross_lock.unlock() {
            self.tasks.sched.wake(now, waiter);
        }
    }

    /// yfs_lock of the foreground.
    #[inline]
    pub(super) fn lock(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.tasks.foreground else { return Ok(now) };
        let mut now = self.might_resched(now)?;
        while !self.tasks.gross_lock.lock(task) {
            self.tasks.sched.sleep(now);
            now = self.run_others_until(now, task)?;
        }
        Ok(now)
    }

    /// yfs_unlock of the foreground.
    #[inline]
    pub(super) fn unlock(&mut self, now: Ns) {
        if self.tasks.foreground.is_some() {
            self.release(now);
        }
    }

    /// Runs a call of the foreground under the lock.
    #[inline]
    pub(super) fn locked(
        &mut self,
        now: Ns,
        work: impl FnOnce(&mut Self, Ns) -> Result<Ns>,
    ) -> Result<Ns> {
        let now = self.lock(now)?;
        let done = work(self, now);
        match &done {
            Ok(over) => self.unlock(*over),
            Err(FsError::PowerLost(_)) => {}
            Err(error) => self.unlock(error.failed_at().unwrap_or(now)),
        }
        done
    }

    /// cond_resched() after an operation of the chip under the lock. A task scheduled here blocks
    /// on the lock.
    #[inline]
    pub(super) fn might_resched_locked(&mut self, now: Ns) {
        let resched_at = now - self.mtd.since_resched();
        if self.thread.is_working || self.is_shared(resched_at) {
            self.resched_locked(resched_at);
        }
    }

    /// clock_nanosleep of the program if it gets the processor for it. Returns when it makes the
    /// call, and when the turn of the thread that it interrupted is over.
    pub(super) fn program_calls_sleep(
        &mut self,
        mut now: Ns,
        pages: &mut dyn PageCache,
    ) -> Result<(Ns, Ns)> {
        self.is_shared(now);
        self.tasks.sched.unblock(now);
        self.tasks.sched.resched(now);
        self.tasks.sleep = Some(Sleep::Next);
        while self.tasks.sched.current() != Some(Task::Program)
            && !matches!(self.tasks.sleep, Some(Sleep::Begun(_)))
        {
            now = tasks_of_all::run_other(self, now, pages)?;
        }
        match self.tasks.sleep.take() {
            Some(Sleep::Begun(called)) => Ok((called, now)),
            _ => {
                self.mtd.set_task(Task::Program);
                Ok((now, now))
            }
        }
    }

    fn resched_locked(&mut self, now: Ns) {
        let thread = Some(Task::Yaffs2Thread).filter(|_| self.thread.is_working);
        let Some(owner) = thread.or(self.tasks.foreground) else { return };
        loop {
            let has_it = match self.tasks.sched.resched(now) {
                Some(task) if task == owner => return,
                Some(Task::Yaffs2Thread) => self.thread_locks(now),
                // A sleep needs no lock, so the program makes that call at once.
                Some(Task::Program) if matches!(self.tasks.sleep, Some(Sleep::Next)) => {
                    self.tasks.sleep = Some(Sleep::Begun(now));
                    self.tasks.foreground = None;
                    false
                }
                Some(task) if Some(task) == self.tasks.foreground => {
                    self.tasks.gross_lock.lock(task)
                }
                _ => {
                    self.tasks.sched.block(now);
                    continue;
                }
            };
            assert!(!has_it, "{owner:?} has the lock");
            self.tasks.sched.sleep(now);
        }
    }

    /// A program that waited for the lock takes it and releases it.
    pub(super) fn settle(&mut self, now: Ns) -> Result<Ns> {
        let lock = &self.tasks.gross_lock;
        if !self.tasks.foreground.is_some_and(|task| lock.is_awaited_by(task)) {
            return Ok(now);
        }
        let now = self.lock(now)?;
        self.unlock(now);
        Ok(now)
    }

    /// Makes another task the foreground, or none until a timer expires.
    pub(super) fn set_foreground(&mut self, now: Ns, task: Option<Task>) -> Result<Ns> {
        if self.tasks.foreground == task {
            return Ok(now);
        }
        let now = self.settle(now)?;
        let before = std::mem::replace(&mut self.tasks.foreground, task);
        let Some(next) = task else {
            if before.is_some() && self.tasks.sched.current() == before {
                self.tasks.sched.sleep(now);
            }
            self.mtd.set_task(Task::Background);
            return Ok(now);
        };
        self.foreground_wakes(now, now, next)
    }

    /// The foreground's timer expired at `rang`, perhaps while the thread was working.
    pub(super) fn foreground_wakes(&mut self, now: Ns, rang: Ns, task: Task) -> Result<Ns> {
        self.tasks.foreground = Some(task);
        self.tasks.sched.wake(rang, task);
        self.tasks.sched.resched(now);
        let now = self.run_others_until(now, task)?;
        self.settle(now)
    }

    /// When the thread's timer expires.
    pub(super) fn thread_due(&self) -> Option<Ns> {
        // While a task calls, `resched` checks the timer.
        self.thread.until.filter(|_| self.tasks.foreground.is_none())
    }

    /// kthread_create, which waits until the thread has started, and wake_up_process.
    pub(super) fn start_thread(&mut self, now: Ns) -> Result<Ns> {
        self.thread = Thread::default();
        let mut now = now;
        match self.tasks.foreground {
            Some(task) => {
                self.tasks.sched.create_kthread(now, Task::Yaffs2Thread);
                now = self.run_others_until(now, task)?;
            }
            None => self.tasks.sched.fork(now, Task::Yaffs2Thread),
        }
        self.tasks.sched.wake(now, Task::Yaffs2Thread);
        Ok(now)
    }

    /// kthread_stop: wakes the thread, which finishes its turn if it has begun one, or waits for
    /// the lock to.
    pub(super) fn stop_thread(&mut self, now: Ns) -> Result<Ns> {
        let task = self.tasks.foreground;
        self.tasks.sched.wake(now, Task::Yaffs2Thread);
        let mut now = self.set_foreground(now, None)?;
        while self.tasks.sched.current() == Some(Task::Yaffs2Thread) {
            if self.tasks.gross_lock.is_awaited_by(Task::Yaffs2Thread) {
                now = self.run_thread(now)?;
            } else if let Some(waiter) = task {
                self.tasks.sched.exit_kthread(now, waiter);
            } else {
                self.tasks.sched.sleep(now);
            }
        }
        self.thread = Thread::default();
        self.set_foreground(now, task)
    }
}
