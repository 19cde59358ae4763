//! The checkpoint: the state in memory, written to blocks of its own so that a mount need not scan.
//!
//! Mirrors yaffs_checkptrw.c and "Checkpointing" of yaffs_yaffs2.c. The first change after a
//! checkpoint erases it. Its length follows from the sizes of the core's structures; its content is
//! kept here as it was. A partition of less than 60 blocks has no checkpoint.
//!
//! Invariant: `saved` is set exactly if the last checkpoint is complete and none of its blocks was
//! erased since.

use super::blocks::{Blocks, State};
use super::kind::Kind;
use super::nand::{Ecc, Payload, Tags};
use super::object::Object;
use super::{Yaffs2, RESERVED_BLOCKS};
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;
use crate::waits::{over, Wait};

/// YAFFS_CHECKPOINT_MIN_BLOCKS.
const BLOCKS_MIN: u32 = 60;
/// YAFFS_SEQUENCE_CHECKPOINT_DATA.
pub(super) const SEQUENCE: u32 = 0x21;
/// Sizes of struct yaffs_checkpt_validity, _dev and _obj, struct yaffs_block_info, and the words
/// between them.
const VALIDITY_BYTES: u64 = 16;
const DEVICE_BYTES: u64 = 36;
const OBJECT_BYTES: u64 = 32;
const BLOCK_BYTES: u64 = 8;
const WORD_BYTES: u64 = 4;

/// The content of the last checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    bytes: u64,
    erased_blocks: u32,
    free_chunks: i64,
    sequence: u32,
    alloc_block: Option<u32>,
    alloc_page: u32,
    blocks: Blocks,
    in_use: Vec<u64>,
    /// In the order in which they were written.
    objects: Vec<(u32, Object)>,
}

impl<D: NandDriver> Yaffs2<D> {
    fn chunk_bits_bytes(&self) -> u64 {
        u64::from(self.pages_per_block.div_ceil(8))
    }

    fn is_checkpoint_wanted(&self) -> bool {
        self.blocks.last() >= BLOCKS_MIN
    }

    /// yaffs_calc_checkpt_blocks_required: blocks reserved for a checkpoint.
    pub(super) fn checkpoint_blocks_to_reserve(&self) -> u32 {
        if !self.is_checkpoint_wanted() {
            return 0;
        }
        let blocks = u64::from(self.blocks.last());
        let bytes = 2 * VALIDITY_BYTES
            + DEVICE_BYTES
            + blocks * (BLOCK_BYTES + self.chunk_bits_bytes())
            + (OBJECT_BYTES + WORD_BYTES) * u64::from(self.objects.count)
            + (self.tnode_bytes + WORD_BYTES) * u64::from(self.tnodes)
            + WORD_BYTES;
        let needed = bytes / u64::from(self.chunk_bytes * self.pages_per_block) + 3;
        (needed as u32).saturating_sub(self.checkpoint_blocks)
    }

    /// Objects in the order of yaffs2_wr_checkpt_objs: the newest of each bucket first.
    fn objects_in_order(&self) -> Vec<u32> {
        let all = self.objects.buckets.iter().flat_map(|bucket| bucket.iter().rev());
        all.filter(|&number| self.objects.get(number).is_some()).collect()
    }

    fn bytes_of(&self, numbers: &[u32]) -> u64 {
        let tnodes = |object: &Object| {
            u64::from(object.tree.leaves()) * (WORD_BYTES + self.tnode_bytes) + WORD_BYTES
        };
        let objects: u64 = numbers
            .iter()
            .map(|&number| self.object(number))
            .map(|object| OBJECT_BYTES + if object.is_file() { tnodes(object) } else { 0 })
            .sum();
        let blocks = u64::from(self.blocks.last());
        2 * VALIDITY_BYTES
            + DEVICE_BYTES
            + blocks * (BLOCK_BYTES + self.chunk_bits_bytes())
            + objects
            + OBJECT_BYTES
            + WORD_BYTES
    }

    /// yaffs_checkpoint_save.
    pub(super) fn save_checkpoint(&mut self, now: Ns) -> Result<Ns> {
        if self.is_checkpointed {
            return Ok(now);
        }
        let before = self.mtd.enter(now, Wait::Commit);
        let done = self.save_new_checkpoint(now);
        self.mtd.enter(over(&done, now), before);
        done
    }

    fn save_new_checkpoint(&mut self, now: Ns) -> Result<Ns> {
        let now = self.invalidate_checkpoint(now)?;
        if !self.is_checkpoint_wanted() || self.erased_blocks <= RESERVED_BLOCKS {
            return Ok(now);
        }
        let numbers = self.objects_in_order();
        let saved = Saved {
            bytes: self.bytes_of(&numbers),
            erased_blocks: self.erased_blocks,
            free_chunks: self.free_chunks,
            sequence: self.sequence,
            alloc_block: self.alloc_block,
            alloc_page: self.alloc_page,
            blocks: self.blocks.clone(),
            in_use: self.in_use.clone(),
            objects: numbers.iter().map(|&number| (number, self.object(number).clone())).collect(),
        };
        let (written, now) = self.write_checkpoint(now, saved.bytes)?;
        self.free_chunks -= i64::from(self.checkpoint_blocks * self.pages_per_block);
        self.erased_blocks -= self.checkpoint_blocks;
        self.is_checkpointed = written;
        self.saved = written.then(|| Box::new(saved));
        Ok(now)
    }

    /// yaffs2_checkpt_flush_buffer, chunk after chunk. Returns whether there were enough blocks.
    fn write_checkpoint(&mut self, mut now: Ns, bytes: u64) -> Result<(bool, Ns)> {
        let chunks = bytes.div_ceil(u64::from(self.chunk_bytes)) as u32;
        now += Ns::from_ps(bytes, self.mtd.costs().yaffs2_checkpoint_byte_ps);
        let mut block = 0;
        for number in 0..chunks {
            let page = number % self.pages_per_block;
            if page == 0 {
                let empty = |&(at, info): &(u32, &super::blocks::Block)| {
                    at > block && info.state == State::Empty
                };
                let Some((found, _)) = self.blocks.iter().find(empty) else {
                    return Ok((false, now));
                };
                block = found;
                self.blocks.get_mut(block).state = State::Checkpoint;
                self.checkpoint_blocks += 1;
            }
            let tags = Tags { object: block + 1, chunk: number + 1, bytes: 0 };
            let causes = self.metadata();
            let chunk = block * self.pages_per_block + page;
            now = self.program(now, chunk, (tags, Payload::Other), SEQUENCE, causes)?.1;
        }
        Ok((true, now))
    }

    /// yaffs2_checkpt_invalidate: erases the checkpoint before the first change.
    pub(super) fn invalidate_checkpoint(&mut self, mut now: Ns) -> Result<Ns> {
        self.is_dirty = true;
        if !self.is_checkpointed && self.checkpoint_blocks == 0 {
            return Ok(now);
        }
        self.is_checkpointed = false;
        self.saved = None;
        for number in 1..=self.blocks.last() {
            if self.blocks.get(number).state != State::Checkpoint {
                continue;
            }
            let (erased, later) = self.erase(now, number)?;
            now = later;
            if erased {
                self.blocks.get_mut(number).state = State::Empty;
                self.erased_blocks += 1;
                self.free_chunks += i64::from(self.pages_per_block);
            } else {
                now = self.mark_bad(now, number)?;
                self.blocks.get_mut(number).state = State::Dead;
            }
        }
        self.checkpoint_blocks = 0;
        Ok(now)
    }

    /// yaffs2_checkpt_restore: restores the state from a complete, readable checkpoint. Returns
    /// whether it did.
    pub(super) fn restore_checkpoint(&mut self, now: Ns) -> Result<(bool, Ns)> {
        let (blocks, now) = self.read_checkpoint(now)?;
        let Some((blocks, saved)) = blocks.zip(self.saved.take()) else { return Ok((false, now)) };
        let now = now + Ns::from_ps(saved.bytes, self.mtd.costs().yaffs2_checkpoint_byte_ps);
        self.erased_blocks = saved.erased_blocks - blocks.len() as u32;
        self.free_chunks =
            saved.free_chunks - i64::from(blocks.len() as u32 * self.pages_per_block);
        self.sequence = saved.sequence;
        (self.alloc_block, self.alloc_page) = (saved.alloc_block, saved.alloc_page);
        self.summary_from = if saved.alloc_block.is_some() { saved.alloc_page } else { 0 };
        self.blocks = saved.blocks.clone();
        self.in_use.clone_from(&saved.in_use);
        for &block in &blocks {
            self.blocks.get_mut(block).state = State::Checkpoint;
        }
        self.checkpoint_blocks = blocks.len() as u32;
        for (number, object) in &saved.objects {
            self.restore_object(*number, object);
        }
        let names = saved.objects.iter().map(|(number, _)| *number);
        self.fix_links(names.collect());
        self.saved = Some(saved);
        self.is_checkpointed = true;
        let now = self.load_details(now, super::ROOT_OBJECT)?;
        Ok((true, now))
    }

    /// yaffs2_checkpt_rd as far as it can read. Returns the checkpoint's blocks if it is complete.
    fn read_checkpoint(&mut self, mut now: Ns) -> Result<(Option<Vec<u32>>, Ns)> {
        let last = self.blocks.last();
        let blocks_max = (last - 1) / 16 + 2;
        let chunk_bytes = u64::from(self.chunk_bytes);
        let chunks = self.saved.as_ref().map(|saved| saved.bytes.div_ceil(chunk_bytes) as u32);
        let mut blocks: Vec<u32> = Vec::new();
        let mut next = 1;
        for number in 0..chunks.unwrap_or(u32::MAX) {
            if number % self.pages_per_block == 0 {
                let mut found = None;
                while found.is_none() && next <= last && (blocks.len() as u32) < blocks_max {
                    let chunk = next * self.pages_per_block;
                    now = self.read_tags_quietly(now, chunk)?;
                    let tags = self.on_flash.tags(chunk);
                    found = tags
                        .filter(|_| self.on_flash.sequence(next) == SEQUENCE)
                        .map(|tags| (next, tags));
                    next += 1;
                }
                let Some((block, tags)) = found else { return Ok((None, now)) };
                if self.mtd.is_bad(block - 1) {
                    let what = "a checkpoint of yaffs2 in a block that could not be erased";
                    return Err(FsError::NotModelled(what));
                }
                blocks.push(block);
                next = tags.object;
            }
            let block = blocks.last().expect("just found");
            let chunk = block * self.pages_per_block + number % self.pages_per_block;
            let (ecc, later) = self.read_quietly(now, chunk)?;
            now = later;
            if ecc == Ecc::Unfixed
                || self.on_flash.tags(chunk).is_none_or(|tags| tags.chunk != number + 1)
            {
                return Ok((None, now));
            }
        }
        Ok((Some(blocks), now))
    }

    /// yaffs2_checkpt_obj_to_obj.
    fn restore_object(&mut self, number: u32, saved: &Object) {
        if self.objects.get(number).is_none() {
            self.new_object(number, saved.kind.clone());
        }
        self.object_mut(number).is_lazy = saved.header_chunk != 0;
        if saved.parent != 0 {
            if self.objects.get(saved.parent).is_none() {
                self.new_object(saved.parent, Kind::Directory);
            }
            self.name_in_directory(number, (saved.parent, &saved.name));
        }
        let object = self.object_mut(number);
        object.tree = saved.tree.clone();
        object.is_fake = saved.is_fake;
        object.header_chunk = saved.header_chunk;
        object.data_chunks = saved.data_chunks;
        object.size_bytes = saved.size_bytes;
        if saved.is_file() {
            self.tnodes += saved.tree.tnodes() - 1;
        }
    }
}
