//! Write-back: which inodes are dirty, and who asks that they are written.
//!
//! Mirrors fs/fs-writeback.c (__mark_inode_dirty, sync_inodes_sb, inode_wait_for_writeback),
//! fs/sync.c and write_cache_pages of mm/page-writeback.c as a program calls it, Linux 6.1.
//! flusher.rs has the lists and wb_workfn.rs what the flusher does with them. An inode joins them
//! when something of it becomes dirty and leaves them when the flusher has written it out: its
//! pages first, then itself. fsync writes the same and leaves the inode where it is in the list.

use super::flusher::{Reason, Wait};
use super::inode::Inode;
use super::Vfs;
use crate::errno::{untold, FsError, Outcome, EBADF};
use crate::fs::tasks::{run_other, wait_for_flusher};
use crate::fs::{FlashFs, PageWrite, PAGE_BYTES};
use crate::sched::{Task, TIMER_SLACK};
use crate::units::Ns;

/// Pages a file system is told of before it is to write them: few enough to stay in a processor's
/// cache.
const EXPECTED_PAGES: usize = 64;

impl<S: FlashFs> Vfs<S> {
    /// clock_nanosleep, with what has become due before.
    pub fn sleep(&mut self, now: Ns, time: Ns) -> Outcome {
        let (called, now) = match self.fs.call_sleep(now, &mut self.inodes)? {
            Some(times) => times,
            None => {
                let now = self.catch_up(now)?;
                (now, now)
            }
        };
        let due = called + self.costs.syscall_ns + time;
        Ok((0, self.pause_between(now + self.costs.syscall_ns, due, due + TIMER_SLACK)?))
    }

    /// clock_nanosleep with TIMER_ABSTIME, with what has become due before.
    pub fn sleep_until(&mut self, now: Ns, due: Ns) -> Result<Ns, FsError> {
        if due <= now {
            return Ok(now);
        }
        let now = match self.fs.call_sleep(now, &mut self.inodes)? {
            Some((_, now)) => now,
            None => self.catch_up(now)?,
        };
        let now = now + self.costs.syscall_ns;
        self.pause_between(now, due.max(now), due.max(now) + TIMER_SLACK)
    }

    /// The program sleeps until `end`.
    pub fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError> {
        self.pause_between(now, end, end)
    }

    /// The program sleeps until `due`, at the latest until `latest`. It goes on when it has been
    /// woken, and after the threads that wake with it on an idle processor.
    fn pause_between(&mut self, now: Ns, due: Ns, latest: Ns) -> Result<Ns, FsError> {
        let (now, rang) = self.sleep_between(now, due, latest)?;
        let before = self.fs.sched().served_at(rang);
        Ok(now + self.costs.wake_ns * (1 + before))
    }

    /// The same, at no cost: when it goes on, and when its timer has rung.
    fn sleep_between(&mut self, now: Ns, due: Ns, latest: Ns) -> Result<(Ns, Ns), FsError> {
        let now = self.fs.begin_sleep(now)?;
        let (now, rang) = self.idle(now, due, latest)?;
        Ok((self.fs.wake_program(now, rang, &mut self.inodes)?, rang))
    }

    /// Timers and threads go on until the program's timer rings: at the first interrupt of the
    /// clock from `due` on, its own at `latest` (__hrtimer_run_queues).
    fn idle(&mut self, mut now: Ns, due: Ns, latest: Ns) -> Result<(Ns, Ns), FsError> {
        let mut end = latest;
        loop {
            if end > due {
                end = end.min(self.interrupt_from(now, due).unwrap_or(latest));
            }
            self.inodes.flusher.completions.pass(now);
            self.wake_flusher(now);
            if self.fs.next_due().is_some_and(|due| due <= now) {
                let done = self.fs.run_due(now, &mut self.inodes);
                now = untold(done, now)?;
                continue;
            }
            let done = match self.fs.sched().current() {
                Some(_) if now >= end => return Ok((now, end)),
                Some(_) => run_other(&mut self.fs, now, &mut self.inodes),
                None => {
                    let flusher = self.inodes.flusher.due();
                    let due = [flusher, self.fs.next_due()].into_iter().flatten().min();
                    let awake = due.map_or(end, |due| due.min(end)).max(now);
                    if self.is_fs_due(awake, end) {
                        now = awake;
                        self.fs.run_due(awake, &mut self.inodes)
                    } else if flusher.is_some_and(|due| due <= awake) {
                        Ok(awake)
                    } else {
                        return Ok((awake, end));
                    }
                }
            };
            now = untold(done, now)?;
        }
    }

    /// The next tick, or timer of a thread, if it is `due` by then.
    fn interrupt_from(&mut self, now: Ns, due: Ns) -> Option<Ns> {
        let has_tick = self.fs.sched().has_next_tick();
        let tick = has_tick.then(|| self.inodes.ticks.after(now, 1));
        let timers = [tick, self.inodes.flusher.due(), self.fs.next_due()];
        timers.into_iter().flatten().filter(|&at| at >= due).min()
    }

    /// The flusher's timer has ended, perhaps.
    #[inline]
    fn wake_flusher(&mut self, now: Ns) {
        if let Some(due) = self.inodes.flusher.take_due(now) {
            self.fs.sched().wake(due, Task::Background);
        }
    }

    /// Whether a timer of the file system ends when the processor is `awake`, at the latest, or in
    /// advance. Timers are looked at in the order in which they end at the latest, up to the first
    /// that cannot have ended yet (__hrtimer_run_queues).
    fn is_fs_due(&self, awake: Ns, end: Ns) -> bool {
        let Some(latest) = self.fs.next_due() else { return false };
        let is_next = |due: Ns| due > awake && due < latest;
        let waits = self.inodes.flusher.due().is_some_and(is_next) || is_next(end);
        latest <= awake || (self.fs.next_due_earliest().is_some_and(|due| due <= awake) && !waits)
    }

    /// Runs what has become due while the program was busy.
    #[inline]
    pub fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        let now = self.resched(now)?;
        self.inodes.flusher.completions.pass(now);
        match self.fs.next_due() {
            Some(due) if due <= now => Ok(self.sleep_between(now, now, now)?.0),
            _ => Ok(now),
        }
    }

    /// The program works for some `time` of its own. Outside of the kernel it makes way as soon as
    /// it should: when the interrupt of the tick that says so returns.
    pub fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        let (mut now, mut left) = (now, time);
        while left > Ns::ZERO {
            let step = left.min(self.inodes.ticks.after(now, 1) - now);
            left = left - step;
            now = self.catch_up(now + step)?;
        }
        Ok(now)
    }

    /// cond_resched of the program.
    #[inline]
    pub(super) fn resched(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.fs.mtd().has_power(now)?;
        self.wake_flusher(now);
        self.fs.resched(now, &mut self.inodes)
    }

    /// write_cache_pages of a whole file.
    fn write_whole(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        let pages = self.inodes[index].cache.tag_dirty(0, u32::MAX);
        self.inodes[index].writeback_index = pages.last().copied().unwrap_or(0);
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

    /// The same of pages that are tagged, in order. What could not be written is told by the next
    /// fsync (mapping_set_error).
    fn write_pages(&mut self, mut now: Ns, index: usize, pages: &[u32]) -> Result<Ns, FsError> {
        for (at, &page) in pages.iter().enumerate() {
            now = self.resched(now)?; // lock_page
            let Inode { ino, size_bytes: file_bytes, ref mut cache, .. } = self.inodes[index];
            if at % EXPECTED_PAGES == 0 {
                self.fs.expect_writes(ino, &pages[at..pages.len().min(at + EXPECTED_PAGES)]);
            }
            if !cache.is_page_dirty(page) {
                continue;
            }
            cache.clear_dirty(page);
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

    /// vfs_fsync_range: bytes `start..end` of a file, and what fsync or, with `data_only`,
    /// fdatasync wants besides.
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
        self.sync_range(now, open.inode, 0, u64::MAX, data_only)
    }

    /// sync: sync_inodes_sb, and then the file system's own.
    pub fn sync(&mut self, now: Ns) -> Outcome {
        let now = now + self.costs.syscall_ns + self.costs.sync_ns;
        let now = self.write_back_all(now, true)?;
        Ok((0, untold(self.fs.sync(now, &mut self.inodes), now)?))
    }

    /// wakeup_flusher_threads, if `all`, and sync_inodes_sb, which waits until the flusher has
    /// written every dirty inode, even if there is none: whoever else wants the processor may get
    /// it before the flusher does, or before the program does again.
    pub(super) fn write_back_all(&mut self, now: Ns, all: bool) -> Result<Ns, FsError> {
        let mut now = now;
        if all && self.inodes.flusher.start_all() {
            self.fs.sched().wake(now, Task::Background);
            now = self.resched(now)?; // down_read(&sb->s_umount)
        }
        self.inodes.flusher.queue(Reason::Sync, i64::MAX);
        wait_for_flusher(&mut self.fs, now, &mut self.inodes)
    }

    /// wb_shutdown: the flusher does what is left to do.
    pub(super) fn shut_flusher_down(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.inodes.flusher.start();
        self.inodes.flusher.waits = Some(Wait::Work);
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
