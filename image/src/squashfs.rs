//! squashfs: its metadata, decompressed, and the names that it has.
//!
//! The simulator's squashfs (sim/src/squashfs/) knows the structures; here are the blocks that it
//! walks, on a device that takes no time.
//!
//! Left out: what is in files (unpack.rs could say), attributes.

use crate::bytes::{part, Fields};
use crate::problems::Problems;
use crate::tree::{Inode, Name, Piece, Sums, Tree};
use crate::unpack::{unpack_most, Packing};
use sim::errno::FsError;
use sim::squashfs::{Below, Metadata, Size, Squashfs, Stored, Superblock, What};
use sim::squashfs::{METADATA_BYTES, NO_TABLE, SUPERBLOCK_BYTES};
use sim::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// A metadata block is stored as it is.
const AS_IT_IS: u16 = 1 << 15;
/// Decompressed metadata for each byte of the image, at most: memory grows with the file.
const BYTES_FOR_ONE: usize = 64;
/// And this much for a small one.
const BYTES_AT_LEAST: usize = 4 << 20;
const POSITION_BYTES: usize = 8;
const FRAGMENT_BYTES: u64 = 16;
const ID_BYTES: u64 = 4;

fn packing(compressor: u16) -> Packing {
    match compressor {
        1 => Packing::Zlib,
        3 => Packing::Lzo,
        4 => Packing::Xz,
        5 => Packing::Lz4,
        6 => Packing::Zstd,
        other => Packing::Other(other),
    }
}

/// A block device that takes no time.
struct Free;

impl Below for Free {
    fn read(&mut self, now: Ns, _: u64, _: u32) -> Result<Ns, FsError> {
        Ok(now)
    }
}

/// Reads the metadata of an image. An error says what is broken.
pub fn stored(bytes: &[u8]) -> Result<Stored, String> {
    let superblock = Superblock::read(part(bytes, 0, SUPERBLOCK_BYTES as usize))?;
    if superblock.bytes > bytes.len() as u64 {
        let (all, there) = (superblock.bytes, bytes.len());
        return Err(format!("{all} bytes, of which {there} are there"));
    }
    let mut reader = Reader {
        bytes: part(bytes, 0, superblock.bytes as usize),
        packing: packing(superblock.compressor),
        left: bytes.len().saturating_mul(BYTES_FOR_ONE).max(BYTES_AT_LEAST),
        metadata: BTreeMap::new(),
    };
    let ids = reader.index(superblock.id_table, superblock.ids.into(), ID_BYTES)?;
    let fragments = match superblock.fragments {
        0 => Vec::new(),
        count => reader.index(superblock.fragment_table, count.into(), FRAGMENT_BYTES)?,
    };
    let lookup = match superblock.lookup_table {
        NO_TABLE => None,
        at => reader.positions(at, 1)?.first().copied(),
    };
    let directories_end = fragments.first().copied().or(lookup).or(ids.first().copied());
    reader.run(superblock.inode_table, superblock.directory_table)?;
    reader.run(superblock.directory_table, directories_end.unwrap_or(superblock.bytes))?;
    if superblock.has_options {
        reader.block(SUPERBLOCK_BYTES.into())?;
    }
    for at in ids.iter().chain(&fragments) {
        reader.block(*at)?;
    }
    let last_fragment = reader.last_fragment(&superblock, &fragments);
    Ok(Stored { superblock, metadata: reader.metadata, ids, fragments, last_fragment })
}

struct Reader<'a> {
    bytes: &'a [u8],
    packing: Packing,
    left: usize,
    metadata: BTreeMap<u64, Metadata>,
}

impl Reader<'_> {
    /// The positions of so many metadata blocks.
    fn positions(&self, at: u64, count: u64) -> Result<Vec<u64>, String> {
        let bytes = count.saturating_mul(POSITION_BYTES as u64);
        if at.saturating_add(bytes) > self.bytes.len() as u64 {
            return Err(format!("byte {at}: a table of positions ends behind the image"));
        }
        let found = part(self.bytes, at as usize, bytes as usize);
        Ok(found.chunks_exact(POSITION_BYTES).map(|each| Fields::little(each).u64(0)).collect())
    }

    /// The positions of the metadata blocks with so many entries.
    fn index(&self, at: u64, entries: u64, entry_bytes: u64) -> Result<Vec<u64>, String> {
        self.positions(at, Superblock::index_blocks(entries, entry_bytes))
    }

    /// Where the last block of fragments is, and how long it is; none if it is broken.
    fn last_fragment(&self, superblock: &Superblock, fragments: &[u64]) -> Option<(u64, u32)> {
        let last = u64::from(superblock.fragments.checked_sub(1)?);
        let entry = (last * FRAGMENT_BYTES % u64::from(METADATA_BYTES)) as usize;
        let table = self.metadata.get(fragments.last()?)?;
        let fields = Fields::little(part(&table.bytes, entry, FRAGMENT_BYTES as usize));
        let (at, size) = (fields.u64(0), Size::of(fields.u32(8))?);
        let stored = part(self.bytes, usize::try_from(at).ok()?, size.stored() as usize);
        let bytes = match size.is_compressed() {
            true => {
                unpack_most(self.packing, stored, superblock.block_bytes() as usize).ok()?.len()
            }
            false => stored.len(),
        };
        Some((at, bytes as u32))
    }

    /// Metadata blocks one behind the other.
    fn run(&mut self, mut at: u64, end: u64) -> Result<(), String> {
        while at < end {
            at = self.block(at)?;
        }
        Ok(())
    }

    /// A metadata block; where the next begins.
    fn block(&mut self, at: u64) -> Result<u64, String> {
        if let Some(known) = self.metadata.get(&at) {
            return Ok(known.next);
        }
        let broken = |why: &str| Err(format!("byte {at}: metadata: {why}"));
        let Ok(begin) = usize::try_from(at) else { return broken("behind the image") };
        let head = part(self.bytes, begin, 2);
        let raw = Fields::little(head).u16(0);
        let length = match raw & !AS_IT_IS {
            0 => usize::from(AS_IT_IS),
            length => usize::from(length),
        };
        let stored = part(self.bytes, begin.saturating_add(2), length);
        if head.len() < 2 || stored.len() < length || length > METADATA_BYTES as usize {
            return broken("it ends behind the image, or is too long");
        }
        let bytes = match raw & AS_IT_IS {
            0 => match unpack_most(self.packing, stored, METADATA_BYTES as usize) {
                Ok(bytes) => bytes,
                Err(why) => return broken(&why),
            },
            _ => stored.to_vec(),
        };
        if bytes.is_empty() || bytes.len() > METADATA_BYTES as usize {
            return broken("not 1 to 8192 bytes");
        }
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            return broken("more of it than an image of this size has");
        };
        self.left = left;
        let next = at + 2 + length as u64;
        self.metadata.insert(at, Metadata { next, bytes });
        Ok(next)
    }
}

/// Sums over its files; what is broken is a problem.
pub fn sums(bytes: &[u8], problems: &mut Problems) -> Option<Sums> {
    match stored(bytes).and_then(|stored| tree(stored, problems)) {
        Ok((tree, root)) => Some(tree.sums(root)),
        Err(why) => {
            problems.add(format!("squashfs: {why}"));
            None
        }
    }
}

/// Its names, its inodes, and their blocks.
fn tree(stored: Stored, problems: &mut Problems) -> Result<(Tree, u32), String> {
    let most = stored.metadata.values().map(|block| block.bytes.len()).sum::<usize>();
    let (packing, block_bytes) =
        (packing(stored.superblock.compressor), stored.superblock.block_bytes());
    let broken = |_: FsError| "the root's inode is broken".to_owned();
    let (mut mounted, _) = Squashfs::mount(stored, None, &mut Free, Ns::ZERO).map_err(broken)?;
    let root = mounted.root();
    let mut names: BTreeMap<u32, Vec<Name>> = BTreeMap::new();
    let mut seen = BTreeSet::from([root]);
    let mut folders = vec![root];
    // An entry takes at least 9 bytes; folders that share entries could be read again and again.
    let mut left = most / 9 + 1;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = mounted.list(&mut Free, folder) else {
            problems.add(format!("squashfs: the folder with inode {folder} is broken"));
            continue;
        };
        let Some(rest) = left.checked_sub(entries.len()) else {
            problems.add("squashfs: folders share their entries");
            break;
        };
        left = rest;
        for entry in &entries {
            let what = mounted.inode(entry.inode).map(|inode| inode.what);
            if matches!(what, Some(What::Directory { .. })) && seen.insert(entry.inode) {
                folders.push(entry.inode);
            }
        }
        let named = |entry: sim::squashfs::Entry| Name { name: entry.name, inode: entry.inode };
        names.insert(folder, entries.into_iter().map(named).collect());
    }
    let mut blocks = most / 4 + 1;
    let mut inodes = BTreeMap::new();
    for inode in mounted.inodes().copied().collect::<Vec<_>>() {
        let mut described = described(&inode);
        if let What::File { .. } = inode.what {
            match mounted.blocks(&mut Free, inode.number, blocks) {
                Ok(found) => {
                    blocks -= found.len();
                    described.pieces = pieces(&found, packing, described.bytes, block_bytes);
                }
                Err(_) => problems.add(format!("squashfs: inode {}: no blocks", inode.number)),
            }
        }
        inodes.insert(inode.number, described);
    }
    Ok((Tree::new(inodes, root, &names, problems), root))
}

/// The blocks of a file; its end may be in a block of several files, which is none of its own.
fn pieces(blocks: &[(Size, u64)], packing: Packing, bytes: u64, block_bytes: u32) -> Vec<Piece> {
    let piece = |(number, &(size, start)): (u64, &(Size, u64))| {
        let at = number * u64::from(block_bytes);
        Piece {
            at,
            bytes: bytes.saturating_sub(at).min(block_bytes.into()) as u32,
            start: usize::try_from(start).unwrap_or(usize::MAX),
            stored: size.stored(),
            packing: match size {
                _ if size.is_hole() => Packing::Zero,
                _ if size.is_compressed() => packing,
                _ => Packing::None,
            },
        }
    };
    (0..).zip(blocks).map(piece).collect()
}

fn described(inode: &sim::squashfs::Inode) -> Inode {
    let bytes = match inode.what {
        What::File { bytes, .. } => bytes,
        What::Link { bytes, .. } => bytes.into(),
        _ => 0,
    };
    let (mode, links, mtime_s) = (inode.mode, inode.links, inode.mtime_s.into());
    Inode { mode, links, bytes, mtime_s, ..Inode::default() }
}
