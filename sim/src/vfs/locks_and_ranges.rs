//! Calls that the VFS answers by itself: flock, fallocate, sync_file_range, syncfs.
//!
//! Mirrors fs/locks.c (flock_lock_inode), fs/open.c (vfs_fallocate) and fs/sync.c of Linux 6.1. No
//! file system here implements `fallocate`, so a call that passes the VFS's checks is refused. Only
//! the program's other tasks can hold a contended lock, so `flock` never waits.

use super::Vfs;
use crate::errno::{ignore_errno, Outcome};
use crate::errno::{EAGAIN, EBADF, EFBIG, EINVAL, EOPNOTSUPP};
use crate::fs::FlashFs;
use crate::ops::{Locking, RangeFlags};
use crate::units::Ns;

impl<S: FlashFs> Vfs<S> {
    /// flock with LOCK_NB. Converting a lock releases it first.
    pub fn flock(&mut self, now: Ns, slot: usize, how: Locking) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = self.slots[slot].as_mut() else { return Ok((EBADF, now)) };
        let index = open.inode;
        if how != Locking::Unlock && open.lock == Some(how) {
            return Ok((0, now));
        }
        open.lock = None;
        if how == Locking::Unlock {
            return Ok((0, now));
        }
        let others = self.slots.iter().flatten().filter(|other| other.inode == index);
        let mut held = others.filter_map(|other| other.lock);
        if held.any(|lock| lock == Locking::Exclusive || how == Locking::Exclusive) {
            return Ok((EAGAIN, now));
        }
        if let Some(open) = &mut self.slots[slot] {
            open.lock = Some(how);
        }
        Ok((0, now))
    }

    /// vfs_fallocate, up to its call of the file system.
    pub fn fallocate(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let result = match &self.slots[slot] {
            None => EBADF,
            Some(_) if length == 0 => EINVAL,
            Some(open) if !open.flags.write => EBADF,
            Some(_) if offset + length > self.fs.max_file_bytes() => EFBIG,
            Some(_) => EOPNOTSUPP,
        };
        Ok((result, now))
    }

    /// sync_file_range: writes the dirty pages of the range. It never waits, because a written page
    /// is already on the flash.
    pub fn sync_file_range(
        &mut self,
        now: Ns,
        slot: usize,
        (offset, length): (u64, u64),
        flags: RangeFlags,
    ) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        let end = if length == 0 { u64::MAX } else { offset + length };
        if flags.write {
            now = self.write_bytes_of(now, index, offset, end)?;
        }
        let waits = flags.wait_before || flags.wait_after;
        let error = if waits { self.inodes[index].write_error.take() } else { None };
        Ok((error.unwrap_or(0), now))
    }

    /// syncfs: sync_filesystem, which does not wake the flusher for other file systems.
    pub fn syncfs(&mut self, now: Ns, slot: usize) -> Outcome {
        let now = now + self.costs.syscall_ns;
        if self.slots[slot].is_none() {
            return Ok((EBADF, now));
        }
        let now = self.write_back_all(now + self.costs.sync_ns, false)?;
        Ok((0, ignore_errno(self.fs.sync(now, &mut self.inodes), now)?))
    }
}
