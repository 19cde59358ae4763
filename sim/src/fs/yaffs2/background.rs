//! The background thread, and sync.
//!
//! Mirrors kernel/yaffs2/background.c and sync.c, which do what the Linux glue of July 2013 did: headers of directories each second, collection as
//! often as it is urgent; sync(2) writes what is held back and a checkpoint.
//!
//! Left out: that the thread waits for the processor, or for the lock, while a program is busy.

use super::Yaffs2;
use crate::chip::Flash;
use crate::fs::Result;
use crate::units::Ns;

/// The thread, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thread {
    /// After this tick directories are due, and after this one a collection.
    directories: u64,
    collection: u64,
    pub due: Option<Ns>,
}

impl<F: Flash> Yaffs2<F> {
    pub(super) fn start_thread(&mut self, now: Ns) {
        let jiffies = self.ticks.jiffies(now);
        self.thread = Thread { directories: jiffies, collection: jiffies, due: Some(now) };
    }

    /// yfs_urgency: how much of the free space is scattered among blocks in use.
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

    /// One turn of the thread's loop.
    pub(super) fn run_thread(&mut self, now: Ns) -> Result<Ns> {
        let hz = self.ticks.per_second();
        let jiffies = self.ticks.jiffies(now);
        let mut now = now;
        if jiffies > self.thread.directories {
            now = self.update_dirty_directories(now)?;
            self.thread.directories = jiffies + hz;
        }
        if jiffies > self.thread.collection {
            if self.is_checkpointed {
                self.thread.collection = self.thread.directories;
            } else {
                let urgency = self.urgency();
                now = self.check_gc(now, true)?;
                self.thread.collection = jiffies + [2 * hz, hz / 10 + 1, hz / 20 + 1][urgency];
            }
        }
        let next = self.thread.collection.min(self.thread.directories);
        let until = if next < jiffies { jiffies + hz } else { next };
        let ticks = (until + 1).saturating_sub(self.ticks.jiffies(now)).max(1);
        self.thread.due = Some(self.ticks.timer_in(now, ticks));
        Ok(now)
    }

    /// yfs_sync_fs, which the kernel calls twice. Inodes in memory are flushed, the newest first.
    pub(super) fn sync_fs(&mut self, mut now: Ns) -> Result<Ns> {
        for _ in 0..2 {
            let checkpoint = self.urgency() == 0 && !self.is_checkpointed;
            if !self.is_dirty && !checkpoint {
                continue;
            }
            for number in self.objects.inodes.clone().into_iter().rev() {
                now = self.flush_file(now, number, false)?;
            }
            now = self.update_dirty_directories(now)?;
            now = self.flush_whole_cache(now)?;
            if checkpoint {
                now = self.save_checkpoint(now)?;
            }
            self.is_dirty = false;
        }
        Ok(now)
    }
}
