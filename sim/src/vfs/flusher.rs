//! The flusher's lists of dirty inodes, and its timer.
//!
//! Mirrors struct bdi_writeback of Linux 6.1 (b_dirty, b_io, dwork, last_old_flush) with queue_io,
//! wb_wakeup_delayed of fs/fs-writeback.c, for the single device. wb_workfn.rs has the flusher's
//! work; completions.rs has the device's share of the dirty limit.
//!
//! The flusher moves all inodes that it will write to `io` at once. If it stops early it continues
//! with them next time, before inodes that became dirty since. It wakes five seconds (or what
//! vm.dirty_writeback_centisecs says) after the first inode became dirty, and again while any inode
//! is dirty.
//!
//! Invariant: an inode is in at most one of the lists, and once.

use super::completions::Completions;
use crate::fs::{Writeback, PAGE_BYTES};
use crate::profile::Vm;
use crate::sched::Ticks;
use crate::units::Ns;
use std::collections::VecDeque;

/// MIN_WRITEBACK_PAGES: pages of an inode that are written at a time, unless a task waits for the
/// whole inode.
const CHUNK_PAGES: i64 = 1024;

/// The timer of a flusher that was woken where the time is not known: it expires at the next look.
const AT_ONCE: Ns = Ns::ZERO;

/// The background threshold and the limit, of so many pages for the page cache.
pub(super) fn domain_dirty_limits(vm: Vm, dirtyable_pages: u64) -> (u64, u64) {
    let pages = |bytes: u64, percent: u64| match bytes {
        0 => dirtyable_pages * percent / 100,
        bytes => bytes.div_ceil(u64::from(PAGE_BYTES)),
    };
    let limit = pages(vm.dirty_bytes, vm.dirty_ratio);
    let background = pages(vm.dirty_background_bytes, vm.dirty_background_ratio);
    (if background >= limit { limit / 2 } else { background }, limit)
}

/// The reason of a write-back (enum wb_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// sync_inodes_sb: everything (WB_SYNC_ALL).
    Sync,
    /// writeback_inodes_sb_nr: a file system needs free space.
    FreeSpace,
    /// wb_check_start_all.
    StartAll,
    /// wb_check_old_data_flush.
    Periodic,
    /// wb_check_background_flush.
    Background,
}

/// struct wb_writeback_work, and the progress of wb_writeback on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub reason: Reason,
    pub pages: i64,
    /// When wb_writeback began.
    pub begun: Ns,
    /// When writeback_sb_inodes began, and whether it has written anything since.
    pub round: Option<(Ns, bool)>,
}

impl Work {
    pub fn new(reason: Reason, pages: i64) -> Work {
        Work { reason, pages, begun: Ns::ZERO, round: None }
    }

    /// Whether a task waits for it.
    pub fn has_waiter(&self) -> bool {
        matches!(self.reason, Reason::Sync | Reason::FreeSpace)
    }

    /// Whether it writes only the pages that are dirty when the inode is begun
    /// (`tagged_writepages`, WB_SYNC_ALL).
    pub fn is_tagged(&self) -> bool {
        self.has_waiter()
    }

    /// Pages of an inode that are written before the next inode's turn (writeback_chunk_size).
    pub fn chunk_pages(&self) -> i64 {
        match self.is_tagged() {
            true => i64::MAX,
            false => CHUNK_PAGES.min(self.pages.max(1)),
        }
    }

    /// Whether it stops when other work is queued.
    pub fn yields_to_queued_work(&self) -> bool {
        matches!(self.reason, Reason::Periodic | Reason::Background)
    }
}

/// An inode being written (I_SYNC), with its struct writeback_control.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub index: usize,
    pub work: Work,
    /// Pages that were already looked up: a pagevec, or all tagged pages.
    pub pages: VecDeque<u32>,
    /// Where the next lookup begins.
    pub cursor: u32,
    /// `done_index`.
    pub done_index: u32,
    pub left: i64,
    /// Its pages are done; the inode itself is next.
    pub is_inode: bool,
}

/// The progress of wb_do_writeback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Check {
    #[default]
    Asleep,
    WorkList,
    StartAll,
    OldData,
    Background,
    End,
}

/// What the program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// wb_wait_for_completion.
    Work,
    /// inode_wait_for_writeback.
    Inode(usize),
    /// balance_dirty_pages: this many pages.
    Pages(u32),
}

/// struct bdi_writeback. Inodes are identified by their index.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    ticks: Ticks,
    vm: Vm,
    /// b_dirty: the inodes and since when each is dirty, in that order.
    pub dirty: Vec<(usize, Ns)>,
    /// b_io and b_more_io.
    pub io: Vec<usize>,
    pub more_io: Vec<usize>,
    /// When `dwork` expires.
    pub wake: Option<Ns>,
    /// `dwork` has expired and is queued for a worker.
    pub is_pending: bool,
    /// work_list, and WB_start_all.
    pub work_list: VecDeque<Work>,
    pub start_all: bool,
    /// The current check of wb_workfn.
    pub check: Check,
    pub work: Option<Work>,
    pub writing: Option<Writing>,
    /// Its next step, if already known.
    pub found: Option<Writeback>,
    /// What the program waits for.
    pub waits: Option<Wait>,
    /// Dirty pages above which it writes in the background (`bg_thresh`).
    background_pages: u64,
    last_old_flush: Ns,
    pub completions: Completions,
}

impl Flusher {
    /// The flusher of a newly mounted file system.
    pub fn new(
        ticks: Ticks,
        now: Ns,
        (vm, dirtyable_pages): (Vm, u64),
        completions: Completions,
    ) -> Flusher {
        Flusher {
            ticks,
            vm,
            dirty: Vec::new(),
            io: Vec::new(),
            more_io: Vec::new(),
            wake: None,
            is_pending: false,
            work_list: VecDeque::new(),
            start_all: false,
            check: Check::Asleep,
            work: None,
            writing: None,
            found: None,
            waits: None,
            background_pages: domain_dirty_limits(vm, dirtyable_pages).0,
            last_old_flush: now,
            completions,
        }
    }

    /// Every dirty inode, in the order in which the flusher would write them.
    pub fn inodes(&self) -> impl Iterator<Item = usize> + '_ {
        let writing = self.writing.iter().map(|writing| writing.index);
        let io = self.io.iter().chain(&self.more_io).copied();
        writing.chain(io).chain(self.dirty.iter().map(|&(index, _)| index))
    }

    /// wb_has_dirty_io.
    pub fn has_dirty_io(&self) -> bool {
        self.inodes().next().is_some()
    }

    /// Since when the most recently dirtied inode is dirty.
    pub fn newest(&self) -> Option<Ns> {
        self.dirty.last().map(|&(_, since)| since)
    }

    /// inode_io_list_move_locked to b_dirty.
    pub fn add(&mut self, now: Ns, index: usize, since: Ns) {
        let is_first = !self.has_dirty_io();
        self.dirty.push((index, since));
        if self.vm.writeback_ms() > 0 || (is_first && !self.is_awake()) {
            self.wake_delayed(now);
        }
    }

    /// inode_io_list_del.
    pub fn remove(&mut self, index: usize) {
        self.io.retain(|&other| other != index);
        self.more_io.retain(|&other| other != index);
        self.dirty.retain(|&(other, _)| other != index);
    }

    /// wakeup_flusher_threads of shrink_inactive_list: everything that is dirty is written soon.
    pub fn start_all_soon(&mut self) {
        if self.has_dirty_io() && !self.is_awake() {
            self.start_all = true;
            self.wake = Some(AT_ONCE);
        }
    }

    /// When its timer expires.
    pub fn due(&self) -> Option<Ns> {
        self.wake
    }

    /// delayed_work_timer_fn: returns when its timer expired, if it has.
    pub fn take_due(&mut self, now: Ns) -> Option<Ns> {
        let due = self.wake.take_if(|due| *due <= now)?;
        self.is_pending = true;
        Some(if due == AT_ONCE { now } else { due })
    }

    /// Whether wb_workfn is running or queued.
    pub fn is_awake(&self) -> bool {
        self.is_pending || self.check != Check::Asleep
    }

    /// The end of wb_workfn.
    pub fn sleep(&mut self, now: Ns) {
        if self.has_dirty_io() && self.vm.writeback_ms() > 0 {
            self.wake_delayed(now);
        }
    }

    /// wb_wakeup_delayed.
    fn wake_delayed(&mut self, now: Ns) {
        if self.wake.is_none() && !self.is_pending {
            self.wake = Some(match self.vm.writeback_ms() {
                0 => now,
                ms => self.ticks.timer(now, ms),
            });
        }
    }

    /// Whether wb_check_old_data_flush does its work, which it does at most once in an interval.
    pub fn begins_old_flush(&mut self, now: Ns) -> bool {
        let is_due = self.is_old_flush_due(now);
        if is_due {
            self.last_old_flush = now;
        }
        is_due
    }

    fn is_old_flush_due(&self, now: Ns) -> bool {
        let interval_ms = self.vm.writeback_ms();
        interval_ms > 0 && self.has_passed(self.last_old_flush, now, interval_ms)
    }

    /// wb_over_bg_thresh.
    pub fn is_over_background(&mut self, now: Ns, dirty_pages: u64) -> bool {
        dirty_pages > self.background_pages
            || dirty_pages > self.completions.share_of(now, self.background_pages)
    }

    /// Whether an inode that is dirty since then is old enough for the periodic flush.
    pub fn is_old(&self, since: Ns, now: Ns) -> bool {
        self.has_passed(since, now, self.vm.expire_ms())
    }

    /// inode_dirtied_after.
    pub fn is_later(&self, since: Ns, than: Ns) -> bool {
        self.ticks.jiffies(since) > self.ticks.jiffies(than)
    }

    /// Whether a round of writeback_sb_inodes that began then has used its time.
    pub fn is_round_over(&self, begun: Ns, now: Ns) -> bool {
        let ticks = self.ticks.per_second() / 10; // HZ / 10
        self.ticks.jiffies(begun) + ticks < self.ticks.jiffies(now)
    }

    fn has_passed(&self, since: Ns, now: Ns, ms: u64) -> bool {
        let ticks = self.ticks.of_ms(ms);
        self.ticks.jiffies(since) + ticks <= self.ticks.jiffies(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::KernelFacts;

    const S: u64 = 1_000_000_000;

    fn flusher() -> Flusher {
        let ticks = Ticks::new(250);
        let completions = Completions::new(&KernelFacts::USER_MODE, Ns(0));
        Flusher::new(ticks, Ns(0), (Vm::DEFAULT, 10_000), completions)
    }

    #[test]
    fn it_wakes_by_itself_while_something_is_dirty() {
        let mut flusher = flusher();
        assert_eq!(flusher.due(), None);
        flusher.add(Ns(S), 1, Ns(S));
        let due = flusher.due().expect("something is dirty").0;
        assert!(due > 6 * S && due < 6 * S + 64 * 4_000_000 + 50_000, "{due}");
        flusher.add(Ns(2 * S), 2, Ns(2 * S));
        assert_eq!(flusher.due(), Some(Ns(due)), "the first one counts");
        assert_eq!(flusher.take_due(Ns(due)), Some(Ns(due)));
        flusher.is_pending = false;
        flusher.remove(1);
        flusher.remove(2);
        flusher.sleep(Ns(7 * S));
        assert_eq!(flusher.due(), None);
    }
}
