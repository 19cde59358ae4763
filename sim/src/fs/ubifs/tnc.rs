//! The tree node cache: UBIFS's index, as much of it as is in memory.
//!
//! Mirrors fs/ubifs/tnc.c (ubifs_lookup_level0, lookup_level0_dirty, tnc_insert), tnc_misc.c
//! (ubifs_load_znode) and shrinker.c of Linux 6.1. A znode that is not in memory keeps its slot
//! here: its contents are those of the index node on flash, only a lookup pays for reading it.
//!
//! Left out: deletion, names with equal hashes, the old-index tree of in-the-gaps commits, copies
//! of znodes under commit (a commit here is over before anything else happens).
//!
//! Invariants:
//! 1. A znode is in memory only if its parent is; it is dirty only if its parent is.
//! 2. A znode that is not in memory is clean, and a clean one has a place on flash.
//! 3. Keys in a znode ascend, and the key of a branch is the first key below it.

use super::geometry::{align, index_node_bytes, FANOUT};
use super::lprops::Change;
use super::lpt::Lpt;
use crate::chip::Flash;
use crate::fs::Result;
use crate::ubi::Ubi;
use crate::units::Ns;

/// No znode.
const NONE: u32 = u32::MAX;

/// Node types in keys (UBIFS_INO_KEY and so on).
const DATA: u32 = 1;
const DENT: u32 = 2;
const XENT: u32 = 3;
const BLOCK_BITS: u32 = 29;

/// The key of a node: inode number, then type and block or hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub inum: u32,
    rest: u32,
}

impl Key {
    /// Of an inode node.
    pub fn inode(inum: u32) -> Key {
        Key { inum, rest: 0 }
    }

    /// Of a block of data.
    #[inline]
    pub fn data(inum: u32, block: u32) -> Key {
        Key { inum, rest: DATA << BLOCK_BITS | block }
    }

    /// Of a directory entry.
    pub fn dent(inum: u32, name: &str) -> Key {
        Key { inum, rest: DENT << BLOCK_BITS | r5_hash(name) }
    }

    /// Of an extended attribute.
    pub fn xent(inum: u32, name: &str) -> Key {
        Key { inum, rest: XENT << BLOCK_BITS | r5_hash(name) }
    }

    fn is_data(self) -> bool {
        self.rest >> BLOCK_BITS == DATA
    }
}

/// key_r5_hash: bytes are signed, and the three lowest values are reserved.
fn r5_hash(name: &str) -> u32 {
    let mut hash: u32 = 0;
    for byte in name.bytes() {
        let byte = i32::from(byte as i8);
        hash = hash.wrapping_add((byte << 4) as u32);
        hash = hash.wrapping_add((byte >> 4) as u32);
        hash = hash.wrapping_mul(11);
    }
    hash &= (1 << BLOCK_BITS) - 1;
    if hash <= 2 {
        hash + 3
    } else {
        hash
    }
}

/// Where a node lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub leb: u32,
    pub offset: u32,
    pub bytes: u32,
}

const NOWHERE: Place = Place { leb: 0, offset: 0, bytes: 0 };

#[derive(Clone, Copy, Debug)]
struct Branch {
    key: Key,
    place: Place,
    /// The znode below, or whether a leaf is in the leaf node cache.
    child: u32,
    cached: bool,
}

const NO_BRANCH: Branch =
    Branch { key: Key { inum: 0, rest: 0 }, place: NOWHERE, child: NONE, cached: false };

#[derive(Clone, Copy, Debug)]
struct Znode {
    parent: u32,
    /// Slot in the parent (`iip`).
    slot: u8,
    level: u8,
    count: u8,
    loaded: bool,
    dirty: bool,
    branches: [Branch; FANOUT],
}

/// A leaf's branch: znode and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    znode: u32,
    slot: u8,
}

/// The index.
#[derive(Clone, Debug)]
pub struct Tnc {
    znodes: Vec<Znode>,
    root: u32,
    root_place: Place,
    dirty: u32,
    /// Size of the index if it were committed now (`calc_idx_sz`).
    bytes: u64,
}

impl Tnc {
    /// The index of a fresh file system: one leaf znode with the root inode, not in memory.
    pub fn new(root_place: Place, key: Key, inode: Place) -> Tnc {
        let mut root = Znode {
            parent: NONE,
            slot: 0,
            level: 0,
            count: 1,
            loaded: false,
            dirty: false,
            branches: [NO_BRANCH; FANOUT],
        };
        root.branches[0] = Branch { key, place: inode, ..NO_BRANCH };
        let bytes = u64::from(align(root_place.bytes, 8));
        Tnc { znodes: vec![root], root: 0, root_place, dirty: 0, bytes }
    }

    /// `zroot`.
    pub fn root_place(&self) -> Place {
        self.root_place
    }

    /// Whether there is anything to commit.
    pub fn is_dirty(&self) -> bool {
        self.znodes[self.root as usize].dirty
    }

    /// Dirty znodes.
    pub fn dirty_znodes(&self) -> u32 {
        self.dirty
    }

    /// `calc_idx_sz`.
    pub fn index_bytes(&self) -> u64 {
        self.bytes
    }

    /// ubifs_load_znode.
    fn load<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        znode: u32,
        place: Place,
    ) -> Result<Ns> {
        self.znodes[znode as usize].loaded = true;
        let costs = ubi.costs();
        let cpu = costs.ubifs_znode_ns + Ns::from_ps(u64::from(place.bytes), costs.ubifs_byte_ps);
        Ok(ubi.read(now, place.leb, place.offset, place.bytes)? + cpu)
    }

    /// ubifs_search_zbranch: the last branch with a key not above `key`, and whether it is equal.
    #[inline]
    fn search(znode: &Znode, key: Key) -> (Option<u8>, bool) {
        let branches = &znode.branches[..usize::from(znode.count)];
        let after = branches.iter().take_while(|branch| branch.key <= key).count();
        match after {
            0 => (None, false),
            n => (Some(n as u8 - 1), branches[n - 1].key == key),
        }
    }

    /// ubifs_lookup_level0: the leaf with this key, if there is one.
    #[inline]
    pub fn lookup<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        key: Key,
    ) -> Result<(Option<Leaf>, Ns)> {
        let mut now = now;
        let mut at = self.root;
        let mut place = self.root_place;
        loop {
            if !self.znodes[at as usize].loaded {
                now = self.load(ubi, now, at, place)?;
            }
            let znode = &self.znodes[at as usize];
            let (slot, exact) = Self::search(znode, key);
            if znode.level == 0 {
                let leaf = slot.filter(|_| exact).map(|slot| Leaf { znode: at, slot });
                return Ok((leaf, now));
            }
            let branch = &znode.branches[usize::from(slot.unwrap_or(0))];
            (at, place) = (branch.child, branch.place);
        }
    }

    /// The place of a leaf's node.
    #[inline]
    pub fn place(&self, leaf: Leaf) -> Place {
        self.znodes[leaf.znode as usize].branches[usize::from(leaf.slot)].place
    }

    /// Puts a leaf into the leaf node cache; returns whether it was there already.
    pub fn cache(&mut self, leaf: Leaf) -> bool {
        let branch = &mut self.znodes[leaf.znode as usize].branches[usize::from(leaf.slot)];
        std::mem::replace(&mut branch.cached, true)
    }

    /// dirty_cow_znode: what is on flash of it is no longer used.
    fn make_dirty<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        lpt: &mut Lpt,
        now: Ns,
        znode: u32,
        place: Place,
    ) -> Result<Ns> {
        if std::mem::replace(&mut self.znodes[znode as usize].dirty, true) {
            return Ok(now);
        }
        self.dirty += 1;
        let bytes = align(place.bytes, 8);
        self.bytes -= u64::from(bytes);
        lpt.change(ubi, now, place.leb, Change { more_dirty: bytes, ..Change::default() })
    }

    /// ubifs_tnc_add: a new node, or a new place for one that is known.
    pub fn add<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        lpt: &mut Lpt,
        now: Ns,
        key: Key,
        node: Place,
    ) -> Result<Ns> {
        let mut now = now;
        let mut at = self.root;
        let mut place = self.root_place;
        loop {
            if !self.znodes[at as usize].loaded {
                now = self.load(ubi, now, at, place)?;
            }
            now = self.make_dirty(ubi, lpt, now, at, place)?;
            let znode = &mut self.znodes[at as usize];
            let (slot, exact) = Self::search(znode, key);
            if znode.level > 0 {
                let branch = &znode.branches[usize::from(slot.unwrap_or(0))];
                (at, place) = (branch.child, branch.place);
                continue;
            }
            if let (Some(slot), true) = (slot, exact) {
                let branch = &mut znode.branches[usize::from(slot)];
                let old = std::mem::replace(&mut branch.place, node);
                branch.cached = false;
                let more_dirty = align(old.bytes, 8);
                return lpt.change(ubi, now, old.leb, Change { more_dirty, ..Change::default() });
            }
            let branch = Branch { key, place: node, ..NO_BRANCH };
            self.insert(at, branch, slot.map_or(0, |slot| slot + 1));
            return Ok(now);
        }
    }

    /// insert_zbranch, with the parents' keys put right as correct_parent_keys does.
    fn insert_branch(&mut self, at: u32, branch: Branch, slot: u8) {
        let znode = &mut self.znodes[at as usize];
        let (slot, count) = (usize::from(slot), usize::from(znode.count));
        assert!(znode.dirty && count < FANOUT, "insertion into a clean or full znode");
        znode.branches.copy_within(slot..count, slot + 1);
        znode.branches[slot] = branch;
        znode.count += 1;
        if znode.level > 0 {
            self.adopt(at, slot);
        }
    }

    /// Tells the children from `from` on who their parent is and where they are in it.
    fn adopt(&mut self, at: u32, from: usize) {
        let znode = self.znodes[at as usize];
        for slot in from..usize::from(znode.count) {
            let child = &mut self.znodes[znode.branches[slot].child as usize];
            (child.parent, child.slot) = (at, slot as u8);
        }
    }

    fn correct_parent_keys(&mut self, at: u32) {
        let key = self.znodes[at as usize].branches[0].key;
        let (mut parent, mut slot) = self.above(at);
        while parent != NONE && slot == 0 {
            let branch = &mut self.znodes[parent as usize].branches[0];
            if branch.key <= key {
                return;
            }
            branch.key = key;
            (parent, slot) = self.above(parent);
        }
    }

    fn above(&self, at: u32) -> (u32, u8) {
        let znode = &self.znodes[at as usize];
        (znode.parent, znode.slot)
    }

    /// tnc_insert: splits what is full, on the way up.
    fn insert(&mut self, at: u32, branch: Branch, slot: u8) {
        let (mut at, mut branch, mut slot) = (at, branch, slot);
        let mut appending = false;
        loop {
            if usize::from(self.znodes[at as usize].count) < FANOUT {
                self.insert_branch(at, branch, slot);
                if slot == 0 {
                    self.correct_parent_keys(at);
                }
                return;
            }
            let keep = self.split_point(at, branch.key, slot, &mut appending);
            let new = self.split(at, branch, slot, keep);
            let first = self.znodes[new as usize].branches[0].key;
            let (parent, own_slot) = self.above(at);
            if parent == NONE {
                self.grow(at, new, first);
                return;
            }
            branch = Branch { key: first, child: new, ..NO_BRANCH };
            (at, slot) = (parent, own_slot + 1);
        }
    }

    /// The part of tnc_insert that decides how many branches stay, and on which side of the split
    /// the new one goes: consecutive data keys are kept together.
    fn split_point(&self, at: u32, key: Key, slot: u8, appending: &mut bool) -> Keep {
        let znode = &self.znodes[at as usize];
        let slot = usize::from(slot);
        let same = |key1: Key| key1.inum == key.inum && key1.is_data();
        let mut check = false;
        if znode.level == 0 && key.is_data() {
            if slot == FANOUT {
                *appending = same(znode.branches[slot - 1].key) || *appending;
            } else {
                check = true;
            }
        } else if *appending && slot != FANOUT {
            *appending = false;
            check = true;
        }
        let first = znode.branches[0].key;
        if check && slot >= FANOUT.div_ceil(2) && same(first) && !same(znode.branches[slot].key) {
            return Keep { branches: slot, into_old: true };
        }
        let branches = if *appending { FANOUT } else { FANOUT.div_ceil(2) };
        if slot < branches {
            Keep { branches: branches - 1, into_old: true }
        } else {
            Keep { branches, into_old: false }
        }
    }

    /// The part of tnc_insert that moves branches into a new znode and inserts the new branch.
    fn split(&mut self, at: u32, branch: Branch, slot: u8, keep: Keep) -> u32 {
        let new = self.znodes.len() as u32;
        let old = &mut self.znodes[at as usize];
        let moved = FANOUT - keep.branches;
        let mut znode = Znode { slot: 0, count: moved as u8, loaded: true, dirty: true, ..*old };
        znode.branches = [NO_BRANCH; FANOUT];
        znode.branches[..moved].copy_from_slice(&old.branches[keep.branches..]);
        old.branches[keep.branches..].fill(NO_BRANCH);
        old.count = keep.branches as u8;
        let level = old.level;
        self.znodes.push(znode);
        self.dirty += 1;
        if level > 0 {
            self.adopt(new, 0);
        }
        if keep.into_old {
            self.insert_branch(at, branch, slot);
            if slot == 0 {
                self.correct_parent_keys(at);
            }
        } else {
            self.insert_branch(new, branch, slot - keep.branches as u8);
        }
        new
    }

    /// The end of tnc_insert: a new root above the old one and its new neighbour.
    fn grow(&mut self, old: u32, new: u32, new_key: Key) {
        let root = self.znodes.len() as u32;
        let level = self.znodes[old as usize].level + 1;
        let mut branches = [NO_BRANCH; FANOUT];
        let key = self.znodes[old as usize].branches[0].key;
        branches[0] = Branch { key, place: self.root_place, child: old, cached: false };
        branches[1] = Branch { key: new_key, child: new, ..NO_BRANCH };
        let znode =
            Znode { parent: NONE, slot: 0, level, count: 2, loaded: true, dirty: true, branches };
        self.znodes.push(znode);
        self.dirty += 1;
        self.adopt(root, 0);
        self.root = root;
        self.root_place = NOWHERE;
    }

    /// find_first_dirty and find_next_dirty: every dirty znode, children before their parent, and
    /// how many children it has.
    pub fn dirty_in_order(&self) -> Vec<(u32, usize)> {
        let mut order = Vec::with_capacity(self.dirty as usize);
        if self.is_dirty() {
            self.visit_dirty(self.root, &mut order);
        }
        order
    }

    fn visit_dirty(&self, at: u32, order: &mut Vec<(u32, usize)>) {
        let znode = &self.znodes[at as usize];
        let count = usize::from(znode.count);
        if znode.level > 0 {
            for branch in &znode.branches[..count] {
                if self.znodes[branch.child as usize].dirty {
                    self.visit_dirty(branch.child, order);
                }
            }
        }
        order.push((at, count));
    }

    /// The commit has found a place for a dirty znode; it is clean now.
    pub fn commit(&mut self, znode: u32, leb: u32, offset: u32) {
        let node = &mut self.znodes[znode as usize];
        assert!(std::mem::take(&mut node.dirty), "commit of a clean znode");
        let bytes = index_node_bytes(usize::from(node.count));
        let place = Place { leb, offset, bytes };
        let (parent, slot) = self.above(znode);
        match parent {
            NONE => self.root_place = place,
            parent => {
                self.znodes[parent as usize].branches[usize::from(slot)].place = place;
            }
        }
        self.dirty -= 1;
        self.bytes += u64::from(align(bytes, 8));
    }

    /// What drop_caches leaves of the tree: the dirty znodes. The shrinker (shrink_tnc) frees by
    /// age, oldest first, but is called until nothing clean is left.
    pub fn shrink(&mut self) {
        for znode in &mut self.znodes {
            if !znode.dirty && znode.loaded {
                znode.loaded = false;
                for branch in &mut znode.branches {
                    branch.cached = false;
                }
            }
        }
    }
}

/// How a full znode is split.
#[derive(Clone, Copy, Debug)]
struct Keep {
    /// Branches that stay.
    branches: usize,
    /// Whether the new branch goes into the old znode.
    into_old: bool,
}
