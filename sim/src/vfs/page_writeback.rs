//! Dirty limits: when write-back begins for the amount of what is dirty, and when a writer has to wait for it.
//!
//! Mirrors mm/page-writeback.c (domain_dirty_limits, balance_dirty_pages_ratelimited, dirty_freerun_ceiling)
//! and fs/fs-writeback.c (wb_over_bg_thresh, wb_check_background_flush) of Linux 6.1 with vm.dirty_ratio and
//! vm.dirty_background_ratio as they are by default. Above the background threshold the flusher works until it is reached
//! again; above the middle between it and the limit a writer waits while the flusher writes as many pages as the writer has dirtied.
//! Left out: the control loop that spreads these waits by bandwidth (wb_dirty_ratelimit); per-device limits (there is one device).
//!
//! Invariant: no more pages are dirty when a writer goes on than when it began to wait.

use super::Vfs;
use crate::fs::{FlashFs, FsError};
use crate::trace::Task;
use crate::units::Ns;

/// vm.dirty_background_ratio and vm.dirty_ratio, percent.
const BACKGROUND_PERCENT: u64 = 10;
const LIMIT_PERCENT: u64 = 20;
/// ratelimit_pages: pages a task dirties before it looks at the limits, and that are written while it waits.
const RATELIMIT_PAGES: u32 = 32;
/// MIN_WRITEBACK_PAGES: what the flusher writes of an inode at a time.
const WRITEBACK_PAGES: u32 = 1024;

/// The thresholds of a machine, in pages, and what was dirtied since anyone looked.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyLimits {
    background: u64,
    freerun: u64,
    /// current->nr_dirtied.
    dirtied: u32,
    /// Whether the flusher is at work until the background threshold is reached.
    pub flushing: bool,
}

impl DirtyLimits {
    /// Of a machine with so much memory for the page cache (global_dirtyable_memory).
    pub fn new(dirtyable_pages: u64) -> DirtyLimits {
        let background = dirtyable_pages * BACKGROUND_PERCENT / 100;
        let limit = dirtyable_pages * LIMIT_PERCENT / 100;
        DirtyLimits { background, freerun: (background + limit) / 2, dirtied: 0, flushing: false }
    }
}

impl<S: FlashFs> Vfs<S> {
    /// balance_dirty_pages_ratelimited, after a page was written into the cache.
    pub(super) fn balance_dirty_pages(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.limits.dirtied += 1;
        if self.limits.dirtied < RATELIMIT_PAGES {
            return Ok(now);
        }
        self.limits.dirtied = 0;
        let dirty = self.inodes.dirty_pages();
        self.limits.flushing |= dirty > self.limits.background;
        if dirty <= self.limits.freerun {
            return Ok(now);
        }
        let now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        let now = self.flush_some(now, RATELIMIT_PAGES)?;
        self.fs.set_task(now, Some(Task::Program), &mut self.inodes)
    }

    /// The flusher below the dirty limit: it gets to work when the program sleeps. A program that does
    /// not has used the processor less than a flusher that waits for the chip, and goes first.
    pub(super) fn flush_in_background(&mut self, now: Ns) -> Result<Ns, FsError> {
        let now = self.fs.set_task(now, Some(Task::Background), &mut self.inodes)?;
        let now = self.flush_some(now, WRITEBACK_PAGES)?;
        self.fs.set_task(now, None, &mut self.inodes)
    }

    /// A piece of wb_writeback for the background threshold.
    fn flush_some(&mut self, now: Ns, pages: u32) -> Result<Ns, FsError> {
        let Some(index) = self.inodes.flusher.inodes().next() else {
            self.limits.flushing = false;
            return Ok(now);
        };
        let first = self.inodes[index].writeback_index;
        let now = match self.inodes[index].cache.end_of_dirty(first, pages) {
            Some(end) => {
                self.inodes[index].writeback_index = end;
                self.write_pages(now, index, first, end)?
            }
            None => {
                self.inodes.flusher.take();
                self.write_inode(now, index)?
            }
        };
        self.limits.flushing = self.inodes.dirty_pages() > self.limits.background;
        Ok(now)
    }
}
