//! The LRU lists of the page cache, and which pages are reclaimed when memory runs short.
//!
//! Mirrors mm/vmscan.c (shrink_inactive_list, shrink_active_list, inactive_is_low,
//! folio_check_references) and mm/swap.c (folio_mark_accessed) of Linux 6.1 for unmapped file
//! pages. A page enters the inactive list. Its second read moves it to the active list. Reclaim
//! takes clean pages from the tail of the inactive list, and moves dirty ones to the active list.
//!
//! replacement.rs has the trait by which another policy can decide in the place of these lists,
//! uses.rs what it is told, own.rs asks it.
//!
//! Left out: the pace of kswapd (here memory below the low watermark is refilled at once and takes
//! no time), slab, programs' own memory, workingset refaults, multi-generational LRU, the order in
//! which pages of one batch (pagevec) reach the lists. Reclaim of mapped pages is refused.
//!
//! Invariants:
//! 1. A page in the cache is on exactly one list: the active one if its `ACTIVE` flag is set.
//! 2. An entry whose page is not in the cache, or is on the other list, is stale and skipped.

mod own;
mod replacement;
mod uses;

pub(super) use own::OwnReclaim;
pub use replacement::{CleanFirst, LeastRecent, Reclaim, Reclaimed, SecondChance, Shortage};
pub use uses::{CachedPages, PageUse};

use super::inode::Inode;
use std::collections::VecDeque;
use uses::CachedPage;

/// SWAP_CLUSTER_MAX: pages that leave the active list at a time.
const CLUSTER_PAGES: usize = 32;

/// Both lists, the oldest page first, and their capacity.
#[derive(Clone, Debug, Default)]
pub(super) struct Lru {
    inactive: VecDeque<CachedPage>,
    active: VecDeque<CachedPage>,
    /// Pages that fit into memory.
    capacity: usize,
    /// Whether there may be stale entries.
    has_gone: bool,
    /// Reclaim met a mapped page.
    pub met_mapped: bool,
    /// Pages freed when memory is exceeded: from the low to the high watermark.
    batch: usize,
}

impl Lru {
    /// The lists of a machine with so many free pages after boot. The watermarks follow from them
    /// as in mm/page_alloc.c: min_free_kbytes is the root of 16 times the memory in KiB, low and
    /// high are a quarter and a half above.
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

    /// A policy in the place of the lists, which have no pages yet.
    pub fn replaced_by(&self, policy: Box<dyn Reclaim>) -> OwnReclaim {
        OwnReclaim::new(policy, self.capacity, self.batch)
    }

    /// A page was added to the cache.
    #[inline]
    pub fn add(&mut self, page: CachedPage) {
        self.inactive.push_back(page);
    }

    /// folio_activate.
    pub fn activate(&mut self, page: CachedPage) {
        self.active.push_back(page);
        self.has_gone = true;
    }

    /// Pages were dropped from the cache.
    pub fn note_gone(&mut self) {
        self.has_gone = true;
    }

    /// Whether memory is exceeded, or there may be stale entries.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.inactive.len() + self.active.len() > self.capacity
    }

    /// Removes stale entries.
    pub fn forget_gone(&mut self, inodes: &[Inode]) {
        if !std::mem::take(&mut self.has_gone) {
            return;
        }
        let is_there = |&(inode, page): &CachedPage| inodes[inode as usize].cache.contains(page);
        let is_active = |&(inode, page): &CachedPage| inodes[inode as usize].cache.is_active(page);
        self.inactive.retain(|page| is_there(page) && !is_active(page));
        self.active.retain(|page| is_there(page) && is_active(page));
    }

    /// shrink_lruvec until the high watermark is reached, or nothing more can be reclaimed.
    pub fn shrink(&mut self, inodes: &mut [Inode]) {
        self.forget_gone(inodes);
        let target = self.capacity.saturating_sub(self.batch);
        // Each page is examined at most twice: once active, once inactive.
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

    /// shrink_active_list: the oldest pages become inactive, referenced or not.
    fn shrink_active(&mut self, inodes: &mut [Inode]) {
        for _ in 0..CLUSTER_PAGES.min(self.active.len()) {
            let (inode, page) = self.active.pop_front().expect("counted");
            inodes[inode as usize].cache.set_active(page, false);
            self.inactive.push_back((inode, page));
        }
    }
}
