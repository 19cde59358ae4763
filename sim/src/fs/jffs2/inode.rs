//! Inodes: reading and evicting them, their attributes and size.
//!
//! Mirrors fs/jffs2/fs.c of Linux 6.1 (jffs2_iget, jffs2_do_setattr, jffs2_evict_inode), struct
//! jffs2_inode_cache and struct jffs2_inode_info (nodelist.h, jffs2_fs_i.h), and
//! jffs2_do_clear_inode of readinode.c. The values of modes, owners and times are not kept.
//!
//! Invariant: unless an inode is `Present`, only its nodes, links and kind are known; all else is
//! empty.

use super::fragments::Fragments;
use super::layout::{Summary, RAW_INODE_BYTES};
use super::node::{NameId, Node, NodeId, Role};
use super::nodelist::InodeNodes;
use super::nodemgmt::Priority;
use super::Jffs2;
use crate::fs::{Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::collections::BTreeMap;

/// INO_STATE_UNCHECKED, INO_STATE_CHECKEDABSENT, INO_STATE_PRESENT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InodeState {
    /// Its nodes have not been checked since the mount.
    #[default]
    Unchecked,
    /// Checked, and not in memory.
    CheckedAbsent,
    /// In memory.
    Present,
}

/// struct jffs2_inode_cache and, if the inode is in memory, struct jffs2_inode_info.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub state: InodeState,
    /// Entries that refer to it (pino_nlink; for a directory the kernel stores the parent's number
    /// there).
    pub links: u32,
    pub is_directory: bool,
    /// The target of a symbolic link (f->target).
    pub target: Option<Box<str>>,
    /// A node of a block or character device; only dumps have them.
    pub is_device: bool,
    /// Its nodes in the order in which they were found or written, including those that are
    /// obsolete and not yet erased.
    pub nodes: InodeNodes,
    pub highest_version: u32,
    pub size_bytes: u32,
    pub metadata: Option<NodeId>,
    pub fragments: Fragments,
    /// The entries of a directory (`f->dents`).
    pub entries: BTreeMap<NameId, NodeId>,
}

impl File {
    /// Whether it has one data node, which is kept as `metadata`.
    pub fn has_one_node(&self) -> bool {
        self.target.is_some() || self.is_device
    }
}

impl<D: NandDriver> Jffs2<D> {
    pub(super) fn file(&self, ino: Ino) -> &File {
        &self.files[ino.0 as usize - 1]
    }

    pub(super) fn file_mut(&mut self, ino: Ino) -> &mut File {
        &mut self.files[ino.0 as usize - 1]
    }

    /// jffs2_iget: reads an inode that is not in memory.
    pub(super) fn iget(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let now = self.wait_for_inode(now, ino, true)?;
        if self.file(ino).state == InodeState::Present {
            return Ok(now);
        }
        self.set_reading(now, Some(ino));
        let read = self.read_inode(now + self.mtd.costs().jffs2_inode_ns, ino, false);
        let read = read.and_then(|now| self.read_device(now, ino));
        self.set_reading(*read.as_ref().unwrap_or(&now), None);
        let now = read?;
        self.file_mut(ino).state = InodeState::Present;
        Ok(now)
    }

    /// The end of jffs2_iget of a device, whose number is in its node.
    fn read_device(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        match self.file(ino).metadata {
            Some(node) if self.file(ino).is_device => self.read_node(now, node, None),
            _ => Ok(now),
        }
    }

    /// jffs2_do_clear_inode of an inode that still has a name: drops it from memory.
    pub(super) fn forget_inode(&mut self, ino: Ino) {
        let file = self.file_mut(ino);
        file.state = InodeState::CheckedAbsent;
        file.metadata = None;
        file.fragments = Fragments::default();
        file.entries = BTreeMap::new();
    }

    /// jffs2_do_clear_inode of an inode without a name: its nodes become obsolete.
    /// jffs2_kill_fragtree calls cond_resched() after each, but keeps the inode locked.
    pub(super) fn delete_inode(
        &mut self,
        mut now: Ns,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.xattrs.delete_inode(ino);
        if let Some(metadata) = self.file_mut(ino).metadata.take() {
            self.mark_obsolete(now, metadata);
        }
        let fragments = &mut self.files[ino.0 as usize - 1].fragments;
        let gone = fragments.kill(&mut self.nodes);
        if self.medium.marks_obsolete {
            return self.delete_and_mark(now, ino, gone, pages);
        }
        for &id in &gone {
            self.mark_obsolete(now, id);
        }
        self.forget_inode(ino);
        for _ in gone {
            now = self.might_resched(now + self.mtd.costs().jffs2_obsolete_ns, Some(pages))?;
        }
        self.set_reading(now, None);
        Ok(now)
    }

    /// The same where each node is marked on flash before the next one.
    fn delete_and_mark(
        &mut self,
        mut now: Ns,
        ino: Ino,
        gone: Vec<NodeId>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        now = self.write_marks(now)?;
        for id in gone {
            self.mark_obsolete(now, id);
            now = self.write_marks(now)?;
            now = self.might_resched(now + self.mtd.costs().jffs2_obsolete_ns, Some(pages))?;
        }
        self.forget_inode(ino);
        self.set_reading(now, None);
        Ok(now)
    }

    /// jffs2_do_setattr without a new size: writes a node without data, which holds the file's
    /// length.
    pub(super) fn change_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let size = self.file(ino).size_bytes;
        self.do_setattr(now, ino, size, pages)
    }

    /// jffs2_do_setattr with a size: writes a hole up to a larger size, or a node without data for
    /// any other.
    pub(super) fn do_setattr(
        &mut self,
        now: Ns,
        ino: Ino,
        size: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let (bytes, summary) = (RAW_INODE_BYTES, Summary::Inode);
        let (_, now) = self.reserve_space(now, bytes, Priority::Normal, summary, pages)?;
        let before = self.file(ino).size_bytes;
        if size > before {
            let now = self.write_piece(now, ino, None, before..size, Some(ino), pages)?;
            let now = self.complete_reservation(now)?;
            pages.i_size_write(ino, u64::from(size));
            return Ok(now);
        }
        let version = self.next_version(ino);
        let node = Node { size_bytes: size, ..Node::new(ino, Role::Metadata, version) };
        let (id, mut now) = self.write_dnode(now, node, Some(ino))?;
        if size < before {
            let fragments = &mut self.files[ino.0 as usize - 1].fragments;
            let gone = fragments.truncate(&mut self.nodes, size);
            now += self.mtd.costs().jffs2_obsolete_ns * gone.len() as u64;
            for id in gone {
                self.mark_obsolete(now, id);
                now = self.write_marks(now)?;
            }
        }
        let file = self.file_mut(ino);
        file.size_bytes = size;
        if let Some(old) = file.metadata.replace(id) {
            self.mark_obsolete(now, old);
        }
        let now = self.complete_reservation(now)?;
        if size < before {
            pages.truncate_setsize(ino, u64::from(size));
        }
        Ok(now)
    }
}
