//! Fragments: which node provides which bytes of a file.
//!
//! Mirrors struct jffs2_node_frag of fs/jffs2/nodelist.h and the fragment tree of nodelist.c
//! (jffs2_add_full_dnode_to_inode, jffs2_add_frag_to_fragtree, jffs2_truncate_fragtree,
//! jffs2_kill_fragtree) of Linux 6.1. Searches use a sorted list. The kernel's red-black tree is
//! kept beside it for its shape, which decides the order in which a deleted file's nodes become
//! obsolete.
//!
//! Invariant: the fragments of a file do not overlap, and leave no gap from the first to the last.

use super::node::{NodeId, State};
use super::nodelist::Nodes;
use super::rbtree::{Place, RbTree};
use crate::collections::sorted::{Position, Sorted, Start};
use crate::fs::PAGE_BYTES;
use std::ops::Range;

/// struct jffs2_node_frag: a run of a file's bytes from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset in the file.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// The node; none for a gap while a file's fragments are being built.
    pub node: Option<NodeId>,
}

impl Fragment {
    /// The offset after its last byte.
    pub fn end(&self) -> u32 {
        self.offset + self.bytes
    }
}

/// A fragment, and its place in the kernel's tree.
#[derive(Clone, Copy, Debug)]
struct Placed {
    fragment: Fragment,
    place: Place,
}

impl Start for Placed {
    #[inline]
    fn start(&self) -> u64 {
        self.fragment.offset.into()
    }
}

/// The fragment tree of a file (`f->fragtree`).
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    list: Sorted<Placed>,
    tree: RbTree<()>,
}

impl Fragments {
    /// The fragments that touch `start..end`, in order.
    #[inline]
    pub fn overlapping(&self, start: u32, end: u32) -> impl Iterator<Item = &Fragment> {
        let this = self.list.last_up_to(start.into());
        let first = this.filter(|&this| self.get(this).end() > start);
        let rest = self.list.iter_after(this).map(|placed| &placed.fragment);
        let all = first.map(|first| self.get(first)).into_iter().chain(rest);
        all.take_while(move |fragment| fragment.offset < end)
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    fn get(&self, at: Position) -> &Fragment {
        &self.list.get(at).fragment
    }

    /// The last fragment that begins before `offset`.
    fn last_before(&self, offset: u32) -> Option<Position> {
        self.list.last_up_to(u64::from(offset.checked_sub(1)?))
    }

    /// The end of the last fragment (frag_last).
    pub fn end(&self) -> Option<u32> {
        self.list.last().map(|last| self.get(last).end())
    }

    /// jffs2_add_full_dnode_to_inode: the node provides its bytes from now on. Nodes without a
    /// fragment left are added to `obsolete`.
    pub fn add(&mut self, nodes: &mut Nodes, id: NodeId, obsolete: &mut Vec<NodeId>) {
        nodes.set_fragments(id, 1);
        let node = nodes.get(id);
        let (offset, bytes) = (node.file_offset, node.file_bytes());
        let new = Fragment { offset, bytes, node: Some(id) };
        let at = self.insert(nodes, new, obsolete);
        if new.offset % PAGE_BYTES != 0 {
            let before = self.list.before(at).expect("a fragment that does not begin the file");
            nodes.mark_normal(new.node);
            nodes.mark_normal(self.get(before).node);
        }
        if new.end() % PAGE_BYTES != 0 {
            if let Some(after) = self.list.after(Some(at)) {
                nodes.mark_normal(new.node);
                nodes.mark_normal(self.get(after).node);
            }
        }
    }

    /// Inserts a fragment after another, or first.
    fn put_after(&mut self, at: Option<Position>, fragment: Fragment) -> Position {
        let place = |at: Position| self.list.get(at).place;
        let (before, after) = (at.map(place), self.list.after(at).map(place));
        let place = self.tree.insert_between(before, after, ());
        self.list.insert_after(at, Placed { fragment, place })
    }

    /// Removes the fragment after another, or the first.
    fn take_after(&mut self, at: &mut Option<Position>) -> Option<Fragment> {
        let Placed { fragment, place } = self.list.remove_after(at)?;
        self.tree.erase(place);
        Some(fragment)
    }

    /// jffs2_add_frag_to_fragtree: puts `new` over the existing fragments and returns its position.
    fn insert(&mut self, nodes: &mut Nodes, new: Fragment, obsolete: &mut Vec<NodeId>) -> Position {
        let at = self.list.last_up_to(new.offset.into());
        let end = at.map_or(0, |at| self.get(at).end());
        let Some(at) = at.filter(|_| end > new.offset) else {
            return self.append(nodes, new, end);
        };
        let this = *self.get(at);
        let rest =
            Fragment { offset: new.end(), bytes: this.end().saturating_sub(new.end()), ..this };
        if new.offset > this.offset {
            nodes.mark_normal(new.node);
            nodes.mark_normal(this.node);
            self.list.change(at, |placed| placed.fragment.bytes = new.offset - this.offset);
            let at = self.put_after(Some(at), new);
            if rest.bytes > 0 {
                if let Some(node) = this.node {
                    nodes.set_fragments(node, nodes.get(node).fragments + 1);
                }
                let rest = self.put_after(Some(at), rest);
                return self.list.before(rest).expect("the new one");
            }
            return self.cut_covered(nodes, at, obsolete);
        }
        // rb_replace_node
        self.list.change(at, |placed| placed.fragment = new);
        if rest.bytes > 0 {
            let rest = self.put_after(Some(at), rest);
            return self.list.before(rest).expect("the new one");
        }
        nodes.lose_fragment(this.node, obsolete);
        self.cut_covered(nodes, at, obsolete)
    }

    /// The rest of jffs2_add_frag_to_fragtree: trims or removes what the new fragment at `at`
    /// covers after it. Returns its position afterwards.
    fn cut_covered(
        &mut self,
        nodes: &mut Nodes,
        at: Position,
        obsolete: &mut Vec<NodeId>,
    ) -> Position {
        let new = *self.get(at);
        let mut at = Some(at);
        while let Some(next) = self.list.after(at) {
            let Fragment { offset, node, .. } = *self.get(next);
            let end = self.get(next).end();
            if offset >= new.end() {
                break;
            }
            if end > new.end() {
                self.list.change(next, |placed| {
                    placed.fragment.offset = new.end();
                    placed.fragment.bytes = end - new.end();
                });
                nodes.mark_normal(node);
                nodes.mark_normal(new.node);
                break;
            }
            self.take_after(&mut at);
            nodes.lose_fragment(node, obsolete);
        }
        at.expect("the new one")
    }

    /// no_overlapping_node: appends the fragment, after a gap if it begins beyond `end`.
    fn append(&mut self, nodes: &mut Nodes, new: Fragment, end: u32) -> Position {
        if end > 0 && (end - 1) / PAGE_BYTES == new.offset / PAGE_BYTES {
            let last = self.list.last().and_then(|last| self.get(last).node);
            nodes.mark_normal(last);
            nodes.mark_normal(new.node);
        }
        if end < new.offset {
            let gap = Fragment { offset: end, bytes: new.offset - end, node: None };
            self.put_after(self.list.last(), gap);
        }
        self.put_after(self.list.last(), new)
    }

    /// jffs2_truncate_fragtree: cuts the fragments at `size`. Returns the nodes without a fragment
    /// left.
    pub fn truncate(&mut self, nodes: &mut Nodes, size: u32) -> Vec<NodeId> {
        let mut obsolete = Vec::new();
        let mut last = self.last_before(size);
        while let Some(gone) = self.take_after(&mut last) {
            nodes.lose_fragment(gone.node, &mut obsolete);
        }
        let Some(last) = last else { return obsolete };
        let Fragment { offset, node, .. } = *self.get(last);
        let end = self.get(last).end();
        if end > size {
            self.list.change(last, |placed| placed.fragment.bytes = size - offset);
        }
        if let Some(node) = node.filter(|_| end >= size && offset % PAGE_BYTES == 0) {
            nodes.set_state(node, State::Pristine);
        }
        obsolete
    }

    /// jffs2_kill_fragtree of a deleted file: returns its remaining nodes, from the leaves of the
    /// tree up.
    pub fn kill(&mut self, nodes: &mut Nodes) -> Vec<NodeId> {
        let mut by_place: Vec<Placed> = self.list.iter_after(None).copied().collect();
        by_place.sort_unstable_by_key(|placed| placed.place);
        let mut obsolete = Vec::new();
        for place in self.tree.postorder() {
            let at = by_place.binary_search_by_key(&place, |placed| placed.place);
            let fragment = by_place[at.expect("in the tree")].fragment;
            nodes.lose_fragment(fragment.node, &mut obsolete);
        }
        *self = Fragments::default();
        obsolete
    }

    /// The range that a node's fragments span.
    pub fn span(&self, nodes: &Nodes, id: NodeId) -> Option<Range<u32>> {
        let node = nodes.get(id);
        let fragments = self.overlapping(node.file_offset, node.file_end());
        let mut own = fragments.filter(|fragment| fragment.node == Some(id));
        let first = own.next()?;
        let last = own.last().unwrap_or(first);
        Some(first.offset..last.end())
    }

    /// The fragments just below `offset`, downward.
    pub fn below(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.list.iter_down(self.last_before(offset)).map(|placed| &placed.fragment)
    }

    /// The fragments from `offset` on.
    pub fn from(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.list.iter_after(self.last_before(offset)).map(|placed| &placed.fragment)
    }

    /// Moves the fragments of a node to its copy.
    pub fn move_node(&mut self, nodes: &Nodes, from: NodeId, to: NodeId) {
        let node = nodes.get(from);
        let mut next = self.list.last_up_to(node.file_offset.into());
        while let Some(at) = next.filter(|&at| self.get(at).offset < node.file_end()) {
            if self.get(at).node == Some(from) {
                self.list.change(at, |placed| placed.fragment.node = Some(to));
            }
            next = self.list.after(next);
        }
    }
}
