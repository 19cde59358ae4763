//! Calls that remove or move names: unlink, rmdir, rename.
//!
//! Mirrors fs/namei.c (do_unlinkat, do_rmdir, do_renameat2, may_delete) and fs/dcache.c (d_delete,
//! d_move) of Linux 6.1. A removed name leaves a negative dentry, unless an open file uses the
//! dentry. A name that was moved away leaves none. Left out: RENAME_EXCHANGE, permissions.
//!
//! Invariant: a path is in `paths` exactly if the file system has an entry for it.

use super::inode::Inode;
use super::walk::{Parent, TOP};
use super::{Answer, Vfs};
use crate::errno::{errno, Outcome};
use crate::errno::{EBUSY, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY};
use crate::fs::{FlashFs, FsError, Rename};
use crate::units::Ns;

/// PATH_MAX: beyond it the work of a rename would grow with the square of the depth.
const PATH_MAX_BYTES: usize = 4096;
const TOO_DEEP: &str = "a folder moved below a path of more than 4,096 bytes";

impl<S: FlashFs> Vfs<S> {
    /// Whether `path` is below `directory`.
    fn is_below(path: &str, directory: &str) -> bool {
        path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether an inode is a directory that is not empty.
    pub(super) fn has_entries(&self, path: &str) -> bool {
        let first = format!("{path}/");
        self.names.paths.range(first..).next().is_some_and(|(found, _)| Self::is_below(found, path))
    }

    /// The length of the longest path below a directory; its own where it has none.
    fn longest_below(&self, directory: &str) -> usize {
        let below = self.names.paths.range(format!("{directory}/")..).map(|(path, _)| path);
        let below = below.take_while(|path| Self::is_below(path, directory));
        below.map(String::len).max().unwrap_or(directory.len())
    }

    /// d_delete: the dentry becomes negative, or is dropped if an open file holds it.
    fn delete_dentry(&mut self, path: &str) {
        self.names.paths.remove(path);
        if self.unhash(path) {
            self.names.dentries.remove(path);
        }
    }

    /// shrink_dcache_parent of an empty directory: frees the negative dentries below.
    fn shrink_dcache_parent(&mut self, now: Ns, directory: &str) {
        let below = format!("{directory}/");
        let dentries = self.names.dentries.range(below.clone()..);
        let gone: Vec<String> =
            dentries.take_while(|path| path.starts_with(&below)).cloned().collect();
        for path in &gone {
            self.names.dentries.remove(path);
        }
        if !gone.is_empty() {
            self.fs.call_rcu(now); // dentry_free
        }
    }

    /// Unhashes the dentry of a path, so that only open files still refer to it. Returns whether
    /// any does.
    pub(super) fn unhash(&mut self, path: &str) -> bool {
        let mut is_open = false;
        for open in self.slots.iter_mut().flatten() {
            if *open.path == *path && !open.is_deleted {
                (open.is_deleted, is_open) = (true, true);
            }
        }
        is_open
    }

    /// unlink.
    pub fn unlink(&mut self, now: Ns, path: &str) -> Outcome {
        self.remove(now + self.costs.syscall_ns + self.costs.name_remove_ns, path, false)
    }

    /// rmdir.
    pub fn rmdir(&mut self, now: Ns, path: &str) -> Outcome {
        self.remove(now + self.costs.syscall_ns + self.costs.name_remove_ns, path, true)
    }

    fn remove(&mut self, now: Ns, path: &str, directory_wanted: bool) -> Outcome {
        let (walked, now) = match self.walk(now, path, false)? {
            (Ok(walked), now) => (walked, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        let Some(index) = walked.found else { return Ok((ENOENT, now)) };
        let path = &*walked.path;
        let Inode { ino, is_directory, .. } = self.inodes[index];
        let at = self.name_in(walked.directory, path);
        match directory_wanted {
            false if is_directory => return Ok((EISDIR, now)),
            true if path == TOP => return Ok((EINVAL, now)), // LAST_DOT
            true if !is_directory => return Ok((ENOTDIR, now)),
            true if self.has_entries(path) && !self.has_lower() => {
                return Ok((ENOTEMPTY, self.fs.check_dir_empty(now, ino, &[at])?));
            }
            _ => {}
        }
        if self.has_lower() {
            return self.remove_from_layer(now, &walked, index);
        }
        let removed = if is_directory {
            self.fs.rmdir(now, at, ino, &mut self.inodes)
        } else {
            self.fs.unlink(now, at, ino, &mut self.inodes)
        };
        let now = match removed {
            Ok(later) => later,
            Err(error) => return errno(error, now),
        };
        if is_directory {
            self.shrink_dcache_parent(now, path);
        }
        self.delete_dentry(path);
        self.inodes[index].names -= 1;
        Ok((0, self.put_inode(now, index)?))
    }

    /// rename, which replaces the inode at the new name.
    pub fn rename(&mut self, now: Ns, old: &str, new: &str) -> Outcome {
        let now = now + self.costs.syscall_ns + self.costs.name_move_ns;
        let ((from, to), now) = match self.both_directories(now, old, new)? {
            (Ok(directories), now) => (directories, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        let ((old_in, old), (new_in, new)) = ((from.0, &*from.1), (to.0, &*to.1));
        if old == TOP || new == TOP {
            return Ok((EBUSY, now)); // LAST_DOT
        }
        let (moved, now) = self.lookup(now, old_in, old)?;
        let Some(moved) = moved else { return Ok((ENOENT, now)) };
        let (target, now) = self.lookup(now, new_in, new)?;
        if let Some(errno) = self.may_rename(old, new, moved, target) {
            let full = target.filter(|_| errno == ENOTEMPTY && !Self::is_below(old, new));
            let Some(full) = full else { return Ok((errno, now)) };
            let names = [self.name_in(old_in, old), self.name_in(new_in, new)];
            return Ok((errno, self.fs.check_dir_empty(now, self.inodes[full].ino, &names)?));
        }
        if target == Some(moved) {
            return Ok((0, now));
        }
        if self.has_lower() {
            let renamed = self.rename_in_layer(now, (old_in, old), (new_in, new), target)?;
            return match renamed {
                (Ok(moved), now) => self.end_rename(now, (moved, target), old, new),
                (Err(errno), now) => Ok((errno, now)),
            };
        }
        if self.longest_below(old) + new.len() > PATH_MAX_BYTES + old.len() {
            return Err(FsError::NotModelled(TOO_DEEP));
        }
        let rename = Rename {
            ino: self.inodes[moved].ino,
            old: self.name_in(old_in, old),
            new: self.name_in(new_in, new),
            replaced: target.map(|index| self.inodes[index].ino),
        };
        let now = match self.inodes[moved].is_directory {
            true => self.set_opaque(now, new_in, rename.ino)?,
            false => now,
        };
        let now = match self.fs.rename(now, rename, &mut self.inodes) {
            Ok(later) => later,
            Err(error) => return errno(error, now),
        };
        self.end_rename(now, (moved, target), old, new)
    }

    /// vfs_rename after the file system's part.
    fn end_rename(
        &mut self,
        now: Ns,
        (moved, target): (usize, Option<usize>),
        old: &str,
        new: &str,
    ) -> Outcome {
        if let Some(target) = target {
            self.inodes[target].names -= 1;
        }
        let above = new.rsplit_once('/').map(|(above, _)| above);
        let new_in = above.and_then(|above| self.names.paths.get(above).copied());
        self.move_names(old, new);
        self.move_dentry(moved, new_in, new);
        // dput of the new name's dentry, which d_move has unhashed: it may sleep, and frees.
        let now = self.resched(now)?;
        let now = target.map_or(Ok(now), |target| self.put_inode(now, target))?;
        self.fs.call_rcu(now);
        Ok((0, now))
    }

    /// filename_parentat of both paths, before either last component is looked up.
    fn both_directories<'a>(
        &mut self,
        now: Ns,
        old: &'a str,
        new: &'a str,
    ) -> Answer<(Parent<'a>, Parent<'a>)> {
        let (from, now) = match self.walk_parent(now, old)? {
            (Ok(from), now) => (from, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        let (to, now) = self.walk_parent(now, new)?;
        Ok((to.map(|to| (from, to)), now))
    }

    /// The checks of do_renameat2 and vfs_rename, in their order.
    fn may_rename(&self, old: &str, new: &str, moved: usize, target: Option<usize>) -> Option<i64> {
        if Self::is_below(new, old) {
            return Some(EINVAL);
        }
        if Self::is_below(old, new) {
            return Some(ENOTEMPTY);
        }
        let target = target.filter(|&target| target != moved)?;
        match (self.inodes[moved].is_directory, self.inodes[target].is_directory) {
            (true, false) => Some(ENOTDIR),
            (false, true) => Some(EISDIR),
            (true, true) if self.has_entries(new) => Some(ENOTEMPTY),
            _ => None,
        }
    }

    /// d_move: the dentry's new d_parent.
    fn move_dentry(&mut self, moved: usize, directory: Option<usize>, path: &str) {
        if self.inodes[moved].is_directory {
            self.inodes[moved].parent = directory;
        }
        for open in self.slots.iter_mut().flatten() {
            if *open.path == *path && !open.is_deleted {
                open.directory = directory;
            }
        }
    }

    /// d_move: moves the dentry of the old name, and all below it, to the new name.
    fn move_names(&mut self, old: &str, new: &str) {
        let moves = |path: &str| path == old || Self::is_below(path, old);
        let renamed = |path: &str| format!("{new}{}", &path[old.len()..]);
        self.unhash(new);
        for open in self.slots.iter_mut().flatten() {
            if Self::is_below(&open.path, old) || *open.path == *old && !open.is_deleted {
                open.path = renamed(&open.path).into();
            }
        }
        let names = &mut self.names;
        names.dentries.retain(|path| path != new && !Self::is_below(path, new));
        let moved: Vec<String> = names.dentries.iter().filter(|p| moves(p)).cloned().collect();
        for path in moved {
            names.dentries.remove(&path);
            names.dentries.insert(renamed(&path));
        }
        let below = names.paths.range(format!("{old}/")..);
        let below = below.take_while(|(path, _)| Self::is_below(path, old));
        let moved: Vec<(String, usize)> = (names.paths.get_key_value(old).into_iter())
            .chain(below)
            .map(|(path, &index)| (path.clone(), index))
            .collect();
        names.paths.remove(new);
        for (path, index) in moved {
            names.paths.remove(&path);
            names.paths.insert(renamed(&path), index);
        }
    }
}
