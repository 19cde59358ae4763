//! UBI: logical erase blocks of one volume over the physical ones of an MTD partition.
//!
//! Mirrors drivers/mtd/ubi of Linux 6.1 without fastmap: mapping by need and unmapping (eba.c
//! try_write_vid_and_data, ubi_eba_unmap_leb, ubi_eba_atomic_leb_change); attach.rs finds what a
//! partition holds and makes its one dynamic volume, wl.rs has the free blocks, the thread that
//! erases and the moves for wear. docs/ubi.md says when what reaches the flash.
//!
//! Left out: scrubbing, bad blocks, more than one volume.
//!
//! Invariants:
//! 1. A block is either mapped, free, or waiting to be erased.
//! 2. A free block is erased and holds its erase-counter header; a mapped one its volume header.
//! 3. Headers take a minimal unit each and data starts on a page (`leb_start`). The driver transfers a page for each.

mod attach;
mod free;
mod wl;

use crate::chip::Flash;
use crate::fs::Result;
use crate::mtd::Mtd;
use crate::profile::SoftwareCosts;
use crate::sched::Sched;
use crate::trace::Task;
use crate::units::Ns;
use attach::LAYOUT_LEBS;
pub use attach::{leb_bytes, overhead_blocks};
use wl::WearLevelling;

/// UBI_EC_HDR_SIZE and UBI_VID_HDR_SIZE.
const HEADER_BYTES: u32 = 64;
/// A logical block without a physical one (UBI_LEB_UNMAPPED).
const UNMAPPED: u32 = u32::MAX;

/// A logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Leb {
    /// A copy of the volume table.
    Layout(u32),
    /// A block of the volume.
    Data(u32),
}

/// A header as a read of it would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Missing,
    /// The power went while it was written.
    Torn,
    Whole,
}

/// What the volume header of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// The power went while it was written.
    Torn,
    Leb {
        leb: Leb,
        sequence: u64,
        /// Bytes of data that belong to it, if it was copied (`copy_flag`).
        copied_bytes: Option<u32>,
    },
}

/// A physical block as it is on the flash.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// As its header says, or the mean of all where it has none.
    erases: u32,
    header: Header,
    holds: Holds,
    /// The end of its data, from `leb_start` on.
    written_bytes: u32,
}

/// A UBI device with one volume over all of it.
#[derive(Clone, Debug)]
pub struct Ubi<F> {
    mtd: Mtd<F>,
    header_bytes: u32,
    leb_start: u32,
    leb_bytes: u32,
    /// Physical block of each logical one of the volume (`eba_tbl`).
    map: Vec<u32>,
    layout: [u32; LAYOUT_LEBS as usize],
    blocks: Vec<Block>,
    /// `global_sqnum`.
    sequence: u64,
    wl: WearLevelling,
    sched: Sched,
    /// Who does what is done here in the foreground; none while all wait.
    foreground: Option<Task>,
}

fn align(bytes: u32, unit: u32) -> u32 {
    bytes.div_ceil(unit) * unit
}

impl<F: Flash> Ubi<F> {
    /// Size of a logical block.
    #[inline]
    pub fn leb_bytes(&self) -> u32 {
        self.leb_bytes
    }

    /// Logical blocks in the volume.
    pub fn lebs(&self) -> u32 {
        self.map.len() as u32
    }

    /// Smallest write into a logical block.
    pub fn page_bytes(&self) -> u32 {
        self.mtd.page_bytes()
    }

    /// What the CPU needs on this board.
    #[inline]
    pub fn costs(&self) -> &SoftwareCosts {
        self.mtd.costs()
    }

    /// The driver below.
    pub fn mtd(&self) -> &Mtd<F> {
        &self.mtd
    }

    /// The driver below, for an observer of its chip.
    pub fn mtd_mut(&mut self) -> &mut Mtd<F> {
        &mut self.mtd
    }

    /// Whether a logical block has a physical one.
    pub fn is_mapped(&self, leb: u32) -> bool {
        self.map[leb as usize] != UNMAPPED
    }

    #[inline]
    fn address(&self, block: u32, offset: u32) -> u64 {
        u64::from(block) * u64::from(self.mtd.block_bytes()) + u64::from(offset)
    }

    fn place_mut(&mut self, leb: Leb) -> &mut u32 {
        match leb {
            Leb::Layout(copy) => &mut self.layout[copy as usize],
            Leb::Data(leb) => &mut self.map[leb as usize],
        }
    }

    /// ubi_leb_read: no flash is touched for a block that is not mapped.
    #[inline]
    pub fn read(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        debug_assert!(offset + length <= self.leb_bytes, "read past LEB {leb}");
        let now = self.might_resched(now)?;
        let block = self.map[leb as usize];
        if block == UNMAPPED {
            return Ok(now);
        }
        let now = self.mtd.read(now, self.address(block, self.leb_start + offset), length)?;
        self.might_resched(now)
    }

    /// ubi_leb_write: maps the block first if it is not.
    pub fn write(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        assert!(offset + length <= self.leb_bytes, "write past LEB {leb}");
        let mut now = self.might_resched(now)?;
        if self.map[leb as usize] == UNMAPPED {
            let (block, later) = self.get_block(now)?;
            now = self.write_volume_header(later, block, Leb::Data(leb), None)?;
            self.map[leb as usize] = block;
        }
        if length == 0 {
            return Ok(now);
        }
        let block = self.map[leb as usize];
        self.write_data(now, block, offset, length)
    }

    /// ubi_leb_map: an erased physical block and its volume header, no data.
    pub fn map(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        assert!(!self.is_mapped(leb), "LEB {leb} mapped twice");
        self.write(now, leb, 0, 0)
    }

    /// ubi_leb_unmap.
    pub fn unmap(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        let block = std::mem::replace(&mut self.map[leb as usize], UNMAPPED);
        if block == UNMAPPED {
            return Ok(now);
        }
        self.put_block(now, block)
    }

    /// ubi_leb_change: new contents in a new physical block, then the old one goes.
    pub fn change(&mut self, now: Ns, leb: u32, length: u32) -> Result<Ns> {
        self.change_leb(now, Leb::Data(leb), length)
    }

    /// ubi_eba_atomic_leb_change.
    fn change_leb(&mut self, now: Ns, leb: Leb, length: u32) -> Result<Ns> {
        let (block, now) = self.get_block(now)?;
        let now = self.write_volume_header(now, block, leb, Some(length))?;
        let now = self.write_data(now, block, 0, length)?;
        match std::mem::replace(self.place_mut(leb), block) {
            UNMAPPED => Ok(now),
            old => self.put_block(now, old),
        }
    }

    fn write_data(&mut self, now: Ns, block: u32, offset: u32, length: u32) -> Result<Ns> {
        self.blocks[block as usize].written_bytes = offset + length;
        let now = self.mtd.write(now, self.address(block, self.leb_start + offset), length)?;
        self.might_resched(now)
    }

    fn write_erase_header(&mut self, now: Ns, block: u32) -> Result<Ns> {
        self.blocks[block as usize].header = Header::Torn;
        let now = self.mtd.write(now, self.address(block, 0), self.header_bytes)?;
        self.blocks[block as usize].header = Header::Whole;
        Ok(now)
    }

    fn write_volume_header(
        &mut self,
        now: Ns,
        block: u32,
        leb: Leb,
        copied_bytes: Option<u32>,
    ) -> Result<Ns> {
        self.sequence += 1;
        let sequence = self.sequence;
        self.blocks[block as usize].holds = Holds::Torn;
        let start = self.address(block, self.header_bytes);
        let now = self.mtd.write(now, start, self.header_bytes)?;
        self.blocks[block as usize].holds = Holds::Leb { leb, sequence, copied_bytes };
        self.might_resched(now)
    }
}
