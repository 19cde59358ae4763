//! LEB properties: the free and dirty space of each LEB of the main area.
//!
//! Mirrors fs/ubifs/lprops.c (ubifs_change_lp, ubifs_categorize_lprops) of Linux 6.1. heap.rs has
//! the heaps and lists; find.rs chooses LEBs.
//!
//! Invariant: the totals are the sums over all LEBs, including those whose part of the LPT is not
//! loaded.

use super::geometry::{align, index_node_bytes, SMALLEST_WRITE_BYTES};
use super::lpt::Lpt;
use super::properties::{Category, Change, Properties, Totals, INDEX, TAKEN};
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

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

    /// Bytes of a LEB of the main area that are of no use.
    pub fn free_and_dirty(&self, leb: u32) -> u32 {
        let lp = &self.lebs[self.slot(leb)];
        lp.free + lp.dirty
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

    /// A LEB's share in the counts of LEBs.
    #[inline]
    fn share_of_lebs(&self, lp: &Properties) -> Totals {
        let empty = lp.free == self.geometry.leb_bytes;
        Totals {
            empty_lebs: empty.into(),
            taken_empty_lebs: (empty && lp.flags & TAKEN != 0).into(),
            index_lebs: (lp.flags & INDEX != 0).into(),
            ..Totals::default()
        }
    }

    /// A LEB's share in the sums of bytes. Index LEBs have none.
    #[inline]
    fn share_of_bytes(&self, lp: &Properties) -> Totals {
        if lp.flags & INDEX != 0 {
            return Totals::default();
        }
        let space = lp.free + lp.dirty;
        let used_bytes = (self.geometry.leb_bytes - space).into();
        if space < self.geometry.dead_bytes {
            Totals { used_bytes, dead_bytes: space.into(), ..Totals::default() }
        } else {
            Totals { used_bytes, dark_bytes: self.dark(space).into(), ..Totals::default() }
        }
    }

    /// Sums the totals over all LEBs.
    pub(super) fn count_totals(&mut self) {
        let mut totals = Totals::default();
        for lp in &self.lebs {
            totals.replace_lebs(&Totals::default(), &self.share_of_lebs(lp));
            totals.replace_bytes(&Totals::default(), &self.share_of_bytes(lp));
        }
        self.totals = totals;
    }

    /// Updates the totals after a LEB's properties changed. Most changes are of dirty bytes alone.
    #[inline]
    fn count(&mut self, before: &Properties, lp: &Properties) {
        if (before.free, before.flags) != (lp.free, lp.flags) {
            let (old, new) = (self.share_of_lebs(before), self.share_of_lebs(lp));
            self.totals.replace_lebs(&old, &new);
            self.count_room(before, false);
            self.count_room(lp, true);
        }
        if before.flags & lp.flags & INDEX == 0 {
            let (old, new) = (self.share_of_bytes(before), self.share_of_bytes(lp));
            self.totals.replace_bytes(&old, &new);
        }
    }

    /// Adds a LEB to `lebs_by_room` or removes it, if it belongs there.
    #[inline]
    fn count_room(&mut self, lp: &Properties, add: bool) {
        if lp.flags & (TAKEN | INDEX) == 0 && lp.free != self.geometry.leb_bytes {
            self.do_count_room(lp, add);
        }
    }

    fn do_count_room(&mut self, lp: &Properties, add: bool) {
        let lebs = self.lebs_by_room.entry(lp.free).or_default();
        *lebs = if add { *lebs + 1 } else { *lebs - 1 };
        if *lebs == 0 {
            self.lebs_by_room.remove(&lp.free);
        }
    }

    /// Recounts `lebs_by_room`.
    pub(super) fn count_all_room(&mut self) {
        self.lebs_by_room.clear();
        for slot in 0..self.lebs.len() {
            let lp = self.lebs[slot];
            self.count_room(&lp, true);
        }
    }

    /// Whether a partly written LEB has `bytes` free: a quick test before a search through a
    /// category.
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        self.lebs_by_room.last_key_value().is_some_and(|(&most, _)| most >= bytes)
    }

    /// ubifs_change_lp and its callers ubifs_change_one_lp and ubifs_update_one_lp.
    pub fn change<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
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
        self.count(&before, &lp);
        self.refile(slot as u32, &lp);
        Ok(now)
    }

    /// change_category.
    #[inline]
    fn refile(&mut self, slot: u32, lp: &Properties) {
        let category = self.categorize(lp);
        if category == lp.category {
            self.categories.adjust(&self.lebs, slot, category);
        } else {
            self.categories.leave(&self.lebs, slot);
            self.categories.enter(&mut self.lebs, slot, category);
        }
    }

    /// Free and dirty bytes of a LEB whose properties are in memory (ubifs_read_one_lp).
    pub fn space(&self, leb: u32) -> (u32, u32) {
        let lp = &self.lebs[self.slot(leb)];
        (lp.free, lp.dirty)
    }
}
