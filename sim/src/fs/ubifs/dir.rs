//! Directories: creating, looking up, removing and renaming names, and deleting an inode.
//!
//! Mirrors fs/ubifs/dir.c (ubifs_lookup, ubifs_create, ubifs_mkdir, ubifs_mknod, ubifs_symlink,
//! ubifs_link, ubifs_tmpfile, ubifs_readdir, ubifs_unlink, ubifs_rmdir, do_rename, ubifs_xrename)
//! and super.c (ubifs_evict_inode, ubifs_write_inode) of Linux 6.1 for a program that runs as root.
//! Creating a name needs a budget; removing one proceeds without. Left out: names with equal
//! hashes.

use super::budget::Request;
use super::bulk::Habit;
use super::geometry::align;
use super::inode::{Inode, Kind};
use super::journal::Update;
use super::key::Key;
use super::Ubifs;
use crate::fs::{FsError, Ino, Name, PageCache, Rename, Result, Scheduled};
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::collections::BTreeMap;

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_create, ubifs_mkdir, ubifs_mknod and ubifs_symlink.
    pub(super) fn create_inode(
        &mut self,
        now: Ns,
        at: Name<'_>,
        inode: Inode,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let new_bytes = u64::from(align(inode.data_bytes, 8));
        let request = Request { new_bytes, ..Request::CREATE };
        let now = self.budget_space(now, &request, pages)?;
        let now = self.check_free(now, Key::dent(at.directory.0, at.name))?;
        let inum = self.add_inode(inode);
        let now = self.jnl_update(now, &Update::entry(at, inum))?;
        self.release_budget(&request);
        Ok((Ino(inum), now))
    }

    /// Checks that the index has no key of a name that is about to be created.
    fn check_free(&mut self, now: Ns, key: Key) -> Result<Ns> {
        match self.tnc.lookup(&mut self.ubi, now, key)? {
            (Some(_), _) => {
                Err(FsError::NotModelled("a directory entry whose name or hash is taken"))
            }
            (None, now) => Ok(now),
        }
    }

    /// ubifs_new_inode.
    pub(super) fn add_inode(&mut self, inode: Inode) -> u32 {
        let inum = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inum, inode);
        inum
    }

    /// ubifs_link: writes the inode together with its entry. An inode that never had a name stops
    /// being an orphan.
    pub(super) fn link_inode(
        &mut self,
        now: Ns,
        at: Name<'_>,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let more_bytes = u64::from(align(self.inode(ino.0).data_bytes, 8));
        let request = Request { more_bytes, ..Request::LINK };
        let now = self.budget_space(now, &request, pages)?;
        if self.inode(ino.0).links == 0 {
            self.orphans.delete(ino.0);
        }
        self.check_no_clash(at)?;
        self.inode(ino.0).links += 1;
        let now = self.jnl_update(now, &Update::entry(at, ino.0))?;
        self.release_budget(&request);
        Ok(now)
    }

    /// Refuses a name whose hash another name has: ubifs_tnc_add_nm would mistake one for the
    /// other.
    fn check_no_clash(&self, at: Name<'_>) -> Result<()> {
        match self.tnc.has(Key::dent(at.directory.0, at.name)) {
            true => Err(FsError::NotModelled("a directory entry whose name or hash is taken")),
            false => Ok(()),
        }
    }

    /// ubifs_tmpfile: the inode is an orphan from the start. UBIFS also writes a deletion entry,
    /// for the one-byte name that the VFS passes.
    pub(super) fn make_tmpfile(
        &mut self,
        now: Ns,
        directory: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let now = self.budget_space(now, &Request::CREATE, pages)?;
        let now = match self.budget_space(now, &Request::INODE, pages) {
            Ok(later) => later,
            Err(error) => {
                self.release_budget(&Request::CREATE);
                return Err(error);
            }
        };
        let mut inode = Inode::new(Kind::File);
        (inode.links, inode.dirty) = (0, true);
        let inum = self.add_inode(inode);
        let at = Name { directory, name: "%23" };
        let now = self.jnl_update(now, &Update { is_deletion: true, ..Update::entry(at, inum) })?;
        self.release_budget(&Request::CREATE);
        Ok((Ino(inum), now))
    }

    /// ubifs_readdir: reads the entries in the order of their keys.
    pub(super) fn read_entries(
        &mut self,
        now: Ns,
        directory: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let first = Key::first_dent(directory.0);
        let (mut next, mut now) = self.tnc.next_entry(&mut self.ubi, now, first)?;
        while let Some(leaf) = next {
            let key = self.tnc.key(leaf);
            now = self.read_name(now, leaf)?;
            now = self.resched(now, pages)?;
            (next, now) = self.tnc.entry_after(&mut self.ubi, now, key)?;
        }
        Ok(now)
    }

    /// ubifs_lookup: a missing name costs the index nodes down to where it would be.
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

    /// ubifs_unlink and ubifs_rmdir. The latter looks in the index whether the directory is empty.
    pub(super) fn remove_entry(
        &mut self,
        now: Ns,
        at: Name<'_>,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let (now, budgeted) = self.budget_if_there_is(now, &Request::UNLINK, pages)?;
        self.inode(ino.0).links -= 1;
        let now =
            self.jnl_update(now, &Update { is_deletion: true, ..Update::entry(at, ino.0) })?;
        self.release_if(budgeted, &Request::UNLINK);
        Ok(now)
    }

    /// ubifs_check_dir_empty: reads the first entry, if there is one.
    pub(super) fn first_entry(&mut self, now: Ns, directory: Ino) -> Result<Ns> {
        let key = Key::first_dent(directory.0);
        let (entry, now) = self.tnc.next_entry(&mut self.ubi, now, key)?;
        entry.map_or(Ok(now), |leaf| self.read_name(now, leaf))
    }

    /// Budgets an operation that proceeds even without a budget.
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

    /// do_rename. The renamed inode becomes dirty because its ctime changes.
    pub(super) fn rename_entry(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        whiteout: Option<u32>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let Rename { ino, replaced, .. } = rename;
        let mut now = now;
        if let Some(replaced) = replaced.filter(|_| self.inodes[&ino.0].is_directory()) {
            now = self.first_entry(now, replaced)?;
        }
        let replaced_bytes = replaced.map_or(0, |replaced| self.inodes[&replaced.0].data_bytes);
        let more_bytes = u64::from(align(replaced_bytes, 8));
        let request = Request { more_bytes, ..Request::RENAME };
        now = self.budget_space(now, &request, pages)?;
        let of_inode = self.inodes[&ino.0].request();
        now = match self.budget_space(now, &of_inode, pages) {
            Ok(later) => later,
            Err(error) => {
                self.release_budget(&request);
                return Err(error);
            }
        };
        if let Some(replaced) = replaced {
            self.inode(replaced.0).links -= 1;
        }
        now = self.jnl_rename(now, rename, (whiteout, true))?;
        self.release_budget(&request);
        self.make_inode_dirty(ino);
        pages.mark_inode_dirty(now, ino, false);
        Ok(now)
    }

    /// do_rename with RENAME_WHITEOUT: the white-out is a device without a number.
    pub(super) fn rename_with_whiteout(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let now = self.budget_space(now, &Request::WHITEOUT, pages)?;
        let inum = self.add_inode(Inode::whiteout());
        let now = self.rename_entry(now, rename, Some(inum), pages)?;
        self.release_budget(&Request::WHITEOUT);
        Ok((Ino(inum), now))
    }

    /// ubifs_xrename: each gets the other's name.
    pub(super) fn exchange_entries(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.budget_space(now, &Request::EXCHANGE, pages)?;
        let behind = rename.replaced.map(|other| other.0);
        let rename = Rename { replaced: None, ..rename };
        let now = self.jnl_rename(now, rename, (behind, false))?;
        self.release_budget(&Request::EXCHANGE);
        Ok(now)
    }

    /// ubifs_write_inode: writes the inode only if it is dirty and has a name.
    pub(super) fn write_inode_of(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let inode = self.inode(ino.0);
        if !inode.dirty {
            return Ok(now);
        }
        let now = match inode.links {
            0 => now,
            _ => self.jnl_write_inode(now, ino.0)?,
        };
        self.mark_inode_clean(ino.0);
        Ok(now)
    }

    /// ubifs_evict_inode of an inode without a name.
    pub(super) fn evict_inode(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        self.release_pages(ino, 0);
        self.inode(ino.0).size_bytes = 0;
        let now = self.jnl_delete_inode(now, ino.0)?;
        if self.inode(ino.0).dirty {
            self.mark_inode_clean(ino.0);
        } else {
            self.budget.clear_full();
        }
        self.forget_inode(ino.0);
        Ok(now)
    }

    /// Drops an inode and the inodes of its extended attributes.
    fn forget_inode(&mut self, inum: u32) {
        let gone = self.inodes.remove(&inum).map(|inode| inode.attributes);
        for attribute in gone.into_iter().flat_map(BTreeMap::into_values) {
            self.inodes.remove(&attribute.inum);
        }
    }
}
