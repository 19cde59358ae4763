//! JFFS2: a log-structured file system whose log consists of nodes.
//!
//! Mirrors fs/jffs2 of Linux 6.1. [`Options`] lists how 2.6.37 differs. The modules carry the names
//! of the kernel's files.
//!
//! jffs2_write_end turns a page write into a data node at once. A page read fetches the whole node
//! of every fragment, header first and then data (jffs2_read_dnode), through the NAND driver's page
//! buffer if it has one.
//!
//! The simulator refuses what it does not model, and docs/models/jffs2.md lists it.
//!
//! Invariants:
//! 1. Every byte of a file below its size is in a fragment or in a hole.
//! 2. Nodes are written only into reserved space, at the end of `next_block`.

mod attributes;
mod background;
mod build;
mod call;
mod compr;
mod dir;
pub mod dumped;
mod erase;
mod file;
mod fragments;
mod gc;
mod gc_choices;
mod inode;
pub mod layout;
mod medium;
mod node;
mod nodelist;
mod nodemgmt;
mod packed;
mod rbtree;
mod read;
mod readinode;
mod recover;
mod scan;
mod space;
mod tasks;
mod wbuf;
mod write;

use crate::compress::Jffs2Compressor;
use crate::content::Contents;
use crate::errno::{EINVAL, ENAMETOOLONG};
use crate::flash::Torn;
use crate::fs::{
    Attribute, Features, FlashFs, Found, FsError, Ino, Name, Observed, PageCache, PageWrite,
    Rename, Result, Scheduled, PAGE_BYTES,
};
use crate::ledger::SpaceTable;
use crate::mtd::{Mtd, NandDriver};
use crate::ops::name_len;
use crate::profile::KernelFacts;
use crate::sched::{Mutex, Sched, Task, Ticks};
use crate::units::Ns;
use crate::victim::Victim;
use attributes::Xattrs;
use background::Collector;
use compr::Compression;
use dir::Kind;
use file::{LAST_PAGE, WRAPPED};
use inode::{File, InodeState};
use medium::Medium;
use node::{NodeId, Role};
use nodelist::{Names, Nodes};
use serde::Deserialize;
use space::{Levels, List, Space};
use std::collections::{BTreeMap, VecDeque};

pub use wbuf::WbufFlush;
use wbuf::WriteBuffer;

/// JFFS2 needs this many blocks to accept a single write: five for its collector, and one to write
/// (jffs2_calc_trigger_levels).
const BLOCKS_MIN: u32 = 5;
/// JFFS2_MAX_NAME_LEN.
const NAME_BYTES_MAX: usize = 254;

/// CONFIG_JFFS2_FS_XATTR of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Xattr {
    /// Calls about extended attributes fail with EOPNOTSUPP.
    Off,
    /// Extended attributes work.
    On,
    /// The configuration is not known.
    Unknown,
}

/// How kernels and their configurations differ.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// CONFIG_JFFS2_SUMMARY: each full block ends with a summary, a list of its nodes.
    pub summary: bool,
    /// CONFIG_JFFS2_LZO, _ZLIB, _RTIME.
    pub compressors: Vec<Jffs2Compressor>,
    /// Whether a signal to the collector thread during a pass stays pending (sigprocmask) or is
    /// lost (disallow_signal). If it stays pending, each pass that erased is followed by another.
    pub collector_keeps_signals: bool,
    /// Which task flushes a partly filled write buffer in the end.
    pub wbuf_flush: WbufFlush,
    /// CONFIG_JFFS2_FS_WBUF_VERIFY: a page that the write buffer filled is read back.
    #[serde(default)]
    pub wbuf_verify: bool,
    /// A write that finds no space is also reported by the file's next fsync (mapping_set_error of
    /// jffs2_write_end, 6.11).
    #[serde(default)]
    pub write_end_sets_error: bool,
    /// Whether there are extended attributes.
    pub xattr: Xattr,
}

/// A mounted JFFS2.
#[derive(Clone, Debug)]
pub struct Jffs2<D> {
    mtd: Mtd<D>,
    options: Options,
    medium: Medium,
    compression: Compression,
    block_bytes: u32,
    /// Blocks are powers of two.
    block_shift: u32,
    space: Space,
    facts: KernelFacts,
    ticks: Ticks,
    collector: Collector,
    sched: Sched,
    /// The task that calls; none while all of them wait.
    foreground: Option<Task>,
    /// c->alloc_sem.
    alloc_sem: Mutex,
    /// chip->lock of the NAND driver.
    chip_lock: Mutex,
    /// The task that sleeps until the thread releases something other than c->alloc_sem.
    waiter: Option<Task>,
    /// The inode that a task other than the thread is reading in.
    reading: Option<Ino>,
    /// The inode of which the foreground reads a page, with f->sem held.
    page_of: Option<Ino>,
    /// The counter that jffs2_refile_wbuf_blocks adds to the tick's number.
    refiled: u64,
    next_block: Option<u32>,
    gc_block: Option<gc::GcBlock>,
    gc_choices: gc_choices::GcChoices,
    /// Chooses the block to collect in the kernel's place.
    victim: Option<Box<dyn Victim>>,
    summary_bytes: u32,
    /// Whether the block being written will end with a summary.
    has_summary: bool,
    wbuf: WriteBuffer,
    nodes: Nodes,
    names: Names,
    xattrs: Xattrs,
    /// By inode number, from 1.
    files: Vec<File>,
    /// Where the next check of an inode begins to look (c->check_ino).
    check_ino: u32,
    /// The sum of the versions of all nodes that mounts have found.
    pseudo_random: u32,
    /// JFFS2_SB_FLAG_SCANNING.
    is_scanning: bool,
    /// JFFS2_SB_FLAG_BUILDING.
    is_building: bool,
    /// Where nodes became obsolete that are not marked on flash yet (medium.rs).
    unmarked: VecDeque<u32>,
    /// Scratch of `add_fragment`: the nodes that the new node covers whole. Empty otherwise; only
    /// its allocation is kept.
    covered: Vec<NodeId>,
    /// The bytes of data nodes by inode and version; kept only where the power can fail.
    stored: Option<BTreeMap<(Ino, u32), Contents>>,
    /// What the mount of a dump has found, until it is taken.
    found: Vec<Found>,
}

impl<D: NandDriver> Jffs2<D> {
    /// Formats the partition as flash_erase -j does (erases every block and writes a cleanmarker,
    /// on NAND into its OOB), then mounts it. The tick, `jiffies`, decides which blocks are
    /// collected later.
    pub fn format(
        mtd: Mtd<D>,
        now: Ns,
        options: Options,
        facts: KernelFacts,
    ) -> Result<(Self, Ns)> {
        let mut fs = Jffs2::erased(mtd, options, facts)?;
        let now = fs.medium.mark_clean(&mut fs.mtd, now, 0)?;
        (0..fs.mtd.blocks()).for_each(|block| fs.link_marker(block));
        let now = fs.start_collector(now)?;
        Ok((fs, now))
    }

    /// A partition on which nothing is written yet.
    fn erased(mtd: Mtd<D>, options: Options, facts: KernelFacts) -> Result<Self> {
        let block_bytes = mtd.block_bytes();
        assert!(block_bytes.is_power_of_two(), "checked profiles");
        let medium = Medium::of(&mtd, options.summary);
        if mtd.size_bytes() > u64::from(u32::MAX) {
            return Err(FsError::too_small(
                "jffs2 counts the bytes of a partition in 32 bits, this one has more",
            ));
        }
        if mtd.blocks() < BLOCKS_MIN {
            let message = format!(
                "jffs2 needs a partition of at least {BLOCKS_MIN} blocks, this one has {}",
                mtd.blocks()
            );
            return Err(FsError::too_small(message));
        }
        Ok(Jffs2 {
            medium,
            compression: Compression::new(options.compressors.clone()),
            block_bytes,
            block_shift: block_bytes.trailing_zeros(),
            space: fresh(&mtd, medium),
            ticks: Ticks::new(facts.ticks_per_second),
            collector: Collector::default(),
            sched: Sched::new(mtd.costs().sched_clock_ns, &facts),
            facts,
            foreground: Some(Task::Program),
            alloc_sem: Mutex::default(),
            chip_lock: Mutex::default(),
            waiter: None,
            reading: None,
            page_of: None,
            refiled: 0,
            next_block: None,
            gc_block: None,
            gc_choices: gc_choices::GcChoices::default(),
            victim: None,
            summary_bytes: 0,
            has_summary: options.summary,
            options,
            wbuf: WriteBuffer::default(),
            nodes: Nodes::default(),
            names: Names::default(),
            xattrs: Xattrs::default(),
            files: vec![File {
                state: InodeState::Present,
                links: 1,
                is_directory: true,
                ..File::default()
            }],
            check_ino: 0,
            pseudo_random: 0,
            is_scanning: false,
            is_building: false,
            unmarked: VecDeque::new(),
            covered: Vec::new(),
            stored: mtd.can_lose_power().then(BTreeMap::new),
            found: Vec::new(),
            mtd,
        })
    }

    /// The block of an offset.
    #[inline]
    fn block_of(&self, offset: u32) -> u32 {
        offset >> self.block_shift
    }

    /// The number of nodes on flash, obsolete ones included, and of fragments of files in memory.
    pub fn nodes_and_fragments(&self) -> (usize, usize) {
        (self.nodes.len(), self.files.iter().map(|file| file.fragments.len()).sum())
    }

    /// Makes all references to a moved node refer to its copy.
    fn replace_reference(&mut self, from: NodeId, to: NodeId) {
        let node = self.nodes.get(from);
        self.nodes.set_fragments(to, node.fragments);
        let file = &mut self.files[node.ino.0 as usize - 1];
        match node.role {
            Role::Data { .. } if file.has_one_node() => file.metadata = file.metadata.map(|_| to),
            Role::Data { .. } | Role::Hole { .. } => {
                file.fragments.move_node(&self.nodes, from, to)
            }
            Role::Metadata => file.metadata = file.metadata.map(|_| to),
            Role::Dirent { entry, .. } => {
                let name = self.names.entry(entry).name;
                if let Some(id) = file.entries.get_mut(&name) {
                    *id = to;
                }
            }
            _ => assert!(node.role.is_bare(), "a node that nothing refers to"),
        }
    }
}

/// The state after the first scan. The scan puts every empty block at the head of the free list,
/// and jffs2_rotate_lists rotates the list by one even if the count is 0.
fn fresh<D: NandDriver>(mtd: &Mtd<D>, medium: Medium) -> Space {
    let mut space = Space::new(mtd.blocks(), mtd.block_bytes(), medium.marks_obsolete);
    for block in (0..mtd.blocks()).rev() {
        if mtd.is_bad(block) {
            space.change(block, |books| books.free_bytes = 0); // bad_size
        } else {
            space.push_back(List::Free, block);
        }
    }
    space.rotate(List::Free, 1);
    space
}

impl<D: NandDriver> FlashFs for Jffs2<D> {
    type Driver = D;

    fn create(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at, Kind::File, pages)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at, Kind::Directory, pages)
    }

    /// jffs2_lookup: entries are in memory with their directory.
    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        if name_len(at.name) > NAME_BYTES_MAX {
            return Err(FsError::Errno(ENAMETOOLONG, now));
        }
        let now = self.wait_for_inode(now, at.directory, false)?;
        found.map_or(Ok(now), |ino| self.iget(now, ino))
    }

    #[inline]
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, pages: &mut dyn PageCache) -> Result<Ns> {
        let now = self.wait_for_inode(now, ino, false)?;
        self.page_of = Some(ino);
        let read = self.read_range(now, ino, (page * PAGE_BYTES, PAGE_BYTES), Some(pages));
        self.page_of = None;
        read
    }

    fn unlink(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.do_unlink(now, at, ino, pages)
    }

    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.do_unlink(now, at, ino, pages)
    }

    fn rename(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        self.do_rename(now, rename, pages)
    }

    fn truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let last = u64::from(LAST_PAGE) * u64::from(PAGE_BYTES);
        let size = u32::try_from(size_bytes).ok().filter(|&size| u64::from(size) <= last);
        let size = size.ok_or(FsError::NotModelled(WRAPPED))?;
        self.do_setattr(now, ino, size, pages)
    }

    fn evict(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.delete_inode(now, ino, pages)
    }

    /// jffs2_kill_sb, which stops the thread before kill_mtd_super has anything written.
    fn kill_sb(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.stop_collector(now, pages)
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
        self.end_write(now, write, pages)
    }

    fn write_inode(&mut self, now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        _inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.flush_wbuf_gc(now, Some(ino), pages)
    }

    /// jffs2_sync_fs, which pads the write buffer where fsync would move nodes instead.
    fn sync(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let mut now = now;
        // iterate_supers calls sync_fs twice, first without waiting. The thread may fill the buffer
        // between the two.
        for _ in 0..2 {
            (self.wbuf.due, self.wbuf.is_queued) = (None, false);
            now = self.lock_alloc(now, pages)?;
            let flushed = self.flush_wbuf_pad(now);
            self.unlock_alloc(*flushed.as_ref().unwrap_or(&now));
            now = flushed?;
        }
        Ok(now)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        for number in 2..=self.files.len() as u32 {
            let ino = Ino(number);
            if self.file(ino).state == InodeState::Present && !kept.contains(&ino) {
                self.forget_inode(ino);
            }
        }
        Ok(now)
    }

    fn inodes_in_memory(&self) -> u64 {
        let files = self.files.iter().skip(1);
        files.filter(|file| file.state == InodeState::Present).count() as u64
    }

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    /// jffs2_do_fill_super.
    fn max_file_bytes(&self) -> u64 {
        u64::from(u32::MAX)
    }
}

impl<D: NandDriver> Features for Jffs2<D> {
    fn write_end_sets_error(&self) -> bool {
        self.options.write_end_sets_error
    }

    fn symlink(
        &mut self,
        now: Ns,
        at: Name<'_>,
        target: &str,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        self.make(now, at, Kind::Link(target), pages)
    }

    fn link(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.add_link(now, at, ino, pages)
    }

    fn set_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        _what: Attribute,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.change_attribute(now, ino, pages)
    }

    /// jffs2_readdir: entries are in memory with their directory.
    fn read_dir(&mut self, now: Ns, ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        self.wait_for_inode(now, ino, false)
    }

    fn listed_ns(&self) -> Ns {
        self.mtd.costs().jffs2_listed_ns
    }

    fn set_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.write_xattr(now, ino, (name, bytes), pages)
    }

    fn get_xattr(&mut self, now: Ns, ino: Ino, name: &str) -> Result<(u32, Ns)> {
        self.xattr_bytes(now, ino, name)
    }

    fn remove_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.delete_xattr(now, ino, name, pages)
    }

    /// jffs2_rename knows no RENAME_WHITEOUT.
    fn rename_whiteout(
        &mut self,
        now: Ns,
        _rename: Rename<'_>,
        _pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        Err(FsError::Errno(EINVAL, now))
    }

    /// generic_file_readonly_mmap.
    fn maps_shared_writable(&self) -> bool {
        false
    }

    fn begin_evict(&mut self, now: Ns, ino: Ino) {
        self.set_reading(now, Some(ino));
    }
}

impl<D: NandDriver> Observed for Jffs2<D> {
    fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        self.mount_after_power_cut(now, torn)
    }

    fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// jffs2_statfs.
    fn space(&self) -> Option<SpaceTable> {
        let (total, block_bytes) = (&self.space.total, self.block_bytes);
        let size_bytes = u64::from(self.mtd.blocks()) * u64::from(block_bytes);
        let mut table = SpaceTable::new(size_bytes);
        table.take_units("jffs2", "bad blocks", self.mtd.bad_blocks(), block_bytes);
        let markers = self.markers_bytes();
        if markers > 0 {
            table.take("jffs2", "clean markers", i64::from(markers));
        }
        table.take("jffs2", "files", i64::from(total.used_bytes - markers));
        table.take("jffs2", "files not checked yet", i64::from(total.unchecked_bytes));
        let room = i64::from(total.dirty_bytes) + i64::from(total.free_bytes);
        table.take("jffs2", "wasted ends and erases", table.left_bytes() - room);
        let Levels { deletion_blocks, write_blocks, .. } = self.space.levels;
        table.take_reserve("jffs2", "deletions", deletion_blocks, block_bytes);
        let spare = write_blocks - deletion_blocks;
        table.take_reserve("jffs2", "garbage collection", spare, block_bytes);
        table.round_to_pages("jffs2", PAGE_BYTES);
        table.size_bytes = size_bytes;
        Some(table)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.victim = Some(victim);
        true
    }

    /// used_size and unchecked_size of each struct jffs2_eraseblock.
    fn live_bytes(&self, blocks: &mut [u32]) -> bool {
        for (number, bytes) in (0..).zip(blocks) {
            let books = self.space.block(number).books;
            *bytes += books.used_bytes + books.unchecked_bytes;
        }
        true
    }

    fn replay_choices(&mut self, recorded: &[u16]) {
        self.gc_choices = gc_choices::GcChoices::replaying(recorded);
    }

    fn choices(&self) -> &[u16] {
        self.gc_choices.made()
    }
}

impl<D: NandDriver> Scheduled for Jffs2<D> {
    fn next_due(&self) -> Option<Ns> {
        if self.foreground.is_some() {
            return None; // `resched` checks it.
        }
        [self.wbuf.due, self.collector.until].into_iter().flatten().min()
    }

    fn run_due(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        if self.collector.until.is_some_and(|until| until <= now) {
            self.wake_collector(now);
        }
        self.wake_worker(now);
        Ok(now)
    }

    fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.mtd.set_task(task.unwrap_or(Task::Background));
        std::mem::replace(&mut self.foreground, task)
    }

    fn run_thread(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.run_collector(now, Some(pages))
    }

    /// delayed_wbuf_sync.
    fn run_work(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Option<Ns>> {
        if !std::mem::take(&mut self.wbuf.is_queued) {
            return Ok(None);
        }
        let before = self.set_caller(Some(Task::Background));
        let now = self.flush_wbuf_gc(now, None, pages)?;
        self.set_caller(before);
        self.sched.unblock(now);
        Ok(Some(now))
    }

    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        self.page_is_read(now);
        self.sched.sleep(now);
        self.set_caller(None);
        Ok(now)
    }

    fn wake_program(&mut self, now: Ns, rang: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.program_wakes(now, rang, pages)
    }

    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.page_is_read(now);
        self.sched.unblock(now);
        self.wake_worker(now);
        self.might_resched(now, Some(pages))
    }
}
