//! squashfs: a read-only image on a block device, mounted and read.
//!
//! Mirrors fs/squashfs of Linux 6.1: super.c (squashfs_fill_super), cache.c (squashfs_cache_get,
//! squashfs_read_metadata, squashfs_read_table), block.c (squashfs_read_data, squashfs_bio_read),
//! inode.c, id.c and fragment.c. lookup.rs has its directories, file.rs its files, block_list.rs
//! where their blocks are. What is compressed was decompressed by the reader of the image
//! (format.rs); the caches here hold positions. README.md has the list of what is
//! modelled.
//!
//! prices.rs has what the processor's time costs.
//!
//! Left out: extended attributes, NFS, reclaim.
//!
//! Invariant: no image makes it panic. What the kernel would refuse is `FsError::Io`.

mod block_list;
mod file;
mod format;
mod layer;
mod lookup;
#[cfg(test)]
mod made_images;
mod prices;

use crate::errno::{FsError, Result};
use crate::fs::PAGE_BYTES;
use crate::profile::SquashfsCosts;
use crate::units::Ns;
use crate::vfs::FileCache;
use block_list::Indexes;
pub use file::CALL_BYTES;
use format::{u16_at, u32_at, u64_at, Body, HEAD_BYTES};
pub use format::{Fragment, Inode, Metadata, Place, Size, Stored, Superblock, What};
pub use format::{METADATA_BYTES, NO_TABLE, SUPERBLOCK_BYTES};
pub use layer::LayersRoot;
pub use lookup::Entry;
use prices::Prices;
use std::collections::BTreeMap;

/// SQUASHFS_CACHED_BLKS.
const CACHED_BLOCKS: usize = 8;
/// CONFIG_SQUASHFS_FRAGMENT_CACHE_SIZE, its default.
const CACHED_FRAGMENTS: usize = 3;
/// SQUASHFS_DEVBLK_SIZE.
const SECTOR_BYTES: u64 = 1024;
/// sizeof(struct squashfs_xattr_id_table).
const XATTR_TABLE_BYTES: u32 = 16;
/// An entry of the table of fragments, of the export table, of the table of owners.
const FRAGMENT_BYTES: u64 = 16;
const LOOKUP_BYTES: u64 = 8;
const ID_BYTES: u64 = 4;

/// What squashfs is mounted on.
///
/// # Examples
///
/// A device whose every read takes a microsecond:
///
/// ```
/// use sim::{errno::FsError, squashfs::Below, units::Ns};
/// struct Quick;
///
/// impl Below for Quick {
///     fn read(&mut self, now: Ns, _at: u64, _bytes: u32) -> Result<Ns, FsError> {
///         Ok(now + Ns(1_000))
///     }
/// }
/// ```
pub trait Below {
    /// The block device reads whole sectors.
    fn read(&mut self, now: Ns, at: u64, bytes: u32) -> Result<Ns>;
    /// A name of the root is looked up: a layer above looks it up first.
    fn look_above(&mut self, now: Ns, _name: &str) -> Result<Ns> {
        Ok(now)
    }
}

/// What an operation works on: the device, and the time.
struct Io<'a> {
    below: &'a mut dyn Below,
    now: Ns,
    prices: Prices,
}

impl Io<'_> {
    /// squashfs_bio_read.
    fn read(&mut self, at: u64, bytes: u32) -> Result<()> {
        let first = at / SECTOR_BYTES * SECTOR_BYTES;
        let end = (at + u64::from(bytes)).next_multiple_of(SECTOR_BYTES);
        let bytes = (end - first) as u32;
        self.now = self.below.read(self.now + self.prices.request(bytes), first, bytes)?;
        Ok(())
    }

    /// -EIO: the image is broken.
    fn broken<T>(&self) -> Result<T> {
        Err(FsError::Io(self.now))
    }
}

/// struct squashfs_cache: which blocks are in its entries.
#[derive(Clone, Debug)]
struct Cache {
    entries: Vec<Option<u64>>,
    next: usize,
}

impl Cache {
    fn new(entries: usize) -> Cache {
        Cache { entries: vec![None; entries], next: 0 }
    }

    /// squashfs_cache_get: whether the block was there; it is from now on.
    fn get(&mut self, block: u64) -> bool {
        if self.entries.contains(&Some(block)) {
            return true;
        }
        self.entries[self.next] = Some(block);
        self.next = (self.next + 1) % self.entries.len();
        false
    }
}

/// A mounted squashfs.
#[derive(Clone, Debug)]
pub struct Squashfs {
    stored: Stored,
    prices: Prices,
    metadata: Cache,
    fragments: Cache,
    indexes: Indexes,
    root: u32,
    inodes: BTreeMap<u32, Inode>,
    /// The page cache of each file.
    pages: BTreeMap<u32, FileCache>,
    /// Targets of links whose page is cached.
    targets: BTreeMap<u32, String>,
    /// The dentries: a directory and a name, and the inode; none for a negative one.
    dentries: BTreeMap<(u32, String), Option<u32>>,
}

impl Squashfs {
    /// squashfs_fill_super. Without prices the processor takes no time.
    pub fn mount(
        stored: Stored,
        costs: Option<&SquashfsCosts>,
        below: &mut dyn Below,
        now: Ns,
    ) -> Result<(Squashfs, Ns)> {
        let superblock = stored.superblock;
        let prices = Prices::of(costs, superblock.compressor);
        let mut mounted = Squashfs {
            stored,
            prices,
            metadata: Cache::new(CACHED_BLOCKS),
            fragments: Cache::new(CACHED_FRAGMENTS),
            indexes: Indexes::default(),
            root: 0,
            inodes: BTreeMap::new(),
            pages: BTreeMap::new(),
            targets: BTreeMap::new(),
            dentries: BTreeMap::new(),
        };
        let mut io = Io { below, now: now + prices.mount(), prices };
        io.read(0, SUPERBLOCK_BYTES)?;
        if superblock.has_options {
            mounted.read_block_of_metadata(&mut io, SUPERBLOCK_BYTES.into())?;
        }
        if superblock.xattr_table != NO_TABLE {
            io.read(superblock.xattr_table, XATTR_TABLE_BYTES)?;
        }
        let mut table = |at: u64, entries: u64, entry_bytes: u64| {
            let bytes = Superblock::index_blocks(entries, entry_bytes) * 8;
            match at.checked_add(bytes).is_some_and(|end| end <= superblock.bytes) && bytes > 0 {
                true => io.read(at, bytes as u32),
                false => io.broken(),
            }
        };
        table(superblock.id_table, superblock.ids.into(), ID_BYTES)?;
        if superblock.lookup_table != NO_TABLE {
            table(superblock.lookup_table, superblock.inodes.into(), LOOKUP_BYTES)?;
        }
        if superblock.fragments > 0 {
            table(superblock.fragment_table, superblock.fragments.into(), FRAGMENT_BYTES)?;
        }
        mounted.root = mounted.read_inode(&mut io, superblock.root)?;
        Ok((mounted, io.now))
    }

    /// The root's inode.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The inodes that were read.
    pub fn inodes(&self) -> impl Iterator<Item = &Inode> {
        self.inodes.values()
    }

    /// An inode that was read.
    pub fn inode(&self, number: u32) -> Option<&Inode> {
        self.inodes.get(&number)
    }

    /// Bytes of a block of data.
    fn block_bytes(&self) -> u64 {
        self.stored.superblock.block_bytes().into()
    }

    /// squashfs_read_metadata: bytes from a place on, which moves behind them.
    fn read_metadata(&mut self, io: &mut Io<'_>, at: &mut Place, bytes: u32) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        let mut left = bytes as usize;
        while left > 0 {
            let Some(block) = self.stored.metadata.get(&at.block) else { return io.broken() };
            if !self.metadata.get(at.block) {
                self.read_block_of_metadata(io, at.block)?;
            }
            let Some(rest) = block.bytes.get(at.offset as usize..).filter(|rest| !rest.is_empty())
            else {
                return io.broken();
            };
            let part = &rest[..left.min(rest.len())];
            found.extend_from_slice(part);
            left -= part.len();
            at.offset += part.len() as u32;
            if at.offset as usize == block.bytes.len() {
                *at = Place { block: block.next, offset: 0 };
            }
        }
        Ok(found)
    }

    /// squashfs_read_data of a metadata block: its length, then the block.
    fn read_block_of_metadata(&self, io: &mut Io<'_>, at: u64) -> Result<()> {
        let Some(block) = self.stored.metadata.get(&at) else { return io.broken() };
        io.read(at, 2)?;
        let stored = block.next.saturating_sub(at + 2).min(u64::from(METADATA_BYTES)) as u32;
        io.read(at + 2, stored)?;
        io.now += io.prices.unpack(stored, block.bytes.len() as u32);
        Ok(())
    }

    /// An entry of a table whose metadata blocks an index has.
    fn read_entry(
        &mut self,
        io: &mut Io<'_>,
        block: Option<u64>,
        (number, entry_bytes): (u64, u64),
    ) -> Result<Vec<u8>> {
        let Some(block) = block else { return io.broken() };
        let offset = (number * entry_bytes % u64::from(METADATA_BYTES)) as u32;
        self.read_metadata(io, &mut Place { block, offset }, entry_bytes as u32)
    }

    /// squashfs_get_id.
    fn read_id(&mut self, io: &mut Io<'_>, number: u16) -> Result<()> {
        let index = u64::from(number) * ID_BYTES / u64::from(METADATA_BYTES);
        let block = self.stored.ids.get(index as usize).copied();
        self.read_entry(io, block, (number.into(), ID_BYTES)).map(drop)
    }

    /// squashfs_frag_lookup.
    fn read_fragment_entry(&mut self, io: &mut Io<'_>, number: u32) -> Result<(u64, Size)> {
        let index = u64::from(number) * FRAGMENT_BYTES / u64::from(METADATA_BYTES);
        let block = self.stored.fragments.get(index as usize).copied();
        let entry = self.read_entry(io, block, (number.into(), FRAGMENT_BYTES))?;
        match Size::of(u32_at(&entry, 8)) {
            Some(size) => Ok((u64_at(&entry, 0), size)),
            None => io.broken(),
        }
    }

    /// squashfs_get_fragment.
    fn get_fragment(&mut self, io: &mut Io<'_>, fragment: Fragment) -> Result<()> {
        match self.fragments.get(fragment.block) {
            true => Ok(()),
            false => {
                let bytes = self.stored.fragment_bytes(fragment.block);
                self.read_data(io, fragment.block, fragment.size, (self.block_bytes(), bytes))
            }
        }
    }

    /// squashfs_read_data of a block that may take so many bytes at most, and holds so many.
    fn read_data(
        &self,
        io: &mut Io<'_>,
        at: u64,
        size: Size,
        (most, bytes): (u64, u64),
    ) -> Result<()> {
        let stored = u64::from(size.stored());
        let end = at.saturating_add(stored);
        if stored == 0 || stored > most || end > self.stored.superblock.bytes {
            return io.broken();
        }
        io.read(at, stored as u32)?;
        if size.is_compressed() {
            io.now += io.prices.unpack(stored as u32, bytes as u32);
        }
        Ok(())
    }

    /// squashfs_read_inode: its number. `reference` says where it is.
    fn read_inode(&mut self, io: &mut Io<'_>, reference: u64) -> Result<u32> {
        let superblock = self.stored.superblock;
        let begin = Place {
            block: superblock.inode_table.saturating_add(reference >> 16 & u64::from(u32::MAX)),
            offset: (reference & 0xffff) as u32,
        };
        io.now += io.prices.inode();
        let head = self.read_metadata(io, &mut begin.clone(), HEAD_BYTES)?;
        for id in [u16_at(&head, 4), u16_at(&head, 6)] {
            self.read_id(io, id)?;
        }
        let Some(body) = Body::of(u16_at(&head, 0)) else { return io.broken() };
        let mut at = begin;
        let bytes = self.read_metadata(io, &mut at, body.bytes)?;
        let what = match body.kind {
            1 | 8 => self.directory(body.kind, &bytes, at),
            2 | 9 => self.file(io, body, &bytes, at)?,
            3 | 10 => self.link(io, body.kind, &bytes, at)?,
            _ => What::Other,
        };
        let links = match body.kind {
            1 => u32_at(&bytes, 20),
            2 => 1,
            9 => u32_at(&bytes, 40),
            _ => u32_at(&bytes, 16),
        };
        let number = u32_at(&head, 12);
        let mode = body.mode() | u32::from(u16_at(&head, 2));
        let inode = Inode { number, mode, mtime_s: u32_at(&head, 8), links, what };
        self.inodes.insert(number, inode);
        Ok(number)
    }

    /// A directory; the index of a long one follows its body.
    fn directory(&self, kind: u16, bytes: &[u8], index: Place) -> What {
        let (start, size, offset, indexes) = match kind {
            1 => (u32_at(bytes, 16), u16_at(bytes, 24).into(), u16_at(bytes, 26), 0),
            _ => (u32_at(bytes, 24), u32_at(bytes, 20), u16_at(bytes, 34), u16_at(bytes, 32)),
        };
        let block = self.stored.superblock.directory_table.saturating_add(start.into());
        let entries = Place { block, offset: offset.into() };
        What::Directory { entries, bytes: size, index, indexes }
    }

    /// A symbolic link. One with attributes has their number behind its target.
    fn link(&mut self, io: &mut Io<'_>, kind: u16, bytes: &[u8], target: Place) -> Result<What> {
        let size = u32_at(bytes, 20);
        if size > PAGE_BYTES {
            return io.broken();
        }
        if kind == 10 {
            self.read_metadata(io, &mut target.clone(), size + 4)?;
        }
        Ok(What::Link { bytes: size, target })
    }

    /// A file, and the entry of its fragment.
    fn file(&mut self, io: &mut Io<'_>, body: Body, bytes: &[u8], list: Place) -> Result<What> {
        let (size, start) = match body.kind {
            2 => (u32_at(bytes, 28).into(), u32_at(bytes, 16).into()),
            _ => (u64_at(bytes, 24), u64_at(bytes, 16)),
        };
        let fragment = match format::end_of_file(body.kind, bytes) {
            None => None,
            Some(_) if size % self.block_bytes() == 0 => return io.broken(),
            Some((number, offset)) => {
                let (block, size) = self.read_fragment_entry(io, number)?;
                Some(Fragment { block, size, offset })
            }
        };
        Ok(What::File { bytes: size, start, list, fragment })
    }
}
