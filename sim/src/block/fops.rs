//! The file of a block device, opened with O_DIRECT.
//!
//! Mirrors block/fops.c of Linux 6.1 (blkdev_read_iter, blkdev_write_iter, blkdev_direct_IO,
//! blkdev_fsync), and what blk-merge.c, blk-mq.c and blk-flush.c do with one bio at a time. The
//! program's memory begins with a page. Left out, and refused: descriptors without O_DIRECT, bios
//! that do not fit into one, and synchronous writes whose requests Linux may reorder.
//!
//! Invariants:
//! 1. A request is over before the next one begins, so the page cache of the device is empty.
//! 2. Bios have at most `MAX_SECTORS` and lie within the device.

use super::{Bio, BioOp, BlockDevice, Tried, PAGE_SECTORS, SECTOR_BYTES};
use crate::content::Source;
use crate::errno::{FsError, Outcome, EINVAL, EIO, ENOSPC, ENOTTY};
use crate::flash::{Done, Fault};
use crate::mtd::{Device, Mtd, TornAt};
use crate::ops::{Advice, Flags};
use crate::sched::Task;
use crate::units::Ns;
use crate::victim::Victim;

/// Bytes of a sector.
const SECTOR: u64 = SECTOR_BYTES as u64;
/// BLK_SAFE_MAX_SECTORS, at which blk_bio_segment_split splits.
const MAX_SECTORS: u64 = 255;
/// BIO_MAX_VECS pages of memory, up to which __blkdev_direct_IO_simple makes one bio.
const BIO_BYTES: u64 = 256 * PAGE_SECTORS as u64 * SECTOR;

/// A block device's file.
#[derive(Clone, Debug)]
pub struct BlockFile<B> {
    device: B,
}

impl<B: BlockDevice> BlockFile<B> {
    /// The file of a device that is not open.
    pub fn new(device: B) -> BlockFile<B> {
        BlockFile { device }
    }

    fn size_bytes(&self) -> u64 {
        self.device.sectors() * SECTOR
    }

    /// blkdev_direct_IO: one bio, which is split (bio_split_to_limits).
    fn direct(&mut self, now: Ns, op: BioOp, offset: u64, bytes: u64) -> Outcome {
        if (offset | bytes) % SECTOR != 0 {
            return Ok((EINVAL, now));
        }
        if bytes > BIO_BYTES {
            return Err(FsError::NotModelled("a direct request of more than 1 MiB"));
        }
        let sectors = bytes / SECTOR;
        let mut tried = Tried::new(now);
        for at in (0..sectors).step_by(MAX_SECTORS as usize) {
            let bio = Bio {
                op,
                sector: offset / SECTOR + at,
                sectors: MAX_SECTORS.min(sectors - at) as u32,
                skipped: (at % u64::from(PAGE_SECTORS)) as u32,
            };
            tried.add(self.device.submit(tried.now, bio))?;
        }
        answer(tried.end(), bytes)
    }

    /// A write, and the flush after it that REQ_FUA asks for.
    fn synchronous(&mut self, now: Ns, offset: u64, bytes: u64) -> Outcome {
        if bytes > MAX_SECTORS * SECTOR {
            let refused = "a synchronous direct write of more than 255 sectors";
            return Err(FsError::NotModelled(refused));
        }
        match self.direct(now, BioOp::Write, offset, bytes)? {
            (EIO, _) if bytes > u64::from(PAGE_SECTORS) * SECTOR => {
                Err(FsError::NotModelled("a synchronous direct write that fails in part"))
            }
            (result, now) if result >= 0 => answer(self.device.flush(now), bytes),
            failed => Ok(failed),
        }
    }

    /// Lets a worker of kblockd do it, as each request of an I/O scheduler and each flush is done
    /// (blk_mq_sched_insert_request, blk_flush_queue_rq).
    fn in_worker(&mut self, work: impl FnOnce(&mut BlockFile<B>) -> Outcome) -> Outcome {
        self.device.mtd_mut().set_task(Task::Background);
        let outcome = work(self);
        self.device.mtd_mut().set_task(Task::Program);
        outcome
    }
}

impl<B: BlockDevice> Device for BlockFile<B> {
    type Driver = B::Driver;

    fn mtd(&self) -> &Mtd<B::Driver> {
        self.device.mtd()
    }

    fn mtd_mut(&mut self) -> &mut Mtd<B::Driver> {
        self.device.mtd_mut()
    }

    fn open(&mut self, flags: Flags) -> Result<(), FsError> {
        if !flags.direct {
            return Err(FsError::NotModelled("a block device without O_DIRECT"));
        }
        Ok(())
    }

    /// blkdev_put: the last one releases the device, and ignores a failure.
    fn close(&mut self, now: Ns, is_left_open: bool) -> Result<Ns, FsError> {
        if is_left_open {
            return Ok(now);
        }
        Ok(answer(self.device.release(now), 0)?.1)
    }

    fn read(&mut self, now: Ns, offset: u64, length: u64) -> Outcome {
        match length.min(self.size_bytes().saturating_sub(offset)) {
            0 => Ok((0, now)),
            bytes => self.in_worker(|file| file.direct(now, BioOp::Read, offset, bytes)),
        }
    }

    fn write(&mut self, now: Ns, flags: Flags, offset: u64, length: u64) -> Outcome {
        let bytes = length.min(self.size_bytes().saturating_sub(offset));
        if bytes == 0 {
            return Ok((ENOSPC, now));
        }
        self.in_worker(|file| match flags.sync || flags.dsync {
            true => file.synchronous(now, offset, bytes),
            false => file.direct(now, BioOp::Write, offset, bytes),
        })
    }

    fn erase(&mut self, now: Ns, _: Flags, _: u64, _: u64) -> Outcome {
        Ok((ENOTTY, now))
    }

    /// blkdev_issue_flush.
    fn fsync(&mut self, now: Ns) -> Outcome {
        self.in_worker(|file| answer(file.device.flush(now), 0))
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.device.set_victim(victim)
    }

    fn will_write(&mut self, source: Option<Source>) {
        self.device.will_write(source);
    }

    fn attach(&mut self, now: Ns, torn: Option<TornAt>) -> Option<Result<Ns, FsError>> {
        self.device.attach(now, torn).map(|done| done.map_err(FsError::from))
    }

    fn sources(&self) -> Vec<(u64, u64, Option<Source>)> {
        let mut runs: Vec<(u64, u64, Option<Source>)> = Vec::new();
        for sector in 0..self.device.sectors() {
            let source = self.device.source_of(sector);
            match runs.last_mut() {
                Some((_, length, of)) if *of == source => *length += SECTOR,
                _ => runs.push((sector * SECTOR, SECTOR, source)),
            }
        }
        runs
    }

    /// Advice to read ahead fills the page cache.
    fn ignores(&self, advice: Advice) -> bool {
        advice != Advice::WillNeed
    }
}

/// The answer to a call: EIO whatever failed, for a bio has no other (BLK_STS_IOERR).
fn answer(done: Done, bytes: u64) -> Outcome {
    match done {
        Ok(now) => Ok((bytes as i64, now)),
        Err(failed) if failed.fault == Fault::PowerLost => Err(failed.into()),
        Err(failed) => Ok((EIO, failed.at)),
    }
}
