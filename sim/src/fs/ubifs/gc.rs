//! Garbage collection: moves the valid nodes out of a dirty LEB, which becomes free.
//!
//! Mirrors fs/ubifs/gc.c (ubifs_garbage_collect, ubifs_garbage_collect_leb, move_nodes, sort_nodes,
//! switch_gc_head, ubifs_gc_start_commit, ubifs_gc_end_commit) of Linux 6.1. Data nodes move first,
//! in the order of inode and block, then inodes, then entries. The nodes of an index LEB are not
//! moved: their znodes become dirty, and the LEB is free after the next commit.
//!
//! Invariant: the LEB reserved for the collector (`gc_lnum`) is empty and taken. There is none
//! while the GC head writes to it.

use super::find::DirtyLeb;
use super::geometry::{BASE_HEAD, DATA_HEAD, GC_HEAD};
use super::key::Key;
use super::log::CommitState;
use super::properties::{Change, INDEX, TAKEN};
use super::scan::Node;
use super::Ubifs;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;
use crate::waits::{over, Wait};

/// SOFT_LEBS_LIMIT and HARD_LEBS_LIMIT.
const SOFT_LEBS_LIMIT: u32 = 4;
const HARD_LEBS_LIMIT: u32 = 32;

/// The outcome of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// This LEB is free, and taken.
    Leb(u32),
    /// -EAGAIN: the caller has to commit first.
    Again,
    /// -ENOSPC: no LEB is dirty enough.
    NoSpace,
}

/// The outcome for one LEB (LEB_FREED and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Freed,
    FreedIndex,
    Retained,
    /// Its nodes have nowhere to go before a commit.
    Again,
}

/// A former index LEB, to be unmapped after a commit (`struct ubifs_gced_idx_leb`).
#[derive(Clone, Copy, Debug)]
pub struct CollectedIndex {
    leb: u32,
    /// The running commit may unmap it.
    unmap: bool,
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_garbage_collect: collects until a LEB is free. Unless `anyway` is set, an empty LEB
    /// will do.
    pub(super) fn garbage_collect(&mut self, now: Ns, anyway: bool) -> Result<(Collected, Ns)> {
        let before = self.ubi.mtd_mut().enter(now, Wait::Collection);
        let done = self.collect(now, anyway);
        self.ubi.mtd_mut().enter(over(&done, now), before);
        done
    }

    fn collect(&mut self, now: Ns, anyway: bool) -> Result<(Collected, Ns)> {
        if self.should_commit() {
            return Ok((Collected::Again, now));
        }
        self.check_writable(now)?;
        let (collected, now) = self.collect_lebs(now, anyway)?;
        let collected = match collected {
            Collected::NoSpace if !self.collected_index.is_empty() => {
                self.journal.commit_state = CommitState::Required;
                Collected::Again
            }
            other => other,
        };
        let now = self.sync_head(now, GC_HEAD)?;
        let now = match self.gc_leb {
            Some(leb) => self.ubi.unmap(now, leb)?,
            None => now,
        };
        Ok((collected, now))
    }

    /// ubifs_gc_should_commit: turns a background commit request into a required commit.
    fn should_commit(&mut self) -> bool {
        if self.journal.commit_state == CommitState::Background {
            self.journal.commit_state = CommitState::Required;
        }
        self.journal.commit_state == CommitState::Required
    }

    /// The loop of ubifs_garbage_collect.
    fn collect_lebs(&mut self, mut now: Ns, anyway: bool) -> Result<(Collected, Ns)> {
        let (dead, dark) = (self.geometry.dead_bytes, self.geometry.dark_bytes);
        let mut min_space = dead;
        for round in 0.. {
            if self.should_commit() {
                return Ok((Collected::Again, now));
            }
            if round > SOFT_LEBS_LIMIT && !self.collected_index.is_empty() {
                self.journal.commit_state = CommitState::Required;
                return Ok((Collected::Again, now));
            }
            if round > HARD_LEBS_LIMIT {
                break;
            }
            let index_lebs = self.budget.index_lebs_min();
            let victim = self.victim.as_deref_mut();
            let wish = DirtyLeb { bytes: min_space, pick_free: !anyway, index_lebs, victim };
            let found = self.lpt.find_dirty_leb(&mut self.ubi, now, wish)?;
            let (Some(leb), later) = found else { return Ok((Collected::NoSpace, found.1)) };
            let before = self.gc_space();
            let (outcome, later) = self.collect_leb(later, leb)?;
            now = later;
            match outcome {
                Outcome::Again => {
                    let now = self.return_leb(now, leb)?;
                    return Ok((Collected::Again, now));
                }
                Outcome::Freed => return Ok((Collected::Leb(leb), now)),
                Outcome::FreedIndex => {}
                Outcome::Retained if self.gc_space() > before => {
                    min_space = (min_space / 2).max(dead);
                }
                Outcome::Retained if round < SOFT_LEBS_LIMIT => {}
                Outcome::Retained => min_space = (min_space * 2).min(dark),
            }
        }
        Ok((Collected::NoSpace, now))
    }

    /// Free bytes after the GC head.
    fn gc_space(&self) -> u32 {
        let head = &self.journal.heads[GC_HEAD];
        head.leb.map_or(0, |_| self.geometry.leb_bytes - head.offset - head.used)
    }

    /// ubifs_garbage_collect_leb.
    fn collect_leb(&mut self, now: Ns, leb: u32) -> Result<(Outcome, Ns)> {
        let whole = self.geometry.leb_bytes;
        let (free, dirty) = self.lpt.space(leb);
        if free + dirty == whole {
            return self.collect_free_leb(now, leb, free);
        }
        let now = self.ubi.read(now, leb, 0, whole)?;
        let nodes = self.written.nodes(leb);
        if self.lpt.is_index(leb) {
            return self.collect_index_leb(now, leb, &nodes);
        }
        let (moved, now) = self.move_nodes(now, leb, &nodes)?;
        if !moved {
            return Ok((Outcome::Again, now));
        }
        let now = self.sync_other_heads(now)?;
        let change = Change { free: Some(whole), dirty: Some(0), ..Change::default() };
        let now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        if self.gc_leb.is_none() {
            self.gc_leb = Some(leb);
            return Ok((Outcome::Retained, now));
        }
        let now = self.sync_head(now, GC_HEAD)?;
        Ok((Outcome::Freed, self.ubi.unmap(now, leb)?))
    }

    /// Frees a LEB without valid nodes.
    fn collect_free_leb(&mut self, now: Ns, leb: u32, free: u32) -> Result<(Outcome, Ns)> {
        let whole = self.geometry.leb_bytes;
        let mut now = now;
        if free != whole {
            now = self.sync_other_heads(now)?;
            let change = Change { free: Some(whole), dirty: Some(0), ..Change::default() };
            now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        }
        now = self.ubi.unmap(now, leb)?;
        if self.gc_leb.is_none() {
            self.gc_leb = Some(leb);
            return Ok((Outcome::Retained, now));
        }
        Ok((Outcome::Freed, now))
    }

    /// Collects an index LEB: makes every znode in it dirty.
    fn collect_index_leb(
        &mut self,
        mut now: Ns,
        leb: u32,
        nodes: &[Node],
    ) -> Result<(Outcome, Ns)> {
        self.tnc.touch(nodes.iter().map(|node| node.key));
        for node in nodes {
            let (tnc, ubi, lpt) = (&mut self.tnc, &mut self.ubi, &mut self.lpt);
            let at = (leb, node.offset);
            now = tnc.dirty_index_node(ubi, lpt, now, node.key, node.extra as u8, at)?;
        }
        self.collected_index.insert(0, CollectedIndex { leb, unmap: false });
        let free = Some(self.geometry.leb_bytes);
        let change = Change { free, dirty: Some(0), clear: INDEX, ..Change::default() };
        let now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        self.lpt.index_gc += 1;
        Ok((Outcome::FreedIndex, now))
    }

    /// gc_sync_wbufs.
    fn sync_other_heads(&mut self, now: Ns) -> Result<Ns> {
        let now = self.sync_head(now, BASE_HEAD)?;
        self.sync_head(now, DATA_HEAD)
    }

    /// switch_gc_head; returns whether it did, which it does not if the log has no space before a
    /// commit.
    fn switch_gc_head(&mut self, now: Ns) -> Result<(bool, Ns)> {
        let leb = self.gc_leb.expect("a LEB is kept for the collector");
        let now = self.sync_head(now, GC_HEAD)?;
        let now = self.ubi.unmap(now, leb)?;
        let Some(now) = self.add_bud(now, GC_HEAD, leb, 0)? else { return Ok((false, now)) };
        self.gc_leb = None;
        self.seek_head(GC_HEAD, leb, 0);
        Ok((true, now))
    }

    /// sort_nodes: the valid nodes, data by inode and block, then inodes, then entries by directory
    /// and hash.
    fn sort_nodes(&mut self, mut now: Ns, leb: u32, nodes: &[Node]) -> Result<(Sorted, Ns)> {
        let mut sorted = Sorted::default();
        self.tnc.touch(nodes.iter().map(|node| node.key));
        for node in nodes.iter().filter(|node| !node.key.is_truncation()) {
            let (used, later) = self.is_in_use(now, node.key, leb, node.offset)?;
            now = later;
            if !used {
                continue;
            }
            if node.key.is_data() {
                sorted.data.push(*node);
            } else {
                sorted.others.push(*node);
            }
        }
        sorted.data.sort_by_key(|node| node.key);
        sorted.others.sort_by_key(|node| (!node.key.is_inode()).then_some(node.key));
        Ok((sorted, now))
    }

    /// ubifs_tnc_has_node.
    fn is_in_use(&mut self, now: Ns, key: Key, leb: u32, offset: u32) -> Result<(bool, Ns)> {
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, key)?;
        let Some(leaf) = leaf else { return Ok((false, now)) };
        let place = self.tnc.place(leaf);
        if place.leb == leb && place.offset == offset {
            return Ok((true, now));
        }
        if !key.is_hashed() {
            return Ok((false, now));
        }
        // Other names may have the same hash, so the kernel also checks the neighbours on both
        // sides.
        let (_, now) = self.tnc.prev(&mut self.ubi, now, leaf)?;
        let (_, now) = self.tnc.next(&mut self.ubi, now, leaf)?;
        Ok((false, now))
    }

    /// move_nodes: moves to the GC head, first fit, and then on to the reserved LEB. Returns
    /// whether all have moved; some may have where the log has no space for another LEB.
    fn move_nodes(&mut self, now: Ns, leb: u32, nodes: &[Node]) -> Result<(bool, Ns)> {
        let mut now = now;
        if self.journal.heads[GC_HEAD].leb.is_none() {
            let (switched, later) = self.switch_gc_head(now)?;
            now = later;
            if !switched {
                return Ok((false, now));
            }
        }
        let (sorted, later) = self.sort_nodes(now, leb, nodes)?;
        now = later;
        let (mut data, mut others) =
            (sorted.data.into_iter().peekable(), sorted.others.into_iter().peekable());
        loop {
            while let Some(node) = data.next_if(|node| u32::from(node.bytes) <= self.gc_space()) {
                now = self.move_node(now, leb, node)?;
            }
            while let Some(node) = others.next_if(|node| u32::from(node.bytes) <= self.gc_space()) {
                now = self.move_node(now, leb, node)?;
            }
            if data.peek().is_none() && others.peek().is_none() {
                return Ok((true, now));
            }
            let (switched, later) = self.switch_gc_head(now)?;
            now = later;
            if !switched {
                return Ok((false, now));
            }
        }
    }

    /// move_node, and ubifs_tnc_replace.
    fn move_node(&mut self, now: Ns, leb: u32, node: Node) -> Result<Ns> {
        let bytes = u32::from(node.bytes);
        let place = self.next_place(GC_HEAD, bytes);
        let now = self.append(now, GC_HEAD, bytes)?;
        self.written.add(place, node.key, u32::from(node.extra));
        self.store_copy((leb, node.offset), place);
        let (tnc, ubi, lpt) = (&mut self.tnc, &mut self.ubi, &mut self.lpt);
        let (leaf, exact, now) = tnc.lookup_dirty(ubi, lpt, now, node.key)?;
        assert!(exact && tnc.place(leaf).leb == leb, "what was in use still is");
        let data_bytes = tnc.data_bytes(leaf);
        tnc.set_place(ubi, lpt, now, leaf, place, data_bytes)
    }

    /// ubifs_gc_start_commit: unmaps LEBs without valid nodes. Former index LEBs wait for the end
    /// of the commit.
    pub(super) fn gc_start_commit(&mut self, now: Ns) -> Result<Ns> {
        let mut now = self.lpt.free_freeable(&mut self.ubi, now)?;
        for index in &mut self.collected_index {
            index.unmap = true;
        }
        let whole = Some(self.geometry.leb_bytes);
        while let Some(leb) = self.lpt.first_freeable_index() {
            let change = Change {
                free: whole,
                dirty: Some(0),
                set: TAKEN,
                clear: INDEX,
                ..Change::default()
            };
            now = self.lpt.change(&mut self.ubi, now, leb, change)?;
            self.lpt.index_gc += 1;
            self.collected_index.insert(0, CollectedIndex { leb, unmap: true });
        }
        Ok(now)
    }

    /// ubifs_gc_end_commit.
    pub(super) fn gc_end_commit(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        let (done, waiting): (Vec<CollectedIndex>, Vec<CollectedIndex>) =
            std::mem::take(&mut self.collected_index).into_iter().partition(|index| index.unmap);
        self.collected_index = waiting;
        for CollectedIndex { leb, .. } in done {
            now = self.ubi.unmap(now, leb)?;
            now = self.return_leb(now, leb)?;
            self.lpt.index_gc -= 1;
        }
        Ok(now)
    }

    /// get_idx_gc_leb: gives a LEB that waits for the end of the commit back to the index.
    pub(super) fn take_collected_index(&mut self, now: Ns) -> Result<(Option<u32>, Ns)> {
        if self.collected_index.is_empty() {
            return Ok((None, now));
        }
        let leb = self.collected_index.remove(0).leb;
        let change = Change { set: INDEX, ..Change::default() };
        let now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        self.lpt.index_gc -= 1;
        Ok((Some(leb), now))
    }
}

/// The valid nodes of a LEB, in the order in which they are moved.
#[derive(Clone, Debug, Default)]
struct Sorted {
    data: Vec<Node>,
    others: Vec<Node>,
}
