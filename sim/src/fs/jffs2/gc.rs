//! Garbage collection, one node a pass.
//!
//! Mirrors fs/jffs2/gc.c of Linux 6.1 (jffs2_find_gc_block, jffs2_garbage_collect_pass,
//! jffs2_garbage_collect_pristine, _live, _dirent, _dnode, _hole, _metadata). 2.6.37 is the same.
//!
//! It has three callers: a writer that needs space, the collector thread (background.rs), and
//! fsync, which moves nodes to fill the write buffer's page rather than pad it. A node that no
//! longer provides all of its pages is not copied. The collector writes those pages again from the
//! page cache, and reads them into it first if they are missing.

use super::fragments::Fragment;
use super::gc_choices::ChosenIn;
use super::inode::InodeState;
use super::layout::{is_dirty, Summary, RAW_INODE_BYTES};
use super::node::{NameId, Node, NodeId, Role, State};
use super::nodelist::InodeNodes;
use super::nodemgmt::MIN_DATA_NODE_BYTES;
use super::space::{List, Pass};
use super::Jffs2;
use crate::causes::Cause;
use crate::fs::{FsError, Ino, PageCache, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;
use crate::victim::{chosen, Why};
use crate::waits::{over, Wait};
use std::ops::Range;

/// c->gcblock and its gc_node.
#[derive(Clone, Copy, Debug)]
pub struct GcBlock {
    /// The block being collected.
    pub block: u32,
    /// The node to move next.
    pub node: Option<NodeId>,
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_garbage_collect_pass of the foreground: erases the pending blocks, or moves one node.
    pub(super) fn garbage_collect_pass(
        &mut self,
        now: Ns,
        pages: &mut dyn PageCache,
    ) -> Result<(Pass, Ns)> {
        let before = self.mtd.enter(now, Wait::Collection);
        let done = self.foreground_pass(now, pages);
        self.mtd.enter(over(&done, now), before);
        done
    }

    fn foreground_pass(&mut self, mut now: Ns, pages: &mut dyn PageCache) -> Result<(Pass, Ns)> {
        now = self.lock_alloc(now, pages)?;
        if self.space.total.unchecked_bytes > 0 {
            now = self.verify_data(now)?;
            let checked = match self.next_unchecked() {
                Some(ino) => self.check_inode(now, ino),
                None => Err(FsError::NoSpace(now)),
            };
            self.unlock_alloc(*checked.as_ref().unwrap_or(&now));
            return checked.map(|now| (Pass::Progress, now));
        }
        if self.space.erases_wait() {
            self.unlock_alloc(now);
            let (erased, later) = self.erase_pending_blocks(now, 1, Some(pages))?;
            now = later;
            if erased > 0 {
                return Ok((Pass::Progress, now));
            }
            now = self.lock_alloc(now, pages)?;
        }
        if self.gc_block.is_none() {
            now = self.find_gc_block(now, Why::Space)?;
        }
        if self.gc_block.is_none() {
            self.unlock_alloc(now);
            let is_erasing = self.space.erasing_blocks > 0;
            return Ok((if is_erasing { Pass::Again } else { Pass::NoBlock }, now));
        }
        let over = self.collect_next_node(now, pages);
        now = *over.as_ref().unwrap_or(&now);
        self.unlock_alloc(now);
        self.finish_gc_block(now);
        over.map(|now| (Pass::Progress, now))
    }

    /// The next node to move of the block being collected, if it has a valid one left.
    pub(super) fn node_to_collect(&self) -> Option<NodeId> {
        let gc = self.gc_block.filter(|gc| self.space.block(gc.block).books.used_bytes > 0)?;
        let mut id = gc.node;
        while let Some(node) = id.filter(|&id| self.nodes.get(id).state == State::Obsolete) {
            id = self.nodes.get(node).next_in_block;
        }
        Some(id.expect("a block with used bytes has a good node"))
    }

    /// The inode of a node, and whether it is absent from memory.
    pub(super) fn inode_of(&self, id: NodeId) -> Option<(Ino, bool)> {
        let Node { ino, role, .. } = self.nodes.get(id);
        (!role.is_bare()).then(|| (ino, self.file(ino).state != InodeState::Present))
    }

    /// Moves the next node of the block being collected, if it has a valid one left.
    pub(super) fn collect_next_node(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let Some(id) = self.node_to_collect() else { return Ok(now) };
        if let Some(gc) = &mut self.gc_block {
            gc.node = Some(id);
        }
        let now = self.collect(now + self.mtd.costs().jffs2_gc_pass_ns, id, pages)?;
        self.write_marks(now)
    }

    /// Queues the block being collected for erasing if no valid node is left in it.
    pub(super) fn finish_gc_block(&mut self, now: Ns) {
        let space = &self.space;
        let emptied = |gc: &mut GcBlock| space.block(gc.block).books.used_bytes == 0;
        if let Some(gc) = self.gc_block.take_if(emptied) {
            self.space.await_erase(gc.block);
            self.trigger_collector(now);
        }
    }

    /// jffs2_find_gc_block, or what a policy chooses in its place.
    pub(super) fn find_gc_block(&mut self, now: Ns, why: Why) -> Result<Ns> {
        let (block, now) = match self.victim {
            None => self.find_by_list(now)?,
            Some(_) => self.find_by_policy(now, why)?,
        };
        let Some(block) = block else { return Ok(now) };
        self.gc_block = Some(GcBlock { block, node: self.space.block(block).first_node });
        self.space.waste_to_dirt(block);
        Ok(now)
    }

    /// Takes the block that a policy chooses off its list.
    fn find_by_policy(&mut self, mut now: Ns, why: Why) -> Result<(Option<u32>, Ns)> {
        let mut blocks = self.space.candidates(&self.mtd);
        if blocks.is_empty() && !self.space.is_empty(List::ErasablePendingWbuf) {
            now = self.try_flush_wbuf_pad(now)?;
            blocks = self.space.candidates(&self.mtd);
        }
        let block = chosen(self.victim.as_deref_mut(), now, why, &blocks);
        block.into_iter().for_each(|block| self.space.remove(block));
        Ok((block, now))
    }

    /// `jiffies % 128` decides from which list the block comes.
    fn find_by_list(&mut self, mut now: Ns) -> Result<(Option<u32>, Ns)> {
        let choice = self.gc_choices.choose(ChosenIn::Collect, self.ticks.jiffies(now));
        let list = loop {
            let space = &self.space;
            let any = |list: List| !space.is_empty(list);
            break if any(List::BadUsed) && space.len(List::Free) > space.levels.bad_blocks {
                List::BadUsed
            } else if choice < 50 && any(List::Erasable) {
                List::Erasable
            } else if choice < 110 && any(List::VeryDirty) {
                List::VeryDirty
            } else if choice < 126 && any(List::Dirty) {
                List::Dirty
            } else if any(List::Clean) {
                List::Clean
            } else if any(List::Dirty) {
                List::Dirty
            } else if any(List::VeryDirty) {
                List::VeryDirty
            } else if any(List::Erasable) {
                List::Erasable
            } else if any(List::ErasablePendingWbuf) {
                now = self.try_flush_wbuf_pad(now)?;
                continue;
            } else {
                return Ok((None, now));
            };
        };
        Ok((self.space.pop_front(list), now))
    }

    /// The rest of jffs2_garbage_collect_pass, and jffs2_garbage_collect_live: a pristine node of
    /// an inode that is not in memory is copied as it is. Every other node needs its inode in
    /// memory.
    fn collect(&mut self, now: Ns, id: NodeId, pages: &mut dyn PageCache) -> Result<Ns> {
        let node = self.nodes.get(id);
        if matches!(node.role, Role::Xattr { .. } | Role::Xref) {
            return self.collect_attribute(now, id);
        }
        if node.role.is_bare() {
            self.mark_obsolete(now, id);
            return Ok(now);
        }
        let mut now = now;
        if self.file(node.ino).state != InodeState::Present {
            let (moved, later) = self.collect_pristine(now, id, &node)?;
            if moved {
                return Ok(later);
            }
            now = self.iget(later, node.ino)?;
        }
        match node.role {
            Role::Dirent { is_deletion: true, entry, .. } => {
                let name = self.names.entry(entry).name;
                self.collect_deletion_dirent(now, id, name)
            }
            Role::Dirent { .. } => self.collect_dirent(now, id),
            _ if self.file(node.ino).metadata == Some(id) => self.collect_metadata(now, id),
            _ => self.collect_data(now, id, pages),
        }
    }

    /// jffs2_garbage_collect_dirent: writes the entry again from memory, without a read.
    fn collect_dirent(&mut self, now: Ns, id: NodeId) -> Result<Ns> {
        let node = self.nodes.get(id);
        let version = self.next_version(node.ino);
        let [header, name_bytes] = node.role.parts();
        let summary = Summary::Dirent(name_bytes);
        let (_, now) = self.reserve_space_gc(now, header + name_bytes, summary)?;
        let (new, now) = self.write_dirent(now, Node { version, ..node }, None)?;
        self.add_entry(now, new);
        Ok(now)
    }

    /// jffs2_garbage_collect_deletion_dirent: a deletion dirent is needed while an older entry of
    /// the name is on flash in another block. The collector reads each obsolete node that could be
    /// one by its length.
    fn collect_deletion_dirent(&mut self, mut now: Ns, id: NodeId, name: NameId) -> Result<Ns> {
        let node = self.nodes.get(id);
        let block = self.block_of(node.flash_offset);
        // Where nodes are marked on flash, no older entry can come back.
        let is_read = !self.medium.marks_obsolete;
        let mut next = self.file(node.ino).nodes.last().filter(|_| is_read);
        while let Some(older) = next {
            next = InodeNodes::before(&self.nodes, older);
            let old = self.nodes.get(older);
            let elsewhere = self.block_of(old.flash_offset) != block;
            let may_be = old.state == State::Obsolete && old.total_bytes() == node.total_bytes();
            if !may_be || !elsewhere {
                continue;
            }
            now = self.flash_read(now, old.flash_offset, old.total_bytes())?;
            let Role::Dirent { entry: named, is_deletion: false, .. } = old.role else { continue };
            if self.names.entry(named).name == name {
                return self.collect_dirent(now, id);
            }
        }
        self.file_mut(node.ino).entries.remove(&name);
        self.mark_obsolete(now, id);
        Ok(now)
    }

    /// jffs2_garbage_collect_metadata: writes the node again. A symbolic link's target is read
    /// first.
    fn collect_metadata(&mut self, now: Ns, id: NodeId) -> Result<Ns> {
        let node = self.nodes.get(id);
        let is_link = self.file(node.ino).target.is_some();
        let now = if is_link { self.read_node(now, id, None)? } else { now };
        let bytes = node.role.parts().iter().sum();
        let (_, now) = self.reserve_space_gc(now, bytes, Summary::Inode)?;
        let version = self.next_version(node.ino);
        let file = self.file(node.ino);
        let size_bytes = file.fragments.end().unwrap_or(file.size_bytes);
        let (new, now) = self.write_dnode(now, Node { version, size_bytes, ..node }, None)?;
        self.mark_obsolete(now, id);
        self.file_mut(node.ino).metadata = Some(new);
        Ok(now)
    }

    /// jffs2_garbage_collect_pristine: copies the node unchanged, if it may be copied and fits.
    /// Returns whether it did.
    fn collect_pristine(&mut self, now: Ns, id: NodeId, node: &Node) -> Result<(bool, Ns)> {
        if node.state != State::Pristine {
            return Ok((false, now));
        }
        let bytes = node.total_bytes();
        let min = bytes.min(MIN_DATA_NODE_BYTES);
        let (room, now) = self.reserve_space_gc(now, min, Summary::AtMost(bytes))?;
        if room < bytes {
            return Ok((false, now));
        }
        let read = self.flash_read(now, node.flash_offset, bytes)?;
        // The kernel checks the checksums of the whole node.
        let now = read + Ns::from_ps(bytes.into(), self.mtd.costs().jffs2_byte_ps);
        let now = match self.write_copy(now, bytes) {
            Err(FsError::Io(at)) => {
                let (_, now) = self.reserve_space_gc(at, bytes, Summary::AtMost(bytes))?;
                self.write_copy(now, bytes)?
            }
            other => other?,
        };
        let summary = match node.role {
            Role::Dirent { name_bytes, .. } => Summary::Dirent(name_bytes.into()),
            _ => Summary::Inode,
        };
        let (new, now) = self.add_node(now, *node, summary)?;
        self.replace_reference(id, new);
        self.mark_obsolete(now, id);
        Ok((true, now))
    }

    /// jffs2_flash_write. On NOR jffs2_flash_direct_write adds to the summary after its write; for
    /// other nodes jffs2_flash_direct_writev does so before.
    fn write_copy(&mut self, now: Ns, bytes: u32) -> Result<Ns> {
        self.collector.allocates_last |= self.options.summary; // jffs2_sum_add_kvec
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        self.flash_write(now, to, &[&[(Cause::Collection, bytes)]], None)
    }

    /// The part of jffs2_garbage_collect_live for a node with fragments.
    fn collect_data(&mut self, now: Ns, id: NodeId, pages: &mut dyn PageCache) -> Result<Ns> {
        let node = self.nodes.get(id);
        let (moved, now) = self.collect_pristine(now, id, &node)?;
        if moved {
            return Ok(now);
        }
        let span = self
            .file(node.ino)
            .fragments
            .span(&self.nodes, id)
            .expect("a good node has a fragment");
        if span.start / PAGE_BYTES < (span.end - 1) / PAGE_BYTES {
            return self.collect_hole(now, id, span);
        }
        self.collect_dnode(now, node.ino, span, pages)
    }

    /// jffs2_garbage_collect_hole: a hole that is partly overwritten keeps its version.
    fn collect_hole(&mut self, mut now: Ns, id: NodeId, span: Range<u32>) -> Result<Ns> {
        let node = self.nodes.get(id);
        let Node { ino, fragments, flash_offset, .. } = node;
        if fragments > 1 {
            now = self.flash_read(now, flash_offset, RAW_INODE_BYTES)?;
        }
        let (_, now) = self.reserve_space_gc(now, RAW_INODE_BYTES, Summary::Inode)?;
        let version = if fragments == 1 { self.next_version(ino) } else { node.version };
        let size_bytes = self.file(ino).fragments.end().expect("it has fragments");
        let node = Node { version, size_bytes, ..node };
        if version == self.file(ino).highest_version {
            let (file_offset, file_bytes) = if fragments == 1 {
                (span.start, span.end - span.start)
            } else {
                (node.file_offset, node.file_bytes())
            };
            let node = Node { file_offset, role: Role::Hole { file_bytes }, ..node };
            let (new, now) = self.write_dnode(now, node, None)?;
            let now = self.add_fragment(now, ino, new)?;
            if let Some(metadata) = self.file_mut(ino).metadata.take() {
                self.mark_obsolete(now, metadata);
            }
            return Ok(now);
        }
        let (new, now) = self.write_dnode(now, node, None)?;
        self.nodes.set_state(new, State::Normal);
        self.replace_reference(id, new);
        self.mark_obsolete(now, id);
        Ok(now)
    }

    /// jffs2_garbage_collect_dnode: writes the node's part of its page again from the page cache,
    /// together with neighbours that are worth merging.
    fn collect_dnode(
        &mut self,
        mut now: Ns,
        ino: Ino,
        span: Range<u32>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let range = self.merged(ino, span.clone());
        let page = span.start / PAGE_BYTES;
        if pages.read_cache_page(ino, page) {
            now = self.read_range(now, ino, (page * PAGE_BYTES, PAGE_BYTES), None)?;
        }
        self.write_range(now, ino, range, span.end, None, pages)
    }

    /// The part of jffs2_garbage_collect_dnode that extends the range within the page. It always
    /// takes in whole fragments between; the first and last ones only if they lie in a dirty block.
    fn merged(&self, ino: Ino, span: Range<u32>) -> Range<u32> {
        if self.space.free_or_erasing_blocks() <= self.space.levels.merge_blocks {
            return span;
        }
        let fragments = &self.file(ino).fragments;
        let first = span.start - span.start % PAGE_BYTES;
        let last = first + PAGE_BYTES;
        let Range { mut start, mut end } = span;
        for below in fragments.below(start).take_while(|f| f.offset >= first) {
            if below.offset == first && !self.worth_merging(below) {
                break;
            }
            start = below.offset;
        }
        for above in fragments.from(end).take_while(|f| f.end() <= last) {
            if above.end() == last && !self.worth_merging(above) {
                break;
            }
            end = above.end();
        }
        start..end
    }

    /// Whether the fragment's node lies in the block being collected or in a dirty one.
    fn worth_merging(&self, fragment: &Fragment) -> bool {
        let Some(node) = fragment.node else { return false };
        let number = self.block_of(self.nodes.get(node).flash_offset);
        let books = &self.space.block(number).books;
        self.gc_block.is_some_and(|gc| gc.block == number)
            || is_dirty(books.dirty_bytes + books.wasted_bytes)
    }
}
