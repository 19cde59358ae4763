//! From an index node on flash to its znode: which znode is it, and is the node in use?
//!
//! Mirrors fs/ubifs/tnc.c (lookup_znode, is_idx_node_in_tnc, ubifs_dirty_idx_node) of Linux 6.1,
//! which garbage collection and layout_in_gaps call.

use super::key::Key;
use super::lpt::Lpt;
use super::old_index::At;
use super::tnc::Tnc;
use super::znode::NONE;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

impl Tnc {
    fn lies_at(&self, znode: u32, at: At) -> bool {
        let place = self.place_of(znode);
        place.bytes > 0 && (place.leb, place.offset) == at
    }

    fn child(&self, znode: u32, slot: usize) -> u32 {
        self.znodes[znode as usize].child(slot)
    }

    /// left_znode and right_znode: the neighbour on the same level.
    fn neighbour<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        mut now: Ns,
        znode: u32,
        right: bool,
    ) -> Result<(Option<u32>, Ns)> {
        let level = self.znodes[znode as usize].level;
        let mut at = znode;
        loop {
            let slot = usize::from(self.znodes[at as usize].slot);
            at = self.znodes[at as usize].parent;
            if at == NONE {
                return Ok((None, now));
            }
            let count = self.znodes[at as usize].count();
            let beside = if right { Some(slot + 1) } else { slot.checked_sub(1) };
            let Some(slot) = beside.filter(|&beside| beside < count) else { continue };
            at = self.child(at, slot);
            now = self.load(ubi, now, at)?;
            while self.znodes[at as usize].level != level {
                let last = self.znodes[at as usize].count() - 1;
                at = self.child(at, if right { 0 } else { last });
                now = self.load(ubi, now, at)?;
            }
            return Ok((Some(at), now));
        }
    }

    /// lookup_znode: the znode with this first key and level whose node lies at this place.
    fn lookup_znode<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
        level: u8,
        at: At,
    ) -> Result<(Option<u32>, Ns)> {
        let mut znode = self.root;
        let mut now = self.load(ubi, now, znode)?;
        if self.lies_at(znode, at) {
            return Ok((Some(znode), now));
        }
        if level >= self.znodes[znode as usize].level {
            return Ok((None, now));
        }
        if let Some((leaf, _)) = self.hinted(key).filter(|_| !key.is_hashed()) {
            // The descent passes the ancestors of the znode it ends at.
            let up = |znode, _| self.znodes[znode as usize].parent;
            let znode = (0..level).fold(leaf.znode, up);
            return Ok((self.lies_at(znode, at).then_some(znode), now));
        }
        let slot = loop {
            let (mut slot, _) = self.znodes[znode as usize].search(key);
            if slot < 0 {
                let (left, later) = self.neighbour(ubi, now, znode, false)?;
                now = later;
                let Some(left) = left else { return Ok((None, now)) };
                znode = left;
                slot = self.znodes[znode as usize].search(key).0;
                assert!(slot >= 0, "what is to the left is lower");
            }
            if self.znodes[znode as usize].level == level + 1 {
                break slot as usize;
            }
            znode = self.child(znode, slot as usize);
            now = self.load(ubi, now, znode)?;
        };
        let child = self.child(znode, slot);
        if self.lies_at(child, at) {
            return Ok((Some(child), self.load(ubi, now, child)?));
        }
        if !key.is_hashed() {
            return Ok((None, now));
        }
        let (found, now) = self.look_beside(ubi, now, key, (znode, slot), at, false)?;
        if found.is_some() {
            return Ok((found, now));
        }
        self.look_beside(ubi, now, key, (znode, slot), at, true)
    }

    /// The end of lookup_znode for keys that may collide: tries the branches to one side while they
    /// have the key.
    fn look_beside<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        mut now: Ns,
        key: Key,
        (mut znode, mut slot): (u32, usize),
        at: At,
        right: bool,
    ) -> Result<(Option<u32>, Ns)> {
        loop {
            let count = self.znodes[znode as usize].count();
            if right && slot + 1 < count {
                slot += 1;
            } else if !right && slot > 0 {
                slot -= 1;
            } else {
                let (beside, later) = self.neighbour(ubi, now, znode, right)?;
                now = later;
                let Some(beside) = beside else { return Ok((None, now)) };
                znode = beside;
                let last = self.znodes[znode as usize].count() - 1;
                slot = if right { 0 } else { last };
            }
            let child = self.child(znode, slot);
            if self.lies_at(child, at) {
                return Ok((Some(child), self.load(ubi, now, child)?));
            }
            let other = self.znodes[znode as usize].key(slot);
            if if right { other > key } else { other < key } {
                return Ok((None, now));
            }
        }
    }

    /// is_idx_node_in_use: whether a node must not be overwritten, and whether its znode is dirty.
    pub fn index_node_use<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
        level: u8,
        at: At,
    ) -> Result<(Option<bool>, Ns)> {
        let (znode, now) = self.lookup_znode(ubi, now, key, level, at)?;
        let dirty = znode.map(|znode| self.znodes[znode as usize].dirty);
        Ok((dirty.or(self.old.contains(at).then_some(true)), now))
    }

    /// ubifs_dirty_idx_node.
    pub fn dirty_index_node<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        key: Key,
        level: u8,
        at: At,
    ) -> Result<Ns> {
        let (znode, now) = self.lookup_znode(ubi, now, key, level, at)?;
        match znode {
            Some(znode) => self.dirty_bottom_up(ubi, lpt, now, znode),
            None => Ok(now),
        }
    }
}
