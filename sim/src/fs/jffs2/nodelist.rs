//! Lists of nodes: all nodes on flash, the nodes of an inode, and the names of entries.
//!
//! Mirrors fs/jffs2/nodelist.c of Linux 6.1.
//!
//! Invariant: a node is obsolete exactly if no fragment, dirent or inode refers to it.

use super::node::{Entry, EntryId, NameId, Neighbours, Node, NodeId, Role, State};
use super::packed::Packed;
use crate::collections::slab::Slab;
use crate::ops::name_len;
use std::collections::BTreeMap;

/// All nodes on flash.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Slab<Packed>,
}

impl Nodes {
    pub fn push(&mut self, node: Node) -> NodeId {
        self.list.add(Packed::new(&node))
    }

    /// The number of nodes on flash.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Removes a node that is no longer on flash.
    pub fn remove(&mut self, id: NodeId) {
        self.list.remove(id);
    }

    #[inline]
    pub fn get(&self, id: NodeId) -> Node {
        self.list.get(id).node()
    }

    /// Changes a node and returns its new value.
    #[inline]
    pub fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) -> Node {
        let packed = self.list.get_mut(id);
        let mut node = packed.node();
        change(&mut node);
        *packed = Packed::new(&node);
        node
    }

    /// Links `next` behind the node in its block.
    pub fn set_next_in_block(&mut self, id: NodeId, next: NodeId) {
        self.list.get_mut(id).next_in_block = Some(next);
    }

    #[inline]
    fn neighbours(&mut self, id: NodeId) -> &mut Neighbours {
        &mut self.list.get_mut(id).in_inode
    }

    /// Sets the node's state and returns the node as it was before.
    #[inline]
    pub fn set_state(&mut self, id: NodeId, state: State) -> Node {
        let packed = self.list.get_mut(id);
        let before = packed.node();
        packed.set_state(state);
        before
    }

    /// Sets how many fragments refer to the node.
    #[inline]
    pub fn set_fragments(&mut self, id: NodeId, fragments: u32) {
        self.list.get_mut(id).set_fragments(fragments);
    }

    /// mark_ref_normal: the collector may no longer copy the node unchanged.
    pub fn mark_normal(&mut self, id: Option<NodeId>) {
        let Some(id) = id else { return };
        let packed = self.list.get_mut(id);
        if packed.state() != State::Obsolete {
            packed.set_state(State::Normal);
        }
    }

    /// jffs2_obsolete_node_frag without the mark: a node that loses its last fragment is added to
    /// `obsolete`.
    pub fn lose_fragment(&mut self, id: Option<NodeId>, obsolete: &mut Vec<NodeId>) {
        let Some(id) = id else { return };
        let packed = self.list.get_mut(id);
        let left = packed.fragments() - 1;
        packed.set_fragments(left);
        if left == 0 {
            obsolete.push(id);
        } else {
            self.mark_normal(Some(id));
        }
    }
}

/// The nodes of an inode in the order in which they were found or written (`ic->nodes`, which has
/// them in reverse). The list is doubly linked through the nodes, so removing one takes constant
/// time.
#[derive(Clone, Debug, Default)]
pub struct InodeNodes {
    first: Option<NodeId>,
    last: Option<NodeId>,
}

impl InodeNodes {
    /// Whether the inode has no nodes.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The node added last.
    pub fn last(&self) -> Option<NodeId> {
        self.last
    }

    /// The node added before this one.
    pub fn before(nodes: &Nodes, id: NodeId) -> Option<NodeId> {
        nodes.get(id).in_inode.before
    }

    /// Adds a node that is on no inode's list.
    pub fn push(&mut self, nodes: &mut Nodes, id: NodeId) {
        *nodes.neighbours(id) = Neighbours { before: self.last, after: None };
        match self.last.replace(id) {
            Some(last) => nodes.neighbours(last).after = Some(id),
            None => self.first = Some(id),
        }
    }

    /// jffs2_remove_node_refs_from_ino_list for a node of this list.
    pub fn remove(&mut self, nodes: &mut Nodes, id: NodeId) {
        let Neighbours { before, after } = std::mem::take(nodes.neighbours(id));
        match before {
            Some(before) => nodes.neighbours(before).after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => nodes.neighbours(after).before = before,
            None => self.last = before,
        }
    }
}

/// All names that entries have had, and the entries' contents.
#[derive(Clone, Debug, Default)]
pub struct Names {
    entries: Vec<Entry>,
    list: Vec<Box<str>>,
    ids: BTreeMap<Box<str>, NameId>,
}

impl Names {
    /// The number of a name, which is new if the name is.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(u32::try_from(self.list.len()).expect("fewer than 2^32 names"));
        self.list.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// The name with this number.
    pub fn name(&self, id: NameId) -> &str {
        &self.list[id.0 as usize]
    }

    /// Stores the content of an entry that is about to be written.
    pub fn add_entry(&mut self, entry: Entry) -> Role {
        let name_bytes = name_len(self.name(entry.name));
        let name_bytes = u8::try_from(name_bytes).expect("a name of at most 255 bytes");
        let id = EntryId(u32::try_from(self.entries.len()).expect("fewer than 2^32 entries"));
        self.entries.push(entry);
        Role::Dirent { name_bytes, is_deletion: entry.ino.is_none(), entry: id }
    }

    /// The content of an entry.
    pub fn entry(&self, id: EntryId) -> Entry {
        self.entries[id.0 as usize]
    }
}
