//! Nodes: what lies on flash.
//!
//! Mirrors fs/jffs2/nodelist.h (struct jffs2_raw_node_ref, jffs2_full_dnode) of Linux 6.1.
//!
//! Invariant: a node is obsolete exactly when no fragment, dirent or inode refers to it.

use super::layout::{pad, RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use super::packed::Packed;
use crate::collections::slab::{Key, Slab};
use crate::compress::Jffs2Compressor;
use crate::fs::Ino;
use std::collections::BTreeMap;

/// Which node of [`Nodes`].
pub type NodeId = Key;

/// A name that directory entries have: the same number for the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameId(u32);

/// What a directory entry says is kept apart from its node: few nodes are entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(pub(super) u32);

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
    /// So much of a file (dsize), which takes `data_bytes` after the header (csize), by which compressor (compr).
    Data { data_bytes: u16, file_bytes: u16, packed_by: Option<Jffs2Compressor> },
    /// A data node for a hole: a header without data (JFFS2_COMPR_ZERO).
    Hole { file_bytes: u32 },
    /// An inode without data, superseded by its first data node (`f->metadata`).
    Metadata,
    /// A directory entry; the name has so many bytes. A deletion dirent says that the name is gone.
    Dirent { name_bytes: u8, is_deletion: bool, entry: EntryId },
    /// The summary at the end of a block.
    Summary { total_bytes: u32 },
    /// What fills the page of a flushed write buffer, or the end of a block that was left.
    Padding { total_bytes: u32 },
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

impl State {
    /// All of them, in order.
    pub const ALL: [State; 4] = [State::Unchecked, State::Pristine, State::Normal, State::Obsolete];
}

impl Role {
    /// Header and payload, as they are written one after the other.
    pub fn parts(self) -> [u32; 2] {
        match self {
            Role::Data { data_bytes, .. } => [RAW_INODE_BYTES, data_bytes.into()],
            Role::Hole { .. } | Role::Metadata => [RAW_INODE_BYTES, 0],
            Role::Dirent { name_bytes, .. } => [RAW_DIRENT_BYTES, name_bytes.into()],
            Role::Summary { total_bytes } | Role::Padding { total_bytes } => [total_bytes, 0],
        }
    }

    /// Whether it belongs to no inode.
    pub fn is_bare(self) -> bool {
        matches!(self, Role::Summary { .. } | Role::Padding { .. })
    }
}

/// A node on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where, from the start of the partition.
    pub flash_offset: u32,
    /// Fragments that refer to it.
    pub fragments: u32,
    /// What it is for.
    pub role: Role,
    /// Whether it is still good.
    pub state: State,
    /// Its header is on flash and some of its data are not, for the power failed: the checksum is wrong.
    pub is_damaged: bool,
    /// The inode it belongs to; of an entry, its directory.
    pub ino: Ino,
    /// The next node in the same block.
    pub next_in_block: Option<NodeId>,
    /// Its neighbours in the list of its inode's nodes.
    pub in_inode: Neighbours,
    /// Of two nodes that say different things of an inode, the higher one is right.
    pub version: u32,
    /// Where in the file its data are.
    pub file_offset: u32,
    /// How long the file was when it was written (isize).
    pub size_bytes: u32,
}

impl Node {
    /// A node that says something of an inode, not yet on flash.
    pub fn new(ino: Ino, role: Role, version: u32) -> Node {
        Node {
            flash_offset: 0,
            ino,
            role,
            state: State::Pristine,
            next_in_block: None,
            in_inode: Neighbours::default(),
            fragments: 0,
            version,
            file_offset: 0,
            size_bytes: 0,
            is_damaged: false,
        }
    }

    /// dirent_node_state: an entry that takes a name away is looked at before it is copied.
    pub fn dirent_state(&self) -> State {
        match self.role {
            Role::Dirent { is_deletion: false, .. } => State::Pristine,
            _ => State::Normal,
        }
    }

    /// With header and padding to four bytes.
    #[inline]
    pub fn total_bytes(&self) -> u32 {
        pad(self.role.parts().iter().sum())
    }

    /// Bytes of the file that it provides (dsize).
    #[inline]
    pub fn file_bytes(&self) -> u32 {
        match self.role {
            Role::Data { file_bytes, .. } => file_bytes.into(),
            Role::Hole { file_bytes } => file_bytes,
            _ => 0,
        }
    }

    /// The byte of the file after its last.
    #[inline]
    pub fn file_end(&self) -> u32 {
        self.file_offset + self.file_bytes()
    }
}

/// All nodes on flash.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    list: Slab<Packed>,
}

impl Nodes {
    /// Adds a node.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.list.add(Packed::new(&node))
    }

    /// How many are on flash.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The node is not on flash any more.
    pub fn remove(&mut self, id: NodeId) {
        self.list.remove(id);
    }

    /// The node.
    #[inline]
    pub fn get(&self, id: NodeId) -> Node {
        self.list.get(id).node()
    }

    /// Changes the node, and says what it is now.
    #[inline]
    pub fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) -> Node {
        let packed = self.list.get_mut(id);
        let mut node = packed.node();
        change(&mut node);
        *packed = Packed::new(&node);
        node
    }

    /// The next node in the same block is `next`.
    pub fn set_next_in_block(&mut self, id: NodeId, next: NodeId) {
        self.list.get_mut(id).next_in_block = Some(next);
    }

    #[inline]
    fn neighbours(&mut self, id: NodeId) -> &mut Neighbours {
        &mut self.list.get_mut(id).in_inode
    }

    /// The node is in another state from now on. Returns it as it was.
    #[inline]
    pub fn set_state(&mut self, id: NodeId, state: State) -> Node {
        let packed = self.list.get_mut(id);
        let before = packed.node();
        packed.set_state(state);
        before
    }

    /// So many fragments refer to the node from now on.
    #[inline]
    pub fn set_fragments(&mut self, id: NodeId, fragments: u32) {
        self.list.get_mut(id).set_fragments(fragments);
    }

    /// mark_ref_normal.
    pub fn mark_normal(&mut self, id: Option<NodeId>) {
        let Some(id) = id else { return };
        let packed = self.list.get_mut(id);
        if packed.state() != State::Obsolete {
            packed.set_state(State::Normal);
        }
    }

    /// jffs2_obsolete_node_frag, but for the mark if that was its last fragment.
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

/// Where a node is in the list of its inode's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        *nodes.neighbours(id) = Neighbours { before: self.last, after: None };
        match self.last.replace(id) {
            Some(last) => nodes.neighbours(last).after = Some(id),
            None => self.first = Some(id),
        }
    }

    /// jffs2_remove_node_refs_from_ino_list, of one that is in this list.
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

/// The names that entries have had, and the entries.
#[derive(Clone, Debug, Default)]
pub struct Names {
    entries: Vec<Entry>,
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

    /// An entry that is about to be written.
    pub fn add_entry(&mut self, entry: Entry) -> Role {
        let name_bytes = self.name(entry.name).len();
        let name_bytes = u8::try_from(name_bytes).expect("a name of at most 255 bytes");
        let id = EntryId(u32::try_from(self.entries.len()).expect("fewer than 2^32 entries"));
        self.entries.push(entry);
        Role::Dirent { name_bytes, is_deletion: entry.ino.is_none(), entry: id }
    }

    /// What an entry says.
    pub fn entry(&self, id: EntryId) -> Entry {
        self.entries[id.0 as usize]
    }
}
