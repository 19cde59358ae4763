//! Bulk-read (mount option `bulk_read`). From the third sequential page on, UBIFS reads adjacent
//! data nodes in one go and fills their pages along with the requested one.
//!
//! Mirrors fs/ubifs/file.c (ubifs_bulk_read, ubifs_do_bulk_read, populate_page) and tnc.c
//! (ubifs_tnc_get_bu_keys, ubifs_tnc_bulk_read) of Linux 6.1. Left out: a failed allocation of the
//! buffer, contention for the two mutexes (bulk-read is skipped rather than wait for them),
//! encryption.
//!
//! Invariant: the nodes of one read lie in one LEB, in the order of their blocks and of their
//! offsets, less than 8 bytes apart.

use super::file::{wrong_data, DATA_NODE, DATA_SIZE};
use super::geometry::{align, DATA_HEADER_BYTES};
use super::key::{Key, Place};
use super::tnc::Leaf;
use super::Ubifs;
use crate::fs::{FsError, Grabbed, Ino, PageCache, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// UBIFS_MAX_BULK_READ: nodes of one read, and the most pages it covers.
const NODES_MAX: u32 = 32;

/// Sequential reads that switch it on.
const READS_IN_A_ROW: u32 = 3;

/// An inode's recent reads (`last_page_read`, `read_in_a_row`, `bulk_read`).
#[derive(Clone, Debug, Default)]
pub struct Habit {
    last_page: u32,
    in_a_row: u32,
    on: bool,
}

/// struct bu_info.
#[derive(Default)]
struct Run {
    /// Block, place, and unpacked bytes of each node.
    nodes: Vec<(u32, Place, u32)>,
    /// `blk_cnt`: pages it covers, including holes.
    pages: u32,
    /// The file has no data after it.
    is_last: bool,
}

impl Run {
    /// Adds the next node if it fits into a buffer of `bytes`. The kernel does not count the
    /// requested block if it is a hole, so a run that begins with a hole covers one page less.
    fn take(&mut self, before: u32, node: (u32, Place, u32), bytes: u32) -> bool {
        let (block, place, _) = node;
        if let (Some(&(_, first, _)), Some(&(_, last, _))) = (self.nodes.first(), self.nodes.last())
        {
            let behind = (last.leb, align(last.offset + last.bytes, 8));
            if (place.leb, place.offset) != behind
                || place.offset + place.bytes - first.offset > bytes
            {
                return false;
            }
        }
        self.pages += block - before - 1;
        if self.pages >= NODES_MAX {
            return false;
        }
        self.nodes.push(node);
        self.pages += 1;
        self.nodes.len() < NODES_MAX as usize && self.pages < NODES_MAX
    }

    /// The range of all its nodes.
    fn place(&self) -> Option<Place> {
        let (_, first, _) = self.nodes.first()?;
        let (_, last, _) = self.nodes.last()?;
        Some(Place { bytes: last.offset + last.bytes - first.offset, ..*first })
    }
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_bulk_read: returns whether it filled the page, and when.
    pub(super) fn bulk_read(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        pages: &mut dyn PageCache,
    ) -> Result<(bool, Ns)> {
        let habit = &mut self.inode(ino.0).habit;
        let follows = page == habit.last_page.wrapping_add(1);
        habit.last_page = page;
        if !follows {
            (habit.in_a_row, habit.on) = (1, false);
            return Ok((false, now));
        }
        if !habit.on {
            habit.in_a_row += 1;
            if habit.in_a_row < READS_IN_A_ROW {
                return Ok((false, now));
            }
            habit.on = true;
        }
        match self.do_bulk_read(now, ino, page, pages) {
            Err(error) => Ok((false, error.failed_at().ok_or(error)?)), // "ignoring error"
            done => done,
        }
    }

    /// ubifs_do_bulk_read.
    fn do_bulk_read(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        pages: &mut dyn PageCache,
    ) -> Result<(bool, Ns)> {
        let (run, now) = self.find_run(now, ino, page)?;
        let habit = &mut self.inode(ino.0).habit;
        if run.is_last {
            (habit.in_a_row, habit.on) = (1, false);
        }
        if run.pages == 0 {
            (habit.in_a_row, habit.on) = (0, false);
            return Ok((false, now));
        }
        let (mut now, whole) = match run.place() {
            Some(place) => self.read_run(now, &run, place)?,
            None => (now, true),
        };
        now = self.populate(now, ino, page, &run, whole)?;
        let size = self.inode(ino.0).size_bytes;
        let end = u32::try_from(size.div_ceil(u64::from(PAGE_BYTES))).expect("a file below 16 TiB");
        let mut next = page + 1;
        while next < end.min(page + run.pages) {
            let grabbed = pages.grab_page(ino, next);
            if grabbed == Grabbed::Locked {
                break;
            }
            if grabbed != Grabbed::Uptodate {
                now += self.ubi.costs().page_add_ns;
                match self.populate(now, ino, next, &run, whole) {
                    Ok(later) => now = later,
                    Err(error) => {
                        now = error.failed_at().ok_or(error)?;
                        pages.clear_uptodate(ino, next);
                        break;
                    }
                }
            }
            next += 1;
        }
        self.inode(ino.0).habit.last_page = next - 1;
        Ok((true, now))
    }

    /// ubifs_tnc_get_bu_keys.
    fn find_run(&mut self, now: Ns, ino: Ino, page: u32) -> Result<(Run, Ns)> {
        let mut run = Run::default();
        let key = Key::data(ino.0, page);
        let (mut leaf, exact, mut now) = self.tnc.lookup_level0(&mut self.ubi, now, key)?;
        let mut before = page;
        if exact {
            run.nodes.push(self.data_at(leaf));
            run.pages = 1;
        }
        let bytes = self.geometry.leb_bytes.min(NODES_MAX * (DATA_HEADER_BYTES + PAGE_BYTES));
        run.is_last = loop {
            let (next, later) = self.tnc.next(&mut self.ubi, now, leaf)?;
            now = later;
            leaf = match next.filter(|&next| self.tnc.key(next).is_like(key)) {
                Some(next) => next,
                None => break true,
            };
            let node = self.data_at(leaf);
            if !run.take(before, node, bytes) {
                break false;
            }
            before = node.0;
        };
        run.pages = run.pages.min(NODES_MAX);
        Ok((run, now))
    }

    fn data_at(&self, leaf: Leaf) -> (u32, Place, u32) {
        (self.tnc.key(leaf).block(), self.tnc.place(leaf), self.tnc.data_bytes(leaf))
    }

    /// ubifs_tnc_bulk_read. Also returns whether ECC corrected everything; wrong bits matter only
    /// in the parts that the kernel checks.
    fn read_run(&mut self, now: Ns, run: &Run, place: Place) -> Result<(Ns, bool)> {
        let at = match self.read_node(now, place, Ns::ZERO) {
            Ok(now) => return Ok((now, true)),
            Err(FsError::Unreadable(at)) => at,
            Err(other) => return Err(other),
        };
        // validate_data_node of each node
        for &(_, place, _) in &run.nodes {
            if wrong_data(&self.ubi, place, &DATA_NODE) {
                return Err(FsError::Damaged(at));
            }
        }
        Ok((at, false))
    }

    /// populate_page: fills the page from the run's nodes. The index lookups and the read are
    /// already done for the whole run.
    fn populate(&mut self, now: Ns, ino: Ino, page: u32, run: &Run, whole: bool) -> Result<Ns> {
        let inside = u64::from(page) * u64::from(PAGE_BYTES) < self.inode(ino.0).size_bytes;
        let node = run.nodes.iter().find(|&&(block, ..)| inside && block == page);
        self.inode(ino.0).set_hole(page, node.is_none());
        let Some(&(_, place, unpacked)) = node else {
            return Ok(now + self.ubi.costs().ubifs_hole_ns);
        };
        let now = now + self.ubi.costs().ubifs_bulk_node_ns + self.unpacking_cost(place, unpacked);
        if whole {
            return Ok(now);
        }
        if wrong_data(&self.ubi, place, &[DATA_SIZE]) {
            return Err(FsError::Damaged(now));
        }
        self.read_with_wrong_bits(now, place, unpacked)
    }
}
