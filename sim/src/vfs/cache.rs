//! The page cache of one file: its cached pages and their flags.
//!
//! Mirrors struct address_space and the page flags PG_uptodate, PG_readahead, PG_dirty,
//! PG_referenced and PG_active.

use std::collections::BTreeMap;
use std::ops::Range;

const PRESENT: u8 = 1;
const MARKER: u8 = 2;
const DIRTY: u8 = 4;
const REFERENCED: u8 = 8;
const ACTIVE: u8 = 16;
/// Its content could not be read (no PG_uptodate).
const EMPTY: u8 = 32;
/// A page table maps it (page_mapped).
const MAPPED: u8 = 64;

/// Pages whose flags are in an array, 4 GiB of a file. Flags of later pages are in a map.
const NEAR_PAGES: u32 = 1 << 20;

/// Page flags by page number.
#[derive(Clone, Debug, Default)]
pub struct FileCache {
    /// The number of pages of the file.
    pages: u32,
    /// Flags of the first pages, up to the last that was ever cached.
    near: Vec<u8>,
    /// Flags of pages from `NEAR_PAGES` on, if there are any.
    far: BTreeMap<u32, u8>,
    dirty_pages: u32,
    /// The dirty pages, and some that are clean again.
    tagged: Vec<u32>,
    /// Mapped pages that were written back.
    cleaned: Vec<u32>,
}

impl FileCache {
    /// An empty cache for a file of so many pages.
    pub fn new(pages: u32) -> FileCache {
        FileCache { pages, ..FileCache::default() }
    }

    /// Grows the file to so many pages.
    pub fn grow(&mut self, pages: u32) {
        self.pages = self.pages.max(pages);
    }

    /// Sets the number of pages, and drops the pages beyond, dirty or not.
    pub fn resize(&mut self, pages: u32) {
        let gone = self.flags(pages..u32::MAX).filter(|(_, flags)| flags & DIRTY != 0);
        self.dirty_pages -= gone.count() as u32;
        self.near.truncate(pages as usize);
        self.far.split_off(&pages);
        self.pages = pages;
    }

    /// Flags of the possibly cached pages of a range, in order.
    fn flags(&self, pages: Range<u32>) -> impl DoubleEndedIterator<Item = (u32, u8)> + '_ {
        let pages = pages.start..pages.end.max(pages.start);
        let near_pages = self.near.len() as u32;
        let (first, end) = (pages.start.min(near_pages), pages.end.min(near_pages));
        let near = (first..end).zip(&self.near[first as usize..end as usize]);
        let far = self.far.range(pages).map(|(&page, flags)| (page, flags));
        near.chain(far).map(|(page, &flags)| (page, flags))
    }

    #[inline]
    fn get(&self, page: u32) -> u8 {
        match self.near.get(page as usize) {
            Some(&flags) => flags,
            None => self.get_from_map(page),
        }
    }

    #[cold]
    fn get_from_map(&self, page: u32) -> u8 {
        self.far.get(&page).copied().unwrap_or(0)
    }

    #[inline]
    fn get_mut(&mut self, page: u32) -> &mut u8 {
        assert!(page < self.pages, "page {page} of a file of {}", self.pages);
        if page < NEAR_PAGES {
            if page as usize >= self.near.len() {
                self.near.resize(page as usize + 1, 0);
            }
            &mut self.near[page as usize]
        } else {
            self.far.entry(page).or_default()
        }
    }

    /// The number of cached pages from `first` on.
    pub fn cached_from(&self, first: u32) -> u64 {
        self.flags(first..u32::MAX).filter(|(_, flags)| flags & PRESENT != 0).count() as u64
    }

    /// The last cached page below `end`.
    pub fn last_below(&self, end: u32) -> Option<u32> {
        self.flags(0..end).rfind(|(_, flags)| flags & PRESENT != 0).map(|(page, _)| page)
    }

    /// The number of pages of the file.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Whether a page is cached.
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.get(page) & PRESENT != 0
    }

    /// Whether a page is cached and up to date (PG_uptodate).
    #[inline]
    pub fn is_uptodate(&self, page: u32) -> bool {
        self.get(page) & (PRESENT | EMPTY) == PRESENT
    }

    /// Adds a page that is up to date.
    #[inline]
    pub fn insert(&mut self, page: u32) {
        let flags = self.get_mut(page);
        *flags = *flags & !EMPTY | PRESENT;
    }

    /// Adds a page that could not be read.
    pub fn clear_uptodate(&mut self, page: u32) {
        *self.get_mut(page) |= EMPTY;
    }

    /// folio_mark_accessed of a cached page; returns whether it should become active.
    #[inline]
    pub fn mark_accessed(&mut self, page: u32) -> bool {
        let flags = self.get_mut(page);
        let again = *flags & (REFERENCED | ACTIVE) == REFERENCED;
        *flags = if again { *flags & !REFERENCED | ACTIVE } else { *flags | REFERENCED };
        again
    }

    /// Whether the page is on the active list (PG_active).
    pub fn is_active(&self, page: u32) -> bool {
        self.get(page) & ACTIVE != 0
    }

    /// Sets the list that the page is on.
    pub fn set_active(&mut self, page: u32, active: bool) {
        let flags = self.get_mut(page);
        *flags = if active { *flags | ACTIVE } else { *flags & !(ACTIVE | REFERENCED) };
    }

    /// The number of dirty pages.
    pub fn dirty_pages(&self) -> u32 {
        self.dirty_pages
    }

    /// The next dirty pages from `first` on, at most `count` (pagevec_lookup_range_tag).
    pub fn next_dirty(&self, first: u32, count: usize) -> Vec<u32> {
        if self.dirty_pages == 0 {
            return Vec::new();
        }
        let dirty = self.flags(first..self.pages).filter(|(_, flags)| flags & DIRTY != 0);
        dirty.map(|(page, _)| page).take(count).collect()
    }

    /// SetPageReadahead.
    pub fn set_marker(&mut self, page: u32) {
        if page < self.pages {
            *self.get_mut(page) |= MARKER;
        }
    }

    /// TestClearPageReadahead.
    #[inline]
    pub fn take_marker(&mut self, page: u32) -> bool {
        let flags = self.get_mut(page);
        let marked = *flags & MARKER != 0;
        *flags &= !MARKER;
        marked
    }

    /// set_page_dirty.
    pub fn set_dirty(&mut self, page: u32) {
        let flags = self.get_mut(page);
        if *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty_pages += 1;
            self.tagged.push(page);
        }
    }

    /// Whether the page is dirty.
    pub fn is_page_dirty(&self, page: u32) -> bool {
        self.get(page) & DIRTY != 0
    }

    /// clear_page_dirty_for_io of a dirty page. The end of write-back (folio_end_writeback) clears
    /// PG_reclaim, which is also the read-ahead marker.
    #[inline]
    pub fn clear_dirty(&mut self, page: u32) {
        let flags = self.get_mut(page);
        assert!(*flags & DIRTY != 0, "page {page} is clean");
        let is_mapped = *flags & MAPPED != 0;
        *flags &= !(DIRTY | MARKER);
        self.dirty_pages -= 1;
        if is_mapped {
            self.note_cleaned(page);
        }
    }

    #[cold]
    fn note_cleaned(&mut self, page: u32) {
        self.cleaned.push(page);
    }

    /// Whether the page has the marker (PageReadahead).
    pub fn has_marker(&self, page: u32) -> bool {
        self.get(page) & MARKER != 0
    }

    /// Whether a page table maps the page.
    pub fn is_mapped(&self, page: u32) -> bool {
        self.get(page) & MAPPED != 0
    }

    /// Sets whether a page table maps the cached page.
    pub fn set_mapped(&mut self, page: u32, mapped: bool) {
        if self.contains(page) {
            let flags = self.get_mut(page);
            *flags = if mapped { *flags | MAPPED } else { *flags & !MAPPED };
        }
    }

    /// Mapped pages that were written back since `forget_cleaned`. Page tables map them read-only
    /// (folio_mkclean).
    pub fn cleaned(&self) -> &[u32] {
        &self.cleaned
    }

    /// The page tables are updated.
    pub fn forget_cleaned(&mut self) {
        self.cleaned.clear();
    }

    /// Whether any page is dirty (PAGECACHE_TAG_DIRTY).
    pub fn is_dirty(&self) -> bool {
        self.dirty_pages > 0
    }

    /// tag_pages_for_writeback: the dirty pages of `first..end` in order.
    pub fn tag_dirty(&mut self, first: u32, end: u32) -> Vec<u32> {
        if self.dirty_pages == 0 {
            return Vec::new();
        }
        let mut tagged = std::mem::take(&mut self.tagged);
        tagged.retain(|&page| self.is_page_dirty(page));
        tagged.sort_unstable();
        tagged.dedup();
        self.tagged = tagged;
        let before = |limit: u32| self.tagged.partition_point(|&page| page < limit);
        self.tagged[before(first)..before(end).max(before(first))].to_vec()
    }

    /// invalidate_mapping_pages: drops the clean pages of `first..end`. Dirty pages stay, and
    /// deactivate_file_folio marks them to be reclaimed soon: PG_reclaim, which is the same bit as
    /// PG_readahead. Mapped pages stay unchanged.
    pub fn drop_clean(&mut self, first: u32, end: u32) {
        let near_pages = self.near.len();
        let near = (first as usize).min(near_pages)..(end as usize).min(near_pages);
        let near = self.near.iter_mut().take(near.end).skip(near.start);
        for flags in near.chain(self.far.range_mut(first..end.max(first)).map(|(_, flags)| flags)) {
            *flags = match *flags {
                mapped if mapped & MAPPED != 0 => mapped,
                dirty if dirty & DIRTY != 0 => dirty | MARKER,
                _ => 0,
            };
        }
        self.far.retain(|_, flags| *flags != 0);
    }
}
