//! Who has the processor: the program, the flusher, or a thread of the file system.
//!
//! Mirrors schedule and cond_resched where the VFS and the file systems meet: no lock of a file
//! system is held there, so whoever gets the processor does what it has to. Within a call of a file
//! system only its own threads go on (ubi/wl.rs, jffs2/tasks.rs); the program or the flusher, if it
//! gets the processor there, is `blocked` until the call is over.
//!
//! Invariant: whoever is blocked is woken before the task in its way sleeps.

use super::{FlashFs, PageCache, Result, Writeback};
use crate::sched::{Sched, Task};
use crate::units::Ns;

/// What the scheduler asks of a file system: its timers, its threads, and for whom it works.
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
    /// When a timer of the file system ends next, if one is set.
    fn next_due(&self) -> Option<Ns>;
    /// From when on it would be done, if something else wakes the processor up
    /// (hrtimer_start_range_ns).
    fn next_due_earliest(&self) -> Option<Ns> {
        self.next_due()
    }
    /// Does what a timer is for that has ended at `now`; returns when it is over.
    fn run_due(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// A thread of the file system has the processor and does what it does until it may have to
    /// make way.
    fn run_thread(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Whoever waits for the processor takes it from the program, if the scheduler would
    /// (cond_resched).
    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Whose calls follow, if anybody's; returns whose they were.
    fn set_caller(&mut self, task: Option<Task>) -> Option<Task>;
    /// The program's next call is one to sleep, for which it needs no lock: when it makes it, and
    /// when the thread that had the processor before is done. None of a file system whose threads
    /// go on a step at a time.
    fn call_sleep(&mut self, _now: Ns, _pages: &mut dyn PageCache) -> Result<Option<(Ns, Ns)>> {
        Ok(None)
    }
    /// The program sleeps until something is due.
    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        self.sched().sleep(now);
        self.set_caller(None);
        Ok(now)
    }
    /// The program goes on, whose timer has rung at `rang`, perhaps while a thread was at work
    /// until `now`.
    fn wake_program(&mut self, now: Ns, rang: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.set_caller(Some(Task::Program));
        self.sched().wake(rang, Task::Program);
        self.resched(now, pages)
    }
    /// Something of the VFS is to be freed later (call_rcu): an open file, an inode, a name.
    fn call_rcu(&mut self, now: Ns) {
        self.sched().call_rcu(now);
    }
}

/// The flusher, which has the processor, does its next step, or makes way before.
pub fn run_flusher<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    if fs.sched().resched(now) != Some(Task::Background) {
        return Ok(now);
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
    if matches!(step, Writeback::Page(_)) {
        fs.sched().pages_were_written(now);
    }
    fs.sched().unblock(now);
    Ok(now)
}

/// Whoever has the processor, and is not the program, goes on.
pub fn run_other<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    match fs.sched().current() {
        Some(Task::Background) => run_flusher(fs, now, pages),
        Some(Task::UbiThread | Task::Jffs2Thread | Task::Yaffs2Thread) => fs.run_thread(now, pages),
        other => {
            assert!(other.is_some(), "the program waits for nobody");
            fs.sched().sleep(now); // It has nothing left to do.
            Ok(now)
        }
    }
}

/// Others have the processor until the program has.
pub fn let_run<S: FlashFs>(fs: &mut S, mut now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    while fs.sched().current() != Some(Task::Program) {
        now = run_other(fs, now, pages)?;
    }
    fs.mtd_mut().set_task(Task::Program);
    Ok(now)
}

/// cond_resched of the program, which has no lock.
#[inline]
pub fn resched<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    fs.sched().unblock(now);
    if fs.sched().resched(now) == Some(Task::Program) {
        return Ok(now);
    }
    let_run(fs, now, pages)
}

/// The program sleeps until the flusher has done what is asked of it.
pub fn wait_for_flusher<S: FlashFs>(fs: &mut S, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
    fs.sched().wake(now, Task::Background);
    let mut now = now;
    while pages.is_flusher_awaited() {
        if fs.sched().current() == Some(Task::Program) {
            fs.sched().sleep(now);
        }
        now = let_run(fs, now, pages)?;
    }
    Ok(now)
}
