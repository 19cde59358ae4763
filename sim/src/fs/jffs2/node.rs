//! A node: its place on flash, its role, and its state.
//!
//! Mirrors struct jffs2_raw_node_ref and jffs2_full_dnode of fs/jffs2/nodelist.h (Linux 6.1).

use super::layout::{
    pad, CLEANMARKER_NODE_BYTES, RAW_DIRENT_BYTES, RAW_INODE_BYTES, RAW_XATTR_BYTES, RAW_XREF_BYTES,
};
use crate::collections::slab::Key;
use crate::compress::Jffs2Compressor;
use crate::fs::Ino;

/// Identifies a node on flash.
pub type NodeId = Key;

/// A name of directory entries, interned: equal names have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameId(pub(super) u32);

/// Identifies an entry's content, which is stored apart from its node because few nodes are
/// entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(pub(super) u32);

/// The content of a directory entry: a name and the inode it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: NameId,
    /// Whether it refers to a directory (DT_DIR).
    pub is_directory: bool,
    /// The inode; none in a deletion dirent.
    pub ino: Option<Ino>,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `file_bytes` of a file (dsize), stored in `data_bytes` after the header (csize) by this
    /// compressor (compr).
    Data { data_bytes: u16, file_bytes: u16, packed_by: Option<Jffs2Compressor> },
    /// A data node for a hole: a header without data (JFFS2_COMPR_ZERO).
    Hole { file_bytes: u32 },
    /// An inode without data. Its first data node supersedes it (`f->metadata`).
    Metadata,
    /// A directory entry with a name of `name_bytes`. A deletion dirent removes the name.
    Dirent { name_bytes: u8, is_deletion: bool, entry: EntryId },
    /// An extended attribute: name, NUL and value.
    Xattr { payload_bytes: u32 },
    /// That an inode has an extended attribute, or no longer.
    Xref,
    /// The mark of an erased block, at its start (NOR).
    CleanMarker,
    /// The summary at the end of a block.
    Summary { total_bytes: u32 },
    /// Fills the rest of a flushed write buffer's page, or of a block that was left early.
    Padding { total_bytes: u32 },
}

/// REF_UNCHECKED, REF_PRISTINE, REF_NORMAL, REF_OBSOLETE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Found by a mount; its inode has not been checked since.
    Unchecked,
    /// Valid, and the collector may copy it unchanged.
    Pristine,
    /// Valid, but the collector has to rewrite it through its page.
    Normal,
    /// Superseded.
    Obsolete,
}

impl State {
    /// All states, in order.
    pub const ALL: [State; 4] = [State::Unchecked, State::Pristine, State::Normal, State::Obsolete];
}

impl Role {
    /// Header and payload bytes, written one after the other.
    pub fn parts(self) -> [u32; 2] {
        match self {
            Role::Data { data_bytes, .. } => [RAW_INODE_BYTES, data_bytes.into()],
            Role::Hole { .. } | Role::Metadata => [RAW_INODE_BYTES, 0],
            Role::Dirent { name_bytes, .. } => [RAW_DIRENT_BYTES, name_bytes.into()],
            Role::Xattr { payload_bytes } => [RAW_XATTR_BYTES, payload_bytes],
            Role::Xref => [RAW_XREF_BYTES, 0],
            Role::CleanMarker => [CLEANMARKER_NODE_BYTES, 0],
            Role::Summary { total_bytes } | Role::Padding { total_bytes } => [total_bytes, 0],
        }
    }

    /// Whether it belongs to no inode.
    pub fn is_bare(self) -> bool {
        matches!(
            self,
            Role::Xattr { .. }
                | Role::Xref
                | Role::CleanMarker
                | Role::Summary { .. }
                | Role::Padding { .. }
        )
    }
}

/// A node on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Offset from the start of the partition.
    pub flash_offset: u32,
    /// The number of fragments that refer to it.
    pub fragments: u32,
    pub role: Role,
    /// Whether it is valid.
    pub state: State,
    /// The power failed while it was written: its header is on flash and a part of its data is not,
    /// so the checksum is wrong.
    pub is_damaged: bool,
    /// The inode it belongs to; for an entry, the directory.
    pub ino: Ino,
    /// The next node in the same block.
    pub next_in_block: Option<NodeId>,
    /// Its neighbours in the list of its inode's nodes.
    pub in_inode: Neighbours,
    /// Of two nodes about the same part of an inode, the higher version is valid.
    pub version: u32,
    /// The offset of its data in the file.
    pub file_offset: u32,
    /// The file's length when the node was written (isize).
    pub size_bytes: u32,
}

impl Node {
    /// A node of an inode, not yet on flash.
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

    /// dirent_node_state: a deletion dirent cannot be copied unchanged, because the collector first
    /// checks whether it is still needed.
    pub fn dirent_state(&self) -> State {
        match self.role {
            Role::Dirent { is_deletion: false, .. } => State::Pristine,
            _ => State::Normal,
        }
    }

    /// Length on flash: header, payload, and padding to four bytes.
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

    /// The file offset after its last byte.
    #[inline]
    pub fn file_end(&self) -> u32 {
        self.file_offset + self.file_bytes()
    }
}

/// A node's links in the list of its inode's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    pub before: Option<NodeId>,
    pub after: Option<NodeId>,
}
