//! Writing nodes.
//!
//! Mirrors fs/jffs2/write.c of Linux 6.1 (jffs2_write_dnode, jffs2_write_dirent,
//! jffs2_write_inode_range). A node whose program failed is written once more at another place.
//! Left out, and refused: collecting to make space for that.
//!
//! Invariant: nodes are written only into reserved space, at the end of `next_block`.

use super::compr::Piece;
use super::layout::{Summary, RAW_INODE_BYTES};
use super::node::{Node, NodeId, Role, State};
use super::nodemgmt::{Priority, MIN_DATA_NODE_BYTES};
use super::Jffs2;
use crate::causes::Cause;
use crate::content::Contents;
use crate::fs::{FsError, Ino, PageCache, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::ops::Range;

impl<D: NandDriver> Jffs2<D> {
    /// The version of the next node of an inode (`++f->highest_version`).
    pub(super) fn next_version(&mut self, ino: Ino) -> u32 {
        let version = &mut self.file_mut(ino).highest_version;
        *version += 1;
        *version
    }

    /// Writes one node into reserved space: header and payload are the kernel's two vectors.
    fn write_node(&mut self, now: Ns, node: Node, writer: Option<Ino>) -> Result<(NodeId, Ns)> {
        let now = now + self.mtd.costs().jffs2_add_node_ns;
        let parts = node.role.parts();
        let summary = match node.role {
            Role::Data { .. } | Role::Hole { .. } | Role::Metadata => Summary::Inode,
            Role::Dirent { .. } => Summary::Dirent(parts[1]),
            _ => unreachable!("written elsewhere"),
        };
        let causes = match (writer, node.role) {
            (None, _) => [Cause::Collection; 2],
            (Some(_), Role::Data { .. }) => [Cause::Metadata, Cause::Data],
            (Some(_), _) => [Cause::Metadata; 2],
        };
        let caused = [[(causes[0], parts[0])], [(causes[1], parts[1])]];
        let written = match self.write_parts(now, &caused, writer) {
            Err(FsError::Io(at)) if !self.is_tried_by_caller(node, writer) => {
                let now = self.reserve_again(at, node.total_bytes(), summary, writer)?;
                self.write_parts(now, &caused, writer)
            }
            other => other,
        };
        match written {
            Ok(now) => self.add_node(now, node, summary),
            Err(error) if error.failed_at().is_some() => Err(error),
            Err(error) => {
                // If the power fails within a node, the next mount may find its header.
                let block = self.next_block.expect("space was reserved");
                let id = self.link_node(block, node);
                self.files[node.ino.0 as usize - 1].nodes.push(&mut self.nodes, id);
                Err(error)
            }
        }
    }

    /// Whether the caller writes a node whose program failed again: [`Self::write_range`] does, for
    /// the program's data.
    #[cold]
    fn is_tried_by_caller(&self, node: Node, writer: Option<Ino>) -> bool {
        let one = self.file(node.ino).has_one_node();
        writer.is_some() && !one && matches!(node.role, Role::Data { .. })
    }

    fn write_parts(
        &mut self,
        now: Ns,
        [header, payload]: &[[(Cause, u32); 1]; 2],
        writer: Option<Ino>,
    ) -> Result<Ns> {
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        self.flash_write(now, to, &[header, payload], writer)
    }

    /// Reserves space for a node whose program failed.
    fn reserve_again(
        &mut self,
        mut now: Ns,
        bytes: u32,
        summary: Summary,
        writer: Option<Ino>,
    ) -> Result<Ns> {
        if writer.is_some() {
            now = self.complete_reservation(now)?;
            if self.space.free_or_erasing_blocks() < self.space.levels.write_blocks {
                return Err(FsError::NotModelled("JFFS2 that collects before it writes again"));
            }
        }
        Ok(self.reserve_space_gc(now, bytes, summary)?.1)
    }

    /// jffs2_write_dnode: a node that provides its whole page, or all up to the end of the file, is
    /// pristine.
    pub(super) fn write_dnode(
        &mut self,
        now: Ns,
        node: Node,
        writer: Option<Ino>,
    ) -> Result<(NodeId, Ns)> {
        let to_the_end = node.file_offset % PAGE_BYTES == 0 && node.file_end() == node.size_bytes;
        let whole = node.file_bytes() >= PAGE_BYTES || to_the_end;
        let state = if whole { State::Pristine } else { State::Normal };
        self.write_node(now, Node { state, ..node }, writer)
    }

    /// jffs2_write_dirent. A deletion dirent is not pristine: the collector checks whether it is
    /// still needed.
    pub(super) fn write_dirent(
        &mut self,
        now: Ns,
        node: Node,
        writer: Option<Ino>,
    ) -> Result<(NodeId, Ns)> {
        self.write_node(now, Node { state: node.dirent_state(), ..node }, writer)
    }

    /// jffs2_write_inode_range: writes one node for the rest of the page, or as much of it as fits
    /// into the block. Garbage collection, for which `writer` is none, stops at `enough`; for
    /// others that is the end.
    pub(super) fn write_range(
        &mut self,
        mut now: Ns,
        ino: Ino,
        range: Range<u32>,
        enough: u32,
        writer: Option<Ino>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let mut offset = range.start;
        let mut is_retried = false;
        while offset < enough {
            let (room, later) = match writer {
                Some(_) => {
                    let (min, summary) = (MIN_DATA_NODE_BYTES, Summary::Inode);
                    self.reserve_space(now, min, Priority::Normal, summary, pages)?
                }
                None => self.reserve_space_gc(now, MIN_DATA_NODE_BYTES, Summary::Inode)?,
            };
            let (left, contents) = (offset..range.end, pages.contents(ino));
            let room = room - RAW_INODE_BYTES;
            let costs = self.mtd.costs();
            let (piece, priced) = self.compression.compress(contents, &left, room, costs);
            let later = later + self.mtd.charge(priced);
            let end = offset + piece.file_bytes;
            let written = self.write_piece(later, ino, Some(piece), offset..end, writer, pages);
            (is_retried, now) = match written {
                Err(FsError::Io(at)) if writer.is_some() && !is_retried => (true, at),
                other => (false, other?),
            };
            if writer.is_some() {
                now = self.complete_reservation(now)?;
            }
            if !is_retried {
                offset = end;
            }
        }
        Ok(now)
    }

    /// Writes a node for `range` of a file and updates the fragments. The file is at least that
    /// long afterwards. A hole has no data.
    pub(super) fn write_piece(
        &mut self,
        now: Ns,
        ino: Ino,
        data: Option<Piece>,
        range: Range<u32>,
        writer: Option<Ino>,
        pages: &dyn PageCache,
    ) -> Result<Ns> {
        let file_bytes = range.end - range.start;
        let of_a_page = |bytes: u32| u16::try_from(bytes).expect("at most a page of data");
        let role = match data {
            Some(Piece { node_bytes, packed_by, .. }) => Role::Data {
                data_bytes: of_a_page(node_bytes),
                file_bytes: of_a_page(file_bytes),
                packed_by,
            },
            None => Role::Hole { file_bytes },
        };
        let size_bytes = self.file(ino).size_bytes.max(range.end);
        let version = self.next_version(ino);
        let node = Node { file_offset: range.start, size_bytes, ..Node::new(ino, role, version) };
        if let Some(stored) = self.stored.as_mut().filter(|_| data.is_some()) {
            let mut bytes = Contents::default();
            bytes.copy_from(pages.contents(ino), node.file_offset.into(), node.file_end().into());
            stored.insert((ino, version), bytes);
        }
        let (id, now) = self.write_dnode(now, node, writer)?;
        self.file_mut(ino).size_bytes = size_bytes;
        // jffs2_alloc_node_frag allocates memory with c->alloc_sem held, and may reschedule.
        let now = self.might_resched(now, None)?;
        let now = self.add_fragment(now, ino, id)?;
        if let Some(metadata) = self.file_mut(ino).metadata.take() {
            self.mark_obsolete(now, metadata);
        }
        Ok(now)
    }

    /// jffs2_add_full_dnode_to_inode: nodes that the new one covers whole become obsolete.
    pub(super) fn add_fragment(&mut self, mut now: Ns, ino: Ino, id: NodeId) -> Result<Ns> {
        self.collector.allocates_last = true; // jffs2_alloc_node_frag
        let mut covered = std::mem::take(&mut self.covered);
        self.files[ino.0 as usize - 1].fragments.add(&mut self.nodes, id, &mut covered);
        for id in covered.drain(..) {
            self.mark_obsolete(now, id);
            now = self.write_marks(now)?;
        }
        self.covered = covered;
        Ok(now)
    }
}
