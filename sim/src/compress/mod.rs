//! How small the kernel's compressors make what a file system writes, and how much of it goes into one node.
//!
//! Mirrors fs/jffs2/compr.c in its priority mode with compr_lzo.c, compr_zlib.c and compr_rtime.c, and fs/ubifs/compress.c with
//! the crypto API's "lzo", "deflate" and "zstd", of Linux 6.1, to the byte. Which compressors a kernel has is for the caller to
//! say. docs/compression.md says how it was checked.
//!
//! Only sizes are computed. Left out: JFFS2's other modes and its rubin compressors; "lzo-rle"; zstd but of 5.16 to 6.1.
//!
//! Invariant: what is given depends on the bytes alone; the fields here are space to work in.

mod deflate;
mod huffman;
mod lzo;
mod lzo202;
mod rtime;
mod zstd;

use crate::content::Contents;
use deflate::Deflate;
use lzo::Lzo;
pub use lzo::LzoWork;
use lzo202::Lzo202;
use serde::Deserialize;
pub use zstd::ZstdWork;
use zstd::{work_on_random, Zstd};

/// A page of the page cache, a block of UBIFS: compressors are never given more.
pub const PAGE_BYTES_MAX: usize = 4096;

/// Random bytes of this length or more are not compressed by any of the compressors here: of fewer, one run of rtime may
/// take up less than the bytes it stands for (docs/compression.md has the odds).
const RANDOM_BYTES_MIN: u64 = 64;

/// UBIFS does not try what is shorter (`UBIFS_MIN_COMPR_LEN`).
const UBIFS_BYTES_MIN: u32 = 128;
/// And keeps what it saves only if it is this much (`UBIFS_MIN_COMPRESS_DIFF`).
const UBIFS_SAVED_BYTES_MIN: usize = 64;

/// A compressor of JFFS2, as CONFIG_JFFS2_* has them; the first has the highest priority.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Jffs2Compressor {
    /// CONFIG_JFFS2_LZO, since 3.9.
    Lzo,
    /// The same before.
    #[serde(rename = "lzo-2.02")]
    Lzo202,
    /// CONFIG_JFFS2_ZLIB.
    Zlib,
    /// CONFIG_JFFS2_RTIME.
    Rtime,
}

impl Jffs2Compressor {
    const BY_PRIORITY: [Jffs2Compressor; 4] = [
        Jffs2Compressor::Lzo,
        Jffs2Compressor::Lzo202,
        Jffs2Compressor::Zlib,
        Jffs2Compressor::Rtime,
    ];
}

/// The compressor of a UBIFS volume, as `ubifs_default_compr` or the option `compr=` names it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum UbifsCompressor {
    /// Data nodes hold the bytes as they are.
    None,
    /// LZO1X-1, since 3.9.
    Lzo,
    /// The same before.
    #[serde(rename = "lzo-2.02")]
    Lzo202,
    /// Raw deflate, level 6, a window of 2 KiB.
    Zlib,
    /// zstd 1.4.10, level 3: kernels 5.16 to 6.1. Those before and after have other versions and other sizes.
    #[serde(rename = "zstd-1.4.10")]
    Zstd,
}

impl UbifsCompressor {
    /// What becomes of random bytes, for which nothing need be in memory: a whole page, or any of them where it is not zstd.
    pub fn of_random(self, length: usize) -> UbifsData {
        let is_zstd = self == UbifsCompressor::Zstd;
        UbifsData {
            node_bytes: length,
            work: is_zstd.then(|| work_on_random(&[0; PAGE_BYTES_MAX])),
        }
    }
}

/// What goes into one data node of JFFS2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jffs2Data {
    /// Bytes of the file (`dsize`): fewer than there were if the block has no room for more.
    pub file_bytes: usize,
    /// Bytes in the node (`csize`).
    pub node_bytes: usize,
    /// None of them if it did not get smaller.
    pub compressor: Option<Jffs2Compressor>,
    /// Of LZO since 3.9, what it had to do, if the node is its.
    pub work: Option<LzoWork>,
}

impl Jffs2Data {
    /// Bytes that no compressor makes smaller.
    fn as_it_is(bytes: usize) -> Jffs2Data {
        Jffs2Data { file_bytes: bytes, node_bytes: bytes, compressor: None, work: None }
    }
}

/// What goes into one data node of UBIFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UbifsData {
    /// Bytes in the node.
    pub node_bytes: usize,
    /// Of zstd, what it had to do; none where nothing was tried.
    pub work: Option<ZstdWork>,
}

/// Compressors and the memory they work in.
pub struct Compressors {
    lzo: Lzo,
    lzo202: Lzo202,
    deflate: Deflate,
    zstd: Zstd,
    page: Vec<u8>,
}

impl Default for Compressors {
    fn default() -> Self {
        Compressors::new()
    }
}

impl Compressors {
    /// Memory for all of them.
    pub fn new() -> Compressors {
        let page = Vec::with_capacity(PAGE_BYTES_MAX);
        Compressors {
            lzo: Lzo::new(),
            lzo202: Lzo202::new(),
            deflate: Deflate::new(),
            zstd: Zstd::new(),
            page,
        }
    }

    /// `jffs2_compress` by the compressors a kernel has, of bytes `start..end` of a file, for a node with room for `room`
    /// bytes of data (`alloclen - sizeof(ri)`).
    pub fn jffs2(
        &mut self,
        available: &[Jffs2Compressor],
        contents: &Contents,
        start: u64,
        end: u64,
        room: usize,
    ) -> Jffs2Data {
        let room = room.min((end - start) as usize);
        if room as u64 >= RANDOM_BYTES_MIN && contents.is_random(start, end) {
            return Jffs2Data::as_it_is(room);
        }
        self.load(contents, start, end);
        let page = core::mem::take(&mut self.page);
        let data = self.jffs2_bytes(available, &page, room);
        self.page = page;
        data
    }

    /// The same of bytes at hand.
    pub fn jffs2_bytes(
        &mut self,
        available: &[Jffs2Compressor],
        bytes: &[u8],
        room: usize,
    ) -> Jffs2Data {
        let room = room.min(bytes.len());
        let by_priority = Jffs2Compressor::BY_PRIORITY.into_iter();
        by_priority
            .filter(|compressor| available.contains(compressor))
            .find_map(|compressor| {
                let (file_bytes, node_bytes) = match compressor {
                    Jffs2Compressor::Lzo => all_or_nothing(self.lzo.size(bytes), bytes, room),
                    Jffs2Compressor::Lzo202 => all_or_nothing(self.lzo202.size(bytes), bytes, room),
                    Jffs2Compressor::Zlib => self.deflate.jffs2(bytes, room),
                    Jffs2Compressor::Rtime => rtime::compress(bytes, room),
                }?;
                let work = (compressor == Jffs2Compressor::Lzo).then(|| self.lzo.work());
                Some(Jffs2Data { file_bytes, node_bytes, compressor: Some(compressor), work })
            })
            .unwrap_or(Jffs2Data::as_it_is(room))
    }

    /// A data node of UBIFS that holds bytes `start..end` of a file (`ubifs_compress`).
    pub fn ubifs(
        &mut self,
        compressor: UbifsCompressor,
        contents: &Contents,
        start: u64,
        end: u64,
    ) -> UbifsData {
        let (length, is_zstd) = ((end - start) as usize, compressor == UbifsCompressor::Zstd);
        if compressor == UbifsCompressor::None || length < UBIFS_BYTES_MIN as usize {
            return UbifsData { node_bytes: length, work: None };
        }
        let random = contents.is_random(start, end);
        if random && (length == PAGE_BYTES_MAX || !is_zstd) {
            return compressor.of_random(length);
        }
        self.load(contents, start, end);
        let page = core::mem::take(&mut self.page);
        let data = if random {
            UbifsData { node_bytes: length, work: Some(work_on_random(&page)) }
        } else {
            let node_bytes = self.ubifs_bytes(compressor, &page);
            UbifsData { node_bytes, work: is_zstd.then(|| self.zstd.work()) }
        };
        self.page = page;
        data
    }

    fn ubifs_bytes(&mut self, compressor: UbifsCompressor, bytes: &[u8]) -> usize {
        let size = match compressor {
            UbifsCompressor::None => return bytes.len(),
            UbifsCompressor::Lzo => self.lzo.size(bytes),
            UbifsCompressor::Lzo202 => self.lzo202.size(bytes),
            UbifsCompressor::Zlib => self.deflate.crypto(bytes),
            UbifsCompressor::Zstd => self.zstd.size(bytes),
        };
        if size + UBIFS_SAVED_BYTES_MIN <= bytes.len() {
            size
        } else {
            bytes.len()
        }
    }

    fn load(&mut self, contents: &Contents, start: u64, end: u64) {
        self.page.resize((end - start) as usize, 0);
        contents.fill(start, &mut self.page);
    }
}

/// LZO takes all or nothing, and need not save a byte.
fn all_or_nothing(size: usize, bytes: &[u8], room: usize) -> Option<(usize, usize)> {
    (size <= room).then_some((bytes.len(), size))
}
