//! Nodes: what lies on flash.
//!
//! Mirrors fs/jffs2/nodelist.h (struct jffs2_raw_node_ref, jffs2_full_dnode) of Linux 6.1.
//!
//! Invariant: a node is obsolete exactly when no fragment, dirent or inode refers to it.

use crate::fs::Ino;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

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
    pub fn mark_normal(&mut self, id: Option<NodeId>) {
        let Some(node) = id.map(|id| self.get_mut(id)) else { return };
        if node.state != State::Obsolete {
            node.state = State::Normal;
        }
    }

    /// jffs2_obsolete_node_frag, but for the mark if that was its last fragment.
    pub fn lose_fragment(&mut self, id: Option<NodeId>, obsolete: &mut Vec<NodeId>) {
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
