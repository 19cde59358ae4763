//! A flash translation layer: what makes raw cells a disk in a USB stick, an eMMC or an SSD.
//!
//! No kernel file is mirrored: makers publish no translation layer. This is the page-mapped one of
//! the literature (Gal and Toledo 2005; Desnoyers 2012). A logical page is written to the next page
//! of the one open block, and the page that held it before is dead. When fewer blocks than the
//! reserve are erased, the block with the fewest live pages is collected: its live pages are copied
//! to the open block, then it is erased. Erased blocks are used in the order in which they were
//! erased.
//!
//! The map is in memory, or on the flash as in DFTL (Gupta, Kim, Urgaonkar 2009): in map pages,
//! which lie among the data, of which a few are cached. A map page that leaves the cache changed is
//! written. A collection changes each map page of what it moved once, in the cache if it is there.
//! Each page has a record in its OOB, from which the map is rebuilt (ftl_scan.rs).
//!
//! Left out: a write cache, discards, levelling of blocks that are never written again, several
//! chips and planes, faults. DFTL caches single entries, this layer whole map pages.
//!
//! Invariants:
//! 1. A logical page has at most one live page, and a live page one logical page.
//! 2. The reserve is erased whenever a write begins, if a collection can free it.

use super::{Bio, BioOp, BlockDevice, SECTOR_BYTES};
use crate::causes::{Cause, Causes};
use crate::content::Source;
use crate::flash::Done;
use crate::mtd::{Mtd, NandDriver, TornAt};
use crate::stop::misbehaved;
use crate::units::Ns;
use crate::victim::{chosen, Candidate, Victim, Why};
use crate::waits::Wait;
use std::collections::{BTreeSet, VecDeque};

/// Erased blocks that writes leave for collection, which may write a map page for each page that it
/// moves.
const RESERVED_BLOCKS: u32 = 2;
const RESERVED_BLOCKS_WITH_MAP: u32 = 3;
/// Of an entry of the map.
pub(super) const ENTRY_BYTES: u32 = 4;
const TOO_LITTLE_SPARE: &str = "ftl: collection frees no space: too little spare for its map pages";
/// No page.
pub(super) const NONE: u32 = u32::MAX;
/// Of a page of the chip: no logical page.
pub(super) const DEAD: u32 = u32::MAX;

/// A block that was written to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub(super) block: u32,
    /// When it was opened, as a count of blocks.
    pub(super) sequence: u32,
}

/// The record in the OOB of a page of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The page is erased.
    Blank,
    /// Its program or its erase was interrupted.
    Torn,
    /// What was programmed.
    Of {
        /// The logical page.
        logical: u32,
        /// Of the block, when it was opened.
        sequence: u32,
    },
}

/// What a layer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FtlOptions {
    /// Thousandths of the pages that the disk does not show.
    pub spare_permille: u16,
    /// Map pages that are cached; 0 for a map that is in memory.
    pub map_pages: u16,
}

/// A map page in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached {
    page: u32,
    is_dirty: bool,
}

/// The disk.
#[derive(Clone, Debug)]
pub struct Ftl<D> {
    pub(super) mtd: Mtd<D>,
    pub(super) block_pages: u32,
    /// Logical pages that the disk shows. The map pages come after them.
    pub(super) shown: u32,
    /// Map pages that fit into memory; 0 if all do.
    pub(super) cache_pages: usize,
    /// Those in memory, the one that was used last at the end.
    pub(super) cache: Vec<Cached>,
    pub(super) reserved_blocks: u32,
    /// The page of the partition that holds each logical page.
    pub(super) map: Vec<u32>,
    /// The logical page of each page of the partition.
    pub(super) owner: Vec<u32>,
    /// Live pages of each block.
    pub(super) live: Vec<u32>,
    pub(super) erased: VecDeque<u32>,
    pub(super) full: Vec<Full>,
    /// The open block, and its next page.
    pub(super) open: (u32, u32),
    /// Blocks opened so far.
    pub(super) opened: u32,
    victim: Option<Box<dyn Victim>>,
    /// On the flash: the record of each page of the partition.
    pub(super) records: Vec<Record>,
    /// On the flash: what wrote each sector. Empty unless the power can fail.
    content: Vec<Option<Source>>,
    /// What writes next.
    source: Option<Source>,
}

impl<D: NandDriver> Ftl<D> {
    /// The disk of an erased partition. Of the pages of its good blocks, without those in reserve,
    /// it does not show `spare_permille`; the map pages are among these.
    pub fn new(mtd: Mtd<D>, options: FtlOptions) -> Ftl<D> {
        let reserved_blocks =
            if options.map_pages > 0 { RESERVED_BLOCKS_WITH_MAP } else { RESERVED_BLOCKS };
        let block_pages = mtd.block_bytes() / mtd.page_bytes();
        let mut erased: VecDeque<u32> = (0..mtd.blocks()).filter(|&at| !mtd.is_bad(at)).collect();
        let blocks = (erased.len() as u32).saturating_sub(reserved_blocks);
        let all = u64::from(blocks * block_pages);
        let shown = (all * u64::from(1000 - options.spare_permille) / 1000) as u32;
        let map_pages =
            if options.map_pages > 0 { shown.div_ceil(mtd.page_bytes() / ENTRY_BYTES) } else { 0 };
        let open = (erased.pop_front().expect("a good block"), 0);
        let blocks_there = mtd.blocks();
        Ftl {
            shown,
            cache_pages: options.map_pages.into(),
            cache: Vec::new(),
            reserved_blocks,
            map: vec![NONE; (shown + map_pages) as usize],
            owner: vec![DEAD; (mtd.blocks() * block_pages) as usize],
            live: vec![0; mtd.blocks() as usize],
            mtd,
            block_pages,
            erased,
            full: Vec::new(),
            open,
            opened: 1,
            victim: None,
            records: vec![Record::Blank; (blocks_there * block_pages) as usize],
            content: Vec::new(),
            source: None,
        }
    }

    pub(super) fn offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.mtd.page_bytes())
    }

    /// Collects until a block is left for the next writes.
    pub(super) fn make_space(&mut self, mut now: Ns) -> Done {
        let mut freed = 0;
        for tries in 0.. {
            if self.erased.len() as u32 >= self.reserved_blocks {
                break;
            }
            match (tries > self.mtd.blocks(), freed) {
                (true, 0) => {
                    misbehaved(format!("{:?}: its victims have nothing to free", self.victim))
                }
                (true, _) => misbehaved(TOO_LITTLE_SPARE.into()),
                (false, _) => {}
            }
            let Some(place) = self.find_victim(now) else { break };
            freed += self.block_pages - self.live[self.full[place].block as usize];
            now = self.collect(now, place)?;
        }
        Ok(now)
    }

    /// The place in `full` of the block that is collected next.
    fn find_victim(&mut self, now: Ns) -> Option<usize> {
        let Some(own) = self.victim.as_deref_mut() else {
            let places = 0..self.full.len();
            return places.min_by_key(|&place| {
                let Full { block, sequence } = self.full[place];
                (self.live[block as usize], sequence)
            });
        };
        let page_bytes = self.mtd.page_bytes();
        let (live, block_pages) = (&self.live, self.block_pages);
        let candidate = |&Full { block, sequence }: &Full| Candidate {
            block,
            live_bytes: live[block as usize] * page_bytes,
            dirty_bytes: (block_pages - live[block as usize]) * page_bytes,
            free_bytes: 0,
            erases: Some(self.mtd.block_erases(block)),
            sequence: Some(sequence),
            list: "full",
        };
        let blocks: Vec<Candidate> = self.full.iter().map(candidate).collect();
        let block = chosen(Some(own), now, Why::Space, &blocks)?;
        self.full.iter().position(|full| full.block == block)
    }

    /// Moves what lives in a block, and erases it.
    fn collect(&mut self, now: Ns, place: usize) -> Done {
        let before = self.mtd.enter(now, Wait::Collection);
        let done = self.empty_block(now, place);
        let over = done.as_ref().map_or_else(|failed| failed.at, |&over| over);
        self.mtd.enter(over, before);
        done
    }

    fn empty_block(&mut self, mut now: Ns, place: usize) -> Done {
        let block = self.full.swap_remove(place).block;
        let page_bytes = self.mtd.page_bytes();
        let mut changed = BTreeSet::new();
        for page in block * self.block_pages..(block + 1) * self.block_pages {
            let logical = self.owner[page as usize];
            if logical == DEAD {
                continue;
            }
            now = self.mtd.read(now, self.offset(page), page_bytes)?;
            now = self.program(now, logical, Causes::of(Cause::Collection, page_bytes), None)?;
            changed.extend(self.map_page_of(logical));
        }
        for page in changed {
            match self.cache.iter_mut().find(|cached| cached.page == page) {
                Some(cached) => cached.is_dirty = true,
                None => {
                    now = self.read_page(now, page, 0, page_bytes)?;
                    now = self.program_map_page(now, page)?;
                }
            }
        }
        self.erase(now, block)
    }

    /// Erases a block, for the writes after those into the blocks that were erased before.
    pub(super) fn erase(&mut self, now: Ns, block: u32) -> Done {
        let now = self.mtd.erase(now, block)?;
        self.forget_pages(block, Record::Blank);
        self.erased.push_back(block);
        Ok(now)
    }

    /// Makes the records of a block those of erased or torn pages.
    fn forget_pages(&mut self, block: u32, left: Record) {
        let first = (block * self.block_pages) as usize;
        self.records[first..first + self.block_pages as usize].fill(left);
    }

    pub(super) fn program_map_page(&mut self, now: Ns, page: u32) -> Done {
        self.program(now, page, Causes::of(Cause::Metadata, self.mtd.page_bytes()), None)
    }

    /// Programs the next page of the open block, which then holds the logical page. `new` are the
    /// bytes of it that are written, from a column on; the others are those that it had.
    fn program(&mut self, now: Ns, logical: u32, causes: Causes, new: Option<(u32, u32)>) -> Done {
        if self.open.1 == self.block_pages {
            let next =
                self.erased.pop_front().unwrap_or_else(|| misbehaved(TOO_LITTLE_SPARE.into()));
            self.full.push(Full { block: self.open.0, sequence: self.opened });
            self.open = (next, 0);
            self.opened += 1;
        }
        let (block, at) = self.open;
        let page = block * self.block_pages + at;
        let now = self.mtd.write_with_oob(now, self.offset(page), causes)?;
        self.open.1 += 1;
        self.records[page as usize] = Record::Of { logical, sequence: self.opened };
        let before = std::mem::replace(&mut self.map[logical as usize], page);
        if self.mtd.can_lose_power() {
            self.keep_content(page, before, new);
        }
        if before != NONE {
            self.owner[before as usize] = DEAD;
            self.live[(before / self.block_pages) as usize] -= 1;
        }
        self.owner[page as usize] = logical;
        self.live[block as usize] += 1;
        Ok(now)
    }

    fn page_sectors(&self) -> usize {
        (self.mtd.page_bytes() / SECTOR_BYTES) as usize
    }

    /// Notes what a programmed page holds: what the page `before` did, and what is new.
    fn keep_content(&mut self, page: u32, before: u32, new: Option<(u32, u32)>) {
        let sectors = self.page_sectors();
        self.content.resize(self.records.len() * sectors, None);
        let first = page as usize * sectors;
        match before {
            NONE => self.content[first..first + sectors].fill(None),
            _ => {
                let from = before as usize * sectors;
                self.content.copy_within(from..from + sectors, first);
            }
        }
        if let Some((column, bytes)) = new {
            let from = first + (column / SECTOR_BYTES) as usize;
            self.content[from..from + (bytes / SECTOR_BYTES) as usize].fill(self.source);
        }
    }

    /// The map page that has a logical page; none if the map is in memory, as where map pages
    /// themselves lie is.
    pub(super) fn map_page_of(&self, logical: u32) -> Option<u32> {
        let entries = self.mtd.page_bytes() / ENTRY_BYTES;
        let has_one = self.cache_pages > 0 && logical < self.shown;
        has_one.then(|| self.shown + logical / entries)
    }

    /// Brings the map page of a logical page into memory, and notes whether it changes.
    fn look_up(&mut self, mut now: Ns, logical: u32, changes: bool) -> Done {
        let Some(wanted) = self.map_page_of(logical) else { return Ok(now) };
        let page_bytes = self.mtd.page_bytes();
        let mut used = match self.cache.iter().position(|cached| cached.page == wanted) {
            Some(at) => self.cache.remove(at),
            None => {
                if self.cache.len() == self.cache_pages {
                    let oldest = self.cache.remove(0);
                    if oldest.is_dirty {
                        now = self.program_map_page(now, oldest.page)?;
                    }
                }
                now = self.read_page(now, wanted, 0, page_bytes)?;
                Cached { page: wanted, is_dirty: false }
            }
        };
        used.is_dirty |= changes;
        self.cache.push(used);
        Ok(now)
    }

    /// Reads `bytes` of a logical page; a page that was never written is not read.
    fn read_page(&mut self, now: Ns, logical: u32, column: u32, bytes: u32) -> Done {
        match self.map[logical as usize] {
            NONE => Ok(now),
            page => self.mtd.read(now, self.offset(page) + u64::from(column), bytes),
        }
    }

    /// Reads `bytes` of a logical page for the program.
    fn read(&mut self, now: Ns, logical: u32, column: u32, bytes: u32) -> Done {
        let now = if self.cache_pages > 0 { self.make_space(now)? } else { now };
        let now = self.look_up(now, logical, false)?;
        self.read_page(now, logical, column, bytes)
    }

    /// Writes `bytes` of a logical page. The others are read from where they are, and written
    /// again.
    fn write(&mut self, now: Ns, logical: u32, column: u32, bytes: u32) -> Done {
        let mut now = self.make_space(now)?;
        now = self.look_up(now, logical, true)?;
        let rest = self.mtd.page_bytes() - bytes;
        let is_mapped = self.map[logical as usize] != NONE;
        if rest > 0 {
            now = self.read_page(now, logical, 0, self.mtd.page_bytes())?;
        }
        let mut causes = Causes::of(Cause::Data, bytes);
        causes.add(Causes::of(if is_mapped { Cause::Collection } else { Cause::Padding }, rest));
        self.program(now, logical, causes, Some((column, bytes)))
    }
}

impl<D: NandDriver> BlockDevice for Ftl<D> {
    type Driver = D;

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    fn sectors(&self) -> u64 {
        let page_sectors = u64::from(self.mtd.page_bytes() / SECTOR_BYTES);
        u64::from(self.shown) * page_sectors
    }

    /// A page of the chip at a time.
    fn submit(&mut self, mut now: Ns, bio: Bio) -> Done {
        let page_bytes = u64::from(self.mtd.page_bytes());
        let mut at = bio.sector * u64::from(SECTOR_BYTES);
        let end = at + u64::from(bio.sectors) * u64::from(SECTOR_BYTES);
        while at < end {
            let (logical, column) = ((at / page_bytes) as u32, (at % page_bytes) as u32);
            let bytes = (page_bytes - u64::from(column)).min(end - at) as u32;
            now = match bio.op {
                BioOp::Read => self.read(now, logical, column, bytes)?,
                BioOp::Write => self.write(now, logical, column, bytes)?,
            };
            at += u64::from(bytes);
        }
        Ok(now)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.victim = Some(victim);
        true
    }

    fn will_write(&mut self, source: Option<Source>) {
        self.source = source;
    }

    fn attach(&mut self, now: Ns, torn: Option<TornAt>) -> Option<Done> {
        match torn {
            Some(TornAt::Program { offset, .. }) => {
                let page = offset / u64::from(self.mtd.page_bytes());
                self.records[page as usize] = Record::Torn;
            }
            Some(TornAt::Erase { block }) => self.forget_pages(block, Record::Torn),
            None => {}
        }
        Some(self.scan(now))
    }

    fn source_of(&self, sector: u64) -> Option<Source> {
        let sectors = self.page_sectors();
        let page = self.map[(sector / sectors as u64) as usize];
        let at = page as usize * sectors + (sector % sectors as u64) as usize;
        if page == NONE {
            None
        } else {
            self.content.get(at).copied().flatten()
        }
    }
}
