//! Write-back: marking inodes dirty, and the calls that have them written.
//!
//! Mirrors fs/fs-writeback.c (__mark_inode_dirty, sync_inodes_sb, inode_wait_for_writeback),
//! fs/sync.c and write_cache_pages of mm/page-writeback.c as a program calls it, Linux 6.1.
//! flusher.rs has the lists and wb_workfn.rs the flusher's work. An inode joins the lists when it
//! or a page of it becomes dirty. It leaves them when the flusher has written it: its pages first,
//! then the inode. fsync writes the same and leaves the inode in its place in the list.

use super::flusher::{Reason, Wait};
use super::inode::Inode;
use super::Vfs;
use crate::errno::{ignore_errno, FsError, Outcome, EBADF};
use crate::fs::tasks::{run_other, sync_after_other, wait_for_flusher};
use crate::fs::{FlashFs, PageWrite, PAGE_BYTES};
use crate::sched::{Task, TIMER_SLACK};
use crate::units::Ns;
use crate::waits::{self, over};

/// Pages that a file system is told about before it writes them: few enough to stay in a
/// processor's cache.
const EXPECTED_PAGES: usize = 64;

impl<S: FlashFs> Vfs<S> {
    /// clock_nanosleep, after handling expired timers.
    pub fn sleep(&mut self, now: Ns, time: Ns) -> Outcome {
        let (called, now) = match self.fs.call_sleep(now, &mut self.inodes)? {
            Some(times) => times,
            None => {
                let now = self.catch_up(now)?;
                (now, now)
            }
        };
        let entry = self.clock_reads() + self.costs.syscall_ns;
        let due = called + entry + time;
        Ok((0, self.pause_between(now + entry, due, due + TIMER_SLACK)?))
    }

    /// clock_nanosleep with TIMER_ABSTIME, after handling expired timers. The agent does not read
    /// the clock again before it.
    pub fn sleep_until(&mut self, now: Ns, due: Ns) -> Result<Ns, FsError> {
        if due <= now {
            return Ok(now);
        }
        let now = match self.fs.call_sleep(now, &mut self.inodes)? {
            Some((_, now)) => now,
            None => self.catch_up(now)?,
        };
        let now = now + self.costs.clock_read_ns + self.costs.syscall_ns;
        self.pause_between(now, due.max(now), due.max(now) + TIMER_SLACK)
    }

    /// The program sleeps until `end`.
    pub fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError> {
        self.pause_between(now, end, end)
    }

    /// The program sleeps until `due`, at the latest until `latest`. It runs once it is woken and
    /// the threads that woke with it on the idle processor are done.
    fn pause_between(&mut self, now: Ns, due: Ns, latest: Ns) -> Result<Ns, FsError> {
        let (now, rang) = self.sleep_between(now, due, latest)?;
        let before = self.fs.sched().served_at(rang);
        Ok(now + self.costs.wake_ns * (1 + before))
    }

    /// The same without the cost of the call. Returns when the program runs, and when its timer
    /// expired.
    fn sleep_between(&mut self, now: Ns, due: Ns, latest: Ns) -> Result<(Ns, Ns), FsError> {
        let now = self.fs.begin_sleep(now)?;
        let (now, rang) = self.idle(now, due, latest)?;
        Ok((self.fs.wake_program(now, rang, &mut self.inodes)?, rang))
    }

    /// Runs timers and threads until the program's timer expires. It expires in the first clock
    /// interrupt from `due` on; its own interrupt is at `latest` (__hrtimer_run_queues).
    fn idle(&mut self, mut now: Ns, due: Ns, latest: Ns) -> Result<(Ns, Ns), FsError> {
        let mut end = latest;
        loop {
            if end > due {
                end = end.min(self.interrupt_from(now, due).unwrap_or(latest));
            }
            self.inodes.flusher.completions.pass(now);
            self.wake_flusher(now);
            if self.fs.next_due().is_some_and(|due| self.has_expired(due, now)) {
                let done = self.fs.run_due(now, &mut self.inodes);
                now = ignore_errno(done, now)?;
                continue;
            }
            let done = match self.fs.sched().current() {
                Some(_) if now >= end => return Ok((now, end)),
                Some(task) => {
                    let alarm = Some(end).filter(|_| task == Task::UbiThread);
                    self.fs.sched().set_alarm(alarm);
                    let done = run_other(&mut self.fs, now, &mut self.inodes);
                    self.fs.sched().set_alarm(None);
                    let over = done.as_ref().map_or(now, |&over| over);
                    end = end.min(self.masked_until(now, over, due).unwrap_or(end));
                    done
                }
                None => {
                    let flusher = self.inodes.flusher.due();
                    let timers = [flusher, self.fs.next_due(), self.fs.sched().next_timer()];
                    let due = timers.into_iter().flatten().min();
                    let awake = due.map_or(end, |due| due.min(end)).max(now);
                    if self.is_fs_due(awake, end) {
                        now = awake;
                        self.fs.run_due(awake, &mut self.inodes)
                    } else if flusher.is_some_and(|due| due <= awake) {
                        Ok(awake)
                    } else if awake < end {
                        self.fs.sched().resched(awake); // the bandwidth worker
                        Ok(awake)
                    } else {
                        return Ok((awake, end));
                    }
                }
            };
            now = ignore_errno(done, now)?;
        }
    }

    /// The next tick or thread timer, if it comes at `due` or later.
    fn interrupt_from(&mut self, now: Ns, due: Ns) -> Option<Ns> {
        let has_tick = self.fs.sched().has_next_tick();
        let tick = has_tick.then(|| self.inodes.ticks.after(now, 1));
        let wheel = self.fs.sched().next_timer();
        let timers = [tick, wheel, self.inodes.flusher.due(), self.fs.next_due()];
        timers.into_iter().flatten().filter(|&at| at >= due).min()
    }

    /// When a tick within a step of a thread is handled if interrupts are masked: at the end of the
    /// chip's operation. The program's timer expires then, too, if it is due.
    fn masked_until(&self, began: Ns, over: Ns, due: Ns) -> Option<Ns> {
        let tick = self.inodes.ticks.after(over, 0);
        let last = over - self.fs.mtd().since_resched();
        let handled = if tick <= last { last } else { over };
        (self.masks_interrupts && tick > began && handled >= due).then_some(handled)
    }

    /// Handles the flusher's timer if it has expired.
    #[inline]
    fn wake_flusher(&mut self, now: Ns) {
        if let Some(due) = self.inodes.flusher.take_due(now) {
            self.fs.sched().wake(due, Task::Background);
        }
    }

    /// Whether a timer of the file system expires while the processor is `awake`, either at its
    /// latest time or early. Timers are checked in the order of their latest times, up to the first
    /// that cannot have expired yet (__hrtimer_run_queues).
    fn is_fs_due(&mut self, awake: Ns, end: Ns) -> bool {
        let Some(latest) = self.fs.next_due() else { return false };
        let timers = [self.inodes.flusher.due(), self.fs.sched().next_timer(), Some(end)];
        let waits = timers.into_iter().flatten().any(|due| due > awake && due < latest);
        latest <= awake || (self.fs.next_due_earliest().is_some_and(|due| due <= awake) && !waits)
    }

    /// Whether a timer that expires at `latest` has expired on the busy processor. The next tick
    /// stands before it, so that no tick but the last one finds it early (__hrtimer_run_queues).
    fn has_expired(&self, latest: Ns, now: Ns) -> bool {
        latest.0 / self.inodes.ticks.tick_ns() <= now.0 / self.inodes.ticks.tick_ns()
    }

    /// Handles timers that expired while the program was running.
    #[inline]
    pub fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        let now = self.resched(now)?;
        self.inodes.flusher.completions.pass(now);
        Ok(now)
    }

    /// The agent reads the clock before a call. A tick within that is handled before the call.
    #[inline]
    pub fn read_clock(&mut self, now: Ns) -> Result<Ns, FsError> {
        match self.clock_reads() {
            Ns::ZERO => Ok(now),
            reads => self.catch_up(now + reads),
        }
    }

    /// The program runs for `time` in user space. It is preempted there as soon as a tick's
    /// interrupt says so.
    pub fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        let (mut now, mut left) = (now, time);
        while left > Ns::ZERO {
            let step = left.min(self.inodes.ticks.after(now, 1) - now);
            left = left - step;
            now = self.catch_up(now + step)?;
        }
        Ok(now)
    }

    /// cond_resched() of the program.
    #[inline]
    pub(super) fn resched(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.fs.mtd().has_power(now)?;
        self.wake_flusher(now);
        if self.fs.next_due().is_some_and(|due| self.has_expired(due, now)) {
            self.fs.run_due(now, &mut self.inodes)?;
        }
        self.fs.resched(now, &mut self.inodes)
    }

    /// write_cache_pages of a whole file.
    fn write_whole(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        let pages = self.inodes[index].cache.tag_dirty(0, u32::MAX);
        if !self.inodes.facts.writeback_iter {
            self.inodes[index].writeback_index = pages.last().copied().unwrap_or(0);
        }
        self.write_pages(now, index, &pages)
    }

    /// write_cache_pages: the dirty pages of `first..end` of one file.
    pub(super) fn write_range(
        &mut self,
        now: Ns,
        index: usize,
        first: u32,
        end: u32,
    ) -> Result<Ns, FsError> {
        let pages = self.inodes[index].cache.tag_dirty(first, end);
        self.write_pages(now, index, &pages)
    }

    /// The same for tagged pages, in order. The next fsync reports pages that could not be written
    /// (mapping_set_error).
    fn write_pages(&mut self, now: Ns, index: usize, pages: &[u32]) -> Result<Ns, FsError> {
        let before = self.fs.mtd_mut().enter(now, waits::Wait::WriteBack);
        let done = self.write_tagged(now, index, pages);
        self.fs.mtd_mut().enter(over(&done, now), before);
        done
    }

    fn write_tagged(&mut self, mut now: Ns, index: usize, pages: &[u32]) -> Result<Ns, FsError> {
        for (at, &page) in pages.iter().enumerate() {
            now = self.resched(now)?; // lock_page
            let Inode { ino, size_bytes: file_bytes, .. } = self.inodes[index];
            if at % EXPECTED_PAGES == 0 {
                self.fs.expect_writes(ino, &pages[at..pages.len().min(at + EXPECTED_PAGES)]);
            }
            if !self.inodes[index].cache.is_page_dirty(page) {
                continue;
            }
            self.inodes[index].clear_page_dirty(page);
            self.inodes.flusher.completions.pass(now);
            self.inodes.flusher.completions.add(1);
            let write = PageWrite::whole(ino, page, file_bytes);
            now = match self.fs.write_page(now, write, &mut self.inodes) {
                Ok(later) => later,
                Err(error) => self.inodes.note_error(now, ino, error)?,
            };
            self.fs.sched().pages_were_written(now);
        }
        Ok(now)
    }

    /// __filemap_fdatawrite_range: the dirty pages of bytes `start..end`.
    pub(super) fn write_bytes_of(
        &mut self,
        now: Ns,
        index: usize,
        start: u64,
        end: u64,
    ) -> Result<Ns, FsError> {
        let page_bytes = u64::from(PAGE_BYTES);
        let page = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match (page(start / page_bytes), page(end.div_ceil(page_bytes))) {
            _ if !self.inodes[index].cache.is_dirty() => Ok(now),
            (0, u32::MAX) => self.write_whole(now, index),
            (first, last) => self.write_range(now, index, first, last),
        }
    }

    /// vfs_fsync_range: writes bytes `start..end` of a file, and what else fsync or, with
    /// `data_only`, fdatasync writes.
    pub(super) fn sync_range(
        &mut self,
        now: Ns,
        index: usize,
        start: u64,
        end: u64,
        data_only: bool,
    ) -> Outcome {
        let now = self.write_bytes_of(now, index, start, end)?;
        if let Some(errno) = self.inodes[index].write_error.take() {
            return Ok((errno, now));
        }
        let Inode { ino, dirty, .. } = self.inodes[index];
        Ok((0, self.fs.fsync(now, ino, !data_only || dirty.size, &mut self.inodes)?))
    }

    /// fsync and, with `data_only`, fdatasync.
    pub fn fsync(&mut self, now: Ns, slot: usize, data_only: bool) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        if self.inodes[open.inode].is_lower() {
            return Ok((0, now)); // ovl_fsync
        }
        self.sync_range(now, open.inode, 0, u64::MAX, data_only)
    }

    /// sync: sync_inodes_sb, then the file system's sync_fs.
    pub fn sync(&mut self, now: Ns) -> Outcome {
        let now = now + self.costs.syscall_ns + self.costs.sync_ns;
        let now = self.write_back_all(now, true)?;
        Ok((0, ignore_errno(self.fs.sync(now, &mut self.inodes), now)?))
    }

    /// wakeup_flusher_threads, if `all`, and sync_inodes_sb. It waits until the flusher has written
    /// every dirty inode, even if there is none. Other tasks may run before the flusher does, and
    /// before the program continues.
    pub(super) fn write_back_all(&mut self, now: Ns, all: bool) -> Result<Ns, FsError> {
        let mut now = now;
        let syncs_others = all && self.fs.sched().has_other_flusher();
        if syncs_others {
            now = self.resched(now)?;
        }
        let is_woken = all && self.inodes.flusher.start_all();
        if is_woken {
            self.fs.sched().wake(now, Task::Background);
        }
        if syncs_others {
            return sync_after_other(&mut self.fs, now, &mut self.inodes);
        }
        if is_woken {
            now = self.resched(now)?; // down_read(&sb->s_umount)
        }
        self.inodes.flusher.queue(Reason::Sync, i64::MAX);
        wait_for_flusher(&mut self.fs, now, &mut self.inodes)
    }

    /// writeback_inodes_sb: the flusher writes every dirty inode, if there is any.
    pub(super) fn write_back_dirty(&mut self, now: Ns) -> Result<Ns, FsError> {
        if !self.inodes.flusher.has_dirty_io() {
            return Ok(now);
        }
        self.inodes.flusher.queue(Reason::FreeSpace, i64::MAX);
        wait_for_flusher(&mut self.fs, now, &mut self.inodes)
    }

    /// inode_wait_for_writeback.
    pub(super) fn wait_for_writeback(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        if !self.inodes.flusher.is_writing(index) {
            return Ok(now);
        }
        self.inodes.flusher.waits = Some(Wait::Inode(index));
        wait_for_flusher(&mut self.fs, now, &mut self.inodes)
    }
}
