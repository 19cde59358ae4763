//! The LEB properties tree (LPT): the properties of lprops.rs as nodes on flash.
//!
//! Mirrors fs/ubifs/lpt.c (the tree, read node by node on demand) and lpt_commit.c (layout_cnodes,
//! write_cnodes, trivial garbage collection) of Linux 6.1. Left out: the big model with its save
//! table and its garbage collection.
//!
//! Invariants:
//! 1. A pnode that was never loaded describes only empty LEBs.
//! 2. If a node is loaded or dirty, so are all nodes above it. A dirty node is loaded.

use super::dumped_trees::{DumpedLpt, DumpedProperties};
use super::geometry::{align, index_node_bytes, Geometry, FIRST_DATA_LEB, FIRST_INDEX_LEB};
use super::geometry::{INODE_BYTES, LPT_FANOUT, LPT_FANOUT_SHIFT};
use super::heap::Categories;
use super::properties::Category;
use super::properties::{Change, Properties, Totals, INDEX, TAKEN};
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;
use std::collections::BTreeMap;

/// The LEB of a node that was never written.
const NOWHERE: u32 = 0;

/// A node of the tree. The tree's array has pnodes first, then the levels of nnodes, the root last.
#[derive(Clone, Copy, Debug)]
struct Node {
    leb: u32,
    offset: u32,
    loaded: bool,
    dirty: bool,
}

/// Properties of a LEB of the LPT area (`ltab`).
#[derive(Clone, Copy, Debug)]
struct Area {
    free: u32,
    dirty: u32,
    /// To be unmapped after the commit (`tgc`).
    collected: bool,
}

/// A write of the commit, or a LEB to unmap before its first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LebWrite {
    pub leb: u32,
    pub offset: u32,
    pub bytes: u32,
}

/// The LEB properties tree in memory.
#[derive(Clone, Debug)]
pub struct Lpt {
    pub(super) geometry: Geometry,
    pub(super) lebs: Vec<Properties>,
    pub(super) categories: Categories,
    pub(super) totals: Totals,
    /// The number of partly filled data LEBs by free bytes.
    pub(super) lebs_by_room: BTreeMap<u32, u32>,
    /// `idx_gc_cnt`: former index LEBs that are empty after the next commit.
    pub(super) index_gc: u32,
    /// `dirty_idx`: index LEBs with free or dirty space at the last commit.
    pub(super) dirty_index: Vec<u32>,
    /// Replay handles nodes before the properties of their LEBs are known (set_bud_lprops), so sums
    /// that do not fit yet are ignored.
    pub(super) is_replaying: bool,
    nodes: Vec<Node>,
    /// The index of each level's first node in `nodes`; level 0 are the pnodes.
    levels: Vec<u32>,
    areas: Vec<Area>,
    /// `areas` as the table on flash holds them.
    written_areas: Vec<Area>,
    table_leb: u32,
    table_offset: u32,
    table_dirty: bool,
    head_leb: u32,
    head_offset: u32,
    /// Where the last scan ended (`lscan_lnum`).
    pub(super) scanned: u32,
}

/// The properties of the LEBs of a main area, those of a dump first.
fn properties_of(geometry: &Geometry, found: &[DumpedProperties]) -> Vec<Properties> {
    let none = DumpedProperties { free: geometry.leb_bytes, dirty: 0, index: false };
    let grown = (geometry.main_lebs as usize).saturating_sub(found.len());
    let all = found.iter().copied().chain(std::iter::repeat_n(none, grown));
    let known = |DumpedProperties { free, dirty, index }| {
        let flags = if index { INDEX } else { 0 };
        Properties { free, dirty, flags, category: Category::Unknown }
    };
    all.map(known).collect()
}

impl Lpt {
    /// A tree over these properties, of which nothing is in memory and no node was written.
    pub(super) fn empty(geometry: Geometry, lebs: Vec<Properties>) -> Lpt {
        let lpt = geometry.lpt;
        let mut levels = vec![0];
        let mut row = lpt.pnodes;
        let mut count = row;
        for _ in 0..lpt.height {
            levels.push(count);
            row = row.div_ceil(LPT_FANOUT);
            count += row;
        }
        let area = Area { free: geometry.leb_bytes, dirty: 0, collected: false };
        let mut tree = Lpt {
            geometry,
            lebs,
            categories: Categories::new(geometry.main_lebs),
            totals: Totals::default(),
            lebs_by_room: BTreeMap::new(),
            index_gc: 0,
            dirty_index: Vec::new(),
            is_replaying: false,
            nodes: vec![
                Node { leb: NOWHERE, offset: 0, loaded: false, dirty: false };
                count as usize
            ],
            levels,
            areas: vec![area; lpt.lebs as usize],
            written_areas: vec![area; lpt.lebs as usize],
            table_leb: 0,
            table_offset: 0,
            table_dirty: false,
            head_leb: lpt.first_leb,
            head_offset: 0,
            scanned: geometry.main_first,
        };
        tree.count_totals();
        tree.count_all_room();
        tree
    }

    /// A tree that a dump has, of which nothing is in memory.
    pub(super) fn of_dump(geometry: Geometry, found: &DumpedLpt) -> Lpt {
        let mut lpt = Lpt::empty(geometry, properties_of(&geometry, &found.properties));
        for level in 0..lpt.levels.len() {
            let first = lpt.levels[level];
            let end = lpt.levels.get(level + 1).map_or(lpt.nodes.len() as u32, |&next| next);
            for number in 0..end - first {
                let at = (level as u32, number);
                let (leb, offset) = found.nodes.get(&at).copied().unwrap_or((NOWHERE, 0));
                let node = &mut lpt.nodes[(first + number) as usize];
                (node.leb, node.offset) = (leb, offset);
            }
        }
        for (area, &(free, dirty)) in lpt.areas.iter_mut().zip(&found.areas) {
            (area.free, area.dirty) = (free, dirty);
        }
        lpt.written_areas.clone_from(&lpt.areas);
        (lpt.table_leb, lpt.table_offset) = found.table;
        (lpt.head_leb, lpt.head_offset) = found.head;
        lpt.scanned = found.scanned;
        lpt
    }

    /// The free bytes of each LEB of the LPT area.
    pub fn free_of_area(&self) -> Vec<(u32, u32)> {
        (self.geometry.lpt.first_leb..).zip(self.areas.iter().map(|area| area.free)).collect()
    }

    /// ubifs_create_dflt_lpt: writes the tree of an empty file system, and loads nothing of it.
    pub fn create<D: NandDriver>(
        geometry: Geometry,
        ubi: &mut Ubi<D>,
        now: Ns,
    ) -> Result<(Lpt, Ns)> {
        let lpt = geometry.lpt;
        let mut tree = Lpt::empty(geometry, Self::fresh_properties(&geometry));
        let count = tree.nodes.len() as u32;
        let mut now = now;
        for index in 0..=count {
            let bytes = tree.bytes_of(index.min(count - 1));
            let bytes = if index == count { lpt.table_bytes } else { bytes };
            if tree.head_offset + bytes > geometry.leb_bytes {
                now = tree.write_fresh_leb(ubi, now)?;
                tree.head_leb += 1;
                tree.head_offset = 0;
            }
            let (leb, offset) = (tree.head_leb, tree.head_offset);
            if index == count {
                (tree.table_leb, tree.table_offset) = (leb, offset);
            } else {
                (tree.nodes[index as usize].leb, tree.nodes[index as usize].offset) = (leb, offset);
            }
            tree.head_offset += bytes;
        }
        let now = tree.write_fresh_leb(ubi, now)?;
        tree.written_areas.clone_from(&tree.areas);
        tree.head_offset = align(tree.head_offset, geometry.page_bytes);
        Ok((tree, now))
    }

    /// The first pnode describes the root index node's and the root inode's LEB. All other LEBs are
    /// empty.
    fn fresh_properties(geometry: &Geometry) -> Vec<Properties> {
        let none = Properties {
            free: geometry.leb_bytes,
            dirty: 0,
            flags: 0,
            category: Category::Unknown,
        };
        let mut lebs = vec![none; geometry.main_lebs as usize];
        let root = align(index_node_bytes(1), 8);
        for (leb, node, flags) in [(FIRST_INDEX_LEB, root, INDEX), (FIRST_DATA_LEB, INODE_BYTES, 0)]
        {
            let used = align(node, geometry.page_bytes);
            let free = geometry.leb_bytes - used;
            lebs[leb as usize] = Properties { free, dirty: used - node, flags, ..none };
        }
        lebs
    }

    fn write_fresh_leb<D: NandDriver>(&mut self, ubi: &mut Ubi<D>, now: Ns) -> Result<Ns> {
        let length = align(self.head_offset, self.geometry.page_bytes);
        let area = &mut self.areas[(self.head_leb - self.geometry.lpt.first_leb) as usize];
        area.free = self.geometry.leb_bytes - length;
        area.dirty = length - self.head_offset;
        ubi.change(now, self.head_leb, length)
    }

    /// ubifs_lpt_free: drops the tree from memory. Uncommitted changes are lost; at an unmount
    /// those are only the taken flags.
    pub fn forget(&mut self) {
        self.areas.clone_from(&self.written_areas);
        for area in &mut self.areas {
            area.collected = false;
        }
        self.table_dirty = false;
        for node in &mut self.nodes {
            (node.loaded, node.dirty) = (false, false);
        }
        self.categories = Categories::new(self.geometry.main_lebs);
        self.index_gc = 0;
        self.dirty_index.clear();
        for lp in &mut self.lebs {
            lp.flags &= !TAKEN;
            lp.category = Category::Unknown;
        }
        self.totals.taken_empty_lebs = 0;
        self.count_all_room();
    }

    /// ubifs_lpt_init: reads only the table. The tree is read on demand.
    pub fn mount<D: NandDriver>(&self, ubi: &mut Ubi<D>, now: Ns) -> Result<Ns> {
        ubi.read(now, self.table_leb, self.table_offset, self.geometry.lpt.table_bytes)
    }

    /// Sums for the budget.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Whether a LEB belongs to the index; its properties are in memory.
    pub fn is_index(&self, leb: u32) -> bool {
        self.lebs[self.slot(leb)].flags & INDEX != 0
    }

    /// ubifs_fast_find_frdi_idx.
    pub fn first_freeable_index(&self) -> Option<u32> {
        let slot = self.categories.first(Category::FreeableIndex)?;
        Some(slot + self.geometry.main_first)
    }

    /// Unmaps the LEBs without valid nodes in ubifs_gc_start_commit.
    pub fn free_freeable<D: NandDriver>(&mut self, ubi: &mut Ubi<D>, now: Ns) -> Result<Ns> {
        let mut now = now;
        while let Some(slot) = self.categories.first(Category::Freeable) {
            let leb = slot + self.geometry.main_first;
            now = ubi.unmap(now, leb)?;
            let free = Some(self.geometry.leb_bytes);
            let change = Change { free, dirty: Some(0), ..Change::default() };
            now = self.change(ubi, now, leb, change)?;
        }
        Ok(now)
    }

    /// Whether the tree has changes to commit (`nroot` dirty).
    pub fn is_dirty(&self) -> bool {
        self.nodes[self.nodes.len() - 1].dirty
    }

    /// `nhead_lnum` and `nhead_offs`.
    pub fn head(&self) -> (u32, u32) {
        (self.head_leb, self.head_offset)
    }

    fn bytes_of(&self, node: u32) -> u32 {
        if node < self.geometry.lpt.pnodes {
            self.geometry.lpt.pnode_bytes
        } else {
            self.geometry.lpt.nnode_bytes
        }
    }

    /// The node on a level above a pnode; for level 0 the pnode itself.
    fn node_above(&self, pnode: u32, level: usize) -> usize {
        (self.levels[level] + (pnode >> (LPT_FANOUT_SHIFT * level as u32))) as usize
    }

    /// The nodes from the root down to a pnode.
    fn path(&self, pnode: u32) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.levels.len()).rev().map(move |level| self.node_above(pnode, level))
    }

    pub(super) fn slot(&self, leb: u32) -> usize {
        (leb - self.geometry.main_first) as usize
    }

    /// ubifs_lpt_lookup: reads the missing nodes on the path to a LEB's pnode.
    pub(super) fn load<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        leb: u32,
    ) -> Result<Ns> {
        let pnode = (leb - self.geometry.main_first) / LPT_FANOUT;
        if self.nodes[pnode as usize].loaded {
            return Ok(now);
        }
        let mut now = now;
        let missing: Vec<usize> = self.path(pnode).filter(|&n| !self.nodes[n].loaded).collect();
        for index in missing {
            now = self.read_node(ubi, now, index)?;
            self.nodes[index].loaded = true;
        }
        self.update_categories(pnode);
        Ok(now)
    }

    /// read_pnode and read_nnode; a node that was never written describes empty LEBs.
    fn read_node<D: NandDriver>(&self, ubi: &mut Ubi<D>, now: Ns, index: usize) -> Result<Ns> {
        let Node { leb, offset, .. } = self.nodes[index];
        if leb == NOWHERE {
            return Ok(now);
        }
        ubi.read(now, leb, offset, self.bytes_of(index as u32))
    }

    /// update_cats: categorises the LEBs of a pnode that was loaded.
    fn update_categories(&mut self, pnode: u32) {
        let first = pnode * LPT_FANOUT;
        for slot in first..(first + LPT_FANOUT).min(self.geometry.main_lebs) {
            let category = self.categorize(&self.lebs[slot as usize]);
            self.categories.enter(&mut self.lebs, slot, category);
        }
    }

    /// scan_get_nnode and scan_get_pnode: reads the nodes of a path that neither the tree nor the
    /// scan has (`held`, from the top down).
    pub(super) fn hold_path<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        mut now: Ns,
        pnode: u32,
        held: &mut Vec<usize>,
    ) -> Result<Ns> {
        let path: Vec<usize> = self.path(pnode).collect();
        let same = path.iter().zip(held.iter()).take_while(|(a, b)| a == b).count();
        held.truncate(same);
        for &index in &path[same..] {
            if !self.nodes[index].loaded {
                now = self.read_node(ubi, now, index)?;
            }
            held.push(index);
        }
        Ok(now)
    }

    /// LPT_SCAN_ADD: keeps what the scan has read.
    pub(super) fn keep_path(&mut self, pnode: u32) {
        let path: Vec<usize> = self.path(pnode).collect();
        let was_loaded = self.nodes[pnode as usize].loaded;
        for index in path {
            self.nodes[index].loaded = true;
        }
        if !was_loaded {
            self.update_categories(pnode);
        }
    }

    /// ubifs_lpt_lookup_dirty.
    #[inline]
    pub(super) fn load_dirty<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        leb: u32,
    ) -> Result<Ns> {
        let pnode = (leb - self.geometry.main_first) / LPT_FANOUT;
        if self.nodes[pnode as usize].dirty {
            return Ok(now);
        }
        self.load_and_dirty(ubi, now, leb)
    }

    #[inline(never)]
    fn load_and_dirty<D: NandDriver>(&mut self, ubi: &mut Ubi<D>, now: Ns, leb: u32) -> Result<Ns> {
        let now = self.load(ubi, now, leb)?;
        self.dirty_path((leb - self.geometry.main_first) / LPT_FANOUT);
        Ok(now)
    }

    /// Makes a pnode and its ancestors dirty, up to the first that already is.
    fn dirty_path(&mut self, pnode: u32) {
        for level in 0..self.levels.len() {
            let index = self.node_above(pnode, level);
            if std::mem::replace(&mut self.nodes[index].dirty, true) {
                break;
            }
            let (leb, bytes) = (self.nodes[index].leb, self.bytes_of(index as u32));
            if leb != NOWHERE {
                self.area(leb).dirty += bytes;
            }
        }
        if !self.table_dirty {
            self.table_dirty = true;
            let bytes = self.geometry.lpt.table_bytes;
            self.area(self.table_leb).dirty += bytes;
        }
    }

    fn area(&mut self, leb: u32) -> &mut Area {
        &mut self.areas[(leb - self.geometry.lpt.first_leb) as usize]
    }

    /// ubifs_lpt_start_commit: lays the dirty nodes out and marks them clean. Returns the writes.
    pub fn start_commit<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
    ) -> Result<(Vec<LebWrite>, Ns)> {
        self.collect_trivially();
        if !self.is_dirty() {
            return Ok((Vec::new(), now));
        }
        let mut now = now;
        if self.needs_whole_write() {
            for pnode in 0..self.geometry.lpt.pnodes {
                let leb = self.geometry.main_first + pnode * LPT_FANOUT;
                now = self.load_dirty(ubi, now, leb)?;
            }
            self.collect_trivially();
        }
        Ok((self.layout(now)?, now))
    }

    /// lpt_tgc_start.
    fn collect_trivially(&mut self) {
        let first = self.geometry.lpt.first_leb;
        for (slot, area) in self.areas.iter_mut().enumerate() {
            let dead = area.free + area.dirty == self.geometry.leb_bytes;
            if slot as u32 + first != self.head_leb && area.dirty > 0 && dead {
                *area = Area { free: self.geometry.leb_bytes, dirty: 0, collected: true };
            }
        }
    }

    /// need_write_all: less space than twice the tree is left.
    fn needs_whole_write(&self) -> bool {
        let first = self.geometry.lpt.first_leb;
        let whole = self.geometry.leb_bytes;
        let mut free = 0;
        for (slot, area) in self.areas.iter().enumerate() {
            if slot as u32 + first == self.head_leb {
                free += u64::from(whole - self.head_offset);
            } else if area.free + area.dirty == whole {
                free += u64::from(whole);
            }
        }
        free <= u64::from(self.geometry.lpt.total_bytes) * 2
    }

    /// layout_cnodes: lays out the nodes from the leaves up, and the table as soon as it fits.
    fn layout(&mut self, now: Ns) -> Result<Vec<LebWrite>> {
        let whole = self.geometry.leb_bytes;
        let table_bytes = self.geometry.lpt.table_bytes;
        let mut writes = Vec::new();
        let mut from = self.head_offset;
        let mut table_done = self.head_offset + table_bytes <= whole;
        if table_done {
            self.place_table();
        }
        for node in self.commit_order() {
            let bytes = self.bytes_of(node as u32);
            if self.head_offset + bytes > whole {
                self.finish_leb(&mut writes, from);
                self.next_head(now)?;
                from = 0;
                if !std::mem::replace(&mut table_done, true) {
                    self.place_table();
                }
            }
            let placed = &mut self.nodes[node];
            (placed.leb, placed.offset) = (self.head_leb, self.head_offset);
            placed.dirty = false;
            self.head_offset += bytes;
        }
        if !table_done {
            if self.head_offset + table_bytes > whole {
                self.finish_leb(&mut writes, from);
                self.next_head(now)?;
                from = 0;
            }
            self.place_table();
        }
        self.finish_leb(&mut writes, from);
        self.head_offset = align(self.head_offset, self.geometry.page_bytes);
        self.table_dirty = false;
        self.written_areas.clone_from(&self.areas);
        Ok(writes)
    }

    fn place_table(&mut self) {
        (self.table_leb, self.table_offset) = (self.head_leb, self.head_offset);
        self.head_offset += self.geometry.lpt.table_bytes;
    }

    fn finish_leb(&mut self, writes: &mut Vec<LebWrite>, from: u32) {
        let (leb, end) = (self.head_leb, self.head_offset);
        let aligned = align(end, self.geometry.page_bytes);
        let whole = self.geometry.leb_bytes;
        let area = self.area(leb);
        area.free = whole - aligned;
        area.dirty += aligned - end;
        if aligned > from {
            writes.push(LebWrite { leb, offset: from, bytes: aligned - from });
        }
    }

    /// alloc_lpt_leb: the next empty LEB of the area, with wrap-around.
    fn next_head(&mut self, now: Ns) -> Result<()> {
        let lebs = self.geometry.lpt.lebs;
        let first = self.geometry.lpt.first_leb;
        for step in 1..=lebs {
            let slot = (self.head_leb - first + step) % lebs;
            let area = &self.areas[slot as usize];
            if !area.collected && area.free == self.geometry.leb_bytes {
                self.head_leb = first + slot;
                self.head_offset = 0;
                return Ok(());
            }
        }
        Err(FsError::NoSpace(now))
    }

    /// first_dirty_cnode, next_dirty_cnode: children before their parent.
    fn commit_order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        for pnode in 0..self.geometry.lpt.pnodes {
            if self.nodes[pnode as usize].dirty {
                order.push(pnode as usize);
            }
            let mut level = 1;
            let mut next = pnode + 1;
            let last = next == self.geometry.lpt.pnodes;
            while level < self.levels.len() && (last || next % LPT_FANOUT == 0) {
                let index = pnode >> (LPT_FANOUT_SHIFT * level as u32);
                let node = (self.levels[level] + index) as usize;
                if self.nodes[node].dirty {
                    order.push(node);
                }
                next /= LPT_FANOUT;
                level += 1;
            }
        }
        order
    }

    /// write_cnodes: unmaps a LEB before its first write.
    pub fn end_commit<D: NandDriver>(
        &self,
        ubi: &mut Ubi<D>,
        now: Ns,
        writes: &[LebWrite],
    ) -> Result<Ns> {
        let mut now = now;
        for write in writes {
            if write.offset == 0 {
                now = ubi.unmap(now, write.leb)?;
            }
            now = ubi.write(now, write.leb, write.offset, write.bytes)?;
        }
        Ok(now)
    }

    /// lpt_tgc_end.
    pub fn post_commit<D: NandDriver>(&mut self, ubi: &mut Ubi<D>, now: Ns) -> Result<Ns> {
        let mut now = now;
        for (slot, area) in self.areas.iter_mut().enumerate() {
            if std::mem::take(&mut area.collected) {
                now = ubi.unmap(now, self.geometry.lpt.first_leb + slot as u32)?;
            }
        }
        Ok(now)
    }
}
