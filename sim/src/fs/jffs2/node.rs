//! What a node is: where it lies on flash, what it is for, and whether it is still good.
//!
//! Mirrors struct jffs2_raw_node_ref and jffs2_full_dnode of fs/jffs2/nodelist.h (Linux 6.1).

use super::layout::{pad, RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use crate::collections::slab::Key;
use crate::compress::Jffs2Compressor;
use crate::fs::Ino;

/// Which node of all that are on flash.
pub type NodeId = Key;

/// A name that directory entries have: the same number for the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameId(pub(super) u32);

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
    /// So much of a file (dsize), which takes `data_bytes` after the header (csize), by which
    /// compressor (compr).
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
    /// Its header is on flash and some of its data are not, for the power failed: the checksum is
    /// wrong.
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

/// Where a node is in the list of its inode's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    pub before: Option<NodeId>,
    pub after: Option<NodeId>,
}
