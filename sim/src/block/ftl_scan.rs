//! The map of a flash translation layer, rebuilt when the disk is attached.
//!
//! Real layers do so in many ways; this one reads the record of every page. Of several pages of a
//! logical page the newest is its: that of the block that was opened last, and in a block the last
//! one. A power cut leaves at most one torn page, which was programmed last, and one torn block, of
//! which nothing lives any more. kernel/flashbed_ftl/scan.c does the same, and has more to look
//! for: a chip there can leave a torn page with a whole record.
//!
//! Left out: a summary or a checkpoint that would make it shorter.

use super::ftl::{Ftl, Full, Record, DEAD, ENTRY_BYTES, NONE};
use crate::flash::{Done, Failed};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// What the records say about blocks.
struct Found {
    /// Pages up to the last one that is not blank, of each block.
    used: Vec<u32>,
    /// When each block was opened; 0 if no record says so.
    sequence: Vec<u32>,
}

impl Found {
    /// The block that was opened last.
    fn newest(&self) -> Option<u32> {
        let opened = (0..self.sequence.len()).filter(|&block| self.sequence[block] > 0);
        opened.max_by_key(|&block| self.sequence[block]).map(|block| block as u32)
    }
}

impl<D: NandDriver> Ftl<D> {
    /// Forgets all that is in memory, and finds it again on the flash.
    pub(super) fn scan(&mut self, mut now: Ns) -> Done {
        self.map.fill(NONE);
        self.owner.fill(DEAD);
        self.live.fill(0);
        self.erased.clear();
        self.full.clear();
        self.cache.clear();
        let found;
        (found, now) = self.read_records(now)?;
        self.fill_map();
        now = self.open_newest(now, &found)?;
        now = self.sort_blocks(now, &found)?;
        self.write_stale_map_pages(now)
    }

    fn good_blocks(&self) -> Vec<u32> {
        (0..self.mtd.blocks()).filter(|&block| !self.mtd.is_bad(block)).collect()
    }

    /// Reads the first page of each block whole, of the others the record.
    fn read_records(&mut self, mut now: Ns) -> Result<(Found, Ns), Failed> {
        let blocks = self.mtd.blocks() as usize;
        let mut found = Found { used: vec![0; blocks], sequence: vec![0; blocks] };
        for block in self.good_blocks() {
            for at in 0..self.block_pages {
                let page = block * self.block_pages + at;
                let offset = self.offset(page);
                now = match at {
                    0 => self.mtd.read_with_oob(now, offset, 1)?,
                    _ => self.mtd.read_oob(now, offset, 1)?,
                };
                let record = self.records[page as usize];
                if record != Record::Blank {
                    found.used[block as usize] = at + 1;
                }
                if let Record::Of { sequence, .. } = record {
                    found.sequence[block as usize] = sequence;
                }
            }
        }
        Ok((found, now))
    }

    /// Orders pages by when they were programmed.
    fn age(&self, page: u32) -> (u32, u32) {
        match self.records[page as usize] {
            Record::Of { sequence, .. } => (sequence, page),
            Record::Blank | Record::Torn => (0, page),
        }
    }

    fn fill_map(&mut self) {
        for page in 0..self.records.len() as u32 {
            let Record::Of { logical, .. } = self.records[page as usize] else { continue };
            let other = self.map[logical as usize];
            if other == NONE || self.age(page) > self.age(other) {
                self.map[logical as usize] = page;
            }
        }
        for logical in 0..self.map.len() {
            let page = self.map[logical];
            if page != NONE {
                self.owner[page as usize] = logical as u32;
                self.live[(page / self.block_pages) as usize] += 1;
            }
        }
    }

    /// Continues in the block that was opened last, after what is torn. The last page with a record
    /// and the first one without are read whole.
    fn open_newest(&mut self, mut now: Ns, found: &Found) -> Done {
        let Some(newest) = found.newest() else { return Ok(now) };
        let (first, used) = (newest * self.block_pages, found.used[newest as usize]);
        let pages = first..first + used;
        let has_record = |&page: &u32| matches!(self.records[page as usize], Record::Of { .. });
        let last = pages.rev().find(has_record).expect("a record says when it was opened");
        now = self.mtd.read_with_oob(now, self.offset(last), 1)?;
        if used < self.block_pages {
            now = self.mtd.read_with_oob(now, self.offset(first + used), 1)?;
        }
        self.open = (newest, used);
        self.opened = found.sequence[newest as usize];
        Ok(now)
    }

    /// Blank blocks are erased; so are, now, those in which nothing lives.
    fn sort_blocks(&mut self, mut now: Ns, found: &Found) -> Done {
        let newest = found.newest();
        for block in self.good_blocks() {
            if found.used[block as usize] == 0 {
                self.erased.push_back(block);
            }
        }
        for block in self.good_blocks() {
            if found.used[block as usize] == 0 || Some(block) == newest {
                continue;
            }
            if self.live[block as usize] > 0 {
                self.full.push(Full { block, sequence: found.sequence[block as usize] });
            } else {
                now = self.erase(now, block)?;
            }
        }
        if newest.is_none() {
            self.open = (self.erased.pop_front().expect("a good block"), 0);
            self.opened = 1;
        }
        Ok(now)
    }

    /// Whether a logical page of the map page moved after the map page was written.
    fn is_stale(&self, map_page: u32) -> bool {
        let entries = self.mtd.page_bytes() / ENTRY_BYTES;
        let first = (map_page - self.shown) * entries;
        let own = self.map[map_page as usize];
        let mut pages = (first..self.shown.min(first + entries)).map(|at| self.map[at as usize]);
        pages.any(|page| page != NONE && (own == NONE || self.age(page) > self.age(own)))
    }

    /// Writes the map pages that had changed in the cache, and only there.
    fn write_stale_map_pages(&mut self, mut now: Ns) -> Done {
        if self.cache_pages == 0 {
            return Ok(now);
        }
        for page in self.shown..self.map.len() as u32 {
            if self.is_stale(page) {
                now = self.make_space(now)?;
            }
            if self.is_stale(page) {
                now = self.program_map_page(now, page)?;
            }
        }
        Ok(now)
    }
}
