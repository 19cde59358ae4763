//! Directories and paths.
//!
//! Mirrors fs/squashfs/namei.c (squashfs_lookup, get_dir_index_using_name), symlink.c, and the
//! walk of fs/namei.c that opens a file for reading. A name is looked up once. Left out: a link
//! that leaves the root, which is refused, and permissions.

use super::format::{u16_at, u32_at, Place, What};
use super::{Below, Inode, Io, Squashfs, METADATA_BYTES};
use crate::errno::{FsError, Result, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR};
use crate::units::Ns;

/// SQUASHFS_DIR_COUNT: entries after one header.
const ENTRIES_MAX: u32 = 256;
/// SQUASHFS_NAME_LEN.
const NAME_BYTES_MAX: u32 = 256;
const HEADER_BYTES: u32 = 12;
const ENTRY_BYTES: u32 = 8;
const INDEX_BYTES: u32 = 12;
/// "." and "..", which are not stored, count as three bytes.
pub(super) const INVENTED: u32 = 3;
/// MAXSYMLINKS.
const LINKS_MAX: u32 = 40;
const LEAVES: FsError = FsError::NotModelled("a symbolic link that leaves the read-only root");

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// The reference of its inode.
    pub reference: u64,
    /// The number of its inode.
    pub inode: u32,
}

/// An entry as it follows its header.
fn entry(header: &[u8], entry: &[u8], name: Vec<u8>) -> Entry {
    let number = u32_at(header, 8).wrapping_add_signed(i32::from(u16_at(entry, 2) as i16));
    let reference = u64::from(u32_at(header, 4)) << 16 | u64::from(u16_at(entry, 0));
    Entry { name, reference, inode: number }
}

impl Squashfs {
    /// The inode of a path, as open(2) with O_RDONLY finds it; or an errno.
    pub fn walk(
        &mut self,
        below: &mut dyn Below,
        now: Ns,
        path: &str,
    ) -> Result<(core::result::Result<u32, i64>, Ns)> {
        let mut io = Io { below, now, prices: self.prices };
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut above = vec![];
        let mut here = self.root;
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    here = above.pop().ok_or(LEAVES)?;
                    continue;
                }
                long if long.len() >= NAME_BYTES_MAX as usize => {
                    return Ok((Err(ENAMETOOLONG), io.now));
                }
                _ => {}
            }
            let Some(found) = self.lookup(&mut io, here, (&name, name.as_bytes()))? else {
                let errno = if self.is_directory(here) { ENOENT } else { ENOTDIR };
                return Ok((Err(errno), io.now));
            };
            let Some(&Inode { what: What::Link { bytes, target }, .. }) = self.inodes.get(&found)
            else {
                above.push(here);
                here = found;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Ok((Err(ELOOP), io.now));
            }
            let target = self.read_link(&mut io, found, target, bytes)?;
            if target.starts_with('/') {
                return Err(LEAVES);
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
        }
        Ok((Ok(here), io.now))
    }

    fn is_directory(&self, inode: u32) -> bool {
        matches!(self.inodes.get(&inode), Some(Inode { what: What::Directory { .. }, .. }))
    }

    /// The inode of a name, looked up once; a text stands for the name's bytes.
    pub(super) fn lookup(
        &mut self,
        io: &mut Io<'_>,
        directory: u32,
        (text, name): (&str, &[u8]),
    ) -> Result<Option<u32>> {
        if !self.is_directory(directory) {
            return Ok(None);
        }
        let key = (directory, text.to_owned());
        if let Some(known) = self.dentries.get(&key) {
            return Ok(*known);
        }
        if directory == self.root {
            io.now = io.below.look_above(io.now, text)?;
        }
        let found = self.squashfs_lookup(io, directory, name)?;
        let inode = match found {
            Some(entry) if self.inodes.contains_key(&entry.inode) => Some(entry.inode),
            Some(entry) => Some(self.read_inode(io, entry.reference)?),
            None => None,
        };
        self.dentries.insert(key, inode);
        Ok(inode)
    }

    /// squashfs_lookup: reads entries up to the name, or to one that sorts behind its first byte.
    fn squashfs_lookup(
        &mut self,
        io: &mut Io<'_>,
        directory: u32,
        name: &[u8],
    ) -> Result<Option<Entry>> {
        let Some(&Inode { what: What::Directory { entries, bytes, index, indexes }, .. }) =
            self.inodes.get(&directory)
        else {
            return io.broken();
        };
        let (at, length) = self.find_in_index(io, (entries, index, indexes), name)?;
        let mut found = None;
        self.each_entry(io, (at, length, bytes), &mut |entry| {
            if name.first() < entry.name.first() {
                return false;
            }
            let is_it = entry.name == name;
            if is_it {
                found = Some(entry);
            }
            !is_it
        })?;
        Ok(found)
    }

    /// Calls `take` with each entry from a place on, until it returns false.
    pub(super) fn each_entry(
        &mut self,
        io: &mut Io<'_>,
        (mut at, mut length, bytes): (Place, u32, u32),
        take: &mut dyn FnMut(Entry) -> bool,
    ) -> Result<()> {
        while length < bytes {
            let header = self.read_metadata(io, &mut at, HEADER_BYTES)?;
            length = length.saturating_add(HEADER_BYTES);
            let count = u32_at(&header, 0).saturating_add(1);
            if count > ENTRIES_MAX {
                return io.broken();
            }
            for _ in 0..count {
                let fields = self.read_metadata(io, &mut at, ENTRY_BYTES)?;
                let size = u32::from(u16_at(&fields, 6)) + 1;
                if size > NAME_BYTES_MAX {
                    return io.broken();
                }
                let name = self.read_metadata(io, &mut at, size)?;
                length = length.saturating_add(ENTRY_BYTES + size);
                if !take(entry(&header, &fields, name)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// get_dir_index_using_name: where the entries begin among which the name is, and how far that
    /// is into the directory.
    fn find_in_index(
        &mut self,
        io: &mut Io<'_>,
        (mut entries, mut index, indexes): (Place, Place, u16),
        name: &[u8],
    ) -> Result<(Place, u32)> {
        let mut length = 0_u32;
        for _ in 0..indexes {
            let fields = self.read_metadata(io, &mut index, INDEX_BYTES)?;
            let size = u32_at(&fields, 8).saturating_add(1);
            if size > NAME_BYTES_MAX {
                break;
            }
            if self.read_metadata(io, &mut index, size)?.as_slice() > name {
                break;
            }
            length = u32_at(&fields, 0);
            let table = self.stored.superblock.directory_table;
            entries.block = table.saturating_add(u32_at(&fields, 4).into());
        }
        entries.offset = length.wrapping_add(entries.offset) % METADATA_BYTES;
        Ok((entries, length.saturating_add(INVENTED)))
    }

    /// get_dir_index_using_offset of the end: the last entry of the index.
    pub(super) fn last_in_index(
        &mut self,
        io: &mut Io<'_>,
        (mut entries, mut index, indexes): (Place, Place, u16),
    ) -> Result<(Place, u32)> {
        let mut length = 0_u32;
        for _ in 0..indexes {
            let fields = self.read_metadata(io, &mut index, INDEX_BYTES)?;
            let size = u32_at(&fields, 8).saturating_add(1);
            self.read_metadata(io, &mut index, size.min(NAME_BYTES_MAX))?;
            length = u32_at(&fields, 0);
            let table = self.stored.superblock.directory_table;
            entries.block = table.saturating_add(u32_at(&fields, 4).into());
        }
        entries.offset = length.wrapping_add(entries.offset) % METADATA_BYTES;
        Ok((entries, length.saturating_add(INVENTED)))
    }

    /// squashfs_symlink_read_folio, whose page stays cached.
    pub(super) fn read_link(
        &mut self,
        io: &mut Io<'_>,
        inode: u32,
        target: Place,
        bytes: u32,
    ) -> Result<String> {
        if let Some(known) = self.targets.get(&inode) {
            return Ok(known.clone());
        }
        let read = self.read_metadata(io, &mut target.clone(), bytes)?;
        let text = String::from_utf8_lossy(&read).into_owned();
        self.targets.insert(inode, text.clone());
        Ok(text)
    }

    /// The entries of a directory, each with its inode, for a reader that does not count requests.
    pub fn list(&mut self, below: &mut dyn Below, directory: u32) -> Result<Vec<Entry>> {
        let mut io = Io { below, now: Ns::ZERO, prices: self.prices };
        let Some(&Inode { what: What::Directory { entries, bytes, .. }, .. }) =
            self.inodes.get(&directory)
        else {
            return io.broken();
        };
        let mut found = Vec::new();
        self.each_entry(&mut io, (entries, INVENTED, bytes), &mut |entry| {
            found.push(entry);
            true
        })?;
        for entry in &mut found {
            if !self.inodes.contains_key(&entry.inode) {
                entry.inode = self.read_inode(&mut io, entry.reference)?;
            }
        }
        Ok(found)
    }

    /// The target of a link, likewise.
    pub fn target(&mut self, below: &mut dyn Below, inode: u32) -> Result<Vec<u8>> {
        let mut io = Io { below, now: Ns::ZERO, prices: self.prices };
        match self.inodes.get(&inode) {
            Some(&Inode { what: What::Link { bytes, mut target }, .. }) => {
                self.read_metadata(&mut io, &mut target, bytes)
            }
            _ => io.broken(),
        }
    }
}
