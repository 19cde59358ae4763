//! The log: the journal's LEBs and the positions of its heads.
//!
//! Mirrors fs/ubifs/log.c (ubifs_add_bud_to_log, ubifs_log_start_commit, remove_buds,
//! ubifs_log_end_commit, ubifs_log_post_commit) of Linux 6.1.
//!
//! Invariant: every LEB that a head writes to is in `buds`, and taken in the LEB properties.

use super::geometry::{align, Geometry, COMMIT_START_BYTES, HEADS, LOG_LEB, REFERENCE_BYTES};
use super::io::Head;
use super::Ubifs;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// Whether a commit is requested (`cmt_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitState {
    Resting,
    Background,
    Required,
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
    pub commit_state: CommitState,
}

/// A LEB of the journal, and the offset where its bud starts.
#[derive(Clone, Copy, Debug)]
pub struct Bud {
    /// The LEB.
    pub leb: u32,
    /// Where the bud starts.
    pub start: u32,
    /// The journal head that writes to it.
    pub head: usize,
}

/// The buds that a commit closed, last first, and the journal bytes that this frees.
#[derive(Clone, Debug)]
pub struct Closed {
    pub lebs: Vec<u32>,
    bytes: u64,
    old_tail: u32,
}

impl Journal {
    /// The journal of a new file system: a commit-start node in the log, no buds.
    pub fn new(geometry: &Geometry) -> Journal {
        let (log_leb, log_offset) = first_log_place(geometry);
        Journal {
            heads: Default::default(),
            buds: Vec::new(),
            bud_bytes: 0,
            log_leb,
            log_offset,
            log_tail: log_leb,
            commit_state: CommitState::Resting,
        }
    }

    /// The part that an unmount preserves in the log: the heads that are in the middle of a LEB.
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

    /// When the first write-buffer's timer expires.
    pub fn next_due(&self) -> Option<Ns> {
        self.heads.iter().filter_map(|head| head.timer).min()
    }

    /// empty_log_bytes.
    fn empty_log_bytes(&self, geometry: &Geometry) -> u64 {
        let whole = u64::from(geometry.leb_bytes);
        let log = whole * u64::from(geometry.log_lebs);
        let head = u64::from(self.log_leb) * whole + u64::from(self.log_offset);
        let tail = u64::from(self.log_tail) * whole;
        match head.cmp(&tail) {
            core::cmp::Ordering::Greater => log + tail - head,
            core::cmp::Ordering::Less => tail - head,
            core::cmp::Ordering::Equal if self.log_leb != self.log_tail => 0,
            core::cmp::Ordering::Equal => log,
        }
    }
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_add_bud_to_log; `None` if a commit has to come first.
    pub(super) fn add_bud(
        &mut self,
        now: Ns,
        head: usize,
        leb: u32,
        start: u32,
    ) -> Result<Option<Ns>> {
        let geometry = self.geometry;
        let bytes = u64::from(geometry.leb_bytes - start);
        let reference = align(REFERENCE_BYTES, geometry.page_bytes);
        let journal = &mut self.journal;
        let room = journal.empty_log_bytes(&geometry);
        if room < u64::from(reference + geometry.leb_bytes)
            || journal.bud_bytes + bytes > geometry.bud_bytes_max
        {
            journal.commit_state = CommitState::Required;
            return Ok(None);
        }
        if journal.bud_bytes >= geometry.bud_bytes_background
            && journal.commit_state == CommitState::Resting
        {
            journal.commit_state = CommitState::Background;
        }
        if journal.log_offset + reference > geometry.leb_bytes {
            journal.log_leb = geometry.next_log_leb(journal.log_leb);
            journal.log_offset = 0;
        }
        let (log_leb, log_offset) = (journal.log_leb, journal.log_offset);
        let mut now = now;
        if log_offset == 0 {
            now = self.ubi.unmap(now, log_leb)?;
        }
        if start == 0 {
            self.written.clear(leb);
            now = self.ubi.map(now, leb)?;
        }
        now = self.ubi.write(now, log_leb, log_offset, reference)?;
        let journal = &mut self.journal;
        journal.log_offset += reference;
        journal.bud_bytes += bytes;
        journal.buds.push(Bud { leb, start, head });
        self.log_written(Some(Bud { leb, start, head }));
        Ok(Some(now))
    }

    /// ubifs_log_start_commit: starts a log LEB with the commit-start node. remove_buds closes the
    /// buds that no head writes to.
    pub(super) fn log_start_commit(&mut self, now: Ns) -> Result<(Closed, Ns)> {
        let geometry = self.geometry;
        let whole = geometry.leb_bytes;
        let open = self.journal.heads.iter().filter(|h| h.leb.is_some() && h.offset != whole);
        let bytes = COMMIT_START_BYTES + REFERENCE_BYTES * open.count() as u32;
        let bytes = align(bytes, geometry.page_bytes);
        let journal = &mut self.journal;
        if journal.log_offset > 0 {
            journal.log_leb = geometry.next_log_leb(journal.log_leb);
        }
        let now = self.ubi.unmap(now, journal.log_leb)?;
        let now = self.ubi.write(now, journal.log_leb, 0, bytes)?;
        self.journal.log_offset = bytes;
        self.log_written(None);
        let journal = &mut self.journal;
        let mut closed = Closed { lebs: Vec::new(), bytes: 0, old_tail: journal.log_tail };
        journal.buds.sort_by_key(|bud| bud.leb);
        for bud in &mut journal.buds {
            let head = &journal.heads[bud.head];
            if head.leb == Some(bud.leb) {
                closed.bytes += u64::from(head.offset - bud.start);
                bud.start = head.offset;
            } else {
                closed.bytes += u64::from(whole - bud.start);
                closed.lebs.push(bud.leb);
            }
        }
        journal.buds.retain(|bud| journal.heads[bud.head].leb == Some(bud.leb));
        closed.lebs.reverse();
        Ok((closed, now))
    }

    /// ubifs_log_end_commit, before the master nodes are written.
    pub(super) fn log_end_commit(&mut self, closed: &Closed) {
        self.journal.log_tail = self.journal.log_leb;
        self.journal.bud_bytes -= closed.bytes;
    }

    /// ubifs_log_post_commit.
    pub(super) fn log_post_commit(&mut self, now: Ns, closed: Closed) -> Result<Ns> {
        let mut now = now;
        for leb in closed.lebs {
            now = self.return_leb(now, leb)?;
        }
        let mut leb = closed.old_tail;
        while leb != self.journal.log_tail {
            now = self.ubi.unmap(now, leb)?;
            leb = self.geometry.next_log_leb(leb);
        }
        Ok(now)
    }
}

/// The start of a new file system's log, after its commit-start node.
pub fn first_log_place(geometry: &Geometry) -> (u32, u32) {
    (LOG_LEB, geometry.page_bytes)
}
