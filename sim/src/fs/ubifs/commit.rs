//! Commit: the dirty parts of the index and of the LEB properties tree go to flash, and a new
//! journal begins.
//!
//! Mirrors fs/ubifs/commit.c (do_commit) and master.c (ubifs_write_master) of Linux 6.1.
//! Approximate: the start and the end of a commit are one step here. In the kernel writers continue
//! during the end, which changes the order of flash operations but not the operations.

use super::geometry::{align, MASTER_BYTES, MASTER_LEB};
use super::log::CommitState;
use super::Ubifs;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;
use crate::waits::{over, Wait};

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_run_commit, with do_commit.
    pub(super) fn commit(&mut self, now: Ns) -> Result<Ns> {
        let before = self.ubi.mtd_mut().enter(now, Wait::Commit);
        let done = self.do_commit(now);
        self.ubi.mtd_mut().enter(over(&done, now), before);
        done
    }

    fn do_commit(&mut self, now: Ns) -> Result<Ns> {
        self.journal.commit_state = CommitState::Resting;
        self.check_writable(now)?;
        if !self.tnc.is_dirty() && !self.lpt.is_dirty() {
            return Ok(now);
        }
        let now = self.sync_heads(now)?;
        self.commits += 1;
        let now = self.gc_start_commit(now)?;
        let (closed, now) = self.log_start_commit(now)?;
        let (layout, now) = self.tnc_start_commit(now)?;
        let (tree_writes, now) = self.lpt.start_commit(&mut self.ubi, now)?;
        self.orphans.start_commit();

        let now = self.tnc_end_commit(now, &layout)?;
        let now = now + self.ubi.costs().ubifs_commit_ns;
        let now = self.lpt.end_commit(&mut self.ubi, now, &tree_writes)?;
        let now = self.orphan_end_commit(now)?;
        self.log_end_commit(&closed);
        self.prepare_commit_point();
        let now = self.write_master(now)?;
        let now = self.log_post_commit(now, closed)?;
        let now = self.gc_end_commit(now)?;
        self.lpt.post_commit(&mut self.ubi, now)
    }

    /// ubifs_write_master: writes both copies at the next place in their LEBs.
    pub(super) fn write_master(&mut self, now: Ns) -> Result<Ns> {
        let bytes = align(MASTER_BYTES, self.geometry.page_bytes);
        let mut offset = self.master_offset + bytes;
        if offset + MASTER_BYTES > self.geometry.leb_bytes {
            offset = 0;
        }
        self.master_offset = offset;
        let mut now = now;
        for leb in [MASTER_LEB, MASTER_LEB + 1] {
            if offset == 0 {
                now = self.ubi.unmap(now, leb)?;
            }
            now = self.ubi.write(now, leb, offset, bytes)?;
            self.master_written();
        }
        Ok(now)
    }
}
