//! Budgeting: every change reserves flash space before it makes anything dirty.
//!
//! Mirrors fs/ubifs/budget.c (ubifs_budget_space, do_budget_space, make_free_space,
//! ubifs_calc_min_idx_lebs, ubifs_calc_available, ubifs_release_budget, ubifs_reported_space,
//! ubifs_get_free_space_nolock) and super.c (ubifs_statfs) of Linux 6.1. The program runs as root
//! and may use the reserved pool.

use super::gc::Collected;
use super::geometry::{align, index_node_bytes, Geometry, DATA_NODE_BYTES, FANOUT};
use super::geometry::{DENT_NODE_BYTES_MAX, HEADS, INDEX_LEBS_MIN, INODE_BYTES};
use super::lpt::Lpt;
use super::properties::Totals;
use super::Ubifs;
use crate::fs::tasks::wait_for_flusher;
use crate::fs::{FsError, PageCache, Result, PAGE_BYTES};
use crate::ledger::SpaceTable;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// What ubifs_calc_available keeps besides the index and a LEB for each journal head.
const GC_LEBS: u32 = 1;
const DELETION_LEBS: u32 = 1;

/// MAX_MKSPC_RETRIES.
const RETRIES_MAX: u32 = 3;
/// NR_TO_WRITE: pages that one writeback pass writes.
const PAGES_TO_WRITE: i64 = 16;

/// `struct ubifs_budget_req`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    pub new_page: bool,
    pub dirtied_page: bool,
    pub new_dent: bool,
    pub mod_dent: bool,
    pub new_inode: bool,
    pub dirtied_inodes: u64,
    /// Bytes of data in a new inode (`new_ino_d`).
    pub new_bytes: u64,
    /// Bytes of data in dirtied inodes (`dirtied_ino_d`).
    pub more_bytes: u64,
}

impl Request {
    /// A page that the index does not have yet.
    pub const NEW_PAGE: Request = Request { new_page: true, ..Request::NOTHING };
    /// A page that already has a node.
    pub const PAGE: Request = Request { dirtied_page: true, ..Request::NOTHING };
    /// One inode that becomes dirty.
    pub const INODE: Request = Request { dirtied_inodes: 1, ..Request::NOTHING };
    /// ubifs_create, ubifs_mkdir.
    pub const CREATE: Request =
        Request { new_inode: true, new_dent: true, dirtied_inodes: 1, ..Request::NOTHING };
    /// ubifs_link.
    pub const LINK: Request = Request { new_dent: true, dirtied_inodes: 2, ..Request::NOTHING };
    /// ubifs_unlink, ubifs_rmdir.
    pub const UNLINK: Request = Request { mod_dent: true, dirtied_inodes: 2, ..Request::NOTHING };
    /// do_rename.
    pub const RENAME: Request =
        Request { new_dent: true, mod_dent: true, dirtied_inodes: 3, ..Request::NOTHING };
    /// ubifs_xrename.
    pub const EXCHANGE: Request =
        Request { new_dent: true, mod_dent: true, dirtied_inodes: 2, ..Request::NOTHING };
    /// The white-out that do_rename leaves, with its device's number.
    pub const WHITEOUT: Request = Request { new_inode: true, new_bytes: 8, ..Request::NOTHING };
    const NOTHING: Request = Request {
        new_page: false,
        dirtied_page: false,
        new_dent: false,
        mod_dent: false,
        new_inode: false,
        dirtied_inodes: 0,
        new_bytes: 0,
        more_bytes: 0,
    };

    /// calc_idx_growth.
    fn index_growth(&self) -> u64 {
        let znodes =
            u64::from(self.new_inode) + u64::from(self.new_page) + u64::from(self.new_dent);
        znodes * largest_znode()
    }

    /// calc_data_growth.
    fn data_growth(&self) -> u64 {
        u64::from(self.new_inode) * u64::from(INODE_BYTES)
            + u64::from(self.new_page) * u64::from(DATA_NODE_BYTES)
            + u64::from(self.new_dent) * u64::from(DENT_NODE_BYTES_MAX)
            + self.new_bytes
    }

    /// calc_dd_growth.
    fn dirty_growth(&self) -> u64 {
        u64::from(self.dirtied_page) * u64::from(DATA_NODE_BYTES)
            + self.dirtied_inodes * u64::from(INODE_BYTES)
            + u64::from(self.mod_dent) * u64::from(DENT_NODE_BYTES_MAX)
            + self.more_bytes
    }
}

/// What is budgeted and not written yet (`struct ubifs_budg_info`).
#[derive(Clone, Debug)]
pub struct Budget {
    index_growth: u64,
    data_growth: u64,
    dirty_growth: u64,
    /// Index size at the last commit, and the growth since that is already in znodes
    /// (`old_idx_sz`, `uncommitted_idx`).
    old_index_bytes: u64,
    uncommitted_bytes: u64,
    /// `min_idx_lebs`.
    index_lebs_min: u32,
    /// `nospace`, `nospace_rp`: the last attempt found no space, so none is made until some is
    /// released.
    is_full: bool,
}

/// `max_idx_node_sz`.
pub fn largest_znode() -> u64 {
    largest_index_node(FANOUT)
}

/// The same for another fanout.
fn largest_index_node(fanout: usize) -> u64 {
    u64::from(align(index_node_bytes(fanout), 8))
}

/// ubifs_reported_space: the data bytes that fit into so many bytes of flash, less their index
/// nodes.
fn reported(bytes: u64, fanout: usize) -> u64 {
    let half = if fanout > 3 { fanout as u64 / 2 } else { 2 };
    let index = largest_index_node(fanout) * 3 / (half - 1);
    bytes * u64::from(PAGE_BYTES) / (u64::from(DATA_NODE_BYTES) + index)
}

/// ubifs_calc_min_idx_lebs: three times the index, and one LEB for its head.
fn index_lebs_min(leb_bytes: u32, index_bytes: u64, fanout: usize) -> u32 {
    let leb = u64::from(leb_bytes) - largest_index_node(fanout);
    ((3 * index_bytes).div_ceil(leb) as u32 + 1).max(INDEX_LEBS_MIN)
}

/// What ubifs_statfs answers from.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// `leb_size`.
    pub leb_bytes: u32,
    /// `fanout`.
    pub fanout: usize,
    /// `main_lebs`.
    pub main_lebs: u32,
    /// `dark_wm`.
    pub dark_bytes: u32,
    /// The sums over the main area.
    pub totals: &'a Totals,
    /// LEBs that the index may take.
    pub lebs_for_index: u32,
    /// The index at the next commit.
    pub index_bytes: u64,
    /// Bytes that are budgeted and not written yet.
    pub budgeted_bytes: u64,
    /// What is kept for root (`rp_size`).
    pub pool_bytes: u64,
}

impl Counted<'_> {
    fn index_lebs(&self) -> u32 {
        index_lebs_min(self.leb_bytes, self.index_bytes, self.fanout)
    }

    /// ubifs_calc_available with `index_lebs` reserved for the index.
    fn available(&self, index_lebs: u32) -> u64 {
        let (totals, leb) = (self.totals, u64::from(self.leb_bytes));
        let kept = u64::from(index_lebs + GC_LEBS + DELETION_LEBS) + HEADS as u64;
        let more_index = totals.index_lebs.saturating_sub(index_lebs);
        let taken = totals.used_bytes
            + kept * leb
            + totals.dead_bytes
            + totals.dark_bytes
            + u64::from(more_index) * u64::from(self.dark_bytes);
        (u64::from(self.main_lebs) * leb).saturating_sub(taken)
    }

    /// The same in ubifs_get_free_space_nolock: dark space of empty LEBs counts as free, but for
    /// what a whole data node leaves of each.
    fn with_dark_space(&self) -> u64 {
        let index_lebs = self.index_lebs();
        let reserved = index_lebs.saturating_sub(self.totals.index_lebs);
        let wasted_end = self.leb_bytes % DATA_NODE_BYTES;
        let gained = i64::from(self.lebs_for_index.saturating_sub(reserved))
            * (i64::from(self.dark_bytes) - i64::from(wasted_end));
        self.available(index_lebs).saturating_add_signed(gained)
    }

    fn free(&self) -> u64 {
        self.with_dark_space().saturating_sub(self.budgeted_bytes)
    }

    fn reported(&self, bytes: u64) -> u64 {
        reported(bytes, self.fanout)
    }

    /// ubifs_statfs, without the pool reserved for root.
    pub fn free_bytes(&self) -> u64 {
        let page = u64::from(PAGE_BYTES);
        let free = self.reported(self.free());
        free.saturating_sub(self.reported(self.pool_bytes)) / page * page
    }
}

impl Budget {
    /// The budget of a freshly mounted file system.
    pub fn new(geometry: &Geometry, index_bytes: u64) -> Budget {
        let mut budget = Budget {
            index_growth: 0,
            data_growth: 0,
            dirty_growth: 0,
            old_index_bytes: index_bytes,
            uncommitted_bytes: 0,
            index_lebs_min: 0,
            is_full: false,
        };
        budget.index_lebs_min = budget.calculate_index_lebs(geometry);
        budget
    }

    /// LEBs reserved for the index (`min_idx_lebs`). The field always holds the result of
    /// `calculate_index_lebs`, so a request that leaves the size of the index unchanged need not
    /// compute it.
    pub fn index_lebs_min(&self) -> u32 {
        self.index_lebs_min
    }

    /// get_liability.
    fn liability(&self) -> u64 {
        self.index_growth + self.data_growth + self.dirty_growth
    }

    /// What statfs answers from now.
    fn counted<'a>(&self, geometry: &Geometry, lpt: &'a Lpt) -> Counted<'a> {
        Counted {
            leb_bytes: geometry.leb_bytes,
            fanout: FANOUT,
            main_lebs: geometry.main_lebs,
            dark_bytes: geometry.dark_bytes,
            totals: lpt.totals(),
            lebs_for_index: lpt.lebs_for_index(),
            index_bytes: self.index_bytes(),
            budgeted_bytes: self.data_growth + self.dirty_growth,
            pool_bytes: geometry.pool_bytes,
        }
    }

    /// The index at the next commit.
    fn index_bytes(&self) -> u64 {
        self.old_index_bytes + self.index_growth + self.uncommitted_bytes
    }

    fn calculate_index_lebs(&self, geometry: &Geometry) -> u32 {
        index_lebs_min(geometry.leb_bytes, self.index_bytes(), FANOUT)
    }

    /// do_budget_space: whether everything budgeted still fits.
    fn fits(&mut self, geometry: &Geometry, lpt: &Lpt, index_grows: bool) -> bool {
        let index_lebs =
            if index_grows { self.calculate_index_lebs(geometry) } else { self.index_lebs_min };
        let reserved = index_lebs.saturating_sub(lpt.totals().index_lebs);
        let available = self.counted(geometry, lpt).available(index_lebs);
        if reserved > lpt.lebs_for_index() || available < self.data_growth + self.dirty_growth {
            return false;
        }
        self.index_lebs_min = index_lebs;
        true
    }

    /// Takes what ubifs_get_free_space_nolock and ubifs_statfs keep of the main area, and leaves
    /// what df calls available.
    pub fn account(&self, geometry: &Geometry, lpt: &Lpt, table: &mut SpaceTable) {
        let (totals, leb_bytes) = (lpt.totals(), geometry.leb_bytes);
        let counted = self.counted(geometry, lpt);
        for (name, lebs) in [
            ("index", counted.index_lebs()),
            ("garbage collection", GC_LEBS),
            ("journal heads", HEADS as u32),
            ("deletions", DELETION_LEBS),
        ] {
            table.take_units("ubifs", name, lebs, leb_bytes);
        }
        table.take("ubifs", "files", totals.used_bytes as i64);
        table.take("ubifs", "dead ends of LEBs", totals.dead_bytes as i64);
        let available = counted.with_dark_space();
        table.take("ubifs", "dark ends of LEBs", table.left_bytes() - available as i64);
        let free = counted.free();
        table.take("ubifs", "promised to dirty pages", available as i64 - free as i64);
        let pool = counted.pool_bytes;
        table.take("ubifs", "root's reserve", pool.min(free) as i64);
        let page = u64::from(PAGE_BYTES);
        let shown = counted.free_bytes();
        table.take("ubifs", "headers and index of full pages", table.left_bytes() - shown as i64);
        let others = GC_LEBS + DELETION_LEBS + INDEX_LEBS_MIN + HEADS as u32;
        let lebs = u64::from(geometry.main_lebs.saturating_sub(others));
        let data_bytes = lebs * u64::from(leb_bytes - leb_bytes % DATA_NODE_BYTES);
        table.size_bytes = counted.reported(data_bytes) / page * page;
        table.tell("root_bytes", counted.reported(pool));
    }

    /// ubifs_budget_space with `fast`: fails instead of making space.
    #[inline]
    pub fn promise(&mut self, geometry: &Geometry, lpt: &Lpt, request: &Request) -> bool {
        if request.data_growth() + request.dirty_growth() == 0 {
            return true;
        }
        if self.is_full {
            return false;
        }
        self.index_growth += request.index_growth();
        self.data_growth += request.data_growth();
        self.dirty_growth += request.dirty_growth();
        let fits = self.fits(geometry, lpt, request.index_growth() > 0);
        if !fits {
            self.index_growth -= request.index_growth();
            self.data_growth -= request.data_growth();
            self.dirty_growth -= request.dirty_growth();
        }
        fits
    }

    /// ubifs_release_budget: the change is written or cancelled. The uncommitted part of the index
    /// keeps the size it was budgeted with.
    pub fn release(&mut self, request: &Request) {
        self.is_full = false;
        self.index_growth -= request.index_growth();
        self.uncommitted_bytes += request.index_growth();
        self.data_growth -= request.data_growth();
        self.dirty_growth -= request.dirty_growth();
    }

    /// ubifs_convert_page_budget: a page that was budgeted as new turns out to have a node.
    pub fn convert_page(&mut self, geometry: &Geometry) {
        self.index_growth -= Request::NEW_PAGE.index_growth();
        self.data_growth -= Request::NEW_PAGE.data_growth();
        self.dirty_growth += Request::PAGE.dirty_growth();
        self.index_lebs_min = self.calculate_index_lebs(geometry);
    }

    /// A commit has written the index.
    pub fn committed(&mut self, geometry: &Geometry, index_bytes: u64) {
        self.old_index_bytes = index_bytes;
        self.uncommitted_bytes = 0;
        self.index_lebs_min = self.calculate_index_lebs(geometry);
    }

    /// A deletion without a budget may have freed space.
    pub fn clear_full(&mut self) {
        self.is_full = false;
    }
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_budget_space: without space it first writes back, collects and commits.
    pub(super) fn budget_space(
        &mut self,
        now: Ns,
        request: &Request,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let mut now = now;
        let mut retried = false;
        loop {
            if self.budget.promise(&self.geometry, &self.lpt, request) {
                return Ok(now);
            }
            if self.budget.is_full {
                return Err(FsError::NoSpace(now));
            }
            let (again, later) = self.make_free_space(now, pages)?;
            now = later;
            if !again && std::mem::replace(&mut retried, true) {
                self.budget.is_full = true;
                return Err(FsError::NoSpace(now));
            }
        }
    }

    pub(super) fn release_budget(&mut self, request: &Request) {
        self.budget.release(request);
    }

    /// make_free_space: returns whether another attempt is worthwhile.
    fn make_free_space(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<(bool, Ns)> {
        let mut now = now;
        for _ in 0..=RETRIES_MAX {
            let before = self.budget.liability();
            now = self.shrink_liability(now, pages)?;
            if self.budget.liability() < before {
                return Ok((true, now));
            }
            let (collected, later) = self.garbage_collect(now, true)?;
            now = later;
            if let Collected::Leb(leb) = collected {
                return Ok((true, self.return_leb(now, leb)?));
            }
            now = self.commit(now)?;
        }
        Ok((false, now))
    }

    /// shrink_liability (writeback_inodes_sb_nr): writes whole inodes back until enough pages are
    /// written.
    fn shrink_liability(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        if !pages.queue_writeback(PAGES_TO_WRITE) {
            return Ok(now);
        }
        wait_for_flusher(self, now, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernels of two boards print when UBIFS is mounted on an MT29F1G08 (FS size, journal
    /// size, reserved for root); people gave the lines in public with questions of theirs.
    #[test]
    fn volumes_have_the_sizes_that_kernels_on_boards_print() {
        for (lebs, printed) in
            [(230, [27_934_720, 1_396_736, 1_319_425]), (494, [61_456_384, 3_047_424, 2_902_736])]
        {
            let g = Geometry::new(126_976, lebs, 2048).expect("it fits");
            let leb = u64::from(g.leb_bytes);
            let size = u64::from(g.main_lebs) * leb;
            let journal = u64::from(g.log_lebs) * leb + g.bud_bytes_max;
            assert_eq!([size, journal, reported(g.pool_bytes, FANOUT)], printed, "{lebs} LEBs");
        }
    }
}
