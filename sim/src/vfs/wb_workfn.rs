//! The flusher's work, one step at a time.
//!
//! Mirrors wb_workfn, wb_do_writeback, wb_writeback, writeback_sb_inodes, __writeback_single_inode
//! and requeue_inode of fs/fs-writeback.c, and write_cache_pages of mm/page-writeback.c, Linux 6.1,
//! for one device with one file system. flusher.rs has the lists and the timer.
//!
//! A step writes a page or an inode. Before each step the flusher may be preempted (lock_page,
//! cond_resched), and other tasks then see the rest of the inode still dirty. A task that gets the
//! processor within a step blocks until its end, as it would on the flusher's locks.
//!
//! Left out: inodes of another file system on the device, skipped pages, bandwidth
//! (writeback_chunk_size).
//!
//! Invariants:
//! 1. An inode whose pages are being written (I_SYNC) is in none of the flusher's lists, and stays
//!    dirty until they are.
//! 2. The waiter of a queued work (`done`) waits until the work is over.

use super::flusher::{Check, Flusher, Reason, Wait, Work, Writing};
use super::inodes::Inodes;
use crate::fs::{PageWrite, Writeback};
use crate::units::Ns;
use std::collections::VecDeque;

impl Flusher {
    /// wb_queue_work: queues a work and wakes the flusher.
    pub fn queue(&mut self, reason: Reason, pages: i64) {
        self.work_list.push_back(Work::new(reason, pages));
        self.waits = Some(Wait::Work);
        self.start();
    }

    /// wb_start_writeback: wakes the flusher if there is anything to write.
    pub fn start_all(&mut self) -> bool {
        let is_needed = self.has_dirty_io();
        self.start_all |= is_needed;
        if is_needed {
            self.start();
        }
        is_needed
    }

    /// mod_delayed_work, at once.
    pub fn start(&mut self) {
        self.wake = None;
        self.is_pending = true;
    }

    /// Whether a task still waits.
    pub fn is_awaited(&self) -> bool {
        self.waits.is_some()
    }

    /// Whether wb_workfn has returned.
    pub fn is_done(&self) -> bool {
        !self.is_awake() && self.work.is_none() && self.writing.is_none() && self.found.is_none()
    }

    /// Whether the wait for an inode or for pages is over.
    fn ends_wait(&mut self) -> bool {
        let is_over = match self.waits {
            Some(Wait::Inode(index)) => !self.is_writing(index),
            Some(Wait::Pages(pages)) => pages == 0,
            Some(Wait::Work) | None => false,
        };
        if is_over {
            self.waits = None;
        }
        is_over
    }

    /// Whether the pages of an inode are being written (I_SYNC).
    pub fn is_writing(&self, index: usize) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.index == index)
    }

    /// The next work of wb_do_writeback, or none before it sleeps.
    fn next_work(&mut self, now: Ns, dirty_pages: u64) -> Option<Work> {
        loop {
            match self.check {
                Check::Asleep => {
                    if !std::mem::take(&mut self.is_pending) {
                        return None;
                    }
                    self.check = Check::WorkList;
                }
                Check::WorkList => match self.work_list.pop_front() {
                    Some(work) => return Some(work),
                    None => self.check = Check::StartAll,
                },
                Check::StartAll => {
                    self.check = Check::OldData;
                    if std::mem::take(&mut self.start_all) {
                        return Some(Work::new(Reason::StartAll, i64::MAX));
                    }
                }
                Check::OldData => {
                    self.check = Check::Background;
                    if self.begins_old_flush(now) {
                        return Some(Work::new(Reason::Periodic, i64::MAX));
                    }
                }
                Check::Background => {
                    self.check = Check::End;
                    if self.is_over_background(now, dirty_pages) {
                        return Some(Work::new(Reason::Background, i64::MAX));
                    }
                }
                Check::End if !self.work_list.is_empty() => self.check = Check::WorkList,
                Check::End => {
                    self.check = Check::Asleep;
                    self.sleep(now);
                }
            }
        }
    }

    /// wb_writeback and writeback_sb_inodes up to the next inode to write; none if the work is
    /// over.
    fn next_inode(&mut self, now: Ns, work: &mut Work, dirty_pages: u64) -> Option<usize> {
        if let Some((since, has_written)) = work.round {
            let is_enough = has_written && (self.is_round_over(since, now) || work.pages <= 0);
            if !is_enough && !self.io.is_empty() {
                return Some(self.io.remove(0));
            }
            work.round = None;
            if !has_written {
                return None;
            }
        }
        let is_over = work.pages <= 0
            || (work.yields_to_queued_work() && !self.work_list.is_empty())
            || (work.reason == Reason::Background && !self.is_over_background(now, dirty_pages));
        if is_over {
            return None;
        }
        if self.io.is_empty() {
            self.queue_io(now, work);
        }
        work.round = Some((now, false));
        (!self.io.is_empty()).then(|| self.io.remove(0))
    }

    /// queue_io.
    fn queue_io(&mut self, now: Ns, work: &Work) {
        let is_due = |&&(_, since): &&(usize, Ns)| match work.reason {
            Reason::Periodic => self.is_old(since, now),
            Reason::Background => true,
            _ => !self.is_later(since, work.begun),
        };
        let due = self.dirty.iter().take_while(is_due).count();
        self.io.append(&mut self.more_io);
        self.io.extend(self.dirty.drain(..due).map(|(index, _)| index));
    }
}

impl Inodes {
    /// The flusher's next step; the flusher has the processor.
    pub(super) fn next_step(&mut self, now: Ns) -> Writeback {
        self.flusher.completions.pass(now);
        let found = self.flusher.found.take();
        found.or_else(|| self.find_inode(now)).unwrap_or_else(|| self.continue_inode())
    }

    /// The flusher has woken the program. It is not preempted before it begins its next inode.
    pub(super) fn has_woken(&mut self, now: Ns) {
        self.flusher.found = self.find_inode(now).filter(|&found| found == Writeback::Wake);
    }

    /// Continues to the next inode to write, or to a step that precedes it.
    fn find_inode(&mut self, now: Ns) -> Option<Writeback> {
        loop {
            if self.flusher.ends_wait() {
                return Some(Writeback::Wake);
            }
            if self.flusher.writing.is_some() {
                return None;
            }
            let dirty_pages = self.dirty_pages();
            let flusher = &mut self.flusher;
            let Some(mut work) = flusher.work.take() else {
                match flusher.next_work(now, dirty_pages) {
                    Some(work) => flusher.work = Some(Work { begun: now, ..work }),
                    None if flusher.waits.take().is_some() => return Some(Writeback::Wake),
                    None => return Some(Writeback::Sleep),
                }
                continue;
            };
            let next = flusher.next_inode(now, &mut work, dirty_pages);
            match next {
                Some(index) => {
                    flusher.work = Some(work);
                    self.begin_inode(index, work);
                }
                None if work.has_waiter() => {
                    flusher.waits = None;
                    return Some(Writeback::Wake);
                }
                None => {}
            }
        }
    }

    /// The head of __writeback_single_inode and of write_cache_pages.
    fn begin_inode(&mut self, index: usize, work: Work) {
        let batch = self.facts.folio_batch;
        let inode = &mut self[index];
        let first = if work.is_tagged() { 0 } else { inode.writeback_index };
        let pages: VecDeque<u32> = match work.is_tagged() {
            true => inode.cache.tag_dirty(0, u32::MAX).into(),
            false => inode.cache.next_dirty(first, batch).into(),
        };
        let cursor = pages.back().map_or(first, |last| last + 1);
        let left = work.chunk_pages();
        self.flusher.writing =
            Some(Writing { index, work, pages, cursor, done_index: first, left, is_inode: false });
    }

    /// The next page of the inode being written, or the inode itself.
    fn continue_inode(&mut self) -> Writeback {
        let mut writing = self.flusher.writing.take().expect("an inode was begun");
        let index = writing.index;
        let page = self.next_page(&mut writing);
        let writeback_iter = self.facts.writeback_iter;
        let inode = &mut self[index];
        let (ino, size) = (inode.ino, inode.size_bytes);
        let step = match page {
            Some(page) => {
                inode.clear_page_dirty(page);
                Writeback::Page(PageWrite::whole(ino, page, size))
            }
            None => {
                inode.writeback_index = match (writing.work.is_tagged(), writing.left <= 0) {
                    (true, _) if writeback_iter => inode.writeback_index,
                    (false, true) if writeback_iter => writing.done_index + 1,
                    (false, false) => 0,
                    _ => writing.done_index,
                };
                inode.dirty.size = false;
                writing.is_inode = true;
                Writeback::Inode(ino)
            }
        };
        if page.is_some() {
            self.flusher.completions.add(1);
            if let Some(Wait::Pages(pages)) = &mut self.flusher.waits {
                *pages = pages.saturating_sub(1);
            }
        }
        self.flusher.writing = Some(writing);
        step
    }

    /// write_cache_pages: the next page that is still dirty.
    fn next_page(&self, writing: &mut Writing) -> Option<u32> {
        let cache = &self[writing.index].cache;
        while writing.left > 0 {
            let Some(page) = writing.pages.pop_front() else {
                if writing.work.is_tagged() {
                    return None;
                }
                writing.pages = cache.next_dirty(writing.cursor, self.facts.folio_batch).into();
                writing.cursor = writing.pages.back()? + 1;
                continue;
            };
            writing.done_index = page;
            if cache.is_page_dirty(page) {
                writing.left -= 1;
                return Some(page);
            }
        }
        None
    }

    /// The end of a step. After an inode's own write it is the end of writeback_sb_inodes' loop,
    /// with requeue_inode.
    pub(super) fn has_written(&mut self, now: Ns) {
        let Some(writing) = self.flusher.writing.take_if(|writing| writing.is_inode) else {
            return;
        };
        let Writing { index, mut work, left, .. } = writing;
        let all = work.chunk_pages();
        work.pages = work.pages.saturating_sub(all - left);
        let is_dirty = self[index].cache.is_dirty();
        if let Some((_, has_written)) = &mut work.round {
            *has_written |= all > left || !is_dirty;
        }
        self.flusher.work = Some(work);
        let since = self[index].dirty.since.take().expect("it was dirty");
        if !is_dirty {
            return;
        }
        let since = if work.is_tagged() { now } else { since };
        if left <= 0 {
            self[index].dirty.since = Some(since);
            self.flusher.more_io.push(index);
        } else {
            self.redirty_tail(now, index, since);
        }
    }

    /// redirty_tail: keeps the list in the order of time.
    fn redirty_tail(&mut self, now: Ns, index: usize, since: Ns) {
        let is_older = self.flusher.newest().is_some_and(|newest| since < newest);
        let since = if is_older { now } else { since };
        self[index].dirty.since = Some(since);
        self.flusher.add(now, index, since);
    }
}

#[cfg(test)]
mod tests {
    use super::super::completions::Completions;
    use super::*;
    use crate::profile::{KernelFacts, Vm};
    use crate::sched::Ticks;

    const S: u64 = 1_000_000_000;

    fn flusher() -> Flusher {
        let ticks = Ticks::new(250);
        let completions = Completions::new(&KernelFacts::USER_MODE, Ns(0));
        Flusher::new(ticks, Ns(0), (Vm::DEFAULT, 10_000), completions)
    }

    /// The inodes that a work writes, in order, if writing takes no time.
    fn written(flusher: &mut Flusher, now: Ns, reason: Reason, pages: i64) -> Vec<usize> {
        let mut work = Work { begun: now, ..Work::new(reason, pages) };
        let mut indices = Vec::new();
        while let Some(index) = flusher.next_inode(now, &mut work, 0) {
            indices.push(index);
            work.pages = work.pages.saturating_sub(10);
            work.round = work.round.map(|(since, _)| (since, true));
        }
        indices
    }

    #[test]
    fn queued_inodes_are_written_before_older_ones() {
        let mut flusher = flusher();
        flusher.add(Ns(S), 1, Ns(S));
        flusher.add(Ns(S), 2, Ns(S));
        assert_eq!(
            written(&mut flusher, Ns(S), Reason::FreeSpace, 10),
            [1],
            "ten pages are enough"
        );
        flusher.add(Ns(2 * S), 3, Ns(0));
        assert_eq!(written(&mut flusher, Ns(3 * S), Reason::Periodic, i64::MAX), [2], "of any age");
        assert_eq!(written(&mut flusher, Ns(31 * S), Reason::Periodic, i64::MAX), [3]);
    }

    #[test]
    fn old_data_is_written_after_awaited_data() {
        let mut flusher = flusher();
        flusher.add(Ns(S), 1, Ns(S));
        flusher.queue(Reason::Sync, i64::MAX);
        assert_eq!(written(&mut flusher, Ns(40 * S), Reason::Periodic, i64::MAX), []);
        assert_eq!(written(&mut flusher, Ns(40 * S), Reason::Sync, i64::MAX), [1]);
    }
}
