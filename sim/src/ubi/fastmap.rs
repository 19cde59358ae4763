//! Fastmaps: a list of all blocks on the flash, by which UBI attaches without a scan.
//!
//! Mirrors drivers/mtd/ubi/fastmap.c of Linux 6.1 (ubi_calc_fm_size, ubi_update_fastmap,
//! ubi_write_fastmap, ubi_scan_fastmap, ubi_attach_fastmap, scan_pool, update_vol), check_mapping
//! of eba.c. README.md says when one is written. What a fastmap holds is kept here as it would be
//! read; it is whole if all of its blocks are.
//!
//! Left out: `fm_debug`.
//!
//! Invariant: of the blocks that a fastmap lists as free, only those of its pools are written
//! before the next fastmap.

use super::fastmap_wl::{Counted, Fastmap, Part, Stored, ANCHORS};
use super::io::Seen;
use super::scanned::Scanned;
use super::wl::Work;
use super::{Holds, Leb, Ubi, UNMAPPED};
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::collections::BTreeSet;
use std::ops::Range;

/// struct ubi_fm_sb.
const SUPERBLOCK_BYTES: u32 = 312;
/// struct ubi_fm_hdr, and ubi_fm_scan_pool twice.
const HEADER_BYTES: u32 = 32 + 2 * 1_048;
/// struct ubi_fm_eba and ubi_fm_volhdr, of UBI_MAX_VOLUMES + UBI_INT_VOL_COUNT volumes.
const VOLUMES_BYTES: u32 = (8 + 32) * 129;
/// struct ubi_fm_ec and a number in ubi_fm_eba.
const BLOCK_BYTES: u32 = 8 + 4;
/// Fastmaps for which UBI keeps blocks.
const COPIES: u32 = 2;

/// ubi_calc_fm_size, in LEBs.
pub(super) fn fastmap_lebs(blocks: u32, leb_bytes: u32) -> u32 {
    (SUPERBLOCK_BYTES + HEADER_BYTES + VOLUMES_BYTES + blocks * BLOCK_BYTES).div_ceil(leb_bytes)
}

/// The blocks that a kernel with fastmap keeps (ubi_fastmap_init).
pub(super) fn fastmap_blocks(blocks: u32, leb_bytes: u32) -> u32 {
    COPIES * fastmap_lebs(blocks, leb_bytes)
}

/// What an attach finds of a fastmap.
pub(super) enum Found {
    /// UBI_NO_FASTMAP.
    Nothing,
    /// UBI_BAD_FASTMAP.
    Bad,
    Whole(Scanned),
}

impl<D: NandDriver> Ubi<D> {
    /// ubi_update_fastmap: refills the pools and writes a fastmap. Returns unwritten where UBI
    /// writes none.
    pub(super) fn update_fastmap(&mut self, now: Ns) -> Result<Ns> {
        let is_disabled = self.fm().is_disabled;
        let now = match self.is_read_only || is_disabled {
            true => now,
            false => self.wait_for_free(now)?,
        };
        let now = self.lock_works(now)?;
        self.refill_pools();
        if self.is_read_only || is_disabled {
            self.unlock_works(now);
            return Ok(now);
        }
        let mut old: Vec<Option<Part>> =
            std::mem::take(&mut self.fm_mut().current).into_iter().map(Some).collect();
        let now = match self.write_new_fastmap(now, &mut old) {
            Ok(now) => now,
            Err(FsError::Io(now) | FsError::NoSpace(now)) => now,
            Err(error) => return Err(error),
        };
        let now = self.reach_resched(now)?;
        // return_fm_pebs of what is left of the old one after an error
        for part in old.into_iter().flatten() {
            self.schedule(now, Work::erase(part.block, part.torture));
        }
        self.unlock_works(now);
        self.ensure_anchor(now);
        Ok(now)
    }

    /// Chooses the blocks of a fastmap and writes it. Old blocks that are returned or used again
    /// leave `old`. After an error there is no fastmap in memory.
    fn write_new_fastmap(&mut self, now: Ns, old: &mut [Option<Part>]) -> Result<Ns> {
        let mut blocks = vec![UNMAPPED];
        let chosen = self.choose_fastmap_blocks(now, old, &mut blocks);
        let written = chosen.and_then(|now| self.write_fastmap(now, &blocks));
        match written {
            Ok(_) => {
                let part = |&block: &u32| Part { block, torture: false };
                self.fm_mut().current = blocks.iter().map(part).collect();
            }
            Err(FsError::Io(now) | FsError::NoSpace(now)) => {
                for block in blocks.into_iter().filter(|&block| block != UNMAPPED) {
                    self.schedule(now, Work::erase(block, false));
                }
            }
            Err(_) => {}
        }
        written
    }

    fn choose_fastmap_blocks(
        &mut self,
        mut now: Ns,
        old: &mut [Option<Part>],
        blocks: &mut Vec<u32>,
    ) -> Result<Ns> {
        for number in 1..self.fm().lebs as usize {
            let before = old.get_mut(number);
            let (block, later) =
                self.replace_part(now, before, |ubi| ubi.take_fastmap_block(false))?;
            blocks.push(block);
            now = later;
        }
        let (block, now) =
            self.replace_part(now, old.first_mut(), |ubi| ubi.fm_mut().anchor.take())?;
        blocks[0] = block;
        Ok(now)
    }

    /// A block for a part of the fastmap: a free one, and the old one is returned, or the old one,
    /// erased.
    fn replace_part(
        &mut self,
        now: Ns,
        old: Option<&mut Option<Part>>,
        take: impl Fn(&mut Self) -> Option<u32>,
    ) -> Result<(u32, Ns)> {
        let taken = take(self);
        let Some(before) = old.and_then(|old| old.take()) else {
            return taken.map(|block| (block, now)).ok_or(FsError::NoSpace(now));
        };
        if let Some(block) = taken {
            self.schedule(now, Work::erase(before.block, before.torture));
            return Ok((block, now));
        }
        match self.sync_erase(now, before.block, before.torture) {
            Ok(now) => Ok((before.block, now)),
            Err(error) => {
                self.schedule(now, Work::erase(before.block, before.torture));
                Err(error)
            }
        }
    }

    /// ubi_write_fastmap: the headers of all blocks, then their data.
    fn write_fastmap(&mut self, now: Ns, blocks: &[u32]) -> Result<Ns> {
        let stored = self.stored_fastmap(blocks);
        let has_anchor = |ubi: &Self, one: &Stored| {
            ubi.sequence_in(one.blocks[0], Leb::Fastmap(0)) == Some(one.sequence)
        };
        let mut on_flash = std::mem::take(&mut self.fm_mut().on_flash);
        on_flash.retain(|one| has_anchor(self, one));
        on_flash.push(stored);
        self.fm_mut().on_flash = on_flash;
        let mut now = now;
        for (number, &block) in (0..).zip(blocks) {
            now = self.write_volume_header(now, block, Leb::Fastmap(number), None)?;
        }
        let causes = Causes::of(Cause::Metadata, self.leb_bytes);
        for &block in blocks {
            now = self.write_data(now, block, 0, self.leb_bytes, &causes)?;
        }
        Ok(now)
    }

    fn stored_fastmap(&self, blocks: &[u32]) -> Stored {
        let counted = |block: u32| (block, self.blocks[block as usize].erases);
        let mapped = |leb: fn(u32) -> Leb, map: &[u32]| -> Vec<(Leb, u32)> {
            let found = (0..).zip(map).filter(|&(_, &block)| block != UNMAPPED);
            found.map(|(number, &block)| (leb(number), block)).collect()
        };
        let mut map = mapped(Leb::Layout, &self.layout);
        map.extend(mapped(Leb::Data, &self.map));
        map.extend(mapped(Leb::Other, &self.others));
        let used = self.wl.used.iter().map(|&(_, block)| block);
        Stored {
            sequence: self.sequence + 1,
            blocks: blocks.to_vec(),
            pool: self.fm().pool.blocks.clone(),
            wl_pool: self.fm().wl_pool.blocks.clone(),
            free: self.wl.free.in_order().map(counted).collect(),
            used: used.chain(self.wl.protected_blocks()).map(counted).collect(),
            scrub: self.wl.scrub.iter().map(|&(_, block)| counted(block)).collect(),
            erase: self.wl.blocks_to_erase().map(counted).collect(),
            map,
        }
    }

    /// The sequence number of a block, if it holds this LEB.
    fn sequence_in(&self, block: u32, wanted: Leb) -> Option<u64> {
        match self.blocks[block as usize].holds {
            Holds::Leb { leb, sequence, .. } if leb == wanted => Some(sequence),
            _ => None,
        }
    }

    /// Whether an attach looks for a fastmap (ubi_attach).
    pub(super) fn looks_for_fastmap(&self) -> bool {
        self.fastmap.as_ref().is_some_and(|fm| !fm.is_disabled)
    }

    /// Forgets what is in memory, before an attach.
    pub(super) fn forget_fastmap(&mut self) {
        let blocks = self.blocks.len() as u32;
        if let Some(fm) = self.fastmap.take() {
            let mut found = Fastmap::new(blocks, fm.lebs);
            found.on_flash = fm.on_flash;
            self.fastmap = Some(found);
        }
    }

    /// The blocks that scan_fast reads first.
    pub(super) fn anchors(&self) -> Range<u32> {
        0..ANCHORS.min(self.blocks.len() as u32)
    }

    /// ubi_scan_fastmap, after the scan of the first blocks.
    pub(super) fn scan_fastmap(&mut self, now: Ns, first: &Scanned) -> Result<(Found, Ns)> {
        let anchors = first.fastmap.iter().copied();
        let newest = anchors
            .filter_map(|block| Some((self.sequence_in(block, Leb::Fastmap(0))?, block)))
            .max()
            .filter(|_| !first.has_torn_header);
        let Some((sequence, anchor)) = newest else { return Ok((Found::Nothing, now)) };
        let mut parts = Vec::new();
        let (seen, mut now) = match self.io_read(now, anchor, self.leb_start, SUPERBLOCK_BYTES) {
            Err(FsError::Unreadable(now)) => return Ok((Found::Bad, now)),
            read => read?,
        };
        let mut torture = seen == Seen::BitFlips;
        let known = self.fm().on_flash.iter().find(|one| one.sequence == sequence).cloned();
        let written = self.blocks[anchor as usize].written_bytes >= SUPERBLOCK_BYTES;
        let Some(stored) = known.filter(|_| written) else { return Ok((Found::Bad, now)) };
        let mut is_whole = true;
        for (number, &block) in (0..).zip(&stored.blocks) {
            let (seen, later) = self.read_header(now, block, 0)?;
            torture |= seen == Seen::BitFlips;
            let (_, later) = self.read_header(later, block, self.header_bytes)?;
            now = later;
            if self.blocks[block as usize].holds == Holds::Nothing {
                // UBI_IO_FF is returned as it is, and is UBI_NO_FASTMAP.
                return Ok((Found::Nothing, now));
            }
            if self.sequence_in(block, Leb::Fastmap(number)).is_none() {
                return Ok((Found::Bad, now));
            }
            now = match self.io_read(now, block, self.leb_start, self.leb_bytes) {
                Err(FsError::Unreadable(now)) => return Ok((Found::Bad, now)),
                read => read?.1,
            };
            is_whole &= self.sequence_in(block, Leb::Fastmap(number))
                == Some(sequence + number as u64)
                && self.blocks[block as usize].written_bytes >= self.leb_bytes;
            parts.push(Part { block, torture: std::mem::take(&mut torture) });
        }
        if !is_whole {
            return Ok((Found::Bad, now));
        }
        let (attached, now) = self.attach_fastmap(now, &stored)?;
        let Some(mut scanned) = attached else { return Ok((Found::Bad, now)) };
        scanned.fastmap.clone_from(&first.fastmap);
        let lebs = [self.map.len(), self.others.len()];
        let fm = self.fm_mut();
        fm.current = parts;
        fm.checked = Some(lebs.map(|count| vec![false; count]));
        Ok((Found::Whole(scanned), now))
    }

    /// ubi_attach_fastmap. None for UBI_BAD_FASTMAP.
    fn attach_fastmap(&mut self, now: Ns, stored: &Stored) -> Result<(Option<Scanned>, Ns)> {
        let lists = [&stored.free, &stored.used, &stored.scrub, &stored.erase];
        for &(block, erases) in lists.into_iter().flatten() {
            self.blocks[block as usize].erases = erases;
        }
        let numbers = |list: &[Counted]| list.iter().map(|&(block, _)| block).collect::<Vec<_>>();
        let mut scanned = Scanned {
            free: numbers(&stored.free),
            erase: numbers(&stored.erase),
            volumes: stored.map.iter().copied().collect(),
            scrub: stored.scrub.iter().map(|&(block, _)| block).collect(),
            ..Scanned::default()
        };
        let mapped: BTreeSet<u32> = scanned.volumes.values().copied().collect();
        let mut free = Vec::new();
        let mut now = now;
        for &block in stored.pool.iter().chain(&stored.wl_pool) {
            let (scanned_block, later) =
                self.scan_pool_block(now, block, &mut scanned, &mut free)?;
            now = later;
            if !scanned_block {
                return Ok((None, now));
            }
        }
        scanned.free.extend(free);
        let listed = stored.used.iter().chain(&stored.scrub);
        scanned
            .erase
            .extend(listed.map(|&(block, _)| block).filter(|block| !mapped.contains(block)));
        let known = scanned.erase.len() + scanned.free.len() + scanned.volumes.len();
        let there = self.blocks.len() - self.mtd.bad_blocks() as usize - stored.blocks.len();
        Ok((Some(scanned).filter(|_| known == there), now))
    }

    /// scan_pool of a block; false for UBI_BAD_FASTMAP.
    fn scan_pool_block(
        &mut self,
        now: Ns,
        block: u32,
        scanned: &mut Scanned,
        free: &mut Vec<u32>,
    ) -> Result<(bool, Ns)> {
        if self.mtd.is_bad(block) {
            return Ok((false, now));
        }
        let (first, now) = self.read_header(now, block, 0)?;
        if first == Seen::Damaged {
            return Ok((false, now));
        }
        let (second, now) = self.read_header(now, block, self.header_bytes)?;
        match self.blocks[block as usize].holds {
            Holds::Nothing => {
                scanned.volumes.retain(|_, &mut other| other != block);
                free.push(block);
            }
            Holds::Torn => return Ok((false, now)),
            Holds::Leb { leb: Leb::Fastmap(_), .. } => {}
            Holds::Leb { leb, .. } => {
                if [first, second].contains(&Seen::BitFlips) {
                    scanned.scrub.insert(block);
                }
                if scanned.volumes.get(&leb) == Some(&block) {
                    return Ok((true, now));
                }
                let now = self.add_to_volume(now, block, leb, scanned)?;
                // update_vol appends a copy that was not finished, too.
                let torn = std::mem::take(&mut scanned.torn);
                scanned.erase.extend(torn);
                return Ok((true, now));
            }
        }
        Ok((true, now))
    }

    /// The end of ubi_wl_init: blocks of older fastmaps are erased, anchors before anything else is
    /// done.
    pub(super) fn drop_old_fastmaps(&mut self, mut now: Ns, scanned: &Scanned) -> Result<Ns> {
        let fm = self.fm();
        let mut known: BTreeSet<u32> = fm.current.iter().map(|part| part.block).collect();
        known.extend(scanned.free.iter().chain(&scanned.erase).chain(scanned.volumes.values()));
        let mut old: Vec<u32> =
            scanned.fastmap.iter().copied().filter(|block| !known.contains(block)).collect();
        if fm.current.is_empty() {
            old.reverse();
        }
        for block in old {
            if self.sequence_in(block, Leb::Fastmap(0)).is_some() {
                now = self.sync_erase(now, block, false)?;
                self.wl.add_free(block, self.blocks[block as usize].erases);
            } else {
                self.wl.add_erase(block);
            }
        }
        Ok(now)
    }

    /// check_mapping: an attach by a fastmap does not know which LEBs were unmapped after it, so
    /// the first access to each reads its header.
    #[cold]
    pub(super) fn check_mapping(&mut self, now: Ns, leb: Leb) -> Result<Ns> {
        let Some(checked) = self.fm_mut().checked.as_mut() else { return Ok(now) };
        let is_checked = match leb {
            Leb::Data(number) => &mut checked[0][number as usize],
            Leb::Other(number) => &mut checked[1][number as usize],
            Leb::Layout(_) | Leb::Fastmap(_) => return Ok(now),
        };
        if *is_checked {
            return Ok(now);
        }
        *is_checked = true;
        let block = *self.place_mut(leb);
        let (seen, now) = self.read_header(now, block, self.header_bytes)?;
        if self.sequence_in(block, leb).is_some() {
            return Ok(now);
        }
        *self.place_mut(leb) = UNMAPPED;
        self.put_block(now, block, seen == Seen::Damaged)
    }
}
