//! ubiblock: a volume of UBI as a read-only block device.
//!
//! Mirrors drivers/mtd/ubi/block.c (ubiblock_read) and eba.c (ubi_eba_read_leb_sg), and of the
//! block layer bio_split_rw with the limits that a device has by default. A request is read to its
//! end before the next.
//!
//! Left out: runs of memory, each of which the kernel reads by itself. They end where no page of
//! flash up to 4 KiB ends otherwise.

use super::{Leb, Ubi, UNMAPPED};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// BLK_SAFE_MAX_SECTORS (blk_set_default_limits).
const REQUEST_BYTES: u32 = 255 * 512;

impl<D: NandDriver> Ubi<D> {
    /// A bio of the block device of a volume, which is not the program's.
    pub fn read_volume(&mut self, mut now: Ns, volume: usize, at: u64, bytes: u32) -> Result<Ns> {
        let mut done = 0;
        while done < bytes {
            let request = REQUEST_BYTES.min(bytes - done);
            now = self.ubiblock_read(now, volume, at + u64::from(done), request)?;
            done += request;
        }
        Ok(now)
    }

    fn ubiblock_read(&mut self, mut now: Ns, volume: usize, at: u64, bytes: u32) -> Result<Ns> {
        let size = u64::from(self.leb_bytes);
        let (mut leb, mut offset) = (at / size, (at % size) as u32);
        let mut left = bytes;
        while left > 0 {
            let part = left.min(self.leb_bytes - offset);
            now = self.read_other(now, volume, leb, (offset, part))?;
            left -= part;
            (leb, offset) = (leb + 1, 0);
        }
        Ok(now)
    }

    /// ubi_eba_read_leb of a volume that is not the program's.
    fn read_other(
        &mut self,
        now: Ns,
        volume: usize,
        leb: u64,
        (offset, bytes): (u32, u32),
    ) -> Result<Ns> {
        let lebs = self.other_volumes[volume].clone();
        let number = u64::from(lebs.start) + leb;
        if number >= u64::from(lebs.end) {
            return Err(FsError::Io(now)); // past the end of the device
        }
        let leb = number as u32;
        let block = self.others[leb as usize];
        if block == UNMAPPED {
            return Ok(now);
        }
        let now = self.lock_leb(now, Leb::Other(leb))?;
        let now = self.check_leb(now, Leb::Other(leb))?;
        let block = self.others[leb as usize];
        if block == UNMAPPED {
            return self.unlock_leb(now);
        }
        let (_, now) = self.io_read(now, block, self.leb_start + offset, bytes)?;
        self.unlock_leb(now)
    }
}
