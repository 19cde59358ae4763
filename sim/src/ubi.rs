//! UBI: logical erase blocks of one volume over the physical ones of an MTD partition.
//!
//! Mirrors drivers/mtd/ubi of Linux 6.1 without fastmap: attaching a partition that was formatted
//! as ubiformat does (attach.c scan_peb, vtbl.c process_lvol), making one dynamic volume of
//! all that is left (vmt.c ubi_create_volume), mapping by need (eba.c try_write_vid_and_data,
//! ubi_eba_unmap_leb, ubi_eba_atomic_leb_change) and erasing in the background (wl.c
//! erase_worker). The volume table, the reserves for bad blocks and for UBI's own work, the place
//! of both headers and the choice of a free block (free.rs) are as there.
//!
//! Left out: moving blocks for wear (it begins at a difference of 4096 erases), scrubbing, bad
//! blocks, attaching a partition that already holds UBI, more than one volume.
//!
//! Invariants:
//! 1. A block is either mapped or free.
//! 2. A free block is erased and holds its erase-counter header; a mapped one its volume header.
//! 3. Headers take a minimal unit each and data starts on a page (`leb_start`). The driver transfers a page for each.

mod free;

use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::mtd::Mtd;
use crate::profile::SoftwareCosts;
use crate::units::Ns;
use free::FreeBlocks;

/// UBI_EC_HDR_SIZE and UBI_VID_HDR_SIZE.
const HEADER_BYTES: u32 = 64;
/// Copies of the volume table (UBI_LAYOUT_VOLUME_EBS).
const LAYOUT_LEBS: u32 = 2;
/// UBI_MAX_VOLUMES and UBI_VTBL_RECORD_SIZE.
const VOLUMES_MAX: u32 = 128;
const VOLUME_RECORD_BYTES: u32 = 172;
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
    free: FreeBlocks,
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
    /// Erases the partition and gives every block a header (ubiformat), attaches it and makes one
    /// volume of all its room (ubiattach, `ubimkvol -m`).
    pub fn attach_formatted(mtd: Mtd<F>, now: Ns) -> Result<(Ubi<F>, Ns)> {
        let blocks = mtd.blocks();
        let overhead = overhead_blocks(mtd.flash().profile().blocks);
        if blocks <= overhead {
            return Err(FsError::too_small(format!(
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
            free: FreeBlocks::new(blocks),
            mtd,
        };
        let mut now = now;
        for block in 0..blocks {
            now = ubi.format_block(now, block)?;
        }
        for block in 0..blocks {
            now = ubi.mtd.read(now, ubi.address(block, 0), HEADER_BYTES)?;
            now = ubi.mtd.read(now, ubi.address(block, ubi.header_bytes), HEADER_BYTES)?;
        }
        for block in 0..LAYOUT_LEBS {
            now = ubi.mtd.read(now, ubi.address(block, ubi.leb_start), ubi.table_bytes())?;
        }
        (LAYOUT_LEBS..blocks).for_each(|block| ubi.free.insert(block, 0));
        let now = ubi.change_volume_table(now)?;
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
    pub fn read(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        debug_assert!(offset + length <= self.leb_bytes, "read past LEB {leb}");
        let block = self.map[leb as usize];
        if block == UNMAPPED {
            return Ok(now);
        }
        Ok(self.mtd.read(now, self.address(block, self.leb_start + offset), length)?)
    }

    /// ubi_leb_write: maps the block first if it is not.
    pub fn write(&mut self, now: Ns, leb: u32, offset: u32, length: u32) -> Result<Ns> {
        assert!(offset + length <= self.leb_bytes, "write past LEB {leb}");
        let mut now = now;
        if self.map[leb as usize] == UNMAPPED {
            let block = self.take_block()?;
            now = self.write_volume_header(now, block)?;
            self.map[leb as usize] = block;
        }
        if length == 0 {
            return Ok(now);
        }
        let start = self.address(self.map[leb as usize], self.leb_start + offset);
        Ok(self.mtd.write(now, start, length)?)
    }

    /// ubi_leb_map: an erased physical block and its volume header, no data.
    pub fn map(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        assert!(!self.is_mapped(leb), "LEB {leb} mapped twice");
        self.write(now, leb, 0, 0)
    }

    /// ubi_leb_unmap, and the erase by UBI's thread: it is woken here and keeps the chip busy
    /// before anyone else gets to it.
    pub fn unmap(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        let block = std::mem::replace(&mut self.map[leb as usize], UNMAPPED);
        if block == UNMAPPED {
            return Ok(now);
        }
        self.erase_to_free(now, block)
    }

    /// ubi_leb_change: new contents in a new physical block, then the old one goes.
    pub fn change(&mut self, now: Ns, leb: u32, length: u32) -> Result<Ns> {
        let block = self.take_block()?;
        let now = self.write_volume_header(now, block)?;
        let now = self.mtd.write(now, self.address(block, self.leb_start), length)?;
        let now = self.unmap(now, leb)?;
        self.map[leb as usize] = block;
        Ok(now)
    }

    /// ubi_wl_get_peb.
    fn take_block(&mut self) -> Result<u32> {
        self.free.take().ok_or(FsError::NoSpace)
    }

    /// __erase_worker: the erase and the header that counts it.
    fn erase_to_free(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.mtd.erase(now, block)?;
        let now = self.write_erase_header(now, block)?;
        let erases = &mut self.erases[block as usize];
        *erases += 1;
        self.free.insert(block, *erases);
        Ok(now)
    }

    fn write_erase_header(&mut self, now: Ns, block: u32) -> Result<Ns> {
        Ok(self.mtd.write(now, self.address(block, 0), self.header_bytes)?)
    }

    /// ubiformat on one block: erased, a header without erases, and an empty volume table on the
    /// first two.
    fn format_block(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.mtd.erase(now, block)?;
        if block >= LAYOUT_LEBS {
            return self.write_erase_header(now, block);
        }
        let length = self.leb_start + self.table_bytes();
        Ok(self.mtd.write(now, self.address(block, 0), length)?)
    }

    /// `vtbl_size`: as many records as a logical block holds (ubi_read_volume_table).
    fn table_bytes(&self) -> u32 {
        let slots = (self.leb_bytes / VOLUME_RECORD_BYTES).min(VOLUMES_MAX);
        align(slots * VOLUME_RECORD_BYTES, self.mtd.page_bytes())
    }

    fn write_volume_header(&mut self, now: Ns, block: u32) -> Result<Ns> {
        Ok(self.mtd.write(now, self.address(block, self.header_bytes), self.header_bytes)?)
    }

    fn write_volume_table(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.write_volume_header(now, block)?;
        Ok(self.mtd.write(now, self.address(block, self.leb_start), self.table_bytes())?)
    }

    /// ubi_update_layout_vol: both copies, one after the other, each into a new block.
    fn change_volume_table(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        for copy in 0..LAYOUT_LEBS as usize {
            let block = self.take_block()?;
            now = self.write_volume_table(now, block)?;
            let old = std::mem::replace(&mut self.layout[copy], block);
            now = self.erase_to_free(now, old)?;
        }
        Ok(now)
    }
}
