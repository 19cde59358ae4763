//! Mapped files: page tables, faults, and stores.
//!
//! Mirrors mm/mmap.c (do_mmap), mm/memory.c (do_read_fault with do_fault_around, do_shared_fault,
//! wp_page_shared, fault_dirty_shared_page), mm/filemap.c (filemap_fault, do_sync_mmap_readahead,
//! do_async_mmap_readahead, filemap_map_pages) and mm/msync.c of Linux 6.1. A mapping's address
//! equals its file offset modulo 64 KiB, so a fault maps the pages around it by file offset. A
//! fault costs a system call and a page lookup. A program's access to mapped bytes costs the copy
//! of a store.
//!
//! Left out, and refused by name: memory pressure while pages are mapped, and the page faults of
//! other kernels.
//!
//! Invariants:
//! 1. A mapped page is in the cache, and marked there as mapped.
//! 2. A page that can be written through a mapping without a fault is dirty.

use super::readahead::{self, Asked, Window};
use super::{Bytes, OpenFile, Vfs};
use crate::content::{Source, Written};
use crate::errno::{errno, FsError, Outcome};
use crate::errno::{EACCES, EBADF, EFAULT, EINVAL, ENODEV};
use crate::fs::{FlashFs, PAGE_BYTES};
use crate::ops::SLOTS;
use crate::units::Ns;
use std::collections::BTreeMap;
use std::sync::Arc;

/// fault_around_bytes, in pages.
const AROUND_PAGES: u32 = 16;
/// MMAP_LOTSAMISS: with this many more misses than hits, read-around stops.
const MISSES_MAX: u32 = 100;

/// Protection and sharing of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// PROT_READ, MAP_SHARED.
    ReadOnly,
    /// PROT_READ and PROT_WRITE, MAP_SHARED.
    ReadWrite,
    /// MAP_PRIVATE, and never written.
    Private,
}

/// struct vm_area_struct with its part of the page table.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    /// The place of its file in `Vfs::slots`.
    pub file: usize,
    pub inode: usize,
    first_page: u32,
    pages: u32,
    /// VM_SHARED: it may be writable, now or after mprotect.
    is_shared: bool,
    /// The mapped pages, and whether each is writable.
    shown: BTreeMap<u32, bool>,
}

/// The result of a fault that looked in the page cache.
enum Fault {
    /// The page is cached.
    Page,
    /// VM_FAULT_RETRY: the fault did I/O and starts over.
    Again,
    /// VM_FAULT_SIGBUS.
    Bus,
}

type Result<T> = core::result::Result<T, FsError>;

fn page_of(bytes: u64) -> u32 {
    u32::try_from(bytes / u64::from(PAGE_BYTES)).unwrap_or(u32::MAX)
}

impl<S: FlashFs> Vfs<S> {
    /// Refuses the case if reclaim met a mapped page: which pages are cached is then unknown.
    pub fn refuse_reclaimed(&self) -> Result<()> {
        self.inodes.refuse_reclaimed()
    }

    /// mmap.
    pub fn mmap(
        &mut self,
        now: Ns,
        mapping: usize,
        slot: usize,
        (offset, length): (u64, u64),
        how: Sharing,
    ) -> Outcome {
        let now = now + self.costs.syscall_ns + self.costs.map_ns;
        if !self.kernel.faults_around {
            return Err(FsError::NotModelled("mapped files on this kernel"));
        }
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let (index, flags) = (open.inode, open.flags);
        let is_writable = how == Sharing::ReadWrite;
        let is_shared = how != Sharing::Private && flags.write;
        let refused = match () {
            () if is_writable && !flags.write || !flags.read => Some(EACCES),
            () if self.inodes[index].is_directory => Some(ENODEV),
            () if length == 0 || is_shared && !self.fs.maps_shared_writable() => Some(EINVAL),
            () => None,
        };
        if let Some(errno) = refused {
            return Ok((errno, now));
        }
        let first_page = page_of(offset);
        let pages = page_of((offset + length).next_multiple_of(u64::from(PAGE_BYTES))) - first_page;
        let made = Mapping {
            file: slot,
            inode: index,
            first_page,
            pages,
            is_shared,
            shown: BTreeMap::new(),
        };
        if self.mappings.len() <= mapping {
            self.mappings.resize(mapping + 1, None);
        }
        self.mappings[mapping] = Some(made);
        self.fs.call_rcu(now); // the nodes allocated by the tree of mappings (mt_free_rcu)
        Ok((0, now))
    }

    /// munmap. If the file was closed before, it goes with its last mapping (fput).
    pub fn munmap(&mut self, now: Ns, mapping: usize) -> Outcome {
        let mut now = now + self.costs.syscall_ns + self.costs.unmap_ns;
        self.protect();
        let Some(gone) = self.mappings.get_mut(mapping).and_then(Option::take) else {
            return Ok((EINVAL, now));
        };
        now += self.costs.unmap_page_ns * gone.shown.len() as u64;
        for &page in gone.shown.keys() {
            if !self.inodes[gone.inode].is_lower() {
                self.inodes.mark_accessed(gone.inode, page);
            }
            if !self.is_shown(gone.inode, page) {
                self.inodes[gone.inode].cache.set_mapped(page, false);
            }
        }
        let is_used = self.mappings.iter().flatten().any(|other| other.file == gone.file);
        if gone.file >= SLOTS && !is_used {
            if let Some(open) = self.slots[gone.file].take() {
                now = self.fput(now, &open)?;
            }
        }
        self.fs.call_rcu(now); // mt_free_rcu
        Ok((0, now))
    }

    /// Takes the file out of a slot that is closed. One that is still mapped stays open elsewhere.
    pub(super) fn take_unmapped(&mut self, slot: usize) -> Option<OpenFile> {
        let open = self.slots[slot].take();
        if !self.mappings.iter().flatten().any(|mapping| mapping.file == slot) {
            return open;
        }
        self.slots.resize(self.slots.len().max(SLOTS), None);
        let free = self.slots.iter().skip(SLOTS).position(Option::is_none);
        let kept = SLOTS + free.unwrap_or(self.slots.len() - SLOTS);
        if kept == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[kept] = open;
        for mapping in self.mappings.iter_mut().flatten().filter(|m| m.file == slot) {
            mapping.file = kept;
        }
        None
    }

    fn is_shown(&self, inode: usize, page: u32) -> bool {
        let mut mappings = self.mappings.iter().flatten();
        mappings.any(|mapping| mapping.inode == inode && mapping.shown.contains_key(&page))
    }

    /// unmap_mapping_range: the file now ends before `first`.
    pub(super) fn unmap_from(&mut self, inode: usize, first: u32) {
        for mapping in self.mappings.iter_mut().flatten().filter(|m| m.inode == inode) {
            mapping.shown.split_off(&first);
        }
    }

    /// folio_mkclean of the pages that were written back: the next store to them faults.
    fn protect(&mut self) {
        for mapping in self.mappings.iter_mut().flatten() {
            for &page in self.inodes[mapping.inode].cache.cleaned() {
                if let Some(may_write) = mapping.shown.get_mut(&page) {
                    *may_write = false;
                }
            }
        }
        for mapping in self.mappings.iter().flatten() {
            self.inodes[mapping.inode].cache.forget_cleaned();
        }
    }

    /// The file range of `length` bytes at `offset` in a mapping, which was checked when the
    /// operations were read. None if mmap failed.
    fn span(&self, mapping: usize, offset: u64, length: u64) -> Option<Span> {
        let map = self.mappings.get(mapping)?.as_ref()?;
        let from = u64::from(map.first_page) * u64::from(PAGE_BYTES) + offset;
        Some(Span { inode: map.inode, from, to: from + length })
    }

    /// The program reads a byte of each page.
    pub fn touch(&mut self, now: Ns, mapping: usize, offset: u64, length: u64) -> Outcome {
        let Some(span) = self.span(mapping, offset, length) else { return Ok((EFAULT, now)) };
        let mut now = now;
        for page in page_of(span.from)..page_of(span.to - 1) + 1 {
            if self.mapped(mapping).shown.contains_key(&page) {
                continue;
            }
            match self.read_fault(now, mapping, page)? {
                (0, later) => now = later,
                bus => return Ok(bus),
            }
        }
        Ok((0, now))
    }

    /// The program writes bytes through a mapping, page by page. The result is the size of the
    /// pages that it may write to from then on, until they are written back.
    pub fn store(
        &mut self,
        now: Ns,
        mapping: usize,
        offset: u64,
        length: u64,
        source: Source,
    ) -> Outcome {
        let Some(span) = self.span(mapping, offset, length) else { return Ok((EFAULT, now)) };
        let (mut now, mut at, mut dirtied) = (now, span.from, 0);
        while at < span.to {
            let to = span.to.min((at / u64::from(PAGE_BYTES) + 1) * u64::from(PAGE_BYTES));
            let bytes = Bytes { at, to, source, offset: at };
            match self.store_one(now, mapping, span.inode, bytes)? {
                (done @ 0.., later) => (now, dirtied) = (later, dirtied + done),
                bus => return Ok(bus),
            }
            at = to;
        }
        Ok((dirtied, now))
    }

    /// The same for recorded bytes, which no source generates.
    pub fn store_bytes(
        &mut self,
        now: Ns,
        mapping: usize,
        (offset, length): (u64, u64),
        written: Written,
    ) -> Outcome {
        self.written += 1;
        self.writing = Some(Arc::new(written));
        let outcome = self.store(now, mapping, offset, length, Source::of_write(self.written));
        self.writing = None;
        outcome
    }

    /// The file offset of a mapping; 0 if mmap failed.
    pub fn mapped_offset(&self, mapping: usize) -> u64 {
        let map = self.mappings.get(mapping).and_then(Option::as_ref);
        map.map_or(0, |map| u64::from(map.first_page) * u64::from(PAGE_BYTES))
    }

    fn store_one(&mut self, now: Ns, mapping: usize, inode: usize, bytes: Bytes) -> Outcome {
        let Bytes { at, to, source, offset } = bytes;
        let page = page_of(at);
        let mut now = now;
        self.protect();
        let shown = self.mapped(mapping).shown.get(&page).copied();
        if shown.is_none() {
            match self.bring_in(now, mapping, page)? {
                (0, later) => now = later,
                bus => return Ok(bus),
            }
        }
        if shown != Some(true) {
            now = match self.make_writable(now + self.fault_ns(), mapping, page)? {
                (0, later) => later,
                bus => return Ok(bus),
            };
        }
        self.inodes[inode].has_tail |= to > self.inodes[inode].size_bytes;
        let contents = &mut self.inodes[inode].contents;
        if let Some(written) = &self.writing {
            contents.keep(source, written);
        }
        contents.write_from(at, to, source, offset);
        let dirtied = if shown == Some(true) { 0 } else { i64::from(PAGE_BYTES) };
        Ok((dirtied, now + Ns::from_ps(to - at, self.costs.copy_from_user_byte_ps)))
    }

    fn mapped(&self, mapping: usize) -> &Mapping {
        self.mappings[mapping].as_ref().expect("a mapping that was looked up")
    }

    fn fault_ns(&self) -> Ns {
        self.costs.syscall_ns + self.costs.fault_ns + self.costs.page_find_ns
    }

    /// do_read_fault: if the page is cached, maps the cached pages around it; else reads it.
    fn read_fault(&mut self, now: Ns, mapping: usize, page: u32) -> Outcome {
        let (mut now, mut is_tried) = (now + self.fault_ns(), false);
        loop {
            now = self.resched(now)?;
            let (is_there, around) = self.fault_around(mapping, page);
            now += self.costs.fault_page_ns * around;
            if is_there {
                return Ok((0, now));
            }
            let (fault, later) = self.filemap_fault(now, mapping, page, is_tried)?;
            now = later;
            match fault {
                Fault::Page => {
                    self.show(mapping, page, false);
                    return Ok((0, now));
                }
                Fault::Again => is_tried = true,
                Fault::Bus => return Ok((EFAULT, now)),
            }
        }
    }

    /// __do_fault of a store: brings in only the page itself.
    fn bring_in(&mut self, now: Ns, mapping: usize, page: u32) -> Outcome {
        let (mut now, mut is_tried) = (now, false);
        loop {
            now = self.resched(now)?;
            let (fault, later) = self.filemap_fault(now, mapping, page, is_tried)?;
            now = later;
            match fault {
                Fault::Page => return Ok((0, now)),
                Fault::Again => is_tried = true,
                Fault::Bus => return Ok((EFAULT, now)),
            }
        }
    }

    fn show(&mut self, mapping: usize, page: u32, may_write: bool) {
        let map = self.mappings[mapping].as_mut().expect("a mapping that was looked up");
        map.shown.insert(page, may_write);
        self.inodes[map.inode].cache.set_mapped(page, true);
    }

    /// do_fault_around, filemap_map_pages: returns whether the page itself is mapped, and how many
    /// others it maps.
    fn fault_around(&mut self, mapping: usize, page: u32) -> (bool, u64) {
        let map = self.mapped(mapping);
        let (inode, file) = (map.inode, map.file);
        let first = (page / AROUND_PAGES * AROUND_PAGES).max(map.first_page);
        let end = (page / AROUND_PAGES + 1) * AROUND_PAGES;
        let end = end.min(map.first_page + map.pages).min(self.inodes[inode].cache.pages());
        let cache = &self.inodes[inode].cache;
        let ready = |&page: &u32| cache.is_uptodate(page) && !cache.has_marker(page);
        let ready: Vec<u32> = (first..end).filter(ready).collect();
        let open = self.slots[file].as_mut().expect("a mapped file is open");
        open.position.readahead.mmap_miss =
            open.position.readahead.mmap_miss.saturating_sub(ready.len() as u32);
        let (is_there, mut around) = (ready.contains(&page), 0);
        for each in ready {
            if !self.mapped(mapping).shown.contains_key(&each) {
                self.show(mapping, each, false);
                around += u64::from(each != page);
            }
        }
        (is_there, around)
    }

    /// filemap_fault.
    fn filemap_fault(
        &mut self,
        now: Ns,
        mapping: usize,
        page: u32,
        is_tried: bool,
    ) -> Result<(Fault, Ns)> {
        let (inode, file) = (self.mapped(mapping).inode, self.mapped(mapping).file);
        if page >= self.inodes[inode].cache.pages() {
            return Ok((Fault::Bus, now));
        }
        let (mut now, mut has_read) = (now, false);
        if self.inodes[inode].cache.contains(page) {
            if !is_tried {
                (has_read, now) = self.async_mmap_readahead(now, inode, file, page)?;
            }
        } else {
            self.cache_misses += 1;
            (has_read, now) = self.sync_mmap_readahead(now, inode, file, page)?;
            if !self.inodes[inode].cache.contains(page) {
                let alone = Window { start: page, pages: 1, marker: None };
                now = match self.inodes[inode].is_lower() {
                    true => self.update_page(now, inode, page)?,
                    false => self.fill(now, inode, alone)?,
                };
                let is_read = self.inodes[inode].cache.is_uptodate(page);
                return Ok((if is_read { Fault::Again } else { Fault::Bus }, now));
            }
        }
        if !self.inodes[inode].cache.is_uptodate(page) {
            return Ok(match self.update_page(now, inode, page) {
                Ok(later) => (Fault::Again, later),
                Err(error) => (Fault::Bus, error.failed_at().ok_or(error)?),
            });
        }
        Ok((if has_read { Fault::Again } else { Fault::Page }, now))
    }

    /// do_sync_mmap_readahead: reads the pages around the page, unless read-around had too many
    /// misses. Returns whether it read anything.
    fn sync_mmap_readahead(
        &mut self,
        now: Ns,
        inode: usize,
        file: usize,
        page: u32,
    ) -> Result<(bool, Ns)> {
        let state =
            &mut self.slots[file].as_mut().expect("a mapped file is open").position.readahead;
        if state.max_pages == 0 {
            return Ok((false, now));
        }
        state.mmap_miss = (state.mmap_miss + 1).min(MISSES_MAX * 10);
        if state.mmap_miss > MISSES_MAX {
            return Ok((false, now));
        }
        let window = state.around(page);
        self.wants(page, 1);
        Ok((true, self.fill_mapped(now, inode, file, window)?))
    }

    /// do_async_mmap_readahead: a marker on the page continues a window.
    fn async_mmap_readahead(
        &mut self,
        now: Ns,
        inode: usize,
        file: usize,
        page: u32,
    ) -> Result<(bool, Ns)> {
        let cache = &mut self.inodes[inode].cache;
        let state =
            &mut self.slots[file].as_mut().expect("a mapped file is open").position.readahead;
        if state.max_pages == 0 {
            return Ok((false, now));
        }
        state.mmap_miss = state.mmap_miss.saturating_sub(1);
        if !cache.take_marker(page) {
            return Ok((false, now));
        }
        let wanted = state.max_pages;
        let asked = Asked { state, cache, page, wanted };
        match readahead::on_marker(&self.kernel, &mut self.policy, asked) {
            Some(window) => {
                self.wants(page, 1);
                Ok((true, self.fill_mapped(now, inode, file, window)?))
            }
            None => Ok((true, now)),
        }
    }

    /// do_page_mkwrite and fault_dirty_shared_page of a cached page.
    fn make_writable(&mut self, now: Ns, mapping: usize, page: u32) -> Outcome {
        let inode = self.mapped(mapping).inode;
        let (ino, second) = (self.inodes[inode].ino, self.inodes.stamp_s(now));
        let is_new_time = self.inodes[inode].modified_s != second;
        let made = self.fs.page_mkwrite(now, ino, page, is_new_time, &mut self.inodes);
        let now = match made {
            Ok(later) => later,
            Err(error) => {
                return errno(error, now).map(|(_, at)| (EFAULT, at)); // SIGBUS
            }
        };
        if is_new_time {
            self.inodes[inode].modified_s = second;
        }
        let is_clean = !self.inodes[inode].cache.is_page_dirty(page);
        let now = if is_clean { now + self.costs.page_dirty_ns } else { now };
        self.inodes[inode].cache.set_dirty(page);
        self.inodes.mark_dirty(now, inode);
        self.show(mapping, page, true);
        Ok((0, self.balance_dirty_pages(now)?))
    }

    /// msync.
    pub fn msync(
        &mut self,
        now: Ns,
        mapping: usize,
        offset: u64,
        length: u64,
        is_sync: bool,
    ) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let whole_pages = length.next_multiple_of(u64::from(PAGE_BYTES));
        let Some(span) = self.span(mapping, offset, whole_pages) else { return Ok((EINVAL, now)) };
        match is_sync && self.mapped(mapping).is_shared {
            true => self.sync_range(now, span.inode, span.from, span.to, true),
            false => Ok((0, now)),
        }
    }
}

/// Bytes of a file within a mapping.
struct Span {
    inode: usize,
    from: u64,
    to: u64,
}
