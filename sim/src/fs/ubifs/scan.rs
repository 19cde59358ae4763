//! The nodes that a scan of a LEB finds.
//!
//! Mirrors fs/ubifs/scan.c of Linux 6.1 as far as garbage collection, commit and replay use it: a
//! node is its place, length and key. Padding is not recorded. Obsolete nodes are, because they are
//! still on flash.
//!
//! There is a record for each node on flash, so each is stored as its difference from the one
//! before, mostly in two to six bytes.
//!
//! Invariant: the nodes of a LEB are in the order of their offsets and do not overlap.

use super::geometry::align;
use super::key::{Key, Place};

/// A node as a scan finds it (`struct ubifs_scan_node`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its offset in its LEB.
    pub offset: u32,
    /// Its bytes, without padding.
    pub bytes: u16,
    /// For a data node its unpacked bytes, for an index node its level.
    pub extra: u16,
    /// Its key; of an index node the first in it.
    pub key: Key,
}

impl Node {
    /// The offset of the next node if there is no gap.
    fn end(&self) -> u32 {
        align(self.offset + u32::from(self.bytes), 8)
    }
}

/// Precedes the first node.
const NONE: Node = Node { offset: 0, bytes: 0, extra: 0, key: Key::inode(0) };

/// Flags of a record: which numbers follow because they differ from the record before. The second
/// half of the key always follows, as a difference.
const OFFSET: u8 = 1;
const BYTES: u8 = 2;
const EXTRA: u8 = 4;
const INODE: u8 = 8;

/// Writes a number with seven bits a byte, the lowest first. All bytes but the last have the eighth
/// bit set.
fn put(packed: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

fn take(packed: &mut core::slice::Iter<'_, u8>) -> u32 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *packed.next().expect("a whole number");
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

/// The signed difference of two numbers, encoded so that small ones stay small.
fn distance(from: u32, to: u32) -> u32 {
    let signed = to.wrapping_sub(from) as i32;
    ((signed << 1) ^ (signed >> 31)) as u32
}

fn at_distance(from: u32, distance: u32) -> u32 {
    from.wrapping_add((distance >> 1) ^ (distance & 1).wrapping_neg())
}

/// The nodes of a LEB.
#[derive(Clone, Debug)]
struct Leb {
    packed: Vec<u8>,
    last: Node,
}

impl Leb {
    const EMPTY: Leb = Leb { packed: Vec::new(), last: NONE };
    /// The longest record.
    const NODE_BYTES_MOST: usize = 1 + 5 + 3 + 3 + 5 + 5;
    /// The step by which the record buffer grows. Doubling would leave half of it unused.
    const GROWTH_BYTES: usize = 64;

    #[inline]
    fn push(&mut self, node: Node) {
        let last = std::mem::replace(&mut self.last, node);
        assert!(node.offset >= last.end(), "a node upon another");
        let ((inode, rest), (last_inode, last_rest)) = (node.key.halves(), last.key.halves());
        let packed = &mut self.packed;
        if packed.capacity() - packed.len() < Leb::NODE_BYTES_MOST {
            packed.reserve_exact(Leb::GROWTH_BYTES.max(packed.len() / 4));
        }
        let head = packed.len();
        packed.push(0);
        for (which, number) in [
            (OFFSET, node.offset - last.end()),
            (BYTES, u32::from(node.bytes ^ last.bytes)),
            (EXTRA, u32::from(node.extra ^ last.extra)),
            (INODE, distance(last_inode, inode)),
        ] {
            if number != 0 {
                packed[head] |= which;
                put(packed, number);
            }
        }
        put(packed, distance(last_rest, rest));
    }

    fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        let (mut rest, mut last) = (self.packed.iter(), NONE);
        core::iter::from_fn(move || {
            let differs = *rest.next()?;
            let mut number = |which: u8| if differs & which != 0 { take(&mut rest) } else { 0 };
            let offset = last.end() + number(OFFSET);
            let bytes = last.bytes ^ number(BYTES) as u16;
            let extra = last.extra ^ number(EXTRA) as u16;
            let (last_inode, last_rest) = last.key.halves();
            let inode = at_distance(last_inode, number(INODE));
            let key = Key::from_halves((inode, at_distance(last_rest, take(&mut rest))));
            last = Node { offset, bytes, extra, key };
            Some(last)
        })
    }
}

/// What was written to each LEB of the main area.
#[derive(Clone, Debug)]
pub struct Written {
    first: u32,
    lebs: Vec<Leb>,
}

impl Written {
    /// `count` empty LEBs from `first` on.
    pub fn new(first: u32, count: u32) -> Written {
        Written { first, lebs: vec![Leb::EMPTY; count as usize] }
    }

    fn leb(&mut self, leb: u32) -> &mut Leb {
        &mut self.lebs[(leb - self.first) as usize]
    }

    /// Records a node after those already there.
    #[inline]
    pub fn add(&mut self, place: Place, key: Key, extra: u32) {
        let Place { leb, offset, bytes } = place;
        self.leb(leb).push(Node { offset, bytes: bytes as u16, extra: extra as u16, key });
    }

    /// Empties the LEB.
    pub fn clear(&mut self, leb: u32) {
        *self.leb(leb) = Leb::EMPTY;
    }

    /// The nodes of a LEB.
    pub fn nodes(&self, leb: u32) -> Vec<Node> {
        let leb = &self.lebs[(leb - self.first) as usize];
        let mut nodes = Vec::with_capacity(leb.packed.len() / 2);
        nodes.extend(leb.nodes());
        nodes
    }

    /// Replaces all nodes of the LEB.
    pub fn set(&mut self, leb: u32, nodes: &[Node]) {
        let leb = self.leb(leb);
        leb.packed.clear();
        leb.last = NONE;
        nodes.iter().for_each(|&node| leb.push(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEB: u32 = 7;

    fn node(offset: u32, bytes: u16, extra: u16, key: Key) -> Node {
        Node { offset, bytes, extra, key }
    }

    #[test]
    fn a_scan_finds_what_was_written() {
        let nodes = [
            node(0, 160, 0, Key::inode(u32::MAX)),
            node(160, 56, 0, Key::truncation(64)),
            node(224, 4144, 4096, Key::data(64, (1 << 29) - 1)),
            node(224 + 4144, 4144, 4096, Key::data(64, 0)),
            node(16_384, 49, 1, Key::data(65, 12)),
            node(16_440, u16::MAX, u16::MAX, Key::last_of(u32::MAX)),
            node(1 << 31, 1, 0, Key::inode(0)),
        ];
        let mut written = Written::new(LEB, 2);
        for node in nodes {
            let place = Place { leb: LEB, offset: node.offset, bytes: node.bytes.into() };
            written.add(place, node.key, node.extra.into());
        }
        assert_eq!(written.nodes(LEB), nodes);
        assert!(written.nodes(LEB + 1).is_empty());
        written.set(LEB + 1, &nodes[2..5]);
        assert_eq!(written.nodes(LEB + 1), nodes[2..5]);
        written.clear(LEB);
        assert!(written.nodes(LEB).is_empty());
    }

    #[test]
    fn a_block_of_a_file_takes_two_bytes_in_order_and_four_anywhere() {
        for (step, bytes) in [(1, 2), (12_345, 4)] {
            let mut written = Written::new(LEB, 1);
            for at in 0..100 {
                let key = Key::data(64, at * step % 60_000);
                written.add(Place { leb: LEB, offset: at * 4144, bytes: 4144 }, key, 4096);
            }
            let packed = &written.lebs[0].packed;
            assert!(packed.len() <= 100 * bytes + 16, "{} bytes", packed.len());
            assert!(packed.capacity() <= packed.len() * 3 / 2, "room for {}", packed.capacity());
        }
    }
}
