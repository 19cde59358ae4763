//! The stack that answers a program's calls: a mounted file system, or the partition itself.

use super::laboratory::Laboratory;
use super::layer_times::LayerTimes;
use super::metadata;
use super::policies::Policies;
use super::survey::{survey, survey_disk, Survey};
use crate::content::Source;
use crate::errno::{answered, FsError, Outcome};
use crate::flash::Torn;
use crate::fs::FlashFs;
use crate::mtd::{Device, Mtd, NandDriver, Partition};
use crate::ops::{Fill, Operation};
use crate::profile::SoftwareCosts;
use crate::sched::TIMER_SLACK;
use crate::units::Ns;
use crate::vfs::Vfs;

/// The stack that answers a program's calls: the VFS over a file system, or a device's file.
/// Methods that only the VFS needs have defaults.
///
/// # Examples
///
/// A stack whose calls take no time and do nothing:
///
/// ```
/// use sim::{errno::Outcome, flash::Chip, mtd::{Mtd, RawNand}};
/// use sim::{ops::Operation, run::Stack, units::Ns};
/// #[derive(Clone)]
/// struct Nothing(Mtd<RawNand<Chip>>);
///
/// impl Stack for Nothing {
///     type Driver = RawNand<Chip>;
///     fn call(&mut self, now: Ns, _: &Operation<'_>) -> Outcome { Ok((0, now)) }
///     fn mtd(&self) -> &Mtd<RawNand<Chip>> { &self.0 }
///     fn mtd_mut(&mut self) -> &mut Mtd<RawNand<Chip>> { &mut self.0 }
/// }
/// ```
pub trait Stack: Clone {
    /// What drives the chip at the bottom.
    type Driver: NandDriver<Flash: Laboratory>;
    /// Runs one operation, after the background work that is due.
    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome;
    /// The driver above the chip.
    fn mtd(&self) -> &Mtd<Self::Driver>;
    /// The driver above the chip, for changes that the laboratory makes below it.
    fn mtd_mut(&mut self) -> &mut Mtd<Self::Driver>;
    /// The program runs for so long without a call. Timers that expire meanwhile are handled.
    fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        Ok(now + time)
    }
    /// The program sleeps until `end`.
    fn pause(&mut self, _now: Ns, end: Ns) -> Result<Ns, FsError> {
        Ok(end)
    }
    /// The program sleeps until an absolute time, which may be over.
    fn sleep_until(&mut self, now: Ns, due: Ns) -> Result<Ns, FsError> {
        Ok(if due > now { due + TIMER_SLACK } else { now })
    }
    /// A file of another file system was closed; the kernel frees it later.
    fn close_elsewhere(&mut self, _now: Ns) {}
    /// The space that df shows as available, if the model knows.
    fn free_bytes(&self) -> Option<u64> {
        None
    }
    /// See [`FlashFs::live_bytes`]. Without a file system every byte of the partition is of
    /// use.
    fn live_bytes(&self, _blocks: &mut [u32]) -> bool {
        false
    }
    /// How long it has spent in its layers so far. Without a file system there is only the driver.
    fn layer_times(&self) -> LayerTimes {
        LayerTimes { driver: self.mtd().time(), ..LayerTimes::default() }
    }
    /// The read-ahead window of files that are opened from now on.
    fn set_read_ahead_kib(&mut self, _kib: u32) {}
    /// Makes policies decide in the kernel's place. Refuses one that has nothing to decide here.
    fn set_policies(&mut self, policies: &Policies) -> core::result::Result<(), &'static str> {
        match policies {
            Policies { read_ahead: None, reclaim: None, victim: None } => Ok(()),
            _ => Err("a policy on this stack"),
        }
    }
    /// Replays a kernel's choices of a garbage collector (see [`Observed`](crate::fs::Observed)).
    fn replay_choices(&mut self, _recorded: &[u16]) {}
    /// The choices made since then.
    fn choices(&self) -> &[u16] {
        &[]
    }
    /// Pages of the page cache that were found, waited for and added since the last call.
    fn take_cache_counts(&mut self) -> [u64; 3] {
        [0; 3]
    }
    /// Surveys what is left after the power failed `at`, in the `change`th change of the chip.
    fn survey(&mut self, _at: Ns, _change: u64, _torn: Option<Torn>) -> Result<Survey, FsError> {
        Err(FsError::NotModelled("a power cut where there is no file system"))
    }
}

/// The processor time of overlayfs itself in a call, besides lookups and names that open creates.
fn of_layer(costs: &SoftwareCosts, operation: &Operation<'_>) -> Ns {
    match operation {
        Operation::Open { .. } => costs.overlay_open_ns,
        Operation::Close { .. } => costs.overlay_close_ns,
        Operation::Read { .. } => costs.overlay_read_ns,
        Operation::Write { .. } => costs.overlay_write_ns,
        Operation::Mkdir { .. } | Operation::Link { .. } | Operation::Symlink { .. } => {
            costs.overlay_create_ns
        }
        Operation::Unlink { .. } | Operation::Rmdir { .. } => costs.overlay_remove_ns,
        Operation::Rename { .. } => costs.overlay_rename_ns,
        Operation::Stat { .. }
        | Operation::ReadDir { .. }
        | Operation::ReadLink { .. }
        | Operation::Chmod { .. }
        | Operation::Chown { .. }
        | Operation::Utimens { .. }
        | Operation::Truncate { .. } => costs.overlay_inode_ns,
        _ => Ns::ZERO,
    }
}

impl<S: FlashFs<Driver: NandDriver<Flash: Laboratory>>> Stack for Vfs<S> {
    type Driver = S::Driver;

    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let vfs = self;
        let now = match operation {
            // The first handles expired timers itself; the others are no calls.
            Operation::Pause { .. } | Operation::Prepared | Operation::Mark => now,
            _ => {
                let now = vfs.catch_up(now)?;
                let of_layer =
                    vfs.layer_costs().map_or(Ns::ZERO, |costs| of_layer(costs, operation));
                vfs.read_clock(now)? + of_layer
            }
        };
        let outcome = match *operation {
            Operation::Mkdir { path } => vfs.mkdir(now, path),
            Operation::Open { slot, path, flags } => vfs.open(now, slot, path, flags),
            Operation::Close { slot } => vfs.close(now, slot),
            Operation::Read { slot, offset, length } => vfs.read(now, slot, offset, length),
            Operation::Write { slot, offset, length, seed, fill: Fill::Even(compressibility) } => {
                vfs.write(now, slot, offset, length, Source { seed, compressibility })
            }
            Operation::Write { slot, offset, length, seed, fill } => {
                vfs.write_bytes(now, slot, (offset, length), metadata::written(offset, seed, fill))
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
            Operation::Flock { slot, how } => vfs.flock(now, slot, how),
            Operation::Fallocate { slot, offset, length, .. } => {
                vfs.fallocate(now, slot, offset, length)
            }
            Operation::SyncRange { slot, offset, length, flags } => {
                vfs.sync_file_range(now, slot, (offset, length), flags)
            }
            Operation::SyncFs { slot } => vfs.syncfs(now, slot),
            Operation::Copy { from, from_offset, to, to_offset, length } => {
                vfs.copy(now, (from, from_offset), (to, to_offset), length)
            }
            Operation::Send { slot, offset, length } => vfs.send(now, slot, offset, length),
            ref other => metadata::call(vfs, now, other),
        };
        vfs.refuse_reclaimed()?;
        answered(outcome, now)
    }

    fn mtd(&self) -> &Mtd<S::Driver> {
        self.fs().mtd()
    }

    fn mtd_mut(&mut self) -> &mut Mtd<S::Driver> {
        self.fs_mut().mtd_mut()
    }

    fn work(&mut self, now: Ns, time: Ns) -> Result<Ns, FsError> {
        Vfs::work(self, now, time)
    }

    fn pause(&mut self, now: Ns, end: Ns) -> Result<Ns, FsError> {
        Vfs::pause(self, now, end)
    }

    fn sleep_until(&mut self, now: Ns, due: Ns) -> Result<Ns, FsError> {
        Vfs::sleep_until(self, now, due)
    }

    fn close_elsewhere(&mut self, now: Ns) {
        self.file_free(now);
    }

    fn free_bytes(&self) -> Option<u64> {
        self.fs().free_bytes()
    }

    fn live_bytes(&self, blocks: &mut [u32]) -> bool {
        self.fs().live_bytes(blocks)
    }

    fn layer_times(&self) -> LayerTimes {
        let (fs, ubi) = (self.fs().time_in_calls(), self.fs().time_in_ubi());
        LayerTimes { fs, ubi, driver: self.mtd().time() }
    }

    fn set_read_ahead_kib(&mut self, kib: u32) {
        Vfs::set_read_ahead_kib(self, kib);
    }

    fn set_policies(&mut self, policies: &Policies) -> core::result::Result<(), &'static str> {
        if let Some(read_ahead) = policies.read_ahead.clone() {
            self.set_read_ahead_policy(read_ahead);
        }
        if let Some(reclaim) = policies.reclaim.clone() {
            self.set_reclaim_policy(reclaim);
        }
        let Some(victim) = policies.victim.clone() else { return Ok(()) };
        match self.fs_mut().set_victim(victim) {
            true => Ok(()),
            false => Err("a policy of collection on this file system"),
        }
    }

    fn replay_choices(&mut self, recorded: &[u16]) {
        self.fs_mut().replay_choices(recorded);
    }

    fn choices(&self) -> &[u16] {
        self.fs().choices()
    }

    fn take_cache_counts(&mut self) -> [u64; 3] {
        [&mut self.cache_hits, &mut self.cache_misses, &mut self.cache_adds].map(core::mem::take)
    }

    fn survey(&mut self, at: Ns, change: u64, torn: Option<Torn>) -> Result<Survey, FsError> {
        survey(self, at, change, torn)
    }
}

impl<D: Device<Driver: NandDriver<Flash: Laboratory>>> Stack for Partition<D> {
    type Driver = D::Driver;

    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        Partition::call(self, now, operation)
    }

    fn mtd(&self) -> &Mtd<D::Driver> {
        Partition::mtd(self)
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D::Driver> {
        Partition::mtd_mut(self)
    }

    fn set_policies(&mut self, policies: &Policies) -> core::result::Result<(), &'static str> {
        let takes = match policies.clone() {
            Policies { read_ahead: Some(_), .. } | Policies { reclaim: Some(_), .. } => false,
            Policies { victim: Some(victim), .. } => self.set_victim(victim),
            Policies { victim: None, .. } => true,
        };
        takes.then_some(()).ok_or("a policy where there is no file system")
    }

    fn survey(&mut self, at: Ns, change: u64, torn: Option<Torn>) -> Result<Survey, FsError> {
        survey_disk(self, at, change, torn)
    }
}
