//! A znode: an index node in memory.
//!
//! Mirrors struct ubifs_znode and struct ubifs_zbranch of fs/ubifs/ubifs.h of Linux 6.1. There are
//! about as many znodes as a fifth of the pages of all files, far more than fit into a processor's
//! cache, and every lookup reads one on each level. The fields of a search are therefore adjacent:
//! the keys in one cache line and the rest in the next.
//!
//! Invariants:
//! 1. Keys of branches ascend.
//! 2. After the last branch the keys are `Key::BEHIND`, so a search need not know the number of
//!    branches.

use super::geometry::FANOUT;
use super::key::{Key, Place};

/// No znode.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub key: Key,
    pub place: Place,
    /// The child znode; for a data node its unpacked bytes.
    pub child: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Znode {
    keys: [Key; FANOUT],
    children: [u32; FANOUT],
    pub parent: u32,
    /// Slot in the parent (`iip`).
    pub slot: u8,
    pub level: u8,
    count: u8,
    pub loaded: bool,
    pub dirty: bool,
    /// A branch was inserted at slot 0 since the last commit.
    pub alt: bool,
    /// The leaves in the leaf node cache, one bit each.
    cached: u8,
    lebs: [u32; FANOUT],
    offsets: [u32; FANOUT],
    bytes: [u16; FANOUT],
}

impl Znode {
    /// A znode without branches, not in memory.
    pub fn new(level: u8) -> Znode {
        Znode {
            keys: [Key::BEHIND; FANOUT],
            children: [NONE; FANOUT],
            parent: NONE,
            slot: 0,
            level,
            count: 0,
            loaded: false,
            dirty: false,
            alt: false,
            cached: 0,
            lebs: [0; FANOUT],
            offsets: [0; FANOUT],
            bytes: [0; FANOUT],
        }
    }

    /// Its parent. Reads all three cache lines.
    #[inline]
    pub fn touch(&self) -> u32 {
        std::hint::black_box((self.keys[0], self.bytes[0]));
        self.parent
    }

    /// The number of branches (`child_cnt`).
    #[inline]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// ubifs_search_zbranch: the last branch whose key is not above `key`, and whether it is equal.
    /// A branch-free binary search.
    #[inline]
    pub fn search(&self, key: Key) -> (i8, bool) {
        const { assert!(FANOUT == 8) };
        let mut after = 0;
        for step in [4, 2, 1, 1] {
            after += step * usize::from(self.keys[after + step - 1] <= key);
        }
        (after as i8 - 1, after > 0 && self.keys[after - 1] == key)
    }

    /// The key of a branch.
    #[inline]
    pub fn key(&self, slot: usize) -> Key {
        self.keys[slot]
    }

    pub fn set_key(&mut self, slot: usize, key: Key) {
        self.keys[slot] = key;
    }

    /// The child of a branch.
    #[inline]
    pub fn child(&self, slot: usize) -> u32 {
        self.children[slot]
    }

    /// The children of all branches.
    pub fn children(&self) -> &[u32] {
        &self.children[..self.count()]
    }

    /// The place of a branch.
    #[inline]
    pub fn place(&self, slot: usize) -> Place {
        let (leb, offset) = (self.lebs[slot], self.offsets[slot]);
        Place { leb, offset, bytes: u32::from(self.bytes[slot]) }
    }

    #[inline]
    pub fn set_place(&mut self, slot: usize, place: Place) {
        (self.lebs[slot], self.offsets[slot]) = (place.leb, place.offset);
        self.bytes[slot] = place.bytes as u16;
    }

    /// Keys and places of all branches.
    pub fn leaves(&self) -> impl Iterator<Item = (Key, Place)> + '_ {
        (0..self.count()).map(|slot| (self.key(slot), self.place(slot)))
    }

    fn branch(&self, slot: usize) -> Branch {
        Branch { key: self.key(slot), place: self.place(slot), child: self.child(slot) }
    }

    /// Replaces the node of a key. The new node is not in the leaf node cache.
    #[inline]
    pub fn replace_leaf(&mut self, slot: usize, place: Place, data_bytes: u32) {
        self.set_place(slot, place);
        self.children[slot] = data_bytes;
        self.cached &= !(1 << slot);
    }

    /// Adds a leaf to the leaf node cache; returns whether it was already there.
    pub fn cache(&mut self, slot: usize) -> bool {
        let before = self.cached;
        self.cached |= 1 << slot;
        before == self.cached
    }

    /// Empties the leaf node cache.
    pub fn forget_leaves(&mut self) {
        self.cached = 0;
    }

    /// insert_zbranch: inserts at `slot` and moves the later branches up.
    pub fn insert(&mut self, slot: usize, branch: Branch) {
        let count = self.count();
        assert!(count < FANOUT, "insertion into a full znode");
        self.keys.copy_within(slot..count, slot + 1);
        self.children.copy_within(slot..count, slot + 1);
        self.lebs.copy_within(slot..count, slot + 1);
        self.offsets.copy_within(slot..count, slot + 1);
        self.bytes.copy_within(slot..count, slot + 1);
        let below = (1 << slot) - 1;
        self.cached = self.cached & below | (self.cached & !below) << 1;
        self.count += 1;
        (self.keys[slot], self.children[slot]) = (branch.key, branch.child);
        self.set_place(slot, branch.place);
    }

    /// Removes branches and moves the later ones down.
    pub fn remove(&mut self, slot: usize, removed: usize) {
        let (behind, count) = (slot + removed, self.count());
        self.keys.copy_within(behind..count, slot);
        self.children.copy_within(behind..count, slot);
        self.lebs.copy_within(behind..count, slot);
        self.offsets.copy_within(behind..count, slot);
        self.bytes.copy_within(behind..count, slot);
        self.keys[count - removed..].fill(Key::BEHIND);
        let below = ((1u16 << slot) - 1) as u8;
        let above = (u16::from(self.cached) >> removed) as u8 & !below;
        self.cached = self.cached & below | above;
        self.count -= removed as u8;
    }

    /// Moves the branches from `keep` on into a new znode beside this one.
    pub fn split_off(&mut self, keep: usize) -> Znode {
        let mut new = Znode { parent: self.parent, ..Znode::new(self.level) };
        for slot in keep..self.count() {
            new.insert(slot - keep, self.branch(slot));
        }
        new.cached = (u16::from(self.cached) >> keep) as u8;
        self.remove(keep, self.count() - keep);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(block: u32) -> Branch {
        let place = Place { leb: block, offset: block * 8, bytes: block + 1 };
        Branch { key: Key::data(1, block), place, child: block }
    }

    fn with(blocks: &[u32]) -> Znode {
        let mut znode = Znode::new(0);
        for (slot, &block) in blocks.iter().enumerate() {
            znode.insert(slot, leaf(block));
        }
        znode
    }

    fn blocks(znode: &Znode) -> Vec<u32> {
        let found = znode.children().to_vec();
        for (slot, &block) in found.iter().enumerate() {
            assert_eq!(znode.key(slot), leaf(block).key);
            assert_eq!(znode.place(slot), leaf(block).place);
        }
        found
    }

    #[test]
    fn a_search_ends_at_the_last_branch_not_above() {
        let znode = with(&[10, 20, 30]);
        for (block, slot, exact) in [
            (9, -1, false),
            (10, 0, true),
            (11, 0, false),
            (29, 1, false),
            (30, 2, true),
            (31, 2, false),
        ] {
            assert_eq!(znode.search(Key::data(1, block)), (slot, exact), "{block}");
        }
        assert_eq!(znode.search(Key::last_of(u32::MAX - 1)), (2, false));
    }

    #[test]
    fn what_is_in_the_leaf_node_cache_moves_with_its_branch() {
        let mut znode = with(&[10, 20, 30, 40]);
        assert!(!znode.cache(1) && !znode.cache(3));
        znode.insert(1, leaf(15));
        assert_eq!(blocks(&znode), [10, 15, 20, 30, 40]);
        assert!(znode.cache(2) && znode.cache(4));
        znode.remove(0, 2);
        assert_eq!(blocks(&znode), [20, 30, 40]);
        assert!(znode.cache(0) && znode.cache(2));
        let mut new = znode.split_off(1);
        assert_eq!((blocks(&znode), blocks(&new)), (vec![20], vec![30, 40]));
        assert!(znode.cache(0) && !new.cache(0) && new.cache(1));
    }

    #[test]
    fn a_full_znode_can_be_emptied() {
        let mut znode = with(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(znode.search(Key::data(1, 9)), (7, false));
        assert!(!znode.cache(7));
        znode.remove(0, 8);
        assert_eq!((znode.count(), znode.search(Key::data(1, 9))), (0, (-1, false)));
        znode.insert(0, leaf(1));
        assert!(!znode.cache(0));
    }
}
