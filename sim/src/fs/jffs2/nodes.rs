//! Nodes and fragments: what lies on flash, and which part of a file each node still provides.
//!
//! Mirrors fs/jffs2/nodelist.[ch] (struct jffs2_raw_node_ref, jffs2_full_dnode, jffs2_node_frag)
//! of Linux 6.1. The fragment tree is a vector sorted by offset: files are read far more often than
//! they are fragmented.
//!
//! Invariants:
//! 1. The fragments of a file do not overlap and are sorted by offset.
//! 2. A node is obsolete exactly when no fragment, dirent or inode refers to it.

use crate::fs::{Ino, PAGE_BYTES};
use std::ops::Range;

/// Index of a node in [`Nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(u32);

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// File data; `data_bytes` of it follow the header.
    Data { data_bytes: u32 },
    /// A data node for a hole: a header without data (JFFS2_COMPR_ZERO).
    Hole,
    /// An inode without data, superseded by its first data node (`f->metadata`).
    Metadata,
    /// A directory entry; the name has so many bytes.
    Dirent { name_bytes: u32 },
    /// The summary at the end of a block, or padding: belongs to no inode.
    NoInode,
}

/// REF_PRISTINE, REF_NORMAL, REF_OBSOLETE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// May be copied as it is by garbage collection.
    Pristine,
    /// Has to be rewritten through its page.
    Normal,
    /// Says nothing any more.
    Obsolete,
}

/// A node on flash.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Where, from the start of the partition.
    pub flash_offset: u32,
    /// With header and padding to four bytes.
    pub total_bytes: u32,
    /// The inode it belongs to.
    pub ino: Ino,
    /// What it is for.
    pub role: Role,
    /// Whether it is still good.
    pub state: State,
    /// The next node in the same block.
    pub next_in_block: Option<NodeId>,
    /// Fragments that refer to it.
    pub fragments: u32,
}

/// All nodes ever written since the mount.
#[derive(Clone, Debug, Default)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    /// Adds a node.
    pub fn push(&mut self, node: Node) -> NodeId {
        let id = u32::try_from(self.0.len()).expect("fewer than 2^32 nodes");
        self.0.push(node);
        NodeId(id)
    }

    /// The node.
    #[inline]
    pub fn get(&self, id: NodeId) -> &Node {
        &self.0[id.0 as usize]
    }

    /// The node, to change.
    pub fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.0[id.0 as usize]
    }
}

/// struct jffs2_node_frag: a run of file bytes provided by one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First byte of the file.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// Who provides them.
    pub node: NodeId,
}

impl Fragment {
    /// The byte after its last.
    pub fn end(&self) -> u32 {
        self.offset + self.bytes
    }
}

/// The fragment tree of a file (`f->fragtree`).
#[derive(Clone, Debug, Default)]
pub struct Fragments(Vec<Fragment>);

impl Fragments {
    /// The fragments that touch `start..end`, in order.
    #[inline]
    pub fn overlapping(&self, start: u32, end: u32) -> &[Fragment] {
        let first = self.0.partition_point(|f| f.end() <= start);
        let count = self.0[first..].iter().take_while(|f| f.offset < end).count();
        &self.0[first..first + count]
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Fragment> {
        self.0.iter()
    }

    /// All but the first and the last.
    pub fn inner(&self) -> &[Fragment] {
        self.0.get(1..self.0.len().saturating_sub(1)).unwrap_or(&[])
    }

    /// jffs2_add_full_dnode_to_inode: the new node provides its bytes from now on. Returns the nodes
    /// that lost a fragment and those that got one more by being split, each as (node, change).
    pub fn insert(&mut self, new: Fragment) -> Vec<(NodeId, i32)> {
        let first = self.0.partition_point(|f| f.end() <= new.offset);
        let count = self.0[first..].iter().take_while(|f| f.offset < new.end()).count();
        let mut changes = Vec::new();
        let mut replacement = Vec::with_capacity(3);
        for old in &self.0[first..first + count] {
            let mut left = -1;
            if old.offset < new.offset {
                replacement.push(Fragment { bytes: new.offset - old.offset, ..*old });
                left += 1;
            }
            if old.end() > new.end() {
                left += 1;
            }
            changes.push((old.node, left));
        }
        replacement.push(new);
        if let Some(last) = self.0[first..first + count].last().filter(|f| f.end() > new.end()) {
            let bytes = last.end() - new.end();
            replacement.push(Fragment { offset: new.end(), bytes, node: last.node });
        }
        self.0.splice(first..first + count, replacement);
        changes
    }

    /// The nodes that jffs2_add_full_dnode_to_inode marks REF_NORMAL beside a fragment just inserted,
    /// and its own: a neighbour in the page it begins or ends in the middle of.
    pub fn sharing_pages_with(&self, new: Fragment) -> impl Iterator<Item = NodeId> {
        let at = self.0.partition_point(|f| f.offset < new.offset);
        let before = at.checked_sub(1).map(|before| self.0[before].node);
        let before = before.filter(|_| new.offset % PAGE_BYTES != 0);
        let after = self.0.get(at + 1).map(|after| after.node);
        let after = after.filter(|_| new.end() % PAGE_BYTES != 0);
        let own = before.or(after).map(|_| new.node);
        [before, own, after].into_iter().flatten()
    }

    /// Where the fragments of a node begin and end.
    pub fn span(&self, node: NodeId) -> Option<Range<u32>> {
        let first = self.0.iter().find(|f| f.node == node)?;
        let last = self.0.iter().rfind(|f| f.node == node)?;
        Some(first.offset..last.end())
    }

    /// The fragments just below `offset`, downward.
    pub fn below(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.0[..self.0.partition_point(|f| f.offset < offset)].iter().rev()
    }

    /// The fragments from `offset` on.
    pub fn from(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.0[self.0.partition_point(|f| f.offset < offset)..].iter()
    }

    /// A node was copied as it is: the fragments follow it.
    pub fn move_node(&mut self, from: NodeId, to: NodeId) {
        for fragment in self.0.iter_mut().filter(|f| f.node == from) {
            fragment.node = to;
        }
    }
}
