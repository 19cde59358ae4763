//! `[software.squashfs]`: prices of what the processor does for squashfs.
//!
//! A block is a mixture of what compresses and what does not: of its compressed bytes the share
//! that compression left is priced as the one, the rest as the other.

use crate::units::Ns;
use serde::Deserialize;

/// Prices of a board.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SquashfsCosts {
    /// A request to the block device (squashfs_bio_read), through its queue and worker.
    pub request_ns: Ns,
    /// A byte of it.
    pub request_byte_ps: u64,
    /// A page that is added to the cache; a window grows to whole blocks, past the end of a file.
    pub page_ns: Ns,
    /// An inode that is read.
    pub inode_ns: Ns,
    /// A mount, besides its reads.
    pub mount_ns: Ns,
    /// Decompression, by compressor; none for one without a price.
    pub unpack: UnpackAll,
}

/// Decompression by one compressor.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpackBlockCosts {
    /// A block.
    pub block_ns: Ns,
    /// A compressed byte of what compresses.
    pub packed_byte_ps: u64,
    /// A byte of what does not compress.
    pub kept_byte_ps: u64,
    /// A byte that compression saved.
    pub saved_byte_ps: u64,
}

impl UnpackBlockCosts {
    /// The time of a block that is stored in fewer bytes than it has.
    pub fn time(&self, stored: u32, bytes: u32) -> Ns {
        let (stored, bytes) = (u64::from(stored), u64::from(bytes));
        let kept = stored * stored / bytes;
        let each = [
            (stored - kept, self.packed_byte_ps),
            (kept, self.kept_byte_ps),
            (bytes - stored, self.saved_byte_ps),
        ];
        each.into_iter().fold(self.block_ns, |sum, (bytes, ps)| sum + Ns::from_ps(bytes, ps))
    }
}

/// A price for each compressor.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct UnpackAll {
    pub gzip: Option<UnpackBlockCosts>,
    pub lzo: Option<UnpackBlockCosts>,
    pub xz: Option<UnpackBlockCosts>,
    pub lz4: Option<UnpackBlockCosts>,
    pub zstd: Option<UnpackBlockCosts>,
}

impl UnpackAll {
    /// That of a compressor by its number in the superblock.
    pub fn of(&self, compressor: u16) -> Option<UnpackBlockCosts> {
        match compressor {
            1 => self.gzip,
            3 => self.lzo,
            4 => self.xz,
            5 => self.lz4,
            6 => self.zstd,
            _ => None,
        }
    }
}
