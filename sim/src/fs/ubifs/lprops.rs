//! LEB properties: how full each LEB of the main area is.
//!
//! Mirrors fs/ubifs/lprops.c (ubifs_change_lp, ubifs_categorize_lprops) of Linux 6.1; the heaps and lists are
//! in heap.rs, which LEB is taken next is in find.rs.
//!
//! Invariant: the totals are the sums over all LEBs, whether their part of the LPT is loaded or not.

use super::geometry::{align, index_node_bytes, SMALLEST_WRITE_BYTES};
use super::heap::Category;
use super::lpt::Lpt;
use crate::chip::Flash;
use crate::fs::Result;
use crate::ubi::Ubi;
use crate::units::Ns;

/// LPROPS_TAKEN: not to be given out.
pub const TAKEN: u8 = 1;
/// LPROPS_INDEX: holds index nodes.
pub const INDEX: u8 = 2;

/// Of a LEB (`struct ubifs_lprops`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties {
    pub free: u32,
    pub dirty: u32,
    pub flags: u8,
    pub category: Category,
}

/// A change to a LEB's properties; `None` leaves the value (LPROPS_NC).
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    pub free: Option<u32>,
    pub dirty: Option<u32>,
    /// Added to the dirty bytes.
    pub more_dirty: u32,
    pub set: u8,
    pub clear: u8,
}

/// Sums over the main area (`ubifs_lp_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub empty_lebs: u32,
    pub taken_empty_lebs: u32,
    pub index_lebs: u32,
    pub used_bytes: u64,
    pub dead_bytes: u64,
    pub dark_bytes: u64,
}

impl Lpt {
    /// ubifs_categorize_lprops.
    pub(super) fn categorize(&self, lp: &Properties) -> Category {
        let index = lp.flags & INDEX != 0;
        if lp.flags & TAKEN != 0 {
            Category::Uncategorized
        } else if lp.free == self.geometry.leb_bytes {
            Category::Empty
        } else if lp.free + lp.dirty == self.geometry.leb_bytes {
            if index {
                Category::FreeableIndex
            } else {
                Category::Freeable
            }
        } else if index {
            if lp.dirty + lp.free >= align(index_node_bytes(1), 8) {
                Category::DirtyIndex
            } else {
                Category::Uncategorized
            }
        } else if lp.dirty >= self.geometry.dead_bytes && lp.dirty > lp.free {
            Category::Dirty
        } else if lp.free > 0 {
            Category::Free
        } else {
            Category::Uncategorized
        }
    }

    /// ubifs_calc_dark.
    fn dark(&self, space: u32) -> u32 {
        let dark = self.geometry.dark_bytes;
        if space < dark {
            space
        } else if space - dark < SMALLEST_WRITE_BYTES {
            space - SMALLEST_WRITE_BYTES
        } else {
            dark
        }
    }

    /// Takes a LEB's share out of the sums, or puts it in.
    #[inline]
    fn account(&mut self, lp: &Properties, add: bool) {
        let empty = lp.free == self.geometry.leb_bytes;
        let space = lp.free + lp.dirty;
        let data = lp.flags & INDEX == 0;
        let dead = if data && space < self.geometry.dead_bytes { space } else { 0 };
        let dark = if data && space >= self.geometry.dead_bytes { self.dark(space) } else { 0 };
        let used = if data { self.geometry.leb_bytes - space } else { 0 };
        let sum = |total: &mut u64, part: u32| {
            *total = if add { *total + u64::from(part) } else { *total - u64::from(part) };
        };
        let count = |total: &mut u32, part: bool| {
            *total = if add { *total + u32::from(part) } else { *total - u32::from(part) };
        };
        let totals = &mut self.totals;
        sum(&mut totals.used_bytes, used);
        sum(&mut totals.dead_bytes, dead);
        sum(&mut totals.dark_bytes, dark);
        count(&mut totals.empty_lebs, empty);
        count(&mut totals.taken_empty_lebs, empty && lp.flags & TAKEN != 0);
        count(&mut totals.index_lebs, !data);
    }

    /// Takes a LEB out of `lebs_by_room`, or puts it in.
    fn count_room(&mut self, lp: &Properties, add: bool) {
        if lp.flags & (TAKEN | INDEX) != 0 || lp.free == self.geometry.leb_bytes {
            return;
        }
        let lebs = self.lebs_by_room.entry(lp.free).or_default();
        *lebs = if add { *lebs + 1 } else { *lebs - 1 };
        if *lebs == 0 {
            self.lebs_by_room.remove(&lp.free);
        }
    }

    /// Counts anew how many LEBs may be written on for so many bytes.
    pub(super) fn count_all_room(&mut self) {
        self.lebs_by_room.clear();
        for slot in 0..self.lebs.len() {
            let lp = self.lebs[slot];
            self.count_room(&lp, true);
        }
    }

    /// Whether any LEB that is partly written has so much room: asked before all of a category are looked at.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        self.lebs_by_room.last_key_value().is_some_and(|(&most, _)| most >= bytes)
    }

    /// ubifs_change_lp and its callers ubifs_change_one_lp and ubifs_update_one_lp.
    pub fn change<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        leb: u32,
        change: Change,
    ) -> Result<Ns> {
        let now = self.load_dirty(ubi, now, leb)?;
        let slot = self.slot(leb);
        let before = self.lebs[slot];
        let mut lp = before;
        lp.free = align(change.free.unwrap_or(lp.free), 8);
        lp.dirty = align(change.dirty.unwrap_or(lp.dirty) + change.more_dirty, 8);
        lp.flags = (lp.flags | change.set) & !change.clear;
        if self.is_replaying {
            lp.dirty = lp.dirty.min(self.geometry.leb_bytes - lp.free);
        }
        assert!(lp.free + lp.dirty <= self.geometry.leb_bytes, "LEB {leb} over-full");
        self.lebs[slot] = lp;
        self.account(&before, false);
        self.account(&lp, true);
        if (before.free, before.flags) != (lp.free, lp.flags) {
            self.count_room(&before, false);
            self.count_room(&lp, true);
        }
        self.refile(slot);
        Ok(now)
    }

    /// change_category.
    fn refile(&mut self, slot: usize) {
        let category = self.categorize(&self.lebs[slot]);
        let slot = slot as u32;
        if category == self.lebs[slot as usize].category {
            self.categories.adjust(&self.lebs, slot, category);
        } else {
            self.categories.leave(&self.lebs, slot);
            self.categories.enter(&mut self.lebs, slot, category);
        }
    }

    /// Free and dirty bytes of a LEB (ubifs_read_one_lp), whose properties are in memory.
    pub fn space(&self, leb: u32) -> (u32, u32) {
        let lp = &self.lebs[self.slot(leb)];
        (lp.free, lp.dirty)
    }
}
