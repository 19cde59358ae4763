//! Laying out the index nodes of a commit.
//!
//! Mirrors fs/ubifs/tnc_commit.c (ubifs_tnc_start_commit, layout_in_gaps, layout_in_empty_space,
//! alloc_idx_lebs, ubifs_tnc_end_commit with write_index) of Linux 6.1. Nodes go behind the index
//! head and into empty LEBs. If there are too few empty LEBs, nodes also go into the gaps that
//! obsolete nodes leave in index LEBs.
//!
//! Invariant: no node of the last commit is overwritten before this commit ends.

use super::budget::largest_znode;
use super::geometry::{align, index_node_bytes, Geometry, FANOUT};
use super::lpt::LebWrite;
use super::properties::{Change, INDEX, TAKEN};
use super::scan::Node;
use super::Ubifs;
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// Znodes that are prefetched before they are laid out: few enough to stay in the processor's
/// cache, and most of what the gaps of a LEB take.
const TOUCHED_ZNODES: usize = 256;

/// A LEB, its free bytes at the end, and the bytes lost to padding.
type Filled = (u32, u32, u32);

/// The places that layout_in_empty_space gives the index nodes, and how write_index writes them.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// LEB and offset of each node, in order.
    places: Vec<(u32, u32)>,
    writes: Vec<LebWrite>,
    /// LEBs that the index head leaves; the one it stood in comes first if nothing fits there.
    left: Vec<u32>,
    /// LEBs that were written.
    filled: Vec<Filled>,
    /// LEBs with nodes written into their gaps.
    gaps: Vec<u32>,
}

/// layout_in_empty_space: nodes are 8-byte aligned and go through a buffer of a page. None crosses
/// a LEB. Only the end of a LEB or of the commit is padded to a page.
fn lay_out(geometry: &Geometry, head: (u32, u32), spare: &[u32], sizes: &[u32]) -> Option<Layout> {
    let buffer = align(index_node_bytes(FANOUT), geometry.page_bytes) as i32;
    let whole = geometry.leb_bytes as i32;
    let mut layout = Layout::default();
    let mut spare = spare.iter();
    let mut leb = Some(head.0);
    let (mut start, mut used, mut room) = (head.1 as i32, 0, buffer);
    let mut lost = 0;
    if start + sizes[0] as i32 > whole {
        layout.left.push(head.0);
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
            None => layout.filled.push(state),
            Some(next) => {
                if start + next > whole {
                    layout.filled.push(state);
                    layout.left.push(at);
                    leb = None;
                }
                used = (used - bytes).max(0);
                room = buffer - used;
            }
        }
    }
    Some(layout)
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_tnc_start_commit: assigns places to all dirty znodes.
    pub(super) fn tnc_start_commit(&mut self, now: Ns) -> Result<(Layout, Ns)> {
        let dirty = self.tnc.dirty_in_order();
        let (mut layout, mut now) = (Layout::default(), now);
        if !dirty.is_empty() {
            let (spare, enough, later) = self.alloc_index_lebs(now, dirty.len() as u32)?;
            now = later;
            let mut rest = &dirty[..];
            let mut gaps = Vec::new();
            if !enough {
                (gaps, now) = self.layout_in_gaps(now, &mut rest, spare.len() as u32)?;
            }
            (layout, now) = self.layout_in_empty_space(now, rest, &spare)?;
            layout.gaps = gaps;
        }
        self.tnc.old.clear();
        self.lpt.save_dirty_index();
        self.budget.committed(&self.geometry, self.tnc.index_bytes());
        Ok((layout, now))
    }

    /// get_leb_cnt: the LEBs needed if every node had the maximum size.
    fn lebs_needed(&self, count: u32) -> u32 {
        let whole = self.geometry.leb_bytes;
        let largest = largest_znode() as u32;
        let left = count.saturating_sub((whole - self.index_head.1) / largest);
        left.div_ceil(whole / largest)
    }

    /// alloc_idx_lebs; also returns whether there were enough.
    fn alloc_index_lebs(&mut self, now: Ns, count: u32) -> Result<(Vec<u32>, bool, Ns)> {
        let mut lebs = Vec::new();
        let mut now = now;
        for _ in 0..self.lebs_needed(count) {
            let (leb, later) = self.lpt.find_for_index(&mut self.ubi, now)?;
            now = later;
            let Some(leb) = leb else { return Ok((lebs, false, now)) };
            self.written.clear(leb);
            lebs.push(leb);
        }
        Ok((lebs, true, now))
    }

    /// layout_in_empty_space, then free_unused_idx_lebs.
    fn layout_in_empty_space(
        &mut self,
        now: Ns,
        dirty: &[(u32, usize)],
        spare: &[u32],
    ) -> Result<(Layout, Ns)> {
        let mut layout = Layout::default();
        if !dirty.is_empty() {
            let sizes: Vec<u32> = dirty.iter().map(|&(_, n)| index_node_bytes(n)).collect();
            let laid_out = lay_out(&self.geometry, self.index_head, spare, &sizes);
            layout = laid_out.ok_or(FsError::NotModelled("UBIFS without room for its index"))?;
        }
        for (at, (&(znode, _), &(leb, offset))) in dirty.iter().zip(&layout.places).enumerate() {
            if at % TOUCHED_ZNODES == 0 {
                self.touch_first(&dirty[at..]);
            }
            let (place, key, level) = self.tnc.commit(znode, leb, offset);
            self.written.add(place, key, u32::from(level));
        }
        let mut now = now;
        for &(leb, free, more_dirty) in &layout.filled {
            let change = Change { free: Some(free), more_dirty, ..Change::default() };
            now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        }
        for &leb in spare {
            if !layout.places.iter().any(|&(used, _)| used == leb) {
                let change = Change { clear: TAKEN | INDEX, ..Change::default() };
                now = self.lpt.change(&mut self.ubi, now, leb, change)?;
            }
        }
        Ok((layout, now))
    }

    /// layout_in_gaps: fills one index LEB after another until the rest fits into the empty LEBs.
    fn layout_in_gaps(
        &mut self,
        mut now: Ns,
        rest: &mut &[(u32, usize)],
        have: u32,
    ) -> Result<(Vec<u32>, Ns)> {
        let mut lebs = Vec::new();
        while self.lebs_needed(rest.len() as u32) > have {
            let (leb, later) = self.lpt.find_dirty_index(&mut self.ubi, now)?;
            let (leb, later) = match leb {
                Some(leb) => (Some(leb), later),
                None => self.take_collected_index(later)?,
            };
            now = later;
            let Some(leb) = leb else { break };
            lebs.push(leb);
            now = self.layout_leb_in_gaps(now, leb, rest)?;
        }
        Ok((lebs, now))
    }

    /// layout_leb_in_gaps: puts nodes between the valid ones and rewrites the LEB.
    fn layout_leb_in_gaps(&mut self, now: Ns, leb: u32, rest: &mut &[(u32, usize)]) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let mut now = self.ubi.read(now, leb, 0, whole)?;
        let mut gaps = Gaps { leb, start: 0, dirt: 0, end: whole, nodes: Vec::new(), written: 0 };
        let nodes = self.written.nodes(leb);
        self.tnc.touch(nodes.iter().map(|node| node.key));
        self.touch_first(rest);
        for node in nodes {
            let at = (leb, node.offset);
            let (tnc, ubi) = (&mut self.tnc, &mut self.ubi);
            let (used, later) = tnc.index_node_use(ubi, now, node.key, node.extra as u8, at)?;
            now = later;
            let Some(is_dirty) = used else { continue };
            let bytes = align(u32::from(node.bytes), 8);
            gaps.dirt += if is_dirty { bytes } else { 0 };
            self.fill_gap(&mut gaps, node.offset, rest);
            gaps.nodes.push(node);
            gaps.start = node.offset + bytes;
        }
        self.fill_gap(&mut gaps, whole, rest);
        let free = whole - gaps.end;
        if gaps.written == 0 && self.lpt.space(leb).0 != whole {
            return Ok(now);
        }
        let change = Change { free: Some(free), dirty: Some(gaps.dirt), ..Change::default() };
        now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        if gaps.written > 0 {
            now = self.ubi.change(now, leb, gaps.end)?;
            self.written.set(leb, &gaps.nodes);
        }
        Ok(now)
    }

    /// Prefetches the next znodes to be laid out.
    fn touch_first(&self, rest: &[(u32, usize)]) {
        self.tnc.touch_znodes(rest.iter().take(TOUCHED_ZNODES).map(|&(znode, _)| znode));
    }

    /// fill_gap: as many of the next nodes as fit, then padding.
    fn fill_gap(&mut self, gaps: &mut Gaps, end: u32, rest: &mut &[(u32, usize)]) {
        let mut at = gaps.start;
        if at == end {
            return;
        }
        while let Some(&(znode, children)) = rest.first() {
            let bytes = index_node_bytes(children);
            if bytes >= end - at {
                break;
            }
            self.tnc.insert_old(znode);
            let (_, key, level) = self.tnc.commit(znode, gaps.leb, at);
            let (bytes, extra) = (bytes as u16, u16::from(level));
            gaps.nodes.push(Node { offset: at, bytes, extra, key });
            gaps.written += 1;
            at += align(u32::from(bytes), 8);
            *rest = &rest[1..];
        }
        if end == self.geometry.leb_bytes {
            gaps.end = align(at, self.geometry.page_bytes);
            gaps.dirt += gaps.end - at;
        } else {
            gaps.dirt += end - at;
        }
    }

    /// ubifs_tnc_end_commit: return_gap_lebs and write_index.
    pub(super) fn tnc_end_commit(&mut self, now: Ns, layout: &Layout) -> Result<Ns> {
        let mut now = now;
        for &leb in &layout.gaps {
            now = self.return_leb(now, leb)?;
        }
        if layout.places.is_empty() {
            return Ok(now);
        }
        now += self.ubi.costs().ubifs_znode_ns * layout.places.len() as u64;
        for write in &layout.writes {
            now = self.ubi.write(now, write.leb, write.offset, write.bytes)?;
        }
        for &leb in &layout.left {
            now = self.return_leb(now, leb)?;
        }
        if let Some(&(leb, free, _)) = layout.filled.last() {
            self.index_head = (leb, self.geometry.leb_bytes - free);
        }
        Ok(now)
    }
}

/// An index LEB whose gaps are being filled.
#[derive(Clone, Debug)]
struct Gaps {
    leb: u32,
    /// The start of the gap before the next valid node.
    start: u32,
    dirt: u32,
    /// `ileb_len`.
    end: u32,
    nodes: Vec<Node>,
    written: u32,
}
