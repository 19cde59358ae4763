//! Nodes and fragments: what lies on flash, and which part of a file each node still provides.
//!
//! Mirrors fs/jffs2/nodelist.[ch] (struct jffs2_raw_node_ref, jffs2_full_dnode, jffs2_node_frag, jffs2_add_full_dnode_to_inode,
//! jffs2_truncate_fragtree)
//! of Linux 6.1. The fragment tree is a vector sorted by offset: files are read far more often than
//! they are fragmented.
//!
//! Invariants:
//! 1. The fragments of a file do not overlap and are sorted by offset.
//! 2. A node is obsolete exactly when no fragment, dirent or inode refers to it.

use super::rbtree::{Place, RbTree};
use crate::fs::{Ino, PAGE_BYTES};
use crate::search::partition_point_near;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

/// Index of a node in [`Nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(NonZeroU32);

/// A name that directory entries have: the same number for the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameId(u32);

/// What a directory entry says: a name, and what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: NameId,
    /// Whether it names a directory (DT_DIR).
    pub is_directory: bool,
    /// The inode; none where the entry says that the name is gone (a deletion dirent).
    pub ino: Option<Ino>,
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// File data; `data_bytes` of it follow the header (csize).
    Data { data_bytes: u32 },
    /// A data node for a hole: a header without data (JFFS2_COMPR_ZERO).
    Hole,
    /// An inode without data, superseded by its first data node (`f->metadata`).
    Metadata,
    /// A directory entry; the name has so many bytes.
    Dirent { name_bytes: u32, entry: Entry },
    /// The summary at the end of a block.
    Summary,
    /// What fills the page of a flushed write buffer, or the end of a block that was left.
    Padding,
}

/// REF_UNCHECKED, REF_PRISTINE, REF_NORMAL, REF_OBSOLETE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Found by a mount; its inode has not been looked at since.
    Unchecked,
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
    /// The inode it belongs to; of an entry, its directory.
    pub ino: Ino,
    /// What it is for.
    pub role: Role,
    /// Whether it is still good.
    pub state: State,
    /// The next node in the same block.
    pub next_in_block: Option<NodeId>,
    /// Its neighbours in the list of its inode's nodes.
    pub in_inode: Neighbours,
    /// Fragments that refer to it.
    pub fragments: u32,
    /// Of two nodes that say different things of an inode, the higher one is right.
    pub version: u32,
    /// Where in the file its data are.
    pub file_offset: u32,
    /// Bytes of the file that it provides (dsize).
    pub file_bytes: u32,
    /// How long the file was when it was written (isize).
    pub size_bytes: u32,
    /// Its header is on flash and some of its data are not, for the power failed: the checksum is wrong.
    pub is_damaged: bool,
}

impl Node {
    /// A node that says something of an inode, not yet on flash.
    pub fn new(ino: Ino, role: Role, version: u32) -> Node {
        Node {
            flash_offset: 0,
            total_bytes: 0,
            ino,
            role,
            state: State::Pristine,
            next_in_block: None,
            in_inode: Neighbours::default(),
            fragments: 0,
            version,
            file_offset: 0,
            file_bytes: 0,
            size_bytes: 0,
            is_damaged: false,
        }
    }

    /// dirent_node_state: an entry that takes a name away is looked at before it is copied.
    pub fn dirent_state(&self) -> State {
        match self.role {
            Role::Dirent { entry: Entry { ino: Some(_), .. }, .. } => State::Pristine,
            _ => State::Normal,
        }
    }

    /// The byte of the file after its last.
    pub fn file_end(&self) -> u32 {
        self.file_offset + self.file_bytes
    }
}

/// All nodes on flash.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Vec<Node>,
    free: Vec<NodeId>,
}

impl Nodes {
    /// Adds a node.
    pub fn push(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.free.pop() {
            *self.get_mut(id) = node;
            return id;
        }
        self.list.push(node);
        let id = u32::try_from(self.list.len()).ok().and_then(NonZeroU32::new);
        NodeId(id.expect("fewer than 2^32 nodes"))
    }

    /// The node is not on flash any more.
    pub fn remove(&mut self, id: NodeId) {
        self.free.push(id);
    }

    /// The node.
    #[inline]
    pub fn get(&self, id: NodeId) -> &Node {
        &self.list[id.0.get() as usize - 1]
    }

    /// The node, to change.
    pub fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.list[id.0.get() as usize - 1]
    }

    /// mark_ref_normal.
    fn mark_normal(&mut self, id: Option<NodeId>) {
        let Some(node) = id.map(|id| self.get_mut(id)) else { return };
        if node.state != State::Obsolete {
            node.state = State::Normal;
        }
    }

    /// jffs2_obsolete_node_frag, but for the mark if that was its last fragment.
    fn lose_fragment(&mut self, id: Option<NodeId>, obsolete: &mut Vec<NodeId>) {
        let Some(id) = id else { return };
        let node = self.get_mut(id);
        node.fragments -= 1;
        if node.fragments == 0 {
            obsolete.push(id);
        } else {
            self.mark_normal(Some(id));
        }
    }
}

/// Where a node is in the list of its inode's nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours {
    before: Option<NodeId>,
    after: Option<NodeId>,
}

/// The nodes of an inode in the order in which they came to be known (`ic->nodes`, which has them the other way round).
/// The links are in the nodes, both ways: one that leaves costs the same however many there are.
#[derive(Clone, Debug, Default)]
pub struct InodeNodes {
    first: Option<NodeId>,
    last: Option<NodeId>,
}

impl InodeNodes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The one that came last.
    pub fn last(&self) -> Option<NodeId> {
        self.last
    }

    /// The one that came before another.
    pub fn before(nodes: &Nodes, id: NodeId) -> Option<NodeId> {
        nodes.get(id).in_inode.before
    }

    /// Adds a node that is in no such list.
    pub fn push(&mut self, nodes: &mut Nodes, id: NodeId) {
        nodes.get_mut(id).in_inode = Neighbours { before: self.last, after: None };
        match self.last.replace(id) {
            Some(last) => nodes.get_mut(last).in_inode.after = Some(id),
            None => self.first = Some(id),
        }
    }

    /// jffs2_remove_node_refs_from_ino_list, of one that is in this list.
    pub fn remove(&mut self, nodes: &mut Nodes, id: NodeId) {
        let Neighbours { before, after } = std::mem::take(&mut nodes.get_mut(id).in_inode);
        match before {
            Some(before) => nodes.get_mut(before).in_inode.after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => nodes.get_mut(after).in_inode.before = before,
            None => self.last = before,
        }
    }
}

/// The names that entries have had.
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: Vec<Box<str>>,
    ids: BTreeMap<Box<str>, NameId>,
}

impl Names {
    /// The number of a name.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(u32::try_from(self.list.len()).expect("fewer than 2^32 names"));
        self.list.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// The name of a number.
    pub fn name(&self, id: NameId) -> &str {
        &self.list[id.0 as usize]
    }

    /// Its length.
    pub fn bytes(&self, id: NameId) -> u32 {
        u32::try_from(self.list[id.0 as usize].len()).expect("a name of at most 255 bytes")
    }
}

/// struct jffs2_node_frag: a run of file bytes provided by one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First byte of the file.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// Who provides them; nobody, for a gap while a file's nodes are put together.
    pub node: Option<NodeId>,
}

impl Fragment {
    /// The byte after its last.
    pub fn end(&self) -> u32 {
        self.offset + self.bytes
    }
}

/// The fragment tree of a file (`f->fragtree`).
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    list: Vec<Fragment>,
    /// Where each of them is in the kernel's tree, which is kept for its shape.
    places: Vec<Place>,
    tree: RbTree<()>,
}

impl Fragments {
    /// The fragments that touch `start..end`, in order.
    #[inline]
    pub fn overlapping(&self, start: u32, end: u32) -> &[Fragment] {
        let first = self.partition_point(start, |f| f.end() <= start);
        let count = self.list[first..].iter().take_while(|f| f.offset < end).count();
        &self.list[first..first + count]
    }

    /// How many fragments come before what is at `offset`.
    #[inline]
    fn partition_point(&self, offset: u32, before: impl Fn(&Fragment) -> bool) -> usize {
        let whole = self.list.last().map_or(0, Fragment::end);
        partition_point_near(&self.list, (offset.into(), whole.into()), before)
    }

    /// Where the last ends (frag_last).
    pub fn end(&self) -> Option<u32> {
        self.list.last().map(Fragment::end)
    }

    /// jffs2_add_full_dnode_to_inode: the node provides its bytes from now on. Returns the nodes that provide
    /// none any more.
    pub fn add(&mut self, nodes: &mut Nodes, id: NodeId) -> Vec<NodeId> {
        let Node { file_offset: offset, file_bytes: bytes, .. } = *nodes.get(id);
        nodes.get_mut(id).fragments = 1;
        let mut obsolete = Vec::new();
        let at = self.insert(nodes, Fragment { offset, bytes, node: Some(id) }, &mut obsolete);
        let new = self.list[at];
        if new.offset % PAGE_BYTES != 0 {
            let before = at.checked_sub(1).expect("a fragment that does not begin the file");
            nodes.mark_normal(new.node);
            nodes.mark_normal(self.list[before].node);
        }
        if let Some(after) = self.list.get(at + 1).filter(|_| new.end() % PAGE_BYTES != 0) {
            nodes.mark_normal(new.node);
            nodes.mark_normal(after.node);
        }
        obsolete
    }

    /// A fragment comes before the one at `index`.
    fn put(&mut self, index: usize, fragment: Fragment) {
        self.list.insert(index, fragment);
        self.place(index);
    }

    /// Something more has to have a place there in the tree.
    fn place(&mut self, index: usize) {
        let before = index.checked_sub(1).map(|before| self.places[before]);
        let after = self.places.get(index).copied();
        let place = self.tree.insert_between(before, after, ());
        self.places.insert(index, place);
    }

    /// Fragments are gone, the lowest first.
    fn take(&mut self, range: Range<usize>) -> Vec<Fragment> {
        for place in self.places.drain(range.clone()) {
            self.tree.erase(place);
        }
        self.list.drain(range).collect()
    }

    /// jffs2_add_frag_to_fragtree: puts `new` over what is there, and says where it is.
    fn insert(&mut self, nodes: &mut Nodes, new: Fragment, obsolete: &mut Vec<NodeId>) -> usize {
        let after = self.partition_point(new.offset, |f| f.offset <= new.offset);
        let end = after.checked_sub(1).map_or(0, |this| self.list[this].end());
        if end <= new.offset {
            return self.append(nodes, new, end);
        }
        let this = self.list[after - 1];
        let at = if new.offset > this.offset {
            nodes.mark_normal(new.node);
            nodes.mark_normal(this.node);
            self.list[after - 1].bytes = new.offset - this.offset;
            if this.end() > new.end() {
                let rest = Fragment { offset: new.end(), bytes: this.end() - new.end(), ..this };
                if let Some(node) = this.node {
                    nodes.get_mut(node).fragments += 1;
                }
                self.put(after, new);
                self.put(after + 1, rest);
                return after;
            }
            self.put(after, new);
            after
        } else if new.end() < this.end() {
            let rest = Fragment { offset: new.end(), bytes: this.end() - new.end(), ..this };
            self.list[after - 1] = new; // in the place of the other (rb_replace_node)
            self.put(after, rest);
            return after - 1;
        } else {
            nodes.lose_fragment(this.node, obsolete);
            self.list[after - 1] = new;
            after - 1
        };
        self.cut_covered(nodes, at, obsolete);
        at
    }

    /// The rest of jffs2_add_frag_to_fragtree: what the new fragment at `at` covers of those after it.
    fn cut_covered(&mut self, nodes: &mut Nodes, at: usize, obsolete: &mut Vec<NodeId>) {
        let new = self.list[at];
        let covered = self.list[at + 1..].iter().take_while(|f| f.end() <= new.end()).count();
        for fragment in self.take(at + 1..at + 1 + covered) {
            nodes.lose_fragment(fragment.node, obsolete);
        }
        if let Some(next) = self.list.get_mut(at + 1).filter(|next| next.offset < new.end()) {
            next.bytes = next.end() - new.end();
            next.offset = new.end();
            nodes.mark_normal(next.node);
            nodes.mark_normal(new.node);
        }
    }

    /// no_overlapping_node: the new fragment comes last, after a gap if it begins beyond `end`.
    fn append(&mut self, nodes: &mut Nodes, new: Fragment, end: u32) -> usize {
        if end > 0 && (end - 1) / PAGE_BYTES == new.offset / PAGE_BYTES {
            nodes.mark_normal(self.list.last().and_then(|last| last.node));
            nodes.mark_normal(new.node);
        }
        if end < new.offset {
            let gap = Fragment { offset: end, bytes: new.offset - end, node: None };
            self.put(self.list.len(), gap);
        }
        self.put(self.list.len(), new);
        self.list.len() - 1
    }

    /// jffs2_truncate_fragtree: nothing is left beyond `size`. Returns the nodes that provide nothing any more.
    pub fn truncate(&mut self, nodes: &mut Nodes, size: u32) -> Vec<NodeId> {
        let mut obsolete = Vec::new();
        let kept = self.partition_point(size, |f| f.offset < size);
        for fragment in self.take(kept..self.list.len()) {
            nodes.lose_fragment(fragment.node, &mut obsolete);
        }
        let Some(last) = self.list.last_mut() else { return obsolete };
        let end = last.end();
        if end > size {
            last.bytes = size - last.offset;
        }
        if let Some(node) = last.node.filter(|_| end >= size && last.offset % PAGE_BYTES == 0) {
            nodes.get_mut(node).state = State::Pristine;
        }
        obsolete
    }

    /// jffs2_kill_fragtree of a file that is gone: the nodes that were left, from the leaves of the tree up.
    pub fn kill(&mut self, nodes: &mut Nodes) -> Vec<NodeId> {
        let mut by_place: Vec<(Place, Option<NodeId>)> =
            self.places.iter().copied().zip(self.list.iter().map(|f| f.node)).collect();
        by_place.sort_unstable_by_key(|&(place, _)| place);
        let mut obsolete = Vec::new();
        for place in self.tree.postorder() {
            let at = by_place.binary_search_by_key(&place, |&(place, _)| place);
            nodes.lose_fragment(by_place[at.expect("in the tree")].1, &mut obsolete);
        }
        *self = Fragments::default();
        obsolete
    }

    /// Where the fragments of a node begin and end.
    pub fn span(&self, nodes: &Nodes, id: NodeId) -> Option<Range<u32>> {
        let node = nodes.get(id);
        let fragments = self.overlapping(node.file_offset, node.file_end());
        let first = fragments.iter().find(|f| f.node == Some(id))?;
        let last = fragments.iter().rfind(|f| f.node == Some(id))?;
        Some(first.offset..last.end())
    }

    /// The fragments just below `offset`, downward.
    pub fn below(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.list[..self.partition_point(offset, |f| f.offset < offset)].iter().rev()
    }

    /// The fragments from `offset` on.
    pub fn from(&self, offset: u32) -> impl Iterator<Item = &Fragment> {
        self.list[self.partition_point(offset, |f| f.offset < offset)..].iter()
    }

    /// A node was copied as it is: the fragments follow it.
    pub fn move_node(&mut self, nodes: &Nodes, from: NodeId, to: NodeId) {
        let node = nodes.get(from);
        let first = self.partition_point(node.file_offset, |f| f.end() <= node.file_offset);
        let touched = self.list[first..].iter_mut().take_while(|f| f.offset < node.file_end());
        for fragment in touched.filter(|f| f.node == Some(from)) {
            fragment.node = Some(to);
        }
    }
}
