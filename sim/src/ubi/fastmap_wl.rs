//! Pools of free blocks, from which a kernel with fastmap takes each block.
//!
//! Mirrors drivers/mtd/ubi/fastmap-wl.c and the parts for CONFIG_MTD_UBI_FASTMAP of wl.c, Linux 6.1
//! with the series for kernel bug 217787 (wait_free_pebs_for_pool, need_wear_leveling): a block for
//! a LEB comes from `fm_pool`, the target of a move from `fm_wl_pool`. Once one of them is empty,
//! the task that needs a block writes a fastmap with new pools (fastmap.rs).
//!
//! Left out: `fm_pool_rsv_cnt`, which nothing sets here; a worker of its own for `fm_work`, which
//! UBI's thread does when it is scheduled next and no LEB is locked.
//!
//! Invariant: blocks of a pool that are not used, and the next anchor, are in no tree and no queue.

use super::free::FREE_MAX_DIFF;
use super::moves::Why;
use super::wl::{Work, WORK_BLOCKS};
use super::{Leb, Ubi};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// UBI_FM_MAX_START: a fastmap begins in one of the first blocks.
pub(super) const ANCHORS: u32 = 64;
/// UBI_FM_MIN_POOL_SIZE and UBI_FM_MAX_POOL_SIZE.
const POOL_BLOCKS: [u32; 2] = [8, 256];
/// Attempts of ubi_wl_get_peb.
const ATTEMPTS: u32 = 10;

/// struct ubi_fm_pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub blocks: Vec<u32>,
    used: usize,
    max: usize,
}

impl Pool {
    fn new(max: u32) -> Pool {
        Pool { blocks: Vec::new(), used: 0, max: max as usize }
    }

    fn left(&self) -> u32 {
        (self.blocks.len() - self.used) as u32
    }

    fn is_empty(&self) -> bool {
        self.left() == 0
    }

    fn next(&self) -> Option<u32> {
        self.blocks.get(self.used).copied()
    }

    fn take(&mut self) -> Option<u32> {
        let block = self.next()?;
        self.used += 1;
        Some(block)
    }

    /// Empties it; returns the blocks that were not used.
    fn drain(&mut self) -> Vec<u32> {
        let unused = self.blocks.split_off(self.used);
        self.blocks.clear();
        self.used = 0;
        unused
    }
}

/// A block of a fastmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub block: u32,
    /// Bit errors of it were corrected (`to_be_tortured`).
    pub torture: bool,
}

/// A block and its erase count.
pub(super) type Counted = (u32, u32);

/// A fastmap as it is on the flash.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// The sequence number of its anchor.
    pub sequence: u64,
    pub blocks: Vec<u32>,
    pub pool: Vec<u32>,
    pub wl_pool: Vec<u32>,
    pub free: Vec<Counted>,
    pub used: Vec<Counted>,
    pub scrub: Vec<Counted>,
    pub erase: Vec<Counted>,
    pub map: Vec<(Leb, u32)>,
}

/// What struct ubi_device has for fastmaps, and what the flash has of them.
#[derive(Clone, Debug)]
pub(super) struct Fastmap {
    /// `fm_size` in LEBs.
    pub lebs: u32,
    /// `fm_disabled`: a partition that is too small. The pools are there all the same.
    pub is_disabled: bool,
    pub pool: Pool,
    pub wl_pool: Pool,
    /// `fm_anchor`: the first block of the next fastmap.
    pub anchor: Option<u32>,
    /// `fm_do_produce_anchor`.
    makes_anchor: bool,
    /// `fm_work_scheduled`.
    pub is_work_scheduled: bool,
    /// The blocks of the current fastmap (`fm`); none if there is none.
    pub current: Vec<Part>,
    /// Of the program's volume and of the others, which LEBs were found to be mapped (`checkmap`);
    /// none unless it was attached by a fastmap.
    pub checked: Option<[Vec<bool>; 2]>,
    /// Fastmaps whose anchors are on the flash.
    pub on_flash: Vec<Stored>,
}

impl Fastmap {
    /// The state of ubi_attach_mtd_dev, with `fm_autoconvert`.
    pub fn new(blocks: u32, lebs: u32) -> Fastmap {
        let [min, max] = POOL_BLOCKS;
        let size = (blocks / 100 * 5).min(max).max(min);
        Fastmap {
            lebs,
            is_disabled: blocks <= ANCHORS,
            pool: Pool::new(size),
            wl_pool: Pool::new(size / 2),
            anchor: None,
            makes_anchor: false,
            is_work_scheduled: false,
            current: Vec::new(),
            checked: None,
            on_flash: Vec::new(),
        }
    }
}

impl<D: NandDriver> Ubi<D> {
    pub(super) fn fm(&self) -> &Fastmap {
        self.fastmap.as_ref().expect("a kernel with fastmap")
    }

    pub(super) fn fm_mut(&mut self) -> &mut Fastmap {
        self.fastmap.as_mut().expect("a kernel with fastmap")
    }

    /// may_reserve_for_fm: blocks below this one are kept for the first fastmap.
    pub(super) fn held_back(&self) -> u32 {
        let waits = |fm: &&Fastmap| !fm.is_disabled && fm.current.is_empty();
        self.fastmap.as_ref().filter(waits).map_or(0, |_| ANCHORS)
    }

    /// ubi_wl_get_fm_peb.
    pub(super) fn take_fastmap_block(&mut self, as_anchor: bool) -> Option<u32> {
        if self.wl.free.count() <= self.reserve {
            return None;
        }
        let held_back = self.held_back();
        match as_anchor {
            true => self.wl.free.take_below(ANCHORS),
            false => self.wl.free.take(FREE_MAX_DIFF, held_back),
        }
    }

    /// wait_free_pebs_for_pool: the caller does works, at least one if there is one.
    pub(super) fn wait_for_free(&mut self, mut now: Ns) -> Result<Ns> {
        loop {
            let fm = self.fm();
            let free = self.wl.free.count() + fm.pool.left() + fm.wl_pool.left();
            let wanted = WORK_BLOCKS + fm.lebs - 1 + self.reserve;
            now = self.cond_resched(now)?;
            let Some(later) = self.do_next_work(now)? else { return Ok(now) };
            now = later;
            if self.is_read_only || free >= wanted {
                return Ok(now);
            }
        }
    }

    /// ubi_refill_pools_and_lock, when it has its locks.
    pub(super) fn refill_pools(&mut self) {
        let fm = self.fm_mut();
        let mut unused = fm.wl_pool.drain();
        unused.extend(fm.pool.drain());
        unused.extend(fm.anchor.take());
        for block in unused {
            self.wl.free.insert(block, self.blocks[block as usize].erases);
        }
        if !self.fm().is_disabled {
            self.fm_mut().anchor = self.take_fastmap_block(true);
        }
        loop {
            let (mut full, held_back) = (0, self.held_back());
            if self.fm().pool.blocks.len() == self.fm().pool.max {
                full += 1;
            } else {
                if !self.has_enough_free(0) {
                    return;
                }
                let Some(block) = self.wl.free.take(FREE_MAX_DIFF, held_back) else { return };
                self.fm_mut().pool.blocks.push(block);
            }
            if self.fm().wl_pool.blocks.len() == self.fm().wl_pool.max {
                full += 1;
            } else {
                if !self.has_enough_free(self.reserve) {
                    return;
                }
                let Some(block) = self.wl.free.take_worn(FREE_MAX_DIFF) else { return };
                self.fm_mut().wl_pool.blocks.push(block);
            }
            if full == 2 {
                return;
            }
        }
    }

    /// has_enough_free_count.
    fn has_enough_free(&self, reserve: u32) -> bool {
        let fm = self.fm();
        let writes = !self.is_read_only && !fm.is_disabled && !fm.wl_pool.blocks.is_empty();
        let kept = if writes { fm.lebs - 1 } else { 0 };
        self.wl.free.count() > reserve + kept
    }

    /// ubi_wl_get_peb.
    pub(super) fn get_pool_block(&mut self, mut now: Ns) -> Result<(u32, Ns)> {
        for attempt in 1..=ATTEMPTS {
            if self.fm().pool.is_empty() || self.fm().wl_pool.is_empty() {
                now = self.update_fastmap(now)?;
                now = self.cond_resched(now)?; // down_read of `fm_eba_sem`
            }
            if let Some(block) = self.fm_mut().pool.take() {
                self.protect(block);
                return Ok((block, now));
            }
            if attempt < ATTEMPTS {
                now = self.produce_free(now)?;
            }
        }
        Err(FsError::NoSpace(now))
    }

    /// The block that get_peb_for_wl would take.
    pub(super) fn next_for_move(&self) -> Option<u32> {
        self.fm().wl_pool.next()
    }

    /// get_peb_for_wl.
    pub(super) fn take_for_move(&mut self, now: Ns) -> Option<u32> {
        let found = self.fm_mut().wl_pool.take();
        if found.is_none() {
            self.schedule_fastmap(now);
        }
        found
    }

    /// schedule_work of `fm_work`.
    fn schedule_fastmap(&mut self, now: Ns) {
        self.fm_mut().is_work_scheduled = true;
        self.wake_thread(now);
    }

    /// Whether `fm_work` can be done now.
    pub(super) fn has_fastmap_work(&self) -> bool {
        let scheduled = self.fastmap.as_ref().is_some_and(|fm| fm.is_work_scheduled);
        scheduled && self.locked.is_none()
    }

    /// update_fastmap_work_fn.
    pub(super) fn do_fastmap_work(&mut self, now: Ns) -> Result<Ns> {
        let was_working = std::mem::replace(&mut self.is_working, true);
        let written = self.update_fastmap(now);
        self.is_working = was_working;
        self.fm_mut().is_work_scheduled = false;
        written
    }

    /// The choice of wear_leveling_worker with fastmap: the block to move, with its erases. None if
    /// there is no target, or nothing to move.
    pub(super) fn choose_move(&mut self, now: Ns) -> Option<(Why, (u32, u32))> {
        if self.next_for_move().is_none() {
            self.schedule_fastmap(now);
            return None;
        }
        let scrub = self.wl.scrub.first().copied();
        let least = self.wl.used.first().copied();
        if scrub.is_none() && least.is_none() {
            return None;
        }
        let used = self.wl.used.iter().find(|&&(_, block)| block < ANCHORS).copied();
        if let (Some((erases, _)), Some(anchor)) = (used, self.fm().anchor) {
            let worn = self.blocks[anchor as usize].erases;
            if worn >= erases + super::free::THRESHOLD {
                self.wl.free.insert(anchor, worn);
                self.fm_mut().anchor = None;
                self.fm_mut().makes_anchor = true;
            }
        }
        if self.fm().makes_anchor {
            return used.map(|used| (Why::Anchor, used));
        }
        match scrub {
            Some(scrub) => Some((Why::Scrub, scrub)),
            None => least.map(|least| (Why::Wear, least)),
        }
    }

    /// A block is moved so that it becomes the anchor.
    pub(super) fn begin_anchor(&mut self) {
        self.fm_mut().makes_anchor = false;
    }

    /// The part of __erase_worker for fastmap: keeps an erased block as the next anchor.
    pub(super) fn keep_anchor(&mut self, block: u32) -> bool {
        let Some(fm) = self.fastmap.as_mut() else { return false };
        let kept = !fm.is_disabled && fm.anchor.is_none() && block < ANCHORS;
        if kept {
            fm.anchor = Some(block);
            fm.makes_anchor = false;
        }
        kept
    }

    /// ubi_ensure_anchor_pebs.
    pub(super) fn ensure_anchor(&mut self, now: Ns) {
        if self.fm().anchor.is_some() {
            return;
        }
        let anchor = self.take_fastmap_block(true);
        self.fm_mut().anchor = anchor;
        if anchor.is_some() {
            return;
        }
        self.fm_mut().makes_anchor = true;
        if !self.wl.is_level_scheduled {
            self.wl.is_level_scheduled = true;
            self.schedule(now, Work::Level);
        }
    }
}
