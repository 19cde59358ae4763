//! UBI: logical erase blocks (LEBs) of volumes over the physical ones of an MTD partition.
//!
//! Mirrors drivers/mtd/ubi of Linux 6.1. This module maps LEBs on demand and unmaps
//! them (eba.c ubi_eba_read_leb, try_write_vid_and_data, try_recover_peb, ubi_eba_unmap_leb,
//! ubi_eba_atomic_leb_change). attach.rs scans a partition. volumes.rs makes its volumes, of which
//! one is the program's; block.rs reads the others as block devices. wl.rs has the free blocks and
//! the thread, erase.rs and moves.rs the thread's works, io.rs the calls into MTD.
//! docs/models/ubi.md says what reaches the flash when, and how failures are handled.
//!
//! Invariants:
//! 1. A block is mapped, free, waiting to be erased, or bad.
//! 2. A free block is erased and has its erase-counter header. A mapped block also has its volume
//!    header.
//! 3. Each header takes a minimal I/O unit, and data starts at a page (`leb_start`). The driver
//!    transfers a page for each.

mod attach;
mod block;
mod dumped_device;
mod erase;
mod fastmap;
mod fastmap_wl;
mod free;
mod io;
mod moves;
mod scanned;
mod volumes;
mod wl;

use crate::causes::{Cause, Causes};
use crate::compress::work::Priced;
use crate::errno::{FsError, Result};
use crate::mtd::{Mtd, NandDriver};
use crate::profile::{KernelFacts, SoftwareCosts};
use crate::sched::{Sched, Task};
use crate::units::Ns;
use attach::LAYOUT_LEBS;
pub use attach::{leb_bytes, overhead_blocks, VOLUMES_MAX, VOLUME_RECORD_BYTES};
pub use dumped_device::{Dumped, DumpedBlock, DumpedCounter, DumpedHolds, DumpedLeb, DumpedVolume};
use fastmap_wl::Fastmap;
use io::{Seen, RETRIES};
use std::ops::Range;
pub use volumes::{Volume, Volumes};
use wl::WearLevelling;

/// UBI_EC_HDR_SIZE and UBI_VID_HDR_SIZE.
pub const HEADER_BYTES: u32 = 64;
/// A LEB without a physical block (UBI_LEB_UNMAPPED).
const UNMAPPED: u32 = u32::MAX;

/// A LEB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Leb {
    /// A copy of the volume table.
    Layout(u32),
    /// A LEB of the program's volume.
    Data(u32),
    /// A LEB of another volume.
    Other(u32),
    /// A part of a fastmap.
    Fastmap(u32),
}

/// A header as a read would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Missing,
    /// The power failed while it was written.
    Torn,
    Whole,
}

/// The content of a block's volume header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// The power failed while it was written.
    Torn,
    Leb {
        leb: Leb,
        sequence: u64,
        /// The length of its data if it is a copy (`copy_flag`).
        copied_bytes: Option<u32>,
    },
}

/// The state of a physical block on flash.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The erase count of its header, or the mean of all blocks if it has none.
    erases: u32,
    header: Header,
    holds: Holds,
    /// The end of its data, counted from `leb_start`.
    written_bytes: u32,
}

/// A UBI device.
#[derive(Clone, Debug)]
pub struct Ubi<D> {
    mtd: Mtd<D>,
    header_bytes: u32,
    leb_start: u32,
    leb_bytes: u32,
    /// The physical block of each LEB (`eba_tbl`) of the program's volume, and of the others.
    map: Vec<u32>,
    others: Vec<u32>,
    /// The LEBs of each volume among `others`; none of the program's.
    other_volumes: Vec<Range<u32>>,
    layout: [u32; LAYOUT_LEBS as usize],
    blocks: Vec<Block>,
    /// `global_sqnum`.
    sequence: u64,
    wl: WearLevelling,
    facts: KernelFacts,
    sched: Sched,
    /// The task in the foreground; none while all of them wait.
    foreground: Option<Task>,
    /// The LEB that the foreground reads or writes, so that no other task may move it.
    locked: Option<Leb>,
    /// Whether the current calls are made by a work.
    is_working: bool,
    /// Whether the foreground holds the buffer for whole blocks (`buf_mutex`).
    has_buffer: bool,
    /// Whether a call into MTD has ended and no other task was scheduled since.
    chip_released: bool,
    /// The thread was scheduled within the last call into MTD and waits for the chip's lock.
    thread_waits: bool,
    /// Whether the current work yields after this step.
    is_yielding: bool,
    /// The next attach makes a volume larger, and writes the table of volumes.
    is_resizing: bool,
    /// `ro_mode`.
    is_read_only: bool,
    has_refused: bool,
    /// Reserved blocks that replace bad ones (`beb_rsvd_pebs`).
    reserve: u32,
    /// See [`Ubi::own_time`].
    own_time: Ns,
    /// Of a kernel with CONFIG_MTD_UBI_FASTMAP.
    fastmap: Option<Fastmap>,
}

/// Offset in a LEB, length and causes of a write.
type Data<'a> = (u32, u32, &'a Causes);

fn align(bytes: u32, unit: u32) -> u32 {
    bytes.div_ceil(unit) * unit
}

impl<D: NandDriver> Ubi<D> {
    /// The size of a LEB.
    #[inline]
    pub fn leb_bytes(&self) -> u32 {
        self.leb_bytes
    }

    /// The number of LEBs in the program's volume.
    pub fn lebs(&self) -> u32 {
        self.map.len() as u32
    }

    /// The smallest write into a LEB.
    pub fn page_bytes(&self) -> u32 {
        self.mtd.page_bytes()
    }

    /// The processor costs of this board.
    #[inline]
    pub fn costs(&self) -> &SoftwareCosts {
        self.mtd.costs()
    }

    /// UBI's own processor time so far, as far as it has a price: that of its writes.
    pub fn own_time(&self) -> Ns {
        self.own_time
    }

    /// See [`Mtd::charge`].
    #[inline]
    pub fn charge(&mut self, priced: Priced) -> Ns {
        self.mtd.charge(priced)
    }

    /// The driver below.
    pub fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    /// The driver below, for an observer of its chip.
    pub fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    /// Whether a LEB has a physical block.
    pub fn is_mapped(&self, leb: u32) -> bool {
        self.map[leb as usize] != UNMAPPED
    }

    /// The erase count of a LEB's physical block, if it has one.
    pub fn erases(&self, leb: u32) -> Option<u32> {
        self.is_mapped(leb).then(|| self.blocks[self.map[leb as usize] as usize].erases)
    }

    /// Adds to each physical block its headers and the bytes of its LEB that are of use, which
    /// `live` says of a LEB of the program's volume. Those of the layout volume and of the fastmap,
    /// and what is written of other volumes, are of use as a whole.
    pub fn mark_live(&self, blocks: &mut [u32], live: impl Fn(u32) -> u32) {
        let data = (0..).zip(&self.map).filter(|&(_, &block)| block != UNMAPPED);
        for (leb, &block) in data {
            blocks[block as usize] += self.leb_start + live(leb);
        }
        let layout = self.layout.iter().copied().filter(|&block| block != UNMAPPED);
        let of_fastmap = self.fastmap.iter().flat_map(|fm| &fm.current).map(|part| part.block);
        for block in layout.chain(of_fastmap) {
            blocks[block as usize] += self.leb_start + self.leb_bytes;
        }
        for &block in self.others.iter().filter(|&&block| block != UNMAPPED) {
            blocks[block as usize] += self.leb_start + self.blocks[block as usize].written_bytes;
        }
    }

    #[inline]
    fn address(&self, block: u32, offset: u32) -> u64 {
        u64::from(block) * u64::from(self.mtd.block_bytes()) + u64::from(offset)
    }

    fn place_mut(&mut self, leb: Leb) -> &mut u32 {
        match leb {
            Leb::Layout(copy) => &mut self.layout[copy as usize],
            Leb::Data(leb) => &mut self.map[leb as usize],
            Leb::Other(leb) => &mut self.others[leb as usize],
            Leb::Fastmap(_) => unreachable!("no volume has a fastmap's LEB"),
        }
    }

    /// Whether a caller was refused because UBI is read-only.
    pub fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Fails if UBI is read-only.
    fn check_writable(&mut self, now: Ns) -> Result<()> {
        self.has_refused |= self.is_read_only;
        if self.is_read_only {
            return Err(FsError::ReadOnly(now));
        }
        Ok(())
    }

    /// The LEB that a block holds.
    fn holds(&self, block: u32) -> Option<Leb> {
        match self.blocks[block as usize].holds {
            Holds::Leb { leb, .. } => Some(leb),
            Holds::Nothing | Holds::Torn => None,
        }
    }

    /// Before a mapped LEB is read or written.
    #[inline]
    fn check_leb(&mut self, now: Ns, leb: Leb) -> Result<Ns> {
        match self.fastmap {
            Some(_) => self.check_mapping(now, leb),
            None => Ok(now),
        }
    }

    /// ubi_leb_read of data that UBIFS needs.
    #[inline]
    pub fn read(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        self.try_read(now, leb, offset, length).map_err(|error| match error {
            FsError::Unreadable(_) => {
                FsError::NotModelled("UBIFS that cannot read a LEB of its own")
            }
            other => other,
        })
    }

    /// ubi_leb_read; an unmapped LEB needs no flash access.
    #[inline]
    pub fn try_read(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        debug_assert!(offset + length <= self.leb_bytes, "read past LEB {leb}");
        if self.map[leb as usize] == UNMAPPED {
            return Ok(now);
        }
        let now = self.lock_leb(now, Leb::Data(leb))?;
        let now = self.check_leb(now, Leb::Data(leb))?;
        let block = self.map[leb as usize];
        if block == UNMAPPED {
            return self.unlock_leb(now);
        }
        match self.io_read(now, block, self.leb_start + offset, length) {
            Ok((seen, now)) => {
                if seen == Seen::BitFlips {
                    self.scrub_block(now, block);
                }
                self.unlock_leb(now)
            }
            Err(FsError::Unreadable(now)) => Err(FsError::Unreadable(self.unlock_leb(now)?)),
            Err(error) => Err(error),
        }
    }

    /// Whether the last, failed read has wrong bits in this range of a LEB.
    pub fn is_wrong(&self, leb: u32, offset: u32, length: u32) -> bool {
        let block = self.map[leb as usize];
        block != UNMAPPED && self.mtd.is_wrong(self.address(block, self.leb_start + offset), length)
    }

    /// ubi_leb_write of metadata.
    pub fn write(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        self.write_for(now, leb, offset, length, &Causes::of(Cause::Metadata, length))
    }

    /// ubi_leb_write: maps the LEB first if it is unmapped. `causes` are the causes of the bytes.
    pub fn write_for(
        &mut self,
        now: Ns,
        leb: u32,
        offset: u32,
        length: u32,
        causes: &Causes,
    ) -> Result<Ns> {
        assert!(offset + length <= self.leb_bytes, "write past LEB {leb}");
        self.check_writable(now)?;
        let mut now = self.lock_leb(now, Leb::Data(leb))?;
        if self.is_mapped(leb) {
            now = self.check_leb(now, Leb::Data(leb))?;
        }
        let block = self.map[leb as usize];
        if block == UNMAPPED {
            let written = self.write_new(now, Leb::Data(leb), None, (offset, length, causes));
            return self.end_write(written);
        }
        let written = match self.write_data(now, block, offset, length, causes) {
            Ok(now) => return self.unlock_leb(now),
            Err(FsError::Io(now)) => self.recover_block(now, leb, (offset, length, causes)),
            failed => failed,
        };
        self.end_write(written)
    }

    /// The end of ubi_eba_write_leb: an error makes UBI read-only (ubi_ro_mode).
    fn end_write(&mut self, written: Result<Ns>) -> Result<Ns> {
        self.is_read_only |= written.is_err();
        self.has_refused |= written.is_err();
        match written {
            Ok(now) => self.unlock_leb(now),
            Err(error) => {
                self.locked = None;
                Err(error)
            }
        }
    }

    /// ubi_leb_map: takes an erased block and writes its volume header, without data.
    pub fn map(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        assert!(!self.is_mapped(leb), "LEB {leb} mapped twice");
        self.write(now, leb, 0, 0)
    }

    /// ubi_leb_unmap.
    pub fn unmap(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        self.check_writable(now)?;
        let now = self.lock_leb(now, Leb::Data(leb))?;
        let block = std::mem::replace(&mut self.map[leb as usize], UNMAPPED);
        let now = if block == UNMAPPED { now } else { self.put_block(now, block, false)? };
        self.unlock_leb(now)
    }

    /// ubi_sync: nothing is buffered, but it waits until the chip is idle (nand_sync).
    pub fn sync(&mut self, now: Ns) -> Result<Ns> {
        let now = self.lock_chip(now)?;
        self.unlock_chip(now)
    }

    /// ubi_leb_change: writes the new content to a new block, then unmaps the old block.
    pub fn change(&mut self, now: Ns, leb: u32, length: u32) -> Result<Ns> {
        self.change_leb(now, Leb::Data(leb), length)
    }

    /// ubi_eba_atomic_leb_change.
    fn change_leb(&mut self, now: Ns, leb: Leb, length: u32) -> Result<Ns> {
        self.check_writable(now)?;
        let now = self.lock_leb(now, leb)?;
        let causes = Causes::of(Cause::Metadata, length);
        let written = self.write_new(now, leb, Some(length), (0, length, &causes));
        self.end_write(written)
    }

    /// Calls try_write_vid_and_data until the write succeeds on a block.
    fn write_new(&mut self, now: Ns, leb: Leb, copied: Option<u32>, data: Data<'_>) -> Result<Ns> {
        let mut now = now;
        for _ in 0..RETRIES {
            match self.try_write_new(now, leb, copied, data) {
                Err(FsError::Io(at)) => now = at,
                other => return other,
            }
        }
        self.try_write_new(now, leb, copied, data)
    }

    /// try_write_vid_and_data: writes a LEB to a new block. Queues the old block for erasing, or
    /// the new one if it failed.
    fn try_write_new(
        &mut self,
        now: Ns,
        leb: Leb,
        copied: Option<u32>,
        data: Data<'_>,
    ) -> Result<Ns> {
        let (block, now) = self.get_block(now)?;
        match self.write_header_and_data(now, block, leb, copied, data) {
            Ok(now) => match std::mem::replace(self.place_mut(leb), block) {
                UNMAPPED => Ok(now),
                old => self.put_block(now, old, false),
            },
            Err(FsError::Io(now)) => Err(FsError::Io(self.put_block(now, block, true)?)),
            Err(error) => Err(error),
        }
    }

    fn write_header_and_data(
        &mut self,
        now: Ns,
        block: u32,
        leb: Leb,
        copied: Option<u32>,
        (offset, length, causes): Data<'_>,
    ) -> Result<Ns> {
        let now = self.write_volume_header(now, block, leb, copied)?;
        if length == 0 {
            return Ok(now);
        }
        self.write_data(now, block, offset, length, causes)
    }

    /// recover_peb: after a failed write moves the block's earlier data and the new data to another
    /// block.
    fn recover_block(&mut self, now: Ns, leb: u32, data: Data<'_>) -> Result<Ns> {
        let mut now = now;
        for _ in 0..RETRIES {
            match self.try_recover_block(now, leb, data) {
                Err(FsError::Io(at)) => now = at,
                other => return other,
            }
        }
        self.try_recover_block(now, leb, data)
    }

    /// try_recover_peb. Unreadable data make UBI read-only.
    fn try_recover_block(&mut self, now: Ns, leb: u32, data: Data<'_>) -> Result<Ns> {
        let (offset, length, causes) = data;
        let old = self.map[leb as usize];
        let (block, now) = self.get_block(now)?;
        let (seen, mut now) = self.read_header(now, old, self.header_bytes)?;
        if seen == Seen::Damaged {
            return Err(FsError::ReadOnly(now));
        }
        let mut moved = *causes;
        now = self.lock_buffer(now)?;
        if offset > 0 {
            now = self.io_read(now, old, self.leb_start, offset)?.1;
            moved.add(Causes::of(Cause::WearLevelling, offset));
        }
        let whole = offset + length;
        let written =
            self.write_header_and_data(now, block, Leb::Data(leb), Some(whole), (0, whole, &moved));
        self.unlock_buffer(now);
        match written {
            Ok(now) => {
                self.map[leb as usize] = block;
                self.put_block(now, old, true)
            }
            Err(FsError::Io(now)) => Err(FsError::Io(self.put_block(now, block, true)?)),
            Err(error) => Err(error),
        }
    }
}
