//! Budgeting: whether a write may be accepted into the page cache at all.
//!
//! Mirrors fs/ubifs/budget.c (do_budget_space, ubifs_calc_min_idx_lebs, ubifs_calc_available,
//! ubifs_reported_space, ubifs_get_free_space_nolock) of
//! Linux 6.1 for a program that runs as root, so that the reserved pool may be used. Left out:
//! make_free_space, which writes back, collects garbage and commits before it gives up; a budget
//! that fails here fails for good.

use super::geometry::{align, index_node_bytes, Geometry, DATA_NODE_BYTES, FANOUT};
use super::geometry::{HEADS, INDEX_LEBS_MIN, INODE_BYTES};
use super::lpt::Lpt;
use crate::fs::PAGE_BYTES;

/// DEFAULT_RP_PERCENT, DEFAULT_MAX_RP_SIZE.
const RESERVED_PERCENT: u64 = 5;
const RESERVED_BYTES_MAX: u64 = 5 << 20;

/// What has been promised and not yet written.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Pages that will become data nodes.
    pages: u64,
    /// Index size at the last commit, and the growth since that is already in znodes
    /// (`old_idx_sz`, `uncommitted_idx`).
    old_index_bytes: u64,
    uncommitted_bytes: u64,
}

/// `max_idx_node_sz`.
fn largest_znode() -> u64 {
    u64::from(align(index_node_bytes(FANOUT), 8))
}

/// ubifs_reported_space: what data fits into so many bytes of flash, index nodes set off against it.
fn reported(bytes: u64) -> u64 {
    let index = largest_znode() * 3 / (FANOUT as u64 / 2 - 1);
    bytes * u64::from(PAGE_BYTES) / (u64::from(DATA_NODE_BYTES) + index)
}

impl Budget {
    /// Of a freshly mounted file system.
    pub fn new(index_bytes: u64) -> Budget {
        Budget { pages: 0, old_index_bytes: index_bytes, uncommitted_bytes: 0 }
    }

    /// A page has become dirty.
    pub fn promise_page(&mut self) {
        self.pages += 1;
    }

    /// A dirty page has been written.
    pub fn release_page(&mut self) {
        self.pages = self.pages.saturating_sub(1);
        self.uncommitted_bytes += largest_znode();
    }

    /// A new name and its inode have been written.
    pub fn release_entry(&mut self) {
        self.uncommitted_bytes += 2 * largest_znode();
    }

    /// A commit has laid the index out.
    pub fn committed(&mut self, index_bytes: u64) {
        self.old_index_bytes = index_bytes;
        self.uncommitted_bytes = 0;
    }

    /// ubifs_calc_min_idx_lebs: three times the index, and one for the head.
    pub fn index_lebs_min(&self, geometry: &Geometry) -> u32 {
        let growth = self.pages * largest_znode();
        let bytes = 3 * (self.old_index_bytes + self.uncommitted_bytes + growth);
        let leb = u64::from(geometry.leb_bytes) - largest_znode();
        (bytes.div_ceil(leb) as u32 + 1).max(INDEX_LEBS_MIN)
    }

    /// ubifs_calc_available, with `index_lebs` of index.
    fn available(geometry: &Geometry, lpt: &Lpt, index_lebs: u32) -> u64 {
        let totals = lpt.totals();
        let leb = u64::from(geometry.leb_bytes);
        let kept = u64::from(index_lebs) + HEADS as u64 + 2;
        let more_index = totals.index_lebs.saturating_sub(index_lebs);
        let taken = totals.used_bytes
            + kept * leb
            + totals.dead_bytes
            + totals.dark_bytes
            + u64::from(more_index) * u64::from(geometry.dark_bytes);
        (u64::from(geometry.main_lebs) * leb).saturating_sub(taken)
    }

    /// LEBs that the index still needs, and those that are empty or will be.
    fn spare_lebs(lpt: &Lpt, index_lebs: u32) -> (u32, u32) {
        let totals = lpt.totals();
        let reserved = index_lebs.saturating_sub(totals.index_lebs);
        (reserved, totals.empty_lebs + lpt.freeable_lebs() - totals.taken_empty_lebs)
    }

    /// do_budget_space: whether what is promised still fits.
    pub fn fits(&self, geometry: &Geometry, lpt: &Lpt) -> bool {
        let index_lebs = self.index_lebs_min(geometry);
        let (reserved, spare) = Self::spare_lebs(lpt, index_lebs);
        let available = Self::available(geometry, lpt, index_lebs);
        let promised = self.pages * u64::from(DATA_NODE_BYTES) + u64::from(INODE_BYTES);
        reserved <= spare && available >= promised
    }

    /// ubifs_get_free_space_nolock as ubifs_statfs reports it, without the pool that is reserved for root.
    pub fn free_bytes(&self, geometry: &Geometry, lpt: &Lpt) -> u64 {
        let index_lebs = self.index_lebs_min(geometry);
        let (reserved, spare) = Self::spare_lebs(lpt, index_lebs);
        let wasted_end = geometry.leb_bytes % DATA_NODE_BYTES;
        let gained = i64::from(spare.saturating_sub(reserved))
            * (i64::from(geometry.dark_bytes) - i64::from(wasted_end));
        let available = Self::available(geometry, lpt, index_lebs).saturating_add_signed(gained);
        let free = available.saturating_sub(self.pages * u64::from(DATA_NODE_BYTES));
        let main_bytes = u64::from(geometry.main_lebs) * u64::from(geometry.leb_bytes);
        let pool = (main_bytes * RESERVED_PERCENT / 100).min(RESERVED_BYTES_MAX);
        let page = u64::from(PAGE_BYTES);
        reported(free).saturating_sub(reported(pool)) / page * page
    }
}
