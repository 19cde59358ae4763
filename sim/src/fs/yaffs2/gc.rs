//! Garbage collection: when it runs, which block it takes, and how many chunks it copies.
//!
//! Mirrors from yaffs_guts.c yaffs_check_gc, yaffs_find_gc_block and yaffs_gc_block, and of
//! yaffs_yaffs2.c yaffs_block_ok_for_gc and yaffs2_find_refresh_block. Each chunk that the program
//! writes calls yaffs_check_gc first. The background thread calls it, too.
//!
//! Invariant: a collection never starts another one (`is_disabled`).

use super::blocks::{Block, State};
use super::nand::{Payload, Tags, SUMMARY};
use super::{Chunk, Yaffs2, RESERVED_BLOCKS};
use crate::causes::{Cause, Causes};
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;
use crate::victim::{chosen, Candidate, Why};
use crate::waits::{over, Wait};

/// YAFFS_GC_GOOD_ENOUGH and YAFFS_GC_PASSIVE_THRESHOLD, in chunks in use.
const GOOD_ENOUGH: u32 = 2;
const PASSIVE_THRESHOLD: u32 = 4;
/// Chunks that a passive collection copies at a time.
const PASSIVE_COPIES: u32 = 5;
/// gc_skip.
const SKIP: u32 = 5;
/// The most blocks that a passive collection examines.
const PASSIVE_BLOCKS_MAX: u32 = 100;
/// refresh_period of the Linux glue: after this many collections the oldest block is rewritten.
const REFRESH_PERIOD: u32 = 500;

/// The fields of struct yaffs_dev about collection. A mount sets them to zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Gc {
    pub is_disabled: bool,
    pub has_prioritised: bool,
    pub oldest_dirty_sequence: u32,
    pub oldest_dirty_block: u32,
    /// The block being collected and the next chunk of it; 0 is none.
    block: u32,
    chunk: u32,
    block_finder: u32,
    dirtiest: u32,
    dirtiest_pages_in_use: u32,
    not_done: u32,
    skip: u32,
    refresh_skip: u32,
}

impl Gc {
    /// The state after a mount, which assumes the worst until the first search.
    pub fn after_mount() -> Gc {
        Gc { has_prioritised: true, ..Gc::default() }
    }

    /// Removes a block from the candidates.
    pub fn forget_block(&mut self, number: u32) {
        if self.block == number {
            self.block = 0;
        }
        if self.dirtiest == number {
            (self.dirtiest, self.dirtiest_pages_in_use) = (0, 0);
        }
    }
}

impl<D: NandDriver> Yaffs2<D> {
    /// yaffs_check_gc.
    pub(super) fn check_gc(&mut self, now: Ns, background: bool) -> Result<Ns> {
        if self.gc.is_disabled {
            return Ok(now);
        }
        let before = self.mtd.enter(now, Wait::Collection);
        let done = self.collect_if_due(now, background);
        self.mtd.enter(over(&done, now), before);
        done
    }

    fn collect_if_due(&mut self, mut now: Ns, background: bool) -> Result<Ns> {
        for _ in 0..2 {
            let erased_min = RESERVED_BLOCKS + self.checkpoint_blocks_to_reserve() + 1;
            let erased_chunks = i64::from(self.erased_blocks * self.pages_per_block);
            let aggressive = self.erased_blocks < erased_min;
            if !aggressive {
                if !background && erased_chunks > self.free_chunks / 4 {
                    break;
                }
                self.gc.skip = self.gc.skip.min(20);
                if erased_chunks >= self.free_chunks / 2 && self.gc.skip > 0 && !background {
                    self.gc.skip -= 1;
                    break;
                }
            }
            self.gc.skip = SKIP;
            self.choose_gc_block(now, aggressive, background);
            if self.gc.block > 0 {
                now = self.gc_block(now, self.gc.block, aggressive)?;
            }
            if self.erased_blocks >= RESERVED_BLOCKS || self.gc.block == 0 {
                break;
            }
        }
        Ok(now)
    }

    fn choose_gc_block(&mut self, now: Ns, aggressive: bool, background: bool) {
        if self.gc.block == 0 && !aggressive {
            self.gc.block = self.find_refresh_block();
            self.gc.chunk = 0;
        }
        if self.gc.block == 0 {
            self.gc.block = self.find_gc_block(now, aggressive, background);
            self.gc.chunk = 0;
        }
    }

    /// yaffs2_find_refresh_block: the oldest full block, once every period.
    fn find_refresh_block(&mut self) -> u32 {
        if self.gc.refresh_skip > 0 {
            return 0;
        }
        self.gc.refresh_skip = REFRESH_PERIOD;
        let full = self.blocks.iter().filter(|(_, block)| block.state == State::Full);
        full.min_by_key(|(_, block)| block.sequence).map_or(0, |(number, _)| number)
    }

    /// yaffs_block_ok_for_gc: a block with a shrink header (a file was truncated) is not collected
    /// while an older block is dirty.
    fn is_ok_for_gc(&mut self, block: Block) -> bool {
        if !block.has_shrink_header {
            return true;
        }
        self.find_oldest_dirty();
        block.sequence <= self.gc.oldest_dirty_sequence
    }

    /// yaffs_find_gc_block.
    fn find_gc_block(&mut self, now: Ns, aggressive: bool, background: bool) -> u32 {
        let mut selected = 0;
        if self.gc.has_prioritised && !aggressive {
            selected = self.find_prioritised();
        }
        if selected == 0 {
            selected = match self.victim {
                None => self.find_by_content(aggressive, background),
                Some(_) => self.find_by_policy(now, aggressive, background),
            };
        }
        if selected == 0 {
            self.gc.not_done += 1;
            return 0;
        }
        (self.gc.dirtiest, self.gc.dirtiest_pages_in_use, self.gc.not_done) = (0, 0, 0);
        self.gc.refresh_skip = self.gc.refresh_skip.saturating_sub(1);
        selected
    }

    /// The dirtiest block of those that were searched; after many searches in vain the oldest dirty
    /// one.
    fn find_by_content(&mut self, aggressive: bool, background: bool) -> u32 {
        let threshold = self.search_dirtiest(aggressive, background);
        if self.gc.dirtiest > 0 && self.gc.dirtiest_pages_in_use <= threshold {
            return self.gc.dirtiest;
        }
        if self.gc.not_done < if background { 10 } else { 20 } {
            return 0;
        }
        self.find_oldest_dirty();
        if self.gc.oldest_dirty_block == 0 {
            self.gc.not_done = 0;
        }
        self.gc.oldest_dirty_block
    }

    /// The block that a policy chooses.
    fn find_by_policy(&mut self, now: Ns, aggressive: bool, background: bool) -> u32 {
        let why = match (aggressive, background) {
            (_, true) => Why::Idle,
            (true, false) => Why::Space,
            (false, false) => Why::Write,
        };
        let blocks = self.candidates();
        chosen(self.victim.as_deref_mut(), now, why, &blocks).unwrap_or(0)
    }

    /// The blocks that the collector could take: full, with a chunk that is not in use.
    fn candidates(&mut self) -> Vec<Candidate> {
        let (page_bytes, whole) = (self.mtd.page_bytes(), self.pages_per_block);
        let mut found = Vec::new();
        for number in 1..=self.blocks.last() {
            let block = *self.blocks.get(number);
            let is_dirty = block.state == State::Full && block.pages_in_use < whole;
            if !is_dirty || !self.is_ok_for_gc(block) {
                continue;
            }
            found.push(Candidate {
                block: number,
                live_bytes: block.pages_in_use * page_bytes,
                dirty_bytes: (whole - block.pages_in_use) * page_bytes,
                free_bytes: 0,
                erases: Some(self.mtd.block_erases(number - 1)),
                sequence: Some(block.sequence),
                list: "full",
            });
        }
        found
    }

    /// A block with bit errors, else the oldest dirty one, which may block shrink headers.
    fn find_prioritised(&mut self) -> u32 {
        self.gc.dirtiest = 0;
        let prioritised: Vec<(u32, Block)> = self
            .blocks
            .iter()
            .filter(|(_, block)| block.gc_prioritise)
            .map(|(number, block)| (number, *block))
            .collect();
        if prioritised.is_empty() {
            self.gc.has_prioritised = false;
            return 0;
        }
        for (number, block) in prioritised {
            if block.state == State::Full && self.is_ok_for_gc(block) {
                return number;
            }
        }
        self.gc.oldest_dirty_block
    }

    /// Continues the search for the block with the fewest chunks in use, below a limit.
    fn search_dirtiest(&mut self, aggressive: bool, background: bool) -> u32 {
        let whole = self.pages_per_block;
        let (threshold, blocks) = if aggressive {
            (whole, self.blocks.last())
        } else {
            let max = PASSIVE_THRESHOLD.max(if background { whole / 2 } else { whole / 8 });
            let wanted = if background { (self.gc.not_done + 2) * 2 } else { 0 };
            let blocks = (self.blocks.last() / 16 + 1).min(PASSIVE_BLOCKS_MAX);
            (wanted.max(PASSIVE_THRESHOLD).min(max), blocks)
        };
        for _ in 0..blocks {
            if self.gc.dirtiest > 0 && self.gc.dirtiest_pages_in_use <= GOOD_ENOUGH {
                break;
            }
            self.gc.block_finder = self.gc.block_finder % self.blocks.last() + 1;
            let number = self.gc.block_finder;
            let block = *self.blocks.get(number);
            let used = block.pages_in_use;
            let better = self.gc.dirtiest == 0 || used < self.gc.dirtiest_pages_in_use;
            if block.state == State::Full && used < whole && better && self.is_ok_for_gc(block) {
                (self.gc.dirtiest, self.gc.dirtiest_pages_in_use) = (number, used);
            }
        }
        threshold
    }

    /// yaffs_gc_block: collects some chunks of a block, or all that are left.
    fn gc_block(&mut self, mut now: Ns, number: u32, whole: bool) -> Result<Ns> {
        let block = self.blocks.get_mut(number);
        if block.state == State::Full {
            block.state = State::Collecting;
        }
        block.has_shrink_header = false;
        self.gc.is_disabled = true;
        self.drop_summary(number);
        let first = number * self.pages_per_block;
        if (first..first + self.pages_per_block).all(|chunk| !self.is_in_use(chunk)) {
            now = self.block_became_dirty(now, number)?;
        } else {
            let mut copies = if whole { self.pages_per_block } else { PASSIVE_COPIES };
            let mut has_room = true;
            while has_room
                && self.gc.chunk < self.pages_per_block
                && self.blocks.get(number).state == State::Collecting
                && copies > 0
            {
                let chunk = first + self.gc.chunk;
                if self.is_in_use(chunk) {
                    copies -= 1;
                    (has_room, now) = self.gc_process_chunk(now, chunk)?;
                }
                self.gc.chunk += 1;
            }
        }
        if self.blocks.get(number).state == State::Collecting {
            self.blocks.get_mut(number).state = State::Full;
        } else {
            (self.gc.block, self.gc.chunk) = (0, 0);
        }
        self.gc.is_disabled = false;
        Ok(now)
    }

    /// yaffs_summary_gc: drops the block's summary.
    fn drop_summary(&mut self, number: u32) {
        if !self.blocks.get(number).has_summary {
            return;
        }
        let first = number * self.pages_per_block;
        for chunk in first + self.chunks_per_summary..first + self.pages_per_block {
            if self.is_in_use(chunk) {
                self.set_in_use(chunk, false);
                self.blocks.get_mut(number).pages_in_use -= 1;
                self.free_chunks += 1;
            }
        }
    }

    /// yaffs_gc_process_chunk: moves the chunk, or deletes it if it belongs to no object. Returns
    /// whether there was space.
    fn gc_process_chunk(&mut self, now: Ns, old: Chunk) -> Result<(bool, Ns)> {
        let (_, now) = self.read_chunk(now, old)?;
        let tags = self.on_flash.tags(old).filter(|tags| tags.object != SUMMARY);
        let Some(tags) = tags.filter(|tags| self.objects.get(tags.object).is_some()) else {
            return Ok((true, self.delete_chunk(now, old)?));
        };
        let payload = self.moved_payload(tags, old);
        let causes = Causes::of(Cause::Collection, self.mtd.page_bytes());
        let (new, now) = self.write_new_chunk(now, (tags, payload), causes, true)?;
        let Some(new) = new else { return Ok((false, now)) };
        if tags.chunk == 0 {
            self.object_mut(tags.object).header_chunk = new;
        } else {
            self.put_chunk_in_file(tags.object, tags.chunk, new);
        }
        Ok((true, self.delete_chunk(now, old)?))
    }

    /// The payload of a moved header, which no longer shadows or shrinks, and has the file's size.
    fn moved_payload(&self, tags: Tags, old: Chunk) -> Payload {
        if tags.chunk > 0 {
            return Payload::Data(self.on_flash.contents.get(&old).cloned());
        }
        let mut header = self.on_flash.headers[&old].clone();
        (header.is_shrink, header.shadows) = (false, 0);
        let object = self.object(tags.object);
        if object.is_file() {
            header.size_bytes = object.size_bytes;
        }
        Payload::Header(header)
    }
}
