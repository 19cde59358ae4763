//! Nodes of UBIFS: their common header and how it is checked (ubifs_check_node).

use crate::bytes::{crc32, part, Fields};

/// UBIFS_NODE_MAGIC.
pub const MAGIC: u32 = 0x0610_1831;

/// What a node is (UBIFS_INO_NODE and so on).
pub mod kind {
    /// An inode.
    pub const INODE: u8 = 0;
    /// Data of a file.
    pub const DATA: u8 = 1;
    /// A name.
    pub const DENT: u8 = 2;
    /// The name of an extended attribute.
    pub const XENT: u8 = 3;
    /// A truncation.
    pub const TRUNCATION: u8 = 4;
    /// Padding.
    pub const PADDING: u8 = 5;
    /// The superblock.
    pub const SUPERBLOCK: u8 = 6;
    /// The master node.
    pub const MASTER: u8 = 7;
    /// A reference of the log.
    pub const REFERENCE: u8 = 8;
    /// A node of the index.
    pub const INDEX: u8 = 9;
    /// The begin of a commit.
    pub const COMMIT_START: u8 = 10;
}

const NAMES: [&str; 14] = [
    "inode",
    "data",
    "directory entry",
    "attribute entry",
    "truncation",
    "padding",
    "superblock",
    "master node",
    "reference",
    "index node",
    "commit start",
    "orphans",
    "authentication",
    "signature",
];
/// The least that each kind has.
const BYTES_MIN: [u32; 14] = [160, 48, 56, 56, 56, 28, 4096, 512, 64, 28, 32, 32, 24, 24];

/// The name of a kind.
pub fn name(kind: u8) -> &'static str {
    NAMES.get(usize::from(kind)).copied().unwrap_or("node of no kind")
}

/// A node that is whole.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Its fields, the header included.
    pub fields: Fields<'a>,
    /// What it is.
    pub kind: u8,
    /// When it was written.
    pub sequence: u64,
    /// Its bytes.
    pub bytes: u32,
}

/// A node at an offset of a LEB.
pub fn node_at(leb: &[u8], offset: u32) -> Result<Node<'_>, String> {
    let rest = leb.get(offset as usize..).unwrap_or(&[]);
    if rest.is_empty() {
        return Err("outside of what is there".to_owned());
    }
    let head = Fields::little(rest);
    if head.u32(0) != MAGIC {
        return Err(format!("magic 0x{:08x}, not 0x{MAGIC:08x}", head.u32(0)));
    }
    let (bytes, kind) = (head.u32(16), head.u8(20));
    let Some(least) = BYTES_MIN.get(usize::from(kind)) else {
        return Err(format!("a node of no kind: {kind}"));
    };
    if bytes < *least || bytes as usize > rest.len() {
        return Err(format!("{}: {bytes} bytes", name(kind)));
    }
    let fields = Fields::little(part(rest, 0, bytes as usize));
    let (found, said) = (crc32(u32::MAX, fields.part(8, bytes as usize)), head.u32(4));
    if found != said {
        return Err(format!("{}: CRC 0x{found:08x}, not 0x{said:08x}", name(kind)));
    }
    Ok(Node { fields, kind, sequence: head.u64(8), bytes })
}

/// The same of a kind that is expected there.
pub fn node_of(leb: &[u8], offset: u32, expected: u8) -> Result<Node<'_>, String> {
    let node = node_at(leb, offset).map_err(|why| format!("{}: {why}", name(expected)))?;
    if node.kind != expected {
        return Err(format!("{}: it is a {}", name(expected), name(node.kind)));
    }
    Ok(node)
}

/// UBIFS_PADDING_BYTE: what fills a gap that is too small for a padding node.
const PADDING_BYTE: u8 = 0xce;

/// Where what follows an offset is, if there is a node or padding (ubifs_scan_a_node).
fn step(leb: &[u8], at: u32) -> Option<(u32, Option<Node<'_>>)> {
    let Ok(node) = node_at(leb, at) else {
        let gap = part(leb, at as usize, 28);
        let filled = gap.iter().take_while(|byte| **byte == PADDING_BYTE).count() as u32;
        let next = at.checked_add(filled)?;
        return (filled > 0 && next % 8 == 0).then_some((next, None));
    };
    let gap = if node.kind == kind::PADDING { node.fields.u32(24) } else { 0 };
    let next = node.bytes.checked_add(gap)?.checked_next_multiple_of(8)?;
    Some((at.checked_add(next)?, (node.kind != kind::PADDING).then_some(node)))
}

/// Nodes one after another from an offset (ubifs_scan). Ends at the first bytes that are none.
pub fn nodes(leb: &[u8], from: u32) -> impl Iterator<Item = (u32, Node<'_>)> {
    let mut at = from;
    std::iter::from_fn(move || loop {
        let here = at;
        let (next, node) = step(leb, at)?;
        at = next;
        if let Some(node) = node {
            return Some((here, node));
        }
    })
}

/// Where the nodes of a LEB end.
pub fn end_of_nodes(leb: &[u8], from: u32) -> u32 {
    let mut at = from;
    while let Some((next, _)) = step(leb, at) {
        at = next;
    }
    at
}
