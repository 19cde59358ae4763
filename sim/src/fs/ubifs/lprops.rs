//! LEB properties: how full each LEB of the main area is, and which one is taken next.
//!
//! Mirrors fs/ubifs/lprops.c (ubifs_change_lp, ubifs_categorize_lprops), find.c
//! (ubifs_find_free_space, ubifs_find_free_leb_for_idx) and the part of gc.c that a commit calls,
//! of Linux 6.1. The lists are the kernel's: last in, first out.
//!
//! Left out: looking for a LEB to collect garbage from. Approximate: of several LEBs with equally
//! much free space the kernel's heap may give another one.
//!
//! Invariants:
//! 1. A LEB is in `empty` or `freeable` exactly while its category says so.
//! 2. The totals are the sums over all LEBs, loaded or not.

use super::geometry::{align, index_node_bytes, SMALLEST_WRITE_BYTES};
use super::lpt::Lpt;
use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::ubi::Ubi;
use crate::units::Ns;

/// LPROPS_TAKEN: not to be given out.
pub const TAKEN: u8 = 1;
/// LPROPS_INDEX: holds index nodes.
pub const INDEX: u8 = 2;

/// What a LEB could be used for (LPROPS_EMPTY and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Unknown,
    Uncategorized,
    Empty,
    Freeable,
    FreeableIndex,
    Dirty,
    DirtyIndex,
    Free,
}

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
    pub(super) fn categorize(&self, leb: u32) -> Category {
        let lp = &self.lebs[self.slot(leb)];
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

    pub(super) fn enter(&mut self, leb: u32, category: Category) {
        match category {
            Category::Empty => self.empty.push(leb),
            Category::Freeable => self.freeable.push(leb),
            _ => {}
        }
        let slot = self.slot(leb);
        self.lebs[slot].category = category;
    }

    fn leave(&mut self, leb: u32) {
        match self.lebs[self.slot(leb)].category {
            Category::Empty => self.empty.retain(|&other| other != leb),
            Category::Freeable => self.freeable.retain(|&other| other != leb),
            _ => {}
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
    fn account(&mut self, leb: u32, add: bool) {
        let lp = self.lebs[self.slot(leb)];
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

    /// ubifs_change_lp and its callers ubifs_change_one_lp and ubifs_update_one_lp.
    pub fn change<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        leb: u32,
        change: Change,
    ) -> Result<Ns> {
        let now = self.load_dirty(ubi, now, leb)?;
        self.account(leb, false);
        let slot = self.slot(leb);
        let lp = &mut self.lebs[slot];
        lp.free = align(change.free.unwrap_or(lp.free), 8);
        lp.dirty = align(change.dirty.unwrap_or(lp.dirty) + change.more_dirty, 8);
        lp.flags = (lp.flags | change.set) & !change.clear;
        assert!(lp.free + lp.dirty <= self.geometry.leb_bytes, "LEB {leb} over-full");
        self.account(leb, true);
        let category = self.categorize(leb);
        if category != self.lebs[slot].category {
            self.leave(leb);
            self.enter(leb, category);
        }
        Ok(now)
    }

    /// ubifs_find_free_space: a LEB with room for `bytes` and the offset of the room, taken.
    /// `squeeze` prefers a LEB in use to an empty one.
    pub fn find_free_space<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        bytes: u32,
        squeeze: bool,
        index_lebs_min: u32,
    ) -> Result<(u32, u32, Ns)> {
        let totals = &self.totals;
        let reserved = index_lebs_min.saturating_sub(totals.index_lebs);
        let empty = totals.empty_lebs - totals.taken_empty_lebs;
        let pick_empty = reserved < empty + self.freeable_lebs() && empty > 0;
        let partly = self.with_most_free().filter(|&leb| self.lebs[self.slot(leb)].free >= bytes);
        let empty = self.empty.last().copied().filter(|_| pick_empty);
        let known = if squeeze { partly.or(empty) } else { empty.or(partly) };
        let known = known.or_else(|| self.dirty_with_free(bytes));
        let (leb, now) = match known {
            Some(leb) => (leb, now),
            None => self.scan(ubi, now, |lp, whole| {
                lp.flags & (TAKEN | INDEX) == 0
                    && lp.free >= bytes
                    && (pick_empty || lp.free != whole)
                    && (lp.free + lp.dirty != whole || lp.dirty == 0)
            })?,
        };
        let mut now = self.change(ubi, now, leb, Change { set: TAKEN, ..Change::default() })?;
        let offset = self.geometry.leb_bytes - self.lebs[self.slot(leb)].free;
        if offset == 0 {
            now = ubi.unmap(now, leb)?;
        }
        Ok((leb, offset, now))
    }

    /// ubifs_find_free_leb_for_idx.
    pub fn find_for_index<F: Flash>(&mut self, ubi: &mut Ubi<F>, now: Ns) -> Result<(u32, Ns)> {
        let known = self.empty.last().or(self.freeable.last()).copied();
        let (leb, now) = match known {
            Some(leb) => (leb, now),
            None => self.scan(ubi, now, |lp, whole| {
                lp.flags & (TAKEN | INDEX) == 0 && lp.free + lp.dirty == whole
            })?,
        };
        let free = Some(self.geometry.leb_bytes);
        let change = Change { free, dirty: Some(0), set: TAKEN | INDEX, ..Change::default() };
        let now = self.change(ubi, now, leb, change)?;
        let now = ubi.unmap(now, leb)?;
        Ok((leb, now))
    }

    /// The top of the heap LPROPS_FREE.
    fn with_most_free(&self) -> Option<u32> {
        let mut best: Option<usize> = None;
        for (slot, lp) in self.lebs.iter().enumerate() {
            if lp.category == Category::Free && best.is_none_or(|b| lp.free > self.lebs[b].free) {
                best = Some(slot);
            }
        }
        best.map(|slot| slot as u32 + self.geometry.main_first)
    }

    fn dirty_with_free(&self, bytes: u32) -> Option<u32> {
        let found =
            self.lebs.iter().position(|lp| lp.category == Category::Dirty && lp.free >= bytes);
        found.map(|slot| slot as u32 + self.geometry.main_first)
    }

    /// ubifs_lpt_scan_nolock: LEB by LEB from where the last scan ended, around once.
    fn scan<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
        wanted: impl Fn(&Properties, u32) -> bool,
    ) -> Result<(u32, Ns)> {
        let main = self.geometry.main_lebs;
        let first = self.scanned - self.geometry.main_first;
        let mut now = now;
        for step in 1..=main {
            let leb = self.geometry.main_first + (first + step) % main;
            if wanted(&self.lebs[self.slot(leb)], self.geometry.leb_bytes) {
                now = self.load(ubi, now, leb)?;
                self.scanned = leb;
                return Ok((leb, now));
            }
        }
        let dirty: u64 = self.lebs.iter().map(|lp| u64::from(lp.dirty)).sum();
        if dirty > u64::from(main) * u64::from(self.geometry.dead_bytes) {
            return Err(FsError::NotModelled("garbage collection in UBIFS"));
        }
        Err(FsError::NoSpace)
    }

    /// The LEBs ubifs_gc_start_commit unmaps: nothing in them is in use.
    pub fn free_freeable<F: Flash>(&mut self, ubi: &mut Ubi<F>, now: Ns) -> Result<Ns> {
        let mut now = now;
        while let Some(&leb) = self.freeable.last() {
            now = ubi.unmap(now, leb)?;
            let free = Some(self.geometry.leb_bytes);
            let change = Change { free, dirty: Some(0), ..Change::default() };
            now = self.change(ubi, now, leb, change)?;
        }
        Ok(now)
    }

    /// Index LEBs without a node in use: ubifs_gc_start_commit takes them and
    /// ubifs_gc_end_commit gives them back.
    pub fn take_freeable_index<F: Flash>(
        &mut self,
        ubi: &mut Ubi<F>,
        now: Ns,
    ) -> Result<(Vec<u32>, Ns)> {
        let first = self.geometry.main_first;
        let is_freeable = |lp: &Properties| lp.category == Category::FreeableIndex;
        let slots = self.lebs.iter().enumerate().filter(|(_, lp)| is_freeable(lp));
        let lebs: Vec<u32> = slots.map(|(slot, _)| slot as u32 + first).collect();
        let free = Some(self.geometry.leb_bytes);
        let change = Change { free, dirty: Some(0), set: TAKEN, clear: INDEX, ..Change::default() };
        let mut now = now;
        for &leb in &lebs {
            now = self.change(ubi, now, leb, change)?;
        }
        Ok((lebs, now))
    }
}
