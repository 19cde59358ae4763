//! A partition as a disk, one erase block of which is in memory.
//!
//! Mirrors drivers/mtd/mtdblock.c and, for the order of sectors and what follows a failed one,
//! do_blktrans_request and mtd_blktrans_work of mtd_blkdevs.c, Linux 6.1. Left out: blocks of a
//! single sector, which never are in memory, and read-only partitions.
//!
//! Invariants:
//! 1. At most one block is in memory; while a disk is not open, none.
//! 2. A block is erased just before all of its pages are programmed.

use super::{Bio, BioOp, BlockDevice, Tried, SECTOR_BYTES};
use crate::causes::{Cause, Causes};
use crate::flash::Done;
use crate::mtd::{Mtd, NandDriver};
use crate::units::Ns;

/// /dev/mtdblockN.
#[derive(Clone, Debug)]
pub struct MtdBlock<D> {
    mtd: Mtd<D>,
    /// The block in memory, which the program has changed (`cache_offset` in STATE_DIRTY).
    /// STATE_CLEAN ends with the write that it was read for.
    cached: Option<u32>,
    /// Which sectors of the block in memory the program wrote since it was read.
    written: Vec<bool>,
}

impl<D: NandDriver> MtdBlock<D> {
    /// The disk of a partition.
    pub fn new(mtd: Mtd<D>) -> MtdBlock<D> {
        let written = vec![false; (mtd.block_bytes() / SECTOR_BYTES) as usize];
        MtdBlock { mtd, cached: None, written }
    }

    /// Copies a sector to or from the block in memory.
    fn copied(&self, now: Ns) -> Ns {
        let byte_ps = self.mtd.costs().nand_bounce_byte_ps;
        now + Ns::from_ps(u64::from(SECTOR_BYTES), byte_ps)
    }

    /// The block of a sector, and the sector within it.
    fn place(&self, sector: u64) -> (u32, usize) {
        let block_sectors = self.written.len() as u64;
        ((sector / block_sectors) as u32, (sector % block_sectors) as usize)
    }

    fn start_of(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.mtd.block_bytes())
    }

    /// do_cached_read of one sector.
    fn do_cached_read(&mut self, now: Ns, sector: u64) -> Done {
        if self.cached == Some(self.place(sector).0) {
            return Ok(self.copied(now));
        }
        self.mtd.read(now, sector * u64::from(SECTOR_BYTES), SECTOR_BYTES)
    }

    /// do_cached_write of one sector.
    fn do_cached_write(&mut self, mut now: Ns, sector: u64) -> Done {
        let (block, within) = self.place(sector);
        if self.cached != Some(block) {
            now = self.write_cached_data(now)?;
            now = self.mtd.read(now, self.start_of(block), self.mtd.block_bytes())?;
            self.written.fill(false);
        }
        self.written[within] = true;
        self.cached = Some(block);
        Ok(self.copied(now))
    }

    /// write_cached_data: the block leaves memory even if it cannot be written.
    fn write_cached_data(&mut self, now: Ns) -> Done {
        match self.cached.take() {
            Some(block) => self.erase_write(now, block),
            None => Ok(now),
        }
    }

    fn erase_write(&mut self, now: Ns, block: u32) -> Done {
        let now = self.mtd.erase(now, block)?;
        let bytes = self.mtd.block_bytes();
        let written = self.written.iter().filter(|&&written| written).count() as u32;
        let data = written * SECTOR_BYTES;
        let mut causes = Causes::of(Cause::Data, data);
        causes.add(Causes::of(Cause::Collection, bytes - data));
        self.mtd.write_for(now, self.start_of(block), bytes, &causes)
    }
}

impl<D: NandDriver> BlockDevice for MtdBlock<D> {
    type Driver = D;

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    /// mtd_blktrans_work: a sector that fails ends its segment, and the next segment follows.
    fn submit(&mut self, now: Ns, bio: Bio) -> Done {
        let mut tried = Tried::new(now);
        for (first, sectors) in bio.segments() {
            for sector in first..first + u64::from(sectors) {
                let done = match bio.op {
                    BioOp::Read => self.do_cached_read(tried.now, sector),
                    BioOp::Write => self.do_cached_write(tried.now, sector),
                };
                if !tried.add(done)? {
                    break;
                }
            }
        }
        tried.end()
    }

    /// mtdblock_flush.
    fn flush(&mut self, now: Ns) -> Done {
        self.write_cached_data(now)
    }

    /// mtdblock_release.
    fn release(&mut self, now: Ns) -> Done {
        self.write_cached_data(now)
    }
}
