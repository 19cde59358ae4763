//! Keys of nodes, and places of nodes.
//!
//! Mirrors fs/ubifs/key.h (simple keys, r5 hash) of Linux 6.1.

use crate::ops::name_bytes;

/// Node types in keys (UBIFS_INO_KEY and so on).
const DATA: u32 = 1;
const DENT: u32 = 2;
const XENT: u32 = 3;
const TRUNCATION: u32 = 4;
/// UBIFS_S_KEY_BLOCK_BITS.
pub(super) const BLOCK_BITS: u32 = 29;

/// The key of a node: inode number, then type and block or hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    const fn new(inum: u32, rest: u32) -> Key {
        Key((inum as u64) << 32 | rest as u64)
    }

    /// A key above every node's key.
    pub const BEHIND: Key = Key(u64::MAX);

    /// A key of inode number, and type with block or hash.
    #[inline]
    pub const fn halves(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }

    /// The key of these two halves.
    #[inline]
    pub const fn from_halves((inum, rest): (u32, u32)) -> Key {
        Key::new(inum, rest)
    }

    /// The key of an inode node, which is the lowest of its inode (lowest_ino_key).
    pub const fn inode(inum: u32) -> Key {
        Key::new(inum, 0)
    }

    /// The highest key of an inode (highest_ino_key).
    pub const fn last_of(inum: u32) -> Key {
        Key::new(inum, u32::MAX)
    }

    /// The key of a data block.
    #[inline]
    pub const fn data(inum: u32, block: u32) -> Key {
        Key::new(inum, DATA << BLOCK_BITS | block)
    }

    /// The key of a directory entry.
    pub fn dent(inum: u32, name: &str) -> Key {
        Key::new(inum, DENT << BLOCK_BITS | hash_of(name))
    }

    /// lowest_dent_key.
    pub const fn first_dent(inum: u32) -> Key {
        Key::new(inum, DENT << BLOCK_BITS)
    }

    /// The hash in the key of a name.
    pub const fn hash(self) -> u32 {
        self.block()
    }

    /// Whether it is an extended attribute's.
    pub const fn is_attribute(self) -> bool {
        self.kind() == XENT
    }

    /// The key of an extended attribute, by the hash of its name.
    pub const fn xent(inum: u32, hash: u32) -> Key {
        Key::new(inum, XENT << BLOCK_BITS | hash)
    }

    /// lowest_xent_key.
    pub const fn first_xent(inum: u32) -> Key {
        Key::new(inum, XENT << BLOCK_BITS)
    }

    /// The key of a truncation node (trun_key_init), which is never in the index.
    pub const fn truncation(inum: u32) -> Key {
        Key::new(inum, TRUNCATION << BLOCK_BITS)
    }

    /// Its inode number.
    pub const fn inum(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The block of a data key.
    pub const fn block(self) -> u32 {
        self.0 as u32 & ((1 << BLOCK_BITS) - 1)
    }

    /// key_type.
    const fn kind(self) -> u32 {
        self.0 as u32 >> BLOCK_BITS
    }

    /// Whether it is a data block's.
    pub const fn is_data(self) -> bool {
        self.kind() == DATA
    }

    /// Whether it is an inode node's.
    pub const fn is_inode(self) -> bool {
        self.kind() == 0
    }

    /// Whether it is a truncation node's.
    pub const fn is_truncation(self) -> bool {
        self.kind() == TRUNCATION
    }

    /// is_hash_key: several nodes may have this key.
    #[inline]
    pub const fn is_hashed(self) -> bool {
        matches!(self.kind(), DENT | XENT)
    }

    /// Whether both keys have the same inode and type.
    pub const fn is_like(self, other: Key) -> bool {
        self.0 >> BLOCK_BITS == other.0 >> BLOCK_BITS
    }
}

/// The hash of a name as it is written in operations.
pub fn hash_of(name: &str) -> u32 {
    reserved(name_bytes(name).fold(0, r5_step))
}

/// key_r5_hash of a plain name.
pub const fn r5_hash(name: &str) -> u32 {
    let (mut hash, mut at) = (0_u32, 0);
    while at < name.len() {
        hash = r5_step(hash, name.as_bytes()[at]);
        at += 1;
    }
    reserved(hash)
}

/// One byte of key_r5_hash, which treats it as signed.
const fn r5_step(hash: u32, byte: u8) -> u32 {
    let byte = byte as i8 as i32;
    hash.wrapping_add((byte << 4) as u32).wrapping_add((byte >> 4) as u32).wrapping_mul(11)
}

/// key_mask_hash: the three lowest values are reserved.
const fn reserved(hash: u32) -> u32 {
    let hash = hash & ((1 << BLOCK_BITS) - 1);
    if hash <= 2 {
        hash + 3
    } else {
        hash
    }
}

/// The place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its LEB.
    pub leb: u32,
    /// Its offset there.
    pub offset: u32,
    /// Its bytes, without padding.
    pub bytes: u32,
}

/// The place of a node that was never written.
pub const NOWHERE: Place = Place { leb: 0, offset: 0, bytes: 0 };
