//! The commit: the dirty part of the index and of the LEB properties goes to flash, and the
//! journal starts anew.
//!
//! Mirrors fs/ubifs/commit.c (do_commit), tnc_commit.c (layout_in_empty_space, write_index,
//! alloc_idx_lebs), log.c (ubifs_log_start_commit, ubifs_log_post_commit) and master.c
//! (ubifs_write_master) of Linux 6.1. Start and end of a commit are one step here; in the kernel
//! writers go on during the end, which changes the order of flash operations but not what they
//! are.
//!
//! Left out: the in-the-gaps method, for when no empty LEB is left for the index.

use super::geometry::{align, index_node_bytes, Geometry, COMMIT_START_BYTES, FANOUT};
use super::geometry::{MASTER_BYTES, MASTER_LEB, REFERENCE_BYTES};
use super::lprops::{Change, INDEX, TAKEN};
use super::lpt::LebWrite;
use super::Ubifs;
use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::units::Ns;

/// Where layout_in_empty_space puts the index nodes of a commit, and how write_index writes them.
#[derive(Clone, Debug, Default)]
struct Layout {
    /// LEB and offset of each node, in order.
    places: Vec<(u32, u32)>,
    writes: Vec<LebWrite>,
    /// Index LEBs that are full: bytes free at the end and bytes lost to padding.
    left: Vec<(u32, u32, u32)>,
    /// The same of the LEB the index head stands in when it is over.
    last: (u32, u32, u32),
}

/// layout_in_empty_space: nodes 8-byte aligned through a buffer of a page, none across LEBs; only
/// what ends a LEB or the commit is padded to a page.
fn lay_out(geometry: &Geometry, head: (u32, u32), spare: &[u32], sizes: &[u32]) -> Option<Layout> {
    let buffer = align(index_node_bytes(FANOUT), geometry.page_bytes) as i32;
    let whole = geometry.leb_bytes as i32;
    let mut layout = Layout::default();
    let mut spare = spare.iter();
    let mut leb = Some(head.0);
    let (mut start, mut used, mut room) = (head.1 as i32, 0, buffer);
    let mut lost = 0;
    if start + sizes[0] as i32 > whole {
        layout.left.push((head.0, (whole - start) as u32, 0));
        leb = None;
    }
    for (index, &size) in sizes.iter().enumerate() {
        let size = size as i32;
        if leb.is_none() {
            leb = Some(*spare.next()?);
            (start, used, room) = (0, 0, buffer);
        }
        let at = leb?;
        layout.places.push((at, (start + used) as u32));
        let end = used + size;
        used += align(size as u32, 8) as i32;
        room -= align(size as u32, 8) as i32;
        let next = sizes.get(index + 1).map(|&next| next as i32);
        let fits = next.is_some_and(|next| start + used + next <= whole);
        if fits && room > 0 {
            continue;
        }
        let bytes = if fits { buffer } else { align(end as u32, geometry.page_bytes) as i32 };
        let write = LebWrite { leb: at, offset: start as u32, bytes: bytes as u32 };
        layout.writes.push(write);
        start += bytes;
        if !fits {
            lost = (bytes - used).max(0);
        }
        let state = (at, (whole - start) as u32, lost as u32);
        match next {
            None => layout.last = state,
            Some(next) => {
                if start + next > whole {
                    layout.left.push(state);
                    leb = None;
                }
                used = (used - bytes).max(0);
                room = buffer - used;
            }
        }
    }
    Some(layout)
}

impl<F: Flash> Ubifs<F> {
    /// ubifs_run_commit, and do_commit within it.
    pub(super) fn commit(&mut self, now: Ns) -> Result<Ns> {
        self.journal.commit_wanted = false;
        if !self.tnc.is_dirty() && !self.lpt.is_dirty() {
            return Ok(now);
        }
        let now = self.sync_heads(now)?;
        let now = self.lpt.free_freeable(&mut self.ubi, now)?;
        let (old_index_lebs, now) = self.lpt.take_freeable_index(&mut self.ubi, now)?;
        let (old_buds, closed_bytes, now) = self.start_log(now)?;
        let (layout, now) = self.start_index(now)?;
        let (tree_writes, now) = self.lpt.start_commit(&mut self.ubi, now)?;

        let now = self.end_index(now, &layout)?;
        let now = self.lpt.end_commit(&mut self.ubi, now, &tree_writes)?;
        let old_tail = self.journal.log_tail;
        self.journal.log_tail = self.journal.log_leb;
        self.journal.bud_bytes -= closed_bytes;
        let mut now = self.write_master(now)?;

        for leb in old_buds {
            now = self.return_leb(now, leb)?;
        }
        let mut leb = old_tail;
        while leb != self.journal.log_tail {
            now = self.ubi.unmap(now, leb)?;
            leb = self.geometry.next_log_leb(leb);
        }
        for leb in old_index_lebs {
            now = self.ubi.unmap(now, leb)?;
            now = self.return_leb(now, leb)?;
        }
        self.lpt.post_commit(&mut self.ubi, now)
    }

    /// ubifs_log_start_commit and remove_buds: a log LEB that begins with the commit, then the
    /// buds that are no longer written to, last first, and the journal bytes they free.
    fn start_log(&mut self, now: Ns) -> Result<(Vec<u32>, u64, Ns)> {
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
        journal.log_offset = bytes;
        let mut closed = Vec::new();
        let mut closed_bytes = 0;
        journal.buds.sort_by_key(|bud| bud.leb);
        for bud in &mut journal.buds {
            let head = &journal.heads[bud.head];
            if head.leb == Some(bud.leb) {
                closed_bytes += u64::from(head.offset - bud.start);
                bud.start = head.offset;
            } else {
                closed_bytes += u64::from(whole - bud.start);
                closed.push(bud.leb);
            }
        }
        journal.buds.retain(|bud| journal.heads[bud.head].leb == Some(bud.leb));
        closed.reverse();
        Ok((closed, closed_bytes, now))
    }

    /// ubifs_tnc_start_commit: places for all dirty znodes.
    fn start_index(&mut self, now: Ns) -> Result<(Layout, Ns)> {
        let dirty = self.tnc.dirty_in_order();
        if dirty.is_empty() {
            return Ok((Layout::default(), now));
        }
        let (spare, now) = self.take_index_lebs(now, dirty.len() as u32)?;
        let sizes: Vec<u32> = dirty.iter().map(|&(_, count)| index_node_bytes(count)).collect();
        let layout = lay_out(&self.geometry, self.index_head, &spare, &sizes);
        let layout = layout.ok_or(FsError::NotModelled("a commit into the gaps of the index"))?;
        for (&(znode, _), &(leb, offset)) in dirty.iter().zip(&layout.places) {
            self.tnc.commit(znode, leb, offset);
        }
        let mut now = now;
        for &(leb, free, more_dirty) in layout.left.iter().chain([&layout.last]) {
            let change = Change { free: Some(free), more_dirty, ..Change::default() };
            now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        }
        for leb in spare {
            if !layout.places.iter().any(|&(used, _)| used == leb) {
                let change = Change { clear: TAKEN | INDEX, ..Change::default() };
                now = self.lpt.change(&mut self.ubi, now, leb, change)?;
            }
        }
        self.budget.committed(self.tnc.index_bytes());
        Ok((layout, now))
    }

    /// alloc_idx_lebs: as many as would be needed if every node were of the largest size.
    fn take_index_lebs(&mut self, now: Ns, count: u32) -> Result<(Vec<u32>, Ns)> {
        let whole = self.geometry.leb_bytes;
        let largest = align(index_node_bytes(FANOUT), 8);
        let left = count.saturating_sub((whole - self.index_head.1) / largest);
        let mut lebs = Vec::new();
        let mut now = now;
        for _ in 0..left.div_ceil(whole / largest) {
            let (leb, later) = self.lpt.find_for_index(&mut self.ubi, now)?;
            lebs.push(leb);
            now = later;
        }
        Ok((lebs, now))
    }

    /// ubifs_tnc_end_commit: write_index.
    fn end_index(&mut self, now: Ns, layout: &Layout) -> Result<Ns> {
        if layout.places.is_empty() {
            return Ok(now);
        }
        let znode_ns = self.ubi.costs().ubifs_znode_ns;
        let mut now = now + znode_ns * layout.places.len() as u64;
        for write in &layout.writes {
            now = self.ubi.write(now, write.leb, write.offset, write.bytes)?;
        }
        for &(leb, _, _) in &layout.left {
            now = self.return_leb(now, leb)?;
        }
        let (leb, free, _) = layout.last;
        self.index_head = (leb, self.geometry.leb_bytes - free);
        Ok(now)
    }

    /// ubifs_write_master: both copies, at the next place in their LEBs.
    pub(super) fn write_master(&mut self, now: Ns) -> Result<Ns> {
        let bytes = align(MASTER_BYTES, self.geometry.page_bytes);
        let mut offset = self.master_offset + bytes;
        if offset + MASTER_BYTES > self.geometry.leb_bytes {
            offset = 0;
        }
        self.master_offset = offset;
        let mut now = now;
        for leb in [MASTER_LEB, MASTER_LEB + 1] {
            if offset == 0 {
                now = self.ubi.unmap(now, leb)?;
            }
            now = self.ubi.write(now, leb, offset, bytes)?;
        }
        Ok(now)
    }
}
