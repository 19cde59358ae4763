//! Blocks and the space in them.
//!
//! Mirrors fs/jffs2/nodemgmt.c (jffs2_reserve_space, jffs2_do_reserve_space, jffs2_find_nextblock,
//! jffs2_link_node_ref, jffs2_mark_node_obsolete) and summary.c (jffs2_sum_write_sumnode) of Linux
//! 6.1. Left out: collecting garbage because space is short (refused as not modelled), bad blocks.
//!
//! Invariants:
//! 1. free + used + unchecked + dirty + wasted bytes of a block make a block.
//! 2. Only the end of the block being written (`next_block`) receives nodes.

use super::layout::{
    is_dirty, pad, MIN_DATA_BYTES, RAW_INODE_BYTES, SUMMARY_BYTES_MAX, SUMMARY_DIRENT_BYTES,
    SUMMARY_FRAME_BYTES, SUMMARY_INODE_BYTES, SUMMARY_MARKER_BYTES,
};
use super::nodelist::{Node, NodeId, Role, State};
use super::Jffs2;
use crate::causes::Cause;
use crate::chip::Flash;
use crate::fs::{FsError, Ino, PageCache, Result};
use crate::units::Ns;
use std::collections::VecDeque;

/// struct jffs2_eraseblock.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub free_bytes: u32,
    pub used_bytes: u32,
    pub unchecked_bytes: u32,
    pub dirty_bytes: u32,
    pub wasted_bytes: u32,
    pub first_node: Option<NodeId>,
    pub last_node: Option<NodeId>,
}

impl Block {
    /// Whether it is known what its bytes are.
    pub fn is_counted(&self) -> bool {
        let good = self.used_bytes + self.unchecked_bytes;
        good + self.free_bytes + self.dirty_bytes + self.wasted_bytes > 0
    }

    /// A block of a fresh partition; a bad one has no room (`bad_size`).
    pub fn fresh(block_bytes: u32, bad: bool) -> Block {
        Block::erased(if bad { 0 } else { block_bytes })
    }

    /// An erased block.
    pub fn erased(block_bytes: u32) -> Block {
        Block {
            free_bytes: block_bytes,
            used_bytes: 0,
            unchecked_bytes: 0,
            dirty_bytes: 0,
            wasted_bytes: 0,
            first_node: None,
            last_node: None,
        }
    }
}

/// The lists blocks are filed on (struct jffs2_sb_info).
#[derive(Clone, Debug, Default)]
pub struct BlockLists {
    pub free: VecDeque<u32>,
    pub clean: VecDeque<u32>,
    pub dirty: VecDeque<u32>,
    pub very_dirty: VecDeque<u32>,
    pub erase_pending: VecDeque<u32>,
}

impl BlockLists {
    fn remove(&mut self, block: u32) {
        for list in [&mut self.clean, &mut self.dirty, &mut self.very_dirty] {
            list.retain(|&other| other != block);
        }
    }
}

/// What the summary of the block being written will need for a node.
#[derive(Clone, Copy, Debug)]
pub enum Summary {
    /// An entry for a data node.
    Inode,
    /// An entry for a directory entry with a name of so many bytes.
    Dirent(u32),
    /// The bound jffs2_garbage_collect_pristine uses, which is the length of the node itself.
    AtMost(u32),
}

impl Summary {
    pub fn bytes(self) -> u32 {
        match self {
            Summary::Inode => SUMMARY_INODE_BYTES,
            Summary::Dirent(name) => SUMMARY_DIRENT_BYTES + name,
            Summary::AtMost(bytes) => bytes,
        }
    }
}

/// ALLOC_NORMAL, ALLOC_DELETION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Asks for the reserve to be untouched.
    Normal,
    /// Takes something away, and may use the reserve.
    Deletion,
}

/// Whether lost space makes a block very dirty (VERYDIRTY, nodelist.h).
pub fn is_very_dirty(block_bytes: u32, bytes: u32) -> bool {
    bytes >= block_bytes / 2
}

impl<F: Flash> Jffs2<F> {
    /// resv_blocks_write (build.c jffs2_calc_trigger_levels).
    pub(super) fn reserved_blocks(mtd_bytes: u64, blocks: u32, block_bytes: u32) -> u32 {
        let spare = mtd_bytes / 50 + u64::from(blocks) * 100 + u64::from(block_bytes) - 1;
        2 + u32::try_from(spare / u64::from(block_bytes)).expect("a partition below 4 GiB")
    }

    /// write_ofs: where the next node goes.
    pub(super) fn write_offset(&self, block: u32) -> u32 {
        block * self.block_bytes + self.block_bytes - self.blocks[block as usize].free_bytes
    }

    /// jffs2_reserve_space: room for at least `min_bytes`; returns how much there is.
    pub(super) fn reserve_space(
        &mut self,
        now: Ns,
        min_bytes: u32,
        _priority: Priority,
        summary: Summary,
        _pages: &mut dyn PageCache,
    ) -> Result<(u32, Ns)> {
        let free = self.lists.free.len() as u32 + self.lists.erase_pending.len() as u32;
        if free < self.reserved_blocks_write {
            let dirty: u64 = self.blocks.iter().map(|b| u64::from(b.dirty_bytes)).sum();
            let nospc = u64::from(self.block_bytes) + self.mtd.size_bytes() / 100;
            if dirty < nospc {
                return Err(FsError::NoSpace);
            }
            return Err(FsError::NotModelled("jffs2 collecting garbage to make room"));
        }
        self.reserve_space_gc(now, min_bytes, summary)
    }

    /// jffs2_do_reserve_space, which garbage collection calls without asking for spare blocks.
    pub(super) fn reserve_space_gc(
        &mut self,
        mut now: Ns,
        min_bytes: u32,
        summary: Summary,
    ) -> Result<(u32, Ns)> {
        let min_bytes = pad(min_bytes);
        if let Some(block) = self.next_block {
            let free = self.blocks[block as usize].free_bytes;
            if self.has_summary && min_bytes + self.summary_reserve(summary) > free {
                match self.write_summary(now, block)? {
                    Some(later) => {
                        now = later;
                        self.close_next_block();
                    }
                    None => self.has_summary = false,
                }
            }
            if self.next_block.is_some() && !self.has_summary && min_bytes > free {
                now = self.skip_tail(now, block)?;
                self.close_next_block();
            }
        }
        if self.next_block.is_none() {
            self.find_next_block()?;
        }
        let block = self.next_block.expect("just found");
        let free = self.blocks[block as usize].free_bytes;
        Ok((free - self.summary_reserve(summary), now))
    }

    fn summary_reserve(&self, summary: Summary) -> u32 {
        if self.has_summary {
            pad(self.summary_bytes + summary.bytes() + SUMMARY_FRAME_BYTES)
        } else {
            0
        }
    }

    /// jffs2_sum_write_sumnode: the rest of the block becomes the summary. None where the kernel
    /// gives it up (jffs2_sum_disable_collecting): the padding of a sync has left no room for it, or it
    /// would be too long for its buffer, as that of small nodes in a block of 256 KiB.
    fn write_summary(&mut self, now: Ns, block: u32) -> Result<Option<Ns>> {
        let offset = self.write_offset(block);
        let bytes = self.blocks[block as usize].free_bytes;
        let Some(padding) = bytes.checked_sub(self.summary_bytes + SUMMARY_FRAME_BYTES) else {
            return Ok(None);
        };
        if self.summary_bytes + SUMMARY_MARKER_BYTES + 2 * padding > SUMMARY_BYTES_MAX {
            return Ok(None);
        }
        let parts = [(Cause::Metadata, bytes - padding), (Cause::Padding, padding)];
        let now = self.flash_write(now, offset, &parts, None)?;
        self.link_node(block, Node { state: State::Normal, ..bare(Role::Summary, bytes) });
        Ok(Some(now))
    }

    /// Without a summary the end of the block is lost, and what waits in the write buffer goes out.
    fn skip_tail(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.flush_wbuf(now)?;
        let waste = self.blocks[block as usize].free_bytes;
        if waste > 0 {
            self.link_wasted(block, waste);
        }
        Ok(now)
    }

    /// jffs2_close_nextblock: files the full block.
    fn close_next_block(&mut self) {
        let Some(number) = self.next_block.take() else { return };
        let block_bytes = self.block_bytes;
        let block = &mut self.blocks[number as usize];
        if !is_dirty(block.wasted_bytes + block.dirty_bytes) {
            self.lists.clean.push_back(number);
            return;
        }
        block.dirty_bytes += block.wasted_bytes;
        block.wasted_bytes = 0;
        if is_very_dirty(block_bytes, block.dirty_bytes) {
            self.lists.very_dirty.push_back(number);
        } else {
            self.lists.dirty.push_back(number);
        }
    }

    /// jffs2_find_nextblock.
    fn find_next_block(&mut self) -> Result<()> {
        let block = self.lists.free.pop_front().ok_or(FsError::NoSpace)?;
        self.next_block = Some(block);
        self.summary_bytes = 0;
        self.has_summary = self.options.summary;
        self.forget_empty_wbuf();
        Ok(())
    }

    /// jffs2_add_physical_node_ref for a node just written at the end of the block being written.
    pub(super) fn add_node(
        &mut self,
        now: Ns,
        node: Node,
        summary: Summary,
    ) -> Result<(NodeId, Ns)> {
        let block = self.next_block.expect("space was reserved");
        let id = self.link_node(block, node);
        self.files[node.ino.0 as usize - 1].nodes.push(id);
        self.summary_bytes += summary.bytes();
        let full = self.blocks[block as usize];
        let mut now = now;
        if full.free_bytes == 0 && full.dirty_bytes == 0 && !is_dirty(full.wasted_bytes) {
            now = self.flush_wbuf(now)?;
            self.lists.clean.push_back(block);
            self.next_block = None;
        }
        Ok((id, now))
    }

    /// jffs2_link_node_ref at the end of what is used of a block.
    pub(super) fn link_node(&mut self, block: u32, node: Node) -> NodeId {
        let flash_offset = self.write_offset(block);
        let id = self.nodes.push(Node { flash_offset, next_in_block: None, fragments: 0, ..node });
        self.link(id);
        id
    }

    /// The rest of jffs2_link_node_ref: the node is in its block's list and counted.
    pub(super) fn link(&mut self, id: NodeId) {
        let Node { flash_offset, total_bytes: bytes, state, .. } = *self.nodes.get(id);
        let block = &mut self.blocks[(flash_offset / self.block_bytes) as usize];
        block.free_bytes -= bytes;
        match state {
            State::Unchecked => block.unchecked_bytes += bytes,
            State::Pristine | State::Normal => block.used_bytes += bytes,
            State::Obsolete => block.dirty_bytes += bytes,
        }
        match block.last_node.replace(id) {
            Some(last) => self.nodes.get_mut(last).next_in_block = Some(id),
            None => block.first_node = Some(id),
        }
    }

    /// Space that holds nothing: the padding of a flushed page, the end of a skipped block.
    pub(super) fn link_wasted(&mut self, block: u32, bytes: u32) {
        self.link_node(block, Node { state: State::Obsolete, ..bare(Role::Padding, bytes) });
        let entry = &mut self.blocks[block as usize];
        entry.dirty_bytes -= bytes;
        entry.wasted_bytes += bytes;
    }

    /// jffs2_mark_node_obsolete on NAND, where the mark is in memory only.
    pub(super) fn mark_obsolete(&mut self, _now: Ns, id: NodeId) {
        let node = *self.nodes.get(id);
        assert!(node.state != State::Obsolete, "node at {} obsolete twice", node.flash_offset);
        self.nodes.get_mut(id).state = State::Obsolete;
        let number = node.flash_offset / self.block_bytes;
        let writing = self.next_block == Some(number);
        let collecting = self.gc_block.is_some_and(|gc| gc.block == number);
        let block = &mut self.blocks[number as usize];
        match node.state {
            State::Unchecked => block.unchecked_bytes -= node.total_bytes,
            _ => block.used_bytes -= node.total_bytes,
        }
        let before = block.dirty_bytes;
        let lost = block.wasted_bytes + node.total_bytes;
        if !writing && (block.dirty_bytes > 0 || is_dirty(lost)) {
            block.dirty_bytes += block.wasted_bytes + node.total_bytes;
            block.wasted_bytes = 0;
        } else {
            block.wasted_bytes += node.total_bytes;
        }
        let block = *block;
        if self.is_scanning {
            return;
        }
        if collecting {
            self.finish_gc_block();
        }
        if writing || collecting {
            return;
        }
        self.refile(number, &block, before);
    }

    /// The same of a node that may be obsolete already.
    pub(super) fn obsolete_once(&mut self, now: Ns, id: NodeId) {
        if self.nodes.get(id).state != State::Obsolete {
            self.mark_obsolete(now, id);
        }
    }

    fn refile(&mut self, number: u32, block: &Block, dirty_before: u32) {
        if block.used_bytes + block.unchecked_bytes == 0 {
            self.lists.remove(number);
            self.lists.erase_pending.push_back(number);
        } else if is_very_dirty(self.block_bytes, block.dirty_bytes)
            && !is_very_dirty(self.block_bytes, dirty_before)
        {
            self.lists.remove(number);
            self.lists.very_dirty.push_back(number);
        } else if is_dirty(block.dirty_bytes) && !is_dirty(dirty_before) {
            self.lists.remove(number);
            self.lists.dirty.push_back(number);
        }
    }
}

/// A node of no inode.
fn bare(role: Role, total_bytes: u32) -> Node {
    Node { total_bytes, ..Node::new(Ino(0), role, 0) }
}

/// The least reservation of a data node: its header and JFFS2_MIN_DATA_LEN.
pub const MIN_DATA_NODE_BYTES: u32 = RAW_INODE_BYTES + MIN_DATA_BYTES;
