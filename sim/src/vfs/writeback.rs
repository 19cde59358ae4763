//! Write-back: which inodes are dirty, and who writes them out when.
//!
//! Mirrors fs/fs-writeback.c (__mark_inode_dirty, writeback_single_inode, wb_writeback,
//! wb_check_old_data_flush, wb_check_background_flush, sync_inodes_sb) and fs/sync.c of Linux 6.1 for
//! the one backing device there is; flusher.rs has the lists. An inode joins them when something of it
//! becomes dirty and leaves them when the flusher or sync has written it out: its pages first, then
//! itself. fsync writes the same and leaves the inode where it is in the list. The flusher's size of a
//! bite (MIN_WRITEBACK_PAGES) is no limit here but above the dirty limits (page_writeback.rs).

use super::inodes::Inode;
use super::{untold, Outcome, Vfs, EBADF};
use crate::fs::{FlashFs, FsError, PageWrite, PAGE_BYTES};
use crate::trace::Task;
use crate::units::Ns;

/// Pages a file system is told of before it is to write them: few enough to stay in a processor's cache.
const EXPECTED_PAGES: usize = 64;

/// i_state and dirtied_when of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirtyState {
    /// Since when something of it is dirty.
    pub since: Option<Ns>,
    /// I_DIRTY_DATASYNC: fdatasync cannot do without the inode, for the size has changed.
    pub size: bool,
}

impl<S: FlashFs> Vfs<S> {
    /// clock_nanosleep.
    pub fn sleep(&mut self, now: Ns, time: Ns) -> Outcome {
        let now = now + self.costs.syscall_ns;
        Ok((0, self.pause(now, now + time)?))
    }

    /// The program sleeps until `end`.
    pub fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError> {
        let slept = self.fs.set_task(now, None, &mut self.inodes)?;
        self.inodes.flusher.has_processor(slept);
        let now = self.idle(slept, end)?;
        self.fs.wake_program(now, end, &mut self.inodes)
    }

    /// Background work runs when it is due, until `end`.
    fn idle(&mut self, mut now: Ns, end: Ns) -> Result<Ns, FsError> {
        loop {
            if self.limits.flushing && now < end {
                now = self.flush_in_background(now)?;
                continue;
            }
            let flusher = self.inodes.flusher.due();
            let due = [flusher, self.fs.next_due()].into_iter().flatten().min();
            let awake = due.map_or(end, |due| due.min(end)).max(now);
            if self.is_fs_due(awake, end) {
                let done = self.fs.run_due(awake, &mut self.inodes);
                now = untold(done, awake)?;
            } else if flusher.is_some_and(|due| due <= awake) {
                now = self.run_flusher(awake)?;
            } else {
                return Ok(awake);
            }
        }
    }

    /// Whether a timer of the file system ends when the processor is `awake`, at the latest, or in advance. Timers are looked
    /// at in the order in which they end at the latest, up to the first that cannot have ended yet (__hrtimer_run_queues).
    fn is_fs_due(&self, awake: Ns, end: Ns) -> bool {
        let Some(latest) = self.fs.next_due() else { return false };
        let is_next = |due: Ns| due > awake && due < latest;
        let waits = self.inodes.flusher.due().is_some_and(is_next) || is_next(end);
        latest <= awake || (self.fs.next_due_earliest().is_some_and(|due| due <= awake) && !waits)
    }

    /// Runs what has become due while the program was busy.
    #[inline]
    pub fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        let now = self.fs.resched(now, &mut self.inodes)?;
        self.inodes.flusher.pass(now);
        let due = [self.inodes.flusher.due(), self.fs.next_due()];
        match due.into_iter().flatten().min() {
            Some(due) if due <= now => self.pause(now, now),
            _ => Ok(now),
        }
    }

    /// wb_workfn after its timer.
    fn run_flusher(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.inodes.flusher.wake();
        if !self.inodes.flusher.has_dirty_io() {
            return Ok(now);
        }
        let now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        let now = self.flush_by_itself(now)?;
        self.inodes.flusher.sleep(now);
        self.fs.set_task(now, None, &mut self.inodes)
    }

    /// What the flusher does without being asked: wb_check_old_data_flush and wb_check_background_flush,
    /// which goes on until a device that has no share in the limits as yet has one.
    fn flush_by_itself(&mut self, mut now: Ns) -> Result<Ns, FsError> {
        if self.inodes.flusher.begins_old_flush(now) {
            while let Some(index) = self.inodes.flusher.take_old(now) {
                now = self.write_inode(now, index)?;
            }
        }
        if !self.inodes.flusher.has_share(now) && self.inodes.dirty_pages() > 0 {
            let begun = now;
            while let Some(index) = self.inodes.flusher.take() {
                now = self.write_inode(now, index)?;
                if self.inodes.flusher.is_round_over(begun, now) {
                    break;
                }
            }
        }
        Ok(now)
    }

    /// writeback_sb_inodes of one inode: its pages, and itself.
    pub(super) fn write_inode(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        let state = std::mem::take(&mut self.inodes[index].dirty);
        let now = self.write_from_index(now, index)?;
        let ino = self.inodes[index].ino;
        let written = self.fs.write_inode(now, ino, &mut self.inodes);
        let now = untold(written, now)?;
        if self.inodes[index].cache.is_dirty() {
            self.redirty_tail(now, index, state.since.expect("it was dirty"));
        }
        Ok(now)
    }

    /// redirty_tail: the list stays in the order of time.
    fn redirty_tail(&mut self, now: Ns, index: usize, since: Ns) {
        let is_older = self.inodes.flusher.newest().is_some_and(|newest| since < newest);
        let since = if is_older { now } else { since };
        self.inodes[index].dirty.since = Some(since);
        self.inodes.flusher.add(now, index, since);
    }

    /// write_cache_pages of a whole file.
    fn write_whole(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        let last = self.inodes[index].cache.last_dirty();
        self.inodes[index].writeback_index = last.unwrap_or(0);
        self.write_pages(now, index, 0, u32::MAX)
    }

    /// write_cache_pages with `range_cyclic`: from `writeback_index` to the end. What lies before it
    /// waits for the next time.
    fn write_from_index(&mut self, now: Ns, index: usize) -> Result<Ns, FsError> {
        let first = std::mem::take(&mut self.inodes[index].writeback_index);
        self.write_pages(now, index, first, u32::MAX)
    }

    /// write_cache_pages: the dirty pages of `first..end` of one file, in order. What could not be written is told by
    /// the next fsync (mapping_set_error).
    pub(super) fn write_pages(
        &mut self,
        mut now: Ns,
        index: usize,
        first: u32,
        end: u32,
    ) -> Result<Ns, FsError> {
        let Inode { ino, size_bytes: file_bytes, ref mut cache, .. } = self.inodes[index];
        let pages = cache.take_dirty(first, end);
        self.inodes.flusher.complete(pages.len());
        for (at, &page) in pages.iter().enumerate() {
            if at % EXPECTED_PAGES == 0 {
                self.fs.expect_writes(ino, &pages[at..pages.len().min(at + EXPECTED_PAGES)]);
            }
            let write = PageWrite::whole(ino, page, file_bytes);
            match self.fs.write_page(now, write, &mut self.inodes) {
                Ok(later) => now = later,
                Err(error) => {
                    let errno;
                    (errno, now) = super::errno(error, now)?;
                    self.inodes[index].write_error.get_or_insert(errno);
                }
            }
        }
        Ok(now)
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
        let page_bytes = u64::from(PAGE_BYTES);
        let page = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let (first, last) = (page(start / page_bytes), page(end.div_ceil(page_bytes)));
        let now = match (first, last) {
            _ if !self.inodes[index].cache.is_dirty() => now,
            (0, u32::MAX) => self.write_whole(now, index)?,
            (first, last) => self.write_pages(now, index, first, last)?,
        };
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
        let now = self.write_back_all(now + self.costs.syscall_ns)?;
        Ok((0, untold(self.fs.sync(now, &mut self.inodes), now)?))
    }

    /// sync_inodes_sb waits until the flusher has written every dirty inode, even if there is none: whoever else wants the
    /// processor may get it before the flusher does, or before the program does again.
    pub(super) fn write_back_all(&mut self, mut now: Ns) -> Result<Ns, FsError> {
        now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        if self.inodes.flusher.has_dirty_io() {
            self.inodes.flusher.wake();
            while let Some(index) = self.inodes.flusher.take() {
                now = self.write_inode(now, index)?;
            }
            self.inodes.flusher.begins_old_flush(now);
        }
        self.fs.set_task(now, Some(Task::Program), &mut self.inodes)
    }
}
