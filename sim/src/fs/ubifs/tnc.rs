//! The tree node cache (TNC): the part of UBIFS's index that is in memory.
//!
//! Mirrors fs/ubifs/tnc.c (ubifs_lookup_level0, lookup_level0_dirty, tnc_next, tnc_prev),
//! tnc_misc.c (ubifs_load_znode) and shrinker.c of Linux 6.1. tnc_insert.rs and tnc_delete.rs
//! change the tree. A znode that is not in memory keeps its slot and content here, which equal
//! those of its node on flash. Only a lookup pays for reading that node.
//!
//! Left out: names with equal hashes, copies of znodes under commit (here a commit ends before
//! anything else happens).
//!
//! Invariants:
//! 1. A znode is in memory only if its parent is; it is dirty only if its parent is.
//! 2. A znode that is not in memory is clean, and a clean one has a place on flash.
//! 3. Keys in a znode ascend, and the key of a branch is not above the first key below it.

use super::dumped_trees::{DumpedBranch, DumpedIndex};
use super::geometry::{align, index_node_bytes};
use super::key::{Key, Place};
use super::lpt::Lpt;
use super::old_index::OldIndex;
use super::properties::Change;
use super::znode::{Branch, Znode, NONE};
use crate::collections::pieces::Pieces;
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

/// A branch of a znode of level 0: the znode and the slot, -1 for before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub(super) znode: u32,
    pub(super) slot: i8,
}

/// Accepts a node that ECC could not correct if its own bits are right.
pub(super) fn accept_if_right<D: NandDriver>(
    ubi: &Ubi<D>,
    place: Place,
    error: FsError,
) -> Result<Ns> {
    match error {
        FsError::Unreadable(at) if ubi.is_wrong(place.leb, place.offset, place.bytes) => {
            Err(FsError::Damaged(at))
        }
        FsError::Unreadable(at) => Ok(at),
        other => Err(other),
    }
}

/// The index.
#[derive(Clone, Debug)]
pub struct Tnc {
    pub(super) znodes: Pieces<Znode>,
    /// Unused slots of `znodes`.
    pub(super) unused: Vec<u32>,
    pub(super) root: u32,
    /// `zroot`.
    pub(super) root_place: Place,
    pub(super) dirty: u32,
    /// The size of the index if it were committed now (`calc_idx_sz`).
    pub(super) bytes: u64,
    /// Places of the last commit's index nodes that are no longer in the tree (`old_idx`).
    pub(super) old: OldIndex,
    /// The znode of level 0 where the last lookup of a data node ended.
    last: u32,
    /// The znodes where earlier lookups of nearby keys ended.
    hints: Hints,
}

/// Where lookups ended, by key. Most lookups end in the znode of an earlier one and so need not
/// descend through every level.
///
/// Invariant: a hint affects only the time, never the result.
#[derive(Clone, Debug, Default)]
struct Hints(Vec<u32>);

impl Hints {
    /// More hints than pairs of blocks, if znodes are half full.
    const PER_ZNODE: usize = 4;

    /// Two adjacent blocks share a hint.
    #[inline]
    fn slot(&self, key: Key) -> usize {
        let place = (key.block() >> 1).wrapping_add(key.inum().wrapping_mul(0x9e37_79b1));
        place as usize & self.0.len().wrapping_sub(1)
    }

    #[inline]
    fn get(&self, key: Key) -> u32 {
        self.0.get(self.slot(key)).copied().unwrap_or(NONE)
    }

    #[inline]
    fn set(&mut self, key: Key, znode: u32, znodes: usize) {
        if self.0.len() < znodes * Self::PER_ZNODE {
            self.0 = vec![NONE; (znodes * Self::PER_ZNODE).next_power_of_two()];
        }
        let slot = self.slot(key);
        self.0[slot] = znode;
    }
}

impl Tnc {
    /// The index of a new file system: one leaf znode with the root inode, not in memory.
    pub fn new(root_place: Place, key: Key, inode: Place) -> Tnc {
        let mut root = Znode::new(0);
        root.insert(0, Branch { key, place: inode, child: NONE });
        let mut znodes = Pieces::default();
        znodes.push(root);
        let bytes = u64::from(align(root_place.bytes, 8));
        Tnc {
            znodes,
            unused: Vec::new(),
            root: 0,
            root_place,
            dirty: 0,
            bytes,
            old: OldIndex::default(),
            last: NONE,
            hints: Hints::default(),
        }
    }

    /// The index that a dump has, not in memory.
    pub(super) fn of_dump(found: &DumpedIndex) -> Tnc {
        let mut znodes = Pieces::default();
        for node in &found.nodes {
            let mut znode = Znode::new(node.level);
            for (slot, &DumpedBranch { key, place, child }) in node.branches.iter().enumerate() {
                znode.insert(slot, Branch { key, place, child });
            }
            znodes.push(znode);
        }
        let mut bytes = u64::from(align(found.root.bytes, 8));
        for (at, node) in (0..).zip(&found.nodes) {
            if node.level == 0 {
                continue;
            }
            for (slot, branch) in (0..).zip(&node.branches) {
                bytes += u64::from(align(branch.place.bytes, 8));
                let child = &mut znodes[branch.child as usize];
                (child.parent, child.slot) = (at, slot);
            }
        }
        Tnc {
            znodes,
            unused: Vec::new(),
            root: 0,
            root_place: found.root,
            dirty: 0,
            bytes,
            old: OldIndex::default(),
            last: NONE,
            hints: Hints::default(),
        }
    }

    /// `zroot`.
    pub fn root_place(&self) -> Place {
        self.root_place
    }

    /// Whether there are changes to commit.
    pub fn is_dirty(&self) -> bool {
        self.znodes[self.root as usize].dirty
    }

    /// Dirty znodes.
    pub fn dirty_znodes(&self) -> u32 {
        self.dirty
    }

    /// Znodes, in memory or not.
    pub fn znodes(&self) -> usize {
        self.znodes.len() - self.unused.len()
    }

    /// `calc_idx_sz`.
    pub fn index_bytes(&self) -> u64 {
        self.bytes
    }

    /// The place of a znode's node; for a dirty znode the place before it became dirty.
    pub(super) fn place_of(&self, at: u32) -> Place {
        let Znode { parent, slot, .. } = self.znodes[at as usize];
        match parent {
            NONE => self.root_place,
            parent => self.znodes[parent as usize].place(usize::from(slot)),
        }
    }

    /// ubifs_load_znode, unless the znode is in memory.
    #[inline]
    pub(super) fn load<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        znode: u32,
    ) -> Result<Ns> {
        if self.znodes[znode as usize].loaded {
            return Ok(now);
        }
        self.read_znode(ubi, now, znode)
    }

    #[cold]
    fn read_znode<D: NandDriver>(&mut self, ubi: &mut Ubi<D>, now: Ns, znode: u32) -> Result<Ns> {
        let place = self.place_of(znode);
        let costs = ubi.costs();
        let cpu = costs.ubifs_znode_ns + Ns::from_ps(u64::from(place.bytes), costs.ubifs_byte_ps);
        let read = ubi.try_read(now, place.leb, place.offset, place.bytes);
        let now = read.or_else(|error| accept_if_right(ubi, place, error))?;
        self.znodes[znode as usize].loaded = true;
        Ok(now + cpu)
    }

    /// Descends to level 0 for a key. With an `lpt` all znodes on the path become dirty.
    #[inline]
    fn descend<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        mut lpt: Option<&mut Lpt>,
        mut now: Ns,
        key: Key,
    ) -> Result<(Leaf, bool, Ns)> {
        if let Some((leaf, exact)) = self.hinted(key) {
            if let Some(lpt) = lpt {
                now = self.dirty_bottom_up(ubi, lpt, now, leaf.znode)?;
            }
            return Ok((leaf, exact, now));
        }
        let mut at = self.root;
        loop {
            now = self.load(ubi, now, at)?;
            if let Some(lpt) = &mut lpt {
                now = self.make_dirty(ubi, lpt, now, at)?;
            }
            let znode = &self.znodes[at as usize];
            let (slot, exact) = znode.search(key);
            if znode.level == 0 {
                self.hints.set(key, at, self.znodes.len());
                if key.is_data() {
                    self.last = at;
                }
                return Ok((Leaf { znode: at, slot }, exact, now));
            }
            at = znode.child(slot.max(0) as usize);
        }
    }

    /// The result of a descent if an earlier one ended there. By invariant 1 no znode on the path
    /// needs loading.
    #[inline(always)]
    pub(super) fn hinted(&self, key: Key) -> Option<(Leaf, bool)> {
        let hinted = self.ends_at(self.hints.get(key), key);
        if hinted.is_some() || !key.is_data() {
            return hinted;
        }
        self.ends_at(self.last, key)
    }

    /// The result of a descent if it ends at this znode. Always inlined: a call would store its
    /// result to the stack in parts and load it whole, and the processor would stall on that load.
    #[inline(always)]
    fn ends_at(&self, at: u32, key: Key) -> Option<(Leaf, bool)> {
        let znode = self.znodes.get(at as usize)?;
        if !znode.loaded || znode.level > 0 {
            return None;
        }
        let (slot, exact) = znode.search(key);
        let leaf = Leaf { znode: at, slot };
        let ends = slot >= 0 && (exact && key.is_data() || self.key_behind(leaf) > key);
        ends.then_some((leaf, exact))
    }

    /// Prefetches the memory that lookups of these keys will read. The cache misses of one lookup
    /// follow one another; here those of all keys overlap.
    pub fn touch(&self, keys: impl Iterator<Item = Key>) {
        self.touch_znodes(keys.map(|key| self.hints.get(key)));
    }

    /// Prefetches znodes and their branches in their parents.
    pub fn touch_znodes(&self, znodes: impl Iterator<Item = u32>) {
        let known = |at: u32| self.znodes.get(at as usize);
        let parents = znodes.filter_map(known).map(Znode::touch);
        let touched = parents.filter_map(known).map(Znode::touch);
        std::hint::black_box(touched.fold(0, u32::wrapping_add));
    }

    /// The first key beyond this branch.
    #[inline]
    fn key_behind(&self, leaf: Leaf) -> Key {
        let (mut at, mut slot) = (leaf.znode, leaf.slot as usize);
        loop {
            let znode = &self.znodes[at as usize];
            if slot + 1 < znode.count() {
                return znode.key(slot + 1);
            }
            if znode.parent == NONE {
                return Key::BEHIND;
            }
            (at, slot) = (znode.parent, usize::from(znode.slot));
        }
    }

    /// ubifs_lookup_level0: the leaf with this key, or the last one before it in its znode, and
    /// whether the key matches. For a key that may collide, it also searches the znode to the left.
    #[inline]
    pub fn lookup_level0<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
    ) -> Result<(Leaf, bool, Ns)> {
        let (leaf, exact, now) = self.descend(ubi, None, now, key)?;
        if exact || !key.is_hashed() || leaf.slot >= 0 {
            return Ok((leaf, exact, now));
        }
        match self.prev(ubi, now, leaf)? {
            (Some(left), now) if self.key(left) == key => Ok((left, true, now)),
            (_, now) => Ok((leaf, false, now)),
        }
    }

    /// lookup_level0_dirty.
    pub(super) fn lookup_dirty<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        key: Key,
    ) -> Result<(Leaf, bool, Ns)> {
        let (leaf, exact, now) = self.descend(ubi, Some(lpt), now, key)?;
        if exact || !key.is_hashed() || leaf.slot >= 0 {
            return Ok((leaf, exact, now));
        }
        match self.prev(ubi, now, leaf)? {
            (Some(left), now) if self.key(left) == key => {
                let now = self.dirty_bottom_up(ubi, lpt, now, left.znode)?;
                Ok((left, true, now))
            }
            (_, now) => Ok((leaf, false, now)),
        }
    }

    /// The leaf with this key, if there is one.
    #[inline]
    pub fn lookup<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
    ) -> Result<(Option<Leaf>, Ns)> {
        let (leaf, exact, now) = self.lookup_level0(ubi, now, key)?;
        Ok((exact.then_some(leaf), now))
    }

    /// Whether the index has the key. Costs no simulated time.
    pub fn has(&self, key: Key) -> bool {
        let mut at = self.root;
        loop {
            let znode = &self.znodes[at as usize];
            let (slot, exact) = znode.search(key);
            if znode.level == 0 || slot < 0 {
                return exact;
            }
            at = znode.child(slot as usize);
        }
    }

    /// The place of a leaf's node.
    #[inline]
    pub fn place(&self, leaf: Leaf) -> Place {
        self.znodes[leaf.znode as usize].place(leaf.slot as usize)
    }

    /// The key of a leaf.
    pub fn key(&self, leaf: Leaf) -> Key {
        self.znodes[leaf.znode as usize].key(leaf.slot as usize)
    }

    /// The unpacked bytes of a data node.
    pub fn data_bytes(&self, leaf: Leaf) -> u32 {
        self.znodes[leaf.znode as usize].child(leaf.slot as usize)
    }

    /// Adds a leaf to the leaf node cache; returns whether it was already there.
    pub fn cache(&mut self, leaf: Leaf) -> bool {
        self.znodes[leaf.znode as usize].cache(leaf.slot as usize)
    }

    /// The first or last leaf below a znode. Loads the znodes on the path (get_znode).
    fn outermost<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        mut now: Ns,
        mut at: u32,
        last: bool,
    ) -> Result<(Leaf, Ns)> {
        loop {
            now = self.load(ubi, now, at)?;
            let znode = &self.znodes[at as usize];
            let slot = if last { znode.count() - 1 } else { 0 };
            if znode.level == 0 {
                return Ok((Leaf { znode: at, slot: slot as i8 }, now));
            }
            at = znode.child(slot);
        }
    }

    /// tnc_next.
    pub fn next<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        leaf: Leaf,
    ) -> Result<(Option<Leaf>, Ns)> {
        let mut at = &self.znodes[leaf.znode as usize];
        if leaf.slot + 1 < at.count() as i8 {
            return Ok((Some(Leaf { slot: leaf.slot + 1, ..leaf }), now));
        }
        while at.parent != NONE {
            let slot = usize::from(at.slot) + 1;
            at = &self.znodes[at.parent as usize];
            if slot < at.count() {
                let child = at.child(slot);
                let (leaf, now) = self.outermost(ubi, now, child, false)?;
                return Ok((Some(leaf), now));
            }
        }
        Ok((None, now))
    }

    /// tnc_prev.
    pub fn prev<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        leaf: Leaf,
    ) -> Result<(Option<Leaf>, Ns)> {
        if leaf.slot > 0 {
            return Ok((Some(Leaf { slot: leaf.slot - 1, ..leaf }), now));
        }
        let mut at = &self.znodes[leaf.znode as usize];
        while at.parent != NONE {
            let slot = usize::from(at.slot);
            at = &self.znodes[at.parent as usize];
            if slot > 0 {
                let child = at.child(slot - 1);
                let (leaf, now) = self.outermost(ubi, now, child, true)?;
                return Ok((Some(leaf), now));
            }
        }
        Ok((None, now))
    }

    /// ubifs_tnc_next_ent without a name: the first entry of the same inode and type from a key on.
    pub fn next_entry<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
    ) -> Result<(Option<Leaf>, Ns)> {
        let (leaf, exact, now) = self.lookup_level0(ubi, now, key)?;
        let (leaf, now) = if exact { (Some(leaf), now) } else { self.next(ubi, now, leaf)? };
        Ok((leaf.filter(|&leaf| self.key(leaf).is_like(key)), now))
    }

    /// ubifs_tnc_next_ent with a name: the entry after the one with this key, which may be gone.
    pub fn entry_after<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        key: Key,
    ) -> Result<(Option<Leaf>, Ns)> {
        let (leaf, _, now) = self.lookup_level0(ubi, now, key)?;
        let (leaf, now) = self.next(ubi, now, leaf)?;
        Ok((leaf.filter(|&leaf| self.key(leaf).is_like(key)), now))
    }

    /// dirty_cow_znode: the znode's node on flash becomes obsolete.
    #[inline]
    pub(super) fn make_dirty<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        znode: u32,
    ) -> Result<Ns> {
        if std::mem::replace(&mut self.znodes[znode as usize].dirty, true) {
            return Ok(now);
        }
        let place = self.place_of(znode);
        self.dirty += 1;
        let bytes = align(place.bytes, 8);
        self.bytes -= u64::from(bytes);
        lpt.change(ubi, now, place.leb, Change { more_dirty: bytes, ..Change::default() })
    }

    /// dirty_cow_bottom_up.
    pub(super) fn dirty_bottom_up<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        lpt: &mut Lpt,
        now: Ns,
        znode: u32,
    ) -> Result<Ns> {
        if znode == NONE || self.znodes[znode as usize].dirty {
            return Ok(now);
        }
        let parent = self.znodes[znode as usize].parent;
        let now = self.dirty_bottom_up(ubi, lpt, now, parent)?;
        self.make_dirty(ubi, lpt, now, znode)
    }

    /// find_first_dirty and find_next_dirty: every dirty znode, children before their parent, with
    /// its number of children.
    pub fn dirty_in_order(&self) -> Vec<(u32, usize)> {
        let mut order = Vec::with_capacity(self.dirty as usize);
        if self.is_dirty() {
            self.visit_dirty(self.root, &mut order);
        }
        order
    }

    fn visit_dirty(&self, at: u32, order: &mut Vec<(u32, usize)>) {
        let znode = &self.znodes[at as usize];
        if znode.level > 0 {
            // Reads all children before it visits the first, so that their cache misses overlap.
            let dirty = znode.children().iter().rev().fold(0_u8, |dirty, &child| {
                dirty << 1 | u8::from(self.znodes[child as usize].dirty)
            });
            for (slot, &child) in znode.children().iter().enumerate() {
                if dirty >> slot & 1 == 1 {
                    self.visit_dirty(child, order);
                }
            }
        }
        order.push((at, znode.count()));
    }

    /// Stores the place that the commit gave a dirty znode, which is clean now. Returns the node's
    /// place, first key and level.
    pub fn commit(&mut self, znode: u32, leb: u32, offset: u32) -> (Place, Key, u8) {
        let node = &mut self.znodes[znode as usize];
        assert!(std::mem::take(&mut node.dirty), "commit of a clean znode");
        node.alt = false;
        let bytes = index_node_bytes(node.count());
        let place = Place { leb, offset, bytes };
        let written = (place, node.key(0), node.level);
        self.set_place_of(znode, place);
        self.dirty -= 1;
        self.bytes += u64::from(align(bytes, 8));
        written
    }

    pub(super) fn set_place_of(&mut self, at: u32, place: Place) {
        let Znode { parent, slot, .. } = self.znodes[at as usize];
        match parent {
            NONE => self.root_place = place,
            parent => self.znodes[parent as usize].set_place(usize::from(slot), place),
        }
    }

    /// insert_old_idx_znode: protects the last commit's node from being overwritten before the next
    /// commit.
    pub(super) fn insert_old(&mut self, at: u32) {
        let place = self.place_of(at);
        if place.bytes > 0 {
            self.old.insert((place.leb, place.offset));
        }
    }

    /// Every leaf with its place, in the order of keys.
    pub fn leaves(&self) -> Vec<(Key, Place)> {
        let mut leaves = Vec::new();
        let mut waiting = vec![self.root];
        while let Some(at) = waiting.pop() {
            let znode = &self.znodes[at as usize];
            if znode.level == 0 {
                leaves.extend(znode.leaves());
            } else {
                waiting.extend(znode.children().iter().rev());
            }
        }
        leaves
    }

    /// drop_caches evicts all clean znodes. The shrinker (shrink_tnc) frees them by age, oldest
    /// first, but is called until none is left.
    pub fn shrink(&mut self) {
        for znode in self.znodes.iter_mut() {
            if !znode.dirty && znode.loaded {
                znode.loaded = false;
                znode.alt = false;
                znode.forget_leaves();
            }
        }
    }
}
