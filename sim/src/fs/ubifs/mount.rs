//! Unmounting, and mounting after a clean unmount.
//!
//! Mirrors fs/ubifs/super.c (ubifs_put_super, mount_ubifs, take_gc_lnum) of Linux 6.1, and what a
//! journal without nodes needs of replay.c (ubifs_replay_journal, replay_log_leb, replay_bud,
//! set_bud_lprops), orphan.c (ubifs_clear_orphans) and master.c (scan_for_master). An unmount
//! commits, so a mount reads each bud from the position of its head and finds no node there. In
//! between UBI is detached and attached, as `umount`, `ubidetach`, `ubiattach` and `mount` do.
//!
//! Invariant: after a mount, memory holds what the mount has read and the properties of the LEBs it
//! has taken.

use super::dumped_volume::FirstMount;
use super::geometry::{LOG_LEB, MASTER_LEB, SUPERBLOCK_BYTES, SUPERBLOCK_LEB};
use super::orphan::Orphans;
use super::properties::{Change, TAKEN};
use super::Ubifs;
use crate::fs::{Result, ROOT};
use crate::mtd::NandDriver;
use crate::sched::Task;
use crate::units::Ns;

pub(super) const TAKE: Change =
    Change { free: None, dirty: None, more_dirty: 0, set: TAKEN, clear: 0 };

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_put_super, after sync_filesystem.
    pub fn unmount(&mut self, now: Ns) -> Result<Ns> {
        let now = self.ubi.stop_kthread(now, Task::UbifsThread)?;
        let now = self.sync_heads(now)?;
        let now = self.write_master(now)?;
        self.tnc.shrink();
        assert!(!self.tnc.is_dirty(), "an unmount has committed");
        self.lpt.forget();
        self.journal.forget(&self.geometry);
        self.orphans = Orphans::new(&self.geometry);
        self.collected_index.clear();
        self.budget.clear_full();
        for inode in self.inodes.values_mut() {
            inode.in_memory = false;
        }
        // bdi_unregister waits for the flusher
        let now = self.wait_for(now, Task::Background)?;
        self.ubi.flush_bandwidth(now)
    }

    /// mount_ubifs, and the root inode.
    pub fn mount(&mut self, now: Ns) -> Result<Ns> {
        self.mount_as(now, FirstMount::default())
    }

    /// The same, where it is perhaps the first mount of a dump.
    pub(super) fn mount_as(&mut self, now: Ns, first: FirstMount) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let mut now = self.ubi.read(now, SUPERBLOCK_LEB, 0, SUPERBLOCK_BYTES)?;
        now = self.ubi.run_kthread(now, Task::UbifsThread)?;
        for leb in [MASTER_LEB, MASTER_LEB + 1] {
            now = self.ubi.read(now, leb, 0, whole)?;
        }
        // dbg_old_index_check_init reads the index root on every kernel, and drops it again.
        let root = self.tnc.root_place();
        now = self.ubi.read(now, root.leb, root.offset, root.bytes)?;
        now = self.lpt.mount(&mut self.ubi, now)?;
        if first.fixes_space {
            now = self.fix_free_space(now)?;
        }
        now = self.write_master(now)?;
        now = self.write_changed_superblock(now, first)?;
        now = self.lpt.change(&mut self.ubi, now, self.index_head.0, TAKE)?;
        now = self.read_log(now)?;
        now = match first.replays {
            true => self.replay_whole_buds(now)?,
            false => self.replay_buds(now)?,
        };
        for leb in self.geometry.orphans_first()..self.geometry.main_first {
            now = self.ubi.unmap(now, leb)?;
        }
        let gc_leb = self.gc_leb.expect("a LEB is kept for the collector");
        let change = Change { free: Some(whole), dirty: Some(0), ..TAKE };
        now = self.lpt.change(&mut self.ubi, now, gc_leb, change)?;
        now = self.ubi.unmap(now, gc_leb)?;
        self.inode(ROOT.0).in_memory = true;
        self.read_inode(now, ROOT.0)
    }

    /// A mount or unmount waits for another task, as kthread_stop and kthread_run do. UBI's thread
    /// may run first.
    pub(super) fn wait_for(&mut self, now: Ns, task: Task) -> Result<Ns> {
        let now = self.ubi.set_task(now, Some(task))?;
        self.ubi.set_task(now, Some(Task::Program))
    }

    /// Scans the log from its tail to a LEB that is empty or older than the tail.
    pub(super) fn read_log(&mut self, now: Ns) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let mut now = now;
        let mut leb = self.journal.log_tail;
        for _ in 0..self.geometry.log_lebs {
            now = self.ubi.read(now, leb, 0, whole)?;
            if leb == self.journal.log_leb {
                let next = self.geometry.next_log_leb(leb);
                let is_last = next == self.journal.log_tail;
                return if is_last { Ok(now) } else { self.ubi.read(now, next, 0, whole) };
            }
            leb = self.geometry.next_log_leb(leb);
        }
        unreachable!("the head of the log at {leb} is none of its LEBs from {LOG_LEB} on")
    }

    /// replay_bud for each bud, from the position of its head, and set_bud_lprops.
    fn replay_buds(&mut self, now: Ns) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let mut now = now;
        let buds = self.journal.buds.clone();
        for bud in &buds {
            now = self.ubi.read(now, bud.leb, bud.start, whole - bud.start)?;
        }
        for bud in &buds {
            now = self.lpt.change(&mut self.ubi, now, bud.leb, TAKE)?;
        }
        Ok(now)
    }
}
