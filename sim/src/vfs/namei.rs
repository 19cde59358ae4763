//! Names: the walk along a path, the dentry cache, and what makes a name.
//!
//! Mirrors fs/namei.c (link_path_walk, lookup_open, filename_create) and fs/dcache.c of Linux 6.1.
//! A name is asked of the file system once, whether it exists or not; the answer stays as a dentry,
//! a negative one where there is nothing, until caches are dropped. What takes names away is in
//! rename.rs. Left out: links, permissions, memory pressure.
//!
//! Invariants:
//! 1. The root's dentry is always cached, and that of a directory as long as one below it is held.
//! 2. The inode of a cached dentry is in memory.

use super::{Answer, OpenFile, Vfs};
use crate::content::Contents;
use crate::errno::{errno, FsError, Outcome};
use crate::errno::{EEXIST, EISDIR, ENOENT, ENOTDIR};
use crate::fs::{FlashFs, Found, Ino, Name, PAGE_BYTES, ROOT};
use crate::ops::Flags;
use crate::units::Ns;
use crate::vfs::readahead::ReadAheadState;
use std::collections::{BTreeMap, BTreeSet};

/// What there is, and what of it the dentry cache knows.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Every path, and its inode's place in `Vfs::inodes`.
    pub(super) paths: BTreeMap<String, usize>,
    /// Paths with a dentry; one that is not in `paths` is negative.
    pub(super) dentries: BTreeSet<String>,
}

impl Names {
    /// Nothing is known of any name, as after a mount.
    pub(super) fn forget_dentries(&mut self) {
        self.dentries.clear();
    }
}

impl<S: FlashFs> Vfs<S> {
    fn ino_of(&self, directory: Option<usize>) -> Ino {
        directory.map_or(ROOT, |index| self.inodes[index].ino)
    }

    /// The inode of a path, after its last name was looked up.
    pub(super) fn lookup(
        &mut self,
        now: Ns,
        directory: Option<usize>,
        path: &str,
    ) -> Result<(Option<usize>, Ns), FsError> {
        let found = self.names.paths.get(path).copied();
        if self.names.dentries.contains(path) {
            return Ok((found, now));
        }
        let ino = found.map(|index| self.inodes[index].ino);
        let now = self.fs.lookup(now, self.name_in(directory, path), ino)?;
        self.names.dentries.insert(path.to_owned());
        Ok((found, now))
    }

    /// link_path_walk: the directory a path is in, or at which of its names the walk ends.
    pub(super) fn directory_of(&mut self, mut now: Ns, path: &str) -> Answer<Option<usize>> {
        if path == "." {
            return Err(FsError::NotModelled("the folder itself, but for open and stat"));
        }
        let mut directory = None;
        for (end, _) in path.match_indices('/') {
            let (found, later) = self.lookup(now, directory, &path[..end])?;
            now = later;
            match found {
                Some(index) if self.inodes[index].is_directory => directory = Some(index),
                Some(_) => return Ok((Err(ENOTDIR), now)),
                None => return Ok((Err(ENOENT), now)),
            }
        }
        Ok((Ok(directory), now))
    }

    fn add_inode(
        &mut self,
        now: Ns,
        path: &str,
        ino: Ino,
        parent: Option<usize>,
        is_directory: bool,
    ) -> usize {
        let index = self.inodes.add(now, ino, parent, is_directory);
        self.names.paths.insert(path.to_owned(), index);
        index
    }

    /// An inode that a mount has found; the directory it is in was found before.
    pub(super) fn add_found(&mut self, now: Ns, file: Found) {
        let parent = (file.directory != ROOT).then(|| self.inodes.index_of(file.directory));
        let directory = self.names.paths.iter().find(|&(_, &index)| Some(index) == parent);
        let path = match directory {
            Some((directory, _)) => format!("{directory}/{}", file.name),
            None => file.name,
        };
        if let Some(index) = self.inodes.find(file.ino) {
            self.inodes[index].names += 1;
            self.names.paths.insert(path, index);
            return;
        }
        let index = self.add_inode(now, &path, file.ino, parent, file.is_directory);
        let inode = &mut self.inodes[index];
        inode.size_bytes = file.size_bytes;
        inode.contents = file.contents;
        inode.cache.grow(file.size_bytes.div_ceil(u64::from(PAGE_BYTES)) as u32);
    }

    /// Every file: its path, its size and what it holds, in the order of paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, &Contents)> {
        let inodes = self.names.paths.iter().map(|(path, &index)| (path, &self.inodes[index]));
        inodes
            .filter(|(_, inode)| !inode.is_directory)
            .map(|(path, inode)| (path.as_str(), inode.size_bytes, &inode.contents))
    }

    /// The last name of a path in its directory.
    pub(super) fn name_in<'a>(&self, directory: Option<usize>, path: &'a str) -> Name<'a> {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        Name { directory: self.ino_of(directory), name }
    }

    /// mkdir.
    pub fn mkdir(&mut self, now: Ns, path: &str) -> Outcome {
        let (directory, now) = match self.directory_of(now + self.costs.syscall_ns, path)? {
            (Ok(directory), now) => (directory, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        let (found, now) = self.lookup(now, directory, path)?;
        if found.is_some() {
            return Ok((EEXIST, now));
        }
        let now = now + self.costs.name_add_ns;
        let at = self.name_in(directory, path);
        match self.fs.mkdir(now, at, &mut self.inodes) {
            Ok((ino, later)) => {
                self.add_inode(now, path, ino, directory, true);
                Ok((0, later))
            }
            Err(error) => errno(error, now),
        }
    }

    /// open: looks the file up, creates it if that is asked for, and sets up its read-ahead.
    pub fn open(&mut self, now: Ns, slot: usize, path: &str, flags: Flags) -> Outcome {
        if flags.tmpfile || flags.directory && flags.create {
            return Err(FsError::NotModelled("open with tmpfile, or with directory and create"));
        }
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        let now = now + self.costs.syscall_ns + self.costs.open_ns;
        let (inode, is_new, mut now) = match self.open_inode(now, path, flags)? {
            (Ok((inode, is_new)), now) => (inode, is_new, now),
            (Err(errno), now) => {
                self.fs.call_rcu(now); // file_free
                return Ok((errno, now));
            }
        };
        if flags.direct {
            return Err(FsError::NotModelled("direct I/O"));
        }
        if flags.trunc && !is_new {
            match self.do_truncate(now, inode, 0)? {
                (0, later) => now = later,
                failed => return Ok(failed),
            }
        }
        let readahead = ReadAheadState::new(self.read_ahead_pages);
        self.slots[slot] = Some(OpenFile { inode, flags, readahead, last_page: None, lock: None });
        Ok((0, now))
    }

    /// The inode that an open is about, one that is there or a new one, and whether it is new.
    fn open_inode(&mut self, now: Ns, path: &str, flags: Flags) -> Answer<(usize, bool)> {
        if path == "." {
            return self.open_root(now, flags);
        }
        let (directory, now) = match self.directory_of(now, path)? {
            (Ok(directory), now) => (directory, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        let (found, now) = self.lookup(now, directory, path)?;
        let changes = flags.write || flags.create || flags.trunc;
        match found {
            Some(_) if flags.create && flags.excl => Ok((Err(EEXIST), now)),
            Some(index) if self.inodes[index].is_directory && changes => Ok((Err(EISDIR), now)),
            Some(index) if flags.directory && !self.inodes[index].is_directory => {
                Ok((Err(ENOTDIR), now))
            }
            Some(index) => Ok((Ok((index, false)), now)),
            None if !flags.create => Ok((Err(ENOENT), now)),
            None => {
                let at = self.name_in(directory, path);
                let now = now + self.costs.name_add_ns;
                match self.fs.create(now, at, &mut self.inodes) {
                    Ok((ino, later)) => {
                        Ok((Ok((self.add_inode(now, path, ino, directory, false), true)), later))
                    }
                    Err(error) => {
                        let (errno, at) = errno(error, now)?;
                        Ok((Err(errno), at))
                    }
                }
            }
        }
    }

    /// The root, which has an inode among the others from its first opening on.
    fn open_root(&mut self, now: Ns, flags: Flags) -> Answer<(usize, bool)> {
        if flags.create && flags.excl {
            return Ok((Err(EEXIST), now));
        }
        if flags.write || flags.create || flags.trunc {
            return Ok((Err(EISDIR), now));
        }
        let known = self.inodes.find(ROOT);
        let index = known.unwrap_or_else(|| self.inodes.add(now, ROOT, None, true));
        Ok((Ok((index, false)), now))
    }

    /// What dropping caches leaves of dentries and inodes: those of open files and of the
    /// directories they are in, and of dirty files the inode alone. Returns the inodes.
    pub(super) fn shrink_dcache(&mut self) -> Vec<Ino> {
        let mut held = vec![false; self.inodes.len()];
        for open in self.slots.iter().flatten() {
            let mut at = Some(open.inode);
            while let Some(index) = at {
                held[index] = true;
                at = self.inodes[index].parent;
            }
        }
        let Names { paths, dentries } = &mut self.names;
        dentries.retain(|path| paths.get(path).is_some_and(|&index| held[index]));
        let mut kept = Vec::new();
        for (inode, held) in self.inodes.iter_mut().zip(held) {
            if held || inode.dirty.since.is_some() {
                kept.push(inode.ino);
            } else {
                inode.writeback_index = 0; // of the inode that lookup is going to make
            }
        }
        kept
    }
}
