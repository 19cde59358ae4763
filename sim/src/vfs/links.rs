//! Calls about names and inodes that remove no name (stat, readdir, readlink, attributes), and
//! calls that add one (link, symlink, O_TMPFILE).
//!
//! Mirrors fs/namei.c (do_linkat, do_symlinkat, vfs_tmpfile), fs/stat.c, fs/readdir.c, fs/attr.c
//! (notify_change), fs/open.c (chmod_common, chown_common) and fs/xattr.c of Linux 6.1 for a
//! program that runs as root. Access times are never updated: JFFS2 and UBIFS set SB_NOATIME, the
//! glue of YAFFS2 sets S_NOATIME. The values of modes, owners and times are not kept.
//!
//! The price of adding, removing or moving a name contains the walk to it; the other calls pay for
//! theirs.

use super::namei::Opened;
use super::walk::Walked;
use super::{Answer, Vfs};
use crate::errno::{errno, FsError, Outcome};
use crate::errno::{EBADF, EEXIST, EINVAL, ENOENT, ENOTDIR, EPERM};
use crate::fs::{Attribute, FlashFs, Ino};
use crate::units::Ns;

impl<S: FlashFs> Vfs<S> {
    /// The inode of a path, or ENOENT.
    fn walk_to_inode<'a>(
        &mut self,
        now: Ns,
        path: &'a str,
        follow: bool,
    ) -> Answer<(usize, Walked<'a>)> {
        let folders = path.bytes().filter(|&byte| byte == b'/').count() as u64;
        let now = now + self.costs.syscall_ns + self.costs.path_ns;
        let now = now + self.costs.path_folder_ns * folders;
        let (walked, now) = match self.walk(now, path, follow)? {
            (Ok(walked), now) => (walked, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        Ok((walked.found.map(|index| (index, walked)).ok_or(ENOENT), now))
    }

    /// Runs a call of the file system about the inode of a path.
    fn with_inode(
        &mut self,
        now: Ns,
        path: &str,
        call: impl FnOnce(&mut Self, Ns, usize) -> Result<(i64, Ns), FsError>,
    ) -> Outcome {
        let (index, now) = match self.walk_to_inode(now, path, true)? {
            (Ok((index, walked)), now) if self.inodes[index].is_lower() => {
                self.copy_up(now, &walked.path, true)?
            }
            (Ok((index, _)), now) => (index, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        call(self, now, index).or_else(|error| errno(error, now))
    }

    /// newfstatat with AT_SYMLINK_NOFOLLOW: the walk brings the inode into memory.
    pub fn stat(&mut self, now: Ns, path: &str) -> Outcome {
        Ok(match self.walk_to_inode(now, path, false)? {
            (Ok(_), now) => (0, now + self.costs.stat_ns),
            (Err(errno), now) => (errno, now),
        })
    }

    /// getdents64 from the beginning to the end. A second call finds the end.
    pub fn read_dir(&mut self, now: Ns, slot: usize) -> Outcome {
        let now = now + self.costs.syscall_ns * 2 + self.costs.list_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        if !self.inodes[index].is_directory {
            return Ok((ENOTDIR, now));
        }
        if self.inodes[index].names == 0 {
            return Ok((ENOENT, now)); // IS_DEADDIR
        }
        let below = match &*open.path {
            super::walk::TOP => String::new(),
            path => format!("{path}/"),
        };
        let names = self.names.paths.range(below.clone()..);
        let names = names.take_while(|(path, _)| path.starts_with(&below));
        let entries = names.filter(|(path, _)| !path[below.len()..].contains('/')).count();
        let listed = entries as i64;
        let now = now + self.fs.listed_ns() * listed.unsigned_abs();
        let ino = self.inodes[index].ino;
        let read = match self.has_lower() {
            true => self.read_merged(now, index),
            false => self.fs.read_dir(now, ino, &mut self.inodes),
        };
        match read {
            Ok(now) => Ok((2 + listed, now)),
            Err(error) => errno(error, now),
        }
    }

    /// link of a file that has a name. It does not follow a symbolic link at the end of the path.
    pub fn link(&mut self, now: Ns, old: &str, new: &str) -> Outcome {
        match self.walk_to_inode(now, old, false)? {
            (Ok((index, _)), now) => self.do_link(now, index, new),
            (Err(errno), now) => Ok((errno, now)),
        }
    }

    /// linkat with AT_EMPTY_PATH: links an open file, which may have no name yet.
    pub fn link_slot(&mut self, now: Ns, slot: usize, new: &str) -> Outcome {
        let now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let index = open.inode;
        self.do_link(now, index, new)
    }

    /// filename_create, vfs_link.
    fn do_link(&mut self, now: Ns, index: usize, new: &str) -> Outcome {
        let (to, now) = match self.walk(now, new, false)? {
            (Ok(to), now) => (to, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        if to.found.is_some() {
            return Ok((EEXIST, now));
        }
        let inode = &self.inodes[index];
        if inode.is_lower() {
            return Err(FsError::NotModelled("a link to a file of the read-only root"));
        }
        if inode.is_directory {
            return Ok((EPERM, now));
        }
        if inode.names == 0 && !inode.is_linkable {
            return Ok((ENOENT, now));
        }
        let (ino, mut now) = (inode.ino, now + self.costs.name_add_ns);
        let mut directory = to.directory;
        if self.has_lower() {
            self.refuse_whiteout(&to.path)?;
            (directory, now) = self.copy_up_above(now, &to.path)?;
        }
        let at = self.name_in(directory, &to.path);
        let now = match self.fs.link(now, at, ino, &mut self.inodes) {
            Ok(later) => later,
            Err(error) => return errno(error, now),
        };
        let inode = &mut self.inodes[index];
        inode.names += 1;
        inode.is_linkable = false;
        self.names.paths.insert(to.path.into_owned(), index);
        Ok((0, self.revert_creds(now)?))
    }

    /// symlink.
    pub fn symlink(&mut self, now: Ns, target: &str, path: &str) -> Outcome {
        let (to, now) = match self.walk(now + self.costs.syscall_ns, path, false)? {
            (Ok(to), now) => (to, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        if to.found.is_some() {
            return Ok((EEXIST, now));
        }
        let now = now + self.costs.name_add_ns;
        let made =
            self.create_in_layer(now, (to.directory, &to.path), false, |fs, now, at, pages| {
                fs.symlink(now, at, target, pages)
            });
        match made {
            Ok((ino, later)) => {
                let index = self.add_inode(now, &to.path, ino, false);
                self.inodes[index].target = Some(target.into());
                Ok((0, later))
            }
            Err(error) => errno(error, now),
        }
    }

    /// readlink: returns the target's length.
    pub fn read_link(&mut self, now: Ns, path: &str) -> Outcome {
        let (index, now) = match self.walk_to_inode(now, path, false)? {
            (Ok((index, _)), now) => (index, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        let Some(target) = &self.inodes[index].target else { return Ok((EINVAL, now)) };
        let bytes = crate::ops::name_len(target) as i64;
        match self.get_link(now, index) {
            Ok(now) => Ok((bytes, now)),
            Err(error) => errno(error, now),
        }
    }

    /// O_TMPFILE in a directory.
    pub(super) fn open_tmpfile(&mut self, now: Ns, path: &str) -> Answer<Opened> {
        let (walked, now) = match self.walk(now, path, true)? {
            (Ok(walked), now) => (walked, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        let Some(directory) = walked.found else { return Ok((Err(ENOENT), now)) };
        if !self.inodes[directory].is_directory {
            return Ok((Err(ENOTDIR), now));
        }
        self.refuse_layer(super::overlay::TMPFILE)?;
        let (above, now) = (self.inodes[directory].ino, now + self.costs.name_add_ns);
        let (ino, later) = self.fs.tmpfile(now, above, &mut self.inodes)?;
        let inode = self.inodes.add(now, ino, false);
        (self.inodes[inode].names, self.inodes[inode].is_linkable) = (0, true);
        // d_tmpfile: the inode becomes dirty because its link count drops to 0.
        self.inodes.mark_dirty(later, inode);
        let directory = (above != self.root_ino()).then_some(directory);
        Ok((Ok(Opened { inode, directory, path: None, is_new: true }), later))
    }

    /// chmod, chown, utimensat: notify_change.
    pub fn set_attribute(&mut self, now: Ns, path: &str, what: Attribute) -> Outcome {
        self.with_inode(now, path, |vfs, now, index| {
            let (ino, now) = (vfs.inodes[index].ino, now + vfs.costs.attribute_ns);
            let now = vfs.fs.set_attribute(now, ino, what, &mut vfs.inodes)?;
            if what == Attribute::Times {
                vfs.inodes[index].modified_s = vfs.inodes.stamp_s(now);
            }
            Ok((0, now))
        })
    }

    /// setxattr.
    pub fn set_xattr(&mut self, now: Ns, path: &str, name: &str, bytes: u32) -> Outcome {
        self.with_inode(now, path, |vfs, now, index| {
            let now = now + Ns::from_ps(bytes.into(), vfs.costs.copy_from_user_byte_ps);
            let ino = vfs.inodes[index].ino;
            Ok((0, vfs.fs.set_xattr(now, ino, name, bytes, &mut vfs.inodes)?))
        })
    }

    /// getxattr: returns the value's length.
    pub fn get_xattr(&mut self, now: Ns, path: &str, name: &str) -> Outcome {
        self.about_xattr(now, path, |fs, now, ino| fs.get_xattr(now, ino, name))
    }

    /// listxattr: returns the length of all names.
    pub fn list_xattr(&mut self, now: Ns, path: &str) -> Outcome {
        self.about_xattr(now, path, |fs, now, ino| fs.list_xattr(now, ino))
    }

    fn about_xattr(
        &mut self,
        now: Ns,
        path: &str,
        ask: impl FnOnce(&mut S, Ns, Ino) -> Result<(u32, Ns), FsError>,
    ) -> Outcome {
        let (index, now) = match self.walk_to_inode(now, path, true)? {
            (Ok((index, _)), now) => (index, now),
            (Err(errno), now) => return Ok((errno, now)),
        };
        if self.inodes[index].is_lower() {
            return Err(FsError::NotModelled("attributes of a file of the read-only root"));
        }
        let call = |vfs: &mut Self| {
            let (bytes, now) = ask(&mut vfs.fs, now, vfs.inodes[index].ino)?;
            let copied = Ns::from_ps(bytes.into(), vfs.costs.copy_to_user_byte_ps);
            Ok((bytes.into(), now + copied))
        };
        call(self).or_else(|error| errno(error, now))
    }

    /// removexattr.
    pub fn remove_xattr(&mut self, now: Ns, path: &str, name: &str) -> Outcome {
        self.with_inode(now, path, |vfs, now, index| {
            let ino = vfs.inodes[index].ino;
            Ok((0, vfs.fs.remove_xattr(now, ino, name, &mut vfs.inodes)?))
        })
    }
}
