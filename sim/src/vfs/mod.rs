//! The VFS: open files, the page cache with its read-ahead, and write-back.
//!
//! Mirrors mm/filemap.c (generic_perform_write here; filemap.rs reads), mm/fadvise.c, fs/namei.c
//! and fs/dcache.c (namei.rs, rename.rs), and the part of fs/fs-writeback.c that a single writer
//! sees (writeback.rs). mmap.rs has mapped files, overlay.rs a layer over a read-only root. Left
//! out: direct I/O. docs/models/vfs.md has the list.
//!
//! Invariants:
//! 1. A page is in the cache at most once, and only if the file system has filled it.
//! 2. Timers that expired are handled before the next operation begins.

mod cache;
mod completions;
mod copy_up;
mod filemap;
mod flusher;
mod inode;
mod inodes;
mod links;
mod locks_and_ranges;
mod lower;
mod mmap;
mod namei;
mod overlay;
mod page_writeback;
pub mod readahead;
pub mod reclaim;
mod rename;
mod splice;
mod truncate;
mod walk;
mod wb_workfn;
mod writeback;

use crate::content::{Contents, Overwritten, Source, Written};
use crate::errno::{answered, errno, ignore_errno, FsError, Outcome};
use crate::errno::{EBADF, EFBIG, EINVAL, ENOTTY};
use crate::flash::Torn;
use crate::fs::{FlashFs, PageCache, PageWrite, PAGE_BYTES};
use crate::ops::{Advice, Flags, Locking, SLOTS};
use crate::profile::{KernelFacts, MemoryProfile, SoftwareCosts, Vm};
use crate::sched::Ticks;
use crate::units::Ns;
use completions::Completions;
use flusher::Flusher;
use inode::Inode;
use inodes::Inodes;
use mmap::Mapping;
use namei::Names;
use overlay::Layer;
use page_writeback::DirtyLimits;
use readahead::{KernelReadAhead, Own, ReadAhead, ReadAheadState, Window};
use reclaim::Reclaim;
use std::ops::Range;
use std::sync::Arc;
use truncate::Truncated;

pub use cache::FileCache;
pub use lower::{ReadDevice, Reading, RootFs, Wanted, ROOT_WINDOW_PAGES};
pub use mmap::Sharing;
pub use namei::{Left, Tree, What};
pub use overlay::FilesBelow;

/// The result of a step of a system call, or its errno, and when.
type Answer<T> = core::result::Result<(core::result::Result<T, i64>, Ns), FsError>;

/// The state of an open file that reads change.
#[derive(Clone, Copy, Debug)]
struct ReadPosition {
    readahead: ReadAheadState,
    /// The page that was last read (from `ra->prev_pos`).
    last_page: Option<u32>,
}

#[derive(Clone, Debug)]
struct OpenFile {
    inode: usize,
    /// The directory of its dentry, none for the root.
    directory: Option<usize>,
    /// The current name of the path by which it was opened.
    path: Box<str>,
    /// That name was removed, or never existed.
    is_deleted: bool,
    flags: Flags,
    position: ReadPosition,
    /// The lock it holds on its file.
    lock: Option<Locking>,
}

/// Written bytes `at..to` of a file; `source` generates them from `offset` on.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    at: u64,
    to: u64,
    source: Source,
    offset: u64,
}

/// A mounted file system with its caches, and the program's open files.
#[derive(Clone, Debug)]
pub struct Vfs<S> {
    fs: S,
    kernel: KernelReadAhead,
    /// Decides what is read ahead in the kernel's place.
    policy: Own,
    costs: SoftwareCosts,
    read_ahead_pages: u32,
    inodes: Inodes,
    names: Names,
    /// Where the program's root is one of overlayfs.
    layer: Option<Layer>,
    limits: DirtyLimits,
    /// See [`KernelFacts`].
    masks_interrupts: bool,
    /// Settings of write-back, and free pages when the kernel has booted.
    memory: (Vm, u64),
    /// Open files by slot; from `SLOTS` on, files that are closed but still mapped.
    slots: Vec<Option<OpenFile>>,
    mappings: Vec<Option<Mapping>>,
    /// How many writes had recorded bytes, including the current write's.
    written: u64,
    writing: Option<Arc<Written>>,
    /// The file's content after the current copy.
    copied: Option<Contents>,
    /// See [`Vfs::wants`].
    wanted: Option<(u32, u32)>,
    /// Pages served from the page cache since the counters were reset.
    pub cache_hits: u64,
    /// Pages that a read waited for.
    pub cache_misses: u64,
    /// Pages added to the page cache, requested or read ahead.
    pub cache_adds: u64,
}

impl<S: FlashFs> Vfs<S> {
    /// A new mount, with space for so many open files at first.
    pub fn new(
        fs: S,
        kernel: KernelReadAhead,
        costs: SoftwareCosts,
        memory: MemoryProfile,
        facts: KernelFacts,
        slots: usize,
    ) -> Vfs<S> {
        let memory = (facts.vm, memory.free_kib * 1024 / u64::from(PAGE_BYTES));
        let ticks = Ticks::new(facts.ticks_per_second);
        let completions = Completions::new(&facts, Ns::ZERO);
        let mut vfs = Vfs {
            fs,
            kernel,
            policy: None,
            costs,
            read_ahead_pages: 0,
            inodes: Inodes::new(facts, memory.1, ticks, Ns::ZERO, completions),
            names: Names::default(),
            layer: None,
            limits: DirtyLimits::new(memory.0, memory.1),
            masks_interrupts: facts.masks_interrupts,
            memory,
            slots: vec![None; slots],
            mappings: Vec::new(),
            written: 0,
            writing: None,
            copied: None,
            wanted: None,
            cache_hits: 0,
            cache_misses: 0,
            cache_adds: 0,
        };
        vfs.add_lost_and_found(Ns::ZERO);
        vfs.fs.take_found().into_iter().for_each(|file| vfs.add_found(Ns::ZERO, file));
        vfs
    }

    /// /sys/class/bdi/*/read_ahead_kb; files take the value when they are opened.
    pub fn set_read_ahead_kib(&mut self, kib: u32) {
        self.read_ahead_pages = kib / (PAGE_BYTES / 1024);
    }

    /// Makes another policy decide what is read ahead.
    pub fn set_read_ahead_policy(&mut self, policy: Box<dyn ReadAhead>) {
        self.policy = Some(policy);
    }

    /// Makes another policy decide which pages leave a full page cache, which is still empty.
    pub fn set_reclaim_policy(&mut self, policy: Box<dyn Reclaim>) {
        self.inodes.set_reclaim_policy(policy);
    }

    /// The agent reads the clock after an operation, and before the next one.
    pub(crate) fn clock_reads(&self) -> Ns {
        self.costs.clock_read_ns * 2
    }

    /// The file system.
    pub fn fs(&self) -> &S {
        &self.fs
    }

    /// The file system, to be changed by the laboratory.
    pub fn fs_mut(&mut self) -> &mut S {
        &mut self.fs
    }

    /// close: the last close of a file without a name deletes it.
    pub fn close(&mut self, now: Ns, slot: usize) -> Outcome {
        let now = now + self.costs.syscall_ns + self.costs.close_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        let Inode { ino, is_directory, .. } = self.inodes[index];
        let (result, mut now) = match is_directory || self.inodes[index].is_lower() {
            true => (0, now), // whose files have no `flush`
            false => answered(self.fs.flush(now, ino).map(|later| (0, later)), now)?,
        };
        if let Some(open) = self.take_unmapped(slot) {
            now = self.fput(now, &open)?;
        }
        Ok((result, now))
    }

    /// __fput: the file's dentry releases its inode, then the directories above it.
    fn fput(&mut self, now: Ns, open: &OpenFile) -> core::result::Result<Ns, FsError> {
        let mut now = self.put_inode(now, open.inode)?;
        let mut above = open.directory;
        while let Some(directory) = above {
            above = self.inodes[directory].parent;
            now = self.put_inode(now, directory)?;
        }
        self.file_free(now);
        Ok(now)
    }

    /// file_free: kernels before 6.7 free a file by RCU.
    pub fn file_free(&mut self, now: Ns) {
        if self.inodes.facts.file_free_rcu {
            self.fs.call_rcu(now);
        }
    }

    /// The directories of an open file's dentry, from its own upwards, without the root.
    fn directories_of<'a>(&'a self, open: &OpenFile) -> impl Iterator<Item = usize> + 'a {
        std::iter::successors(open.directory, |&directory| self.inodes[directory].parent)
    }

    /// Whether an open file keeps the inode in memory: its own, or as the dentry of a directory
    /// above it.
    fn is_held(&self, index: usize) -> bool {
        let is_directory = self.inodes[index].is_directory;
        self.slots.iter().flatten().any(|open| {
            open.inode == index
                || is_directory && self.directories_of(open).any(|above| above == index)
        })
    }

    /// iput: evicts an inode that neither has a name nor is held.
    fn put_inode(&mut self, now: Ns, index: usize) -> core::result::Result<Ns, FsError> {
        let Inode { ino, names, .. } = self.inodes[index];
        if names > 0 || self.is_held(index) {
            return Ok(now);
        }
        if self.inodes[index].is_lower() {
            self.inodes.evict(index);
            return Ok(now);
        }
        let now = self.wait_for_writeback(now, index)?;
        self.fs.begin_evict(now, ino);
        let gone = Truncated::from(&self.inodes[index].cache, 0);
        let now = self.truncate_inode_pages(now, gone)?;
        let now = self.fs.evict(now, ino, &mut self.inodes)?;
        self.inodes.evict(index);
        self.fs.call_rcu(now); // destroy_inode
        Ok(now)
    }

    /// ftruncate.
    pub fn truncate(&mut self, now: Ns, slot: usize, size_bytes: u64) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        if !open.flags.write || self.inodes[index].is_directory {
            return Ok((EINVAL, now));
        }
        self.do_truncate(now, index, size_bytes)
    }

    /// do_truncate, which also updates the inode's times.
    fn do_truncate(&mut self, now: Ns, index: usize, size_bytes: u64) -> Outcome {
        let Inode { ino, size_bytes: before, .. } = self.inodes[index];
        let now = now + self.costs.truncate_ns;
        if size_bytes > before.max(self.fs.max_file_bytes()) {
            return Ok((EFBIG, now)); // inode_newsize_ok
        }
        let truncated = self.fs.truncate(now, ino, size_bytes, &mut self.inodes);
        let gone = std::mem::take(&mut self.inodes.truncated);
        match truncated {
            Ok(later) => {
                self.inodes[index].modified_s = self.inodes.stamp_s(now);
                let pages = size_bytes.div_ceil(u64::from(PAGE_BYTES));
                self.unmap_from(index, u32::try_from(pages).unwrap_or(u32::MAX));
                Ok((0, self.truncate_inode_pages(later, gone)?))
            }
            Err(error) => errno(error, now),
        }
    }

    /// Restarts after a power cut: no file is open, and the inodes are those that the mount finds.
    pub fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> core::result::Result<Ns, FsError> {
        self.refuse_layer(overlay::CUT)?;
        let (found, now) = self.fs.power_up(now, torn)?;
        self.slots.truncate(SLOTS);
        self.slots.fill(None);
        self.mappings.clear();
        let completions = self.inodes.flusher.completions.of_new_device();
        let reclaim = self.inodes.take_reclaim_policy();
        let Inodes { ticks, facts, .. } = self.inodes;
        self.inodes = Inodes::new(facts, self.memory.1, ticks, now, completions);
        if let Some(policy) = reclaim {
            self.inodes.set_reclaim_policy(policy);
        }
        self.limits = DirtyLimits::new(self.memory.0, self.memory.1);
        self.names = Names::default();
        self.add_lost_and_found(now);
        found.into_iter().for_each(|file| self.add_found(now, file));
        Ok(now)
    }

    /// umount and mount: writes everything back, empties every cache and closes all slots.
    pub fn remount(&mut self, now: Ns) -> Outcome {
        let now = self.unmount(now + self.costs.syscall_ns)?;
        let now = self.fs.remount(now)?;
        self.mounted(now);
        let now = self.remount_lower(now)?;
        Ok((0, self.mount_layer(now)?))
    }

    /// umount, up to what the file system does.
    pub fn unmount(&mut self, now: Ns) -> core::result::Result<Ns, FsError> {
        let now = match self.layer {
            Some(_) => self.sync_filesystem(now)?, // ovl_sync_fs
            None => now,
        };
        let now = self.fs.kill_sb(now, &mut self.inodes)?;
        let mut now = self.sync_filesystem(now)?;
        for gone in self.inodes.iter_mut().map(Inode::forget_pages).collect::<Vec<_>>() {
            now = self.truncate_inode_pages(now, gone)?;
        }
        self.inodes.pages_gone();
        self.names.forget_dentries();
        if let Some(layer) = &mut self.layer {
            layer.forget_dentries();
        }
        now += self.costs.inode_drop_ns * self.fs.inodes_in_memory();
        Ok(now)
    }

    fn sync_filesystem(&mut self, now: Ns) -> core::result::Result<Ns, FsError> {
        let now = self.write_back_dirty(now)?;
        let now = self.write_back_all(now, false)?;
        ignore_errno(self.fs.sync(now, &mut self.inodes), now)
    }

    /// The file system is mounted: a new flusher has it.
    pub fn mounted(&mut self, now: Ns) {
        self.fs.sched().stop_flusher();
        self.empty_lost_and_found();
        let completions = self.inodes.flusher.completions.of_new_device();
        self.inodes.flusher = Flusher::new(self.inodes.ticks, now, self.memory, completions);
    }

    /// pwrite (generic_perform_write): page by page, through the page cache to flash or only into
    /// it.
    pub fn write(
        &mut self,
        now: Ns,
        slot: usize,
        offset: u64,
        length: u64,
        source: Source,
    ) -> Outcome {
        self.write_pages_of(now + self.costs.syscall_ns, slot, (offset, length), source)
    }

    /// vfs_write within a system call.
    fn write_pages_of(
        &mut self,
        mut now: Ns,
        slot: usize,
        (offset, length): (u64, u64),
        source: Source,
    ) -> Outcome {
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        if !open.flags.write {
            return Ok((EBADF, now));
        }
        now += self.costs.write_ns;
        let (index, flags) = (open.inode, open.flags);
        let start = if flags.append { self.inodes[index].size_bytes } else { offset };
        let max_bytes = self.fs.max_file_bytes();
        // generic_write_checks. UBIFS has already updated the times before it (ubifs_write_iter).
        if start >= max_bytes && !self.fs.writes_back() {
            return Ok((EFBIG, now));
        }
        let end = max_bytes.min(start + length);
        match self.update_time(now, index) {
            Ok(later) => now = later,
            Err(error) => return errno(error, now),
        }
        if start >= max_bytes {
            return Ok((EFBIG, now));
        }
        let mut at = start;
        while at < end {
            let to = end.min((at / u64::from(PAGE_BYTES) + 1) * u64::from(PAGE_BYTES));
            let bytes = Bytes { at, to, source, offset: offset + (at - start) };
            match self.write_one(now, index, bytes) {
                Ok(later) => now = later,
                Err(error) if at == start => return errno(error, now),
                Err(error) => {
                    now = errno(error, now)?.1;
                    break;
                }
            }
            at = to;
            // cond_resched() between pages; after the last page the end of the call does it.
            if at < end {
                now = self.resched(now)?;
            }
        }
        if flags.sync || flags.dsync {
            let (errno, at) = self.sync_range(now, index, start, at, !flags.sync)?;
            now = at;
            if errno < 0 {
                return Ok((errno, now));
            }
        }
        Ok(((at - start) as i64, now))
    }

    /// pwrite of recorded bytes, which no source generates.
    pub fn write_bytes(
        &mut self,
        now: Ns,
        slot: usize,
        (offset, length): (u64, u64),
        written: Written,
    ) -> Outcome {
        self.written += 1;
        self.writing = Some(Arc::new(written));
        let outcome = self.write(now, slot, offset, length, Source::of_write(self.written));
        self.writing = None;
        outcome
    }

    /// file_update_time.
    fn update_time(&mut self, now: Ns, index: usize) -> core::result::Result<Ns, FsError> {
        let second = self.inodes.stamp_s(now);
        if self.inodes[index].modified_s == second {
            return Ok(now);
        }
        let ino = self.inodes[index].ino;
        let now = now + self.costs.time_update_ns;
        let now = self.fs.update_time(now, ino, &mut self.inodes)?;
        self.inodes[index].modified_s = second;
        self.inodes.mark_dirty(now, index);
        Ok(now)
    }

    /// Writes bytes of one page.
    fn write_one(
        &mut self,
        now: Ns,
        index: usize,
        bytes: Bytes,
    ) -> core::result::Result<Ns, FsError> {
        let Bytes { at, to, .. } = bytes;
        let inode = &self.inodes[index];
        let page = u32::try_from(at / u64::from(PAGE_BYTES)).expect("a file below 16 TiB");
        let from = (at % u64::from(PAGE_BYTES)) as u32;
        let cached = inode.cache.is_uptodate(page);
        let mut write = PageWrite {
            ino: inode.ino,
            page,
            from,
            to: from + (to - at) as u32,
            file_bytes: inode.size_bytes,
            cached,
        };
        let begun = now + self.costs.page_write_ns;
        let mut now = self.fs.write_begin(begun, write, &mut self.inodes)?;
        if !cached {
            now += self.costs.page_add_ns;
        }
        now += Ns::from_ps(to - at, self.costs.copy_from_user_byte_ps);
        write.file_bytes = self.inodes[index].size_bytes.max(to);
        let writes_back = self.fs.writes_back();
        let contents = &mut self.inodes[index].contents;
        let before =
            if writes_back { Overwritten::default() } else { contents.overwritten(at, to) };
        self.put_bytes(index, bytes);
        if !writes_back {
            match self.fs.write_page(now, write, &mut self.inodes) {
                Ok(later) => now = later,
                Err(error) => {
                    self.forget_write(index, page, at..to, &before);
                    if self.fs.write_end_sets_error() {
                        let (errno, _) = errno(error.clone(), now)?;
                        self.inodes[index].write_error.get_or_insert(errno);
                    }
                    return Err(error);
                }
            }
        }
        let inode = &mut self.inodes[index];
        let grows = write.file_bytes > inode.size_bytes;
        inode.size_bytes = write.file_bytes;
        inode.cache.grow(write.file_bytes.div_ceil(u64::from(PAGE_BYTES)) as u32);
        if !inode.cache.contains(page) {
            self.inodes.add_page(index, page);
        }
        self.inodes.note_use(index, page);
        let inode = &mut self.inodes[index];
        inode.cache.insert(page);
        if self.fs.writes_back() {
            if cached && !inode.cache.is_page_dirty(page) {
                now += self.costs.page_dirty_ns;
            }
            inode.cache.set_dirty(page);
            inode.dirty.size |= grows;
            self.inodes.mark_dirty(now, index);
            now = self.balance_dirty_pages(now)?;
        }
        Ok(now)
    }

    /// ClearPageUptodate: a page that could not be written stays in the cache and is read again.
    fn forget_write(&mut self, index: usize, page: u32, bytes: Range<u64>, before: &Overwritten) {
        let inode = &mut self.inodes[index];
        inode.contents.restore(bytes.start, bytes.end, before);
        let ino = inode.ino;
        self.inodes.keep_page(ino, page, false);
    }

    /// posix_fadvise (mm/fadvise.c).
    pub fn fadvise(
        &mut self,
        now: Ns,
        slot: usize,
        offset: u64,
        length: u64,
        advice: Advice,
    ) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let pages = self.window_of(open.inode);
        let Some(open) = self.slots[slot].as_mut() else { return Ok((EBADF, now)) };
        let index = open.inode;
        let end = if length == 0 { u64::MAX } else { offset.saturating_add(length) };
        let page_bytes = u64::from(PAGE_BYTES);
        let end_page = |end: u64| u32::try_from(end / page_bytes).unwrap_or(u32::MAX);
        match advice {
            Advice::Normal => {
                open.position.readahead.max_pages = pages;
                open.position.readahead.random = false;
            }
            Advice::Random => open.position.readahead.random = true,
            Advice::Sequential => {
                open.position.readahead.max_pages = 2 * pages;
                open.position.readahead.random = false;
            }
            Advice::WillNeed => {
                let start = end_page(offset);
                let wanted = end_page(end.saturating_add(page_bytes - 1)).saturating_sub(start);
                let limit = open.position.readahead.max_pages;
                let window = Window { start, pages: wanted.min(limit), marker: None };
                return Ok((0, self.fill_mapped(now, index, slot, window)?));
            }
            Advice::DontNeed => {
                let last = end.saturating_sub(1) / page_bytes;
                let last = u32::try_from(last).unwrap_or(u32::MAX);
                let now = self.write_range(now, index, end_page(offset), last.saturating_add(1))?;
                let inode = &mut self.inodes[index];
                let first = end_page(offset.div_ceil(page_bytes) * page_bytes);
                let to_the_end = end == inode.size_bytes;
                let end = if to_the_end { last.saturating_add(1) } else { end_page(end) };
                inode.cache.drop_clean(first, end);
                self.inodes.pages_gone();
                return Ok((0, now));
            }
            Advice::NoReuse => {}
        }
        Ok((0, now))
    }

    /// MEMERASE64 on a file, which is no MTD device.
    pub fn erase(&mut self, now: Ns, slot: usize) -> Outcome {
        let result = self.slots[slot].as_ref().map_or(EBADF, |_| ENOTTY);
        Ok((result, now + self.costs.syscall_ns))
    }

    /// Writes 3 to /proc/sys/vm/drop_caches.
    pub fn drop_caches(&mut self, now: Ns) -> Outcome {
        for inode in self.inodes.iter_mut() {
            inode.cache.drop_clean(0, u32::MAX);
        }
        self.inodes.pages_gone();
        let mut kept = self.shrink_dcache();
        self.drop_lower(&kept);
        kept.retain(|ino| ino.0 & inode::LOWER == 0);
        if let Some(layer) = &mut self.layer {
            layer.forget_dentries();
        }
        kept.extend(self.layer.iter().flat_map(Layer::held));
        let now = now + self.costs.syscall_ns + self.costs.drop_caches_ns;
        let now = self.fs.drop_caches(now, &kept)?;
        self.fs.call_rcu(now); // at least the file in /proc
        Ok((0, now))
    }

    /// `compute`: the program's own processor time.
    pub fn compute(&mut self, now: Ns, steps: u64) -> Outcome {
        Ok((0, self.work(now, Ns::from_ps(steps, self.costs.compute_step_ps))?))
    }
}
