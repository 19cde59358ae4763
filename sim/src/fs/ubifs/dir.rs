//! Directories: names that are made, looked up, taken away and moved, and the end of an inode.
//!
//! Mirrors fs/ubifs/dir.c (ubifs_lookup, ubifs_create, ubifs_mkdir, ubifs_unlink, ubifs_rmdir,
//! do_rename) and super.c (ubifs_evict_inode, ubifs_write_inode) of Linux 6.1 for a program that is
//! root. Names need a budget; taking them away goes on without one. Left out: links, exchange,
//! names with equal hashes.

use super::budget::Request;
use super::bulk::Habit;
use super::inode::Inode;
use super::key::Key;
use super::Ubifs;
use crate::flash::Flash;
use crate::fs::{FsError, Ino, Name, PageCache, Rename, Result};
use crate::units::Ns;

impl<F: Flash> Ubifs<F> {
    /// ubifs_create and ubifs_mkdir.
    pub(super) fn create_inode(
        &mut self,
        now: Ns,
        at: Name<'_>,
        is_directory: bool,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let now = self.budget_space(now, &Request::CREATE, pages)?;
        let key = Key::dent(at.directory.0, at.name);
        let (taken, now) = self.tnc.lookup(&mut self.ubi, now, key)?;
        if taken.is_some() {
            return Err(FsError::NotModelled("a directory entry whose name or hash is taken"));
        }
        let inum = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inum, Inode::new(is_directory));
        let now = self.jnl_update(now, at, inum, false)?;
        self.release_budget(&Request::CREATE);
        Ok((Ino(inum), now))
    }

    /// ubifs_lookup: a name that is not there costs the index nodes on the way to where it would
    /// be.
    pub(super) fn lookup_name(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        let key = Key::dent(at.directory.0, at.name);
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, key)?;
        let Some(ino) = found else {
            return match leaf {
                Some(_) => Err(FsError::NotModelled("a directory entry whose hash is taken")),
                None => Ok(now),
            };
        };
        let leaf = leaf.expect("a file has a directory entry");
        let now = self.read_name(now, leaf)?;
        if std::mem::replace(&mut self.inode(ino.0).in_memory, true) {
            return Ok(now);
        }
        self.inode(ino.0).habit = Habit::default();
        self.read_inode(now, ino.0)
    }

    /// ubifs_unlink and ubifs_rmdir, which asks the index whether the directory is empty.
    pub(super) fn remove_entry(
        &mut self,
        now: Ns,
        at: Name<'_>,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let (now, budgeted) = self.budget_if_there_is(now, &Request::UNLINK, pages)?;
        self.inode(ino.0).is_unlinked = true;
        let now = self.jnl_update(now, at, ino.0, true)?;
        self.release_if(budgeted, &Request::UNLINK);
        Ok(now)
    }

    /// ubifs_check_dir_empty: the first entry is read, if there is one.
    pub(super) fn first_entry(&mut self, now: Ns, directory: Ino) -> Result<Ns> {
        let key = Key::first_dent(directory.0);
        let (entry, now) = self.tnc.next_entry(&mut self.ubi, now, key)?;
        entry.map_or(Ok(now), |leaf| self.read_name(now, leaf))
    }

    /// A budget for what goes on without one.
    pub(super) fn budget_if_there_is(
        &mut self,
        now: Ns,
        request: &Request,
        pages: &mut dyn PageCache,
    ) -> Result<(Ns, bool)> {
        match self.budget_space(now, request, pages) {
            Ok(now) => Ok((now, true)),
            Err(FsError::NoSpace(at)) => Ok((at, false)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn release_if(&mut self, budgeted: bool, request: &Request) {
        if budgeted {
            self.release_budget(request);
        } else {
            self.budget.clear_full();
        }
    }

    /// do_rename. The inode that moves becomes dirty, for the time is noted in it.
    pub(super) fn rename_entry(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let Rename { ino, replaced, .. } = rename;
        let mut now = now;
        if let Some(replaced) = replaced.filter(|_| self.inodes[&ino.0].is_directory) {
            now = self.first_entry(now, replaced)?;
        }
        now = self.budget_space(now, &Request::RENAME, pages)?;
        now = match self.budget_space(now, &Request::INODE, pages) {
            Ok(later) => later,
            Err(error) => {
                self.release_budget(&Request::RENAME);
                return Err(error);
            }
        };
        if let Some(replaced) = replaced {
            self.inode(replaced.0).is_unlinked = true;
        }
        now = self.jnl_rename(now, rename)?;
        self.release_budget(&Request::RENAME);
        self.make_inode_dirty(ino);
        pages.mark_inode_dirty(now, ino, false);
        Ok(now)
    }

    /// ubifs_write_inode: only if it is dirty, and not the inode without a name.
    pub(super) fn write_inode_of(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let inode = self.inode(ino.0);
        if !inode.dirty {
            return Ok(now);
        }
        let now = match inode.is_unlinked {
            true => now,
            false => self.jnl_write_inode(now, ino.0)?,
        };
        self.mark_inode_clean(ino.0);
        Ok(now)
    }

    /// ubifs_evict_inode of one without a name.
    pub(super) fn evict_inode(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        self.release_pages(ino, 0);
        self.inode(ino.0).size_bytes = 0;
        let now = self.jnl_delete_inode(now, ino.0)?;
        if self.inode(ino.0).dirty {
            self.mark_inode_clean(ino.0);
        } else {
            self.budget.clear_full();
        }
        self.inodes.remove(&ino.0);
        Ok(now)
    }
}
