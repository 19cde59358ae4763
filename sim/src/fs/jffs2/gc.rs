//! Garbage collection, one node a pass.
//!
//! Mirrors fs/jffs2/gc.c of Linux 6.1 (jffs2_find_gc_block, jffs2_garbage_collect_pass,
//! jffs2_garbage_collect_pristine, _dirent, _dnode, _metadata). Here it serves fsync, which moves
//! nodes to fill the write buffer's page rather than pad it. Left out: merging neighbours while
//! moving, the background thread, erasing what was emptied.

use super::layout::{RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use super::nodemgmt::{Summary, MIN_DATA_NODE_BYTES};
use super::nodes::{Fragment, Node, NodeId, Role, State};
use super::Jffs2;
use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::units::Ns;

/// The tick by which jffs2_find_gc_block throws its dice (`jiffies % 128`): HZ is 250 on the
/// kernels that are modelled.
const JIFFY_NS: u64 = 4_000_000;

/// c->gcblock and its gc_node.
#[derive(Clone, Copy, Debug)]
pub struct GcBlock {
    /// The block being emptied.
    pub block: u32,
    /// The node to move next.
    pub node: Option<NodeId>,
}

impl<F: Flash> Jffs2<F> {
    /// jffs2_garbage_collect_pass: none when there is no block to collect.
    pub(super) fn garbage_collect_pass(&mut self, now: Ns) -> Result<Option<Ns>> {
        let Some(gc) = self.gc_block.or_else(|| self.find_gc_block(now)) else {
            return Ok(None);
        };
        let mut id = gc.node;
        while let Some(node) = id.filter(|&id| self.nodes.get(id).state == State::Obsolete) {
            id = self.nodes.get(node).next_in_block;
        }
        let id = id.expect("a block that is collected has a good node");
        self.gc_block = Some(GcBlock { node: Some(id), ..gc });
        let now = self.collect(now, id)?;
        let emptied = self.blocks[gc.block as usize].used_bytes == 0;
        if emptied {
            self.lists.erase_pending.push_back(gc.block);
            self.gc_block = None;
        }
        Ok(Some(now))
    }

    /// jffs2_find_gc_block.
    fn find_gc_block(&mut self, now: Ns) -> Option<GcBlock> {
        let dice = now.0 / JIFFY_NS % 128;
        let lists = &mut self.lists;
        let list = if dice < 110 && !lists.very_dirty.is_empty() {
            &mut lists.very_dirty
        } else if dice < 126 && !lists.dirty.is_empty() {
            &mut lists.dirty
        } else if !lists.clean.is_empty() {
            &mut lists.clean
        } else if !lists.dirty.is_empty() {
            &mut lists.dirty
        } else {
            &mut lists.very_dirty
        };
        let number = list.pop_front()?;
        let block = &mut self.blocks[number as usize];
        block.dirty_bytes += block.wasted_bytes;
        block.wasted_bytes = 0;
        let gc = GcBlock { block: number, node: block.first_node };
        self.gc_block = Some(gc);
        Some(gc)
    }

    fn collect(&mut self, now: Ns, id: NodeId) -> Result<Ns> {
        let node = *self.nodes.get(id);
        match node.role {
            Role::NoInode => {
                self.mark_obsolete(id);
                Ok(now)
            }
            Role::Dirent { name_bytes } => {
                let bytes = RAW_DIRENT_BYTES + name_bytes;
                self.write_again(now, id, bytes, Summary::Dirent(name_bytes), State::Pristine)
            }
            Role::Metadata => {
                self.write_again(now, id, RAW_INODE_BYTES, Summary::Inode, State::Normal)
            }
            Role::Data { .. } | Role::Hole => self.collect_data(now, id, &node),
        }
    }

    /// jffs2_garbage_collect_dirent and _metadata: written anew from memory, without reading.
    fn write_again(
        &mut self,
        now: Ns,
        id: NodeId,
        bytes: u32,
        summary: Summary,
        state: State,
    ) -> Result<Ns> {
        let Node { ino, role, .. } = *self.nodes.get(id);
        let (_, now) = self.reserve_space_gc(now, bytes, summary)?;
        let (new, now) = self.write_node(now, ino, role, state, None);
        self.replace_reference(id, new);
        self.mark_obsolete(id);
        Ok(now)
    }

    fn collect_data(&mut self, now: Ns, id: NodeId, node: &Node) -> Result<Ns> {
        let mut now = now;
        if node.state == State::Pristine {
            let min = node.total_bytes.min(MIN_DATA_NODE_BYTES);
            let summary = Summary::AtMost(node.total_bytes);
            let (room, later) = self.reserve_space_gc(now, min, summary)?;
            now = later;
            if room >= node.total_bytes {
                return Ok(self.move_pristine(now, id, node));
            }
        }
        if node.role == Role::Hole {
            return Err(FsError::NotModelled("jffs2 collecting a hole that does not fit"));
        }
        let file = self.file(node.ino);
        let first = file.fragments.iter().find(|f| f.node == id);
        let first = *first.expect("a good data node has a fragment");
        self.rewrite_fragment(now, first)
    }

    /// jffs2_garbage_collect_pristine: reads the node as it is and writes it again.
    fn move_pristine(&mut self, now: Ns, id: NodeId, node: &Node) -> Ns {
        let now = self.flash_read(now, node.flash_offset, node.total_bytes);
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        let now = self.flash_write(now, to, &[node.total_bytes], None);
        let (new, now) = self.add_node(
            now,
            node.total_bytes,
            node.ino,
            node.role,
            State::Pristine,
            Summary::Inode,
        );
        self.replace_reference(id, new);
        self.mark_obsolete(id);
        now
    }

    /// jffs2_garbage_collect_dnode: reads the page and writes the fragment's bytes anew.
    fn rewrite_fragment(&mut self, now: Ns, fragment: Fragment) -> Result<Ns> {
        let ino = self.nodes.get(fragment.node).ino;
        let page = fragment.offset / crate::fs::PAGE_BYTES;
        let now = self.read_range(now, ino, page * crate::fs::PAGE_BYTES, crate::fs::PAGE_BYTES);
        self.write_range(now, ino, fragment.offset, fragment.bytes, None)
    }
}
