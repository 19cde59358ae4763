//! Space for nodes: reserving it, and refiling a block when its nodes become obsolete.
//!
//! Mirrors fs/jffs2/nodemgmt.c (jffs2_reserve_space, jffs2_do_reserve_space, jffs2_find_nextblock,
//! jffs2_link_node_ref, jffs2_mark_node_obsolete) and summary.c (jffs2_sum_write_sumnode) of Linux
//! 6.1. Left out: the reserve pool (rp_size), which is 0 by default and open to root anyway.
//!
//! Invariants:
//! 1. A block's free + used + unchecked + dirty + wasted bytes add up to the block's size.
//! 2. Only the end of the block being written (`next_block`) receives nodes.

use super::gc_choices::ChosenIn;
use super::layout::{
    is_dirty, pad, Summary, MIN_DATA_BYTES, RAW_INODE_BYTES, RAW_SUMMARY_BYTES, SUMMARY_BYTES_MAX,
    SUMMARY_FRAME_BYTES, SUMMARY_MARKER_BYTES,
};
use super::node::{Node, NodeId, Role, State};
use super::space::{List, Pass};
use super::Jffs2;
use crate::causes::Cause;
use crate::fs::{FsError, Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// ALLOC_NORMAL, ALLOC_DELETION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The reserved blocks have to stay free.
    Normal,
    /// For an operation that frees space: it may use the reserved blocks.
    Deletion,
}

impl<D: NandDriver> Jffs2<D> {
    /// write_ofs: the offset of the next node.
    pub(super) fn write_offset(&self, block: u32) -> u32 {
        block * self.block_bytes + self.block_bytes - self.space.block(block).books.free_bytes
    }

    /// jffs2_reserve_space: reserves at least `min_bytes` and returns how much there is. The writer
    /// collects until enough blocks are free.
    pub(super) fn reserve_space(
        &mut self,
        now: Ns,
        min_bytes: u32,
        priority: Priority,
        summary: Summary,
        pages: &mut dyn PageCache,
    ) -> Result<(u32, Ns)> {
        let mut now = self.lock_alloc(now, pages)?;
        loop {
            while self.space.free_or_erasing_blocks() < self.space.levels.write_blocks {
                if !self.worth_collecting() {
                    let few =
                        self.space.free_or_erasing_blocks() < self.space.levels.deletion_blocks;
                    if priority == Priority::Deletion && !few {
                        break;
                    }
                    self.unlock_alloc(now);
                    return Err(FsError::NoSpace(now));
                }
                self.unlock_alloc(now);
                let (pass, later) = self.garbage_collect_pass(now, pages)?;
                now = match pass {
                    Pass::NoBlock => return Err(FsError::Io(later)),
                    Pass::Again if !self.space.erases_wait() => {
                        self.wait_for_thread(later, Some(pages))?
                    }
                    _ => later,
                };
                now = self.lock_alloc(now, pages)?;
            }
            match self.do_reserve_space(now, min_bytes, summary) {
                Ok((Some(room), now)) => return Ok((room, now)),
                Ok((None, later)) => now = later,
                Err(error) => {
                    self.unlock_alloc(now);
                    return Err(error);
                }
            }
        }
    }

    /// Whether collecting could restore the reserve, by the sums of dirty bytes.
    fn worth_collecting(&self) -> bool {
        let (total, levels) = (&self.space.total, &self.space.levels);
        let dirty = self.space.collectable_bytes().wrapping_add(total.unchecked_bytes);
        let available = (total.free_bytes.wrapping_add(total.dirty_bytes))
            .wrapping_add(self.space.erasing_bytes)
            .wrapping_add(total.unchecked_bytes);
        dirty >= levels.no_space_dirty_bytes && available / self.block_bytes > levels.write_blocks
    }

    /// jffs2_reserve_space_gc: reserves for the collector, which may use every free block.
    pub(super) fn reserve_space_gc(
        &mut self,
        mut now: Ns,
        min_bytes: u32,
        summary: Summary,
    ) -> Result<(u32, Ns)> {
        loop {
            let (room, later) = self.do_reserve_space(now, min_bytes, summary)?;
            now = later;
            if let Some(room) = room {
                return Ok((room, now));
            }
        }
    }

    /// jffs2_do_reserve_space: returns the space there is, or none if the caller has to try again
    /// (-EAGAIN).
    fn do_reserve_space(
        &mut self,
        mut now: Ns,
        min_bytes: u32,
        summary: Summary,
    ) -> Result<(Option<u32>, Ns)> {
        let min_bytes = pad(min_bytes);
        let wanted = self.options.summary && !matches!(summary, Summary::Unwanted);
        let mut without_summary = !wanted;
        if let Some(block) = self.next_block {
            let free = self.space.block(block).books.free_bytes;
            if !without_summary && min_bytes + self.summary_reserve(summary) > free {
                if self.has_summary {
                    let (is_written, later) = self.write_summary(now, block)?;
                    now = later;
                    if is_written {
                        self.close_next_block();
                    } else {
                        self.has_summary = false;
                    }
                }
                without_summary = !self.has_summary;
            }
            if self.next_block == Some(block) && without_summary && min_bytes > free {
                now = self.skip_tail(now, block)?;
                if self.next_block == Some(block) {
                    self.close_next_block();
                }
            }
            if self.next_block.is_some_and(|other| other != block) {
                // A program failed, and recovery wrote the lost nodes to this block.
                return self.do_reserve_space(now, min_bytes, summary);
            }
        }
        if self.next_block.is_none() {
            let (found, later) = self.find_next_block(now)?;
            now = later;
            if !found {
                return Ok((None, now));
            }
            without_summary = !wanted;
        }
        let block = self.next_block.expect("just found");
        let free = self.space.block(block).books.free_bytes;
        let reserve = if without_summary { 0 } else { self.summary_reserve(summary) };
        let now = self.use_up_marker(now, block)?;
        Ok((Some(free - reserve), now))
    }

    /// The bytes that the summary needs with one more entry. After it was given up
    /// (JFFS2_SUMMARY_NOSUM_SIZE) it counts as one byte less than none, until the block is found to
    /// be full.
    fn summary_reserve(&self, summary: Summary) -> u32 {
        let collected = if self.has_summary { self.summary_bytes } else { u32::MAX };
        pad((summary.bytes() + SUMMARY_FRAME_BYTES).wrapping_add(collected))
    }

    /// jffs2_sum_write_sumnode: fills the rest of the block with the summary. Returns whether it
    /// was written. jffs2_sum_disable_collecting gives it up if programming fails, if a sync's
    /// padding left too little room, or if it exceeds its buffer, as with small nodes in a block of
    /// 256 KiB.
    fn write_summary(&mut self, now: Ns, block: u32) -> Result<(bool, Ns)> {
        let offset = self.write_offset(block);
        let bytes = self.space.block(block).books.free_bytes;
        let Some(padding) = bytes.checked_sub(self.summary_bytes + SUMMARY_FRAME_BYTES) else {
            return Ok((false, now));
        };
        if self.summary_bytes + SUMMARY_MARKER_BYTES + 2 * padding > SUMMARY_BYTES_MAX {
            return Ok((false, now));
        }
        // jffs2_sum_write_data: the entries, the padding and the marker are one vector.
        let header = [(Cause::Metadata, RAW_SUMMARY_BYTES)];
        let entries = [
            (Cause::Metadata, self.summary_bytes),
            (Cause::Padding, padding),
            (Cause::Metadata, SUMMARY_MARKER_BYTES),
        ];
        let now = match self.flash_write(now, offset, &[&header, &entries], None) {
            Err(FsError::Io(at)) => return Ok((false, at)),
            done => done?,
        };
        self.link_node(
            block,
            Node { state: State::Normal, ..bare(Role::Summary { total_bytes: bytes }) },
        );
        Ok((true, now))
    }

    /// Leaves the end of a block without summary unused, and flushes the write buffer.
    fn skip_tail(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.try_flush_wbuf_pad(now)?;
        if self.next_block != Some(block) {
            return Ok(now);
        }
        let waste = self.space.block(block).books.free_bytes;
        if waste > 0 {
            self.link_wasted(block, waste);
        }
        Ok(now)
    }

    /// jffs2_close_nextblock: files the full block.
    fn close_next_block(&mut self) {
        if let Some(number) = self.next_block.take() {
            self.space.file_closed(number);
        }
    }

    /// jffs2_find_nextblock: returns whether there is a block to write, or whether the caller has
    /// to try again.
    fn find_next_block(&mut self, mut now: Ns) -> Result<(bool, Ns)> {
        if let Some(block) = self.space.pop_front(List::Free) {
            self.next_block = Some(block);
            self.summary_bytes = 0;
            self.has_summary = self.options.summary;
            self.forget_empty_wbuf();
            return Ok((true, now));
        }
        if self.space.erasing_blocks == 0 {
            if let Some(block) = self.space.pop_front(List::Erasable) {
                self.space.await_erase(block);
                self.trigger_collector(now);
            }
        }
        if self.space.erasing_blocks == 0 && !self.space.is_empty(List::ErasablePendingWbuf) {
            now = self.try_flush_wbuf_pad(now)?;
            return Ok((false, now));
        }
        if self.space.erasing_blocks == 0 {
            return Err(FsError::NoSpace(now));
        }
        let (erased, now) = self.erase_pending_blocks(now, 1, None)?;
        if erased > 0 || !self.space.is_empty(List::Free) {
            return Ok((false, now));
        }
        if self.collector.defers_calls {
            // The kernel retries until the foreground has erased a block.
            return Err(FsError::NoSpace(now));
        }
        Ok((false, self.wait_for_thread(now, None)?))
    }

    /// jffs2_add_physical_node_ref: adds the node just written to the block being written.
    pub(super) fn add_node(
        &mut self,
        now: Ns,
        node: Node,
        summary: Summary,
    ) -> Result<(NodeId, Ns)> {
        let block = self.next_block.expect("space was reserved");
        let id = self.link_node(block, node);
        if !node.role.is_bare() {
            self.files[node.ino.0 as usize - 1].nodes.push(&mut self.nodes, id);
        }
        self.summary_bytes += summary.bytes();
        let full = self.space.block(block).books;
        let mut now = now;
        if full.free_bytes == 0 && full.dirty_bytes == 0 && !is_dirty(full.wasted_bytes) {
            now = self.flush_wbuf(now)?;
            self.space.push_back(List::Clean, block);
            self.next_block = None;
        }
        Ok((id, now))
    }

    /// jffs2_link_node_ref: appends a node to a block.
    pub(super) fn link_node(&mut self, block: u32, node: Node) -> NodeId {
        let flash_offset = self.write_offset(block);
        let node = Node { flash_offset, next_in_block: None, fragments: 0, ..node };
        let id = self.nodes.push(node);
        self.link(id, &node);
        id
    }

    /// The rest of jffs2_link_node_ref: adds the node to its block's list and books.
    #[inline]
    pub(super) fn link(&mut self, id: NodeId, node: &Node) {
        let (number, bytes, state) =
            (self.block_of(node.flash_offset), node.total_bytes(), node.state);
        self.space.change(number, |books| {
            books.free_bytes -= bytes;
            match state {
                State::Unchecked => books.unchecked_bytes += bytes,
                State::Pristine | State::Normal => books.used_bytes += bytes,
                State::Obsolete => books.dirty_bytes += bytes,
            }
        });
        let (first_node, last_node) = self.space.nodes_of(number);
        match last_node.replace(id) {
            Some(last) => self.nodes.set_next_in_block(last, id),
            None => *first_node = Some(id),
        }
    }

    /// Appends a node that belongs to no inode.
    pub(super) fn link_bare(&mut self, block: u32, role: Role, state: State) {
        self.link_node(block, Node { state, ..bare(role) });
    }

    /// Books space without nodes: a flushed page's padding or the end of a skipped block.
    pub(super) fn link_wasted(&mut self, block: u32, bytes: u32) {
        self.link_node(
            block,
            Node { state: State::Obsolete, ..bare(Role::Padding { total_bytes: bytes }) },
        );
        self.space.change(block, |books| {
            books.dirty_bytes -= bytes;
            books.wasted_bytes += bytes;
        });
    }

    /// jffs2_complete_reservation: a write is done, so the collector may have work.
    pub(super) fn complete_reservation(&mut self, now: Ns) -> Result<Ns> {
        let now = self.write_marks(now)?;
        self.trigger_collector(now);
        self.unlock_alloc(now);
        Ok(now)
    }

    /// jffs2_mark_node_obsolete, which on NAND sets the mark in memory only.
    pub(super) fn mark_obsolete(&mut self, now: Ns, id: NodeId) {
        let node = self.nodes.set_state(id, State::Obsolete);
        let (flash_offset, total_bytes) = (node.flash_offset, node.total_bytes());
        assert!(node.state != State::Obsolete, "node at {flash_offset} obsolete twice");
        let number = self.block_of(flash_offset);
        let writing = self.next_block == Some(number);
        let is_bad = self.space.is_on(List::BadUsed, number);
        let dirty_before = self.space.block(number).books.dirty_bytes;
        self.space.change(number, |books| {
            match node.state {
                State::Unchecked => books.unchecked_bytes -= total_bytes,
                _ => books.used_bytes -= total_bytes,
            }
            if writing || (dirty_before == 0 && !is_dirty(books.wasted_bytes + total_bytes)) {
                books.wasted_bytes += total_bytes;
                return;
            }
            books.dirty_bytes += total_bytes;
            if !is_bad {
                books.waste_to_dirt();
            }
        });
        if !writing && !self.is_scanning {
            self.refile(now, number, dirty_before);
        }
        self.mark_on_flash(id);
    }

    /// Marks a node obsolete unless it already is.
    pub(super) fn obsolete_once(&mut self, now: Ns, id: NodeId) {
        if self.nodes.get(id).state != State::Obsolete {
            self.mark_obsolete(now, id);
        }
    }

    /// The part of jffs2_mark_node_obsolete that moves the block to another list.
    fn refile(&mut self, now: Ns, number: u32, dirty_before: u32) {
        let books = self.space.block(number).books;
        let collecting = self.gc_block.is_some_and(|gc| gc.block == number);
        if books.used_bytes == 0 && books.unchecked_bytes == 0 {
            self.gc_block.take_if(|gc| gc.block == number);
            self.space.remove(number);
            self.file_emptied(now, number);
            return;
        }
        if collecting || self.space.is_on(List::BadUsed, number) {
            return;
        }
        let to = if is_dirty(books.dirty_bytes) && !is_dirty(dirty_before) {
            List::Dirty
        } else if self.space.is_very_dirty(books.dirty_bytes)
            && !self.space.is_very_dirty(dirty_before)
        {
            List::VeryDirty
        } else {
            return;
        };
        self.space.remove(number);
        self.space.push_back(to, number);
    }

    /// Files a block without valid nodes. If the write buffer's nodes made it so, it waits until
    /// they are on flash. Otherwise it is queued for erasing, or set aside at one choice in 128 so
    /// that it is not reused at once.
    fn file_emptied(&mut self, now: Ns, number: u32) {
        if self.wbuf.bytes > 0 {
            self.space.push_back(List::ErasablePendingWbuf, number);
        } else if self.gc_choices.choose(ChosenIn::Obsolete, self.ticks.jiffies(now)) != 0 {
            self.space.await_erase(number);
            self.trigger_collector(now);
        } else {
            self.space.push_back(List::Erasable, number);
        }
    }
}

/// A node that belongs to no inode.
fn bare(role: Role) -> Node {
    Node::new(Ino(0), role, 0)
}

/// The smallest reservation of a data node: its header and JFFS2_MIN_DATA_LEN.
pub const MIN_DATA_NODE_BYTES: u32 = RAW_INODE_BYTES + MIN_DATA_BYTES;
