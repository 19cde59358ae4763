//! An inode in memory, and the flags of its pages.
//!
//! Mirrors struct ubifs_inode and the page flags of fs/ubifs/file.c of Linux 6.1: PG_private marks
//! a dirty page, which has a budget; PG_checked marks a page that no node holds.
//!
//! Invariant: an inode that is not in memory is clean.

use super::budget::Request;
use super::bulk::Habit;
use super::geometry::{align, INODE_BYTES};
use crate::ops::name_len;
use std::collections::BTreeMap;

/// `ubifs_encode_dev` of a new number.
const DEVICE_BYTES: u32 = 4;

/// A set of pages, one bit a page.
#[derive(Clone, Debug, Default)]
struct PageSet(Vec<u64>);

impl PageSet {
    #[inline]
    fn contains(&self, page: u32) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }

    /// Adds or removes a page; returns whether it was in the set.
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

/// The kind of an inode, which never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Link(Box<str>),
    /// The value of an extended attribute.
    Attribute,
}

/// An extended attribute: its name, and the inode that holds its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: Box<str>,
    pub inum: u32,
}

/// struct ubifs_inode.
#[derive(Clone, Debug)]
pub struct Inode {
    /// `ui_size`.
    pub size_bytes: u64,
    /// The size in its node on flash or in a write-buffer (`synced_i_size`).
    pub synced_bytes: u64,
    pub dirty: bool,
    pub in_memory: bool,
    pub kind: Kind,
    /// i_nlink; 1 for a directory until it is removed.
    pub links: u32,
    /// Bytes of data after the inode in its node (`data_len`).
    pub data_bytes: u32,
    /// Attributes by the hash of their name, which is the order of their keys.
    pub attributes: BTreeMap<u32, Attribute>,
    /// The number of the commit during which it lost its last name (`del_cmtno`).
    pub deleted_in: u64,
    /// The read pattern that bulk-read goes by; empty when the inode is read into memory.
    pub habit: Habit,
    budgeted: PageSet,
    holes: PageSet,
}

impl Inode {
    /// A new inode of this kind.
    pub fn new(kind: Kind) -> Inode {
        let target = if let Kind::Link(target) = &kind { name_len(target) } else { 0 };
        Inode {
            size_bytes: target as u64,
            synced_bytes: 0,
            dirty: false,
            in_memory: true,
            kind,
            links: 1,
            data_bytes: target as u32,
            attributes: BTreeMap::new(),
            deleted_in: 0,
            habit: Habit::default(),
            budgeted: PageSet::default(),
            holes: PageSet::default(),
        }
    }

    /// A white-out of overlayfs: a device without a number.
    pub fn whiteout() -> Inode {
        Inode { data_bytes: DEVICE_BYTES, ..Inode::new(Kind::File) }
    }

    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// The size of its node, which has no data once the last name is gone.
    pub fn node_bytes(&self) -> u32 {
        INODE_BYTES + if self.links > 0 { self.data_bytes } else { 0 }
    }

    /// The budget of making it dirty (ubifs_release_dirty_inode_budget).
    pub fn request(&self) -> Request {
        Request { more_bytes: u64::from(align(self.data_bytes, 8)), ..Request::INODE }
    }

    /// PagePrivate.
    #[inline]
    pub fn is_budgeted(&self, page: u32) -> bool {
        self.budgeted.contains(page)
    }

    /// SetPagePrivate; returns whether it was set.
    #[inline]
    pub fn set_budgeted(&mut self, page: u32) {
        self.budgeted.set(page, true);
    }

    /// PageChecked.
    #[inline]
    pub fn is_hole(&self, page: u32) -> bool {
        self.holes.contains(page)
    }

    /// SetPageChecked, or its clearing for a page that was read into the cache.
    #[inline]
    pub fn set_hole(&mut self, page: u32, hole: bool) {
        self.holes.set(page, hole);
    }

    /// Clears both flags of a page that was written or dropped. For a budgeted page returns whether
    /// it was a hole.
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
