//! Write-buffers: the partly filled page at the end of each journal head.
//!
//! Mirrors fs/ubifs/io.c (ubifs_wbuf_write_nolock, ubifs_wbuf_sync_nolock, ubifs_bg_wbufs_sync, the
//! timers) of Linux 6.1.
//!
//! Invariant: a write-buffer covers `offset..offset + size` of its LEB, a part of one page.

use super::geometry::{align, Geometry, BASE_HEAD, DATA_HEAD, DATA_HEADER_BYTES, GC_HEAD, HEADS};
use super::key::Place;
use super::properties::Change;
use super::Ubifs;
use crate::causes::{Cause, Held};
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The LEB it writes to, once there is one.
    pub leb: Option<u32>,
    pub offset: u32,
    size: u32,
    pub used: u32,
    /// The causes of its bytes.
    held: Held,
    /// Inodes with a node in the buffer.
    inodes: Vec<u32>,
    /// When its timer expires at the earliest.
    pub timer: Option<Ns>,
    /// The timer has expired, and nothing was written since.
    need_sync: bool,
}

impl Head {
    /// Sizes the buffer to the rest of its page.
    fn resize(&mut self, geometry: &Geometry) {
        let page = geometry.page_bytes;
        let to_page = page - (self.offset & (page - 1));
        self.size = to_page.min(geometry.leb_bytes - self.offset);
    }

    /// cancel_wbuf_timer_nolock.
    fn cancel_timer(&mut self) {
        (self.timer, self.need_sync) = (None, false);
    }

    /// ubifs_wbuf_add_ino_nolock.
    pub fn add_inode(&mut self, inum: u32) {
        if self.used > 0 && !self.inodes.contains(&inum) {
            self.inodes.push(inum);
        }
    }
}

impl<D: NandDriver> Ubifs<D> {
    fn write_leb(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let state = &mut self.journal.heads[head];
        let leb = state.leb.expect("a head that writes has a LEB");
        let offset = state.offset;
        state.offset += bytes;
        let causes = state.held.take(bytes);
        self.ubi.write_for(now, leb, offset, bytes, &causes)
    }

    /// bud_wbuf_callback.
    fn update_bud(&mut self, now: Ns, head: usize, more_dirty: u32) -> Result<Ns> {
        let state = &self.journal.heads[head];
        let leb = state.leb.expect("a head that writes has a LEB");
        let free = Some(self.geometry.leb_bytes - state.offset - state.used);
        let change = Change { free, more_dirty, ..Change::default() };
        self.lpt.change(&mut self.ubi, now, leb, change)
    }

    /// ubifs_wbuf_seek_nolock.
    pub(super) fn seek_head(&mut self, head: usize, leb: u32, offset: u32) {
        let state = &mut self.journal.heads[head];
        (state.leb, state.offset, state.used) = (Some(leb), offset, 0);
        state.resize(&self.geometry);
    }

    /// ubifs_wbuf_sync_nolock: writes the buffer, padded to a page.
    pub(super) fn sync_head(&mut self, now: Ns, head: usize) -> Result<Ns> {
        let page = self.geometry.page_bytes;
        let state = &mut self.journal.heads[head];
        state.cancel_timer();
        if state.used == 0 || state.leb.is_none() {
            return Ok(now);
        }
        self.check_writable(now)?;
        let state = &mut self.journal.heads[head];
        let bytes = align(state.used, page);
        let padding = bytes - state.used;
        let now = self.write_leb(now, head, bytes)?;
        let state = &mut self.journal.heads[head];
        state.used = 0;
        state.inodes.clear();
        state.resize(&self.geometry);
        self.update_bud(now, head, padding)
    }

    /// Syncs every head, as a commit and sync do.
    pub(super) fn sync_heads(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        for head in 0..HEADS {
            now = self.sync_head(now, head)?;
        }
        Ok(now)
    }

    /// ubifs_sync_wbufs_by_inode.
    pub(super) fn sync_heads_of(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let mut now = now;
        for head in [BASE_HEAD, DATA_HEAD] {
            if self.journal.heads[head].inodes.contains(&inum) {
                now = self.sync_head(now, head)?;
            }
        }
        Ok(now)
    }

    /// wbuf_timer_callback_nolock of the timers that have expired.
    pub(super) fn expire_timers(&mut self, now: Ns) {
        for head in &mut self.journal.heads {
            head.need_sync |= head.timer.take_if(|due| *due <= now).is_some();
        }
    }

    /// ubifs_bg_wbufs_sync: the next write-buffer that the thread has to write.
    pub(super) fn next_to_sync(&self) -> Option<usize> {
        self.journal.heads.iter().position(|head| head.need_sync)
    }

    /// ubifs_wbuf_write_nolock. If the write fails, ubifs_dump_leb reads the LEB to print its
    /// nodes.
    fn write_buffered(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let leb = self.journal.heads[head].leb;
        let written = self.fill_buffer(now, head, bytes);
        let (Err(FsError::Io(at) | FsError::ReadOnly(at)), Some(leb)) = (&written, leb) else {
            return written;
        };
        self.ubi.try_read(*at, leb, 0, self.geometry.leb_bytes).map(FsError::ReadOnly).and_then(Err)
    }

    /// Fills the buffer, writes whole pages past it, and keeps the rest.
    fn fill_buffer(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let page = self.geometry.page_bytes;
        let mut left = align(bytes, 8);
        let mut now = now;
        let state = &mut self.journal.heads[head];
        state.cancel_timer();
        let room = state.size - state.used;
        if left < room {
            state.used += left;
        } else {
            if state.used > 0 || state.offset & (page - 1) != 0 || left == room {
                let size = state.size;
                left -= room;
                now = self.write_leb(now, head, size)?;
            }
            let rest = left & (page - 1);
            let whole = left - rest;
            if whole > page {
                now = self.write_leb(now, head, whole - page)?;
            }
            if whole > 0 {
                now = self.write_leb(now, head, page)?;
            }
            let state = &mut self.journal.heads[head];
            state.used = rest;
            state.inodes.clear();
            state.resize(&self.geometry);
        }
        now = self.update_bud(now, head, 0)?;
        let state = &mut self.journal.heads[head];
        if state.used > 0 && head != GC_HEAD {
            state.timer = Some(now + self.timer);
        }
        Ok(now)
    }

    /// Adds bytes of nodes to their cause. The data head has only data nodes, and the GC head only
    /// moved ones.
    fn hold(&mut self, head: usize, bytes: u32) {
        let held = &mut self.journal.heads[head].held;
        let padded = align(bytes, 8);
        match head {
            GC_HEAD => held.push(Cause::Collection, padded),
            DATA_HEAD => {
                held.push(Cause::Metadata, DATA_HEADER_BYTES);
                held.push(Cause::Data, bytes - DATA_HEADER_BYTES);
                held.push(Cause::Metadata, padded - bytes);
            }
            _ => held.push(Cause::Metadata, padded),
        }
    }

    /// The place of the next nodes of `bytes` in a head.
    #[inline]
    pub(super) fn next_place(&self, head: usize, bytes: u32) -> Place {
        let state = &self.journal.heads[head];
        let leb = state.leb.expect("reserved");
        Place { leb, offset: state.offset + state.used, bytes }
    }

    /// write_head: appends nodes of `bytes` to a head that has space for them.
    pub(super) fn append(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let costs = self.ubi.costs();
        let cpu = costs.ubifs_write_node_ns + Ns::from_ps(u64::from(bytes), costs.ubifs_byte_ps);
        self.hold(head, bytes);
        self.write_buffered(now + cpu, head, bytes)
    }
}
