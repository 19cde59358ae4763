//! An inode as UBIFS keeps it in memory, and what is noted on its pages.
//!
//! Mirrors struct ubifs_inode and the page flags of fs/ubifs/file.c of Linux 6.1: a page that is
//! dirty has a budget (PG_private), one that no node holds is noted as such (PG_checked).
//!
//! Invariant: an inode that is not in memory is clean.

use super::bulk::Habit;

/// A set of pages, a bit each.
#[derive(Clone, Debug, Default)]
struct PageSet(Vec<u64>);

impl PageSet {
    #[inline]
    fn contains(&self, page: u32) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }

    /// Puts a page in or takes it out; whether it was in.
    #[inline]
    fn set(&mut self, page: u32, member: bool) -> bool {
        let (word, bit) = ((page / 64) as usize, 1u64 << (page % 64));
        if word >= self.0.len() {
            if !member {
                return false;
            }
            self.0.resize(word + 1, 0);
        }
        let before = self.0[word] & bit != 0;
        self.0[word] = if member { self.0[word] | bit } else { self.0[word] & !bit };
        before
    }

    /// The members from `first` on.
    fn from(&self, first: u32) -> Vec<u32> {
        let words = self.0.iter().enumerate().skip((first / 64) as usize);
        let words = words.filter(|&(_, &word)| word != 0);
        let pages = words.flat_map(|(word, _)| (word as u32 * 64)..(word as u32 * 64 + 64));
        pages.filter(|&page| page >= first && self.contains(page)).collect()
    }
}

/// struct ubifs_inode.
#[derive(Clone, Debug)]
pub struct Inode {
    /// `ui_size`.
    pub size_bytes: u64,
    /// The size its node on flash or in a write-buffer has (`synced_i_size`).
    pub synced_bytes: u64,
    pub dirty: bool,
    pub in_memory: bool,
    pub is_directory: bool,
    /// i_nlink is 0.
    pub is_unlinked: bool,
    /// The commit before which its last name went (`del_cmtno`).
    pub deleted_in: u64,
    /// What bulk-read goes by; of an inode that has come into memory anew, nothing.
    pub habit: Habit,
    budgeted: PageSet,
    holes: PageSet,
}

impl Inode {
    /// A new one.
    pub fn new(is_directory: bool) -> Inode {
        Inode {
            size_bytes: 0,
            synced_bytes: 0,
            dirty: false,
            in_memory: true,
            is_directory,
            is_unlinked: false,
            deleted_in: 0,
            habit: Habit::default(),
            budgeted: PageSet::default(),
            holes: PageSet::default(),
        }
    }

    /// PagePrivate.
    #[inline]
    pub fn is_budgeted(&self, page: u32) -> bool {
        self.budgeted.contains(page)
    }

    /// SetPagePrivate; whether it was.
    #[inline]
    pub fn set_budgeted(&mut self, page: u32) {
        self.budgeted.set(page, true);
    }

    /// PageChecked.
    #[inline]
    pub fn is_hole(&self, page: u32) -> bool {
        self.holes.contains(page)
    }

    /// SetPageChecked, or not of a page that has come into the cache.
    #[inline]
    pub fn set_hole(&mut self, page: u32, hole: bool) {
        self.holes.set(page, hole);
    }

    /// The page is written or gone: both flags are cleared. Of one that was budgeted whether it was
    /// a hole.
    #[inline]
    pub fn take_page(&mut self, page: u32) -> Option<bool> {
        let hole = self.holes.set(page, false);
        self.budgeted.set(page, false).then_some(hole)
    }

    /// Pages with a flag from `first` on.
    pub fn flagged_pages(&self, first: u32) -> Vec<u32> {
        let mut pages = self.budgeted.from(first);
        pages.extend(self.holes.from(first));
        pages.sort_unstable();
        pages.dedup();
        pages
    }
}
