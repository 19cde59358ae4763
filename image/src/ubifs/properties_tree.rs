//! The LPT: free and dirty space of each LEB of the main area (ubifs_read_nnode, read_pnode).

use super::superblock::{Master, Superblock};
use crate::bytes::{crc16, part};
use crate::lebs::Lebs;
use sim::fs::ubifs::geometry::{
    bits, lpt_height, lpt_node_bytes, LPT_CRC_BITS, LPT_FANOUT, LPT_HEADER_BITS,
};
use std::collections::{BTreeMap, BTreeSet};

/// The properties of a LEB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Free bytes at its end.
    pub free: u32,
    /// Bytes that nothing refers to.
    pub dirty: u32,
    /// Whether it is of the index.
    pub index: bool,
}

/// Bits of a node, the lowest of a byte first (unpack_bits).
struct Bits<'a> {
    bytes: &'a [u8],
    at: u32,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> u32 {
        let mut value = 0;
        for bit in 0..count {
            let at = self.at + bit;
            let byte = self.bytes.get(at as usize / 8).copied().unwrap_or(0);
            value |= u32::from(byte >> (at % 8) & 1) << bit;
        }
        self.at += count;
        value
    }
}

/// UBIFS_LPT_LTAB.
const TABLE: u32 = 2;

/// UBIFS_LPT_PNODE and UBIFS_LPT_NNODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Leaf = 0,
    Inner = 1,
}

/// Sizes of one LPT.
struct Tree<'a> {
    lebs: Lebs<'a>,
    superblock: &'a Superblock,
    leaves: u32,
    height: u32,
    number_bits: u32,
    leaf_bytes: u32,
    inner_bytes: u32,
    seen: BTreeSet<(u32, u32)>,
    found: Vec<Properties>,
    /// The place of each node, by its level, leaves first, and its number there.
    places: Nodes,
}

/// Places of nodes by their level and their number there.
pub type Nodes = BTreeMap<(u32, u32), (u32, u32)>;

/// The properties of each LEB of the main area.
pub fn read_properties(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    master: &Master,
) -> Result<Vec<Properties>, String> {
    read_tree(lebs, superblock, master).map(|(found, _)| found)
}

/// The same, and where each node is.
pub fn read_tree(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    master: &Master,
) -> Result<(Vec<Properties>, Nodes), String> {
    let main = superblock.main_lebs;
    let most = u64::from(main) + u64::from(superblock.lebs_max - superblock.lebs);
    let leaves_max = u32::try_from(most.div_ceil(u64::from(LPT_FANOUT))).unwrap_or(u32::MAX);
    let big = superblock.has("big-lpt");
    let number_bits = if big { bits(leaves_max.saturating_sub(1)) } else { 0 };
    let (leaf_bytes, inner_bytes) =
        lpt_node_bytes(superblock.leb_bytes, superblock.lpt_lebs, number_bits);
    let mut tree = Tree {
        lebs,
        superblock,
        leaves: main.div_ceil(LPT_FANOUT),
        height: lpt_height(leaves_max),
        number_bits,
        leaf_bytes,
        inner_bytes,
        seen: BTreeSet::new(),
        found: Vec::new(),
        places: Nodes::new(),
    };
    tree.inner(master.lpt, tree.height, 0)?;
    tree.found.truncate(main as usize);
    Ok((tree.found, tree.places))
}

/// The table of the LPT's own LEBs: free and dirty bytes of each (read_ltab).
pub fn read_table(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    (leb, offset): (u32, u32),
) -> Result<Vec<(u32, u32)>, String> {
    let space_bits = bits(superblock.leb_bytes);
    let table_bits = LPT_HEADER_BITS + superblock.lpt_lebs.saturating_mul(2 * space_bits);
    let bytes = table_bits.div_ceil(8) as usize;
    let table = part(lebs.leb(leb), offset as usize, bytes);
    let mut taken = Bits { bytes: table, at: 0 };
    let said = taken.take(LPT_CRC_BITS);
    let found = u32::from(crc16(part(table, LPT_CRC_BITS as usize / 8, bytes)));
    let is_table = taken.take(LPT_HEADER_BITS - LPT_CRC_BITS) == TABLE;
    if table.len() < bytes || said != found || !is_table {
        return Err(format!("LEB {leb}:{offset}: the table of the LPT's LEBs is broken"));
    }
    let whole = superblock.leb_bytes;
    (0..superblock.lpt_lebs)
        .map(|_| (taken.take(space_bits), taken.take(space_bits)))
        .map(|(free, dirty)| match free.saturating_add(dirty) > whole {
            true => Err(format!("LEB {leb}:{offset}: {free} free and {dirty} dirty bytes")),
            false => Ok((free, dirty)),
        })
        .collect()
}

impl<'a> Tree<'a> {
    /// The bits of a node after its header.
    fn node(&mut self, place: (u32, u32), kind: Kind) -> Result<Bits<'a>, String> {
        let (leb, offset) = place;
        let wrong = |why: &str| format!("LEB {leb}:{offset}: LPT node: {why}");
        if !self.seen.insert(place) {
            return Err(wrong("two nodes refer to it"));
        }
        let bytes = if kind == Kind::Leaf { self.leaf_bytes } else { self.inner_bytes } as usize;
        let node = part(self.lebs.leb(leb), offset as usize, bytes);
        if node.len() < bytes {
            return Err(wrong("outside of what is there"));
        }
        let mut taken = Bits { bytes: node, at: 0 };
        let said = taken.take(LPT_CRC_BITS);
        let found = u32::from(crc16(part(node, LPT_CRC_BITS as usize / 8, bytes)));
        if said != found {
            return Err(wrong(&format!("CRC 0x{found:04x}, not 0x{said:04x}")));
        }
        if taken.take(LPT_HEADER_BITS - LPT_CRC_BITS) != kind as u32 {
            return Err(wrong("of another kind"));
        }
        taken.take(self.number_bits);
        Ok(taken)
    }

    /// A node above the leaves, whose first leaf is `first`.
    fn inner(&mut self, place: (u32, u32), height: u32, first: u32) -> Result<(), String> {
        let mut node = self.node(place, Kind::Inner)?;
        self.places.insert((height, first >> (2 * height).min(31)), place);
        let leb_bits = bits(self.superblock.lpt_lebs);
        let offset_bits = bits(self.superblock.leb_bytes - 1);
        // Leaves below each child.
        let below = 1_u64 << (2 * (height - 1)).min(40);
        for child in 0..LPT_FANOUT {
            let (leb, offset) = (node.take(leb_bits), node.take(offset_bits));
            let begin = u64::from(first) + below * u64::from(child);
            if begin >= u64::from(self.leaves) {
                break;
            }
            let begin = begin as u32;
            if leb >= self.superblock.lpt_lebs {
                // Nothing was written below it: all of its LEBs are empty.
                let end = (u64::from(begin) + below).min(u64::from(self.leaves)) as u32;
                self.empty(begin, end);
                continue;
            }
            let place = (leb + self.superblock.lpt_first(), offset);
            if height > 1 {
                self.inner(place, height - 1, begin)?;
            } else {
                self.places.insert((0, begin), place);
                self.leaf(place)?;
            }
        }
        Ok(())
    }

    fn empty(&mut self, begin: u32, end: u32) {
        let free = self.superblock.leb_bytes;
        let none = Properties { free, dirty: 0, index: false };
        let lebs = (end - begin) as usize * LPT_FANOUT as usize;
        self.found.extend(std::iter::repeat_n(none, lebs));
    }

    fn leaf(&mut self, place: (u32, u32)) -> Result<(), String> {
        let mut node = self.node(place, Kind::Leaf)?;
        let space_bits = bits(self.superblock.leb_bytes) - 3;
        for _ in 0..LPT_FANOUT {
            let (free, dirty) = (node.take(space_bits) << 3, node.take(space_bits) << 3);
            if u64::from(free) + u64::from(dirty) > u64::from(self.superblock.leb_bytes) {
                let (leb, offset) = place;
                return Err(format!(
                    "LEB {leb}:{offset}: LPT node: {free} free and {dirty} dirty bytes"
                ));
            }
            self.found.push(Properties { free, dirty, index: node.take(1) == 1 });
        }
        Ok(())
    }
}
