//! Nodes of JFFS2 on the flash, block by block (jffs2_scan_eraseblock).

use crate::bytes::{crc32, is_blank, part, Fields};
use sim::fs::jffs2::layout::{pad, RAW_DIRENT_BYTES, RAW_INODE_BYTES, RAW_SUMMARY_BYTES};

/// Blocks of chips are not smaller.
const BLOCK_BYTES_MIN: usize = 4096;
/// Nor larger.
const BLOCK_BYTES_MAX: usize = 1 << 24;

/// JFFS2_MAGIC_BITMASK.
const MAGIC: u16 = 0x1985;
/// JFFS2_SUM_MAGIC.
const SUMMARY_MAGIC: u32 = 0x0285_1885;
/// JFFS2_NODE_ACCURATE: cleared in a node that was made obsolete in place.
const ACCURATE: u16 = 0x2000;
/// struct jffs2_unknown_node.
pub const HEADER: usize = 12;

/// What a node is (JFFS2_NODETYPE_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name.
    Dirent,
    /// An inode and data of it.
    Inode,
    /// The first node of an erased block.
    CleanMarker,
    /// Padding.
    Padding,
    /// A summary of the block.
    Summary,
    /// An extended attribute.
    Xattr,
    /// Whose attribute it is.
    Xref,
    /// One that this crate does not know.
    Other(u16),
}

const KINDS: [(u16, Kind, u32); 7] = [
    (0xe001, Kind::Dirent, RAW_DIRENT_BYTES),
    (0xe002, Kind::Inode, RAW_INODE_BYTES),
    (0x2003, Kind::CleanMarker, HEADER as u32),
    (0x2004, Kind::Padding, HEADER as u32),
    (0x2006, Kind::Summary, RAW_SUMMARY_BYTES),
    (0xe008, Kind::Xattr, 32),
    (0xe009, Kind::Xref, 28),
];

/// A node whose header is whole.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Where it is.
    pub start: usize,
    /// Its fields, the header included.
    pub fields: Fields<'a>,
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: u32,
    /// Whether it was made obsolete in place.
    pub obsolete: bool,
}

/// A node at an offset; none if its header is not whole or it does not fit.
pub fn node_at(bytes: &[u8], start: usize, big: bool) -> Option<Node<'_>> {
    let rest = bytes.get(start..)?;
    let head = Fields::ordered(rest, big);
    if rest.len() < HEADER || head.u16(0) != MAGIC {
        return None;
    }
    let obsolete = head.u16(2) & ACCURATE == 0;
    let number = head.u16(2) | ACCURATE;
    // The sum was made before the node became obsolete.
    let mut summed = [0; 8];
    summed.copy_from_slice(head.part(0, 8));
    let typed = if big { number.to_be_bytes() } else { number.to_le_bytes() };
    summed[2..4].copy_from_slice(&typed);
    if crc32(0, &summed) != head.u32(8) {
        return None;
    }
    let length = head.u32(4);
    if (length as usize) < HEADER || length as usize > rest.len() {
        return None;
    }
    let known = KINDS.iter().find(|(kind, _, _)| *kind == number);
    let (kind, least) = known.map_or((Kind::Other(number), 0), |(_, kind, least)| (*kind, *least));
    if length < least {
        return None;
    }
    let fields = Fields::ordered(part(rest, 0, length as usize), big);
    Some(Node { start, fields, kind, bytes: length, obsolete })
}

impl Node<'_> {
    /// Whether a part of it has the sum that it says at an offset.
    fn sum(&self, name: &str, seen: &[u8], at: usize) -> Result<(), String> {
        let (found, said) = (crc32(0, seen), self.fields.u32(at));
        if found == said {
            Ok(())
        } else {
            Err(format!("{name}: CRC 0x{found:08x}, not 0x{said:08x}"))
        }
    }

    /// What is wrong with the head of an inode node, which a scan checks without its data.
    pub fn check_head(&self) -> Result<(), String> {
        let stored = self.fields.u32(48) as usize;
        if self.fields.part(RAW_INODE_BYTES as usize, stored).len() != stored {
            return Err(format!("inode node: {stored} bytes of data"));
        }
        self.sum("inode node", self.fields.part(0, 60), 64)
    }

    /// What is wrong with what follows the header.
    pub fn check(&self) -> Result<(), String> {
        let fields = self.fields;
        let of = |name: &str, seen: &[u8], at: usize| self.sum(name, seen, at);
        let rest = fields.len();
        match self.kind {
            Kind::Dirent => {
                of("name node", fields.part(0, 32), 32)?;
                let name = fields.part(40, usize::from(fields.u8(28)));
                if name.len() != usize::from(fields.u8(28)) {
                    return Err(format!("name node: a name of {} bytes", fields.u8(28)));
                }
                of("name node: name", name, 36)
            }
            Kind::Inode => {
                self.check_head()?;
                let data = fields.part(RAW_INODE_BYTES as usize, fields.u32(48) as usize);
                of("inode node: data", data, 60)
            }
            Kind::Summary => {
                of("summary", fields.part(0, 24), 28)?;
                of("summary: entries", fields.part(RAW_SUMMARY_BYTES as usize, rest), 24)
            }
            _ => Ok(()),
        }
    }
}

/// What a scan meets.
pub enum Met<'a> {
    /// A node.
    Node(Node<'a>),
    /// Bytes that are no node, from and to.
    Dirt(usize, usize),
    /// Erased bytes, from and to.
    Blank(usize, usize),
}

/// Erased bytes that are passed over at once.
const PIECE: usize = 1024;

/// Everything from `start` to `end`, one after another.
pub fn scan(bytes: &[u8], start: usize, end: usize, big: bool) -> impl Iterator<Item = Met<'_>> {
    let bytes = &bytes[..end.min(bytes.len())];
    let end = bytes.len();
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let from = at;
        if let Some(node) = node_at(bytes, at, big) {
            at = (at + pad(node.bytes) as usize).min(end);
            return Some(Met::Node(node));
        }
        let blank = is_blank(part(bytes, at, 4));
        while blank && end - at >= PIECE && is_blank(part(bytes, at, PIECE)) {
            at += PIECE;
        }
        while at < end
            && is_blank(part(bytes, at, 4)) == blank
            && (at == from || blank || node_at(bytes, at, big).is_none())
        {
            at += 4;
        }
        at = at.min(end);
        Some(if blank { Met::Blank(from, at) } else { Met::Dirt(from, at) })
    })
}

/// Bytes of nodes that are whole, and bytes that are neither a node nor erased.
fn sums(bytes: &[u8], big: bool) -> (i64, i64) {
    let (mut whole, mut dirt) = (0, 0);
    for met in scan(bytes, 0, bytes.len(), big) {
        match met {
            Met::Node(node) if node.check().is_ok() => whole += i64::from(node.bytes),
            Met::Node(node) => dirt += i64::from(node.bytes),
            Met::Dirt(from, to) => dirt += (to - from) as i64,
            Met::Blank(..) => {}
        }
    }
    (whole, dirt)
}

/// How much of some bytes makes sense.
pub fn score(bytes: &[u8]) -> i64 {
    let points = |big| {
        let (whole, dirt) = sums(bytes, big);
        whole - dirt
    };
    points(false).max(points(true))
}

/// Whether nodes have the most significant byte first; none if there is no node.
pub fn is_big(bytes: &[u8]) -> Option<bool> {
    let [(little, _), (big, _)] = [false, true].map(|big| sums(bytes, big));
    (little.max(big) > 0).then_some(big > little)
}

/// How the size of an erase block is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was given.
    Given,
    /// By clean markers.
    CleanMarkers,
    /// By the ends of summaries.
    Summaries,
    /// No node crosses such blocks, and one crosses smaller ones.
    Nodes,
}

impl Known {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Known::Given => "given",
            Known::CleanMarkers => "clean markers",
            Known::Summaries => "summaries",
            Known::Nodes => "nodes",
        }
    }
}

/// The size of an erase block.
pub fn block_bytes(bytes: &[u8], big: bool) -> (usize, Known) {
    let mut markers = 0;
    let mut crossed = 0;
    let mut last = 0;
    for met in scan(bytes, 0, bytes.len(), big) {
        let Met::Node(node) = met else { continue };
        last = node.start;
        if node.kind == Kind::CleanMarker {
            markers |= node.start;
        }
        // The largest power of two of which a multiple lies within the node.
        let end = node.start + node.bytes as usize - 1;
        if node.start != end {
            crossed = crossed.max(highest_bit(node.start ^ end));
        }
    }
    let lowest = |bits: usize| bits & bits.wrapping_neg();
    if markers != 0 && lowest(markers) > crossed {
        return (lowest(markers), Known::CleanMarkers);
    }
    let mut ends = 0;
    for (page, bytes) in bytes.chunks_exact(BLOCK_BYTES_MIN).enumerate() {
        if Fields::ordered(bytes, big).u32(BLOCK_BYTES_MIN - 4) == SUMMARY_MAGIC {
            ends |= (page + 1) * BLOCK_BYTES_MIN;
        }
    }
    if ends != 0 && lowest(ends) > crossed {
        return (lowest(ends), Known::Summaries);
    }
    let least = (crossed * 2).max(BLOCK_BYTES_MIN);
    let whole = if last < least { bytes.len().next_power_of_two() } else { least };
    (whole.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX), Known::Nodes)
}

fn highest_bit(bits: usize) -> usize {
    1 << (usize::BITS - 1 - bits.leading_zeros())
}
