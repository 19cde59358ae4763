//! JFFS2: its nodes, which of them count, the files they make, and the space they take.
//!
//! Mirrors what a mount of fs/jffs2 and its check of nodes find (scan.c, build.c, readinode.c).
//! Left out: the rubin compressors, and values of extended attributes.

mod books;
mod dumped;
mod medium;

use crate::bytes::Fields;
use crate::flat::Flat;
use crate::problems::Problems;
use crate::tree::{device, Inode, Kind as FileKind, Name, Piece, Sums, Tree};
use crate::unpack::Packing;
use books::Books;
pub use dumped::{dumped, Chip};
pub use medium::score;
use medium::{scan, Kind, Known, Met, Node};
use serde::Serialize;
use sim::fs::jffs2::layout::{free_bytes, pad, RAW_INODE_BYTES};
use std::collections::BTreeMap;

/// The inode of the root.
const ROOT: u32 = 1;
/// Where a node's data begins.
const DATA: usize = RAW_INODE_BYTES as usize;
/// What the root is without an inode of its own.
const ROOT_MODE: u32 = 0o040_755;
/// Pages of NAND.
const PAGE_BYTES_MIN: usize = 512;
const PAGE_BYTES_MAX: usize = 16_384;
const PAGES_A_BLOCK: usize = 64;
/// More bytes no node of a kernel stands for.
const NODE_BYTES_MAX: u32 = 1 << 20;

/// A JFFS2.
#[derive(Clone, Debug, Serialize)]
pub struct Jffs2 {
    /// `little` or `big`.
    pub endian: &'static str,
    /// Bytes of an erase block.
    pub block_bytes: u64,
    /// How that is known.
    pub block_bytes_by: &'static str,
    /// Erase blocks.
    pub blocks: u32,
    /// Blocks without a node.
    pub free_blocks: u32,
    /// Blocks marked bad in the OOB.
    pub bad_blocks: u32,
    /// Clean markers within blocks.
    pub clean_markers: u32,
    /// Blocks with a summary.
    pub summaries: u32,
    /// Nodes that count.
    pub nodes: u64,
    /// Nodes that a newer one replaced.
    pub obsolete_nodes: u64,
    /// Nodes with a wrong check sum.
    pub broken_nodes: u64,
    /// Bytes of nodes that count.
    pub used_bytes: u64,
    /// Bytes of others, which the collector can free.
    pub dirty_bytes: u64,
    /// Bytes that are lost until their block is collected.
    pub wasted_bytes: u64,
    /// Bytes free at the ends of blocks.
    pub free_bytes: u64,
    /// What `df` answers in a partition of this many blocks.
    pub available_bytes: u64,
    /// Sums over its files.
    pub files: Sums,
}

/// A node of a file, as far as it is needed to see which count.
#[derive(Clone, Copy, Debug)]
struct Part {
    version: u32,
    start: usize,
    at: u64,
    bytes: u32,
    packing: Packing,
}

/// A name, until all nodes are read.
#[derive(Clone, Debug)]
struct Entry {
    version: u32,
    inode: u32,
    start: usize,
    bytes: u32,
}

/// Reads a JFFS2; none if the bytes are none.
pub fn read(
    flat: &Flat,
    block_bytes: Option<usize>,
    problems: &mut Problems,
) -> Option<(Jffs2, Tree)> {
    let bytes = &flat.bytes;
    let big = medium::is_big(bytes)?;
    let known = block_bytes.map(|bytes| (bytes, Known::Given));
    let (size, by) = known.unwrap_or_else(|| medium::block_bytes(bytes, big));
    let mut reader = Reader {
        bytes,
        big,
        books: Books::new(bytes.len().div_ceil(size) as u32, size as u32),
        size,
        parts: BTreeMap::new(),
        names: BTreeMap::new(),
        xattrs: BTreeMap::new(),
        counts: Counts::default(),
        page_ends: 0,
    };
    for block in 0..reader.books.blocks() {
        if flat.is_bad(block as usize * size, size) {
            reader.counts.bad_blocks += 1;
            reader.books.is_bad(block);
        } else {
            reader.block(block, problems);
        }
    }
    let least = reader.least_free(flat.pages.map(|pages| pages.page_bytes));
    reader.books.choose_next(least);
    let (inodes, names) = reader.files(problems);
    let tree = Tree::new(inodes, ROOT, &names, problems);
    let (counts, books) = (reader.counts, &reader.books);
    let sums = books.sums();
    let found = Jffs2 {
        endian: if big { "big" } else { "little" },
        block_bytes: size as u64,
        block_bytes_by: by.name(),
        blocks: books.blocks(),
        free_blocks: books.free_blocks(),
        bad_blocks: counts.bad_blocks,
        clean_markers: counts.clean_markers,
        summaries: counts.summaries,
        nodes: counts.nodes.saturating_sub(counts.obsolete_nodes),
        obsolete_nodes: counts.obsolete_nodes,
        broken_nodes: counts.broken_nodes,
        used_bytes: sums.used,
        dirty_bytes: sums.dirty,
        wasted_bytes: sums.wasted,
        free_bytes: sums.free,
        available_bytes: free_bytes(
            sums.dirty + sums.free,
            books.blocks() - counts.bad_blocks,
            size as u32,
        ),
        files: tree.sums(ROOT),
    };
    Some((found, tree))
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bad_blocks: u32,
    clean_markers: u32,
    summaries: u32,
    nodes: u64,
    obsolete_nodes: u64,
    broken_nodes: u64,
}

struct Reader<'a> {
    bytes: &'a [u8],
    big: bool,
    size: usize,
    books: Books,
    parts: BTreeMap<u32, Vec<Part>>,
    names: BTreeMap<(u32, Vec<u8>), Vec<Entry>>,
    xattrs: BTreeMap<u32, u32>,
    counts: Counts,
    /// All offsets at which a page was filled up, or writing stopped, one over the other.
    page_ends: usize,
}

type Found = (BTreeMap<u32, Inode>, BTreeMap<u32, Vec<Name>>);

impl Reader<'_> {
    /// jffs2_scan_eraseblock.
    fn block(&mut self, block: u32, problems: &mut Problems) {
        let start = block as usize * self.size;
        let end = (start + self.size).min(self.bytes.len());
        for met in scan(self.bytes, start, end, self.big) {
            match met {
                // Only what is erased up to the end can be written to.
                Met::Blank(from, to) if to == end => self.page_ends |= from,
                Met::Blank(from, to) => self.books.dirt(block, to - from),
                Met::Dirt(from, to) => {
                    // The rest of a page that was too small for a node of padding is 0.
                    if self.bytes[from..to].iter().all(|byte| *byte == 0) {
                        self.page_ends |= to;
                    } else {
                        problems.add(format!(
                            "block {block}, offset {}: {} bytes are no node",
                            from - start,
                            to - from
                        ));
                    }
                    self.books.dirt(block, to - from);
                }
                Met::Node(node) => self.node(block, start, node, problems),
            }
        }
        self.books.classify(block);
    }

    fn node(&mut self, block: u32, start: usize, node: Node<'_>, problems: &mut Problems) {
        let length = pad(node.bytes) as usize;
        let length = length.min(start + self.size - node.start);
        if node.obsolete {
            self.counts.nodes += 1;
            self.counts.obsolete_nodes += 1;
            self.books.dirt(block, length);
            return;
        }
        if let Err(why) = node.check() {
            self.counts.broken_nodes += 1;
            problems.add(format!("block {block}, offset {}: {why}", node.start - start));
            self.books.dirt(block, length);
            return;
        }
        match node.kind {
            Kind::CleanMarker => {
                self.counts.clean_markers += 1;
                if node.start == start {
                    self.books.marker(block, length);
                } else {
                    self.books.dirt(block, length);
                }
                return;
            }
            Kind::Padding => {
                self.page_ends |= node.start + length;
                self.books.dirt(block, length);
                return;
            }
            Kind::Other(_) => {
                self.books.dirt(block, length);
                return;
            }
            Kind::Summary => self.counts.summaries += 1,
            Kind::Xref => {
                let inode = node.fields.u32(12);
                *self.xattrs.entry(inode).or_default() += 1;
            }
            Kind::Xattr => {}
            Kind::Dirent => self.name(node),
            Kind::Inode => self.part(node, block, start, problems),
        }
        self.counts.nodes += 1;
        self.books.node(block, length);
    }

    /// min_free: what a block that is written next has more of. Where the page of the chip is not
    /// known, chips with such blocks have 64 in each, and none ends elsewhere. NOR, which has clean
    /// markers within blocks, has none.
    fn least_free(&self, page_bytes: Option<usize>) -> u64 {
        let ends = self.page_ends & self.page_ends.wrapping_neg();
        let nor = self.counts.clean_markers > 0 && ends < PAGE_BYTES_MIN;
        let usual = ends.min(self.size / PAGES_A_BLOCK);
        let found = if nor { 0 } else { usual.clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX) };
        (page_bytes.unwrap_or(found) as u64).max(2 * u64::from(RAW_INODE_BYTES))
    }

    fn name(&mut self, node: Node<'_>) {
        let fields = node.fields;
        let name = fields.part(40, usize::from(fields.u8(28))).to_vec();
        self.names.entry((fields.u32(12), name)).or_default().push(Entry {
            version: fields.u32(16),
            inode: fields.u32(20),
            start: node.start,
            bytes: node.bytes,
        });
    }

    fn part(&mut self, node: Node<'_>, block: u32, start: usize, problems: &mut Problems) {
        let fields = node.fields;
        let packing = packing(fields.u8(56));
        let bytes = fields.u32(52);
        if packing != Packing::Zero && bytes > NODE_BYTES_MAX {
            problems.add(format!(
                "block {block}, offset {}: inode node: {bytes} bytes in one node",
                node.start - start
            ));
            return;
        }
        self.parts.entry(fields.u32(12)).or_default().push(Part {
            version: fields.u32(16),
            start: node.start,
            at: fields.u32(44).into(),
            bytes,
            packing,
        });
    }

    fn files(&mut self, problems: &mut Problems) -> Found {
        let mut names: BTreeMap<u32, Vec<Name>> = BTreeMap::new();
        let mut links: BTreeMap<u32, u32> = BTreeMap::new();
        for ((folder, name), mut entries) in std::mem::take(&mut self.names) {
            // Of two with one version the later one in the flash counts.
            entries.sort_by_key(|entry| (entry.version, entry.start));
            let Some(last) = entries.pop() else { continue };
            for entry in entries {
                self.obsolete(entry.start, entry.bytes);
            }
            if last.inode != 0 {
                *links.entry(last.inode).or_default() += 1;
                names.entry(folder).or_default().push(Name { name, inode: last.inode });
            }
        }
        let mut inodes = BTreeMap::new();
        for (number, mut parts) in std::mem::take(&mut self.parts) {
            parts.sort_by_key(|part| (part.version, part.start));
            let named = links.get(&number).copied().unwrap_or(u32::from(number == ROOT));
            if named == 0 {
                // jffs2_build_remove_unlinked_inode.
                for part in &parts {
                    self.obsolete(part.start, self.length(part.start));
                }
            }
            match self.inode(number, &parts, named) {
                Ok(inode) => {
                    if named > 0 {
                        self.replaced(&parts, &inode);
                    }
                    inodes.insert(number, inode);
                }
                Err(why) => problems.add(format!("inode {number}: {why}")),
            }
        }
        inodes.entry(ROOT).or_insert_with(|| Inode {
            mode: ROOT_MODE,
            links: 1,
            ..Inode::default()
        });
        (inodes, names)
    }

    fn length(&self, start: usize) -> u32 {
        Fields::ordered(crate::bytes::part(self.bytes, start, medium::HEADER), self.big).u32(4)
    }

    fn obsolete(&mut self, start: usize, bytes: u32) {
        self.counts.obsolete_nodes += 1;
        let block = (start / self.size) as u32;
        let end = (block as usize + 1) * self.size;
        self.books.obsolete(block, (pad(bytes) as usize).min(end - start));
    }

    /// An inode of its nodes, the newest last (jffs2_do_read_inode_internal).
    fn inode(&self, number: u32, parts: &[Part], links: u32) -> Result<Inode, String> {
        let Some(newest) = parts.last() else { return Err("no node".to_owned()) };
        let fields = Fields::ordered(self.node_bytes(newest.start), self.big);
        let mode = fields.u32(20);
        let kind = FileKind::of_mode(mode).ok_or_else(|| format!("mode 0o{mode:o}"))?;
        let mut inode = Inode {
            mode,
            uid: fields.u16(24).into(),
            gid: fields.u16(26).into(),
            bytes: fields.u32(28).into(),
            links,
            mtime_s: fields.u32(36).into(),
            xattrs: self.xattrs.get(&number).copied().unwrap_or(0),
            ..Inode::default()
        };
        let data = fields.part(DATA, fields.u32(48) as usize);
        match kind {
            FileKind::File => inode.pieces = self.pieces(parts, inode.bytes),
            FileKind::Link => inode.target = data.to_vec(),
            FileKind::Block | FileKind::Char => {
                let number = Fields::ordered(data, self.big);
                inode.device = Some(if data.len() < 4 {
                    let old = u32::from(number.u16(0));
                    (old >> 8, old & 0xff)
                } else {
                    device(number.u32(0))
                });
            }
            _ => {}
        }
        if kind != FileKind::File {
            inode.bytes = inode.target.len() as u64;
        }
        Ok(inode)
    }

    fn node_bytes(&self, start: usize) -> &[u8] {
        crate::bytes::part(self.bytes, start, self.length(start) as usize)
    }

    fn pieces(&self, parts: &[Part], size: u64) -> Vec<Piece> {
        let with_data = parts.iter().filter(|part| part.bytes > 0 && part.at < size);
        let piece = |part: &Part| Piece {
            at: part.at,
            bytes: part.bytes,
            start: part.start + DATA,
            stored: Fields::ordered(self.node_bytes(part.start), self.big).u32(48),
            packing: part.packing,
        };
        with_data.map(piece).collect()
    }

    /// Marks the nodes obsolete of which nothing is left (jffs2_add_tn_to_tree, and
    /// jffs2_truncate_fragtree).
    fn replaced(&mut self, parts: &[Part], inode: &Inode) {
        let is_file = FileKind::of_mode(inode.mode) == Some(FileKind::File);
        let mut covered: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, part) in parts.iter().enumerate().rev() {
            let newest = place + 1 == parts.len();
            let end = (part.at + u64::from(part.bytes)).min(inode.bytes);
            let visible = is_file && part.at < end && cover(&mut covered, part.at, end);
            if !newest && !visible {
                self.obsolete(part.start, self.length(part.start));
            }
        }
    }
}

/// What a node's `compr` stands for.
fn packing(number: u8) -> Packing {
    match number {
        0 => Packing::None,
        1 => Packing::Zero,
        2 => Packing::Rtime,
        6 => Packing::Zlib,
        7 => Packing::Lzo,
        other => Packing::Other(other.into()),
    }
}

/// Adds a range to those covered; whether it was not covered as a whole.
fn cover(covered: &mut BTreeMap<u64, u64>, start: u64, end: u64) -> bool {
    let before = covered.range(..=start).next_back().map(|(from, to)| (*from, *to));
    if before.is_some_and(|(_, to)| to >= end) {
        return false;
    }
    let (mut from, mut to) = (start, end);
    if let Some((begin, until)) = before.filter(|(_, until)| *until >= start) {
        from = begin;
        to = to.max(until);
    }
    let within: Vec<u64> = covered.range(from..=to).map(|(begin, _)| *begin).collect();
    for begin in within {
        to = to.max(covered.remove(&begin).unwrap_or(to));
    }
    covered.insert(from, to);
    true
}
