//! Who has the processor: the program, the flusher, or a thread of the file system.
//!
//! Mirrors schedule and cond_resched where the VFS and the file systems meet: no lock of a file
//! system is held there, so whoever gets the processor does what it has to. Within a call of a file
//! system only its own threads go on (ubi/wl.rs, jffs2/tasks.rs); the program or the flusher, if it
//! gets the processor there, is `blocked` until the call is over.
//!
//! Invariant: whoever is blocked is woken before the task in its way sleeps.

use super::{FlashFs, PageCache, Result, Writeback};
use crate::flash::Flash;
use crate::sched::Task;
use crate::units::Ns;

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
    fs.flash_mut().set_task(Task::Program);
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
