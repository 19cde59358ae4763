//! What an image holds, decompressed by its reader, and the structures in it.
//!
//! Mirrors fs/squashfs/squashfs_fs.h of Linux 6.1. Left out: values of extended attributes.
//!
//! Invariant: bytes that an image lacks read as 0. They come from outside and are checked where
//! they are used.

use std::collections::BTreeMap;

/// SQUASHFS_METADATA_SIZE.
pub const METADATA_BYTES: u32 = 8192;
/// SQUASHFS_INVALID_BLK.
pub const NO_TABLE: u64 = u64::MAX;
/// SQUASHFS_INVALID_FRAG.
const NO_FRAGMENT: u32 = u32::MAX;
/// sizeof(struct squashfs_super_block).
pub const SUPERBLOCK_BYTES: u32 = 96;
/// SQUASHFS_COMPRESSED_BIT_BLOCK: the block is stored as it is.
const AS_IT_IS: u32 = 1 << 24;
/// SQUASHFS_COMP_OPT.
const OPTIONS: u16 = 1 << 10;
/// What squashfs_block_size accepts.
const SIZE_BITS: u32 = 25;

/// Two bytes, least significant first.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u32_at(bytes, at) as u16
}

/// Four bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u64_at(bytes, at) as u32
}

/// Eight bytes.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    (0..8).rev().fold(0, |value, byte| value << 8 | bytes.get(at + byte).map_or(0, |&b| b.into()))
}

/// struct squashfs_super_block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Superblock {
    /// How many inodes there are.
    pub inodes: u32,
    /// log2 of a block.
    pub block_log: u32,
    /// Blocks of ends of files.
    pub fragments: u32,
    /// The compressor's number.
    pub compressor: u16,
    /// Whether its options follow the superblock, in a metadata block (SQUASHFS_COMP_OPTS).
    pub has_options: bool,
    /// Owners and groups.
    pub ids: u16,
    /// The reference of the root's inode.
    pub root: u64,
    /// Bytes of the image.
    pub bytes: u64,
    /// Where each table begins; `NO_TABLE` for none.
    pub id_table: u64,
    /// Of extended attributes.
    pub xattr_table: u64,
    /// Of inodes.
    pub inode_table: u64,
    /// Of directories.
    pub directory_table: u64,
    /// Of fragments.
    pub fragment_table: u64,
    /// For NFS (the export table).
    pub lookup_table: u64,
}

impl Superblock {
    /// The superblock of an image that begins with these bytes; why it is none that Linux mounts.
    pub fn read(bytes: &[u8]) -> Result<Superblock, String> {
        if u32_at(bytes, 0) != 0x7371_7368 {
            return Err("no squashfs".to_owned());
        }
        let (major, minor) = (u16_at(bytes, 28), u16_at(bytes, 30));
        if (major, minor) != (4, 0) {
            return Err(format!("format {major}.{minor}, not 4.0"));
        }
        let (block, log) = (u32_at(bytes, 12), u32::from(u16_at(bytes, 22)));
        if !(12..=20).contains(&log) || block != 1 << log {
            return Err(format!("blocks of {block} bytes, of 2^{log}"));
        }
        let found = Superblock {
            inodes: u32_at(bytes, 4),
            block_log: log,
            fragments: u32_at(bytes, 16),
            compressor: u16_at(bytes, 20),
            has_options: u16_at(bytes, 24) & OPTIONS != 0,
            ids: u16_at(bytes, 26),
            root: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
            id_table: u64_at(bytes, 48),
            xattr_table: u64_at(bytes, 56),
            inode_table: u64_at(bytes, 64),
            directory_table: u64_at(bytes, 72),
            fragment_table: u64_at(bytes, 80),
            lookup_table: u64_at(bytes, 88),
        };
        if found.inode_table >= found.directory_table || found.directory_table > found.bytes {
            return Err("the tables of inodes and directories overlap".to_owned());
        }
        Ok(found)
    }

    /// Bytes of a block of data.
    pub fn block_bytes(&self) -> u32 {
        1 << self.block_log
    }

    /// Metadata blocks of a table, each with a position of 8 bytes in an index.
    pub fn index_blocks(entries: u64, entry_bytes: u64) -> u64 {
        (entries * entry_bytes).div_ceil(u64::from(METADATA_BYTES))
    }
}

/// A metadata block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Where the next one begins (`next_index`).
    pub next: u64,
    /// Its bytes, decompressed.
    pub bytes: Vec<u8>,
}

/// An image as squashfs sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its superblock.
    pub superblock: Superblock,
    /// Its metadata blocks by position.
    pub metadata: BTreeMap<u64, Metadata>,
    /// The positions of those with owners.
    pub ids: Vec<u64>,
    /// The positions of those with fragments.
    pub fragments: Vec<u64>,
    /// Where the last block of fragments is, and its bytes when it is decompressed. The others are
    /// full.
    pub last_fragment: Option<(u64, u32)>,
}

impl Stored {
    /// The bytes of a block of fragments.
    pub(super) fn fragment_bytes(&self, block: u64) -> u64 {
        match self.last_fragment {
            Some((last, bytes)) if last == block => bytes.into(),
            _ => self.superblock.block_bytes().into(),
        }
    }
}

/// A place in metadata: the position of a block, and an offset in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Where the block begins.
    pub block: u64,
    /// The offset in its decompressed bytes.
    pub offset: u32,
}

/// The size of a block of data, as a block list and the table of fragments have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(u32);

impl Size {
    /// squashfs_block_size; none for a size that is none.
    pub fn of(raw: u32) -> Option<Size> {
        (raw >> SIZE_BITS == 0).then_some(Size(raw))
    }

    /// The size of what is stored as it is.
    pub fn plain(bytes: u32) -> Size {
        Size(bytes | AS_IT_IS)
    }

    /// Whether it is a hole.
    pub fn is_hole(self) -> bool {
        self.0 == 0
    }

    /// Bytes on flash.
    pub fn stored(self) -> u32 {
        self.0 & !AS_IT_IS
    }

    /// Whether it is compressed.
    pub fn is_compressed(self) -> bool {
        self.0 & AS_IT_IS == 0
    }
}

/// The end of a file, in a block that it shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// Where that block is.
    pub block: u64,
    /// Its size.
    pub size: Size,
    /// Where the end of the file begins in it.
    pub offset: u32,
}

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A directory: its entries, how many bytes of them, and its index.
    Directory {
        /// Where its entries are.
        entries: Place,
        /// Its size, 3 more than its entries take.
        bytes: u32,
        /// Where its index is.
        index: Place,
        /// How many entries the index has.
        indexes: u16,
    },
    /// A file.
    File {
        /// Its size.
        bytes: u64,
        /// Where its first block is.
        start: u64,
        /// Where the sizes of its blocks are.
        list: Place,
        /// Its end, if another block has it.
        fragment: Option<Fragment>,
    },
    /// A symbolic link.
    Link {
        /// The length of its target.
        bytes: u32,
        /// Where that is.
        target: Place,
    },
    /// A device, a FIFO or a socket.
    Other,
}

/// An inode as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// Its kind, in the mode's bits, and permissions.
    pub mode: u32,
    /// When it was changed, in seconds.
    pub mtime_s: u32,
    /// Its names.
    pub links: u32,
    /// What it is.
    pub what: What,
}

/// The head that all inodes have.
pub(super) const HEAD_BYTES: u32 = 16;

/// The body of an inode: how long it is with its head, and where its fields are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub bytes: u32,
    pub kind: u16,
}

impl Body {
    /// The body of a type; none for one that is unknown.
    pub fn of(kind: u16) -> Option<Body> {
        let bytes = match kind {
            1 | 2 => 32,
            3 | 10 | 4 | 5 => 24,
            6 | 7 => 20,
            8 => 40,
            9 => 56,
            11 | 12 => 28,
            13 | 14 => 24,
            _ => return None,
        };
        Some(Body { bytes, kind })
    }

    /// S_IFMT of the type.
    pub fn mode(self) -> u32 {
        match self.kind {
            1 | 8 => 0o040_000,
            2 | 9 => 0o100_000,
            3 | 10 => 0o120_000,
            4 | 11 => 0o060_000,
            5 | 12 => 0o020_000,
            6 | 13 => 0o010_000,
            _ => 0o140_000,
        }
    }
}

/// What the body of a file says of its end: the fragment's number, if it has one, and the offset.
pub(super) fn end_of_file(kind: u16, body: &[u8]) -> Option<(u32, u32)> {
    let at = if kind == 2 { 20 } else { 44 };
    let number = u32_at(body, at);
    (number != NO_FRAGMENT).then(|| (number, u32_at(body, at + 4)))
}
