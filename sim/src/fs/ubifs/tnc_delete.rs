//! Removing entries from the index, one by one or by a range of keys.
//!
//! Mirrors fs/ubifs/tnc.c (tnc_delete, ubifs_tnc_remove_range) of Linux 6.1. An empty znode is
//! removed. A root with a single child is replaced by that child. Nothing else is merged, and the
//! keys of the parents stay unchanged.

use super::geometry::align;
use super::key::Key;
use super::lpt::Lpt;
use super::properties::Change;
use super::tnc::{Leaf, Tnc};
use super::znode::NONE;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

impl Tnc {
    /// tnc_delete: removes a leaf of a dirty znode.
    pub(super) fn delete<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        leaf: Leaf,
    ) -> Result<Ns> {
        let now = self.dirt_of(ubi, lpt, now, leaf)?;
        self.znodes[leaf.znode as usize].remove(leaf.slot as usize, 1);
        if self.znodes[leaf.znode as usize].count() > 0 {
            return Ok(now);
        }
        let mut at = leaf.znode;
        let slot = loop {
            let parent = self.znodes[at as usize].parent;
            let slot = self.znodes[at as usize].slot;
            self.insert_old(at);
            self.forget(at);
            at = parent;
            if self.znodes[at as usize].count() > 1 {
                break slot;
            }
        };
        self.znodes[at as usize].remove(usize::from(slot), 1);
        self.adopt(at, usize::from(slot));
        self.collapse(ubi, lpt, now)
    }

    /// The end of tnc_delete: replaces a root with a single child.
    fn collapse<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        mut now: Ns,
    ) -> Result<Ns> {
        loop {
            let root = self.root;
            let znode = &self.znodes[root as usize];
            if znode.count() > 1 || znode.level == 0 {
                return Ok(now);
            }
            let child = znode.child(0);
            now = self.load(ubi, now, child)?;
            now = self.make_dirty(ubi, lpt, now, child)?;
            self.insert_old(root);
            self.root_place = self.place_of(child);
            self.znodes[child as usize].parent = NONE;
            self.root = child;
            self.forget(root);
        }
    }

    /// Drops a dirty znode.
    fn forget(&mut self, at: u32) {
        let znode = &mut self.znodes[at as usize];
        assert!(std::mem::take(&mut znode.dirty), "a clean znode is deleted");
        znode.loaded = false;
        self.dirty -= 1;
        self.unused.push(at);
    }

    /// ubifs_add_dirt of a leaf's node.
    fn dirt_of<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        leaf: Leaf,
    ) -> Result<Ns> {
        let place = self.place(leaf);
        let more_dirty = align(place.bytes, 8);
        lpt.change(ubi, now, place.leb, Change { more_dirty, ..Change::default() })
    }

    /// ubifs_tnc_remove_range: removes all keys from one to another, both included.
    pub fn remove_range<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        mut now: Ns,
        from: Key,
        to: Key,
    ) -> Result<Ns> {
        loop {
            let (mut leaf, exact, later) = self.lookup_level0(ubi, now, from)?;
            now = later;
            if !exact {
                let (next, later) = self.next(ubi, now, leaf)?;
                now = later;
                match next.filter(|&next| (from..=to).contains(&self.key(next))) {
                    Some(next) => leaf = next,
                    None => return Ok(now),
                }
            }
            now = self.dirty_bottom_up(ubi, lpt, now, leaf.znode)?;
            let first = leaf.slot + 1;
            let mut end = first;
            while end < self.znodes[leaf.znode as usize].count() as i8 {
                let next = Leaf { slot: end, ..leaf };
                if !(from..=to).contains(&self.key(next)) {
                    break;
                }
                now = self.dirt_of(ubi, lpt, now, next)?;
                end += 1;
            }
            let others = (end - first) as usize;
            now += ubi.costs().ubifs_leaf_drop_ns * (others as u64 + 1);
            self.znodes[leaf.znode as usize].remove(first as usize, others);
            now = self.delete(ubi, lpt, now, leaf)?;
        }
    }
}
