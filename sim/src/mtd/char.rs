//! The partition itself, read, written and erased below any file system.
//!
//! Mirrors drivers/mtd/mtdchar.c of Linux 6.1 (mtdchar_read, mtdchar_write, MEMERASE64), which
//! copies bytes to and from the program, and `partition` of our driver
//! (kernel/flashbed_nand/raw.c), which copies none. It is the file `partition`, the only one in its
//! directory (agent/fs/raw.c). Left out: the spare area, sizes that no kernel buffer holds (4 MiB),
//! and programming a page again before its block is erased. That is refused, except on factory-bad
//! blocks, where every program fails.
//!
//! Invariants:
//! 1. Nothing is cached: a request is over when the chip is.
//! 2. Requests reach MTD within the partition and aligned as the chip requires.

use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Outcome};
use crate::errno::{EBADF, EBADMSG, EINVAL, EIO, ENOENT, ENOSPC, ENOTTY, EPERM};
use crate::flash::{Failed, Fault};
use crate::mtd::{Mtd, NandDriver};
use crate::ops::{Flags, Operation, NAMES, SLOTS_AT_FIRST};
use crate::profile::SoftwareCosts;
use crate::sched::TIMER_SLACK;
use crate::units::Ns;

/// BUFFER_BYTES of raw.c.
const DRIVER_BUFFER_BYTES: u64 = 128 << 10;

/// The file's name.
const PARTITION: &str = "partition";

/// Which of the two files it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// /dev/mtdN: copies bytes to and from the program.
    Device,
    /// The driver's own file: bytes stay in the kernel.
    Driver,
}

/// The partition and the open descriptors of it.
#[derive(Clone, Debug)]
pub struct MtdChar<D> {
    mtd: Mtd<D>,
    costs: SoftwareCosts,
    access: Access,
    slots: Vec<Option<Flags>>,
}

impl<D: NandDriver> MtdChar<D> {
    /// A partition of a new chip, every block erased.
    pub fn new(mtd: Mtd<D>, access: Access) -> MtdChar<D> {
        MtdChar { costs: *mtd.costs(), mtd, access, slots: vec![None; SLOTS_AT_FIRST] }
    }

    /// The driver.
    pub fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    /// The driver, for changes that the laboratory makes below it.
    pub fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    /// Runs one operation.
    pub fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let began = now + self.costs.clock_read_ns * 2;
        let called = began + self.costs.syscall_ns;
        match *operation {
            Operation::Open { slot, path, flags } => Ok((self.open(slot, path, flags)?, called)),
            Operation::Close { slot } => Ok((self.slots[slot].take().map_or(EBADF, |_| 0), called)),
            Operation::Read { slot, offset, length } => self.read(called, slot, offset, length),
            Operation::Write { slot, offset, length, .. } => {
                self.write(called, slot, offset, length)
            }
            Operation::Erase { slot, offset, length } => self.erase(called, slot, offset, length),
            // Neither file has an fsync. A character device has no length; a debugfs file has any.
            Operation::Fsync { slot } | Operation::Fdatasync { slot } => {
                Ok((self.slots[slot].map_or(EBADF, |_| EINVAL), called))
            }
            Operation::Truncate { slot, .. } => {
                let result = if self.access == Access::Device { EINVAL } else { 0 };
                Ok((self.slots[slot].map_or(EBADF, |_| result), called))
            }
            Operation::Fadvise { slot, .. } => Ok((self.slots[slot].map_or(EBADF, |_| 0), called)),
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
            | Operation::Rename { .. }
            | Operation::Remount => {
                Err(FsError::NotModelled("names where there is no file system"))
            }
            Operation::SqlOpen { .. } | Operation::Sql { .. } | Operation::SqlClose { .. } => {
                Err(FsError::NotModelled("sql in the simulator"))
            }
            ref other => Err(FsError::NotModelled(NAMES[other.code()])),
        }
    }

    fn open(&mut self, slot: usize, path: &str, flags: Flags) -> Result<i64, FsError> {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        if path != PARTITION {
            return match flags.create {
                true => Err(FsError::NotModelled("names where there is no file system")),
                false => Ok(ENOENT),
            };
        }
        if flags.excl || flags.direct || flags.directory || flags.tmpfile {
            return Err(FsError::NotModelled("opening a partition with such flags"));
        }
        self.slots[slot] = Some(flags);
        Ok(0)
    }

    /// The cost of copying bytes to or from the program; nothing for the driver's own file.
    fn copied(&self, bytes: u64, byte_ps: u64) -> Ns {
        match self.access {
            Access::Device => Ns::from_ps(bytes, byte_ps),
            Access::Driver => Ns::ZERO,
        }
    }

    fn read(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        if !self.slots[slot].is_some_and(|flags| flags.read) {
            return Ok((EBADF, now));
        }
        let bytes = length.min(self.mtd.size_bytes().saturating_sub(offset));
        if bytes == 0 {
            return Ok((0, now));
        }
        match self.access {
            Access::Device => {
                let read = self.mtd.read(now, offset, within_a_partition(bytes));
                // A read of the device returns the page's bytes even if they cannot be corrected.
                let read = match read {
                    Err(Failed { at, fault: Fault::Uncorrectable }) => Ok(at),
                    other => other,
                };
                let byte_ps = self.costs.copy_to_user_byte_ps;
                answer(read.map(|now| now + self.copied(bytes, byte_ps)), bytes)
            }
            Access::Driver => self.read_in_driver(now, offset, bytes),
        }
    }

    /// raw_move: reads a buffer at a time, up to the first one that cannot be read.
    fn read_in_driver(&mut self, now: Ns, offset: u64, bytes: u64) -> Outcome {
        let (mut now, mut moved) = (now, 0);
        while moved < bytes {
            let length = (bytes - moved).min(DRIVER_BUFFER_BYTES);
            match self.mtd.read(now, offset + moved, within_a_partition(length)) {
                Ok(later) => now = later,
                Err(Failed { at, fault: Fault::Uncorrectable }) => {
                    return Ok((if moved > 0 { moved as i64 } else { EBADMSG }, at));
                }
                Err(failed) => return answer(Err(failed), 0),
            }
            moved += length;
        }
        Ok((bytes as i64, now))
    }

    fn write(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        if !self.slots[slot].is_some_and(|flags| flags.write) {
            return Ok((EBADF, now));
        }
        let left = self.mtd.size_bytes().saturating_sub(offset);
        if left == 0 {
            return Ok((ENOSPC, now));
        }
        let bytes = length.min(left);
        let unit = u64::from(self.mtd.subpage_bytes());
        let now = now + self.copied(bytes, self.costs.copy_from_user_byte_ps);
        if offset % unit != 0 || bytes % unit != 0 {
            return Ok((EINVAL, now));
        }
        self.check_erased(offset, bytes)?;
        let buffer = if self.access == Access::Driver { DRIVER_BUFFER_BYTES } else { bytes };
        let (mut now, mut moved) = (now, 0);
        while moved < bytes {
            let length = within_a_partition((bytes - moved).min(buffer));
            let causes = Causes::of(Cause::Data, length);
            match self.mtd.write_for(now, offset + moved, length, &causes) {
                Ok(later) => now = later,
                // The driver's own file returns what it moved before the failure.
                Err(Failed { at, fault: Fault::ProgramFailed }) if moved > 0 => {
                    return Ok((moved as i64, at));
                }
                failed => return answer(failed, 0),
            }
            moved += u64::from(length);
        }
        Ok((bytes as i64, now))
    }

    /// Refuses to program a page again: hardware allows it, but the result is undefined.
    fn check_erased(&self, offset: u64, bytes: u64) -> Result<(), FsError> {
        let block_bytes = u64::from(self.mtd.block_bytes());
        for block in offset / block_bytes..(offset + bytes).div_ceil(block_bytes) {
            let next = u64::from(self.mtd.programmed_bytes(block as u32));
            if block * block_bytes + next > offset && next > 0 {
                return Err(FsError::NotModelled("programming a page of a partition again"));
            }
        }
        Ok(())
    }

    fn erase(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let Some(flags) = self.slots[slot] else { return Ok((EBADF, now)) };
        if self.access == Access::Driver {
            return Ok((ENOTTY, now));
        }
        if !flags.write {
            return Ok((EPERM, now));
        }
        let block_bytes = u64::from(self.mtd.block_bytes());
        let size = self.mtd.size_bytes();
        let outside = offset >= size || length > size - offset;
        if outside || offset % block_bytes != 0 || length % block_bytes != 0 {
            return Ok((EINVAL, now));
        }
        let mut now = now;
        for block in offset / block_bytes..(offset + length) / block_bytes {
            match self.mtd.erase(now, block as u32) {
                Ok(later) => now = later,
                failed => return answer(failed, 0),
            }
        }
        Ok((0, now))
    }
}

/// A length that fits into a partition, which is below 4 GiB if page numbers have 32 bits.
fn within_a_partition(bytes: u64) -> u32 {
    u32::try_from(bytes).expect("a request of at most 2^30 bytes")
}

/// The return value of a system call for MTD's result. A power cut is passed on; every other
/// failure is an errno.
fn answer(done: Result<Ns, Failed>, bytes: u64) -> Outcome {
    match done.map_err(FsError::from) {
        Ok(now) => Ok((bytes as i64, now)),
        Err(FsError::Io(now)) => Ok((EIO, now)),
        Err(other) => Err(other),
    }
}
