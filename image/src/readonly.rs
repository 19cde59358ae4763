//! The superblocks of squashfs and EROFS: what a read-only volume holds. squashfs.rs has the files
//! of the first.
//!
//! Left out: the files of EROFS.

use crate::bytes::{uuid_text, Fields};
use crate::problems::Problems;
use crate::squashfs;
use crate::tree::Sums;
use serde::Serialize;

/// SQUASHFS_MAGIC.
const SQUASHFS_MAGIC: u32 = 0x7371_7368;
/// EROFS_SUPER_MAGIC_V1, at EROFS_SUPER_OFFSET.
const EROFS_MAGIC: u32 = 0xe0f5_e1e2;
const EROFS_OFFSET: usize = 1024;
/// EROFS_FEATURE_INCOMPAT_COMPR_CFGS: else only lz4 is possible.
const EROFS_COMPRESSORS: u32 = 2;
/// EROFS_FEATURE_INCOMPAT_ZERO_PADDING: a file system with lz4 has it.
const EROFS_LZ4_PADDED: u32 = 1;

/// A squashfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Squashfs {
    /// Its format.
    pub version: String,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Its compressor.
    pub compressor: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Its inodes.
    pub inodes: u32,
    /// Blocks of ends of files.
    pub fragments: u32,
    /// When it was made, in seconds.
    pub made_s: u32,
    /// What its files are; none if its metadata is broken.
    pub sums: Option<Sums>,
}

/// An EROFS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Erofs {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Its compressors.
    pub compressors: Vec<&'static str>,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Its inodes.
    pub inodes: u64,
    /// Its identifier.
    pub uuid: String,
    /// When it was made, in seconds.
    pub made_s: u64,
}

/// Whether a squashfs begins here.
pub fn is_squashfs(bytes: &[u8]) -> bool {
    bytes.len() >= 96 && Fields::little(bytes).u32(0) == SQUASHFS_MAGIC
}

/// Reads the superblock of a squashfs (squashfs_fill_super), and follows its names.
pub fn squashfs(bytes: &[u8], there: u64, problems: &mut Problems) -> Result<Squashfs, String> {
    let fields = Fields::little(bytes);
    let (major, minor) = (fields.u16(28), fields.u16(30));
    if major != 4 {
        return Err(format!("superblock: format {major}.{minor}, not 4.0"));
    }
    let (block, log) = (fields.u32(12), u32::from(fields.u16(22)));
    if !(12..=20).contains(&log) || block != 1 << log {
        return Err(format!("superblock: blocks of {block} bytes, of 2^{log}"));
    }
    let used = fields.u64(40);
    if used > there {
        return Err(format!("superblock: {used} bytes, of which {there} are there"));
    }
    let compressor = match fields.u16(20) {
        1 => "gzip".to_owned(),
        2 => "lzma".to_owned(),
        3 => "lzo".to_owned(),
        4 => "xz".to_owned(),
        5 => "lz4".to_owned(),
        6 => "zstd".to_owned(),
        other => return Err(format!("superblock: compressor {other}")),
    };
    Ok(Squashfs {
        version: format!("{major}.{minor}"),
        block_bytes: block,
        compressor,
        bytes: used,
        inodes: fields.u32(4),
        fragments: fields.u32(16),
        made_s: fields.u32(8),
        sums: squashfs::sums(bytes, problems),
    })
}

/// Whether an EROFS begins here.
pub fn is_erofs(bytes: &[u8]) -> bool {
    bytes.len() >= EROFS_OFFSET + 128 && Fields::little(bytes).u32(EROFS_OFFSET) == EROFS_MAGIC
}

/// Reads the superblock of an EROFS (erofs_read_superblock).
pub fn erofs(bytes: &[u8], there: u64) -> Result<Erofs, String> {
    let fields = Fields::little(crate::bytes::part(bytes, EROFS_OFFSET, 128));
    let shift = u32::from(fields.u8(12));
    if !(9..=16).contains(&shift) {
        return Err(format!("superblock: blocks of 2^{shift} bytes"));
    }
    let block_bytes = 1_u32 << shift;
    let used = u64::from(fields.u32(36)) * u64::from(block_bytes);
    if used > there {
        return Err(format!("superblock: {used} bytes, of which {there} are there"));
    }
    let (features, named) = (fields.u32(80), fields.u16(84));
    let compressors = if features & EROFS_COMPRESSORS != 0 {
        let all = ["lz4", "lzma", "deflate", "zstd"].into_iter().enumerate();
        all.filter(|(bit, _)| named >> bit & 1 == 1).map(|(_, name)| name).collect()
    } else if features & EROFS_LZ4_PADDED != 0 {
        vec!["lz4"]
    } else {
        Vec::new()
    };
    Ok(Erofs {
        block_bytes,
        compressors,
        bytes: used,
        inodes: fields.u64(16),
        uuid: uuid_text(fields.part(48, 16)),
        made_s: fields.u64(24),
    })
}
