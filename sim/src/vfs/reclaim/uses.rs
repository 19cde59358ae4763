//! The cached pages in the order of their last use.
//!
//! Invariant: `pages` and `ages` have the same pages.

use super::super::inode::Inode;
use std::collections::BTreeMap;

/// A page of an inode, by the inode's index.
pub(in super::super) type CachedPage = (u32, u32);

/// A cached page, and how it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageUse {
    /// The file's number in the order of creation.
    pub file: u32,
    /// The page of the file.
    pub page: u32,
    /// Whether it has to be written before it can go.
    pub is_dirty: bool,
    /// Reads and writes of it since it came into the cache; 0 if it was read ahead, and never used.
    pub uses: u32,
    /// A count of all uses at its last one.
    pub last_use: u64,
}

/// The cached pages that a policy chooses from.
#[derive(Clone, Copy, Debug)]
pub struct CachedPages<'a> {
    pub(super) uses: &'a Uses,
    pub(super) inodes: &'a [Inode],
}

impl CachedPages<'_> {
    /// How many there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a policy is not asked about none")]
    pub fn len(&self) -> usize {
        self.uses.len()
    }

    /// The pages in the order of their last use, the oldest first.
    pub fn oldest_first(&self) -> impl DoubleEndedIterator<Item = PageUse> + '_ {
        self.uses.pages.iter().map(|(&last_use, &((file, page), uses))| {
            let is_dirty = self.inodes[file as usize].cache.is_page_dirty(page);
            PageUse { file, page, is_dirty, uses, last_use }
        })
    }
}

/// Pages by their last use.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    /// Page and number of uses, by last use.
    pages: BTreeMap<u64, (CachedPage, u32)>,
    ages: BTreeMap<CachedPage, u64>,
    next: u64,
}

impl Uses {
    pub fn len(&self) -> usize {
        self.ages.len()
    }

    /// The page is the last one that was used.
    pub fn put(&mut self, page: CachedPage, uses: u32) {
        self.pages.insert(self.next, (page, uses));
        self.ages.insert(page, self.next);
        self.next += 1;
    }

    /// Removes a page; returns how often it was used.
    pub fn take(&mut self, page: CachedPage) -> Option<u32> {
        let age = self.ages.remove(&page)?;
        self.pages.remove(&age).map(|(_, uses)| uses)
    }
    /// Removes the others.
    pub fn retain(&mut self, is_kept: impl Fn(CachedPage) -> bool) {
        self.pages.retain(|_, (page, _)| is_kept(*page));
        self.ages.retain(|page, _| is_kept(*page));
    }
}
