//! The background thread, and sync.
//!
//! Mirrors kernel/yaffs2/background.c and sync.c, which do what the Linux glue of July 2013 did.
//! Each second the thread writes directory headers that are due. It collects garbage as often as
//! the urgency demands. sync(2) flushes the short-op cache and writes a checkpoint.
//!
//! tasks.rs schedules the thread and its lock.

use super::Yaffs2;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// The thread's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thread {
    /// The ticks after which directory headers and the next collection are due; none until the
    /// thread has started.
    pub schedule: Option<(u64, u64)>,
    /// The tick at which it wants to wake.
    wakes_at: u64,
    /// When its timer expires.
    pub until: Option<Ns>,
    /// It holds the gross lock.
    pub is_working: bool,
}

impl<D: NandDriver> Yaffs2<D> {
    /// yfs_urgency: depends on how much of the free space is scattered in blocks that are in use.
    fn urgency(&self) -> usize {
        let erased = i64::from(self.erased_blocks * self.pages_per_block);
        let scattered = (self.free_chunks - erased).max(0);
        if scattered < 2 * i64::from(self.pages_per_block) || erased > self.free_chunks / 2 {
            0
        } else if erased > self.free_chunks / 4 {
            1
        } else {
            2
        }
    }

    /// One iteration of the thread's loop, under the lock.
    pub(super) fn turn(&mut self, mut now: Ns) -> Result<Ns> {
        let hz = self.ticks.per_second();
        let jiffies = self.ticks.jiffies(now);
        let (mut directories, mut collection) = self.thread.schedule.expect("it has begun");
        if jiffies > directories {
            now = self.update_dirty_directories(now)?;
            directories = jiffies + hz;
        }
        if jiffies > collection {
            if self.is_checkpointed {
                collection = directories;
            } else {
                let urgency = self.urgency();
                now = self.check_gc(now, true)?;
                collection = jiffies + [2 * hz, hz / 10 + 1, hz / 20 + 1][urgency];
            }
        }
        self.thread.schedule = Some((directories, collection));
        let next = collection.min(directories);
        self.thread.wakes_at = if next < jiffies { jiffies + hz } else { next } + 1;
        Ok(now)
    }

    /// schedule_timeout.
    pub(super) fn sleep_until_next_turn(&mut self, now: Ns) {
        let ticks = self.thread.wakes_at.saturating_sub(self.ticks.jiffies(now)).max(1);
        self.thread.until = Some(self.ticks.timer_in(now, ticks));
    }

    /// yfs_sync_fs, which the kernel calls twice. Inodes in memory are flushed, the newest first.
    pub(super) fn sync_fs(&mut self, mut now: Ns) -> Result<Ns> {
        for _ in 0..2 {
            now = self.lock(now)?;
            let checkpoint = self.urgency() == 0 && !self.is_checkpointed;
            self.unlock(now);
            if !self.is_dirty && !checkpoint {
                continue;
            }
            for number in Vec::from_iter(self.objects.inodes.iter().rev()) {
                now = self.locked(now, |fs, now| fs.flush_file(now, number, false))?;
            }
            now = self.locked(now, |fs, now| fs.flush_rest(now, checkpoint))?;
        }
        Ok(now)
    }

    /// flush_rest of kernel/yaffs2/sync.c.
    pub(super) fn flush_rest(&mut self, now: Ns, checkpoint: bool) -> Result<Ns> {
        let now = self.update_dirty_directories(now)?;
        let mut now = self.flush_whole_cache(now)?;
        if checkpoint {
            now = self.save_checkpoint(now)?;
        }
        self.is_dirty = false;
        Ok(now)
    }
}
