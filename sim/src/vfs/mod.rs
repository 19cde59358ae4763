//! The VFS: open files, the page cache with its read-ahead, and write-back.
//!
//! Mirrors mm/filemap.c (do_generic_file_read of 2.6.37, filemap_read of 6.1,
//! generic_perform_write), mm/fadvise.c and the part of fs/fs-writeback.c that a single writer
//! sees. Left out: memory pressure, dirty throttling, direct I/O, mmap. docs/vfs.md has the list.
//!
//! Invariants:
//! 1. A page is in the cache at most once, and only if the file system has filled it.
//! 2. Background work that is due runs before the next operation begins.

mod cache;
pub mod readahead;

use crate::chip::Flash;
use crate::fs::{FlashFs, FsError, Ino, PageWrite, PAGE_BYTES, ROOT};
use crate::ops::{Advice, Flags};
use crate::profile::SoftwareCosts;
use crate::trace::Task;
use crate::units::Ns;
use cache::FileCache;
use readahead::{KernelReadAhead, PreviousPosition, ReadAheadState, Window};
use std::collections::BTreeMap;

/// dirty_writeback_centisecs: how often the flusher looks.
const WRITEBACK_INTERVAL_NS: u64 = 5_000_000_000;
/// dirty_expire_centisecs: how old dirty data has to be for it.
const DIRTY_EXPIRE_NS: u64 = 30_000_000_000;

/// errno values a program can see (asm-generic/errno-base.h).
const ENOENT: i64 = -2;
const EBADF: i64 = -9;
const EEXIST: i64 = -17;
const ENOTDIR: i64 = -20;
const EISDIR: i64 = -21;
/// No space left on the device.
pub const ENOSPC: i64 = -28;

/// How an operation ended: a system call's return value, and when.
pub type Outcome = core::result::Result<(i64, Ns), FsError>;

#[derive(Clone, Debug)]
struct Inode {
    ino: Ino,
    directory: Ino,
    is_directory: bool,
    size_bytes: u64,
    cache: FileCache,
    dirtied: Option<Ns>,
}

#[derive(Clone, Debug)]
struct OpenFile {
    inode: usize,
    flags: Flags,
    readahead: ReadAheadState,
}

/// A mounted file system with its caches and the files a program has open.
#[derive(Clone, Debug)]
pub struct Vfs<S> {
    fs: S,
    kernel: KernelReadAhead,
    costs: SoftwareCosts,
    read_ahead_pages: u32,
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    slots: Vec<Option<OpenFile>>,
    /// Pages served from the page cache since the counters were reset.
    pub cache_hits: u64,
    /// Pages a read had to wait for.
    pub cache_misses: u64,
    /// Pages brought into the page cache, asked for or not.
    pub cache_adds: u64,
}

fn errno(error: FsError) -> core::result::Result<i64, FsError> {
    match error {
        FsError::NoSpace => Ok(ENOSPC),
        other => Err(other),
    }
}

impl<S: FlashFs> Vfs<S> {
    /// A fresh mount. `slots` is how many files can be open at once.
    pub fn new(fs: S, kernel: KernelReadAhead, costs: SoftwareCosts, slots: usize) -> Vfs<S> {
        Vfs {
            fs,
            kernel,
            costs,
            read_ahead_pages: 0,
            inodes: Vec::new(),
            names: BTreeMap::new(),
            slots: vec![None; slots],
            cache_hits: 0,
            cache_misses: 0,
            cache_adds: 0,
        }
    }

    /// /sys/class/bdi/*/read_ahead_kb; files take it over when they are opened.
    pub fn set_read_ahead_kib(&mut self, kib: u32) {
        self.read_ahead_pages = kib * 1024 / PAGE_BYTES;
    }

    /// The chip at the bottom.
    pub fn flash(&self) -> &S::Flash {
        self.fs.flash()
    }

    /// The chip at the bottom, to tell an observer something.
    pub fn flash_mut(&mut self) -> &mut S::Flash {
        self.fs.flash_mut()
    }

    /// The program sleeps until `end`; background work runs when it is due.
    pub fn idle(&mut self, mut now: Ns, end: Ns) -> core::result::Result<Ns, FsError> {
        while let Some(due) = self.next_due().filter(|&due| due <= end) {
            now = self.run_due(now.max(due))?;
        }
        Ok(now.max(end))
    }

    /// Runs what has become due while the program was busy.
    #[inline]
    pub fn catch_up(&mut self, now: Ns) -> core::result::Result<Ns, FsError> {
        match self.next_due() {
            Some(due) if due <= now => self.idle(now, now),
            _ => Ok(now),
        }
    }

    fn next_due(&self) -> Option<Ns> {
        let dirtied = self.inodes.iter().filter_map(|inode| inode.dirtied).min();
        let flusher = dirtied
            .map(|Ns(since)| Ns((since + DIRTY_EXPIRE_NS).next_multiple_of(WRITEBACK_INTERVAL_NS)));
        [flusher, self.fs.next_due()].into_iter().flatten().min()
    }

    fn run_due(&mut self, now: Ns) -> core::result::Result<Ns, FsError> {
        self.fs.flash_mut().set_task(Task::Background);
        let over = self.run_background(now);
        self.fs.flash_mut().set_task(Task::Program);
        over
    }

    fn run_background(&mut self, mut now: Ns) -> core::result::Result<Ns, FsError> {
        if self.fs.next_due().is_some_and(|due| due <= now) {
            return self.fs.run_due(now);
        }
        for index in 0..self.inodes.len() {
            let expired = |since: Ns| since.0 + DIRTY_EXPIRE_NS <= now.0;
            if self.inodes[index].dirtied.is_some_and(expired) {
                now = self.write_back(now, index)?;
            }
        }
        Ok(now)
    }

    /// link_path_walk: the directory a path is in, or at which of its names the walk ends.
    fn directory_of(&self, path: &str) -> core::result::Result<Ino, i64> {
        let mut directory = ROOT;
        for (end, _) in path.match_indices('/') {
            match self.names.get(&path[..end]) {
                Some(&index) if self.inodes[index].is_directory => {
                    directory = self.inodes[index].ino;
                }
                Some(_) => return Err(ENOTDIR),
                None => return Err(ENOENT),
            }
        }
        Ok(directory)
    }

    fn add_inode(&mut self, path: &str, ino: Ino, directory: Ino, is_directory: bool) -> usize {
        let cache = FileCache::default();
        let inode = Inode { ino, directory, is_directory, size_bytes: 0, cache, dirtied: None };
        self.inodes.push(inode);
        self.names.insert(path.to_owned(), self.inodes.len() - 1);
        self.inodes.len() - 1
    }

    /// mkdir.
    pub fn mkdir(&mut self, now: Ns, path: &str) -> Outcome {
        let now = now + self.costs.syscall_ns;
        if self.names.contains_key(path) {
            return Ok((EEXIST, now));
        }
        let directory = match self.directory_of(path) {
            Ok(directory) => directory,
            Err(errno) => return Ok((errno, now)),
        };
        match self.fs.mkdir(now, directory, last_name(path)) {
            Ok((ino, now)) => {
                self.add_inode(path, ino, directory, true);
                Ok((0, now))
            }
            Err(error) => Ok((errno(error)?, now)),
        }
    }

    /// open: looks the file up, creates it if that is asked for, and sets up its read-ahead.
    pub fn open(&mut self, now: Ns, slot: usize, path: &str, flags: Flags) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let (inode, now) = match self.names.get(path).copied() {
            Some(_) if flags.create && flags.excl => return Ok((EEXIST, now)),
            Some(index)
                if self.inodes[index].is_directory
                    && (flags.write || flags.create || flags.trunc) =>
            {
                return Ok((EISDIR, now))
            }
            Some(index) => {
                let Inode { ino, directory, .. } = self.inodes[index];
                (index, self.fs.open(now, directory, last_name(path), ino)?)
            }
            None if !flags.create => {
                return Ok((self.directory_of(path).err().unwrap_or(ENOENT), now))
            }
            None => match self.create(now, path)? {
                (Ok(index), now) => (index, now),
                (Err(errno), now) => return Ok((errno, now)),
            },
        };
        if flags.trunc && self.inodes[inode].size_bytes > 0 {
            return Err(FsError::NotModelled("truncating a file that has data"));
        }
        if flags.direct {
            return Err(FsError::NotModelled("direct I/O"));
        }
        let readahead = ReadAheadState::new(self.read_ahead_pages);
        self.slots[slot] = Some(OpenFile { inode, flags, readahead });
        Ok((0, now))
    }

    #[allow(clippy::type_complexity)]
    fn create(
        &mut self,
        now: Ns,
        path: &str,
    ) -> core::result::Result<(core::result::Result<usize, i64>, Ns), FsError> {
        let directory = match self.directory_of(path) {
            Ok(directory) => directory,
            Err(errno) => return Ok((Err(errno), now)),
        };
        match self.fs.create(now, directory, last_name(path)) {
            Ok((ino, now)) => Ok((Ok(self.add_inode(path, ino, directory, false)), now)),
            Err(error) => Ok((Err(errno(error)?), now)),
        }
    }

    /// close.
    pub fn close(&mut self, now: Ns, slot: usize) -> Outcome {
        let result = self.slots[slot].take().map_or(EBADF, |_| 0);
        Ok((result, now + self.costs.syscall_ns))
    }

    /// pread: page by page; a missing page brings its window with it.
    pub fn read(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        let Some(mut open) = self.slots[slot].clone() else { return Ok((EBADF, now)) };
        if !open.flags.read {
            return Ok((EBADF, now));
        }
        if self.inodes[open.inode].is_directory {
            return Ok((EISDIR, now));
        }
        let size = self.inodes[open.inode].size_bytes;
        let end = size.min(offset.saturating_add(length));
        if offset >= end {
            return Ok((0, now));
        }
        let page_bytes = u64::from(PAGE_BYTES);
        let last = u32::try_from((offset + length).div_ceil(page_bytes)).unwrap_or(u32::MAX);
        let first = (offset / page_bytes) as u32;
        let stop = end.div_ceil(page_bytes) as u32;
        now += Ns::from_ps(end - offset, self.costs.copy_byte_ps);
        for page in first..stop {
            now = self.get_page(now + self.costs.page_find_ns, &mut open, page, last - page)?;
            if self.kernel.previous_position == PreviousPosition::NextByte {
                let next = end.min((u64::from(page) + 1) * page_bytes);
                open.readahead.previous_page = (next / page_bytes) as i64;
            }
        }
        if self.kernel.previous_position == PreviousPosition::LastPage {
            open.readahead.previous_page = i64::from(stop) - 1;
        }
        self.slots[slot] = Some(open);
        Ok(((end - offset) as i64, now))
    }

    /// Makes sure a page is in the cache, reading ahead as the kernel would.
    #[inline]
    fn get_page(
        &mut self,
        mut now: Ns,
        open: &mut OpenFile,
        page: u32,
        wanted: u32,
    ) -> core::result::Result<Ns, FsError> {
        let cache = &mut self.inodes[open.inode].cache;
        if !cache.contains(page) {
            self.cache_misses += 1;
            let kernel = &self.kernel;
            let window = readahead::on_miss(kernel, &mut open.readahead, cache, page, wanted);
            if let Some(window) = window {
                now = self.fill(now, open.inode, window)?;
            }
            if !self.inodes[open.inode].cache.contains(page) {
                now = self.fill(now, open.inode, Window { start: page, pages: 1, marker: None })?;
            }
        } else {
            self.cache_hits += 1;
        }
        let cache = &mut self.inodes[open.inode].cache;
        if cache.take_marker(page) {
            let kernel = &self.kernel;
            let window = readahead::on_marker(kernel, &mut open.readahead, cache, page, wanted);
            if let Some(window) = window {
                now = self.fill(now, open.inode, window)?;
            }
        }
        Ok(now)
    }

    /// page_cache_ra_unbounded: reads the pages of a window that are not cached yet, up to the end
    /// of the file. A page that was cached already does not get the marker.
    #[inline]
    fn fill(
        &mut self,
        mut now: Ns,
        inode: usize,
        window: Window,
    ) -> core::result::Result<Ns, FsError> {
        let Inode { ino, ref mut cache, .. } = self.inodes[inode];
        let end = window.start.saturating_add(window.pages).min(cache.pages());
        for page in window.start..end {
            if cache.contains(page) {
                continue;
            }
            now = self.fs.read_page(now + self.costs.page_add_ns, ino, page)?;
            self.cache_adds += 1;
            cache.insert(page);
            if window.marker == Some(page) {
                cache.set_marker(page);
            }
        }
        Ok(now)
    }

    /// pwrite (generic_perform_write): page by page, through or into the page cache.
    pub fn write(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        if !open.flags.write {
            return Ok((EBADF, now));
        }
        let (index, flags) = (open.inode, open.flags);
        let start = if flags.append { self.inodes[index].size_bytes } else { offset };
        let end = start + length;
        let mut at = start;
        while at < end {
            let to = end.min((at / u64::from(PAGE_BYTES) + 1) * u64::from(PAGE_BYTES));
            match self.write_one(now, index, at, to) {
                Ok(later) => now = later,
                Err(error) if at == start => return Ok((errno(error)?, now)),
                Err(error) => {
                    errno(error)?;
                    break;
                }
            }
            at = to;
        }
        if flags.sync || flags.dsync {
            now = self.write_back(now, index)?;
            now = self.fs.fsync(now, self.inodes[index].ino)?;
        }
        Ok(((at - start) as i64, now))
    }

    /// Bytes `at..to` of one page.
    fn write_one(
        &mut self,
        now: Ns,
        index: usize,
        at: u64,
        to: u64,
    ) -> core::result::Result<Ns, FsError> {
        let inode = &mut self.inodes[index];
        let page = u32::try_from(at / u64::from(PAGE_BYTES)).expect("a file below 16 TiB");
        let from = (at % u64::from(PAGE_BYTES)) as u32;
        let cached = inode.cache.contains(page);
        let mut write = PageWrite {
            ino: inode.ino,
            page,
            from,
            to: from + (to - at) as u32,
            file_bytes: inode.size_bytes,
            cached,
        };
        let mut now = self.fs.write_begin(now + self.costs.page_write_ns, write)?;
        if !cached {
            now += self.costs.page_add_ns;
        }
        now += Ns::from_ps(to - at, self.costs.copy_byte_ps);
        write.file_bytes = inode.size_bytes.max(to);
        if !self.fs.writes_back() {
            now = self.fs.write_page(now, write)?;
        }
        inode.size_bytes = write.file_bytes;
        inode.cache.grow(write.file_bytes.div_ceil(u64::from(PAGE_BYTES)) as u32);
        inode.cache.insert(page);
        if self.fs.writes_back() {
            inode.cache.set_dirty(page);
            inode.dirtied.get_or_insert(now);
        }
        Ok(now)
    }

    /// write_cache_pages: the dirty pages of one file, in order.
    fn write_back(&mut self, mut now: Ns, index: usize) -> core::result::Result<Ns, FsError> {
        let inode = &mut self.inodes[index];
        inode.dirtied = None;
        if !inode.cache.is_dirty() {
            return Ok(now);
        }
        for page in inode.cache.take_dirty() {
            let start = u64::from(page) * u64::from(PAGE_BYTES);
            let to = (inode.size_bytes - start).min(u64::from(PAGE_BYTES)) as u32;
            let file_bytes = inode.size_bytes;
            let write = PageWrite { ino: inode.ino, page, from: 0, to, file_bytes, cached: true };
            now = self.fs.write_page(now, write)?;
        }
        Ok(now)
    }

    /// fsync and fdatasync.
    pub fn fsync(&mut self, now: Ns, slot: usize) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        let now = self.write_back(now, index)?;
        Ok((0, self.fs.fsync(now, self.inodes[index].ino)?))
    }

    /// sync.
    pub fn sync(&mut self, now: Ns) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        for index in 0..self.inodes.len() {
            now = self.write_back(now, index)?;
        }
        Ok((0, self.fs.sync(now)?))
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
        let pages = self.read_ahead_pages;
        let Some(open) = self.slots[slot].as_mut() else { return Ok((EBADF, now)) };
        let index = open.inode;
        let end = if length == 0 { u64::MAX } else { offset.saturating_add(length) };
        let page_bytes = u64::from(PAGE_BYTES);
        let end_page = |end: u64| u32::try_from(end / page_bytes).unwrap_or(u32::MAX);
        match advice {
            Advice::Normal => {
                open.readahead.max_pages = pages;
                open.readahead.random = false;
            }
            Advice::Random => open.readahead.random = true,
            Advice::Sequential => {
                open.readahead.max_pages = 2 * pages;
                open.readahead.random = false;
            }
            Advice::WillNeed => {
                let start = end_page(offset);
                let wanted = end_page(end.saturating_add(page_bytes - 1)).saturating_sub(start);
                let limit = open.readahead.max_pages;
                let window = Window { start, pages: wanted.min(limit), marker: None };
                return Ok((0, self.fill(now, index, window)?));
            }
            Advice::DontNeed => {
                let now = self.write_back(now, index)?;
                let first = end_page(offset.div_ceil(page_bytes) * page_bytes);
                self.inodes[index].cache.drop_clean(first, end_page(end));
                return Ok((0, now));
            }
            Advice::NoReuse => {}
        }
        Ok((0, now))
    }

    /// 3 into /proc/sys/vm/drop_caches.
    pub fn drop_caches(&mut self, now: Ns) -> Outcome {
        for inode in &mut self.inodes {
            inode.cache.drop_clean(0, u32::MAX);
        }
        let held = self.slots.iter().flatten();
        let open: Vec<Ino> = held.map(|open| self.inodes[open.inode].ino).collect();
        let now = now + self.costs.syscall_ns + self.costs.drop_caches_ns;
        Ok((0, self.fs.drop_caches(now, &open)?))
    }

    /// `compute`: the program's own work.
    pub fn compute(&mut self, now: Ns, steps: u64) -> Outcome {
        Ok((0, now + Ns::from_ps(steps, self.costs.compute_step_ps)))
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
