//! A node packed into 40 bytes: the simulator keeps as many as fit on the flash.
//!
//! Like struct jffs2_raw_node_ref of fs/jffs2/nodelist.h (Linux 6.1), it has the state in the
//! lowest bits of `flash_offset`. Other small numbers share a word in the same way.
//!
//! Invariant: unpacking returns what was packed.

use super::node::{EntryId, Neighbours, Node, NodeId, Role, State};
use crate::compress::Jffs2Compressor;
use crate::fs::Ino;

/// The kind of a role, without its lengths.
const DATA: u32 = 0;
const HOLE: u32 = 1;
const METADATA: u32 = 2;
const DIRENT: u32 = 3;
const SUMMARY: u32 = 4;
const PADDING: u32 = 5;
const CLEAN_MARKER: u32 = 6;
const XATTR: u32 = 7;

/// In place of an attribute's length, for a reference.
const XREF: u32 = u32::MAX;

/// Fields of `about` from the lowest bit on: kind, damaged, compressor of data, fragments.
const DAMAGED_BIT: u32 = 3;
const COMPRESSOR_BIT: u32 = 4;
const FRAGMENTS_BIT: u32 = 7;

/// Compressors by their number in `about`.
const COMPRESSORS: [Option<Jffs2Compressor>; 5] = [
    None,
    Some(Jffs2Compressor::Lzo),
    Some(Jffs2Compressor::Lzo202),
    Some(Jffs2Compressor::Zlib),
    Some(Jffs2Compressor::Rtime),
];

fn compressor_bits(compressor: Option<Jffs2Compressor>) -> u32 {
    let number = COMPRESSORS.iter().position(|known| *known == compressor);
    (number.expect("a compressor of JFFS2") as u32) << COMPRESSOR_BIT
}

/// The node. Overwriting a node reads it long after it was written, when it is cold in the cache.
/// The fields needed then come first and share a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Packed {
    /// `flash_offset`, with the state in its two lowest bits, which are zero otherwise.
    place: u32,
    about: u32,
    /// The kind's details: both lengths for data, the entry's number for an entry.
    role: u32,
    ino: Ino,
    pub next_in_block: Option<NodeId>,
    pub in_inode: Neighbours,
    version: u32,
    /// `file_offset`; an entry has none and keeps the length of its name and `is_deletion` here.
    at: u32,
    size_bytes: u32,
}

/// The number of fragments, shifted to its place in `about`.
#[inline]
fn high_bits(fragments: u32) -> u32 {
    assert!(fragments >> (u32::BITS - FRAGMENTS_BIT) == 0, "too many fragments of a node");
    fragments << FRAGMENTS_BIT
}

impl Packed {
    #[inline]
    pub fn new(node: &Node) -> Packed {
        let at = node.file_offset;
        let (kind, role, at) = match node.role {
            Role::Data { data_bytes, file_bytes, packed_by } => {
                let kind = DATA | compressor_bits(packed_by);
                (kind, u32::from(data_bytes) | u32::from(file_bytes) << 16, at)
            }
            Role::Hole { file_bytes } => (HOLE, file_bytes, at),
            Role::Metadata => (METADATA, 0, at),
            Role::Dirent { name_bytes, is_deletion, entry: EntryId(entry) } => {
                assert!(at == 0, "an entry has no place in a file");
                (DIRENT, entry, u32::from(name_bytes) << 1 | u32::from(is_deletion))
            }
            Role::Summary { total_bytes } => (SUMMARY, total_bytes, at),
            Role::Padding { total_bytes } => (PADDING, total_bytes, at),
            Role::CleanMarker => (CLEAN_MARKER, 0, at),
            Role::Xattr { payload_bytes } => (XATTR, payload_bytes, at),
            Role::Xref => (XATTR, XREF, at),
        };
        assert!(node.flash_offset % 4 == 0, "nodes begin at whole words");
        let is_damaged = u32::from(node.is_damaged) << DAMAGED_BIT;
        Packed {
            place: node.flash_offset | node.state as u32,
            about: kind | is_damaged | high_bits(node.fragments),
            role,
            ino: node.ino,
            next_in_block: node.next_in_block,
            in_inode: node.in_inode,
            version: node.version,
            at,
            size_bytes: node.size_bytes,
        }
    }

    #[inline]
    pub fn node(&self) -> Node {
        Node {
            flash_offset: self.place & !3,
            fragments: self.fragments(),
            role: self.role(),
            state: self.state(),
            is_damaged: self.about >> DAMAGED_BIT & 1 == 1,
            ino: self.ino,
            next_in_block: self.next_in_block,
            in_inode: self.in_inode,
            version: self.version,
            file_offset: if self.kind() == DIRENT { 0 } else { self.at },
            size_bytes: self.size_bytes,
        }
    }

    #[inline]
    pub fn state(&self) -> State {
        State::ALL[(self.place & 3) as usize]
    }

    #[inline]
    pub fn set_state(&mut self, state: State) {
        self.place = self.place & !3 | state as u32;
    }

    #[inline]
    pub fn fragments(&self) -> u32 {
        self.about >> FRAGMENTS_BIT
    }

    #[inline]
    pub fn set_fragments(&mut self, fragments: u32) {
        self.about = self.about & ((1 << FRAGMENTS_BIT) - 1) | high_bits(fragments);
    }

    #[inline]
    fn kind(&self) -> u32 {
        self.about & ((1 << DAMAGED_BIT) - 1)
    }

    #[inline]
    fn role(&self) -> Role {
        match self.kind() {
            DATA => Role::Data {
                data_bytes: self.role as u16,
                file_bytes: (self.role >> 16) as u16,
                packed_by: COMPRESSORS[(self.about >> COMPRESSOR_BIT & 7) as usize],
            },
            HOLE => Role::Hole { file_bytes: self.role },
            METADATA => Role::Metadata,
            DIRENT => Role::Dirent {
                name_bytes: (self.at >> 1) as u8,
                is_deletion: self.at & 1 == 1,
                entry: EntryId(self.role),
            },
            SUMMARY => Role::Summary { total_bytes: self.role },
            CLEAN_MARKER => Role::CleanMarker,
            XATTR if self.role == XREF => Role::Xref,
            XATTR => Role::Xattr { payload_bytes: self.role },
            _ => Role::Padding { total_bytes: self.role },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let roles = [
            Role::Data { data_bytes: u16::MAX, file_bytes: 4096, packed_by: None },
            Role::Data { data_bytes: 1, file_bytes: u16::MAX, packed_by: COMPRESSORS[1] },
            Role::Data { data_bytes: 1, file_bytes: 4096, packed_by: COMPRESSORS[4] },
            Role::Hole { file_bytes: u32::MAX },
            Role::Metadata,
            Role::Dirent { name_bytes: 255, is_deletion: true, entry: EntryId(u32::MAX) },
            Role::Dirent { name_bytes: 0, is_deletion: false, entry: EntryId(0) },
            Role::Summary { total_bytes: u32::MAX },
            Role::Padding { total_bytes: 12 },
            Role::CleanMarker,
            Role::Xattr { payload_bytes: 16 },
            Role::Xref,
        ];
        for role in roles {
            for (number, state) in (0..).zip(State::ALL) {
                let has_place = !matches!(role, Role::Dirent { .. });
                let node = Node {
                    flash_offset: !3,
                    fragments: (1 << 25) - 1 - number,
                    state,
                    is_damaged: number % 2 == 0,
                    file_offset: if has_place { u32::MAX - number } else { 0 },
                    size_bytes: number,
                    ..Node::new(Ino(u32::MAX), role, u32::MAX - 1)
                };
                let mut packed = Packed::new(&node);
                assert_eq!(packed.node(), node);
                for changed in State::ALL {
                    packed.set_state(changed);
                    packed.set_fragments(number);
                    let changed = Node { state: changed, fragments: number, ..node };
                    assert_eq!((packed.node(), packed.state()), (changed, changed.state));
                }
            }
        }
    }

    #[test]
    fn a_node_takes_40_bytes() {
        assert_eq!(size_of::<Packed>(), 40);
    }
}
