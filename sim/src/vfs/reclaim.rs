//! The LRU lists of the page cache, and what leaves it when memory runs short.
//!
//! Mirrors mm/vmscan.c (shrink_inactive_list, shrink_active_list, inactive_is_low,
//! folio_check_references) and mm/swap.c (folio_mark_accessed) of Linux 6.1 for file pages that
//! nobody maps. A page enters the inactive list; the second time a program reads it, it moves to
//! the active one; reclaim takes clean pages from the tail of the inactive list, and turns dirty
//! ones to the active list. Left out: kswapd's own pace (what is below the low watermark is made up
//! at once, and costs no time), slab, programs' own memory, workingset refaults, multi-generational
//! LRU, the order in which pages of one batch (pagevec) come to the lists. Which mapped pages go is
//! refused.
//!
//! Invariants:
//! 1. A page in the cache is on exactly one list: the active one if its `ACTIVE` flag is set.
//! 2. An entry whose page is not in the cache, or on the other list, says nothing and is skipped.

use super::inode::Inode;
use std::collections::VecDeque;

/// SWAP_CLUSTER_MAX: pages that move from the active list at a time.
const CLUSTER_PAGES: usize = 32;

/// A page of an inode, by the inode's index.
pub(super) type CachedPage = (u32, u32);

/// Both lists, the oldest first, and how much room there is.
#[derive(Clone, Debug, Default)]
pub(super) struct Lru {
    inactive: VecDeque<CachedPage>,
    active: VecDeque<CachedPage>,
    /// Pages there is memory for.
    capacity: usize,
    /// Whether there may be entries that say nothing.
    has_gone: bool,
    /// A page came up that is mapped.
    pub met_mapped: bool,
    /// How many more are freed when that is exceeded: from the low to the high watermark.
    batch: usize,
}

impl Lru {
    /// Of a machine with so many free pages when the kernel has started. The watermarks follow from
    /// them as in mm/page_alloc.c: min_free_kbytes is the root of 16 times the memory in KiB, low
    /// and high a quarter and a half above.
    pub fn new(free_pages: u64) -> Lru {
        let min = (free_pages * 4 * 16).isqrt() / 4;
        let (low, high) = (min + min / 4, min + min / 2);
        let pages = |count: u64| usize::try_from(count).expect("an address space");
        Lru {
            capacity: pages(free_pages.saturating_sub(low)),
            batch: pages(high - low),
            ..Lru::default()
        }
    }

    /// A page has come into the cache.
    #[inline]
    pub fn add(&mut self, page: CachedPage) {
        self.inactive.push_back(page);
    }

    /// folio_activate.
    pub fn activate(&mut self, page: CachedPage) {
        self.active.push_back(page);
        self.has_gone = true;
    }

    /// Pages are cached no longer.
    pub fn note_gone(&mut self) {
        self.has_gone = true;
    }

    /// Whether there are more pages than memory has room for, or entries that say nothing.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.inactive.len() + self.active.len() > self.capacity
    }

    /// Entries that say nothing go.
    pub fn forget_gone(&mut self, inodes: &[Inode]) {
        if !std::mem::take(&mut self.has_gone) {
            return;
        }
        let is_there = |&(inode, page): &CachedPage| inodes[inode as usize].cache.contains(page);
        let is_active = |&(inode, page): &CachedPage| inodes[inode as usize].cache.is_active(page);
        self.inactive.retain(|page| is_there(page) && !is_active(page));
        self.active.retain(|page| is_there(page) && is_active(page));
    }

    /// shrink_lruvec until the high watermark is reached, or nothing can be reclaimed.
    pub fn shrink(&mut self, inodes: &mut [Inode]) {
        self.forget_gone(inodes);
        let target = self.capacity.saturating_sub(self.batch);
        // A page is looked at twice at most: once active, once inactive.
        let mut looks = 2 * (self.inactive.len() + self.active.len());
        while self.is_over(target) && looks > 0 {
            looks -= 1;
            if self.inactive.len() < self.active.len() {
                self.shrink_active(inodes);
            }
            let Some((inode, page)) = self.inactive.pop_front() else { continue };
            let cache = &mut inodes[inode as usize].cache;
            self.met_mapped |= cache.is_mapped(page);
            if cache.is_page_dirty(page) || cache.is_mapped(page) {
                cache.set_active(page, true);
                self.active.push_back((inode, page));
            } else {
                cache.drop_clean(page, page + 1);
            }
        }
    }

    fn is_over(&self, pages: usize) -> bool {
        self.inactive.len() + self.active.len() > pages
    }

    /// shrink_active_list: the oldest become inactive, used or not.
    fn shrink_active(&mut self, inodes: &mut [Inode]) {
        for _ in 0..CLUSTER_PAGES.min(self.active.len()) {
            let (inode, page) = self.active.pop_front().expect("counted");
            inodes[inode as usize].cache.set_active(page, false);
            self.inactive.push_back((inode, page));
        }
    }
}
