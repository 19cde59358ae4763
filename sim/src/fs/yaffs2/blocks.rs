//! Blocks and their chunks: allocated in sequence, deleted, and erased once no chunk is in use.
//!
//! Mirrors "Block Management and Page Allocation" (yaffs_find_alloc_block, yaffs_alloc_chunk,
//! yaffs_write_new_chunk, yaffs_chunk_del, yaffs_block_became_dirty, yaffs_retire_block) of
//! yaffs_guts.c and of yaffs_yaffs2.c the oldest dirty sequence number. Left out: soft deletion.
//! YAFFS2 never reaches it, because a file is truncated to nothing before it is deleted.
//!
//! Invariants:
//! 1. `free_chunks` counts every chunk of a usable block that is neither in use nor part of a
//!    checkpoint.
//! 2. `erased_blocks` is the number of blocks that are `Empty`.

use super::nand::{Ecc, Payload, Tags};
use super::{Chunk, Yaffs2, RESERVED_BLOCKS};
use crate::causes::Causes;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// YAFFS_WR_ATTEMPTS.
const WRITE_ATTEMPTS: u32 = 5 * 64;
/// A block with more errors than this is retired.
const ERROR_STRIKES_MAX: u8 = 3;

/// enum yaffs_block_state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Empty,
    NeedsScan,
    Allocating,
    Full,
    Collecting,
    Checkpoint,
    Dead,
}

/// struct yaffs_block_info.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub state: State,
    pub sequence: u32,
    pub pages_in_use: u32,
    pub strikes: u8,
    pub needs_retiring: bool,
    pub skip_erased_check: bool,
    pub gc_prioritise: bool,
    pub has_summary: bool,
    pub has_shrink_header: bool,
}

/// All blocks, counted from 1 as the core counts a partition that begins with block 0.
#[derive(Clone, Debug)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub fn new(blocks: u32) -> Blocks {
        Blocks(vec![Block::default(); blocks as usize])
    }

    #[inline]
    pub fn get(&self, block: u32) -> &Block {
        &self.0[block as usize - 1]
    }

    #[inline]
    pub fn get_mut(&mut self, block: u32) -> &mut Block {
        &mut self.0[block as usize - 1]
    }

    /// The number of the last block, which is also their count.
    pub fn last(&self) -> u32 {
        self.0.len() as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        (1..).zip(&self.0)
    }
}

impl<D: NandDriver> Yaffs2<D> {
    #[inline]
    pub(super) fn is_in_use(&self, chunk: Chunk) -> bool {
        let bit = chunk - self.pages_per_block;
        self.in_use[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn set_in_use(&mut self, chunk: Chunk, used: bool) {
        let bit = chunk - self.pages_per_block;
        let word = &mut self.in_use[(bit / 64) as usize];
        *word = *word & !(1 << (bit % 64)) | u64::from(used) << (bit % 64);
    }

    /// yaffs_check_alloc_available.
    pub(super) fn has_room(&self, chunks: i64) -> bool {
        let reserved =
            (RESERVED_BLOCKS + self.checkpoint_blocks_to_reserve()) * self.pages_per_block;
        self.free_chunks > i64::from(reserved) + chunks
    }

    /// yaffs_find_alloc_block.
    fn find_alloc_block(&mut self) -> Option<u32> {
        if self.erased_blocks == 0 {
            return None;
        }
        for _ in 0..self.blocks.last() {
            self.alloc_finder = self.alloc_finder % self.blocks.last() + 1;
            let block = self.blocks.get_mut(self.alloc_finder);
            if block.state == State::Empty {
                self.sequence += 1;
                block.state = State::Allocating;
                block.sequence = self.sequence;
                self.erased_blocks -= 1;
                return Some(self.alloc_finder);
            }
        }
        None
    }

    /// yaffs_alloc_chunk.
    fn alloc_chunk(&mut self, from_reserve: bool) -> Option<Chunk> {
        if self.alloc_block.is_none() {
            self.alloc_block = self.find_alloc_block();
            self.alloc_page = 0;
        }
        if !from_reserve && !self.has_room(1) {
            return None;
        }
        let number = self.alloc_block?;
        let chunk = number * self.pages_per_block + self.alloc_page;
        self.set_in_use(chunk, true);
        self.alloc_page += 1;
        self.free_chunks -= 1;
        let block = self.blocks.get_mut(number);
        block.pages_in_use += 1;
        if self.alloc_page >= self.pages_per_block {
            block.state = State::Full;
            self.alloc_block = None;
        }
        Some(chunk)
    }

    /// yaffs_skip_rest_of_block.
    pub(super) fn skip_rest_of_block(&mut self) {
        let Some(number) = self.alloc_block else { return };
        let block = self.blocks.get_mut(number);
        if block.state == State::Allocating {
            block.state = State::Full;
            self.alloc_block = None;
        }
    }

    /// yaffs_write_new_chunk: returns none if there is no space. If the block was not erased since
    /// the mount, its first chunk is read before and after the write.
    pub(super) fn write_new_chunk(
        &mut self,
        now: Ns,
        what: (Tags, Payload),
        causes: Causes,
        from_reserve: bool,
    ) -> Result<(Option<Chunk>, Ns)> {
        let mut now = self.invalidate_checkpoint(now + self.mtd.costs().yaffs2_write_ns)?;
        for _ in 0..=WRITE_ATTEMPTS {
            let Some(chunk) = self.alloc_chunk(from_reserve) else { break };
            let block = chunk / self.pages_per_block;
            let unchecked = !self.blocks.get(block).skip_erased_check;
            if unchecked {
                let (ecc, later) = self.read_chunk(now, chunk)?;
                now = later;
                if ecc > Ecc::Fine || !self.on_flash.is_erased(chunk) {
                    now = self.delete_chunk(now, chunk)?;
                    self.skip_rest_of_block();
                    continue;
                }
            }
            let (mut written, later) = self.write_chunk(now, chunk, what.clone(), causes)?;
            now = later;
            if unchecked {
                // As in the core, the result of this read decides.
                let (ecc, later) = self.read_chunk(now, chunk)?;
                now = later;
                written = ecc < Ecc::Unfixed && self.on_flash.tags(chunk).is_some();
            }
            if written {
                self.blocks.get_mut(block).skip_erased_check = true;
                return Ok((Some(chunk), now));
            }
            now = self.handle_write_error(now, chunk, unchecked)?;
        }
        Ok((None, now))
    }

    /// yaffs_handle_chunk_wr_error.
    fn handle_write_error(&mut self, now: Ns, chunk: Chunk, was_erased: bool) -> Result<Ns> {
        let block = chunk / self.pages_per_block;
        self.handle_chunk_error(block);
        self.blocks.get_mut(block).needs_retiring |= was_erased;
        let now = self.delete_chunk(now, chunk)?;
        self.skip_rest_of_block();
        Ok(now)
    }

    /// yaffs_handle_chunk_error.
    pub(super) fn handle_chunk_error(&mut self, block: u32) {
        let block = self.blocks.get_mut(block);
        if !block.gc_prioritise {
            block.gc_prioritise = true;
            self.gc.has_prioritised = true;
            block.strikes += 1;
            block.needs_retiring |= block.strikes > ERROR_STRIKES_MAX;
        }
    }

    /// yaffs_chunk_del: marks the chunk as unused. The block is erased with its last chunk.
    pub(super) fn delete_chunk(&mut self, now: Ns, chunk: Chunk) -> Result<Ns> {
        if chunk == 0 {
            return Ok(now);
        }
        let number = chunk / self.pages_per_block;
        let block = *self.blocks.get(number);
        if self.gc.oldest_dirty_sequence > block.sequence {
            (self.gc.oldest_dirty_sequence, self.gc.oldest_dirty_block) = (block.sequence, number);
        }
        if !matches!(
            block.state,
            State::Allocating | State::Full | State::NeedsScan | State::Collecting
        ) {
            return Ok(now);
        }
        self.free_chunks += 1;
        self.set_in_use(chunk, false);
        let left = block.pages_in_use - 1;
        self.blocks.get_mut(number).pages_in_use = left;
        let done = matches!(block.state, State::Full | State::Collecting);
        if left == 0 && done && !block.has_shrink_header {
            return self.block_became_dirty(now, number);
        }
        Ok(now)
    }

    /// yaffs_block_became_dirty: erases a block without chunks in use.
    pub(super) fn block_became_dirty(&mut self, now: Ns, number: u32) -> Result<Ns> {
        self.forget_oldest_dirty(number);
        self.gc.forget_block(number);
        let mut now = now;
        let mut erased = false;
        if !self.blocks.get(number).needs_retiring {
            now = self.invalidate_checkpoint(now)?;
            (erased, now) = self.erase(now, number)?;
        }
        if !erased {
            self.free_chunks -= i64::from(self.pages_per_block);
            return self.retire_block(now, number);
        }
        for chunk in number * self.pages_per_block..(number + 1) * self.pages_per_block {
            self.set_in_use(chunk, false);
        }
        let strikes = self.blocks.get(number).strikes;
        *self.blocks.get_mut(number) =
            Block { skip_erased_check: true, strikes, ..Block::default() };
        self.erased_blocks += 1;
        Ok(now)
    }

    /// yaffs_retire_block.
    fn retire_block(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let now = self.invalidate_checkpoint(now)?;
        self.forget_oldest_dirty(number);
        let now = self.mark_bad(now, number)?;
        let block = self.blocks.get_mut(number);
        (block.state, block.gc_prioritise, block.needs_retiring) = (State::Dead, false, false);
        Ok(now)
    }

    /// yaffs2_clear_oldest_dirty_seq.
    fn forget_oldest_dirty(&mut self, number: u32) {
        if self.blocks.get(number).sequence == self.gc.oldest_dirty_sequence {
            (self.gc.oldest_dirty_sequence, self.gc.oldest_dirty_block) = (0, 0);
        }
    }

    /// yaffs2_find_oldest_dirty_seq.
    pub(super) fn find_oldest_dirty(&mut self) {
        if self.gc.oldest_dirty_sequence > 0 {
            return;
        }
        let whole = self.pages_per_block;
        let dirty = self.blocks.iter().filter(|(_, block)| {
            block.state == State::Full
                && block.pages_in_use < whole
                && block.sequence <= self.sequence
        });
        if let Some((number, block)) = dirty.min_by_key(|(_, block)| block.sequence) {
            (self.gc.oldest_dirty_sequence, self.gc.oldest_dirty_block) = (block.sequence, number);
        }
    }
}
