//! An inode as the VFS has it: its pages, what it holds, and since when something of it is dirty.
//!
//! Mirrors struct inode and struct address_space (include/linux/fs.h) of Linux 6.1, as far as one
//! program sees them.

use super::cache::FileCache;
use super::truncate::Truncated;
use crate::content::Contents;
use crate::fs::Ino;
use crate::units::Ns;

/// i_state and dirtied_when of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirtyState {
    /// Since when something of it is dirty.
    pub since: Option<Ns>,
    /// I_DIRTY_DATASYNC: fdatasync cannot do without the inode, for the size has changed.
    pub size: bool,
}

/// struct inode.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub ino: Ino,
    pub is_directory: bool,
    /// Of a symbolic link, where it leads.
    pub target: Option<Box<str>>,
    /// i_nlink: without a name it goes with its last opener. A power cut in a rename may leave two
    /// of a directory.
    pub names: u32,
    /// I_LINKABLE: it never had a name, and may be given one.
    pub is_linkable: bool,
    pub size_bytes: u64,
    pub modified_s: u64,
    pub cache: FileCache,
    pub contents: Contents,
    pub dirty: DirtyState,
    /// Where the flusher goes on: the last page that was written back.
    pub writeback_index: u32,
    /// Why pages could not be written back, until a program is told (`wb_err`).
    pub write_error: Option<i64>,
}

impl Inode {
    /// Its last page is written and it leaves memory (evict, truncate_inode_pages_final). What that
    /// comes to.
    pub fn forget_pages(&mut self) -> Truncated {
        let gone = Truncated::from(&self.cache, 0);
        self.cache.drop_clean(0, u32::MAX);
        self.writeback_index = 0;
        gone
    }
}
