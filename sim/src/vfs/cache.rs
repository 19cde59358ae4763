//! The page cache of one file: which pages are there, and what is noted on them.
//!
//! Mirrors struct address_space and the page flags PG_uptodate, PG_readahead and PG_dirty. Left
//! out: eviction for want of memory; the boards have more than the experiments read.

const PRESENT: u8 = 1;
const MARKER: u8 = 2;
const DIRTY: u8 = 4;

/// Page flags by page number.
#[derive(Clone, Debug, Default)]
pub struct FileCache {
    flags: Vec<u8>,
    dirty_pages: u32,
}

impl FileCache {
    /// An empty cache for a file of so many pages.
    pub fn new(pages: u32) -> FileCache {
        FileCache { flags: vec![0; pages as usize], dirty_pages: 0 }
    }

    /// The file has grown to so many pages.
    pub fn grow(&mut self, pages: u32) {
        if pages as usize > self.flags.len() {
            self.flags.resize(pages as usize, 0);
        }
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

    /// Puts a page into the cache.
    #[inline]
    pub fn insert(&mut self, page: u32) {
        self.flags[page as usize] |= PRESENT;
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
        self.dirty_pages += u32::from(*flags & DIRTY == 0);
        *flags |= DIRTY;
    }

    /// Whether any page waits for write-back.
    pub fn is_dirty(&self) -> bool {
        self.dirty_pages > 0
    }

    /// The dirty pages in order, which are dirty no longer.
    pub fn take_dirty(&mut self) -> Vec<u32> {
        if self.dirty_pages == 0 {
            return Vec::new();
        }
        self.dirty_pages = 0;
        let flags = self.flags.iter_mut().enumerate();
        let dirty = flags.filter(|(_, flags)| **flags & DIRTY != 0);
        dirty
            .map(|(page, flags)| {
                *flags &= !DIRTY;
                page as u32
            })
            .collect()
    }

    /// invalidate_mapping_pages: drops the clean pages of `first..end`.
    pub fn drop_clean(&mut self, first: u32, end: u32) {
        let end = (end as usize).min(self.flags.len());
        for flags in self.flags.iter_mut().take(end).skip(first as usize) {
            if *flags & DIRTY == 0 {
                *flags = 0;
            }
        }
    }
}
