//! Calls into MTD, and handling their failures.
//!
//! Mirrors drivers/mtd/ubi/io.c of Linux 6.1 (ubi_io_read, ubi_io_write, ubi_io_read_ec_hdr,
//! ubi_io_read_vid_hdr) and ubi_dump_flash of debug.c. A read that ECC cannot correct is retried.
//! After a failed write ubi_dump_flash reads the area to print it. erase.rs has erasing and
//! torture.
//!
//! Left out: a work that is preempted between two retries of a read.
//!
//! Invariant: nothing is written once UBI is read-only.

use super::{Header, Holds, Leb, Ubi, HEADER_BYTES};
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Result};
use crate::flash::{Failed, Fault};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// UBI_IO_RETRIES: retries after a failure.
pub(super) const RETRIES: u32 = 3;

/// The result of reading a header or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// As it was written.
    Clean,
    /// As it was written, after corrected bit errors (UBI_IO_BITFLIPS).
    BitFlips,
    /// Wrong, by its checksum (UBI_IO_BAD_HDR_EBADMSG).
    Damaged,
}

impl<D: NandDriver> Ubi<D> {
    /// ubi_io_read; fails if no retry succeeded (-EBADMSG) or the power is gone.
    pub(super) fn io_read(
        &mut self,
        now: Ns,
        block: u32,
        offset: u32,
        length: u32,
    ) -> Result<(Seen, Ns)> {
        let start = self.address(block, offset);
        let mut now = now;
        for tried in 0.. {
            now = self.lock_chip(now)?;
            let read = self.mtd.read(now, start, length);
            let flips = self.mtd.is_unclean();
            match read {
                Ok(later) => {
                    self.release_chip(later);
                    return Ok((if flips { Seen::BitFlips } else { Seen::Clean }, later));
                }
                Err(Failed { at, fault: Fault::Uncorrectable }) => {
                    self.release_chip(at);
                    now = at;
                }
                Err(failed) => return Err(failed.into()),
            }
            if tried == RETRIES {
                break;
            }
            now = self.yield_to_thread(now)?;
        }
        Err(FsError::Unreadable(now))
    }

    /// ubi_io_read_ec_hdr and ubi_io_read_vid_hdr: accepts a header whose checksum is right.
    pub(super) fn read_header(&mut self, now: Ns, block: u32, offset: u32) -> Result<(Seen, Ns)> {
        match self.io_read(now, block, offset, HEADER_BYTES) {
            Err(FsError::Unreadable(now)) => {
                let wrong = self.mtd.is_wrong(self.address(block, offset), HEADER_BYTES);
                Ok((if wrong { Seen::Damaged } else { Seen::BitFlips }, now))
            }
            other => other,
        }
    }

    /// ubi_io_write. After a failure a work calls `dump_flash` itself, because it may be preempted
    /// before.
    pub(super) fn io_write(
        &mut self,
        now: Ns,
        block: u32,
        offset: u32,
        length: u32,
        causes: &Causes,
    ) -> Result<Ns> {
        if self.is_read_only {
            return Err(FsError::ReadOnly(now));
        }
        let start = self.address(block, offset);
        let now = self.lock_chip(now)?;
        match self.mtd.write_for(now, start, length, causes) {
            Ok(later) => {
                self.release_chip(later);
                Ok(later)
            }
            Err(Failed { at, fault: Fault::ProgramFailed }) if self.is_working => {
                Err(FsError::Io(at))
            }
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                self.release_chip(at);
                Err(FsError::Io(self.dump_flash(at, block, offset, length)?))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// ubi_dump_flash: one read, whose result is ignored.
    pub(super) fn dump_flash(
        &mut self,
        now: Ns,
        block: u32,
        offset: u32,
        length: u32,
    ) -> Result<Ns> {
        let start = self.address(block, offset);
        let now = self.lock_chip(now)?;
        match self.mtd.read(now, start, length) {
            Ok(at) | Err(Failed { at, fault: Fault::Uncorrectable }) => {
                self.release_chip(at);
                Ok(at)
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// ubi_io_write_data.
    pub(super) fn write_data(
        &mut self,
        now: Ns,
        block: u32,
        offset: u32,
        length: u32,
        causes: &Causes,
    ) -> Result<Ns> {
        self.blocks[block as usize].written_bytes = offset + length;
        let own = self.mtd.costs().ubi_write_ns;
        self.own_time += own;
        self.io_write(now + own, block, self.leb_start + offset, length, causes)
    }

    /// ubi_io_write_ec_hdr.
    pub(super) fn write_erase_header(&mut self, now: Ns, block: u32) -> Result<Ns> {
        self.blocks[block as usize].header = Header::Torn;
        let causes = Causes::of(Cause::Metadata, self.header_bytes);
        let now = self.io_write(now, block, 0, self.header_bytes, &causes)?;
        self.blocks[block as usize].header = Header::Whole;
        Ok(now)
    }

    /// ubi_io_write_vid_hdr.
    pub(super) fn write_volume_header(
        &mut self,
        now: Ns,
        block: u32,
        leb: Leb,
        copied_bytes: Option<u32>,
    ) -> Result<Ns> {
        self.sequence += 1;
        let sequence = self.sequence;
        self.blocks[block as usize].holds = Holds::Torn;
        let causes = Causes::of(Cause::Metadata, self.header_bytes);
        let now = self.io_write(now, block, self.header_bytes, self.header_bytes, &causes)?;
        self.blocks[block as usize].holds = Holds::Leb { leb, sequence, copied_bytes };
        Ok(now)
    }
}
