//! Who goes on, and who waits for whom: whoever calls the file system, and the background thread.
//!
//! Mirrors the gross lock of kernel/yaffs2 (yfs_lock), which is held around every call of the core,
//! and a whole turn of the thread. There is one task in the foreground at a time, the program or a
//! worker for it.
//!
//! Time passes in calls into MTD, and there each operation of the chip is followed by a question
//! whether to make way, but for the last column change of a read. Who is let in there finds the
//! lock taken and waits; it is let in for good where the foreground has none: before it takes the
//! lock, and between two system calls. A program that gets the processor within a turn of the
//! thread, before its next call, is taken to want the lock at once, unless that call is to sleep.
//!
//! Invariant: a task that waits for the lock sleeps, or has been woken and not yet run.

use super::background::Thread;
use super::Yaffs2;
use crate::flash::Flash;
use crate::fs::{tasks as tasks_of_all, FsError, PageCache, Result};
use crate::profile::KernelFacts;
use crate::sched::{Mutex, Sched, Task};
use crate::units::Ns;

/// The processor and the lock.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    pub sched: Sched,
    gross_lock: Mutex,
    /// Who calls the file system; nobody while only the thread can be at work.
    pub foreground: Option<Task>,
    /// The program's next call is to sleep, and when it has made it.
    sleep: Option<Sleep>,
}

/// A call to sleep.
#[derive(Clone, Copy, Debug)]
enum Sleep {
    /// To be made when the program gets the processor.
    Next,
    /// Made within the thread's turn.
    Begun(Ns),
}

impl Tasks {
    /// Only the program runs.
    pub fn new(clock_step_ns: u64, facts: &KernelFacts) -> Tasks {
        Tasks {
            sched: Sched::new(clock_step_ns, facts),
            gross_lock: Mutex::default(),
            foreground: Some(Task::Program),
            sleep: None,
        }
    }
}

impl<F: Flash> Yaffs2<F> {
    /// The machine starts anew.
    pub(super) fn forget_tasks(&mut self) {
        self.tasks = Tasks::new(self.mtd.costs().sched_clock_ns, &self.facts);
        self.thread = Thread::default();
    }

    /// Whether the thread runs or wants to.
    #[inline]
    pub(super) fn is_shared(&mut self, now: Ns) -> bool {
        if let Some(until) = self.thread.until.take_if(|until| *until <= now) {
            self.tasks.sched.wake(until, Task::Yaffs2Thread);
        }
        self.tasks.sched.is_runnable(Task::Yaffs2Thread)
    }

    /// A place at which the kernel's code lets others run (cond_resched, might_sleep) and the
    /// foreground has no lock.
    #[inline]
    fn might_resched(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.tasks.foreground else { return Ok(now) };
        if !self.is_shared(now) || self.tasks.sched.resched(now) == Some(task) {
            return Ok(now);
        }
        self.let_run_until(now, task)
    }

    /// Others have the processor until `task` has. The thread works; who else gets it waits for
    /// `task`.
    fn let_run_until(&mut self, mut now: Ns, task: Task) -> Result<Ns> {
        while self.tasks.sched.current() != Some(task) {
            if self.tasks.sched.current() == Some(Task::Yaffs2Thread) {
                now = self.run_thread(now)?;
            } else {
                assert!(self.tasks.sched.current().is_some(), "{task:?} waits for nobody");
                self.tasks.sched.block(now);
            }
        }
        self.mtd.set_task(task);
        Ok(now)
    }

    /// The thread has the processor: a turn, if it gets the lock.
    pub(super) fn run_thread(&mut self, now: Ns) -> Result<Ns> {
        if !self.thread_locks(now) {
            self.tasks.sched.sleep(now);
            return Ok(now);
        }
        self.mtd.set_task(Task::Yaffs2Thread);
        self.thread.is_working = true;
        let turned = self.turn(now);
        self.thread.is_working = false;
        let now = turned?;
        self.release(now);
        self.sleep_until_next_turn(now);
        self.tasks.sched.sleep(now);
        Ok(now)
    }

    /// mutex_lock of the thread as far as it goes. Its schedule begins when it is first here.
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
            now = self.let_run_until(now, task)?;
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

    /// What the foreground does under the lock.
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

    /// After an operation of the chip, which somebody has made under the lock: who is let in waits
    /// for that.
    #[inline]
    pub(super) fn may_make_way(&mut self, now: Ns) {
        let asked_at = now - self.mtd.since_asked();
        if self.thread.is_working || self.is_shared(asked_at) {
            self.make_way(asked_at);
        }
    }

    /// clock_nanosleep of the program, as far as it gets the processor for it: when it makes the
    /// call, and when the thread's turn that it fell into is over.
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

    fn make_way(&mut self, now: Ns) {
        let thread = Some(Task::Yaffs2Thread).filter(|_| self.thread.is_working);
        let Some(owner) = thread.or(self.tasks.foreground) else { return };
        loop {
            let has_it = match self.tasks.sched.resched(now) {
                Some(task) if task == owner => return,
                Some(Task::Yaffs2Thread) => self.thread_locks(now),
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

    /// A program that was made to wait for the lock has it, and gives it back.
    pub(super) fn settle(&mut self, now: Ns) -> Result<Ns> {
        let lock = &self.tasks.gross_lock;
        if !self.tasks.foreground.is_some_and(|task| lock.is_awaited_by(task)) {
            return Ok(now);
        }
        let now = self.lock(now)?;
        self.unlock(now);
        Ok(now)
    }

    /// Another task goes on in the foreground, or none until something is due.
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

    /// The foreground goes on, whose timer has rung at `rang`, perhaps while the thread was at
    /// work.
    pub(super) fn foreground_wakes(&mut self, now: Ns, rang: Ns, task: Task) -> Result<Ns> {
        self.tasks.foreground = Some(task);
        self.tasks.sched.wake(rang, task);
        self.tasks.sched.resched(now);
        let now = self.let_run_until(now, task)?;
        self.settle(now)
    }

    /// When the thread wakes.
    pub(super) fn thread_due(&self) -> Option<Ns> {
        // Where somebody calls, `resched` has a look.
        self.thread.until.filter(|_| self.tasks.foreground.is_none())
    }

    /// kthread_create, which waits until the thread has begun, and wake_up_process.
    pub(super) fn start_thread(&mut self, now: Ns) -> Result<Ns> {
        self.thread = Thread::default();
        let mut now = now;
        match self.tasks.foreground {
            Some(task) => {
                self.tasks.sched.create_kthread(now, Task::Yaffs2Thread);
                now = self.let_run_until(now, task)?;
            }
            None => self.tasks.sched.fork(now, Task::Yaffs2Thread),
        }
        self.tasks.sched.wake(now, Task::Yaffs2Thread);
        Ok(now)
    }

    /// kthread_stop: it is woken, and ends a turn that it has begun, which is one that it wants the
    /// lock for.
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
