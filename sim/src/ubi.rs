//! UBI: logical erase blocks of one volume over the physical ones of an MTD partition.
//!
//! Mirrors drivers/mtd/ubi of Linux 6.1 without fastmap: attaching an empty partition (attach.c
//! scan_peb, vtbl.c create_empty_lvol), making one dynamic volume of all that is left (vmt.c
//! ubi_create_volume), mapping by need (eba.c try_write_vid_and_data, ubi_eba_unmap_leb,
//! ubi_eba_atomic_leb_change) and erasing in the background (wl.c erase_worker). The volume table,
//! the reserves for bad blocks and for UBI's own work, and the place of both headers are as there.
//!
//! Left out: moving blocks for wear (it begins at a difference of 4096 erases), scrubbing, bad
//! blocks, attaching a partition that already holds UBI, more than one volume.
//! Approximate: of several free blocks with the same wear the kernel takes the one at the root of
//! a red-black tree; here it is the middle one. Which numbers blocks have changes no count.
//!
//! Invariants:
//! 1. A block is in exactly one of: mapped, free, waiting for its erase.
//! 2. A free block is erased and holds its erase-counter header; a mapped one its volume header.
//! 3. Headers take a minimal unit each and data starts on a page (`leb_start`).

use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::mtd::Mtd;
use crate::profile::SoftwareCosts;
use crate::units::Ns;
use std::collections::VecDeque;

/// UBI_EC_HDR_SIZE and UBI_VID_HDR_SIZE.
const HEADER_BYTES: u32 = 64;
/// Copies of the volume table (UBI_LAYOUT_VOLUME_EBS).
const LAYOUT_LEBS: u32 = 2;
/// UBI_MAX_VOLUMES records of UBI_VTBL_RECORD_SIZE bytes.
const VOLUME_TABLE_BYTES: u32 = 128 * 172;
/// WL_RESERVED_PEBS and EBA_RESERVED_PEBS.
const WORK_BLOCKS: u32 = 2;
/// CONFIG_MTD_UBI_BEB_LIMIT: bad blocks to expect in 1024.
const BAD_PER_1024: u32 = 20;
/// A logical block without a physical one (UBI_LEB_UNMAPPED).
const UNMAPPED: u32 = u32::MAX;

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
    /// Erases of each block, as its header says.
    erases: Vec<u32>,
    /// Free blocks by (erases, number).
    free: Vec<(u32, u32)>,
    /// Blocks waiting for the background thread, and since when.
    works: VecDeque<(u32, Ns)>,
}

fn align(bytes: u32, unit: u32) -> u32 {
    bytes.div_ceil(unit) * unit
}

/// get_bad_peb_limit: a share of the whole chip, since all its bad blocks may be in this partition.
fn bad_block_reserve(chip_blocks: u32) -> u32 {
    let limit = (u64::from(chip_blocks) * u64::from(BAD_PER_1024) / 1024) as u32;
    let covered = u64::from(limit) * 1024 / u64::from(BAD_PER_1024);
    limit + u32::from(covered < u64::from(chip_blocks))
}

/// Blocks of a partition that are no part of the volume, on a chip of `chip_blocks`.
pub fn overhead_blocks(chip_blocks: u32) -> u32 {
    LAYOUT_LEBS + WORK_BLOCKS + bad_block_reserve(chip_blocks)
}

/// Bytes before the data of a logical block: both headers, up to a page.
fn data_start<F: Flash>(mtd: &Mtd<F>) -> u32 {
    align(align(HEADER_BYTES, mtd.subpage_bytes()) + HEADER_BYTES, mtd.page_bytes())
}

/// Size of a logical block on a partition.
pub fn leb_bytes<F: Flash>(mtd: &Mtd<F>) -> u32 {
    mtd.block_bytes() - data_start(mtd)
}

impl<F: Flash> Ubi<F> {
    /// Attaches an erased partition and makes one volume of all its room, as ubiattach and
    /// `ubimkvol -m` do; over when the background thread has erased every block as well.
    pub fn attach_empty(mtd: Mtd<F>, now: Ns) -> Result<(Ubi<F>, Ns)> {
        let blocks = mtd.blocks();
        let overhead = overhead_blocks(mtd.flash().profile().blocks);
        if blocks <= overhead {
            return Err(FsError::TooSmall(format!(
                "UBI keeps {overhead} blocks of this partition for itself; it has {blocks}"
            )));
        }
        let header_bytes = align(HEADER_BYTES, mtd.subpage_bytes());
        let leb_start = data_start(&mtd);
        let mut ubi = Ubi {
            leb_bytes: leb_bytes(&mtd),
            header_bytes,
            leb_start,
            map: vec![UNMAPPED; (blocks - overhead) as usize],
            layout: [0, 1],
            erases: vec![0; blocks as usize],
            free: Vec::with_capacity(blocks as usize),
            works: VecDeque::with_capacity(blocks as usize),
            mtd,
        };
        let mut now = now;
        for block in 0..blocks {
            now = ubi.mtd.read(now, ubi.address(block, 0), HEADER_BYTES);
        }
        for block in 0..LAYOUT_LEBS {
            now = ubi.erase(now, block);
            now = ubi.write_volume_table(now, block);
        }
        for block in LAYOUT_LEBS..blocks {
            ubi.works.push_back((block, now));
        }
        let now = ubi.run_due(now);
        let now = ubi.change_volume_table(now)?;
        let now = ubi.run_due(now);
        Ok((ubi, now))
    }

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

    /// ubi_leb_read: no flash is touched for a block that is not mapped.
    #[inline]
    pub fn read(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Ns {
        debug_assert!(offset + length <= self.leb_bytes, "read past LEB {leb}");
        let block = self.map[leb as usize];
        if block == UNMAPPED {
            return now;
        }
        self.mtd.read(now, self.address(block, self.leb_start + offset), length)
    }

    /// ubi_leb_write: maps the block first if it is not.
    pub fn write(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        assert!(offset + length <= self.leb_bytes, "write past LEB {leb}");
        let mut now = now;
        if self.map[leb as usize] == UNMAPPED {
            let (block, later) = self.take_block(now)?;
            now = self.write_volume_header(later, block);
            self.map[leb as usize] = block;
        }
        if length == 0 {
            return Ok(now);
        }
        let start = self.address(self.map[leb as usize], self.leb_start + offset);
        Ok(self.mtd.write(now, start, length))
    }

    /// ubi_leb_map: an erased physical block and its volume header, no data.
    pub fn map(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        assert!(!self.is_mapped(leb), "LEB {leb} mapped twice");
        self.write(now, leb, 0, 0)
    }

    /// ubi_leb_unmap: the physical block is erased in the background.
    pub fn unmap(&mut self, now: Ns, leb: u32) {
        let block = std::mem::replace(&mut self.map[leb as usize], UNMAPPED);
        if block != UNMAPPED {
            self.works.push_back((block, now));
        }
    }

    /// ubi_leb_change: new contents in a new physical block, then the old one goes.
    pub fn change(&mut self, now: Ns, leb: u32, length: u32) -> Result<Ns> {
        let (block, now) = self.take_block(now)?;
        let now = self.write_volume_header(now, block);
        let now = self.mtd.write(now, self.address(block, self.leb_start), length);
        self.unmap(now, leb);
        self.map[leb as usize] = block;
        Ok(now)
    }

    /// When the background thread has something to do.
    pub fn next_due(&self) -> Option<Ns> {
        self.works.front().map(|&(_, since)| since)
    }

    /// Erases what has been waiting since `now` or before.
    pub fn run_due(&mut self, now: Ns) -> Ns {
        let start = now;
        let mut now = now;
        while let Some(&(block, since)) = self.works.front() {
            if since > start {
                break;
            }
            self.works.pop_front();
            now = self.erase_to_free(now, block);
        }
        now
    }

    /// ubi_wl_get_peb: does the background thread's work itself when nothing is free.
    fn take_block(&mut self, now: Ns) -> Result<(u32, Ns)> {
        let mut now = now;
        while self.free.is_empty() {
            let (block, _) = self.works.pop_front().ok_or(FsError::NoSpace)?;
            now = self.erase_to_free(now, block);
        }
        let (_, block) = self.free.remove(self.free.len() / 2);
        Ok((block, now))
    }

    /// __erase_worker.
    fn erase_to_free(&mut self, now: Ns, block: u32) -> Ns {
        let now = self.erase(now, block);
        let entry = (self.erases[block as usize], block);
        let at = self.free.partition_point(|&other| other < entry);
        self.free.insert(at, entry);
        now
    }

    /// ubi_sync_erase: the erase and the header that counts it.
    fn erase(&mut self, now: Ns, block: u32) -> Ns {
        let now = self.mtd.erase(now, block);
        self.erases[block as usize] += 1;
        self.mtd.write(now, self.address(block, 0), self.header_bytes)
    }

    fn write_volume_header(&mut self, now: Ns, block: u32) -> Ns {
        self.mtd.write(now, self.address(block, self.header_bytes), self.header_bytes)
    }

    fn write_volume_table(&mut self, now: Ns, block: u32) -> Ns {
        let now = self.write_volume_header(now, block);
        let length = align(VOLUME_TABLE_BYTES, self.mtd.page_bytes());
        self.mtd.write(now, self.address(block, self.leb_start), length)
    }

    /// ubi_update_layout_vol: both copies, one after the other, each into a new block.
    fn change_volume_table(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        for copy in 0..LAYOUT_LEBS as usize {
            let (block, later) = self.take_block(now)?;
            now = self.write_volume_table(later, block);
            let old = std::mem::replace(&mut self.layout[copy], block);
            self.works.push_back((old, now));
        }
        Ok(now)
    }
}
