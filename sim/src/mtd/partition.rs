//! The partition as the only file of a directory: what every device that shows it has in common.
//!
//! agent/fs/raw.c makes the same directory: `partition` is a link to the device. Here are its
//! descriptors, the calls that are the same whatever the device, and the answers to a descriptor
//! that is closed or open for the other direction. What differs is a [`Device`]: MTD's own
//! (char.rs), and block devices (block/fops.rs). Left out: names other than `partition`.
//!
//! Invariant: a device is read and written through open descriptors only.

use crate::content::Source;
use crate::errno::{FsError, Outcome, EBADF, EINVAL, ENOENT};
use crate::flash::Torn;
use crate::mtd::{Mtd, NandDriver, TornAt};
use crate::ops::{Advice, Fill, Flags, Operation, NAMES, SLOTS_AT_FIRST};
use crate::profile::SoftwareCosts;
use crate::sched::TIMER_SLACK;
use crate::units::Ns;
use crate::victim::Victim;

/// The file's name.
pub(crate) const PARTITION: &str = "partition";
const NO_NAMES: FsError = FsError::NotModelled("names where there is no file system");

/// What the file `partition` is.
pub trait Device: Clone {
    /// What drives the chip at the bottom.
    type Driver: NandDriver;
    /// The partition.
    fn mtd(&self) -> &Mtd<Self::Driver>;
    /// The partition, for changes that the laboratory makes below it.
    fn mtd_mut(&mut self) -> &mut Mtd<Self::Driver>;
    /// Opens it, or refuses flags that are not modelled.
    fn open(&mut self, flags: Flags) -> Result<(), FsError>;
    /// Closes a descriptor; the last one if none `is_left_open`.
    fn close(&mut self, now: Ns, _is_left_open: bool) -> Result<Ns, FsError> {
        Ok(now)
    }
    /// Reads through a descriptor that is open for it.
    fn read(&mut self, now: Ns, offset: u64, length: u64) -> Outcome;
    /// Writes through a descriptor that is open for it, with these flags.
    fn write(&mut self, now: Ns, flags: Flags, offset: u64, length: u64) -> Outcome;
    /// Erases whole blocks (MEMERASE64).
    fn erase(&mut self, now: Ns, flags: Flags, offset: u64, length: u64) -> Outcome;
    /// fsync and fdatasync. Most devices have none.
    fn fsync(&mut self, now: Ns) -> Outcome {
        Ok((EINVAL, now))
    }
    /// The answer to ftruncate.
    fn truncate(&self) -> i64 {
        EINVAL
    }
    /// Makes another policy choose the blocks that it collects. Returns false if it collects none.
    fn set_victim(&mut self, _victim: Box<dyn Victim>) -> bool {
        false
    }
    /// What the next writes write, for a survey after a power cut.
    fn will_write(&mut self, _source: Option<Source>) {}
    /// Is attached again, after an operation was interrupted or not. None if it is not modelled.
    fn attach(&mut self, _now: Ns, _torn: Option<TornAt>) -> Option<Result<Ns, FsError>> {
        None
    }
    /// What it holds: offset, length, and what wrote that; none for zeros.
    fn sources(&self) -> Vec<(u64, u64, Option<Source>)> {
        Vec::new()
    }
    /// Whether advice changes nothing.
    fn ignores(&self, _advice: Advice) -> bool {
        true
    }
}

/// The directory, and its open descriptors.
#[derive(Clone, Debug)]
pub struct Partition<D> {
    device: D,
    costs: SoftwareCosts,
    slots: Vec<Option<Flags>>,
}

impl<D: Device> Partition<D> {
    /// No descriptor is open.
    pub fn new(device: D) -> Partition<D> {
        let costs = *device.mtd().costs();
        Partition { device, costs, slots: vec![None; SLOTS_AT_FIRST] }
    }

    /// The driver.
    pub fn mtd(&self) -> &Mtd<D::Driver> {
        self.device.mtd()
    }

    /// The driver, for changes that the laboratory makes below it.
    pub fn mtd_mut(&mut self) -> &mut Mtd<D::Driver> {
        self.device.mtd_mut()
    }

    /// See [`Device::set_victim`].
    pub fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.device.set_victim(victim)
    }

    /// The power is back, after it failed in an operation. None if that is not modelled.
    pub fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Option<Result<Ns, FsError>> {
        let torn = self.device.mtd_mut().power_on(torn);
        self.slots.fill(None);
        self.device.attach(now, torn)
    }

    /// See [`Device::sources`].
    pub fn sources(&self) -> Vec<(u64, u64, Option<Source>)> {
        self.device.sources()
    }

    /// Runs one operation.
    pub fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let began = now + self.costs.clock_read_ns * 2;
        let called = began + self.costs.syscall_ns;
        match *operation {
            Operation::Open { slot, path, flags } => Ok((self.open(slot, path, flags)?, called)),
            Operation::Sync => Ok((0, called)),
            Operation::DropCaches => Ok((0, called + self.costs.drop_caches_ns)),
            Operation::Pause { ns } => Ok((0, began + Ns(ns) + TIMER_SLACK)),
            Operation::Compute { steps } => {
                Ok((0, began + Ns::from_ps(steps, self.costs.compute_step_ps)))
            }
            Operation::Prepared | Operation::Mark => Ok((0, now)),
            Operation::Mkdir { .. }
            | Operation::Unlink { .. }
            | Operation::Rmdir { .. }
            | Operation::Rename { .. } => Err(NO_NAMES),
            Operation::Remount => Ok((0, self.device.attach(called, None).ok_or(NO_NAMES)??)),
            Operation::SqlOpen { .. } | Operation::Sql { .. } | Operation::SqlClose { .. } => {
                Err(FsError::NotModelled("sql in the simulator"))
            }
            ref other => self.call_slot(called, other),
        }
    }

    /// Runs an operation on a descriptor.
    fn call_slot(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let refused = Err(FsError::NotModelled(NAMES[operation.code()]));
        let Some(slot) = operation.slot() else { return refused };
        let Some(flags) = self.slots.get(slot).copied().flatten() else { return Ok((EBADF, now)) };
        match *operation {
            Operation::Close { .. } => {
                self.slots[slot] = None;
                let is_left_open = self.slots.iter().any(Option::is_some);
                Ok((0, self.device.close(now, is_left_open)?))
            }
            Operation::Read { .. } if !flags.read => Ok((EBADF, now)),
            Operation::Read { offset, length, .. } => self.device.read(now, offset, length),
            Operation::Write { .. } if !flags.write => Ok((EBADF, now)),
            Operation::Write { offset, length, seed, fill, .. } => {
                self.device.will_write(match fill {
                    Fill::Even(compressibility) => Some(Source { seed, compressibility }),
                    Fill::Pieces(_) | Fill::Data(_) => None,
                });
                self.device.write(now, flags, offset, length)
            }
            Operation::Erase { offset, length, .. } => {
                self.device.erase(now, flags, offset, length)
            }
            Operation::Fsync { .. } | Operation::Fdatasync { .. } => self.device.fsync(now),
            Operation::Truncate { .. } => Ok((self.device.truncate(), now)),
            Operation::Fadvise { advice, .. } if self.device.ignores(advice) => Ok((0, now)),
            _ => refused,
        }
    }

    fn open(&mut self, slot: usize, path: &str, flags: Flags) -> Result<i64, FsError> {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        if path != PARTITION {
            return match flags.create {
                true => Err(NO_NAMES),
                false => Ok(ENOENT),
            };
        }
        if flags.excl || flags.directory || flags.tmpfile {
            return Err(FsError::NotModelled("opening a partition with such flags"));
        }
        self.device.open(flags)?;
        self.slots[slot] = Some(flags);
        Ok(0)
    }
}
