//! The inodes that the VFS knows, and which of them are dirty.
//!
//! Mirrors fs/inode.c, the list handling of fs/fs-writeback.c (__mark_inode_dirty) and
//! truncate_setsize of mm/truncate.c, Linux 6.1. An inode stays here until its last name is removed
//! and its last descriptor is closed. The file system decides whether it keeps the inode in its own
//! memory.
//!
//! Invariants:
//! 1. The flusher has an inode exactly if its `DirtyState::since` is set.
//! 2. No two existing inodes have the same number.

use super::cache::FileCache;
use super::completions::Completions;
use super::flusher::{Flusher, Reason};
use super::inode::{DirtyState, Inode};
use super::reclaim::{Lru, OwnReclaim, Reclaim};
use super::truncate::Truncated;
use crate::content::Contents;
use crate::errno::{errno, FsError, Result};
use crate::fs::{Grabbed, Ino, PageCache, Writeback, PAGE_BYTES};
use crate::profile::KernelFacts;
use crate::sched::Ticks;
use crate::units::Ns;
use std::collections::BTreeMap;

/// Every inode but the root's, and the flusher of the dirty ones.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    /// In the order of creation; a deleted inode leaves an unused entry.
    list: Vec<Inode>,
    by_ino: BTreeMap<Ino, usize>,
    pub flusher: Flusher,
    pub ticks: Ticks,
    pub facts: KernelFacts,
    /// The next page of a read-ahead window, which is locked if it is not cached yet.
    pub next_in_window: Option<(usize, u32)>,
    /// Pages that a file system added while it read another page.
    pub added_besides: u64,
    /// The work of dropping pages in truncations, until its time is charged.
    pub truncated: Truncated,
    lru: Lru,
    /// Decides in the place of `lru`, which then has no pages.
    own_reclaim: Option<Box<OwnReclaim>>,
}

impl std::ops::Index<usize> for Inodes {
    type Output = Inode;

    #[inline]
    fn index(&self, index: usize) -> &Inode {
        &self.list[index]
    }
}

impl std::ops::IndexMut<usize> for Inodes {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Inode {
        &mut self.list[index]
    }
}

impl Inodes {
    /// Adds a new inode; returns its index.
    pub fn add(&mut self, now: Ns, ino: Ino, is_directory: bool) -> usize {
        self.list.push(Inode {
            ino,
            is_directory,
            lower: None,
            parent: None,
            target: None,
            names: 1,
            is_linkable: false,
            size_bytes: 0,
            modified_s: self.stamp_s(now),
            cache: FileCache::default(),
            contents: Contents::default(),
            has_tail: false,
            dirty: DirtyState::default(),
            writeback_index: 0,
            write_error: None,
        });
        let index = self.list.len() - 1;
        let before = self.by_ino.insert(ino, index);
        assert!(before.is_none(), "inode {} is there twice", ino.0);
        index
    }

    /// evict: deletes the inode and its dirty state.
    pub fn evict(&mut self, index: usize) {
        let inode = &mut self.list[index];
        self.by_ino.remove(&inode.ino);
        inode.cache = FileCache::default();
        inode.contents = Contents::default();
        self.lru.note_gone();
        if let Some(own) = &mut self.own_reclaim {
            own.note_gone();
        }
        if std::mem::take(&mut inode.dirty).since.is_some() {
            self.flusher.remove(index);
        }
    }

    /// No inodes, on a kernel with so many pages for the page cache.
    pub fn new(
        facts: KernelFacts,
        free_pages: u64,
        ticks: Ticks,
        now: Ns,
        completions: Completions,
    ) -> Inodes {
        Inodes {
            list: Vec::new(),
            by_ino: BTreeMap::new(),
            flusher: Flusher::new(ticks, now, (facts.vm, free_pages), completions),
            ticks,
            facts,
            next_in_window: None,
            added_besides: 0,
            truncated: Truncated::default(),
            lru: Lru::new(free_pages),
            own_reclaim: None,
        }
    }

    /// Makes another policy decide which pages leave a full cache. There are no pages yet.
    pub fn set_reclaim_policy(&mut self, policy: Box<dyn Reclaim>) {
        self.own_reclaim = Some(Box::new(self.lru.replaced_by(policy)));
    }

    /// The policy of reclaim, for the inodes of the next mount.
    pub fn take_reclaim_policy(&mut self) -> Option<Box<dyn Reclaim>> {
        self.own_reclaim.take().map(|own| own.into_policy())
    }

    /// mapping_set_error: a page could not be written; the next fsync reports it.
    pub fn note_error(&mut self, now: Ns, ino: Ino, error: FsError) -> Result<Ns> {
        let (errno, now) = errno(error, now)?;
        let index = self.index_of(ino);
        self.list[index].write_error.get_or_insert(errno);
        Ok(now)
    }

    /// The timestamp, in seconds, of a change made now.
    pub fn stamp_s(&self, now: Ns) -> u64 {
        self.ticks.second(now)
    }

    /// The number of dirty pages (NR_FILE_DIRTY).
    pub fn dirty_pages(&self) -> u64 {
        self.flusher.inodes().map(|index| u64::from(self.list[index].cache.dirty_pages())).sum()
    }

    /// A page was added to the cache (filemap_add_folio).
    #[inline]
    pub fn add_page(&mut self, index: usize, page: u32) {
        if self.own_reclaim.is_some() {
            return self.add_page_by_policy(index, page);
        }
        self.list[index].cache.insert(page);
        self.lru.add((index as u32, page));
        if self.lru.is_full() {
            self.reclaim();
        }
    }

    #[cold]
    fn add_page_by_policy(&mut self, index: usize, page: u32) {
        let own = self.own_reclaim.as_mut().expect("a policy of reclaim");
        let met = own.make_room(&mut self.list);
        own.add((index as u32, page));
        self.list[index].cache.insert(page);
        self.lru.met_mapped |= met.mapped;
        if met.dirty {
            self.flusher.start_all_soon();
        }
    }

    /// A program has read or written a page. The kernel's lists have no use for writes.
    #[inline]
    pub fn note_use(&mut self, index: usize, page: u32) {
        if let Some(own) = &mut self.own_reclaim {
            own.note_use((index as u32, page));
        }
    }

    /// A program has read a page.
    #[inline]
    pub fn mark_accessed(&mut self, index: usize, page: u32) {
        self.note_use(index, page);
        if self.list[index].cache.mark_accessed(page) {
            self.lru.activate((index as u32, page));
        }
    }

    /// try_to_free_pages.
    #[cold]
    fn reclaim(&mut self) {
        self.lru.shrink(&mut self.list);
    }

    /// Refuses the case if reclaim met mapped pages.
    pub fn refuse_reclaimed(&self) -> Result<()> {
        match self.lru.met_mapped {
            true => Err(FsError::NotModelled("memory that runs short while files are mapped")),
            false => Ok(()),
        }
    }

    /// Pages left the cache other than by reclaim.
    pub fn pages_gone(&mut self) {
        self.lru.note_gone();
        self.lru.forget_gone(&self.list);
        if let Some(own) = &mut self.own_reclaim {
            own.note_gone();
            own.forget_gone(&self.list);
        }
    }

    /// The number of all inodes ever created.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All inodes by index, including deleted ones.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Inode> {
        self.list.iter_mut()
    }

    /// __mark_inode_dirty: an inode that is already dirty keeps its place in the list.
    pub fn mark_dirty(&mut self, now: Ns, index: usize) {
        let since = &mut self.list[index].dirty.since;
        if since.is_none() {
            *since = Some(now);
            self.flusher.add(now, index, now);
        }
    }

    /// The index of an inode number, if the inode exists.
    pub fn find(&self, ino: Ino) -> Option<usize> {
        self.by_ino.get(&ino).copied()
    }

    /// The index of an inode number that exists.
    pub fn index_of(&self, ino: Ino) -> usize {
        *self.by_ino.get(&ino).expect("an inode of this file system")
    }
}

/// The number of pages of a file of that size.
fn pages_of(size_bytes: u64) -> u32 {
    u32::try_from(size_bytes.div_ceil(u64::from(PAGE_BYTES))).expect("a file below 16 TiB")
}

impl PageCache for Inodes {
    fn read_cache_page(&mut self, ino: Ino, page: u32) -> bool {
        let index = self.index_of(ino);
        let missing = !self.list[index].cache.is_uptodate(page);
        if !self.list[index].cache.contains(page) {
            self.add_page(index, page);
        }
        self.list[index].cache.insert(page);
        missing
    }

    fn grab_page(&mut self, ino: Ino, page: u32) -> Grabbed {
        let index = self.index_of(ino);
        let is_new = !self.list[index].cache.contains(page);
        if is_new && self.next_in_window == Some((index, page)) {
            return Grabbed::Locked;
        }
        let uptodate = self.list[index].cache.is_uptodate(page);
        if is_new {
            self.add_page(index, page);
            self.added_besides += 1;
        }
        self.list[index].cache.insert(page);
        self.mark_accessed(index, page);
        if uptodate {
            Grabbed::Uptodate
        } else {
            Grabbed::Empty
        }
    }

    fn keep_page(&mut self, ino: Ino, page: u32, is_uptodate: bool) {
        let index = self.index_of(ino);
        if page >= self.list[index].cache.pages() {
            return;
        }
        if !self.list[index].cache.contains(page) {
            self.add_page(index, page);
        }
        let cache = &mut self.list[index].cache;
        match is_uptodate {
            true => cache.insert(page),
            false => cache.clear_uptodate(page),
        }
    }

    fn clear_uptodate(&mut self, ino: Ino, page: u32) {
        let index = self.index_of(ino);
        self.list[index].cache.clear_uptodate(page);
    }

    fn find_page(&self, ino: Ino, page: u32) -> Option<bool> {
        let cache = &self.list[self.index_of(ino)].cache;
        cache.contains(page).then(|| cache.is_page_dirty(page))
    }

    fn clear_dirty(&mut self, ino: Ino, page: u32) {
        let index = self.index_of(ino);
        self.list[index].clear_page_dirty(page);
        self.flusher.completions.add(1);
    }

    fn truncate_setsize(&mut self, ino: Ino, size_bytes: u64) {
        let index = self.index_of(ino);
        let inode = &mut self.list[index];
        inode.size_bytes = size_bytes;
        inode.contents.clear(size_bytes, u64::MAX);
        let pages = pages_of(size_bytes);
        self.truncated = Truncated::from(&inode.cache, pages);
        inode.cache.resize(pages);
        self.pages_gone();
    }

    fn i_size_write(&mut self, ino: Ino, size_bytes: u64) {
        let index = self.index_of(ino);
        self.list[index].size_bytes = size_bytes;
        self.list[index].cache.grow(pages_of(size_bytes));
    }

    fn mark_inode_dirty(&mut self, now: Ns, ino: Ino, size: bool) {
        let index = self.index_of(ino);
        self.list[index].dirty.size |= size;
        self.mark_dirty(now, index);
    }

    fn queue_writeback(&mut self, pages: i64) -> bool {
        let is_needed = self.flusher.has_dirty_io();
        if is_needed {
            self.flusher.queue(Reason::FreeSpace, pages);
        }
        is_needed
    }

    fn queue_sync(&mut self) {
        self.flusher.queue(Reason::Sync, i64::MAX);
    }

    fn is_flusher_awaited(&self) -> bool {
        self.flusher.is_awaited()
    }

    fn is_flusher_done(&self) -> bool {
        self.flusher.is_done()
    }

    fn next_writeback(&mut self, now: Ns) -> Writeback {
        self.next_step(now)
    }

    fn written(&mut self, now: Ns, step: Writeback, done: Result<Ns>) -> Result<Ns> {
        let now = match (done, step) {
            (Ok(now), _) => now,
            (Err(error), Writeback::Page(write)) => self.note_error(now, write.ino, error)?,
            (Err(error), _) => errno(error, now)?.1,
        };
        self.has_written(now);
        if step == Writeback::Wake {
            self.has_woken(now);
        }
        Ok(now)
    }

    #[inline]
    fn contents(&self, ino: Ino) -> &Contents {
        &self.list[self.index_of(ino)].contents
    }
}
