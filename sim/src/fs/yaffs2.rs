//! YAFFS2: chunks of one flash page, each with its tags in the OOB.
//!
//! Mirrors yaffs_guts.c and linux/yaffs_vfs of the version the read-ahead paper used (commit
//! bc76682d9395, 2013-07-11; constants as in the Linux glue). A 4 KiB page of the page cache is two
//! chunks on 2 KiB pages, each read with its tags by one command. Every write goes through the
//! short-op cache of ten chunks; when all are dirty, the file's dirty chunks go out in order.
//!
//! Left out so far: garbage collection, checkpoints, background directory updates, truncate,
//! unlink, rename, mount. docs/yaffs2.md has the list.
//!
//! Invariants:
//! 1. Chunks of a block are written in order; the last is the block's summary.
//! 2. A chunk is in the short-op cache at most once.

use crate::causes::{Cause, Causes};
use crate::chip::Flash;
use crate::fs::{
    FlashFs, Found, FsError, Ino, Name, PageCache, PageWrite, Rename, Result, PAGE_BYTES,
};
use crate::mtd::Mtd;
use crate::units::Ns;
use std::collections::VecDeque;

/// n_caches of the Linux glue.
const CACHES: usize = 10;
/// n_reserved_blocks: kept back for the collector.
const RESERVED_BLOCKS: u32 = 5;
/// YAFFS_MIN_YAFFS2_CHUNK_SIZE and YAFFS_MIN_YAFFS2_SPARE_SIZE, below which the Linux glue refuses.
const CHUNK_BYTES_MIN: u32 = 1024;
const SPARE_BYTES_MIN: u32 = 64;
/// struct yaffs_summary_tags and yaffs_summary_header.
const SUMMARY_TAGS_BYTES: u32 = 12;
const SUMMARY_HEADER_BYTES: u32 = 16;

/// A chunk's place: its page within the partition.
type ChunkId = u32;

#[derive(Clone, Debug, Default)]
struct File {
    /// tnodes: the chunk of every chunk-sized piece of the file.
    chunks: Vec<Option<ChunkId>>,
    /// The object header has to be written again.
    dirty: bool,
}

/// An entry of the short-op cache.
#[derive(Clone, Copy, Debug)]
struct CachedChunk {
    ino: Ino,
    chunk: u32,
    dirty: bool,
}

/// A mounted YAFFS2.
#[derive(Clone, Debug)]
pub struct Yaffs2<F> {
    mtd: Mtd<F>,
    files: Vec<File>,
    /// Least recently used first.
    cache: VecDeque<CachedChunk>,
    next_page: u32,
    pages_per_block: u32,
    chunks_per_summary: u32,
}

impl<F: Flash> Yaffs2<F> {
    /// An erased partition is an empty YAFFS2: mounts it.
    pub fn format(mtd: Mtd<F>, now: Ns) -> Result<(Self, Ns)> {
        let pages_per_block = mtd.block_bytes() / mtd.page_bytes();
        if mtd.blocks() <= RESERVED_BLOCKS + 1 {
            let message = format!(
                "yaffs2 needs a partition of at least {} blocks, this one has {}",
                RESERVED_BLOCKS + 2,
                mtd.blocks()
            );
            return Err(FsError::too_small(message));
        }
        if PAGE_BYTES % mtd.page_bytes() != 0 {
            return Err(FsError::NotModelled("yaffs2 on flash pages larger than 4 KiB"));
        }
        if mtd.page_bytes() < CHUNK_BYTES_MIN || mtd.oob_bytes() < SPARE_BYTES_MIN {
            return Err(FsError::NotModelled(
                "yaffs2 on flash pages below 1,024 bytes with 64 of OOB, where there is yaffs1,",
            ));
        }
        let tags = pages_per_block * SUMMARY_TAGS_BYTES + mtd.page_bytes() - 1;
        let summary_chunks = tags / (mtd.page_bytes() - SUMMARY_HEADER_BYTES);
        let fs = Yaffs2 {
            files: vec![File::default()],
            cache: VecDeque::with_capacity(CACHES),
            next_page: 0,
            pages_per_block,
            chunks_per_summary: pages_per_block - summary_chunks,
            mtd,
        };
        Ok((fs, now))
    }

    fn chunks_per_page(&self) -> u32 {
        PAGE_BYTES / self.mtd.page_bytes()
    }

    fn file_mut(&mut self, ino: Ino) -> &mut File {
        &mut self.files[ino.0 as usize - 1]
    }

    /// yaffs_alloc_chunk and yaffs_write_new_chunk: the next page; the first of a block is read
    /// once to see that it is erased, and the block's summary follows its last chunk.
    fn write_chunk(&mut self, mut now: Ns, cause: Cause) -> Result<(ChunkId, Ns)> {
        let usable = (self.mtd.blocks() - RESERVED_BLOCKS) * self.pages_per_block;
        if self.next_page >= usable {
            return Err(FsError::NoSpace);
        }
        let page = self.next_page;
        if page % self.pages_per_block == 0 {
            now = self.mtd.read_with_oob(now, self.offset(page), 1)?;
        }
        now = self.program(now, page, cause)?;
        self.next_page += 1;
        if self.next_page % self.pages_per_block == self.chunks_per_summary {
            while self.next_page % self.pages_per_block != 0 {
                now = self.program(now, self.next_page, Cause::Metadata)?;
                self.next_page += 1;
            }
        }
        Ok((page, now))
    }

    fn program(&mut self, now: Ns, page: u32, cause: Cause) -> Result<Ns> {
        let now = now + self.mtd.costs().yaffs2_chunk_ns;
        Ok(self.mtd.write_with_oob(now, self.offset(page), cause)?)
    }

    fn offset(&self, page: u32) -> u64 {
        u64::from(page) * u64::from(self.mtd.page_bytes())
    }

    /// yaffs_rd_data_obj: nothing is read of a piece that was never written.
    #[inline]
    fn read_chunk(&mut self, now: Ns, ino: Ino, chunk: u32) -> Result<Ns> {
        let chunks = &self.files[ino.0 as usize - 1].chunks;
        match chunks.get(chunk as usize).copied().flatten() {
            Some(page) => {
                let now = now + self.mtd.costs().yaffs2_chunk_ns;
                Ok(self.mtd.read_with_oob(now, self.offset(page), 1)?)
            }
            None => Ok(now),
        }
    }

    fn cached(&self, ino: Ino, chunk: u32) -> Option<usize> {
        self.cache.iter().position(|entry| entry.ino == ino && entry.chunk == chunk)
    }

    /// yaffs_grab_chunk_cache: a free or clean entry, or else the oldest one's file is written out.
    fn grab_cache(&mut self, now: Ns) -> Result<Ns> {
        if self.cache.len() < CACHES {
            return Ok(now);
        }
        if let Some(clean) = self.cache.iter().position(|entry| !entry.dirty) {
            self.cache.remove(clean);
            return Ok(now);
        }
        let oldest = self.cache[0].ino;
        self.flush_cache(now, oldest)
    }

    /// yaffs_flush_file_cache: the file's dirty chunks, lowest first, leave the cache.
    fn flush_cache(&mut self, mut now: Ns, ino: Ino) -> Result<Ns> {
        let dirty = |entry: &CachedChunk| entry.ino == ino && entry.dirty;
        let mut chunks: Vec<u32> =
            self.cache.iter().filter(|e| dirty(e)).map(|e| e.chunk).collect();
        chunks.sort_unstable();
        self.cache.retain(|entry| !dirty(entry));
        for chunk in chunks {
            let (page, later) = self.write_chunk(now, Cause::Data)?;
            let file = self.file_mut(ino);
            let index = chunk as usize;
            if file.chunks.len() <= index {
                file.chunks.resize(index + 1, None);
            }
            file.chunks[index] = Some(page);
            now = later;
        }
        Ok(now)
    }

    /// yaffs_flush_file: cached chunks, then the object header if anything changed.
    fn flush_file(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let now = self.flush_cache(now, ino)?;
        if !core::mem::take(&mut self.file_mut(ino).dirty) {
            return Ok(now);
        }
        Ok(self.write_chunk(now, Cause::Metadata)?.1)
    }

    /// yaffs_create_obj: a new object's header is written at once.
    fn make(&mut self, now: Ns) -> Result<(Ino, Ns)> {
        let (_, now) = self.write_chunk(now, Cause::Metadata)?;
        self.files.push(File::default());
        Ok((Ino(self.files.len() as u32), now))
    }
}

impl<F: Flash> FlashFs for Yaffs2<F> {
    type Flash = F;

    fn create(&mut self, now: Ns, _at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now)
    }

    fn mkdir(&mut self, now: Ns, _at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now)
    }

    /// Objects and their tnodes stay in memory for as long as the file system is mounted.
    fn lookup(&mut self, now: Ns, _at: Name<'_>, _found: Option<Ino>) -> Result<Ns> {
        Ok(now)
    }

    /// yaffs_readpage: the page's chunks, unless the short-op cache has them.
    #[inline]
    fn read_page(&mut self, mut now: Ns, ino: Ino, page: u32) -> Result<Ns> {
        let per_page = self.chunks_per_page();
        for chunk in page * per_page..(page + 1) * per_page {
            if self.cached(ino, chunk).is_none() {
                now = self.read_chunk(now, ino, chunk)?;
            }
        }
        Ok(now)
    }

    fn unlink(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's unlink"))
    }

    fn rmdir(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's rmdir"))
    }

    fn rename(&mut self, _: Ns, _: Rename<'_>, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's rename"))
    }

    fn truncate(&mut self, _: Ns, _: Ino, _: u64, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's truncate"))
    }

    fn evict(&mut self, _: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's unlink"))
    }

    fn remount(&mut self, _now: Ns) -> Result<Ns> {
        Err(FsError::NotModelled("yaffs2's remount"))
    }

    fn power_up(&mut self, _now: Ns) -> Result<(Vec<Found>, Ns)> {
        Err(FsError::NotModelled("yaffs2's mount after a power cut"))
    }

    fn writes_back(&self) -> bool {
        false
    }

    /// yaffs_write_begin reads the page unless it is up to date.
    fn write_begin(&mut self, now: Ns, write: PageWrite, _pages: &mut dyn PageCache) -> Result<Ns> {
        if write.cached {
            return Ok(now);
        }
        self.read_page(now, write.ino, write.page)
    }

    /// yaffs_do_file_wr: each chunk into the short-op cache, read first if it exists.
    fn write_page(
        &mut self,
        mut now: Ns,
        write: PageWrite,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let page_bytes = self.mtd.page_bytes();
        let first = write.page * self.chunks_per_page() + write.from / page_bytes;
        let last = write.page * self.chunks_per_page() + (write.to - 1) / page_bytes;
        for chunk in first..=last {
            let entry = CachedChunk { ino: write.ino, chunk, dirty: true };
            match self.cached(write.ino, chunk) {
                Some(index) => {
                    self.cache.remove(index);
                }
                None => {
                    now = self.grab_cache(now)?;
                    now = self.read_chunk(now, write.ino, chunk)?;
                }
            }
            self.cache.push_back(entry);
        }
        self.file_mut(write.ino).dirty = true;
        Ok(now)
    }

    /// The header goes with the file's chunks, in fsync and sync.
    fn write_inode(&mut self, now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn fsync(&mut self, now: Ns, ino: Ino, _inode: bool, _: &mut dyn PageCache) -> Result<Ns> {
        self.flush_file(now, ino)
    }

    fn sync(&mut self, mut now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        for index in 0..self.files.len() {
            now = self.flush_file(now, Ino(index as u32 + 1))?;
        }
        Ok(now)
    }

    fn drop_caches(&mut self, now: Ns, _kept: &[Ino]) -> Result<Ns> {
        Ok(now)
    }

    fn next_due(&self) -> Option<Ns> {
        None
    }

    fn run_due(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn flash(&self) -> &F {
        self.mtd.flash()
    }

    fn causes(&self) -> &Causes {
        self.mtd.causes()
    }

    fn flash_mut(&mut self) -> &mut F {
        self.mtd.flash_mut()
    }

    fn forget_page_buffer(&mut self) {
        self.mtd.forget_page_buffer();
    }

    fn mtd(&self) -> &Mtd<F> {
        &self.mtd
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }
}
