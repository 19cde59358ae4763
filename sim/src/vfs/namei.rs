//! Names: the dentry cache, and the calls that look up or create a name.
//!
//! Mirrors fs/namei.c (link_path_walk, lookup_open, filename_create) and fs/dcache.c of Linux 6.1.
//! A name is looked up in the file system once, whether the name exists or not. The answer stays as
//! a dentry, a negative one for a missing name, until caches are dropped. walk.rs has the walk,
//! links.rs the other calls about names, rename.rs those that remove them. Left out: permissions,
//! memory pressure.
//!
//! Invariants:
//! 1. The root's dentry is always cached, and so is a directory's while a dentry below it is in
//!    use.
//! 2. The inode of a cached dentry is in memory.

use super::inode::Inode;
use super::walk::Walked;
use super::{Answer, OpenFile, ReadPosition, Vfs};
use crate::content::Contents;
use crate::errno::{errno, FsError, Outcome};
use crate::errno::{EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR};
use crate::fs::{FlashFs, Found, Ino, Name, PAGE_BYTES, ROOT};
use crate::ops::Flags;
use crate::units::Ns;
use crate::vfs::readahead::ReadAheadState;
use std::collections::{BTreeMap, BTreeSet};

/// All names, and which of them have dentries.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Every path, and the place of its inode in `Vfs::inodes`.
    pub(super) paths: BTreeMap<String, usize>,
    /// Paths with a dentry; it is negative if `paths` has no such path.
    pub(super) dentries: BTreeSet<String>,
}

impl Names {
    /// Drops all dentries, as after a mount.
    pub(super) fn forget_dentries(&mut self) {
        self.dentries.clear();
    }
}

/// The file that an open found or created.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub inode: usize,
    /// The directory of its dentry.
    pub directory: Option<usize>,
    /// Its path; none for a file that never had a name.
    pub path: Option<Box<str>>,
    pub is_new: bool,
}

impl<S: FlashFs> Vfs<S> {
    fn ino_of(&self, directory: Option<usize>) -> Ino {
        directory.map_or(ROOT, |index| self.inodes[index].ino)
    }

    /// The inode of a path, after its last component was looked up.
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

    pub(super) fn add_inode(&mut self, now: Ns, path: &str, ino: Ino, is_directory: bool) -> usize {
        let index = self.inodes.add(now, ino, is_directory);
        self.names.paths.insert(path.to_owned(), index);
        index
    }

    /// Adds the directory that every mount of this file system has.
    pub(super) fn add_lost_and_found(&mut self, now: Ns) {
        if let Some((name, ino)) = self.fs.lost_and_found() {
            self.add_inode(now, name, ino, true);
        }
    }

    /// The mount has deleted what was in that directory.
    pub(super) fn empty_lost_and_found(&mut self) {
        let Some((name, _)) = self.fs.lost_and_found() else { return };
        let below = format!("{name}/");
        let paths = self.names.paths.range(below.clone()..);
        let gone = paths.take_while(|(path, _)| path.starts_with(&below));
        for (path, index) in gone.map(|(path, &index)| (path.clone(), index)).collect::<Vec<_>>() {
            self.names.paths.remove(&path);
            self.inodes[index].names -= 1;
            if self.inodes[index].names == 0 {
                self.inodes.evict(index);
            }
        }
    }

    /// Adds an inode that a mount has found, after the directory it is in.
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
        let index = self.add_inode(now, &path, file.ino, file.is_directory);
        let inode = &mut self.inodes[index];
        inode.parent = parent;
        inode.size_bytes = file.size_bytes;
        inode.target = file.target.map(String::into_boxed_str);
        inode.contents = file.contents;
        inode.cache.grow(file.size_bytes.div_ceil(u64::from(PAGE_BYTES)) as u32);
    }

    /// Every file's path, size and content, in the order of paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, &Contents)> {
        let inodes = self.names.paths.iter().map(|(path, &index)| (path, &self.inodes[index]));
        inodes
            .filter(|(_, inode)| !inode.is_directory && inode.target.is_none())
            .map(|(path, inode)| (path.as_str(), inode.size_bytes, &inode.contents))
    }

    /// Every symbolic link's path and target, in the order of paths.
    pub fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        let inodes = self.names.paths.iter().map(|(path, &index)| (path, &self.inodes[index]));
        inodes.filter_map(|(path, inode)| Some((path.as_str(), inode.target.as_deref()?)))
    }

    /// The last component of a path, in its directory.
    pub(super) fn name_in<'a>(&self, directory: Option<usize>, path: &'a str) -> Name<'a> {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        Name { directory: self.ino_of(directory), name }
    }

    /// mkdir.
    pub fn mkdir(&mut self, now: Ns, path: &str) -> Outcome {
        let (walked, now) = match self.walk(now + self.costs.syscall_ns, path, false)? {
            (Ok(walked), now) => (walked, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        if walked.found.is_some() {
            return Ok((EEXIST, now));
        }
        let now = now + self.costs.name_add_ns;
        let at = self.name_in(walked.directory, &walked.path);
        match self.fs.mkdir(now, at, &mut self.inodes) {
            Ok((ino, later)) => {
                let index = self.add_inode(now, &walked.path, ino, true);
                self.inodes[index].parent = walked.directory;
                Ok((0, later))
            }
            Err(error) => errno(error, now),
        }
    }

    /// open: looks the file up, creates it with O_CREAT, and sets up its read-ahead.
    pub fn open(&mut self, now: Ns, slot: usize, path: &str, flags: Flags) -> Outcome {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        let now = now + self.costs.syscall_ns + self.costs.open_ns;
        let opened = match self.open_inode(now, path, flags) {
            Ok((Ok(opened), now)) => Ok((opened, now)),
            Ok((Err(errno), now)) => Err((errno, now)),
            Err(error) => Err(errno(error, now)?),
        };
        let (opened, mut now) = match opened {
            Ok(opened) => opened,
            Err((errno, now)) => {
                self.file_free(now);
                return Ok((errno, now));
            }
        };
        let Opened { inode, directory, path, is_new } = opened;
        if flags.direct {
            // do_dentry_open: none of the file systems has a_ops->direct_IO.
            now = self.put_inode(now, inode)?;
            self.file_free(now);
            return Ok((EINVAL, now));
        }
        if flags.trunc && !is_new {
            match self.do_truncate(now, inode, 0)? {
                (0, later) => now = later,
                failed => return Ok(failed),
            }
        }
        let readahead = ReadAheadState::new(self.read_ahead_pages);
        let position = ReadPosition { readahead, last_page: None };
        let is_deleted = path.is_none();
        let path = path.unwrap_or_default();
        let open = OpenFile { inode, directory, path, is_deleted, flags, position, lock: None };
        self.slots[slot] = Some(open);
        Ok((0, now))
    }

    /// The inode to open, an existing or a new one.
    fn open_inode(&mut self, now: Ns, path: &str, flags: Flags) -> Answer<Opened> {
        if flags.tmpfile {
            return self.open_tmpfile(now, path);
        }
        // O_CREAT with O_EXCL follows no symbolic link.
        let follow = !(flags.nofollow || flags.create && flags.excl);
        let (walked, now) = match self.walk(now, path, follow)? {
            (Ok(walked), now) => (walked, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        let changes = flags.write || flags.create || flags.trunc;
        let Some(index) = walked.found else {
            if !flags.create {
                return Ok((Err(ENOENT), now));
            }
            let Walked { directory, path, .. } = walked;
            let now = now + self.costs.name_add_ns;
            let at = self.name_in(directory, &path);
            let (ino, later) = self.fs.create(now, at, &mut self.inodes)?;
            let inode = self.add_inode(now, &path, ino, false);
            let path = Some(path.into());
            return Ok((Ok(Opened { inode, directory, path, is_new: true }), later));
        };
        let Inode { is_directory, ref target, .. } = self.inodes[index];
        let refused = match () {
            () if flags.create && flags.excl => Some(EEXIST),
            () if target.is_some() => Some(if flags.directory { ENOTDIR } else { ELOOP }),
            () if is_directory && changes => Some(EISDIR),
            () if flags.directory && !is_directory => Some(ENOTDIR),
            () => None,
        };
        if let Some(errno) = refused {
            return Ok((Err(errno), now));
        }
        let Walked { directory, path, .. } = walked;
        let path = Some(path.into());
        Ok((Ok(Opened { inode: index, directory, path, is_new: false }), now))
    }

    /// The dentries and inodes that dropping caches leaves: those of open files and their
    /// directories, and the inodes of dirty files. Returns the inodes.
    pub(super) fn shrink_dcache(&mut self) -> Vec<Ino> {
        let mut held = vec![false; self.inodes.len()];
        let mut used = BTreeSet::new();
        for open in self.slots.iter().flatten() {
            held[open.inode] = true;
            self.directories_of(open).for_each(|directory| held[directory] = true);
            if !open.is_deleted {
                used.insert(&*open.path);
            }
            used.extend(open.path.match_indices('/').map(|(end, _)| &open.path[..end]));
        }
        let Names { paths, dentries } = &mut self.names;
        dentries.retain(|path| paths.contains_key(path) && used.contains(&**path));
        for path in dentries.iter() {
            held[paths[path]] = true;
        }
        let mut kept = Vec::new();
        for (inode, held) in self.inodes.iter_mut().zip(held) {
            if held || inode.dirty.since.is_some() {
                kept.push(inode.ino);
            } else {
                inode.writeback_index = 0; // the next lookup creates a new struct inode
            }
        }
        kept
    }
}
