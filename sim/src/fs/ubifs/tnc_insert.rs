//! Adding entries to the index, and splitting full znodes.
//!
//! Mirrors fs/ubifs/tnc.c (ubifs_tnc_add, tnc_insert, insert_zbranch, correct_parent_keys,
//! ins_clr_old_idx_znode) of Linux 6.1.

use super::geometry::{align, FANOUT};
use super::key::{Key, Place, NOWHERE};
use super::lpt::Lpt;
use super::properties::Change;
use super::tnc::{Leaf, Tnc};
use super::znode::{Branch, Znode, NONE};
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

/// How a full znode is split.
#[derive(Clone, Copy, Debug)]
struct Keep {
    /// Branches that stay in the old znode.
    branches: usize,
    /// Whether the new branch goes into the old znode.
    into_old: bool,
}

impl Tnc {
    /// ubifs_tnc_add: adds a new node, or the new place of a known one. `data_bytes` are the
    /// unpacked bytes of a data node.
    pub fn add<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        key: Key,
        node: Place,
        data_bytes: u32,
    ) -> Result<Ns> {
        let (leaf, exact, now) = self.lookup_dirty(ubi, lpt, now, key)?;
        if exact {
            return self.set_place(ubi, lpt, now, leaf, node, data_bytes);
        }
        let branch = Branch { key, place: node, child: data_bytes };
        self.insert(leaf.znode, branch, (leaf.slot + 1) as u8);
        Ok(now)
    }

    /// Changes the place of a leaf in a dirty znode. The old node becomes dirty space.
    pub(super) fn set_place<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        leaf: Leaf,
        node: Place,
        data_bytes: u32,
    ) -> Result<Ns> {
        let old = self.place(leaf);
        self.znodes[leaf.znode as usize].replace_leaf(leaf.slot as usize, node, data_bytes);
        let more_dirty = align(old.bytes, 8);
        lpt.change(ubi, now, old.leb, Change { more_dirty, ..Change::default() })
    }

    /// Inserts a leaf after the one that a lookup of its key returned.
    pub(super) fn insert_leaf(&mut self, before: Leaf, key: Key, place: Place) {
        let branch = Branch { key, place, child: 0 };
        self.insert(before.znode, branch, (before.slot + 1) as u8);
    }

    /// insert_zbranch.
    fn insert_branch(&mut self, at: u32, branch: Branch, slot: u8) {
        let znode = &mut self.znodes[at as usize];
        let slot = usize::from(slot);
        assert!(znode.dirty, "insertion into a clean znode");
        znode.insert(slot, branch);
        znode.alt |= slot == 0;
        if znode.level > 0 {
            self.adopt(at, slot);
        }
    }

    /// Updates parent and slot in the children from `from` on.
    pub(super) fn adopt(&mut self, at: u32, from: usize) {
        for slot in from..self.znodes[at as usize].count() {
            let child = self.znodes[at as usize].child(slot);
            let child = &mut self.znodes[child as usize];
            (child.parent, child.slot) = (at, slot as u8);
        }
    }

    fn correct_parent_keys(&mut self, at: u32) {
        let key = self.znodes[at as usize].key(0);
        let (mut parent, mut slot) = self.above(at);
        while parent != NONE && slot == 0 {
            let znode = &mut self.znodes[parent as usize];
            if znode.key(0) <= key {
                return;
            }
            znode.set_key(0, key);
            znode.alt = true;
            (parent, slot) = self.above(parent);
        }
    }

    fn above(&self, at: u32) -> (u32, u8) {
        let znode = &self.znodes[at as usize];
        (znode.parent, znode.slot)
    }

    /// tnc_insert: splits full znodes on the way up.
    pub(super) fn insert(&mut self, at: u32, branch: Branch, slot: u8) {
        let (mut at, mut branch, mut slot) = (at, branch, slot);
        let mut appending = false;
        loop {
            if self.znodes[at as usize].count() < FANOUT {
                self.insert_branch(at, branch, slot);
                if slot == 0 {
                    self.correct_parent_keys(at);
                }
                return;
            }
            if self.znodes[at as usize].alt {
                self.insert_old(at);
                self.set_place_of(at, NOWHERE);
            }
            let keep = self.split_point(at, branch.key, slot, &mut appending);
            let new = self.split(at, branch, slot, keep);
            let first = self.znodes[new as usize].key(0);
            let (parent, own_slot) = self.above(at);
            if parent == NONE {
                self.grow(at, new, first);
                return;
            }
            branch = Branch { key: first, place: NOWHERE, child: new };
            (at, slot) = (parent, own_slot + 1);
        }
    }

    /// The part of tnc_insert that decides how many branches stay, and into which half the new one
    /// goes. It keeps consecutive data keys together.
    fn split_point(&self, at: u32, key: Key, slot: u8, appending: &mut bool) -> Keep {
        let znode = &self.znodes[at as usize];
        let slot = usize::from(slot);
        let same = |key1: Key| key1.is_data() && key1.inum() == key.inum();
        let mut check = false;
        if znode.level == 0 && key.is_data() {
            if slot == FANOUT {
                *appending = same(znode.key(slot - 1)) || *appending;
            } else {
                check = true;
            }
        } else if *appending && slot != FANOUT {
            *appending = false;
            check = true;
        }
        let first = znode.key(0);
        if check && slot >= FANOUT.div_ceil(2) && same(first) && !same(znode.key(slot)) {
            return Keep { branches: slot, into_old: true };
        }
        let branches = if *appending { FANOUT } else { FANOUT.div_ceil(2) };
        if slot < branches {
            Keep { branches: branches - 1, into_old: true }
        } else {
            Keep { branches, into_old: false }
        }
    }

    fn new_znode(&mut self, znode: Znode) -> u32 {
        self.dirty += 1;
        if let Some(slot) = self.unused.pop() {
            self.znodes[slot as usize] = znode;
            return slot;
        }
        self.znodes.push(znode) as u32
    }

    /// The part of tnc_insert that moves branches into a new znode and inserts the new one.
    fn split(&mut self, at: u32, branch: Branch, slot: u8, keep: Keep) -> u32 {
        let old = &mut self.znodes[at as usize];
        let mut znode = old.split_off(keep.branches);
        (znode.loaded, znode.dirty) = (true, true);
        let level = old.level;
        let new = self.new_znode(znode);
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

    /// The end of tnc_insert: adds a root above the old one and its new neighbour.
    fn grow(&mut self, old: u32, new: u32, new_key: Key) {
        let level = self.znodes[old as usize].level + 1;
        let key = self.znodes[old as usize].key(0);
        let mut root = Znode::new(level);
        (root.loaded, root.dirty) = (true, true);
        root.insert(0, Branch { key, place: self.root_place, child: old });
        root.insert(1, Branch { key: new_key, place: NOWHERE, child: new });
        let root = self.new_znode(root);
        self.adopt(root, 0);
        self.root = root;
        self.root_place = NOWHERE;
    }
}
