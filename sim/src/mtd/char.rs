//! The partition itself, read, written and erased below any file system.
//!
//! Mirrors drivers/mtd/mtdchar.c of Linux 6.1 (mtdchar_read, mtdchar_write, MEMERASE64), which
//! copies bytes to and from the program, and `partition` of our driver
//! (kernel/flashbed_nand/raw.c), which copies none. Left out: the spare area, sizes that no kernel
//! buffer holds (4 MiB), and programming a page again before its block is erased. That is refused,
//! except on factory-bad blocks, where every program fails.
//!
//! Invariants:
//! 1. Nothing is cached: a request is over when the chip is.
//! 2. Requests reach MTD within the partition and aligned as the chip requires.

use super::partition::Device;
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Outcome, EBADMSG, EINVAL, EIO, ENOSPC, ENOTTY, EPERM};
use crate::flash::{Failed, Fault};
use crate::mtd::{Mtd, NandDriver};
use crate::ops::Flags;
use crate::profile::SoftwareCosts;
use crate::units::Ns;

/// BUFFER_BYTES of raw.c.
const DRIVER_BUFFER_BYTES: u64 = 128 << 10;

/// Which of the two files it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// /dev/mtdN: copies bytes to and from the program.
    Device,
    /// The driver's own file: bytes stay in the kernel.
    Driver,
}

/// The character device of a partition, or the driver's own file.
#[derive(Clone, Debug)]
pub struct MtdChar<D> {
    mtd: Mtd<D>,
    costs: SoftwareCosts,
    access: Access,
}

impl<D: NandDriver> MtdChar<D> {
    /// A partition of a new chip, every block erased.
    pub fn new(mtd: Mtd<D>, access: Access) -> MtdChar<D> {
        MtdChar { costs: *mtd.costs(), mtd, access }
    }

    /// The cost of copying bytes to or from the program; nothing for the driver's own file.
    fn copied(&self, bytes: u64, byte_ps: u64) -> Ns {
        match self.access {
            Access::Device => Ns::from_ps(bytes, byte_ps),
            Access::Driver => Ns::ZERO,
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
}

impl<D: NandDriver> Device for MtdChar<D> {
    type Driver = D;

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    fn open(&mut self, flags: Flags) -> Result<(), FsError> {
        if flags.direct {
            return Err(FsError::NotModelled("opening a partition with such flags"));
        }
        Ok(())
    }

    fn read(&mut self, now: Ns, offset: u64, length: u64) -> Outcome {
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

    fn write(&mut self, now: Ns, _: Flags, offset: u64, length: u64) -> Outcome {
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

    fn erase(&mut self, now: Ns, flags: Flags, offset: u64, length: u64) -> Outcome {
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
    /// A character device has no length; a debugfs file has any.
    fn truncate(&self) -> i64 {
        if self.access == Access::Device {
            EINVAL
        } else {
            0
        }
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
