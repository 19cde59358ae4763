//! Scanning the flash at mount.
//!
//! Mirrors fs/jffs2/scan.c of Linux 6.1 (jffs2_scan_medium, jffs2_scan_eraseblock,
//! jffs2_scan_classify_jeb, jffs2_rotate_lists) and jffs2_sum_scan_sumnode of summary.c.
//!
//! Of each block the scan reads the cleanmarker, then the page in which a summary would end. If
//! there is one it reads the rest of the summary, else the first 256 bytes and then the whole
//! block. Nothing on NAND marks a node obsolete, so all nodes come back and are checked later.
//!
//! Left out: bad blocks, other byte orders, a buffer that is smaller than a block.
//!
//! Invariant: each block is filed once. The partly filled block with the most free space becomes
//! `next_block`.

use super::inode::File;
use super::layout::{
    is_dirty, pad, Summary, RAW_DIRENT_BYTES, RAW_INODE_BYTES, SUMMARY_FRAME_BYTES,
};
use super::node::{Node, NodeId, Role, State};
use super::space::List;
use super::wbuf::WriteBuffer;
use super::Jffs2;
use crate::fs::{FsError, Ino, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// DEFAULT_EMPTY_SCAN_SIZE: how much of a block without a summary is read first.
const EMPTY_SCAN_BYTES: u32 = 256;
/// NR_OOB_SCAN_PAGES: how many OOBs of an empty block are checked.
const OOB_SCAN_PAGES: u32 = 4;
/// struct jffs2_unknown_node: the part of a header with the node's length.
const UNKNOWN_NODE_BYTES: u32 = 12;

/// BLK_STATE_*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    AllErased,
    CleanMarker,
    Clean,
    PartlyDirty,
    AllDirty,
}

/// The part of a block in the scan's buffer.
struct Buffer {
    start: u32,
    end: u32,
    block_end: u32,
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_scan_medium. `torn` is a page that was being programmed when the power failed; its
    /// content is wrong.
    pub(super) fn scan_medium(&mut self, mut now: Ns, torn: Option<u32>) -> Result<Ns> {
        self.space.forget();
        (self.next_block, self.gc_block) = (None, None);
        self.wbuf = WriteBuffer::default();
        self.check_ino = 0;
        for file in &mut self.files {
            let File { is_directory, is_device, target, .. } = std::mem::take(file);
            *file = File { is_directory, is_device, target, ..File::default() };
        }
        self.files[0].links = 1;
        self.is_scanning = true;
        let mut erased_blocks = 0;
        for number in 0..self.mtd.blocks() {
            if self.mtd.is_bad(number) {
                continue; // BLK_STATE_BADBLOCK: on no list.
            }
            let (found, later) = self.scan_eraseblock(now, number, torn)?;
            now = later;
            self.file_scanned(number, found);
            erased_blocks += u32::from(found == Found::AllErased);
        }
        self.is_scanning = false;
        let total = self.space.total;
        let empty = self.space.len(List::Free) + erased_blocks + self.mtd.bad_blocks();
        let suspect = !self.space.is_empty(List::ErasePending) && empty != self.mtd.blocks();
        if suspect && total.used_bytes + total.unchecked_bytes == 0 {
            // "Cowardly refusing to erase blocks on filesystem with no valid JFFS2 nodes"
            return Err(FsError::Io(now));
        }
        let last = self.files.iter().rposition(|file| !file.nodes.is_empty());
        self.files.truncate(last.map_or(1, |last| last + 1));
        self.ready_next_block();
        Ok(now)
    }

    /// Prepares the block that is written next. Its dirty bytes count as wasted, and its write
    /// buffer begins at a page. Its summary continues from the entries in it, if that still fits.
    fn ready_next_block(&mut self) {
        let Some(number) = self.next_block else { return };
        self.space.dirt_to_waste(number);
        let skip = self.space.block(number).books.free_bytes % self.medium.unit_bytes;
        self.scan_dirty_space(number, skip);
    }

    /// Files a block on the list that its content calls for.
    fn file_scanned(&mut self, number: u32, found: Found) {
        let books = self.space.block(number).books;
        match found {
            Found::CleanMarker if books.dirty_bytes == 0 => {
                self.space.push_front(List::Free, number);
            }
            Found::AllErased | Found::CleanMarker | Found::AllDirty => {
                self.space.push_front(List::ErasePending, number);
                self.space.erasing_blocks += 1;
            }
            Found::Clean => self.space.push_front(List::Clean, number),
            Found::PartlyDirty => {
                let min_bytes = self.medium.unit_bytes.max(2 * RAW_INODE_BYTES);
                let free = |number: u32| self.space.block(number).books.free_bytes;
                let better = self.next_block.is_none_or(|next| free(next) < books.free_bytes);
                if books.free_bytes <= min_bytes || !better {
                    self.file_dirty(number);
                    return;
                }
                if let Some(other) = self.next_block.replace(number) {
                    self.file_dirty(other);
                }
                self.collect_summary(number);
            }
        }
    }

    /// jffs2_sum_move_collected.
    fn collect_summary(&mut self, number: u32) {
        self.summary_bytes = self.nodes_in(number).iter().map(|&id| self.summary_entry(id)).sum();
        let needed = pad(self.summary_bytes + SUMMARY_FRAME_BYTES);
        let room = needed <= self.space.block(number).books.free_bytes;
        self.has_summary = self.options.summary && room;
    }

    fn summary_entry(&self, id: NodeId) -> u32 {
        match self.nodes.get(id).role {
            Role::Dirent { name_bytes, .. } => Summary::Dirent(name_bytes.into()).bytes(),
            Role::CleanMarker | Role::Summary { .. } | Role::Padding { .. } => 0,
            Role::Xattr { .. } => Summary::Xattr.bytes(),
            Role::Xref => Summary::Xref.bytes(),
            _ => Summary::Inode.bytes(),
        }
    }

    /// file_dirty: gives up the free bytes of a block.
    fn file_dirty(&mut self, number: u32) {
        self.scan_dirty_space(number, self.space.block(number).books.free_bytes);
        self.space.waste_to_dirt(number);
        let very = self.space.is_very_dirty(self.space.block(number).books.dirty_bytes);
        self.space.push_front(if very { List::VeryDirty } else { List::Dirty }, number);
    }

    /// jffs2_scan_dirty_space.
    fn scan_dirty_space(&mut self, number: u32, bytes: u32) {
        if bytes > 0 {
            self.link_wasted(number, bytes);
            self.space.change(number, |books| {
                books.wasted_bytes -= bytes;
                books.dirty_bytes += bytes;
            });
        }
    }

    /// The nodes of a block, in order.
    pub(super) fn nodes_in(&self, number: u32) -> Vec<NodeId> {
        let first = self.space.block(number).first_node;
        let next = |&id: &NodeId| self.nodes.get(id).next_in_block;
        std::iter::successors(first, next).collect()
    }

    /// jffs2_scan_eraseblock.
    fn scan_eraseblock(&mut self, now: Ns, number: u32, torn: Option<u32>) -> Result<(Found, Ns)> {
        let nodes = self.nodes_in(number);
        let is_counted = self.space.is_counted(number);
        self.space.forget_nodes(number);
        let start = number * self.block_bytes;
        let programmed = start + self.mtd.programmed_bytes(number);
        let torn = torn.filter(|&torn| self.block_of(torn) == number);
        let readable = torn.unwrap_or(programmed);
        let mut now = now;
        if self.medium.has_wbuf {
            now = self.mtd.read_oob(now, u64::from(start), 1)?;
        }
        if self.options.summary {
            let (summarized, later) = self.scan_summary(now, start, readable, &nodes)?;
            now = later;
            if summarized {
                return Ok((self.classify(number), now));
            }
        }
        now = self.flash_read(now, start, EMPTY_SCAN_BYTES)?;
        if programmed == start {
            nodes.into_iter().for_each(|id| self.nodes.remove(id));
            if !self.medium.has_wbuf {
                return Ok((Found::AllErased, now));
            }
            now = self.mtd.read_oob(now, u64::from(start), OOB_SCAN_PAGES)?;
            // A block has no books from before its erase until its cleanmarker is written.
            let found = if is_counted { Found::CleanMarker } else { Found::AllErased };
            return Ok((found, now));
        }
        now = self.scan_nodes(now, start, readable, programmed, &nodes)?;
        self.space.waste_to_dirt(number);
        Ok((self.classify(number), now))
    }

    /// jffs2_sum_scan_sumnode, after the read that finds the summary.
    fn scan_summary(
        &mut self,
        now: Ns,
        start: u32,
        readable: u32,
        nodes: &[NodeId],
    ) -> Result<(bool, Ns)> {
        let end_bytes = self.medium.summary_end_bytes;
        let end = start + self.block_bytes;
        let now = self.flash_read(now, end - end_bytes, end_bytes)?;
        let last = nodes.last().map(|&id| self.nodes.get(id));
        let whole = |node: &Node| matches!(node.role, Role::Summary { .. }) && readable == end;
        let Some(summary) = last.filter(whole) else {
            return Ok((false, now));
        };
        let more = summary.total_bytes().saturating_sub(end_bytes);
        let now =
            if more > 0 { self.flash_read(now, end - summary.total_bytes(), more)? } else { now };
        if summary.is_damaged {
            return Ok((false, now)); // its sums are checked once it is read
        }
        for &id in nodes {
            let state = match self.nodes.get(id).role {
                Role::CleanMarker | Role::Summary { .. } => State::Normal,
                Role::Padding { .. } => State::Obsolete,
                _ => State::Unchecked,
            };
            self.link_scanned(now, id, state);
        }
        Ok((true, now))
    }

    /// The loop of jffs2_scan_eraseblock: nodes from the first to the last readable one, then the
    /// node that a power cut interrupted, if any, then erased flash.
    fn scan_nodes(
        &mut self,
        mut now: Ns,
        start: u32,
        readable: u32,
        programmed: u32,
        nodes: &[NodeId],
    ) -> Result<Ns> {
        let block_end = start + self.block_bytes;
        let mut buffer = Buffer { start, end: start + EMPTY_SCAN_BYTES, block_end };
        let mut at = start;
        let mut is_cut = readable < programmed;
        for &id in nodes {
            let visible = readable.saturating_sub(self.nodes.get(id).flash_offset);
            if visible < UNKNOWN_NODE_BYTES.min(self.nodes.get(id).total_bytes()) {
                self.nodes.remove(id);
                is_cut = true;
                continue;
            }
            now = self.scan_node(now, id, visible, &mut buffer)?;
            at += self.nodes.get(id).total_bytes();
        }
        // The kernel fills pages up. An image may end within one, whose rest is still erased.
        while is_cut && at < programmed {
            now = self.fetch(now, &mut buffer, at, UNKNOWN_NODE_BYTES)?;
            self.scan_dirty_space(self.block_of(start), 4);
            at += 4;
        }
        self.scan_empty(now, &mut buffer, at)
    }

    /// jffs2_scan_inode_node and jffs2_scan_dirent_node for a node of which `visible` bytes can be
    /// read. Without its whole header or name it is lost. Its data are not checked yet.
    fn scan_node(&mut self, now: Ns, id: NodeId, visible: u32, buffer: &mut Buffer) -> Result<Ns> {
        let Node { flash_offset: at, role, .. } = self.nodes.get(id);
        let total_bytes = self.nodes.get(id).total_bytes();
        let written_bytes = role.parts().iter().sum::<u32>();
        let now = self.fetch(now, buffer, at, UNKNOWN_NODE_BYTES)?;
        let (head, state) = match role {
            Role::Data { .. } | Role::Hole { .. } | Role::Metadata => {
                (RAW_INODE_BYTES, State::Unchecked)
            }
            Role::Dirent { name_bytes, .. } => {
                (RAW_DIRENT_BYTES + u32::from(name_bytes), self.nodes.get(id).dirent_state())
            }
            Role::CleanMarker => (0, State::Normal),
            Role::Xattr { .. } | Role::Xref => (total_bytes, State::Pristine),
            Role::Summary { .. } | Role::Padding { .. } => (0, State::Obsolete),
        };
        let now = self.fetch(now, buffer, at, head)?;
        self.nodes.change(id, |node| {
            node.is_damaged |= written_bytes > visible;
            if visible < head {
                node.role = Role::Padding { total_bytes };
            }
        });
        let state = if visible < head { State::Obsolete } else { state };
        self.link_scanned(now, id, state);
        Ok(now)
    }

    /// Makes `bytes` at `at` available: they are in the buffer, or the rest of the block is read,
    /// on NOR a part of it.
    fn fetch(&mut self, now: Ns, buffer: &mut Buffer, at: u32, bytes: u32) -> Result<Ns> {
        if buffer.end >= at + bytes || at + UNKNOWN_NODE_BYTES > buffer.block_end {
            return Ok(now);
        }
        buffer.start = at;
        buffer.end = buffer.block_end.min(at + self.medium.scan_bytes);
        self.flash_read(now, at, buffer.end - at)
    }

    /// Skips erased flash after the last node. If the buffer has just been filled, the scan checks
    /// a few bytes of it, then reads the rest again.
    fn scan_empty(&mut self, now: Ns, buffer: &mut Buffer, empty: u32) -> Result<Ns> {
        if empty + UNKNOWN_NODE_BYTES > buffer.block_end {
            return Ok(now);
        }
        let now = self.fetch(now, buffer, empty, UNKNOWN_NODE_BYTES)?;
        let seen = (buffer.start + EMPTY_SCAN_BYTES / 8).min(buffer.end);
        let number = self.block_of(empty);
        let is_new = self.medium.marker_bytes > 0 && self.is_only_marker(number);
        if is_new && buffer.start == number * self.block_bytes {
            return Ok(now); // Found::CleanMarker without a look at the rest
        }
        let mut at = seen.max(empty + 4);
        let mut now = now;
        while at < buffer.block_end {
            let bytes = self.medium.scan_bytes.min(buffer.block_end - at);
            now = self.flash_read(now, at, bytes)?;
            at += bytes;
        }
        Ok(now)
    }

    /// jffs2_link_node_ref of a node that was found.
    fn link_scanned(&mut self, now: Ns, id: NodeId, state: State) {
        let node = self.nodes.change(id, |node| {
            (node.state, node.fragments, node.next_in_block) = (state, 0, None);
        });
        self.link(id, &node);
        let Node { ino, role, version, .. } = node;
        if role.is_bare() {
            return;
        }
        self.pseudo_random = self.pseudo_random.wrapping_add(version);
        self.make_ino_cache(ino);
        self.files[ino.0 as usize - 1].nodes.push(&mut self.nodes, id);
        if let Role::Dirent { .. } = role {
            self.add_entry(now, id);
        }
    }

    /// jffs2_scan_make_ino_cache.
    pub(super) fn make_ino_cache(&mut self, ino: Ino) {
        let index = ino.0 as usize - 1;
        if index >= self.files.len() {
            self.files.resize_with(index + 1, File::default);
        }
    }

    /// Whether nothing else than a clean marker was found in a block of NOR.
    fn is_only_marker(&self, number: u32) -> bool {
        let block = self.space.block(number);
        let is_first_last = block.first_node.is_some() && block.first_node == block.last_node;
        is_first_last && block.books.dirty_bytes == 0 && self.has_only_marker(number).is_some()
    }

    /// jffs2_scan_classify_jeb.
    fn classify(&mut self, number: u32) -> Found {
        let block_bytes = self.block_bytes;
        let books = self.space.block(number).books;
        let good = books.used_bytes + books.unchecked_bytes;
        if self.is_only_marker(number) {
            return Found::CleanMarker;
        }
        if !is_dirty(block_bytes - good) {
            self.space.dirt_to_waste(number);
            return Found::Clean;
        }
        match (good, books.dirty_bytes) {
            (0, 0) => Found::CleanMarker,
            (0, _) => Found::AllDirty,
            _ => Found::PartlyDirty,
        }
    }

    /// jffs2_rotate_lists: rotates the lists by the sum of all nodes' versions.
    pub(super) fn rotate_lists(&mut self) {
        let random = self.pseudo_random;
        for list in [List::Clean, List::VeryDirty, List::Dirty, List::ErasePending, List::Free] {
            let blocks = self.space.len(list);
            if blocks > 0 {
                self.space.rotate(list, random % blocks + 1);
            }
        }
    }
}
