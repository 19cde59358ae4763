//! What JFFS2 does by the kind of flash: NAND, or NOR, which writes single bytes.
//!
//! Mirrors jffs2_is_writebuffered, jffs2_can_mark_obsolete and jffs2_cleanmarker_oob of
//! fs/jffs2/os-linux.h, jffs2_flash_direct_writev of writev.c and the end of
//! jffs2_mark_node_obsolete of nodemgmt.c (Linux 6.1), built with CONFIG_JFFS2_FS_WRITEBUFFER.
//!
//! On NOR there is no write buffer: each vector of a node is written at once. The clean marker is a
//! node at the start of its block. A kernel without CONFIG_JFFS2_SUMMARY clears a bit of a node's
//! type when the node becomes obsolete; one with it does not, because the summary of the block
//! would still have the node.
//!
//! Left out: flash of other kinds (DataFlash, UBI volumes, NOR with ECC).
//!
//! Invariant: nodes are in `unmarked` only between the change in memory and the next call into MTD
//! or the end of the reservation.

use super::call::Call;
use super::layout::{CLEANMARKER_BYTES, CLEANMARKER_NODE_BYTES, SUMMARY_MARKER_BYTES};
use super::node::{NodeId, Role, State};
use super::Jffs2;
use crate::causes::{Cause, Causes};
use crate::flash::Done;
use crate::fs::{Result, PAGE_BYTES};
use crate::mtd::{Mtd, NandDriver};
use crate::units::Ns;

/// sizeof(struct jffs2_unknown_node): what is read and written to mark a node.
const MARK_BYTES: u32 = 12;

/// The kind of flash, and what the kernel does about it.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// jffs2_is_writebuffered.
    pub has_wbuf: bool,
    /// jffs2_can_mark_obsolete.
    pub marks_obsolete: bool,
    /// c->wbuf_pagesize; 1 without a write buffer.
    pub unit_bytes: u32,
    /// The part of a block that a scan reads at a time.
    pub scan_bytes: u32,
    /// What a scan reads first to find a summary.
    pub summary_end_bytes: u32,
    /// PAD(c->cleanmarker_size) of a marker in the block; 0 of one in the spare area.
    pub marker_bytes: u32,
}

impl Medium {
    /// NAND of these sizes.
    fn nand(page_bytes: u32, block_bytes: u32) -> Medium {
        Medium {
            has_wbuf: true,
            marks_obsolete: false,
            unit_bytes: page_bytes,
            scan_bytes: block_bytes,
            summary_end_bytes: page_bytes,
            marker_bytes: 0,
        }
    }

    /// The medium of a partition, for a kernel with or without CONFIG_JFFS2_SUMMARY.
    pub fn of<D: NandDriver>(mtd: &Mtd<D>, has_summary: bool) -> Medium {
        let (page_bytes, block_bytes) = (mtd.page_bytes(), mtd.block_bytes());
        if !mtd.is_nor() {
            return Medium::nand(page_bytes, block_bytes);
        }
        Medium {
            has_wbuf: false,
            marks_obsolete: !has_summary,
            unit_bytes: 1,
            scan_bytes: PAGE_BYTES.min(block_bytes),
            summary_end_bytes: SUMMARY_MARKER_BYTES,
            marker_bytes: CLEANMARKER_NODE_BYTES,
        }
    }

    /// Writes the clean marker of each good block from `first` on, as flash_erase -j does.
    pub fn mark_clean<D: NandDriver>(
        &self,
        mtd: &mut Mtd<D>,
        mut now: Ns,
        first: u32,
    ) -> Result<Ns> {
        for block in first..mtd.blocks() {
            if !mtd.is_bad(block) {
                now = self.mark_block(mtd, now, block)?;
            }
        }
        Ok(now)
    }

    /// Writes the clean marker of a block.
    pub fn mark_block<D: NandDriver>(&self, mtd: &mut Mtd<D>, now: Ns, block: u32) -> Done {
        let offset = u64::from(block) * u64::from(mtd.block_bytes());
        match self.marker_bytes {
            0 => mtd.write_oob(now, offset, CLEANMARKER_BYTES),
            marker_bytes => mtd.write(now, offset, marker_bytes),
        }
    }
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_flash_direct_writev: mtd_writev writes vector after vector.
    pub(super) fn write_direct(
        &mut self,
        mut now: Ns,
        to: u32,
        vectors: &[&[(Cause, u32)]],
    ) -> Result<Ns> {
        let mut offset = to;
        for vector in vectors {
            let mut causes = Causes::default();
            vector.iter().for_each(|&(cause, bytes)| causes.add(Causes::of(cause, bytes)));
            let bytes = vector.iter().map(|(_, bytes)| bytes).sum();
            if bytes > 0 {
                now = self.call_with(now, Call::Write { offset, bytes, causes }, None)??;
            }
            offset += bytes;
        }
        Ok(now)
    }

    /// A free block has its clean marker, which is its only node.
    pub(super) fn link_marker(&mut self, block: u32) {
        if self.medium.marker_bytes > 0 && !self.mtd.is_bad(block) {
            self.link_bare(block, Role::CleanMarker, State::Normal);
        }
    }

    /// Whether the only valid node of a block is its clean marker.
    pub(super) fn has_only_marker(&self, block: u32) -> Option<NodeId> {
        let state = self.space.block(block);
        let first = state.first_node?;
        let node = self.nodes.get(first);
        let is_marker = node.role == Role::CleanMarker && node.state != State::Obsolete;
        (is_marker && state.books.used_bytes == self.medium.marker_bytes).then_some(first)
    }

    /// Bytes of clean markers of blocks that have nothing else.
    pub(super) fn markers_bytes(&self) -> u32 {
        let blocks = (0..self.mtd.blocks()).filter(|&block| self.has_only_marker(block).is_some());
        blocks.count() as u32 * self.medium.marker_bytes
    }

    /// The end of jffs2_do_reserve_space: the marker of a block that is written becomes obsolete.
    pub(super) fn use_up_marker(&mut self, now: Ns, block: u32) -> Result<Ns> {
        if self.medium.marker_bytes == 0 {
            return Ok(now);
        }
        let Some(marker) = self.has_only_marker(block) else { return Ok(now) };
        self.mark_obsolete(now, marker);
        self.write_marks(now)
    }

    /// A node became obsolete. It is on its inode's list no more, and will be marked on flash.
    pub(super) fn mark_on_flash(&mut self, id: NodeId) {
        if !self.medium.marks_obsolete || self.is_scanning || self.is_building {
            return;
        }
        let node = self.nodes.get(id);
        if !node.role.is_bare() {
            self.files[node.ino.0 as usize - 1].nodes.remove(&mut self.nodes, id);
        }
        let total_bytes = node.total_bytes();
        self.nodes.change(id, |node| {
            (node.role, node.in_inode) = (Role::Padding { total_bytes }, Default::default());
        });
        self.unmarked.push_back(node.flash_offset);
    }

    /// The end of jffs2_mark_node_obsolete of each node that is not marked yet: reads the header,
    /// and writes it with the bit cleared.
    pub(super) fn write_marks(&mut self, mut now: Ns) -> Result<Ns> {
        while let Some(offset) = self.unmarked.pop_front() {
            let causes = Causes::of(Cause::Metadata, MARK_BYTES);
            for call in [
                Call::Read { offset, bytes: MARK_BYTES },
                Call::Write { offset, bytes: MARK_BYTES, causes },
            ] {
                now = self.call_at_once(now, call, None)??;
            }
        }
        Ok(now)
    }
}
