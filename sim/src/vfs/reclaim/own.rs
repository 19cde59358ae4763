//! A policy in the place of the kernel's lists.
//!
//! Invariant: `uses` has every cached page, and until `forget_gone` some that left the cache.

use super::super::inode::Inode;
use super::replacement::{Reclaim, Reclaimed, Shortage};
use super::uses::{CachedPage, CachedPages, PageUse, Uses};
use crate::stop::misbehaved;

/// A policy of reclaim, with what it is told.
#[derive(Clone, Debug)]
pub(in super::super) struct OwnReclaim {
    policy: Box<dyn Reclaim>,
    uses: Uses,
    /// Pages that fit into memory.
    capacity: usize,
    batch: usize,
    has_gone: bool,
}

/// What a reclaim met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Met {
    /// A dirty page has to be written.
    pub dirty: bool,
    /// A page table maps one.
    pub mapped: bool,
}

impl OwnReclaim {
    /// No pages are cached yet. `batch` pages below `capacity` is the high watermark.
    pub fn new(policy: Box<dyn Reclaim>, capacity: usize, batch: usize) -> OwnReclaim {
        OwnReclaim { policy, uses: Uses::default(), capacity, batch, has_gone: false }
    }

    /// The policy alone.
    pub fn into_policy(self) -> Box<dyn Reclaim> {
        self.policy
    }

    /// A page came into the cache.
    pub fn add(&mut self, page: CachedPage) {
        self.uses.take(page);
        self.uses.put(page, 0);
    }

    /// A program has read or written a page.
    pub fn note_use(&mut self, page: CachedPage) {
        let uses = self.uses.take(page).unwrap_or(0);
        self.uses.put(page, uses.saturating_add(1));
    }

    /// Pages were dropped from the cache.
    pub fn note_gone(&mut self) {
        self.has_gone = true;
    }

    /// Removes pages that left the cache.
    pub fn forget_gone(&mut self, inodes: &[Inode]) {
        if std::mem::take(&mut self.has_gone) {
            let is_there = |(inode, page): CachedPage| inodes[inode as usize].cache.contains(page);
            self.uses.retain(is_there);
        }
    }

    /// Makes room for a page that is about to be added.
    pub fn make_room(&mut self, inodes: &mut [Inode]) -> Met {
        if self.uses.len() < self.capacity {
            return Met::default();
        }
        self.forget_gone(inodes);
        let pages = self.uses.len() + 1;
        if pages <= self.capacity || pages == 1 {
            return Met::default();
        }
        let short = Shortage {
            needed: pages - self.capacity,
            wanted: pages - self.capacity.saturating_sub(self.batch),
        };
        let told = CachedPages { uses: &self.uses, inodes };
        let chosen = self.policy.choose(short, &told);
        self.apply(&chosen, inodes)
    }

    fn apply(&mut self, chosen: &Reclaimed, inodes: &mut [Inode]) -> Met {
        let mut met = Met::default();
        if chosen.free.is_empty() && chosen.keep.is_empty() {
            misbehaved(format!("{:?}: names no page of {}", self.policy, self.uses.len()));
        }
        for page in &chosen.keep {
            let uses = self.taken(page);
            self.uses.put((page.file, page.page), uses);
        }
        for page in &chosen.free {
            let cache = &mut inodes[page.file as usize].cache;
            if cache.is_mapped(page.page) {
                met.mapped = true;
            } else if cache.is_page_dirty(page.page) {
                met.dirty = true;
            } else {
                cache.drop_clean(page.page, page.page + 1);
                self.taken(page);
            }
        }
        met
    }

    fn taken(&mut self, page: &PageUse) -> u32 {
        let uses = self.uses.take((page.file, page.page));
        uses.unwrap_or_else(|| {
            misbehaved(format!(
                "{:?}: chose page {} of file {}, which is not cached, or twice",
                self.policy, page.page, page.file
            ))
        })
    }
}
