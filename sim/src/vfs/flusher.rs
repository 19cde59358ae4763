//! The flusher: its two lists of dirty inodes, and when it wakes.
//!
//! Mirrors struct bdi_writeback of Linux 6.1 (b_dirty, b_io, dwork, last_old_flush) with queue_io,
//! wb_wakeup_delayed of fs/fs-writeback.c, for the one device there is; wb_workfn.rs has what it
//! does. What the flusher takes up it moves to `io` as a whole and goes on with the next time,
//! whatever has become dirty since. It wakes five seconds after the first inode has become dirty,
//! and again while any is. completions.rs has the share that the device has in the dirty limit.
//!
//! Invariant: an inode is in one of the lists, once, or in none.

use super::completions::Completions;
use crate::fs::Writeback;
use crate::sched::Ticks;
use crate::units::Ns;
use std::collections::VecDeque;

/// dirty_writeback_centisecs and dirty_expire_centisecs.
const WRITEBACK_INTERVAL_MS: u64 = 5_000;
const DIRTY_EXPIRE_MS: u64 = 30_000;
/// How long the flusher writes before it looks whether that was enough.
const ROUND_MS: u64 = 100;
/// MIN_WRITEBACK_PAGES: what is written of an inode at a time if nobody waits for all of it.
const CHUNK_PAGES: i64 = 1024;
/// vm.dirty_background_ratio, percent.
const BACKGROUND_PERCENT: u64 = 10;

/// The background threshold of a machine with so much memory for the page cache.
pub(super) fn background_pages(dirtyable_pages: u64) -> u64 {
    dirtyable_pages * BACKGROUND_PERCENT / 100
}

/// Why pages are written (enum wb_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// sync_inodes_sb: everything (WB_SYNC_ALL).
    Sync,
    /// writeback_inodes_sb_nr: somebody needs room.
    FreeSpace,
    /// wb_check_start_all.
    StartAll,
    /// wb_check_old_data_flush.
    Periodic,
    /// wb_check_background_flush.
    Background,
}

/// struct wb_writeback_work, and how far wb_writeback is with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub reason: Reason,
    pub pages: i64,
    /// When wb_writeback began.
    pub begun: Ns,
    /// When writeback_sb_inodes did, and whether it has written anything since.
    pub round: Option<(Ns, bool)>,
}

impl Work {
    pub fn new(reason: Reason, pages: i64) -> Work {
        Work { reason, pages, begun: Ns::ZERO, round: None }
    }

    /// Whether somebody waits for it.
    pub fn has_waiter(&self) -> bool {
        matches!(self.reason, Reason::Sync | Reason::FreeSpace)
    }

    /// Pages that are dirty when the inode is begun, and no others (`tagged_writepages`,
    /// WB_SYNC_ALL).
    pub fn is_tagged(&self) -> bool {
        self.has_waiter()
    }

    /// Pages of an inode that are written before it is another's turn (writeback_chunk_size).
    pub fn chunk_pages(&self) -> i64 {
        match self.is_tagged() {
            true => i64::MAX,
            false => CHUNK_PAGES.min(self.pages.max(1)),
        }
    }

    /// Whether it ends for the sake of other work.
    pub fn makes_way(&self) -> bool {
        matches!(self.reason, Reason::Periodic | Reason::Background)
    }
}

/// An inode that is being written (I_SYNC), with its struct writeback_control.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub index: usize,
    pub work: Work,
    /// Looked up already (a pagevec, or all that is tagged).
    pub pages: VecDeque<u32>,
    /// Where the next are looked up.
    pub cursor: u32,
    /// `done_index`.
    pub done_index: u32,
    pub left: i64,
    /// Its pages are done with; it is the inode's turn.
    pub is_inode: bool,
}

/// How far wb_do_writeback is.
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

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// wb_wait_for_completion.
    Work,
    /// inode_wait_for_writeback.
    Inode(usize),
    /// balance_dirty_pages: so many pages.
    Pages(u32),
}

/// struct bdi_writeback. Inodes are named by their index.
#[derive(Clone, Debug)]
pub(super) struct Flusher {
    ticks: Ticks,
    /// b_dirty: since when each is dirty, in that order.
    pub dirty: Vec<(usize, Ns)>,
    /// b_io and b_more_io.
    pub io: Vec<usize>,
    pub more_io: Vec<usize>,
    /// When `dwork` is due.
    pub wake: Option<Ns>,
    /// `dwork` is on its way to a worker.
    pub is_pending: bool,
    /// work_list, and WB_start_all.
    pub work_list: VecDeque<Work>,
    pub start_all: bool,
    /// What wb_workfn is at.
    pub check: Check,
    pub work: Option<Work>,
    pub writing: Option<Writing>,
    /// What it does next, found already.
    pub found: Option<Writeback>,
    /// What the program waits for.
    pub waits: Option<Wait>,
    /// Dirty pages above which it writes (`bg_thresh`).
    background_pages: u64,
    last_old_flush: Ns,
    pub completions: Completions,
}

impl Flusher {
    /// Of a file system that is mounted now.
    pub fn new(ticks: Ticks, now: Ns, background_pages: u64, completions: Completions) -> Flusher {
        Flusher {
            ticks,
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
            background_pages,
            last_old_flush: now,
            completions,
        }
    }

    /// Every inode with something to write back, in the order in which the flusher would.
    pub fn inodes(&self) -> impl Iterator<Item = usize> + '_ {
        let writing = self.writing.iter().map(|writing| writing.index);
        let io = self.io.iter().chain(&self.more_io).copied();
        writing.chain(io).chain(self.dirty.iter().map(|&(index, _)| index))
    }

    /// wb_has_dirty_io.
    pub fn has_dirty_io(&self) -> bool {
        self.inodes().next().is_some()
    }

    /// The inode that has been dirty for the shortest time.
    pub fn newest(&self) -> Option<Ns> {
        self.dirty.last().map(|&(_, since)| since)
    }

    /// inode_io_list_move_locked to b_dirty.
    pub fn add(&mut self, now: Ns, index: usize, since: Ns) {
        self.dirty.push((index, since));
        self.sleep(now);
    }

    /// inode_io_list_del.
    pub fn remove(&mut self, index: usize) {
        self.io.retain(|&other| other != index);
        self.more_io.retain(|&other| other != index);
        self.dirty.retain(|&(other, _)| other != index);
    }

    /// When it wakes by itself.
    pub fn due(&self) -> Option<Ns> {
        self.wake
    }

    /// delayed_work_timer_fn: when its timer ended, if it has.
    pub fn take_due(&mut self, now: Ns) -> Option<Ns> {
        let due = self.wake.take_if(|due| *due <= now)?;
        self.is_pending = true;
        Some(due)
    }

    /// Whether wb_workfn is running or about to.
    pub fn is_awake(&self) -> bool {
        self.is_pending || self.check != Check::Asleep
    }

    /// wb_wakeup_delayed, at the end of wb_workfn or when there is something to write at last.
    pub fn sleep(&mut self, now: Ns) {
        if self.has_dirty_io() && self.wake.is_none() && !self.is_pending {
            self.wake = Some(self.ticks.timer(now, WRITEBACK_INTERVAL_MS));
        }
    }

    /// Whether wb_check_old_data_flush goes on, as it does at most once in five seconds.
    pub fn begins_old_flush(&mut self, now: Ns) -> bool {
        let is_due = self.is_old_flush_due(now);
        if is_due {
            self.last_old_flush = now;
        }
        is_due
    }

    fn is_old_flush_due(&self, now: Ns) -> bool {
        self.has_passed(self.last_old_flush, now, WRITEBACK_INTERVAL_MS)
    }

    /// wb_over_bg_thresh.
    pub fn is_over_background(&mut self, now: Ns, dirty_pages: u64) -> bool {
        dirty_pages > self.background_pages
            || dirty_pages > self.completions.share_of(now, self.background_pages)
    }

    /// Whether an inode that is dirty since then is old enough for kupdate.
    pub fn is_old(&self, since: Ns, now: Ns) -> bool {
        self.has_passed(since, now, DIRTY_EXPIRE_MS)
    }

    /// inode_dirtied_after.
    pub fn is_later(&self, since: Ns, than: Ns) -> bool {
        self.ticks.jiffies(since) > self.ticks.jiffies(than)
    }

    /// Whether a round of writeback_sb_inodes that began then has lasted long enough.
    pub fn is_round_over(&self, begun: Ns, now: Ns) -> bool {
        self.has_passed(begun, now, ROUND_MS + self.ticks.tick_ns() / 1_000_000)
    }

    fn has_passed(&self, since: Ns, now: Ns, ms: u64) -> bool {
        let ticks = ms * 1_000_000 / self.ticks.tick_ns();
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
        Flusher::new(ticks, Ns(0), 1000, completions)
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
