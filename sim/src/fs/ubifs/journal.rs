//! The journal: write-buffers, the LEBs they fill (buds) and the log that names them.
//!
//! Mirrors fs/ubifs/io.c (ubifs_wbuf_write_nolock, ubifs_wbuf_sync_nolock, the timers), journal.c
//! (reserve_space, make_reservation, write_head) and log.c (ubifs_add_bud_to_log) of Linux 6.1.
//!
//! The background commit that ubifs_add_bud_to_log asks for starts as soon as the writer lets go
//! of the commit lock, which is when the first node of the new bud is in the index; it is then
//! over at once instead of running beside the writer.
//!
//! Invariants:
//! 1. A write-buffer covers `offset..offset + size` of its LEB, a part of one page.
//! 2. Every LEB a head writes to is in `buds`, and taken in the LEB properties.

use super::geometry::{align, Geometry, HEADS, LOG_LEB, REFERENCE_BYTES};
use super::lprops::{Change, TAKEN};
use super::tnc::Place;
use super::Ubifs;
use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::units::Ns;

/// The journal heads (GCHD, BASEHD, DATAHD).
pub const GC_HEAD: usize = 0;
pub const BASE_HEAD: usize = 1;
pub const DATA_HEAD: usize = 2;

/// dirty_writeback_interval of five seconds, and the tenth more that the kernel allows itself: timers
/// that run out within it of each other run out together (hrtimer_start_range_ns).
const TIMER_NS: Ns = Ns(5_000_000_000);
const TIMER_SLACK_NS: Ns = Ns(500_000_000);

/// A write-buffer.
#[derive(Clone, Debug)]
pub struct Head {
    /// The LEB written to, once there is one.
    pub leb: Option<u32>,
    pub offset: u32,
    size: u32,
    pub used: u32,
    /// Inodes with a node in the buffer.
    inodes: Vec<u32>,
    timer: Option<Ns>,
}

/// A LEB of the journal and where its part of it starts.
#[derive(Clone, Copy, Debug)]
pub struct Bud {
    pub leb: u32,
    pub start: u32,
    pub head: usize,
}

/// Heads, buds and the log.
#[derive(Clone, Debug)]
pub struct Journal {
    pub heads: [Head; HEADS],
    pub buds: Vec<Bud>,
    pub bud_bytes: u64,
    pub log_leb: u32,
    pub log_offset: u32,
    pub log_tail: u32,
    /// COMMIT_BACKGROUND.
    pub commit_wanted: bool,
}

impl Journal {
    /// The journal of a fresh file system: a commit-start node in the log, no buds.
    pub fn new(geometry: &Geometry) -> Journal {
        let head = Head { leb: None, offset: 0, size: 0, used: 0, inodes: Vec::new(), timer: None };
        Journal {
            heads: [head.clone(), head.clone(), head],
            buds: Vec::new(),
            bud_bytes: 0,
            log_leb: LOG_LEB,
            log_offset: geometry.page_bytes,
            log_tail: LOG_LEB,
            commit_wanted: false,
        }
    }

    /// What an unmount leaves of it, which the log has: the heads that are in the middle of a LEB.
    pub fn forget(&mut self, geometry: &Geometry) {
        for head in &mut self.heads {
            if head.offset == geometry.leb_bytes {
                head.leb = None;
            }
        }
        let heads = &self.heads;
        self.buds.retain(|bud| heads[bud.head].leb == Some(bud.leb));
        self.buds.sort_by_key(|bud| bud.head);
    }

    /// When the first write-buffer is due to be written out.
    pub fn next_due(&self) -> Option<Ns> {
        self.heads.iter().filter_map(|head| head.timer).min()
    }
}

impl Head {
    /// The rest of the page the buffer stands in.
    fn resize(&mut self, geometry: &Geometry) {
        let page = geometry.page_bytes;
        let to_page = page - self.offset % page;
        self.size = to_page.min(geometry.leb_bytes - self.offset);
    }
}

impl<F: Flash> Ubifs<F> {
    fn write_leb(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let state = &mut self.journal.heads[head];
        let leb = state.leb.expect("a head that writes has a LEB");
        let offset = state.offset;
        state.offset += bytes;
        self.ubi.write(now, leb, offset, bytes)
    }

    /// bud_wbuf_callback.
    fn update_bud(&mut self, now: Ns, head: usize, more_dirty: u32) -> Result<Ns> {
        let state = &self.journal.heads[head];
        let leb = state.leb.expect("a head that writes has a LEB");
        let free = Some(self.geometry.leb_bytes - state.offset - state.used);
        let change = Change { free, more_dirty, ..Change::default() };
        self.lpt.change(&mut self.ubi, now, leb, change)
    }

    /// ubifs_wbuf_sync_nolock: what is in the buffer, padded to a page.
    pub fn sync_head(&mut self, now: Ns, head: usize) -> Result<Ns> {
        let page = self.geometry.page_bytes;
        let state = &mut self.journal.heads[head];
        state.timer = None;
        if state.used == 0 || state.leb.is_none() {
            return Ok(now);
        }
        let bytes = align(state.used, page);
        let padding = bytes - state.used;
        let now = self.write_leb(now, head, bytes)?;
        let state = &mut self.journal.heads[head];
        state.used = 0;
        state.inodes.clear();
        state.resize(&self.geometry);
        self.update_bud(now, head, padding)
    }

    /// Every head, as a commit and sync do.
    pub fn sync_heads(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        for head in 0..HEADS {
            now = self.sync_head(now, head)?;
        }
        Ok(now)
    }

    /// ubifs_sync_wbufs_by_inode.
    pub fn sync_heads_of(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let mut now = now;
        for head in [BASE_HEAD, DATA_HEAD] {
            if self.journal.heads[head].inodes.contains(&inum) {
                now = self.sync_head(now, head)?;
            }
        }
        Ok(now)
    }

    /// The background thread after a timer (ubifs_bg_wbufs_sync).
    pub fn sync_due_heads(&mut self, now: Ns) -> Result<Ns> {
        let end = now + TIMER_SLACK_NS;
        let mut now = now;
        for head in 0..HEADS {
            if self.journal.heads[head].timer.is_some_and(|due| due <= end) {
                now = self.sync_head(now, head)?;
            }
        }
        Ok(now)
    }

    /// ubifs_wbuf_write_nolock: fills the buffer, writes whole pages past it, keeps the rest.
    fn write_buffered(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let page = self.geometry.page_bytes;
        let mut left = align(bytes, 8);
        let mut now = now;
        let state = &mut self.journal.heads[head];
        state.timer = None;
        let room = state.size - state.used;
        if left < room {
            state.used += left;
        } else {
            if state.used > 0 || state.offset % page != 0 || left == room {
                let size = state.size;
                left -= room;
                now = self.write_leb(now, head, size)?;
            }
            let pages = left / page;
            if pages > 1 {
                now = self.write_leb(now, head, (pages - 1) * page)?;
            }
            if pages > 0 {
                now = self.write_leb(now, head, page)?;
            }
            let state = &mut self.journal.heads[head];
            state.used = left % page;
            state.inodes.clear();
            state.resize(&self.geometry);
        }
        now = self.update_bud(now, head, 0)?;
        let state = &mut self.journal.heads[head];
        if state.used > 0 && head != GC_HEAD {
            state.timer = Some(now + TIMER_NS);
        }
        Ok(now)
    }

    /// make_reservation, write_head and ubifs_wbuf_add_ino_nolock: `bytes` of nodes for `inums`.
    pub fn write_nodes(
        &mut self,
        now: Ns,
        head: usize,
        bytes: u32,
        inums: &[u32],
    ) -> Result<(Place, Ns)> {
        let now = self.reserve(now, head, bytes)?;
        let costs = self.ubi.costs();
        let cpu = costs.ubifs_node_ns + Ns::from_ps(u64::from(bytes), costs.ubifs_byte_ps);
        let state = &self.journal.heads[head];
        let leb = state.leb.expect("reserved");
        let place = Place { leb, offset: state.offset + state.used, bytes };
        let now = self.write_buffered(now + cpu, head, bytes)?;
        let state = &mut self.journal.heads[head];
        for inum in inums {
            if state.used > 0 && !state.inodes.contains(inum) {
                state.inodes.push(*inum);
            }
        }
        Ok((place, now))
    }

    /// make_reservation with reserve_space: seeks to another LEB when this one has no room, and
    /// commits first if the journal would become too large.
    fn reserve(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let mut now = now;
        for _ in 0..2 {
            let state = &self.journal.heads[head];
            let used = state.offset + state.used;
            if state.leb.is_some() && self.geometry.leb_bytes - used >= bytes {
                return Ok(now);
            }
            let squeeze = head == BASE_HEAD;
            let index_lebs = self.index_lebs_min();
            let found = self.lpt.find_free_space(&mut self.ubi, now, bytes, squeeze, index_lebs);
            let (leb, offset, later) = found?;
            now = self.sync_head(later, head)?;
            match self.add_bud(now, head, leb, offset)? {
                Some(later) => {
                    let state = &mut self.journal.heads[head];
                    (state.leb, state.offset, state.used) = (Some(leb), offset, 0);
                    state.resize(&self.geometry);
                    return Ok(later);
                }
                None => {
                    now = self.return_leb(now, leb)?;
                    now = self.commit(now)?;
                }
            }
        }
        Err(FsError::NoSpace)
    }

    /// ubifs_return_leb.
    pub fn return_leb(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        self.lpt.change(&mut self.ubi, now, leb, Change { clear: TAKEN, ..Change::default() })
    }

    /// ubifs_add_bud_to_log: `None` when a commit has to come first.
    fn add_bud(&mut self, now: Ns, head: usize, leb: u32, start: u32) -> Result<Option<Ns>> {
        let geometry = self.geometry;
        let bytes = u64::from(geometry.leb_bytes - start);
        let journal = &mut self.journal;
        if journal.bud_bytes + bytes > geometry.bud_bytes_max {
            return Ok(None);
        }
        if journal.bud_bytes >= geometry.bud_bytes_background {
            journal.commit_wanted = true;
        }
        let reference = align(REFERENCE_BYTES, geometry.page_bytes);
        let mut now = now;
        if journal.log_offset + reference > geometry.leb_bytes {
            journal.log_leb = geometry.next_log_leb(journal.log_leb);
            journal.log_offset = 0;
            now = self.ubi.unmap(now, journal.log_leb)?;
        }
        if start == 0 {
            now = self.ubi.map(now, leb)?;
        }
        now = self.ubi.write(now, journal.log_leb, journal.log_offset, reference)?;
        journal.log_offset += reference;
        journal.bud_bytes += bytes;
        journal.buds.push(Bud { leb, start, head });
        Ok(Some(now))
    }
}
