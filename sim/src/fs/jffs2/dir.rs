//! Names: operations that create, change and remove directory entries.
//!
//! Mirrors fs/jffs2/dir.c of Linux 6.1 (jffs2_create, jffs2_mkdir, jffs2_symlink, jffs2_link,
//! jffs2_unlink, jffs2_rmdir, jffs2_rename), jffs2_do_create, jffs2_do_unlink and jffs2_do_link of
//! write.c, and jffs2_add_fd_to_list of nodelist.c.
//!
//! A node on NAND cannot be marked obsolete in place. JFFS2 therefore removes a name by writing an
//! entry that refers to no inode (a deletion dirent). That entry is needed until no older entry of
//! the name is on flash. On NOR see medium.rs.
//!
//! Left out: device nodes. Entries are in the order of their names, not of their hashes.
//!
//! Invariant: of each name a directory has at most one entry in memory, the one of the highest
//! version.

use super::inode::{File, InodeState};
use super::layout::{Summary, RAW_INODE_BYTES};
use super::node::{Entry, Node, NodeId, Role};
use super::nodemgmt::Priority;
use super::Jffs2;
use crate::errno::ENAMETOOLONG;
use crate::fs::{FsError, Ino, Name, PageCache, Rename, Result};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;

/// The longest target of a symbolic link; jffs2_symlink refuses a longer one.
const TARGET_BYTES_MAX: usize = 254;

/// The kind of inode to create.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    File,
    Directory,
    /// A symbolic link to this target.
    Link(&'a str),
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_create and jffs2_mkdir: writes the inode's node without data, then its entry. The node
    /// of a symbolic link holds its target (jffs2_symlink).
    pub(super) fn make(
        &mut self,
        now: Ns,
        at: Name<'_>,
        kind: Kind<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let (is_directory, target) = match kind {
            Kind::File => (false, None),
            Kind::Directory => (true, None),
            Kind::Link(target) => (false, Some(target)),
        };
        let target_bytes = target.map_or(0, name_len);
        if target_bytes > TARGET_BYTES_MAX {
            return Err(FsError::Errno(ENAMETOOLONG, now));
        }
        let (bytes, summary) = (RAW_INODE_BYTES + target_bytes as u32, Summary::Inode);
        let (_, now) = self.reserve_space(now, bytes, Priority::Normal, summary, pages)?;
        let ino = Ino(u32::try_from(self.files.len() + 1).expect("fewer than 2^32 inodes"));
        let (state, target) = (InodeState::Present, target.map(Box::from));
        let size_bytes = target_bytes as u32;
        let is_link = target.is_some();
        let file = File { state, links: 1, is_directory, target, size_bytes, ..File::default() };
        self.files.push(file);
        let version = self.next_version(ino);
        let bytes = target_bytes as u16;
        let role = match is_link {
            true => Role::Data { data_bytes: bytes, file_bytes: bytes, packed_by: None },
            false => Role::Metadata,
        };
        let node = Node { size_bytes, ..Node::new(ino, role, version) };
        let (id, now) = self.write_dnode(now, node, Some(ino))?;
        self.file_mut(ino).metadata = Some(id);
        let now = self.complete_reservation(now)?;
        match self.do_link(now, at, Some(ino), is_directory, Priority::Normal, pages) {
            Ok(now) => Ok((ino, now)),
            Err(error) => {
                self.forget_inode(ino);
                Err(error)
            }
        }
    }

    /// jffs2_link.
    pub(super) fn add_link(
        &mut self,
        now: Ns,
        at: Name<'_>,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.do_link(now, at, Some(ino), false, Priority::Normal, pages)?;
        self.file_mut(ino).links += 1;
        Ok(now)
    }

    /// jffs2_do_link, and on NAND the first half of jffs2_do_unlink if `ino` is none: writes the
    /// directory's new entry of a name.
    fn do_link(
        &mut self,
        now: Ns,
        at: Name<'_>,
        ino: Option<Ino>,
        is_directory: bool,
        priority: Priority,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let name = self.names.intern(at.name);
        let role = self.names.add_entry(Entry { name, is_directory, ino });
        let [header, name_bytes] = role.parts();
        let (bytes, summary) = (header + name_bytes, Summary::Dirent(name_bytes));
        let (_, now) = self.reserve_space(now, bytes, priority, summary, pages)?;
        let version = self.next_version(at.directory);
        let node = Node::new(at.directory, role, version);
        let (id, now) = self.write_dirent(now, node, Some(at.directory))?;
        self.add_entry(now, id);
        self.complete_reservation(now)
    }

    /// jffs2_add_fd_to_list: of two entries of a name, the higher version stays.
    pub(super) fn add_entry(&mut self, now: Ns, id: NodeId) {
        let Node { ino: directory, role, version, .. } = self.nodes.get(id);
        let Role::Dirent { entry, .. } = role else { unreachable!("an entry") };
        let name = self.names.entry(entry).name;
        let entries = &mut self.files[directory.0 as usize - 1].entries;
        let Some(&old) = entries.get(&name) else {
            entries.insert(name, id);
            return;
        };
        if version < self.nodes.get(old).version {
            self.mark_obsolete(now, id);
        } else {
            entries.insert(name, id);
            self.mark_obsolete(now, old);
        }
    }

    /// jffs2_unlink and jffs2_rmdir: writes a deletion dirent. A removed directory's own deletion
    /// dirents become obsolete with it.
    pub(super) fn do_unlink(
        &mut self,
        now: Ns,
        at: Name<'_>,
        dead: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.remove_name(now, at, pages)?;
        for id in std::mem::take(&mut self.file_mut(dead).entries).into_values() {
            self.mark_obsolete(now, id);
        }
        self.lose_link(dead);
        self.write_marks(now)
    }

    /// The first half of jffs2_do_unlink. Where nodes are marked on flash it writes no entry.
    fn remove_name(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        if !self.medium.marks_obsolete {
            return self.do_link(now, at, None, false, Priority::Deletion, pages);
        }
        let now = self.lock_alloc(now, pages)?;
        let name = self.names.intern(at.name);
        if let Some(id) = self.file_mut(at.directory).entries.remove(&name) {
            self.mark_obsolete(now, id);
        }
        self.complete_reservation(now)
    }

    /// Decrements pino_nlink of an inode that loses a name.
    fn lose_link(&mut self, ino: Ino) {
        let file = self.file_mut(ino);
        file.links = if file.is_directory { 0 } else { file.links - 1 };
    }

    /// jffs2_rename: writes the new name first, then the old name's deletion dirent.
    pub(super) fn do_rename(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let Rename { ino, old, new, replaced } = rename;
        let is_directory = self.file(ino).is_directory;
        let now = self.do_link(now, new, Some(ino), is_directory, Priority::Normal, pages)?;
        if let Some(replaced) = replaced {
            self.lose_link(replaced);
        }
        self.remove_name(now, old, pages)
    }
}
