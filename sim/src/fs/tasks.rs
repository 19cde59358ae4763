//! Scheduling the program, the flusher and the threads of the file system.
//!
//! Mirrors schedule() and cond_resched() at the border of VFS and file systems, where no lock of a
//! file system is held, so any task that gets the processor can run. Within a call of a file system
//! only its own threads run (ubi/wl.rs, jffs2/tasks.rs). If the program or the flusher gets the
//! processor there, it is `blocked` until the call is over.
//!
//! Invariant: a blocked task is woken before the task that blocks it sleeps.

use super::{FlashFs, PageCache, Result, Writeback};
use crate::sched::{Sched, Task};
use crate::units::Ns;
use crate::waits::{over, Wait};

/// What the scheduler needs of a file system: its timers, its threads, and the task it works for.
///
/// # Examples
///
/// A file system without timers and threads of its own:
///
/// ```
/// use sim::fs::{PageCache, Result, Scheduled};
/// use sim::sched::{Sched, Task};
/// use sim::units::Ns;
/// struct Still { sched: Sched, caller: Option<Task> }
///
/// impl Scheduled for Still {
///     fn sched(&mut self) -> &mut Sched { &mut self.sched }
///     fn next_due(&self) -> Option<Ns> { None }
///     fn run_due(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
///     fn run_thread(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
///     fn resched(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
///     fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
///         std::mem::replace(&mut self.caller, task)
///     }
/// }
/// ```
pub trait Scheduled {
    /// The machine's scheduler.
    fn sched(&mut self) -> &mut Sched;
    /// When the file system's next timer expires, if one is set.
    fn next_due(&self) -> Option<Ns>;
    /// When that timer may expire early, if the processor is awake anyway (hrtimer_start_range_ns).
    fn next_due_earliest(&self) -> Option<Ns> {
        self.next_due()
    }
    /// Runs the work of timers that expired by `now`; returns when it is over.
    fn run_due(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Runs a thread of the file system, which has the processor, up to its next preemption point.
    fn run_thread(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Runs a work of the file system that is queued for the worker, which has the processor.
    /// Returns when it is over; none if none is queued.
    fn run_work(&mut self, _now: Ns, _pages: &mut dyn PageCache) -> Result<Option<Ns>> {
        Ok(None)
    }
    /// cond_resched() of the program: another task runs if the scheduler chooses it.
    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Sets the task that makes the next calls; returns the one before.
    fn set_caller(&mut self, task: Option<Task>) -> Option<Task>;
    /// The program's next call is a sleep, which needs no lock. Returns when it makes the call, and
    /// when the thread that had the processor before is done. None for a file system whose threads
    /// run in steps.
    fn call_sleep(&mut self, _now: Ns, _pages: &mut dyn PageCache) -> Result<Option<(Ns, Ns)>> {
        Ok(None)
    }
    /// The program sleeps until a timer expires.
    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        self.sched().sleep(now);
        self.set_caller(None);
        Ok(now)
    }
    /// The program's timer expired at `rang`, perhaps while a thread was working until `now`.
    fn wake_program(&mut self, now: Ns, rang: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.set_caller(Some(Task::Program));
        self.sched().wake(rang, Task::Program);
        self.resched(now, pages)
    }
    /// call_rcu: the VFS will free an open file, an inode or a name after a grace period.
    fn call_rcu(&mut self, now: Ns) {
        self.sched().call_rcu(now);
    }
}

/// Runs the flusher's next step, or a work of the file system, unless another task preempts it
/// first.
pub fn run_flusher<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    let before = fs.mtd_mut().enter(now, Wait::WriteBack);
    let done = flusher_step(fs, now, pages);
    fs.mtd_mut().enter(over(&done, now), before);
    done
}

fn flusher_step<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    if fs.sched().resched(now) != Some(Task::Background) {
        return Ok(now);
    }
    if let Some(now) = fs.run_work(now, pages)? {
        return Ok(now);
    }
    fs.sched().begin_work(now);
    if fs.sched().take_sync() {
        pages.queue_sync();
    }
    let step = pages.next_writeback(now);
    let before = fs.set_caller(Some(Task::Background));
    let done = match step {
        Writeback::Page(write) => fs.write_page(now, write, pages),
        Writeback::Inode(ino) => fs.write_inode(now, ino, pages),
        Writeback::Wake => {
            fs.sched().wake(now, Task::Program);
            Ok(now)
        }
        Writeback::Sleep => {
            fs.sched().end_work(now);
            Ok(now)
        }
    };
    fs.set_caller(before);
    let now = pages.written(now, step, done)?;
    match step {
        Writeback::Page(_) => fs.sched().pages_were_written(now),
        Writeback::Wake if pages.is_flusher_done() => fs.sched().flusher_ends(),
        _ => {}
    }
    fs.sched().unblock(now);
    Ok(now)
}

/// Runs the task that has the processor, which is not the program.
pub fn run_other<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    match fs.sched().current() {
        Some(Task::Background) => run_flusher(fs, now, pages),
        Some(Task::UbiThread | Task::UbifsThread | Task::Jffs2Thread | Task::Yaffs2Thread) => {
            fs.run_thread(now, pages)
        }
        other => {
            assert!(other.is_some(), "the program waits, but no task runs");
            fs.sched().sleep(now); // It has nothing left to do.
            Ok(now)
        }
    }
}

/// Runs other tasks until the program has the processor.
pub fn run_others<S: FlashFs>(fs: &mut S, mut now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    while fs.sched().current() != Some(Task::Program) {
        now = run_other(fs, now, pages)?;
    }
    fs.mtd_mut().set_task(Task::Program);
    Ok(now)
}

/// cond_resched() of the program, which holds no lock.
#[inline]
pub fn resched<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    fs.sched().unblock(now);
    if fs.sched().resched(now) == Some(Task::Program) {
        return Ok(now);
    }
    run_others(fs, now, pages)
}

/// The program sleeps until the flusher has done its work.
pub fn wait_for_flusher<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    fs.sched().queue_flusher(now);
    let mut now = now;
    if fs.sched().current() == Some(Task::Program) {
        fs.sched().wait_event(now);
    }
    while pages.is_flusher_awaited() {
        if fs.sched().current() == Some(Task::Program) {
            fs.sched().sleep(now);
        }
        now = run_others(fs, now, pages)?;
    }
    Ok(now)
}

/// The program sleeps until the flusher of another file system has found nothing to write, and then
/// until its own has written everything.
pub fn sync_after_other<S: FlashFs>(
    fs: &mut S,
    mut now: Ns,
    pages: &mut dyn PageCache,
) -> Result<Ns> {
    fs.sched().begin_sync(now);
    while fs.sched().is_sync_ahead() || pages.is_flusher_awaited() {
        if fs.sched().current() == Some(Task::Program) {
            fs.sched().sleep(now);
        }
        now = run_others(fs, now, pages)?;
    }
    Ok(now)
}
