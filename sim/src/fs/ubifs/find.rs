//! Choosing a LEB: for writing, for garbage collection, for the index.
//!
//! Mirrors fs/ubifs/find.c (ubifs_find_free_space, ubifs_find_dirty_leb,
//! ubifs_find_free_leb_for_idx, ubifs_find_dirty_idx_leb) and lpt.c (ubifs_lpt_scan_nolock) of
//! Linux 6.1.
//!
//! Approximate: the kernel's heapsort orders index LEBs with equal dirty space differently.

use super::geometry::{align, index_node_bytes, LPT_FANOUT};
use super::lpt::Lpt;
use super::properties::Category;
use super::properties::{Change, Properties, INDEX, TAKEN};
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;
use crate::victim::{chosen, Candidate, Victim, Why};

/// DEFAULT_LSAVE_CNT.
const SAVED_LEBS: u32 = 256;
const TAKE: Change = Change { free: None, dirty: None, more_dirty: 0, set: TAKEN, clear: 0 };

/// The LEB that the collector asks for.
#[derive(Debug)]
pub(super) struct DirtyLeb<'a> {
    /// Bytes that it has to free.
    pub bytes: u32,
    /// An empty LEB will do, if the index can spare it.
    pub pick_free: bool,
    /// LEBs that the index needs.
    pub index_lebs: u32,
    /// Chooses in the kernel's place.
    pub victim: Option<&'a mut (dyn Victim + 'static)>,
}

/// The condition of a scan.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// scan_for_free_cb.
    Free { bytes: u32, empty_too: bool },
    /// scan_for_dirty_cb.
    Dirty { bytes: u32, empty_too: bool, no_index: bool },
    /// scan_for_idx_cb.
    ForIndex,
    /// scan_dirty_idx_cb.
    DirtyIndex,
}

impl Lpt {
    fn leb_at(&self, slot: u32) -> u32 {
        slot + self.geometry.main_first
    }

    /// LEBs that the index may still take: empty, freeable, or freeable after the next commit.
    pub fn lebs_for_index(&self) -> u32 {
        let totals = &self.totals;
        totals.empty_lebs + self.categories.freeable + self.index_gc - totals.taken_empty_lebs
    }

    fn suits(&self, lp: &Properties, wanted: Wanted) -> bool {
        let whole = self.geometry.leb_bytes;
        let space = lp.free + lp.dirty;
        let index = lp.flags & INDEX != 0;
        if lp.flags & TAKEN != 0 {
            return false;
        }
        match wanted {
            Wanted::Free { bytes, empty_too } => {
                let fits = !index && lp.free >= bytes && (empty_too || lp.free != whole);
                fits && (space != whole || lp.dirty == 0)
            }
            Wanted::Dirty { bytes, empty_too, no_index } => {
                let enough =
                    if space == whole { empty_too } else { lp.dirty >= self.geometry.dead_bytes };
                space >= bytes && !(no_index && index) && enough
            }
            Wanted::ForIndex => !index && space == whole,
            Wanted::DirtyIndex => index && space >= align(index_node_bytes(1), 8),
        }
    }

    /// ubifs_find_free_space: takes a LEB with `bytes` free and returns it with the offset of its
    /// free space, or none. `squeeze` prefers a partly used LEB to an empty one.
    pub fn find_free_space<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        bytes: u32,
        squeeze: bool,
        index_lebs_min: u32,
    ) -> Result<(Option<(u32, u32)>, Ns)> {
        let totals = &self.totals;
        let reserved = index_lebs_min.saturating_sub(totals.index_lebs);
        let pick_empty =
            reserved < self.lebs_for_index() && totals.empty_lebs > totals.taken_empty_lebs;
        self.totals.taken_empty_lebs += u32::from(pick_empty);
        let found = self.do_find_free_space(ubi, now, bytes, pick_empty, squeeze);
        self.totals.taken_empty_lebs -= u32::from(pick_empty);
        let (leb, now) = found?;
        let Some(leb) = leb else { return Ok((None, now)) };
        let mut now = self.change(ubi, now, leb, TAKE)?;
        let offset = self.geometry.leb_bytes - self.space(leb).0;
        if offset == 0 {
            now = ubi.unmap(now, leb)?;
        }
        Ok((Some((leb, offset)), now))
    }

    fn do_find_free_space<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        bytes: u32,
        empty_too: bool,
        squeeze: bool,
    ) -> Result<(Option<u32>, Ns)> {
        let wanted = Wanted::Free { bytes, empty_too };
        let with_room = |&&slot: &&u32| self.lebs[slot as usize].free >= bytes;
        let categories = &self.categories;
        let partly = categories.heap(Category::Free).first().filter(with_room).copied();
        let empty = categories.first(Category::Empty).filter(|_| empty_too);
        let known = if squeeze { partly.or(empty) } else { empty.or(partly) };
        let known = known.or_else(|| {
            if !self.has_room(bytes) {
                return None;
            }
            let dirty = categories.heap(Category::Dirty).iter().find(with_room).copied();
            dirty.or_else(|| {
                let suits = |&slot: &u32| {
                    let lp = &self.lebs[slot as usize];
                    lp.flags & (TAKEN | INDEX) == 0 && lp.free >= bytes
                };
                categories.list(Category::Uncategorized).find(suits)
            })
        });
        self.known_or_scan(ubi, now, known, wanted)
    }

    /// A LEB from the heaps and lists, else from a scan of the LPT if a part of it is not in
    /// memory.
    fn known_or_scan<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        known: Option<u32>,
        wanted: Wanted,
    ) -> Result<(Option<u32>, Ns)> {
        match known {
            Some(slot) => Ok((Some(self.leb_at(slot)), now)),
            None if self.is_all_loaded() => Ok((None, now)),
            None => self.scan(ubi, now, wanted),
        }
    }

    /// ubifs_find_dirty_leb: takes the LEB to collect.
    pub fn find_dirty_leb<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        wish: DirtyLeb<'_>,
    ) -> Result<(Option<u32>, Ns)> {
        let DirtyLeb { bytes, pick_free, index_lebs, victim } = wish;
        let no_index = index_lebs >= self.totals.index_lebs;
        let reserved = index_lebs.saturating_sub(self.totals.index_lebs);
        let empty_too = pick_free && reserved < self.lebs_for_index();
        let categories = &self.categories;
        let empty =
            || categories.first(Category::Empty).or_else(|| categories.first(Category::Freeable));
        let known = if empty_too { empty() } else { None };
        let wanted = Wanted::Dirty { bytes, empty_too, no_index };
        let blocks = match (&victim, known) {
            (Some(_), None) => self.candidates(ubi, wanted),
            _ => Vec::new(),
        };
        let known = match blocks.is_empty() {
            true => known.or_else(|| self.dirtiest(bytes, no_index)),
            false => None,
        };
        let (leb, now) = match known {
            Some(slot) => (Some(self.leb_at(slot)), now),
            None if !blocks.is_empty() => (chosen(victim, now, Why::Space, &blocks), now),
            None => self.scan_for_dirty(ubi, now, wanted)?,
        };
        let Some(leb) = leb else { return Ok((None, now)) };
        Ok((Some(leb), self.change(ubi, now, leb, TAKE)?))
    }

    /// The LEBs that the collector could take, of those whose properties are in memory.
    fn candidates<D: NandDriver>(&self, ubi: &Ubi<D>, wanted: Wanted) -> Vec<Candidate> {
        let whole = self.geometry.leb_bytes;
        let candidate = |(slot, lp): (u32, &Properties)| {
            let leb = self.leb_at(slot);
            Candidate {
                block: leb,
                live_bytes: whole - lp.free - lp.dirty,
                dirty_bytes: lp.dirty,
                free_bytes: lp.free,
                erases: ubi.erases(leb),
                sequence: None,
                list: lp.category.name(),
            }
        };
        let known = |(_, lp): &(u32, &Properties)| {
            lp.category != Category::Unknown && lp.free + lp.dirty < whole && self.suits(lp, wanted)
        };
        (0..).zip(&self.lebs).filter(known).map(candidate).collect()
    }

    /// The dirtier of the tops of both heaps. An index LEB has to be at least half dirty.
    fn dirtiest(&self, bytes: u32, no_index: bool) -> Option<u32> {
        let space = |&slot: &u32| self.lebs[slot as usize].free + self.lebs[slot as usize].dirty;
        let top = |category| self.categories.heap(category).first().copied();
        let half = self.geometry.leb_bytes / 2;
        let index = top(Category::DirtyIndex)
            .filter(|slot| !no_index && space(slot) >= bytes && space(slot) >= half);
        let data = top(Category::Dirty).filter(|slot| space(slot) >= bytes);
        match (index, data) {
            (Some(index), Some(data)) if space(&index) < space(&data) => Some(data),
            (Some(index), _) => Some(index),
            (None, data) => data,
        }
    }

    /// scan_for_dirty: the heap of free LEBs, then uncategorised LEBs, then the LPT on flash.
    fn scan_for_dirty<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        wanted: Wanted,
    ) -> Result<(Option<u32>, Ns)> {
        let Wanted::Dirty { bytes, no_index, .. } = wanted else { return Ok((None, now)) };
        let dead = self.geometry.dead_bytes;
        let enough = |&slot: &u32| {
            let lp = &self.lebs[slot as usize];
            lp.free + lp.dirty >= bytes && lp.dirty >= dead
        };
        let banned = TAKEN | if no_index { INDEX } else { 0 };
        let known =
            self.categories.heap(Category::Free).iter().copied().find(enough).or_else(|| {
                let allowed = |&slot: &u32| self.lebs[slot as usize].flags & banned == 0;
                self.categories.list(Category::Uncategorized).filter(allowed).find(enough)
            });
        self.known_or_scan(ubi, now, known, wanted)
    }

    /// ubifs_find_free_leb_for_idx.
    pub fn find_for_index<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
    ) -> Result<(Option<u32>, Ns)> {
        let categories = &self.categories;
        let known = categories.first(Category::Empty).or(categories.first(Category::Freeable));
        let unknown = categories.members != self.geometry.main_lebs
            || self.totals.empty_lebs > self.totals.taken_empty_lebs;
        let (leb, now) = match known {
            Some(slot) => (Some(self.leb_at(slot)), now),
            None if unknown => self.scan(ubi, now, Wanted::ForIndex)?,
            None => (None, now),
        };
        let Some(leb) = leb else { return Ok((None, now)) };
        let free = Some(self.geometry.leb_bytes);
        let change = Change { free, dirty: Some(0), set: TAKEN | INDEX, ..Change::default() };
        let now = self.change(ubi, now, leb, change)?;
        Ok((Some(leb), ubi.unmap(now, leb)?))
    }

    /// ubifs_save_dirty_idx_lnums: saves the index LEBs with free or dirty space, the one with most
    /// last.
    pub fn save_dirty_index(&mut self) {
        let slots = self.categories.heap(Category::DirtyIndex);
        let mut slots: Vec<u32> = slots.to_vec();
        slots.sort_by_key(|&slot| self.lebs[slot as usize].free + self.lebs[slot as usize].dirty);
        self.dirty_index = slots.into_iter().map(|slot| self.leb_at(slot)).collect();
    }

    /// ubifs_find_dirty_idx_leb without the LEBs that wait for the end of the commit: an index LEB
    /// with gaps.
    pub fn find_dirty_index<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
    ) -> Result<(Option<u32>, Ns)> {
        let mut now = now;
        while let Some(leb) = self.dirty_index.pop() {
            now = self.load(ubi, now, leb)?;
            if self.lebs[self.slot(leb)].flags & (TAKEN | INDEX) == INDEX {
                return Ok((Some(leb), self.change(ubi, now, leb, TAKE)?));
            }
        }
        let suits = |&slot: &u32| self.suits(&self.lebs[slot as usize], Wanted::DirtyIndex);
        let categories = &self.categories;
        let known = categories.heap(Category::DirtyIndex).iter().copied();
        let known = known.chain(categories.list(Category::FreeableIndex));
        let known = known.chain(categories.list(Category::Uncategorized)).find(suits);
        let (leb, now) = self.known_or_scan(ubi, now, known, Wanted::DirtyIndex)?;
        let Some(leb) = leb else { return Ok((None, now)) };
        self.scanned = leb;
        Ok((Some(leb), self.change(ubi, now, leb, TAKE)?))
    }

    /// `pnodes_have >= pnode_cnt`.
    fn is_all_loaded(&self) -> bool {
        self.categories.members == self.geometry.main_lebs
    }

    /// valuable: whether to keep in memory what a scan has read.
    fn is_valuable(&self, lp: &Properties) -> bool {
        let category = self.categorize(lp);
        match category {
            Category::Dirty | Category::DirtyIndex | Category::Free => {
                let dark = self.geometry.dark_bytes;
                !self.categories.is_full(category) || lp.free + lp.dirty >= dark
            }
            Category::Empty => {
                let totals = &self.totals;
                let spare = totals.empty_lebs + self.categories.freeable;
                spare < SAVED_LEBS + totals.taken_empty_lebs
            }
            Category::Freeable | Category::FreeableIndex => true,
            Category::Unknown | Category::Uncategorized => false,
        }
    }

    /// ubifs_lpt_scan_nolock: scans once around from the LEB where the last scan ended. LPT nodes
    /// that are not in memory are read, and kept only if they hold a valuable LEB.
    fn scan<D: NandDriver>(
        &mut self,
        ubi: &mut Ubi<D>,
        now: Ns,
        wanted: Wanted,
    ) -> Result<(Option<u32>, Ns)> {
        let main = self.geometry.main_lebs;
        let end = self.scanned - self.geometry.main_first;
        let mut held = Vec::new();
        let mut now = now;
        for step in 1..=main {
            let slot = (end + step) % main;
            let pnode = slot / LPT_FANOUT;
            if slot == 0 {
                held.clear();
            }
            now = self.hold_path(ubi, now, pnode, &mut held)?;
            let lp = self.lebs[slot as usize];
            let found = self.suits(&lp, wanted);
            let in_tree = lp.category != Category::Unknown;
            let add = lp.flags & TAKEN == 0 && !in_tree && self.is_valuable(&lp);
            if found || add {
                self.keep_path(pnode);
                if in_tree && lp.category == Category::Uncategorized {
                    self.ensure_category(slot);
                }
            }
            if found {
                self.scanned = self.leb_at(slot);
                return Ok((Some(self.scanned), now));
            }
        }
        Ok((None, now))
    }

    /// ubifs_ensure_cat.
    fn ensure_category(&mut self, slot: u32) {
        let category = self.categorize(&self.lebs[slot as usize]);
        if category != Category::Uncategorized {
            self.categories.leave(&self.lebs, slot);
            self.categories.enter(&mut self.lebs, slot, category);
        }
    }
}
