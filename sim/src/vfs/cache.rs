//! The page cache of one file: which pages are there, and what is noted on them.
//!
//! Mirrors struct address_space and the page flags PG_uptodate, PG_readahead, PG_dirty,
//! PG_referenced and PG_active.

const PRESENT: u8 = 1;
const MARKER: u8 = 2;
const DIRTY: u8 = 4;
const REFERENCED: u8 = 8;
const ACTIVE: u8 = 16;
/// What it should hold could not be read (no PG_uptodate).
const EMPTY: u8 = 32;

/// Page flags by page number.
#[derive(Clone, Debug, Default)]
pub struct FileCache {
    flags: Vec<u8>,
    dirty_pages: u32,
    /// The dirty pages, and some that no longer are.
    tagged: Vec<u32>,
}

impl FileCache {
    /// An empty cache for a file of so many pages.
    pub fn new(pages: u32) -> FileCache {
        FileCache { flags: vec![0; pages as usize], dirty_pages: 0, tagged: Vec::new() }
    }

    /// The file has grown to so many pages.
    pub fn grow(&mut self, pages: u32) {
        if pages as usize > self.flags.len() {
            self.flags.resize(pages as usize, 0);
        }
    }

    /// The file has so many pages now; what lies beyond is gone, dirty or not.
    pub fn resize(&mut self, pages: u32) {
        let gone = self.flags.iter().skip(pages as usize).filter(|&&flags| flags & DIRTY != 0);
        self.dirty_pages -= gone.count() as u32;
        self.flags.resize(pages as usize, 0);
    }

    /// Pages that are cached from `first` on.
    pub fn cached_from(&self, first: u32) -> u64 {
        self.flags.iter().skip(first as usize).filter(|&&flags| flags & PRESENT != 0).count() as u64
    }

    /// The last page below `end` that is cached.
    pub fn last_below(&self, end: u32) -> Option<u32> {
        let flags = &self.flags[..self.flags.len().min(end as usize)];
        flags.iter().rposition(|flags| flags & PRESENT != 0).map(|page| page as u32)
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.flags.len() as u32
    }

    /// Whether a page is cached.
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.flags.get(page as usize).is_some_and(|flags| flags & PRESENT != 0)
    }

    /// Whether a page is cached and holds what it should (PG_uptodate).
    #[inline]
    pub fn is_uptodate(&self, page: u32) -> bool {
        self.flags.get(page as usize).is_some_and(|flags| flags & (PRESENT | EMPTY) == PRESENT)
    }

    /// A page is in the cache and holds what it should.
    #[inline]
    pub fn insert(&mut self, page: u32) {
        self.flags[page as usize] = self.flags[page as usize] & !EMPTY | PRESENT;
    }

    /// A page is in the cache, but could not be read.
    pub fn clear_uptodate(&mut self, page: u32) {
        self.flags[page as usize] |= EMPTY;
    }

    /// folio_mark_accessed: whether the page, which is in the cache, is to become active.
    #[inline]
    pub fn mark_accessed(&mut self, page: u32) -> bool {
        let flags = &mut self.flags[page as usize];
        let again = *flags & (REFERENCED | ACTIVE) == REFERENCED;
        *flags = if again { *flags & !REFERENCED | ACTIVE } else { *flags | REFERENCED };
        again
    }

    /// Whether the page is on the active list (PG_active).
    pub fn is_active(&self, page: u32) -> bool {
        self.flags.get(page as usize).is_some_and(|flags| flags & ACTIVE != 0)
    }

    /// Notes on which list the page is.
    pub fn set_active(&mut self, page: u32, active: bool) {
        let flags = &mut self.flags[page as usize];
        *flags = if active { *flags | ACTIVE } else { *flags & !(ACTIVE | REFERENCED) };
    }

    /// Pages of the file that wait for write-back.
    pub fn dirty_pages(&self) -> u32 {
        self.dirty_pages
    }

    /// The next dirty pages from `first` on, so many at most (pagevec_lookup_range_tag).
    pub fn next_dirty(&self, first: u32, count: usize) -> Vec<u32> {
        if self.dirty_pages == 0 {
            return Vec::new();
        }
        let dirty = (first..self.pages()).filter(|&page| self.flags[page as usize] & DIRTY != 0);
        dirty.take(count).collect()
    }

    /// SetPageReadahead.
    pub fn set_marker(&mut self, page: u32) {
        if let Some(flags) = self.flags.get_mut(page as usize) {
            *flags |= MARKER;
        }
    }

    /// TestClearPageReadahead.
    #[inline]
    pub fn take_marker(&mut self, page: u32) -> bool {
        let flags = &mut self.flags[page as usize];
        let marked = *flags & MARKER != 0;
        *flags &= !MARKER;
        marked
    }

    /// set_page_dirty.
    pub fn set_dirty(&mut self, page: u32) {
        let flags = &mut self.flags[page as usize];
        if *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty_pages += 1;
            self.tagged.push(page);
        }
    }

    /// Whether this page waits for write-back.
    pub fn is_page_dirty(&self, page: u32) -> bool {
        self.flags.get(page as usize).is_some_and(|flags| flags & DIRTY != 0)
    }

    /// clear_page_dirty_for_io of a dirty page. The end of write-back (folio_end_writeback) takes PG_reclaim, and so the
    /// marker, away.
    pub fn clear_dirty(&mut self, page: u32) {
        assert!(self.is_page_dirty(page), "page {page} is clean");
        self.flags[page as usize] &= !(DIRTY | MARKER);
        self.dirty_pages -= 1;
    }

    /// Whether any page waits for write-back (PAGECACHE_TAG_DIRTY).
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

    /// invalidate_mapping_pages: drops the clean pages of `first..end`. The dirty ones stay and are
    /// to be reclaimed soon (deactivate_file_folio): PG_reclaim, which is the bit of PG_readahead.
    pub fn drop_clean(&mut self, first: u32, end: u32) {
        let end = (end as usize).min(self.flags.len());
        for flags in self.flags.iter_mut().take(end).skip(first as usize) {
            *flags = if *flags & DIRTY == 0 { 0 } else { *flags | MARKER };
        }
    }
}
