//! An inode of the VFS: its pages, its content, and since when it is dirty.
//!
//! Mirrors struct inode and struct address_space (include/linux/fs.h) of Linux 6.1, as far as one
//! program sees them.

use super::cache::FileCache;
use super::truncate::Truncated;
use crate::content::Contents;
use crate::fs::{Ino, PAGE_BYTES};
use crate::units::Ns;

/// i_state and dirtied_when of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirtyState {
    /// Since when the inode or its pages are dirty.
    pub since: Option<Ns>,
    /// I_DIRTY_DATASYNC: the size has changed, so fdatasync has to write the inode.
    pub size: bool,
}

/// struct inode.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub ino: Ino,
    pub is_directory: bool,
    /// Its inode in the read-only root below a layer: of a directory that is merged with it, or of
    /// what was or will be copied up.
    pub lower: Option<u32>,
    /// d_parent of a directory: the place of the directory above it, none for one in the root. A
    /// removed directory keeps it.
    pub parent: Option<usize>,
    /// The target of a symbolic link.
    pub target: Option<Box<str>>,
    /// i_nlink: an inode without a name is deleted when it is closed. A power cut during a rename
    /// may leave a directory with two names.
    pub names: u32,
    /// I_LINKABLE: it never had a name, and may be given one.
    pub is_linkable: bool,
    pub size_bytes: u64,
    pub modified_s: u64,
    pub cache: FileCache,
    pub contents: Contents,
    /// A store through a mapping has written behind the end of the file, within its last page.
    pub has_tail: bool,
    pub dirty: DirtyState,
    /// The last page that was written back, where the flusher continues.
    pub writeback_index: u32,
    /// The error of a failed write-back, until a program is told (`wb_err`).
    pub write_error: Option<i64>,
}

/// Numbers of inodes of the read-only root have this bit; those of the file system have not.
pub(super) const LOWER: u32 = 1 << 31;

impl Inode {
    /// Whether the layer's volume has nothing of it yet.
    pub fn is_lower(&self) -> bool {
        self.ino.0 & LOWER != 0
    }

    /// clear_page_dirty_for_io, and the zero_user_segment of writepage: what lies behind the end of
    /// the file is not written.
    pub fn clear_page_dirty(&mut self, page: u32) {
        self.cache.clear_dirty(page);
        if self.has_tail && self.size_bytes / u64::from(PAGE_BYTES) == u64::from(page) {
            self.has_tail = false;
            self.contents.clear(self.size_bytes, u64::MAX);
        }
    }

    /// evict and truncate_inode_pages_final: drops all pages. Returns the work of it.
    pub fn forget_pages(&mut self) -> Truncated {
        let gone = Truncated::from(&self.cache, 0);
        self.cache.drop_clean(0, u32::MAX);
        self.writeback_index = 0;
        gone
    }
}
