//! The write buffer: one flash page that collects nodes until it is full.
//!
//! Mirrors fs/jffs2/wbuf.c of Linux 6.1 (jffs2_flash_writev, __jffs2_flush_wbuf,
//! jffs2_flush_wbuf_gc, jffs2_dirty_trigger, jffs2_verify_write). 2.6.37 differs only in the task
//! that flushes a partly filled buffer: [`WbufFlush`]. recover.rs handles failed programs. Left
//! out: the time in which a page that was read back is compared.
//!
//! Invariants:
//! 1. The buffer holds the bytes from `start` on that are not on flash yet. `start` is a page's
//!    offset.
//! 2. `pending` lists the inodes with bytes in the buffer that garbage collection did not put
//!    there.

use super::call::Call;
use super::gc_choices::ChosenIn;
use super::space::{List, Pass};
use super::Jffs2;
use crate::causes::{Cause, Held};
use crate::flash::{Failed, Fault};
use crate::fs::{FsError, Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;
use serde::Deserialize;

/// What calls jffs2_flush_wbuf_gc for a partly filled buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WbufFlush {
    /// c->wbuf_dwork, this long after the first byte (since 3.7).
    DelayedWork,
    /// The thread `sync_supers` (mm/backing-dev.c) calls jffs2_write_super if anything was written
    /// since its last round. The machine has one such round; its timer is rounded up to the next
    /// second.
    SyncSupers,
}

/// c->wbuf and its state.
#[derive(Clone, Debug, Default)]
pub struct WriteBuffer {
    /// wbuf_ofs; none before the first write to a new block.
    pub start: Option<u32>,
    /// wbuf_len.
    pub bytes: u32,
    /// The causes of its bytes.
    pub(super) held: Held,
    /// wbuf_inodes.
    pub pending: Vec<Ino>,
    /// When the timer of the delayed work expires.
    pub due: Option<Ns>,
    /// The timer has expired, and the work is queued for a worker.
    pub is_queued: bool,
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_flash_writev: writes vectors, each in parts of one cause, one after another at `to`.
    /// Whole pages of a vector bypass the buffer. `ino` is none for garbage collection and
    /// summaries.
    pub(super) fn flash_write(
        &mut self,
        now: Ns,
        to: u32,
        vectors: &[&[(Cause, u32)]],
        ino: Option<Ino>,
    ) -> Result<Ns> {
        if !self.medium.has_wbuf {
            return self.write_direct(now, to, vectors);
        }
        let mut now = self.aim_wbuf(now, to)?;
        for vector in vectors {
            let mut left = 0;
            for &(cause, bytes) in *vector {
                self.wbuf.held.push(cause, bytes);
                left += bytes;
            }
            left -= self.fill_wbuf(left);
            now = self.flush_full_wbuf(now)?;
            if left == 0 {
                continue;
            }
            let whole = self.mtd.whole_pages(left);
            if whole > 0 {
                let start = self.wbuf.start.expect("aimed");
                let causes = self.wbuf.held.take(whole);
                let call = Call::Write { offset: start, bytes: whole, causes };
                now = match self.call_with(now, call, None)? {
                    Err(Failed { at, fault: Fault::ProgramFailed }) => {
                        self.refile_bad(at, self.block_of(start));
                        self.wbuf.held = Held::default();
                        return Err(FsError::Io(at));
                    }
                    other => other?,
                };
                self.wbuf.start = Some(start + whole);
                left -= whole;
            }
            self.fill_wbuf(left);
            now = self.flush_full_wbuf(now)?;
        }
        if let Some(ino) = ino.filter(|_| self.wbuf.bytes > 0) {
            self.wbuf_dirties_inode(now, ino);
        }
        Ok(now)
    }

    /// jffs2_wbuf_dirties_inode: fsync need not flush nodes that were only moved.
    fn wbuf_dirties_inode(&mut self, now: Ns, ino: Ino) {
        self.dirty_trigger(now);
        if !self.wbuf.pending.contains(&ino) {
            self.wbuf.pending.push(ino);
        }
    }

    /// jffs2_dirty_trigger: arms the delayed flush.
    fn dirty_trigger(&mut self, now: Ns) {
        if self.wbuf.due.is_none() && !self.wbuf.is_queued {
            let delay_ms = self.facts.vm.writeback_ms();
            self.wbuf.due = Some(match self.options.wbuf_flush {
                WbufFlush::DelayedWork if delay_ms == 0 => now,
                WbufFlush::DelayedWork => self.ticks.timer(now, delay_ms),
                WbufFlush::SyncSupers => self.ticks.next_round(now, delay_ms),
            });
        }
    }

    /// Sets the buffer to the page of `to`, which continues its content or starts a block.
    fn aim_wbuf(&mut self, mut now: Ns, to: u32) -> Result<Ns> {
        let page = self.mtd.whole_pages(to);
        let moved = self.wbuf.start.is_some_and(|s| self.block_of(s) != self.block_of(to));
        if moved {
            now = self.flush_wbuf(now)?;
        }
        if moved || self.wbuf.start.is_none() {
            self.wbuf.start = Some(page);
            self.wbuf.bytes = to - page;
            self.wbuf.held.push(Cause::Padding, to - page);
        }
        let end = self.wbuf.start.expect("set") + self.wbuf.bytes;
        assert!(to >= end && to < end + 4, "write at {to}, but the buffer ends at {end}");
        self.wbuf.bytes += to - end;
        self.wbuf.held.push(Cause::Padding, to - end);
        self.flush_full_wbuf(now)
    }

    /// jffs2_fill_wbuf: takes the bytes that fit, and none if the buffer is empty and a whole page
    /// can bypass it.
    fn fill_wbuf(&mut self, bytes: u32) -> u32 {
        let page_bytes = self.mtd.page_bytes();
        if self.wbuf.bytes == 0 && bytes >= page_bytes {
            return 0;
        }
        let taken = bytes.min(page_bytes - self.wbuf.bytes);
        self.wbuf.bytes += taken;
        taken
    }

    fn flush_full_wbuf(&mut self, now: Ns) -> Result<Ns> {
        if self.wbuf.bytes == self.mtd.page_bytes() {
            self.flush_wbuf(now)
        } else {
            Ok(now)
        }
    }

    /// jffs2_flush_wbuf_pad: flushes again if a recovery left bytes in the buffer.
    pub(super) fn flush_wbuf_pad(&mut self, now: Ns) -> Result<Ns> {
        match self.flush_wbuf(now) {
            Err(FsError::Io(at)) => self.flush_wbuf(at),
            other => other,
        }
    }

    /// jffs2_flush_wbuf_pad for callers that ignore its result.
    pub(super) fn try_flush_wbuf_pad(&mut self, now: Ns) -> Result<Ns> {
        match self.flush_wbuf_pad(now) {
            Err(FsError::Io(at)) => Ok(at),
            other => other,
        }
    }

    /// __jffs2_flush_wbuf: programs the page, padded if it is not full.
    pub(super) fn flush_wbuf(&mut self, now: Ns) -> Result<Ns> {
        if self.wbuf.bytes == 0 {
            return Ok(now);
        }
        let page_bytes = self.mtd.page_bytes();
        let start = self.wbuf.start.expect("bytes lie somewhere");
        let causes = self.wbuf.held.take(page_bytes);
        let call = Call::Write { offset: start, bytes: page_bytes, causes };
        let now = match self.call_with(now, call, None)? {
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                return Err(FsError::Io(self.recover_wbuf(at)?));
            }
            other => other?,
        };
        let (is_right, now) = self.verify_write(now, start)?;
        if !is_right {
            return Err(FsError::Io(self.recover_wbuf(now)?));
        }
        let waste = page_bytes - super::layout::pad(self.wbuf.bytes);
        if waste > 0 {
            self.link_wasted(self.block_of(start), waste);
        }
        self.wbuf.start = Some(start + page_bytes);
        self.wbuf.bytes = 0;
        self.wbuf.pending.clear();
        self.refile_wbuf_blocks(now);
        Ok(now)
    }

    /// jffs2_verify_write: reads a page of the buffer back, where the kernel is built to. Returns
    /// whether it is as it was written.
    pub(super) fn verify_write(&mut self, now: Ns, offset: u32) -> Result<(bool, Ns)> {
        if !self.options.wbuf_verify {
            return Ok((true, now));
        }
        let bytes = self.mtd.page_bytes();
        match self.call_with(now, Call::Read { offset, bytes }, None)? {
            Ok(at) => Ok((true, at)),
            Err(Failed { at, fault: Fault::Uncorrectable }) => {
                Ok((!self.mtd.is_wrong(offset.into(), bytes), at))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// jffs2_refile_wbuf_blocks: the nodes that made these blocks obsolete are now on flash. One
    /// block in 128 is set aside, by the tick and a counter.
    fn refile_wbuf_blocks(&mut self, now: Ns) {
        while let Some(block) = self.space.pop_front(List::ErasablePendingWbuf) {
            let jiffies = self.ticks.jiffies(now) + self.refiled;
            self.refiled += 1;
            if self.gc_choices.choose(ChosenIn::Refile, jiffies) != 0 {
                self.space.await_erase(block);
                self.trigger_collector(now);
            } else {
                self.space.push_back(List::Erasable, block);
            }
        }
    }

    /// Detaches an empty buffer from the start of a block, so that the next block may be any.
    pub(super) fn forget_empty_wbuf(&mut self) {
        if self.wbuf.bytes == 0 && self.wbuf.start.is_some_and(|s| s % self.block_bytes == 0) {
            self.wbuf.start = None;
        }
    }

    /// jffs2_flush_wbuf_gc: moves nodes until the page is full, rather than pad it. If `ino` is
    /// none, bytes of any inode are a reason to flush.
    pub(super) fn flush_wbuf_gc(
        &mut self,
        mut now: Ns,
        ino: Option<Ino>,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if !self.medium.has_wbuf {
            return Ok(now);
        }
        now = self.lock_alloc(now, pages)?;
        let is_pending = match ino {
            Some(ino) => self.wbuf.pending.contains(&ino),
            None => !self.wbuf.pending.is_empty(),
        };
        if is_pending && self.space.total.unchecked_bytes > 0 {
            now = self.flush_wbuf_pad(now)?;
        } else if is_pending {
            let before = (self.wbuf.bytes > 0).then_some(self.wbuf.start);
            while before == Some(self.wbuf.start) {
                self.unlock_alloc(now);
                let pass = self.garbage_collect_pass(now, pages);
                let is_full = !matches!(pass, Ok((Pass::Progress, _)));
                now = match pass {
                    Ok((_, later)) => later,
                    Err(other) => other.failed_at().ok_or(other)?,
                };
                now = self.lock_alloc(now, pages)?;
                if is_full {
                    now = self.flush_wbuf_pad(now)?;
                    break;
                }
            }
        }
        self.unlock_alloc(now);
        Ok(now)
    }
}
