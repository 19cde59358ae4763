//! Replay: the nodes of the journal since the last commit return to the index.
//!
//! Mirrors fs/ubifs/replay.c (replay_bud, apply_replay_list, apply_replay_entry,
//! inode_still_linked, trun_remove_range, set_buds_lprops) and of recovery.c ubifs_recover_leb with
//! drop_last_group and drop_last_node, and ubifs_recover_size_accum, of Linux 6.1. The dirty space
//! of LEBs is computed from the index afterwards instead of being summed up during the replay.
//!
//! Invariant: nodes are applied in the order in which they were created, whatever LEB they are in.

use super::geometry::{align, BASE_HEAD, GC_HEAD};
use super::key::{Key, Place};
use super::log::Bud;
use super::properties::{Change, INDEX, TAKEN};
use super::scan::Node;
use super::stored::{Stored, What};
use super::Ubifs;
use crate::fs::{Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// What the journal says about a file's size (struct size_entry).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// The size in its inode node, if the journal has one.
    pub inode_bytes: Option<u64>,
    /// The end of its data.
    pub data_bytes: u64,
}

/// A node of a bud.
struct Entry {
    key: Key,
    place: Place,
    data_bytes: u32,
    stored: Stored,
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_replay_journal of a clean dump with nodes in its journal. A remount as read-only
    /// leaves them, all whole.
    pub(super) fn replay_whole_buds(&mut self, now: Ns) -> Result<Ns> {
        let buds = self.journal.buds.clone();
        let now = self.replay_journal(now, &buds, false)?.1;
        self.find_inodes();
        Ok(now)
    }

    /// ubifs_replay_journal after the log was read. After a power cut it `repairs` the ends of
    /// buds.
    pub(super) fn replay_journal(
        &mut self,
        now: Ns,
        buds: &[Bud],
        repairs: bool,
    ) -> Result<(BTreeMap<u32, Sizes>, Ns)> {
        let mut now = now;
        let mut entries = Vec::new();
        let mut ends = BTreeMap::new();
        for (number, bud) in buds.iter().enumerate() {
            let is_last = !buds[number + 1..].iter().any(|later| later.head == bud.head);
            let (end, later) = self.replay_bud(now, bud, repairs && is_last, &mut entries)?;
            now = later;
            ends.insert(bud.leb, end);
            if is_last {
                self.seek_head(bud.head, bud.leb, end);
            }
        }
        entries.sort_by_key(|entry| entry.stored.sequence);
        let mut sizes = BTreeMap::new();
        self.lpt.is_replaying = true;
        let linked = still_linked(&entries);
        for entry in &entries {
            self.next_inode = self.next_inode.max(entry.key.inum() + 1);
            let is_unlinked = matches!(entry.stored.what, What::Inode { links: 0, .. });
            if !(is_unlinked && linked.contains(&entry.key.inum())) {
                now = self.apply(now, entry)?;
            }
            accumulate(&mut sizes, entry);
        }
        now = self.set_buds_lprops(now, &ends)?;
        self.lpt.is_replaying = false;
        Ok((sizes, now))
    }

    /// replay_bud: the nodes of a LEB from the start of its bud. A head's last LEB is rewritten
    /// without a torn node. Returns the offset of its free space.
    fn replay_bud(
        &mut self,
        now: Ns,
        bud: &Bud,
        repairs: bool,
        entries: &mut Vec<Entry>,
    ) -> Result<(u32, Ns)> {
        let (whole, page) = (self.geometry.leb_bytes, self.geometry.page_bytes);
        let mut now = self.ubi.read(now, bud.leb, bud.start, whole - bud.start)?;
        let readable = self.ubi.readable_bytes(bud.leb);
        let mut nodes = self.written.nodes(bud.leb);
        let ends_in = |node: &Node| node.offset + u32::from(node.bytes) <= readable;
        let kept = nodes.iter().take_while(|node| ends_in(node)).count();
        let mut end = nodes.get(kept).map_or(readable, |node| node.offset.min(readable));
        nodes.truncate(kept);
        let page_start = end / page * page;
        while let Some(node) = nodes.last().copied().filter(|node| node.offset >= bud.start) {
            let in_group = bud.head == BASE_HEAD && self.stored(bud.leb, &node).more_follow;
            let in_torn_page = bud.head == GC_HEAD && end > page_start;
            if !(in_group || in_torn_page) {
                break;
            }
            nodes.pop();
            end = node.offset;
        }
        let end = align(end, page).max(bud.start);
        for node in nodes.iter().filter(|node| node.offset >= bud.start) {
            let place = Place { leb: bud.leb, offset: node.offset, bytes: u32::from(node.bytes) };
            let stored = self.stored(bud.leb, node).clone();
            let data_bytes = u32::from(node.extra);
            entries.push(Entry { key: node.key, place, data_bytes, stored });
        }
        self.written.set(bud.leb, &nodes);
        if repairs {
            now = self.rewrite_leb(now, bud.leb, bud.start, end)?;
        }
        Ok((end, now))
    }

    fn stored(&self, leb: u32, node: &Node) -> &Stored {
        let on_flash = self.on_flash.as_ref().expect("kept where the power can fail");
        on_flash.nodes.get(&(leb, node.offset)).expect("a node that was written")
    }

    /// apply_replay_entry.
    fn apply(&mut self, now: Ns, entry: &Entry) -> Result<Ns> {
        let Entry { key, place, data_bytes, stored } = entry;
        let (key, place) = (*key, *place);
        match stored.what {
            What::Entry { target: None, .. } => self.forget_name(now, key),
            What::Entry { .. } => self.add_name(now, key, place),
            What::Inode { links: 0, .. } => self.remove_inode(now, key.inum()),
            What::Inode { .. } => self.add_leaf(now, key, place),
            What::Data(_) => {
                self.tnc.add(&mut self.ubi, &mut self.lpt, now, key, place, *data_bytes)
            }
            What::Truncation { old_bytes, new_bytes } => {
                let page = u64::from(PAGE_BYTES);
                let first = Key::data(key.inum(), new_bytes.div_ceil(page) as u32);
                let last = Key::data(key.inum(), old_bytes.div_ceil(page).max(1) as u32 - 1);
                self.tnc.remove_range(&mut self.ubi, &mut self.lpt, now, first, last)
            }
        }
    }

    /// ubifs_tnc_remove_nm of a name that may be missing.
    fn forget_name(&mut self, now: Ns, key: Key) -> Result<Ns> {
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, key)?;
        match leaf {
            Some(_) => self.remove_name(now, key),
            None => Ok(now),
        }
    }

    /// set_buds_lprops: marks buds as taken, and counts all that the index does not refer to in a
    /// data LEB as dirty.
    fn set_buds_lprops(&mut self, mut now: Ns, ends: &BTreeMap<u32, u32>) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let mut used = BTreeMap::new();
        for (_, place) in self.tnc.leaves() {
            *used.entry(place.leb).or_insert(0) += align(place.bytes, 8);
        }
        for leb in self.geometry.main_first..self.geometry.main_first + self.geometry.main_lebs {
            let (free, dirty) = self.lpt.space(leb);
            let end = ends.get(&leb).copied();
            if self.lpt.is_index(leb) && end.is_none() {
                continue;
            }
            let free_now = end.map_or(free, |end| whole - end);
            let dirty_now = whole - free_now - used.get(&leb).copied().unwrap_or(0);
            if end.is_some() || (free, dirty) != (free_now, dirty_now) {
                let set = if end.is_some() { TAKEN } else { 0 };
                let (free, dirty) = (Some(free_now), Some(dirty_now));
                let change = Change { free, dirty, more_dirty: 0, set, clear: INDEX };
                now = self.lpt.change(&mut self.ubi, now, leb, change)?;
            }
        }
        Ok(now)
    }
}

/// inode_still_linked: inodes whose last node has a link count above 0.
fn still_linked(entries: &[Entry]) -> BTreeSet<u32> {
    let mut linked = BTreeSet::new();
    for Entry { key, stored, .. } in entries {
        match stored.what {
            What::Inode { links: 0, .. } => linked.remove(&key.inum()),
            What::Inode { .. } => linked.insert(key.inum()),
            _ => false,
        };
    }
    linked
}

/// ubifs_recover_size_accum.
fn accumulate(sizes: &mut BTreeMap<u32, Sizes>, entry: &Entry) {
    let inum = entry.key.inum();
    match entry.stored.what {
        What::Inode { links: 0, .. } => {
            sizes.remove(&inum);
        }
        What::Inode { size_bytes, .. } => {
            sizes.entry(inum).or_default().inode_bytes = Some(size_bytes);
        }
        What::Data(_) => {
            let start = u64::from(entry.key.block()) * u64::from(PAGE_BYTES);
            let size = sizes.entry(inum).or_default();
            size.data_bytes = size.data_bytes.max(start + u64::from(entry.data_bytes));
        }
        What::Truncation { new_bytes, .. } => {
            if let Some(size) = sizes.get_mut(&inum) {
                size.data_bytes = new_bytes;
            }
        }
        What::Entry { .. } => {}
    }
}
