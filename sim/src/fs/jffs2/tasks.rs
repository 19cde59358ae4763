//! Scheduling the foreground, which calls the file system, and the collector thread.
//!
//! Mirrors the locks and waits between the two in fs/jffs2 of Linux 6.1: c->alloc_sem, the chip's
//! lock in nand_get_device (drivers/mtd/nand/raw/nand_base.c), f->sem and the states of an inode
//! that is being read in (readinode.c), c->erase_wait. The foreground is one task at a time, the
//! program or a worker. The other foreground tasks wait for it.
//!
//! Time passes only in calls into MTD. There cond_resched() follows each operation of the chip,
//! except the last column change of a read. A task that is scheduled within a call finds the chip
//! locked.
//!
//! Invariant: a task that waits for another sleeps.

use super::background::Collector;
use super::call::Call;
use super::Jffs2;
use crate::flash::Done;
use crate::fs::tasks::run_flusher;
use crate::fs::{Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::sched::{Mutex, Sched, Task};
use crate::units::Ns;

/// Reborrows the pages for one more call.
pub(super) fn reborrow<'a>(
    pages: &'a mut Option<&mut dyn PageCache>,
) -> Option<&'a mut dyn PageCache> {
    pages.as_mut().map(|pages| &mut **pages as &mut dyn PageCache)
}

impl<D: NandDriver> Jffs2<D> {
    /// Resets all tasks when the machine reboots.
    pub(super) fn forget_tasks(&mut self) {
        let clock_step_ns = self.mtd.costs().sched_clock_ns;
        self.sched = Sched::new(clock_step_ns, &self.facts);
        self.collector = Collector::default();
        self.foreground = Some(Task::Program);
        self.alloc_sem = Mutex::default();
        self.chip_lock = Mutex::default();
        (self.waiter, self.reading, self.page_of) = (None, None, None);
    }

    /// Whether the thread is runnable. Wakes it first if its timer has expired.
    #[inline]
    fn is_shared(&mut self, now: Ns) -> bool {
        if self.collector.until.is_some_and(|until| until <= now) {
            let until = self.collector.until.expect("just seen");
            self.wake_collector(until);
        }
        self.sched.is_runnable(Task::Jffs2Thread)
    }

    /// A place where the kernel's code may schedule another task (cond_resched, might_sleep).
    #[inline]
    pub(super) fn might_resched(
        &mut self,
        now: Ns,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let Some(task) = self.foreground.filter(|_| !self.collector.defers_calls) else {
            return Ok(now);
        };
        let is_alone = !self.is_shared(now) && !self.sched.is_contended();
        if is_alone || self.sched.resched(now) == Some(task) {
            return Ok(now);
        }
        self.run_others_until(now, task, pages)
    }

    /// Runs other tasks until `task` has the processor. The thread takes its steps. Any other task
    /// blocks until `task` is done.
    pub(super) fn run_others_until(
        &mut self,
        mut now: Ns,
        task: Task,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        while self.sched.current() != Some(task) {
            now = match (self.sched.current(), reborrow(&mut pages)) {
                (Some(Task::Jffs2Thread), pages) => self.run_collector(now, pages)?,
                (Some(Task::Background), Some(pages))
                    if self.page_of.is_none() && !self.work_waits_for(task) =>
                {
                    run_flusher(self, now, pages)?
                }
                (other, _) => {
                    assert!(other.is_some(), "{task:?} waits, but no task runs");
                    self.sched.block(now);
                    now
                }
            }
        }
        self.mtd.set_task(task);
        Ok(now)
    }

    /// Whether a task holds a lock that a queued flush of the write buffer needs, or is before it
    /// in the queue for one.
    fn work_waits_for(&self, task: Task) -> bool {
        let is_before = |lock: &Mutex| lock.owner() == Some(task) || lock.is_awaited_by(task);
        self.wbuf.is_queued && (is_before(&self.alloc_sem) || is_before(&self.chip_lock))
    }

    /// Makes another task the foreground, or none until a timer expires.
    pub(super) fn set_foreground(
        &mut self,
        now: Ns,
        task: Option<Task>,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        if self.foreground == task {
            return Ok(now);
        }
        let before = std::mem::replace(&mut self.foreground, task);
        let Some(next) = task else {
            self.page_is_read(now);
            if before.is_some() && self.sched.current() == before {
                self.sched.sleep(now);
            }
            self.mtd.set_task(Task::Background);
            return Ok(now);
        };
        self.sched.wake(now, next);
        self.sched.resched(now);
        self.run_others_until(now, next, pages)
    }

    /// The program's timer expired at `rang`. If the thread was in a call into MTD then, the
    /// program may preempt it within that call.
    pub(super) fn program_wakes(
        &mut self,
        now: Ns,
        rang: Ns,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.foreground = Some(Task::Program);
        self.sched.wake(rang, Task::Program);
        // The timer expired before the last cond_resched() of the thread's call, so the program
        // preempts the thread there.
        if let Some(resched_at) = self.collector.in_call.filter(|&resched_at| rang <= resched_at) {
            self.sched.resched(resched_at);
        }
        self.sched.resched(now);
        self.run_others_until(now, Task::Program, Some(pages))
    }

    /// delayed_work_timer_fn: wakes a worker to flush the write buffer, if it is time.
    pub(super) fn wake_worker(&mut self, now: Ns) {
        if let Some(due) = self.wbuf.due.take_if(|due| *due <= now) {
            self.wbuf.is_queued = true;
            self.sched.wake(due, Task::Background);
        }
    }

    /// mutex_lock(&c->alloc_sem) of the foreground.
    pub(super) fn lock_alloc(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        if self.collector.defers_calls {
            return Ok(now); // The thread already holds it.
        }
        self.page_is_read(now);
        let mut now = self.might_resched(now, Some(pages))?;
        let task = self.foreground.expect("a task is in the foreground");
        // An operation that failed still holds it.
        if self.alloc_sem.owner() == Some(task) {
            return Ok(now);
        }
        while !self.alloc_sem.lock(task) {
            now = self.sleep_until_woken(now, task, Some(pages))?;
        }
        Ok(now)
    }

    /// mutex_unlock(&c->alloc_sem).
    pub(super) fn unlock_alloc(&mut self, now: Ns) {
        if self.collector.defers_calls {
            return;
        }
        if let Some(waiter) = self.alloc_sem.unlock() {
            self.sched.wake(now, waiter);
        }
    }

    /// The foreground sleeps until the thread wakes it.
    fn sleep_until_woken(
        &mut self,
        now: Ns,
        task: Task,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        self.sched.sleep(now);
        self.run_others_until(now, task, pages)
    }

    /// The foreground sleeps until the thread releases an inode or a block.
    pub(super) fn wait_for_thread(
        &mut self,
        now: Ns,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let task = self.foreground.expect("a task is in the foreground");
        self.waiter = Some(task);
        let over = self.sleep_until_woken(now, task, pages);
        self.waiter = None;
        over
    }

    /// The thread has released what a task waits for.
    pub(super) fn wake_waiter(&mut self, now: Ns) {
        if let Some(task) = self.waiter.take() {
            self.sched.wake(now, task);
        }
    }

    /// mutex_lock(&f->sem), or the wait for an inode that is being read in.
    pub(super) fn wait_for_inode(&mut self, now: Ns, ino: Ino, to_read_in: bool) -> Result<Ns> {
        let mut now = now;
        let in_way = |(busy, absent): (Ino, bool)| busy == ino && (absent || !to_read_in);
        while !self.collector.defers_calls && self.collector.inode.is_some_and(in_way) {
            now = self.wait_for_thread(now, None)?;
        }
        Ok(now)
    }

    /// The foreground begins to read in or evict an inode, or has finished (INO_STATE_READING,
    /// I_FREEING).
    pub(super) fn set_reading(&mut self, now: Ns, ino: Option<Ino>) {
        if self.collector.defers_calls {
            return;
        }
        self.reading = ino;
        if ino.is_none() && std::mem::take(&mut self.collector.waits_for_inode) {
            self.sched.wake(now, Task::Jffs2Thread);
        }
    }

    /// The foreground has finished reading a page.
    pub(super) fn page_is_read(&mut self, now: Ns) {
        if std::mem::take(&mut self.collector.waits_for_page) {
            self.sched.wake(now, Task::Jffs2Thread);
        }
    }

    /// A call into MTD of the foreground, or of the thread's pass while that is being computed.
    /// With `pages` the foreground holds no lock, and the thread may run a pass meanwhile.
    #[inline]
    pub(super) fn call_with(
        &mut self,
        now: Ns,
        call: Call,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Done> {
        let now = self.write_marks(now)?;
        self.call_at_once(now, call, pages)
    }

    /// The same, although nodes may have to be marked obsolete on flash.
    #[inline]
    pub(super) fn call_at_once(
        &mut self,
        now: Ns,
        call: Call,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Done> {
        if self.collector.defers_calls && self.collector.makes_deferred_at_once {
            return Ok(self.perform(now, call));
        }
        if self.collector.defers_calls {
            self.collector.work.push_back(call);
            return Ok(Ok(now));
        }
        if !self.medium.has_wbuf {
            return self.call_in_parts(now, call, pages);
        }
        // Without competition for the chip its lock need not be modelled.
        if !self.is_shared(now) {
            return Ok(self.perform(now, call));
        }
        let now = self.lock_chip(now, reborrow(&mut pages))?;
        let done = self.perform(now, call);
        let over = done.as_ref().map_or_else(|failed| failed.at, |&now| now);
        self.unlock_chip(over, pages)?;
        Ok(done)
    }

    /// A call of the foreground on NOR. A program takes so long there that a task that is woken
    /// meanwhile runs before the next program of the call.
    fn call_in_parts(
        &mut self,
        now: Ns,
        call: Call,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Done> {
        let mut now = self.lock_chip(now, reborrow(&mut pages))?;
        let (mut part, mut rest) = call.split(self.mtd.page_bytes());
        let done = loop {
            let done = self.perform(now, part);
            let (Ok(at), Some(more)) = (done, rest) else { break done };
            now = self.might_resched(at, reborrow(&mut pages))?;
            (part, rest) = more.split(self.mtd.page_bytes());
        };
        let over = done.as_ref().map_or_else(|failed| failed.at, |&now| now);
        self.unlock_chip(over, pages)?;
        Ok(done)
    }

    fn perform(&mut self, now: Ns, call: Call) -> Done {
        match call {
            Call::Read { offset, bytes } => self.mtd.read(now, offset.into(), bytes),
            Call::ReadOn { offset, bytes } => self.mtd.read_on(now, offset.into(), bytes),
            Call::Write { offset, bytes, causes } => {
                self.mtd.write_for(now, offset.into(), bytes, &causes)
            }
            Call::WriteOn { offset, bytes, causes } => {
                self.mtd.write_on(now, offset.into(), bytes, &causes)
            }
            Call::Erase { block } => self.mtd.erase(now, block),
            Call::WriteMarker { block } => self.medium.mark_block(&mut self.mtd, now, block),
        }
    }

    /// nand_get_device of the foreground.
    fn lock_chip(&mut self, now: Ns, mut pages: Option<&mut dyn PageCache>) -> Result<Ns> {
        let Some(task) = self.foreground else { return Ok(now) };
        let mut now = self.might_resched(now, reborrow(&mut pages))?;
        while !self.chip_lock.lock(task) {
            now = self.sleep_until_woken(now, task, reborrow(&mut pages))?;
        }
        Ok(now)
    }

    /// The end of a call, with nand_release_device. If the thread was scheduled within the call, it
    /// has run as far as it can without the chip.
    fn unlock_chip(&mut self, now: Ns, pages: Option<&mut dyn PageCache>) -> Result<()> {
        let Some(task) = self.foreground else { return Ok(()) };
        // Other tasks are scheduled at the call's last cond_resched(), not at its end.
        let resched_at = now - self.mtd.since_resched();
        if self.sched.resched(resched_at) != Some(task) {
            self.run_others_until(resched_at, task, pages)?;
        }
        if let Some(waiter) = self.chip_lock.unlock() {
            self.sched.wake(now, waiter);
        }
        Ok(())
    }

    /// nand_get_device of the thread: returns whether it holds the chip.
    pub(super) fn thread_locks_chip(&mut self, now: Ns) -> bool {
        if std::mem::take(&mut self.collector.keeps_chip_lock) {
            return true;
        }
        let has_it = self.chip_lock.lock(Task::Jffs2Thread);
        if !has_it {
            self.sched.sleep(now);
        }
        has_it
    }

    /// A call into MTD of the thread. The thread keeps the chip's lock until its next step ends the
    /// call.
    pub(super) fn thread_call(&mut self, now: Ns, call: Call) -> Done {
        self.mtd.set_task(Task::Jffs2Thread);
        let done = self.perform(now, call);
        let over = done.as_ref().map_or_else(|failed| failed.at, |&now| now);
        let resched_at = over - self.mtd.since_resched();
        self.collector.in_call = Some(resched_at);
        if self.foreground.is_some() {
            self.sched.resched(resched_at);
        }
        done
    }

    /// nand_release_device of the thread.
    pub(super) fn end_thread_call(&mut self, now: Ns) {
        if self.collector.in_call.take().is_none() || self.collector.keeps_chip_lock {
            return;
        }
        if let Some(waiter) = self.chip_lock.unlock() {
            self.sched.wake(now, waiter);
        }
    }
}
