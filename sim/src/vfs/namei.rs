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

/// What is on a file system.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// What is below each path.
    pub files: BTreeMap<String, Left>,
    /// How many writes had recorded bytes.
    pub written: u64,
}

/// What is below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Equal for the names of one file.
    pub number: usize,
    /// What it is.
    pub what: What,
}

/// A folder, a symbolic link and its target, or a file's size and content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum What {
    Folder,
    Link(String),
    File(u64, Contents),
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
    /// The directory that the program's root shows.
    pub(super) fn root_ino(&self) -> Ino {
        self.layer.as_ref().map_or(ROOT, |layer| layer.upper)
    }

    fn ino_of(&self, directory: Option<usize>) -> Ino {
        directory.map_or(self.root_ino(), |index| self.inodes[index].ino)
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
        let mut now = now;
        if self.has_lower() {
            now = self.look_up_merged(now, directory, path, found)?;
        } else {
            let ino = found.map(|index| self.inodes[index].ino);
            now = self.fs.lookup(now, self.name_in(directory, path), ino)?;
            if let Some(index) = found {
                now = self.look_up_layer(now, index)?;
            }
        }
        self.names.dentries.insert(path.to_owned());
        Ok((found, now))
    }

    pub(super) fn add_inode(&mut self, now: Ns, path: &str, ino: Ino, is_directory: bool) -> usize {
        let index = match self.inodes.find(ino) {
            Some(index) => index, // in the place of a white-out
            None => self.inodes.add(now, ino, is_directory),
        };
        self.names.paths.insert(path.to_owned(), index);
        index
    }

    /// The directory of a path, which may have been copied up since the walk.
    fn directory_of(&self, walked: &Walked<'_>) -> Option<usize> {
        let above = walked.path.rsplit_once('/').filter(|_| walked.directory.is_some());
        above.and_then(|(above, _)| self.names.paths.get(above).copied()).or(walked.directory)
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

    /// What is below every path. The directory that every mount makes is left out.
    pub fn tree(&self) -> Tree {
        let made = self.fs.lost_and_found().map(|(name, _)| name);
        let ours = self.names.paths.iter().filter(|(path, _)| Some(path.as_str()) != made);
        let left = |(path, &number): (&String, &usize)| {
            let inode = &self.inodes[number];
            let what = match &inode.target {
                _ if inode.is_directory => What::Folder,
                Some(target) => What::Link(target.to_string()),
                None => What::File(inode.size_bytes, inode.contents.clone()),
            };
            (path.clone(), Left { number, what })
        };
        Tree { files: ours.map(left).collect(), written: self.written }
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
        let at = (walked.directory, &*walked.path);
        let made = self.create_in_layer(now, at, true, S::mkdir);
        match made {
            Ok((ino, later)) => {
                let index = self.add_inode(now, &walked.path, ino, true);
                self.inodes[index].parent = self.directory_of(&walked);
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
        let Opened { mut inode, mut directory, path, is_new } = opened;
        if flags.direct {
            // do_dentry_open: none of the file systems has a_ops->direct_IO.
            now = self.put_inode(now, inode)?;
            self.file_free(now);
            return Ok((EINVAL, now));
        }
        if flags.write || flags.trunc {
            // ovl_open; its file is that of the volume afterwards.
            if let Some(path) = path.as_deref().filter(|_| self.inodes[inode].is_lower()) {
                (inode, now) = self.copy_up(now, path, !flags.trunc)?;
                directory = path.rsplit_once('/').map(|(above, _)| self.names.paths[above]);
            }
        }
        if flags.trunc && !is_new {
            match self.do_truncate(now, inode, 0)? {
                (0, later) => now = later,
                failed => return Ok(failed),
            }
        }
        let readahead = ReadAheadState::new(self.window_of(inode));
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
            let now = now + self.costs.name_add_ns + self.layer_create_ns();
            let (ino, later) = self.create_in_layer(now, (directory, &path), false, S::create)?;
            let directory =
                self.directory_of(&Walked { directory, path: path.clone(), found: None });
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
