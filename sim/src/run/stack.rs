//! What answers a program's calls: a mounted file system, or the partition itself.

use super::survey::{survey, Survey};
use crate::causes::Causes;
use crate::content::Source;
use crate::errno::{answered, FsError, Outcome};
use crate::flash::Flash;
use crate::fs::FlashFs;
use crate::mtd::{Mtd, MtdChar};
use crate::ops::Operation;
use crate::units::Ns;
use crate::vfs::Vfs;

/// Two things only: the VFS over a file system, and MTD's character device.
pub trait Stack: Clone {
    /// The chip at the bottom.
    type Flash: Flash;
    /// Runs one operation, by itself.
    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome;
    /// Background work that is due goes first.
    fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError>;
    /// The program works for so long without calling anything; what becomes due meanwhile is done.
    fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError>;
    /// The program sleeps.
    fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError>;
    /// A file of another file system was closed, which is freed later.
    fn close_elsewhere(&mut self, _now: Ns) {}
    /// The driver above the chip.
    fn mtd(&self) -> &Mtd<Self::Flash>;
    /// What was programmed so far, and why.
    fn causes(&self) -> Causes;
    /// What df says is available, where the model says so.
    fn free_bytes(&self) -> Option<u64>;
    /// The chip at the bottom.
    fn flash(&self) -> &Self::Flash;
    /// The chip at the bottom, to tell an observer something.
    fn flash_mut(&mut self) -> &mut Self::Flash;
    /// Window of files opened from here on.
    fn set_read_ahead_kib(&mut self, kib: u32);
    /// The driver's page buffer is empty.
    fn forget_page_buffer(&mut self);
    /// What a kernel's JFFS2 chose pseudo-randomly from now on.
    fn replay_dice(&mut self, throws: &[u16]);
    /// What it has chosen since.
    fn thrown_dice(&self) -> &[u16];
    /// Pages of the page cache that were found, waited for and added since the last call.
    fn take_cache_counts(&mut self) -> [u64; 3];
    /// What is left after the power failed `at`, in the `change`th change of the chip.
    fn survey(&mut self, at: Ns, change: u64) -> Result<Survey, FsError>;
}

impl<S: FlashFs> Stack for Vfs<S> {
    type Flash = S::Flash;

    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let vfs = self;
        let outcome = match *operation {
            Operation::Mkdir { path } => vfs.mkdir(now, path),
            Operation::Open { slot, path, flags } => vfs.open(now, slot, path, flags),
            Operation::Close { slot } => vfs.close(now, slot),
            Operation::Read { slot, offset, length } => vfs.read(now, slot, offset, length),
            Operation::Write { slot, offset, length, seed, compressibility } => {
                vfs.write(now, slot, offset, length, Source { seed, compressibility })
            }
            Operation::Fsync { slot } => vfs.fsync(now, slot, false),
            Operation::Fdatasync { slot } => vfs.fsync(now, slot, true),
            Operation::Fadvise { slot, offset, length, advice } => {
                vfs.fadvise(now, slot, offset, length, advice)
            }
            Operation::Erase { slot, .. } => vfs.erase(now, slot),
            Operation::Sync => vfs.sync(now),
            Operation::DropCaches => vfs.drop_caches(now),
            Operation::Pause { ns } => vfs.sleep(now, Ns(ns)),
            Operation::Compute { steps } => vfs.compute(now, steps),
            Operation::Prepared | Operation::Mark => Ok((0, now)),
            Operation::Remount => vfs.remount(now),
            Operation::Truncate { slot, length } => vfs.truncate(now, slot, length),
            Operation::Unlink { path } => vfs.unlink(now, path),
            Operation::Rmdir { path } => vfs.rmdir(now, path),
            Operation::Rename { old, new } => vfs.rename(now, old, new),
            Operation::SqlOpen { .. } | Operation::Sql { .. } | Operation::SqlClose { .. } => {
                Err(FsError::NotModelled("sql in the simulator"))
            }
        };
        answered(outcome, now)
    }

    fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        Vfs::catch_up(self, now)
    }

    fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        Vfs::work(self, now, time)
    }

    fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError> {
        Vfs::pause(self, now, end)
    }

    fn close_elsewhere(&mut self, now: Ns) {
        Vfs::call_rcu(self, now);
    }

    fn mtd(&self) -> &Mtd<S::Flash> {
        self.fs().mtd()
    }

    fn causes(&self) -> Causes {
        Vfs::causes(self)
    }

    fn free_bytes(&self) -> Option<u64> {
        self.fs().free_bytes()
    }

    fn flash(&self) -> &S::Flash {
        Vfs::flash(self)
    }

    fn flash_mut(&mut self) -> &mut S::Flash {
        Vfs::flash_mut(self)
    }

    fn set_read_ahead_kib(&mut self, kib: u32) {
        Vfs::set_read_ahead_kib(self, kib);
    }

    fn forget_page_buffer(&mut self) {
        Vfs::forget_page_buffer(self);
    }

    fn replay_dice(&mut self, throws: &[u16]) {
        Vfs::replay_dice(self, throws);
    }

    fn thrown_dice(&self) -> &[u16] {
        self.fs().thrown_dice()
    }

    fn take_cache_counts(&mut self) -> [u64; 3] {
        [&mut self.cache_hits, &mut self.cache_misses, &mut self.cache_adds].map(core::mem::take)
    }

    fn survey(&mut self, at: Ns, change: u64) -> Result<Survey, FsError> {
        survey(self, at, change)
    }
}

impl<F: Flash> Stack for MtdChar<F> {
    type Flash = F;

    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        MtdChar::call(self, now, operation)
    }

    fn catch_up(&mut self, now: Ns) -> Result<Ns, FsError> {
        Ok(now)
    }

    fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        Ok(now + time)
    }

    fn pause(&mut self, _now: Ns, end: Ns) -> Result<Ns, FsError> {
        Ok(end)
    }

    fn mtd(&self) -> &Mtd<F> {
        MtdChar::mtd(self)
    }

    fn causes(&self) -> Causes {
        *MtdChar::mtd(self).causes()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn flash(&self) -> &F {
        MtdChar::flash(self)
    }

    fn flash_mut(&mut self) -> &mut F {
        MtdChar::flash_mut(self)
    }

    fn set_read_ahead_kib(&mut self, _kib: u32) {}

    fn forget_page_buffer(&mut self) {
        MtdChar::forget_page_buffer(self);
    }

    fn replay_dice(&mut self, _throws: &[u16]) {}

    fn thrown_dice(&self) -> &[u16] {
        &[]
    }

    fn take_cache_counts(&mut self) -> [u64; 3] {
        [0; 3]
    }

    fn survey(&mut self, _at: Ns, _change: u64) -> Result<Survey, FsError> {
        Err(FsError::NotModelled("a power cut where there is no file system"))
    }
}
