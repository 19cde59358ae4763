//! Links: other names of an object (hard links), symbolic links, and reading a directory.
//!
//! Mirrors from yaffs_guts.c yaffs_link_obj, yaffs_del_link, yaffs_link_fixup, the part of
//! yaffs_unlink_worker about links, yaffs_get_obj_name, and kernel/yaffs2/names.c (link, symlink,
//! get_link), inode.c (yfs_setattr) and readdir.c. A hard link is an object of its own with a
//! header. If an object that has hard links loses its name, it takes over the newest link's.
//!
//! Invariant: the numbers in an object's `other_names` are of hard links to it.

use super::children::SHORT_NAME_BYTES;
use super::kind::Kind;
use super::{Yaffs2, UNLINKED};
use crate::errno::ENAMETOOLONG;
use crate::fs::{FsError, Ino, Name, Result};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;

/// YAFFS_MAX_ALIAS_LENGTH.
const TARGET_BYTES_MAX: usize = 159;

impl<D: NandDriver> Yaffs2<D> {
    /// yaffs_get_equivalent_obj: the object that a hard link refers to, or the object itself.
    pub(super) fn equivalent(&self, number: u32) -> u32 {
        match self.object(number).kind {
            Kind::Name(of) => of,
            _ => number,
        }
    }

    /// yaffs_get_equivalent_obj, which loads the details of the object it returns.
    pub(super) fn load_equivalent(&mut self, now: Ns, number: u32) -> Result<Ns> {
        match self.object(number).kind {
            Kind::Name(of) if self.objects.get(of).is_some() => self.load_details(now, of),
            _ => Ok(now),
        }
    }

    /// link of kernel/yaffs2/names.c: creates an object without an inode of its own.
    pub(super) fn add_name(&mut self, now: Ns, at: Name<'_>, number: u32) -> Result<Ns> {
        Ok(self.create_object(now, at, Kind::Name(number))?.1)
    }

    /// symlink of kernel/yaffs2/names.c.
    pub(super) fn make_link(&mut self, now: Ns, at: Name<'_>, target: &str) -> Result<(Ino, Ns)> {
        if name_len(target) > TARGET_BYTES_MAX {
            return Err(FsError::Errno(ENAMETOOLONG, now));
        }
        self.make(now, at, Kind::Link(target.into()))
    }

    /// The "curve ball" in yaffs_unlink_worker: the object takes the place of its newest hard link.
    pub(super) fn take_name(&mut self, now: Ns, number: u32, other: u32) -> Result<(bool, Ns)> {
        let now = self.read_name(now, other)?;
        let (name, parent) = (self.object(other).name.clone(), self.object(other).parent);
        self.add_to_directory(UNLINKED, other);
        let at = Name { directory: Ino(parent), name: &name };
        let now = self.find_by_name(now, at)?.1;
        let (written, now) = self.change_name(now, number, (parent, &name), 0)?;
        Ok((written, if written { self.delete_generic(now, other)? } else { now }))
    }

    /// yaffs_get_obj_name: reads the header if the name is too long for memory.
    fn read_name(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let now = self.load_details(now, number)?;
        let object = self.object(number);
        match object.header_chunk {
            chunk if chunk != 0 && name_len(&object.name) > SHORT_NAME_BYTES => {
                Ok(self.read_chunk(now, chunk)?.1)
            }
            _ => Ok(now),
        }
    }

    /// iterate of kernel/yaffs2/readdir.c: objects in the order of their numbers.
    pub(super) fn read_entries(&mut self, mut now: Ns, directory: u32) -> Result<Ns> {
        for number in self.objects.children_in_order(directory) {
            now += self.mtd.costs().yaffs2_entry_ns;
            now = self.load_equivalent(now, number)?;
            now = self.read_name(now, number)?;
        }
        Ok(now)
    }

    /// yfs_setattr without a size: writes the header.
    pub(super) fn change_attribute(&mut self, now: Ns, number: u32) -> Result<Ns> {
        match self.write_header(now, number, None, false, 0)? {
            (true, now) => Ok(now),
            (false, now) => Err(FsError::NoSpace(now)),
        }
    }

    /// yaffs_link_fixup: attaches the hard links that a scan found to their objects; the first one
    /// found is the newest. A link whose object is missing is deleted.
    pub(super) fn fix_links(&mut self, found: Vec<u32>) {
        for number in found.into_iter().rev() {
            let Kind::Name(of) = self.object(number).kind else { continue };
            if self.objects.get(of).is_some() {
                self.objects.add_other_name(of, number);
            }
        }
    }
}
