//! YAFFS2: chunks of one flash page, each with its tags in the OOB or at the page's end.
//!
//! Mirrors the core in U-Boot (fs/yaffs2 of U-Boot 2023.01; each module names its files) and the
//! glue in kernel/yaffs2, which does what the Linux glue of July 2013 did, with its constants: 10
//! short-op caches, 5 reserved blocks. With 2 KiB pages a 4 KiB page of the page cache is two
//! chunks. One command reads a chunk with its tags. docs/models/yaffs2.md lists what is left out.
//!
//! Invariants:
//! 1. Chunks of a block are written in order. The last one is the block's summary.
//! 2. Blocks and chunks are numbered as the core numbers a partition that begins with block 0:
//!    blocks from 1, chunks from the first one of block 1. 0 is none.

mod aliases;
mod background;
mod blocks;
mod cache;
mod checkptrw;
mod children;
mod file;
mod gc;
mod kind;
mod nand;
mod object;
mod scan;
mod tasks;
mod tnode;

use crate::errno::ENAMETOOLONG;
use crate::flash::Torn;
use crate::fs::tasks as tasks_of_all;
use crate::fs::{
    Attribute, Features, FlashFs, Found, FsError, Ino, Name, Observed, PageCache, PageWrite,
    Rename, Result, Scheduled, PAGE_BYTES,
};
use crate::ledger::SpaceTable;
use crate::mtd::{Mtd, NandDriver};
use crate::ops::name_len;
use crate::profile::KernelFacts;
use crate::sched::{Sched, Task, Ticks};
use crate::units::Ns;
use crate::victim::Victim;
use background::Thread;
use blocks::Blocks;
use cache::Cache;
use checkptrw::Saved;
use gc::Gc;
use kind::Kind;
use nand::OnFlash;
use object::Objects;
use tasks::Tasks;

/// The number of a chunk on flash; 0 is none.
type Chunk = u32;

/// n_caches and n_reserved_blocks of the Linux glue.
const CACHES: usize = 10;
const RESERVED_BLOCKS: u32 = 5;
/// yaffs_guts_initialise: the last block is more than two after those in reserve, and the first
/// one is block 1.
const BLOCKS_MIN: u32 = RESERVED_BLOCKS + 4;
/// YAFFS_MAX_NAME_LENGTH - 1: the longest name that the Linux glue accepts.
const NAME_BYTES_MAX: usize = 254;
/// Chunks that a program's write has to leave free (write_begin of the glue).
const ALWAYS_FREE_CHUNKS: i64 = 20;
/// YAFFS_MIN_YAFFS2_CHUNK_SIZE, and the OOB bytes needed for tags besides ECC.
const CHUNK_BYTES_MIN: u32 = 1024;
const SPARE_BYTES_MIN: u32 = 64;
/// sizeof(struct yaffs_packed_tags2), and of what of it is in the page if the OOB has no space.
const TAGS_BYTES: u32 = 28;
const INBAND_TAGS_BYTES: u32 = 16;
/// YAFFS_OBJECTID_*. The last two directories are hidden.
const ROOT_OBJECT: u32 = 1;
const LOST_AND_FOUND: u32 = 2;
const UNLINKED: u32 = 3;
const DELETED: u32 = 4;
/// Chunks of a tnode of level 0, tnodes of one of any other level, and YAFFS_MAX_CHUNK_ID: a tree
/// has eight levels of tnodes above the lowest.
const MAX_CHUNK_ID: u64 = (1 << (4 + 8 * 3)) - 1;
const TNODE_CHUNKS: u64 = 16;
const TNODE_POINTERS: u64 = 8;

/// A mounted YAFFS2.
#[derive(Clone, Debug)]
pub struct Yaffs2<D> {
    mtd: Mtd<D>,
    facts: KernelFacts,
    ticks: Ticks,
    pages_per_block: u32,
    /// data_bytes_per_chunk: a page, less its tags if they are in-band.
    chunk_bytes: u32,
    chunks_per_summary: u32,
    tnode_bytes: u64,
    on_flash: OnFlash,
    saved: Option<Box<Saved>>,
    /// The power can fail, so the bytes of chunks are kept.
    remembers: bool,
    blocks: Blocks,
    /// chunk_bits, from the first chunk of the partition.
    in_use: Vec<u64>,
    erased_blocks: u32,
    free_chunks: i64,
    sequence: u32,
    alloc_block: Option<u32>,
    alloc_page: u32,
    alloc_finder: u32,
    /// The first chunk of the block being written that the summary in memory covers.
    summary_from: u32,
    objects: Objects,
    /// Hard links that the current scan has found.
    scanned_names: Vec<u32>,
    tnodes: u32,
    cache: Cache,
    /// Whether n_caches is not 0.
    has_cache: bool,
    gc: Gc,
    /// Chooses the block to collect in the core's place.
    victim: Option<Box<dyn Victim>>,
    /// blocks_in_checkpt.
    checkpoint_blocks: u32,
    is_checkpointed: bool,
    /// Changed since the last sync.
    is_dirty: bool,
    thread: Thread,
    tasks: Tasks,
}

impl<D: NandDriver> Yaffs2<D> {
    /// Mounts an erased partition, which is an empty YAFFS2. Its tags are in the pages with the
    /// option `inband-tags`, and where the OOB has no space for them.
    pub fn format(mtd: Mtd<D>, now: Ns, facts: KernelFacts, inband: bool) -> Result<(Self, Ns)> {
        let pages_per_block = mtd.block_bytes() / mtd.page_bytes();
        if mtd.blocks() < BLOCKS_MIN {
            let message = format!(
                "yaffs2 needs a partition of at least {BLOCKS_MIN} blocks, this one has {}",
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
        let inband = inband || mtd.free_oob_bytes() < TAGS_BYTES;
        let chunk_bytes = mtd.page_bytes() - if inband { INBAND_TAGS_BYTES } else { 0 };
        let pages = mtd.blocks() * pages_per_block;
        let mut fs = Yaffs2 {
            ticks: Ticks::new(facts.ticks_per_second),
            tasks: Tasks::new(mtd.costs().sched_clock_ns, &facts),
            facts,
            pages_per_block,
            chunk_bytes,
            chunks_per_summary: nand::chunks_per_summary(pages_per_block, chunk_bytes),
            tnode_bytes: tnode_bytes(pages + pages_per_block, mtd.costs().pointer_bytes),
            on_flash: OnFlash::new(mtd.blocks(), pages_per_block),
            saved: None,
            remembers: mtd.can_lose_power(),
            blocks: Blocks::new(mtd.blocks()),
            in_use: vec![0; pages.div_ceil(64) as usize],
            erased_blocks: 0,
            free_chunks: 0,
            sequence: 0,
            alloc_block: None,
            alloc_page: 0,
            alloc_finder: 0,
            summary_from: 0,
            objects: Objects::new(),
            scanned_names: Vec::new(),
            tnodes: 0,
            cache: Cache::default(),
            has_cache: true,
            gc: Gc::default(),
            victim: None,
            checkpoint_blocks: 0,
            is_checkpointed: false,
            is_dirty: false,
            thread: Thread::default(),
            mtd,
        };
        let now = fs.mount(now)?;
        Ok((fs, now))
    }

    /// Mounts without a short-op cache, the option `no-cache`. Nothing has been written yet, so the
    /// current mount may change.
    pub fn without_cache(self, has_none: bool) -> Yaffs2<D> {
        Yaffs2 { has_cache: !has_none, ..self }
    }

    /// Whether the tags are in the pages.
    #[inline]
    fn has_inband_tags(&self) -> bool {
        self.chunk_bytes != self.mtd.page_bytes()
    }

    /// yaffs_get_n_free_chunks: free chunks less dirty cache entries, reserved blocks and a
    /// checkpoint.
    fn reported_free_chunks(&self) -> i64 {
        let reserved = RESERVED_BLOCKS + 1 + self.checkpoint_blocks_to_reserve();
        let dirty = self.cache.dirty() as i64;
        (self.free_chunks - dirty - i64::from(reserved * self.pages_per_block)).max(0)
    }
}

/// tnode_size of yaffs_guts_initialise: 16 chunk numbers, as wide as the partition needs, or
/// pointers to eight tnodes.
fn tnode_bytes(chunks: u32, pointer_bytes: u64) -> u64 {
    let bits = u64::from(chunks.next_power_of_two().trailing_zeros().next_multiple_of(2)).max(16);
    (bits * TNODE_CHUNKS / 8).max(pointer_bytes * TNODE_POINTERS)
}

impl<D: NandDriver> FlashFs for Yaffs2<D> {
    type Driver = D;

    fn create(&mut self, now: Ns, at: Name<'_>, _: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at, Kind::File)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, _: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at, Kind::Directory)
    }

    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        if name_len(at.name) > NAME_BYTES_MAX {
            return Err(FsError::Errno(ENAMETOOLONG, now));
        }
        let now = self.locked(now, |fs, now| {
            let (named, now) = fs.find_by_name(now, at)?;
            named.map_or(Ok(now), |number| fs.load_equivalent(now, number))
        })?;
        let is_new = found.is_some_and(|ino| self.iget(ino.0));
        Ok(if is_new { now + self.mtd.costs().yaffs2_inode_ns } else { now })
    }

    #[inline]
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.file_read(now, ino.0, page))
    }

    fn unlink(&mut self, now: Ns, at: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.remove(now, at))
    }

    fn rmdir(&mut self, now: Ns, at: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.remove(now, at))
    }

    fn rename(&mut self, now: Ns, rename: Rename<'_>, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.do_rename(now, rename))
    }

    fn truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        pages.truncate_setsize(ino, size_bytes);
        self.locked(now, |fs, now| fs.set_size(now, ino.0, size_bytes))
    }

    fn evict(&mut self, now: Ns, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| {
            let now = fs.delete_object(now, ino.0)?;
            fs.put_inode(ino.0);
            Ok(now)
        })
    }

    fn remount(&mut self, now: Ns) -> Result<Ns> {
        self.unmount_and_mount(now)
    }

    fn writes_back(&self) -> bool {
        false
    }

    fn write_begin(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        self.begin_write(now, write, pages)
    }

    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.end_write(now, write, pages))
    }

    /// The header is written with the file's chunks, in close, fsync and sync.
    fn write_inode(&mut self, now: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn fsync(&mut self, now: Ns, ino: Ino, inode: bool, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.flush_file(now, ino.0, !inode))
    }

    fn sync(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        self.sync_fs(now)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        let now = self.lock(now)?;
        for number in Vec::from_iter(self.objects.inodes.iter()) {
            if number != ROOT_OBJECT && !kept.contains(&Ino(number)) {
                self.put_inode(number);
            }
        }
        self.unlock(now);
        Ok(now)
    }

    fn inodes_in_memory(&self) -> u64 {
        (self.objects.inodes.len() - usize::from(self.objects.inodes.contains(ROOT_OBJECT))) as u64
    }

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    /// yaffs_max_file_size.
    fn max_file_bytes(&self) -> u64 {
        MAX_CHUNK_ID * u64::from(self.chunk_bytes)
    }
}

impl<D: NandDriver> Features for Yaffs2<D> {
    fn symlink(
        &mut self,
        now: Ns,
        at: Name<'_>,
        target: &str,
        _: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        self.make_link(now, at, target)
    }

    fn link(&mut self, now: Ns, at: Name<'_>, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.add_name(now, at, ino.0))
    }

    fn get_link(&mut self, now: Ns, _: Ino) -> Result<Ns> {
        self.locked(now, |_, now| Ok(now))
    }

    fn set_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        _: Attribute,
        _: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.locked(now, |fs, now| fs.change_attribute(now, ino.0))
    }

    fn read_dir(&mut self, now: Ns, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.locked(now, |fs, now| fs.read_entries(now, ino.0))
    }

    fn listed_ns(&self) -> Ns {
        self.mtd.costs().yaffs2_listed_ns
    }

    fn lost_and_found(&self) -> Option<(&'static str, Ino)> {
        Some((object::LOST_AND_FOUND_NAME, Ino(LOST_AND_FOUND)))
    }

    fn check_dir_empty(&mut self, now: Ns, _: Ino, names: &[Name<'_>]) -> Result<Ns> {
        self.locked(now, |fs, now| fs.find_changeable(now, names))
    }

    /// filemap_page_mkwrite.
    fn page_mkwrite(
        &mut self,
        now: Ns,
        ino: Ino,
        _page: u32,
        new_time: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if new_time {
            pages.mark_inode_dirty(now, ino, false);
            return Ok(now + self.mtd.costs().time_update_ns);
        }
        Ok(now)
    }

    /// yfs_dir_fops has none.
    fn flush(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        if self.object(ino.0).is_directory() {
            return Ok(now);
        }
        self.locked(now, |fs, now| fs.flush_file(now, ino.0, false))
    }
}

impl<D: NandDriver> Observed for Yaffs2<D> {
    fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        self.mount_after_power_cut(now, torn)
    }

    /// yaffs_do_statfs.
    fn space(&self) -> Option<SpaceTable> {
        let (blocks, bad) = (self.mtd.blocks(), self.mtd.bad_blocks());
        let (chunk_bytes, block_bytes) = (self.chunk_bytes, self.mtd.block_bytes());
        let chunks = |blocks: u32| i64::from(blocks) * i64::from(self.pages_per_block);
        let bytes = |chunks: i64| chunks * i64::from(chunk_bytes);
        let mut table = SpaceTable::new(u64::from(blocks) * u64::from(block_bytes));
        table.take_units("yaffs2", "bad blocks", bad, block_bytes);
        let tags_bytes = i64::from(self.mtd.page_bytes() - chunk_bytes);
        table.take("yaffs2", "tags in pages", chunks(blocks - bad) * tags_bytes);
        table.take("yaffs2", "files", bytes(chunks(blocks - bad) - self.free_chunks));
        table.take("yaffs2", "short-op cache", bytes(self.cache.dirty() as i64));
        let block_bytes = self.pages_per_block * chunk_bytes;
        for (name, blocks) in [
            ("garbage collection", RESERVED_BLOCKS),
            ("block in use", 1),
            ("checkpoint", self.checkpoint_blocks_to_reserve()),
        ] {
            table.take_reserve("yaffs2", name, blocks, block_bytes);
        }
        table.round_to_pages("yaffs2", PAGE_BYTES);
        table.size_bytes =
            bytes(chunks(blocks)) as u64 / u64::from(PAGE_BYTES) * u64::from(PAGE_BYTES);
        Some(table)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.victim = Some(victim);
        true
    }

    /// pages_in_use of each struct yaffs_block_info; a block of the checkpoint as a whole.
    fn live_bytes(&self, live: &mut [u32]) -> bool {
        let (page_bytes, block_bytes) = (self.mtd.page_bytes(), self.mtd.block_bytes());
        for ((_, block), bytes) in self.blocks.iter().zip(live) {
            *bytes += match block.state {
                blocks::State::Checkpoint => block_bytes,
                _ => block.pages_in_use * page_bytes,
            };
        }
        true
    }
}

impl<D: NandDriver> Scheduled for Yaffs2<D> {
    fn next_due(&self) -> Option<Ns> {
        self.thread_due()
    }

    fn run_due(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        self.is_shared(now);
        Ok(now)
    }

    fn run_thread(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        self.run_thread(now)
    }

    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.mtd.set_task(task.unwrap_or(Task::Background));
        std::mem::replace(&mut self.tasks.foreground, task)
    }

    fn call_sleep(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Option<(Ns, Ns)>> {
        self.program_calls_sleep(now, pages).map(Some)
    }

    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        self.set_foreground(now, None)
    }

    fn wake_program(&mut self, now: Ns, rang: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        self.foreground_wakes(now, rang, Task::Program)
    }

    fn call_rcu(&mut self, now: Ns) {
        self.is_shared(now);
        self.tasks.sched.call_rcu(now);
    }

    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.is_shared(now);
        let now = tasks_of_all::resched(self, now, pages)?;
        self.settle(now)
    }

    fn sched(&mut self) -> &mut Sched {
        &mut self.tasks.sched
    }
}
