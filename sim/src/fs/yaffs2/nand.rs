//! Chunks on the flash: a page with its tags in the OOB or at its end, the content of both, and the
//! summary at the end of a block.
//!
//! Mirrors yaffs_nand.c, yaffs_summary.c and kernel/yaffs2/nand.c, which calls MTD: one read or
//! program transfers page and tags; tags alone are a read of the OOB, or of the whole page if they
//! are in-band. The simulated flash stores no
//! bytes, so this module keeps the content of tags and headers, 8 bytes a page. Left out: bit
//! errors in tags.
//!
//! Invariants:
//! 1. `tags` is what a mount would find. Erased pages have none.
//! 2. All chunks of a block have the block's sequence number.

use super::kind::Kind;
use super::{Chunk, Yaffs2};
use crate::causes::{Cause, Causes};
use crate::content::Contents;
use crate::flash::{Done, Failed, Fault};
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::collections::BTreeMap;

/// struct yaffs_summary_tags and yaffs_summary_header.
const SUMMARY_TAGS_BYTES: u32 = 12;
const SUMMARY_HEADER_BYTES: u32 = 16;
/// YAFFS_OBJECTID_SUMMARY.
pub(super) const SUMMARY: u32 = 0x10;

/// Tags after a power cut: neither erased nor readable.
const TORN: u64 = u64::MAX;

/// Of an object number; create_object refuses larger ones.
pub(super) const OBJECT_BITS: u32 = 18;
const CHUNK_BITS: u32 = 28;

/// struct yaffs_ext_tags: the object, the chunk of it (0 is its header), and the bytes used in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tags {
    pub object: u32,
    pub chunk: u32,
    pub bytes: u32,
}

impl Tags {
    fn packed(self) -> u64 {
        assert!(self.object >> OBJECT_BITS == 0 && self.chunk >> CHUNK_BITS == 0, "checked before");
        u64::from(self.object)
            | u64::from(self.chunk) << OBJECT_BITS
            | u64::from(self.bytes) << (OBJECT_BITS + CHUNK_BITS)
    }

    fn unpacked(word: u64) -> Option<Tags> {
        let field = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as u32;
        (word != 0 && word != TORN).then(|| Tags {
            object: field(0, OBJECT_BITS),
            chunk: field(OBJECT_BITS, CHUNK_BITS),
            bytes: (word >> (OBJECT_BITS + CHUNK_BITS)) as u32,
        })
    }
}

/// struct yaffs_obj_hdr: the content of an object's header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub kind: Kind,
    pub parent: u32,
    pub name: String,
    pub size_bytes: u64,
    /// The file was truncated or has a hole: older data beyond this size are invalid.
    pub is_shrink: bool,
    /// The object whose name it takes, which is about to be deleted; 0 is none.
    pub shadows: u32,
}

/// The content of a chunk besides its tags.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    Header(Header),
    /// The bytes; kept where the power can fail.
    Data(Option<Contents>),
    /// Summaries and checkpoints, whose content is kept elsewhere.
    Other,
}

/// The chunks of a block that the summary at its end covers, or will cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// The first one covered. Those before it were written before the mount, so their tags are not
    /// in memory.
    pub from: u32,
}

/// The content of the flash.
#[derive(Clone, Debug)]
pub(super) struct OnFlash {
    /// By page of the partition; 0 is erased.
    tags: Vec<u64>,
    /// By block of the partition, from its first chunk; 0 is erased.
    sequence: Vec<u32>,
    pub summaries: Vec<Option<Summary>>,
    pub headers: BTreeMap<Chunk, Header>,
    pub contents: BTreeMap<Chunk, Contents>,
    pages_per_block: u32,
}

impl OnFlash {
    pub fn new(blocks: u32, pages_per_block: u32) -> OnFlash {
        OnFlash {
            tags: vec![0; (blocks * pages_per_block) as usize],
            sequence: vec![0; blocks as usize],
            summaries: vec![None; blocks as usize],
            headers: BTreeMap::new(),
            contents: BTreeMap::new(),
            pages_per_block,
        }
    }

    /// The core counts blocks from 1.
    #[inline]
    fn page(&self, chunk: Chunk) -> usize {
        (chunk - self.pages_per_block) as usize
    }

    /// The tags of a chunk, if it was programmed.
    #[inline]
    pub fn tags(&self, chunk: Chunk) -> Option<Tags> {
        Tags::unpacked(self.tags[self.page(chunk)])
    }

    /// Whether a chunk can still be programmed.
    #[inline]
    pub fn is_erased(&self, chunk: Chunk) -> bool {
        self.tags[self.page(chunk)] == 0
    }

    /// Makes the tags of a chunk unreadable: its program failed, or the power failed while it was
    /// programmed or while the block that begins with it was erased.
    pub fn tear(&mut self, chunk: Chunk) {
        let page = self.page(chunk);
        self.tags[page] = TORN;
    }

    /// The sequence number in the tags of a block, counted from 1.
    pub fn sequence(&self, block: u32) -> u32 {
        self.sequence[block as usize - 1]
    }

    pub fn summary(&self, block: u32) -> Option<Summary> {
        self.summaries[block as usize - 1]
    }

    fn put(&mut self, chunk: Chunk, tags: Tags, sequence: u32, payload: Payload) {
        let page = self.page(chunk);
        self.tags[page] = tags.packed();
        self.sequence[page / self.pages_per_block as usize] = sequence;
        match payload {
            Payload::Header(header) => {
                self.headers.insert(chunk, header);
            }
            Payload::Data(Some(contents)) => {
                self.contents.insert(chunk, contents);
            }
            Payload::Data(None) | Payload::Other => {}
        }
    }

    /// Erases a block. If the power failed during the erase, nothing is readable either.
    pub fn clear(&mut self, block: u32) {
        let (first, behind) = (block * self.pages_per_block, (block + 1) * self.pages_per_block);
        let pages = self.page(first)..self.page(first) + self.pages_per_block as usize;
        self.tags[pages].fill(0);
        self.sequence[block as usize - 1] = 0;
        self.summaries[block as usize - 1] = None;
        for chunk in self.headers.range(first..behind).map(|(&chunk, _)| chunk).collect::<Vec<_>>()
        {
            self.headers.remove(&chunk);
        }
        for chunk in self.contents.range(first..behind).map(|(&chunk, _)| chunk).collect::<Vec<_>>()
        {
            self.contents.remove(&chunk);
        }
    }
}

/// Chunks of a block before its summary; all of them if the summary would be too long.
pub(super) fn chunks_per_summary(pages_per_block: u32, chunk_bytes: u32) -> u32 {
    let tags = pages_per_block * SUMMARY_TAGS_BYTES + chunk_bytes - 1;
    pages_per_block - tags / (chunk_bytes - SUMMARY_HEADER_BYTES)
}

/// The ECC result of a read (enum yaffs_ecc_result).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ecc {
    Fine,
    Fixed,
    Unfixed,
}

impl<D: NandDriver> Yaffs2<D> {
    pub(super) fn offset(&self, chunk: Chunk) -> u64 {
        u64::from(chunk - self.pages_per_block) * u64::from(self.mtd.page_bytes())
    }

    /// The result of mtd_read_oob for the core. Only a power cut is an error.
    fn ecc_of(&self, done: Done) -> Result<(Ecc, Ns)> {
        match done {
            Ok(now) if self.mtd.is_unclean() => Ok((Ecc::Fixed, now)),
            Ok(now) => Ok((Ecc::Fine, now)),
            Err(Failed { at, fault: Fault::Uncorrectable }) => Ok((Ecc::Unfixed, at)),
            Err(failed) => Err(failed.into()),
        }
    }

    /// read_chunk of kernel/yaffs2/nand.c, data and tags, without the core's bookkeeping.
    #[inline]
    pub(super) fn read_quietly(&mut self, now: Ns, chunk: Chunk) -> Result<(Ecc, Ns)> {
        let now = now + self.mtd.costs().yaffs2_chunk_ns;
        let done = if self.has_inband_tags() {
            self.mtd.read(now, self.offset(chunk), self.mtd.page_bytes())
        } else {
            self.mtd.read_with_oob(now, self.offset(chunk), 1)
        };
        let (ecc, now) = self.ecc_of(done)?;
        self.might_resched_locked(now);
        Ok((ecc, now))
    }

    /// The same for the tags alone.
    pub(super) fn read_tags_quietly(&mut self, now: Ns, chunk: Chunk) -> Result<Ns> {
        let now = if self.has_inband_tags() {
            let done = self.mtd.read(now, self.offset(chunk), self.mtd.page_bytes());
            self.ecc_of(done)?.1
        } else {
            self.mtd.read_oob(now, self.offset(chunk), 1)?
        };
        self.might_resched_locked(now);
        Ok(now)
    }

    /// yaffs_rd_chunk_tags_nand with a buffer. A block with bit errors becomes the next one to
    /// collect.
    #[inline]
    pub(super) fn read_chunk(&mut self, now: Ns, chunk: Chunk) -> Result<(Ecc, Ns)> {
        let (ecc, now) = self.read_quietly(now, chunk)?;
        if ecc > Ecc::Fine {
            self.handle_chunk_error(chunk / self.pages_per_block);
        }
        Ok((ecc, now))
    }

    /// yaffs_wr_chunk_tags_nand, which writes the summary after the last chunk before it. Returns
    /// whether the program succeeded.
    pub(super) fn write_chunk(
        &mut self,
        now: Ns,
        chunk: Chunk,
        (tags, payload): (Tags, Payload),
        causes: Causes,
    ) -> Result<(bool, Ns)> {
        let (written, now) = self.program(now, chunk, (tags, payload), self.sequence, causes)?;
        let now = self.add_to_summary(now, chunk)?;
        Ok((written, now))
    }

    /// write_chunk of kernel/yaffs2/nand.c.
    pub(super) fn program(
        &mut self,
        now: Ns,
        chunk: Chunk,
        (tags, payload): (Tags, Payload),
        sequence: u32,
        causes: Causes,
    ) -> Result<(bool, Ns)> {
        let now = now + self.mtd.costs().yaffs2_chunk_ns;
        let done = if self.has_inband_tags() {
            self.mtd.write_for(now, self.offset(chunk), self.mtd.page_bytes(), &causes)
        } else {
            self.mtd.write_with_oob(now, self.offset(chunk), causes)
        };
        let (written, now) = match done {
            Ok(now) => {
                self.on_flash.put(chunk, tags, sequence, payload);
                (true, now)
            }
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                self.on_flash.tear(chunk);
                (false, at)
            }
            Err(failed) => return Err(failed.into()),
        };
        self.might_resched_locked(now);
        Ok((written, now))
    }

    /// The causes of a chunk without the program's data.
    pub(super) fn metadata(&self) -> Causes {
        Causes::of(Cause::Metadata, self.mtd.page_bytes())
    }

    /// yaffs_summary_add.
    fn add_to_summary(&mut self, mut now: Ns, chunk: Chunk) -> Result<Ns> {
        if chunk % self.pages_per_block + 1 != self.chunks_per_summary {
            return Ok(now);
        }
        let block = chunk / self.pages_per_block;
        let mut whole = true;
        let left = self.pages_per_block - self.chunks_per_summary;
        for number in 0..left {
            let at = block * self.pages_per_block + self.chunks_per_summary + number;
            let tags = Tags { object: SUMMARY, chunk: number + 1, bytes: 0 };
            let causes = self.metadata();
            let (written, later) =
                self.program(now, at, (tags, Payload::Other), self.sequence, causes)?;
            now = later;
            if !written {
                whole = false;
                break;
            }
            self.set_in_use(at, true);
            self.blocks.get_mut(block).pages_in_use += 1;
            self.free_chunks -= 1;
        }
        if whole {
            self.blocks.get_mut(block).has_summary = true;
            self.on_flash.summaries[block as usize - 1] = Some(Summary { from: self.summary_from });
        }
        self.summary_from = 0;
        self.skip_rest_of_block();
        Ok(now)
    }

    /// mtd_erase of a block counted from 1; returns whether it succeeded.
    pub(super) fn erase(&mut self, now: Ns, block: u32) -> Result<(bool, Ns)> {
        let (erased, now) = match self.mtd.erase(now, block - 1) {
            Ok(now) => {
                self.on_flash.clear(block);
                (true, now)
            }
            Err(Failed { at, fault: Fault::EraseFailed }) => (false, at),
            Err(failed) => return Err(failed.into()),
        };
        self.might_resched_locked(now);
        Ok((erased, now))
    }

    /// mtd_block_markbad, which tries to erase the block first.
    pub(super) fn mark_bad(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let erases = self.mtd.block_erases(block - 1);
        let now = match self.mtd.mark_bad(now, block - 1) {
            Ok(now) => now,
            Err(failed @ Failed { fault: Fault::PowerLost, .. }) => return Err(failed.into()),
            Err(Failed { at, .. }) => at,
        };
        if self.mtd.block_erases(block - 1) > erases {
            self.on_flash.clear(block);
        }
        self.might_resched_locked(now);
        Ok(now)
    }
}
