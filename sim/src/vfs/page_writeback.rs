//! Dirty limits: when background write-back begins, and when a writer has to wait.
//!
//! Mirrors mm/page-writeback.c (balance_dirty_pages_ratelimited, dirty_freerun_ceiling) of Linux
//! 6.1, with the limits of `Vm`. Above the background threshold the flusher writes until the dirty
//! pages are below it again. Above the middle between that and the limit a writer waits while the
//! flusher writes as many pages as the writer dirtied. Left out: the control loop that spreads
//! these waits by bandwidth (wb_dirty_ratelimit); per-device limits (there is one device).
//!
//! Invariant: a wait never ends with more dirty pages than it began with.

use super::flusher::{domain_dirty_limits, Wait};
use super::Vfs;
use crate::errno::FsError;
use crate::fs::tasks::wait_for_flusher;
use crate::fs::FlashFs;
use crate::profile::Vm;
use crate::sched::Task;
use crate::units::Ns;

/// ratelimit_pages: pages that a task dirties between two checks, and that are written while it
/// waits.
const RATELIMIT_PAGES: u32 = 32;

/// A machine's thresholds in pages, and the pages dirtied since the last check.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyLimits {
    background: u64,
    freerun: u64,
    /// current->nr_dirtied.
    dirtied: u32,
}

impl DirtyLimits {
    /// The limits of a machine with so many pages for the page cache (global_dirtyable_memory).
    pub fn new(vm: Vm, dirtyable_pages: u64) -> DirtyLimits {
        let (background, limit) = domain_dirty_limits(vm, dirtyable_pages);
        DirtyLimits { background, freerun: (background + limit) / 2, dirtied: 0 }
    }
}

impl<S: FlashFs> Vfs<S> {
    /// balance_dirty_pages_ratelimited, after a write dirtied a page.
    pub(super) fn balance_dirty_pages(&mut self, now: Ns) -> Result<Ns, FsError> {
        self.limits.dirtied += 1;
        if self.limits.dirtied < RATELIMIT_PAGES {
            return Ok(now);
        }
        self.limits.dirtied = 0;
        let dirty = self.inodes.dirty_pages();
        if dirty > self.limits.background && !self.inodes.flusher.is_awake() {
            self.inodes.flusher.start(); // wb_start_background_writeback
            self.fs.sched().wake(now, Task::Background);
        }
        if dirty <= self.limits.freerun {
            return Ok(now);
        }
        self.inodes.flusher.waits = Some(Wait::Pages(RATELIMIT_PAGES));
        wait_for_flusher(&mut self.fs, now, &mut self.inodes)
    }
}
