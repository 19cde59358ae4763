//! A flash translation layer: what makes raw cells a disk in a USB stick, an eMMC or an SSD.
//!
//! No kernel file is mirrored: makers publish no translation layer. This is the page-mapped one of
//! the literature (Gal and Toledo 2005; Desnoyers 2012). A logical page is written to the next page
//! of the one open block, and the page that held it before is dead. When fewer than
//! `RESERVED_BLOCKS` are erased, the block with the fewest live pages is collected: its live pages
//! are copied to the open block, then it is erased. Erased blocks are used in the order in which
//! they were erased.
//!
//! Left out: where a controller keeps its map (it is in memory and costs nothing), its write cache,
//! discards, levelling of blocks that are never written again, several chips and planes, faults.
//!
//! Invariants:
//! 1. A logical page has at most one live page, and a live page one logical page.
//! 2. At least one erased block or the rest of the open one is free whenever a write begins.

use super::{Bio, BioOp, BlockDevice, SECTOR_BYTES};
use crate::causes::{Cause, Causes};
use crate::flash::Done;
use crate::mtd::{Mtd, NandDriver};
use crate::stop::misbehaved;
use crate::units::Ns;
use crate::victim::{chosen, Candidate, Victim, Why};
use std::collections::VecDeque;

/// Erased blocks that writes leave for collection.
const RESERVED_BLOCKS: u32 = 2;
/// No page.
const NONE: u32 = u32::MAX;
/// Of a page of the chip: no logical page.
const DEAD: u32 = u32::MAX;

/// A block that was written to its end.
#[derive(Clone, Copy, Debug)]
struct Full {
    block: u32,
    /// When it was opened, as a count of blocks.
    sequence: u32,
}

/// The disk.
#[derive(Clone, Debug)]
pub struct Ftl<D> {
    mtd: Mtd<D>,
    block_pages: u32,
    /// The page of the partition that holds each logical page.
    map: Vec<u32>,
    /// The logical page of each page of the partition.
    owner: Vec<u32>,
    /// Live pages of each block.
    live: Vec<u32>,
    erased: VecDeque<u32>,
    full: Vec<Full>,
    /// The open block, and its next page.
    open: (u32, u32),
    /// Blocks opened so far.
    opened: u32,
    victim: Option<Box<dyn Victim>>,
}

impl<D: NandDriver> Ftl<D> {
    /// The disk of an erased partition. Of the pages of its good blocks, without those in reserve,
    /// it does not show `spare_permille`.
    pub fn new(mtd: Mtd<D>, spare_permille: u32) -> Ftl<D> {
        let block_pages = mtd.block_bytes() / mtd.page_bytes();
        let mut erased: VecDeque<u32> = (0..mtd.blocks()).filter(|&at| !mtd.is_bad(at)).collect();
        let blocks = (erased.len() as u32).saturating_sub(RESERVED_BLOCKS);
        let shown = u64::from(blocks * block_pages) * u64::from(1000 - spare_permille) / 1000;
        let open = (erased.pop_front().expect("a good block"), 0);
        Ftl {
            map: vec![NONE; shown as usize],
            owner: vec![DEAD; (mtd.blocks() * block_pages) as usize],
            live: vec![0; mtd.blocks() as usize],
            mtd,
            block_pages,
            erased,
            full: Vec::new(),
            open,
            opened: 1,
            victim: None,
        }
    }

    fn offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.mtd.page_bytes())
    }

    /// Collects until a block is left for the next writes.
    fn make_space(&mut self, mut now: Ns) -> Done {
        let mut freed = 0;
        for tries in 0.. {
            if self.erased.len() as u32 >= RESERVED_BLOCKS {
                break;
            }
            if tries > self.mtd.blocks() && freed == 0 {
                misbehaved(format!("{:?}: its victims have nothing to free", self.victim));
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
    fn collect(&mut self, mut now: Ns, place: usize) -> Done {
        let block = self.full.swap_remove(place).block;
        let page_bytes = self.mtd.page_bytes();
        for page in block * self.block_pages..(block + 1) * self.block_pages {
            let logical = self.owner[page as usize];
            if logical == DEAD {
                continue;
            }
            now = self.mtd.read(now, self.offset(page), page_bytes)?;
            now = self.program(now, logical, Causes::of(Cause::Collection, page_bytes))?;
        }
        now = self.mtd.erase(now, block)?;
        self.erased.push_back(block);
        Ok(now)
    }

    /// Programs the next page of the open block, which then holds the logical page.
    fn program(&mut self, now: Ns, logical: u32, causes: Causes) -> Done {
        if self.open.1 == self.block_pages {
            let next = self.erased.pop_front().expect("reserved");
            self.full.push(Full { block: self.open.0, sequence: self.opened });
            self.open = (next, 0);
            self.opened += 1;
        }
        let (block, at) = self.open;
        let page = block * self.block_pages + at;
        let now = self.mtd.write_with_oob(now, self.offset(page), causes)?;
        self.open.1 += 1;
        let before = std::mem::replace(&mut self.map[logical as usize], page);
        if before != NONE {
            self.owner[before as usize] = DEAD;
            self.live[(before / self.block_pages) as usize] -= 1;
        }
        self.owner[page as usize] = logical;
        self.live[block as usize] += 1;
        Ok(now)
    }

    /// Reads `bytes` of a logical page; a page that was never written is not read.
    fn read(&mut self, now: Ns, logical: u32, column: u32, bytes: u32) -> Done {
        match self.map[logical as usize] {
            NONE => Ok(now),
            page => self.mtd.read(now, self.offset(page) + u64::from(column), bytes),
        }
    }

    /// Writes `bytes` of a logical page. The others are read from where they are, and written
    /// again.
    fn write(&mut self, now: Ns, logical: u32, bytes: u32) -> Done {
        let mut now = self.make_space(now)?;
        let rest = self.mtd.page_bytes() - bytes;
        let is_mapped = self.map[logical as usize] != NONE;
        if rest > 0 {
            now = self.read(now, logical, 0, self.mtd.page_bytes())?;
        }
        let mut causes = Causes::of(Cause::Data, bytes);
        causes.add(Causes::of(if is_mapped { Cause::Collection } else { Cause::Padding }, rest));
        self.program(now, logical, causes)
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
        self.map.len() as u64 * page_sectors
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
                BioOp::Write => self.write(now, logical, bytes)?,
            };
            at += u64::from(bytes);
        }
        Ok(now)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.victim = Some(victim);
        true
    }
}
