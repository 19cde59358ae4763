//! The kernel's compressors: how small they make what a file system writes, and how much fits into
//! one node.
//!
//! Mirrors fs/jffs2/compr.c in its priority mode with compr_lzo.c, compr_zlib.c and compr_rtime.c,
//! and fs/ubifs/compress.c with the crypto API's "lzo", "deflate" and "zstd", of Linux 6.1, to the
//! byte. The caller says which compressors a kernel has. docs/models/compression.md says how this
//! was checked.
//!
//! Only sizes are computed. Left out: JFFS2's other modes and its rubin compressors; "lzo-rle";
//! zstd other than that of 5.16 to 6.1.
//!
//! Invariant: a result depends only on the input bytes. All fields here are working memory.

mod deflate;
mod huffman;
mod lzo;
mod lzo202;
mod rtime;
pub mod work;
mod zstd;

use crate::content::Contents;
use deflate::Deflate;
use lzo::Lzo;
use lzo202::Lzo202;
use serde::Deserialize;
use work::{Packing, Work};
use zstd::Zstd;

/// A page of the page cache, or a block of UBIFS: the most input of a compressor.
pub const PAGE_BYTES_MAX: usize = 4096;

/// From this length on no compressor here makes random bytes smaller. In fewer bytes a run of rtime
/// may save space (docs/models/compression.md has the probability).
const RANDOM_BYTES_MIN: u64 = 64;

/// UBIFS does not compress less (`UBIFS_MIN_COMPR_LEN`).
pub const UBIFS_BYTES_MIN: u32 = 128;
/// UBIFS keeps a result only if it saves at least this much (`UBIFS_MIN_COMPRESS_DIFF`).
const UBIFS_SAVED_BYTES_MIN: usize = 64;

/// Whether bytes `start..end` of a file are random, and so many of them go into a node that no
/// compressor of JFFS2 saves anything. Their number and `room` then decide the result.
pub fn is_random_for_jffs2(contents: &Contents, start: u64, end: u64, room: usize) -> bool {
    (room as u64).min(end - start) >= RANDOM_BYTES_MIN && contents.is_random(start, end)
}

/// A compressor of JFFS2, by CONFIG_JFFS2_*; the first has the highest priority.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Jffs2Compressor {
    /// CONFIG_JFFS2_LZO, since 3.9.
    Lzo,
    /// CONFIG_JFFS2_LZO, before 3.9.
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

    /// What decompresses its nodes.
    pub const fn packing(self) -> Packing {
        match self {
            Jffs2Compressor::Lzo => Packing::Lzo,
            Jffs2Compressor::Lzo202 => Packing::Lzo202,
            Jffs2Compressor::Zlib => Packing::Deflate,
            Jffs2Compressor::Rtime => Packing::Rtime,
        }
    }
}

/// The compressor of a UBIFS volume, as `ubifs_default_compr` or the option `compr=` names it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum UbifsCompressor {
    /// Data nodes hold the bytes as they are.
    None,
    /// LZO1X-1, since 3.9.
    Lzo,
    /// LZO1X-1, before 3.9.
    #[serde(rename = "lzo-2.02")]
    Lzo202,
    /// Raw deflate, level 6, a window of 2 KiB.
    Zlib,
    /// zstd 1.4.10, level 3: kernels 5.16 to 6.1. Other kernels have other versions, with other
    /// sizes.
    #[serde(rename = "zstd-1.4.10")]
    Zstd,
}

impl UbifsCompressor {
    /// The result for random bytes, without memory: for a whole page, or for any number with a
    /// compressor other than zstd.
    pub fn of_random(self, length: usize) -> UbifsData {
        let mut work = Work::default();
        match self {
            UbifsCompressor::None => {}
            UbifsCompressor::Lzo => work.lzo = Some(lzo::work_on_random(length)),
            UbifsCompressor::Lzo202 => work.lzo_2_02 = Some(lzo202::work_on_random(length)),
            UbifsCompressor::Zlib => work.deflate = Some(deflate::crypto_work_on_random(length)),
            UbifsCompressor::Zstd => work.zstd = Some(zstd::work_on_random(&[0; PAGE_BYTES_MAX])),
        }
        UbifsData { node_bytes: length, work }
    }

    /// What decompresses its nodes.
    pub const fn packing(self) -> Option<Packing> {
        match self {
            UbifsCompressor::None => None,
            UbifsCompressor::Lzo => Some(Packing::Lzo),
            UbifsCompressor::Lzo202 => Some(Packing::Lzo202),
            UbifsCompressor::Zlib => Some(Packing::Deflate),
            UbifsCompressor::Zstd => Some(Packing::Zstd),
        }
    }
}

/// The payload of a data node of JFFS2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jffs2Data {
    /// Bytes of the file (`dsize`): fewer than requested if the block has no room for more.
    pub file_bytes: usize,
    /// Bytes in the node (`csize`).
    pub node_bytes: usize,
    /// The compressor; none if it saved nothing.
    pub compressor: Option<Jffs2Compressor>,
    /// The work of all compressors that were tried.
    pub work: Work,
}

impl Jffs2Data {
    /// Bytes stored uncompressed.
    fn as_it_is(bytes: usize) -> Jffs2Data {
        let work = Work::default();
        Jffs2Data { file_bytes: bytes, node_bytes: bytes, compressor: None, work }
    }

    /// Random bytes, of which `room` go into the node after each compressor was tried.
    fn of_random(available: &[Jffs2Compressor], bytes: usize, room: usize) -> Jffs2Data {
        let mut data = Jffs2Data::as_it_is(room);
        let work = &mut data.work;
        for compressor in available {
            match compressor {
                Jffs2Compressor::Lzo => work.lzo = Some(lzo::work_on_random(bytes)),
                Jffs2Compressor::Lzo202 => work.lzo_2_02 = Some(lzo202::work_on_random(bytes)),
                Jffs2Compressor::Zlib => work.deflate = deflate::jffs2_work_on_random(room),
                Jffs2Compressor::Rtime => work.rtime = Some(rtime::work_on_random(bytes, room)),
            }
        }
        data
    }
}

/// The payload of a data node of UBIFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UbifsData {
    /// Bytes in the node.
    pub node_bytes: usize,
    /// The compressor's work; none if it was not tried.
    pub work: Work,
}

/// The compressors with their working memory.
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
    /// Allocates working memory for all of them.
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

    /// `jffs2_compress` of bytes `start..end` of a file with a kernel's compressors, for a node
    /// with `room` bytes for data (`alloclen - sizeof(ri)`).
    pub fn jffs2(
        &mut self,
        available: &[Jffs2Compressor],
        contents: &Contents,
        start: u64,
        end: u64,
        room: usize,
    ) -> Jffs2Data {
        let bytes = (end - start) as usize;
        let room = room.min(bytes);
        if is_random_for_jffs2(contents, start, end, room) {
            return Jffs2Data::of_random(available, bytes, room);
        }
        self.load(contents, start, end);
        let page = core::mem::take(&mut self.page);
        let data = self.jffs2_bytes(available, &page, room);
        self.page = page;
        data
    }

    /// The same for given bytes.
    pub fn jffs2_bytes(
        &mut self,
        available: &[Jffs2Compressor],
        bytes: &[u8],
        room: usize,
    ) -> Jffs2Data {
        let room = room.min(bytes.len());
        let mut data = Jffs2Data::as_it_is(room);
        let by_priority = Jffs2Compressor::BY_PRIORITY.into_iter();
        for compressor in by_priority.filter(|compressor| available.contains(compressor)) {
            if let Some((file_bytes, node_bytes)) =
                self.try_jffs2(compressor, bytes, room, &mut data.work)
            {
                return Jffs2Data { file_bytes, node_bytes, compressor: Some(compressor), ..data };
            }
        }
        data
    }

    /// Tries one of them; returns bytes consumed and produced if that saves space.
    fn try_jffs2(
        &mut self,
        compressor: Jffs2Compressor,
        bytes: &[u8],
        room: usize,
        work: &mut Work,
    ) -> Option<(usize, usize)> {
        match compressor {
            Jffs2Compressor::Lzo => {
                let size = self.lzo.size(bytes);
                work.lzo = Some(self.lzo.work());
                all_or_nothing(size, bytes, room)
            }
            Jffs2Compressor::Lzo202 => {
                let size = self.lzo202.size(bytes);
                work.lzo_2_02 = Some(self.lzo202.work());
                all_or_nothing(size, bytes, room)
            }
            Jffs2Compressor::Zlib => {
                let (sizes, done) = self.deflate.jffs2(bytes, room);
                work.deflate = done;
                sizes
            }
            Jffs2Compressor::Rtime => {
                let (sizes, done) = rtime::compress(bytes, room);
                work.rtime = done;
                sizes
            }
        }
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
            return UbifsData { node_bytes: length, work: Work::default() };
        }
        let random = contents.is_random(start, end);
        if random && (length == PAGE_BYTES_MAX || !is_zstd) {
            return compressor.of_random(length);
        }
        self.load(contents, start, end);
        let page = core::mem::take(&mut self.page);
        let data = if random {
            let work = Work { zstd: Some(zstd::work_on_random(&page)), ..Work::default() };
            UbifsData { node_bytes: length, work }
        } else {
            self.ubifs_bytes(compressor, &page)
        };
        self.page = page;
        data
    }

    fn ubifs_bytes(&mut self, compressor: UbifsCompressor, bytes: &[u8]) -> UbifsData {
        let mut work = Work::default();
        let size = match compressor {
            UbifsCompressor::None => bytes.len(),
            UbifsCompressor::Lzo => {
                let size = self.lzo.size(bytes);
                work.lzo = Some(self.lzo.work());
                size
            }
            UbifsCompressor::Lzo202 => {
                let size = self.lzo202.size(bytes);
                work.lzo_2_02 = Some(self.lzo202.work());
                size
            }
            UbifsCompressor::Zlib => {
                let size = self.deflate.crypto(bytes);
                work.deflate = Some(self.deflate.work());
                size
            }
            UbifsCompressor::Zstd => {
                let size = self.zstd.size(bytes);
                work.zstd = Some(self.zstd.work());
                size
            }
        };
        let saves = size + UBIFS_SAVED_BYTES_MIN <= bytes.len();
        UbifsData { node_bytes: if saves { size } else { bytes.len() }, work }
    }

    /// The compressed size, whether or not a file system would keep the result. None for the
    /// compressor that does nothing.
    pub fn size(&mut self, compressor: UbifsCompressor, bytes: &[u8]) -> Option<usize> {
        match compressor {
            UbifsCompressor::None => None,
            UbifsCompressor::Lzo => Some(self.lzo.size(bytes)),
            UbifsCompressor::Lzo202 => Some(self.lzo202.size(bytes)),
            UbifsCompressor::Zlib => Some(self.deflate.crypto(bytes)),
            UbifsCompressor::Zstd => Some(self.zstd.size(bytes)),
        }
    }

    fn load(&mut self, contents: &Contents, start: u64, end: u64) {
        self.page.resize((end - start) as usize, 0);
        contents.fill(start, &mut self.page);
    }
}

/// LZO consumes all bytes or none, and need not save space.
fn all_or_nothing(size: usize, bytes: &[u8], room: usize) -> Option<(usize, usize)> {
    (size <= room).then_some((bytes.len(), size))
}
