//! Write-back: which inodes are dirty, and who writes them out when.
//!
//! Mirrors fs/fs-writeback.c (__mark_inode_dirty, b_dirty, writeback_single_inode,
//! wb_check_old_data_flush, sync_inodes_sb) and fs/sync.c of Linux 6.1 for the one backing device
//! there is. An inode joins the list when something of it becomes dirty and leaves it when the
//! flusher or sync has written it out: its pages first, then itself. fsync writes the same and
//! leaves the inode where it is in the list. Left out: background thresholds and throttling; the
//! flusher's size of a bite (MIN_WRITEBACK_PAGES) is no limit here.

use super::inodes::Inode;
use super::{untold, Outcome, Vfs, EBADF};
use crate::fs::{FlashFs, FsError, PageWrite, PAGE_BYTES};
use crate::trace::Task;
use crate::units::Ns;

/// dirty_writeback_centisecs: how often the flusher looks.
const WRITEBACK_INTERVAL_NS: u64 = 5_000_000_000;
/// dirty_expire_centisecs: how old dirty data has to be for it.
const DIRTY_EXPIRE_NS: u64 = 30_000_000_000;

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
        let now = self.fs.set_task(now, None, &mut self.inodes)?;
        let now = self.idle(now, end)?;
        self.fs.wake_program(now, end, &mut self.inodes)
    }

    /// Background work runs when it is due, until `end`.
    fn idle(&mut self, mut now: Ns, end: Ns) -> Result<Ns, FsError> {
        loop {
            if self.limits.flushing && now < end {
                now = self.flush_in_background(now)?;
            } else if let Some(due) = self.next_due().filter(|&due| due <= end) {
                now = self.run_due(now.max(due))?;
            } else {
                return Ok(now.max(end));
            }
        }
    }

    /// Runs what has become due while the program was busy.
    #[inline]
    pub fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        let now = self.fs.resched(now, &mut self.inodes)?;
        match self.next_due() {
            Some(due) if due <= now => self.pause(now, now),
            _ => Ok(now),
        }
    }

    fn next_due(&self) -> Option<Ns> {
        let oldest = self.inodes.dirty.first().and_then(|&index| self.inodes[index].dirty.since);
        let flusher = oldest
            .map(|Ns(since)| Ns((since + DIRTY_EXPIRE_NS).next_multiple_of(WRITEBACK_INTERVAL_NS)));
        [flusher, self.fs.next_due()].into_iter().flatten().min()
    }

    fn run_due(&mut self, now: Ns) -> Result<Ns, FsError> {
        if self.fs.next_due().is_some_and(|due| due <= now) {
            let done = self.fs.run_due(now, &mut self.inodes);
            return untold(done, now);
        }
        let now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        let now = self.write_expired(now)?;
        self.fs.set_task(now, None, &mut self.inodes)
    }

    /// wb_check_old_data_flush.
    fn write_expired(&mut self, now: Ns) -> Result<Ns, FsError> {
        let expired = |&&index: &&usize| {
            let since = self.inodes[index].dirty.since;
            since.is_some_and(|since| since.0 + DIRTY_EXPIRE_NS <= now.0)
        };
        let expired = self.inodes.dirty.iter().take_while(expired).count();
        self.write_inodes(now, expired)
    }

    /// writeback_sb_inodes: the first inodes of the list, each with its pages before it.
    pub(super) fn write_inodes(&mut self, mut now: Ns, count: usize) -> Result<Ns, FsError> {
        let inodes: Vec<usize> = self.inodes.dirty.drain(..count).collect();
        for index in inodes {
            let state = std::mem::take(&mut self.inodes[index].dirty);
            now = self.write_from_index(now, index)?;
            let ino = self.inodes[index].ino;
            let written = self.fs.write_inode(now, ino, &mut self.inodes);
            now = untold(written, now)?;
            if self.inodes[index].cache.is_dirty() {
                self.redirty_tail(now, index, state.since);
            }
        }
        Ok(now)
    }

    /// redirty_tail: the list stays in the order of time.
    fn redirty_tail(&mut self, now: Ns, index: usize, since: Option<Ns>) {
        let newest = self.inodes.dirty.last().and_then(|&last| self.inodes[last].dirty.since);
        let since = if since < newest { Some(now) } else { since };
        self.inodes[index].dirty.since = since;
        self.inodes.dirty.push(index);
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
        for page in cache.take_dirty(first, end) {
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

    /// sync: whoever else waits for the processor gets it while sync_inodes_sb waits for the flusher, whether that
    /// had anything to write or not. Then the file system's own.
    pub fn sync(&mut self, now: Ns) -> Outcome {
        let now = self.write_back_all(now + self.costs.syscall_ns)?;
        let now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        let now = self.fs.set_task(now, Some(Task::Program), &mut self.inodes)?;
        Ok((0, untold(self.fs.sync(now, &mut self.inodes), now)?))
    }

    /// The flusher, woken first (wakeup_flusher_threads), writes every dirty inode, the longest dirty first, and leaves
    /// nothing for sync_inodes_sb.
    pub(super) fn write_back_all(&mut self, mut now: Ns) -> Result<Ns, FsError> {
        now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        while !self.inodes.dirty.is_empty() {
            now = self.write_inodes(now, self.inodes.dirty.len())?;
        }
        self.fs.set_task(now, Some(Task::Program), &mut self.inodes)
    }
}
