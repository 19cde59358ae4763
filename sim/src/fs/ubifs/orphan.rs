//! Orphans: open inodes without a name, and the area where a commit records them.
//!
//! Mirrors fs/ubifs/orphan.c (ubifs_add_orphan, ubifs_delete_orphan, ubifs_orphan_start_commit,
//! commit_orphans) of Linux 6.1. An inode becomes an orphan when its last name is removed. A commit
//! writes the orphans that are new since the last one. If the area has no space for them, it writes
//! all orphans again from the area's start. Left out: what a mount does with orphans.
//!
//! Invariant: `list` is in the order in which inodes became orphans.

use super::geometry::{align, Geometry};
use super::Ubifs;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// UBIFS_ORPH_NODE_SZ; the node also has the inode number of each orphan.
const NODE_BYTES: u32 = 32;
const INODE_NUMBER_BYTES: u32 = 8;

/// An orphan of the list.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    inum: u32,
    /// The inode whose extended attribute it is (`child_list`).
    host: Option<u32>,
    /// No commit has written it yet.
    new: bool,
}

/// Orphans, and the place of their next node.
#[derive(Clone, Debug)]
pub struct Orphans {
    list: Vec<Orphan>,
    /// Orphans that the running commit has to write (`orph_cnext`).
    committing: Vec<u32>,
    leb: u32,
    offset: u32,
}

impl Orphans {
    /// An empty area.
    pub fn new(geometry: &Geometry) -> Orphans {
        let leb = geometry.orphans_first();
        Orphans { list: Vec::new(), committing: Vec::new(), leb, offset: 0 }
    }

    /// orphan_add.
    pub fn add(&mut self, inum: u32) {
        self.list.push(Orphan { inum, host: None, new: true });
    }

    /// orphan_add of the inode of an extended attribute.
    pub fn add_child(&mut self, host: u32, inum: u32) {
        self.list.push(Orphan { inum, host: Some(host), new: true });
    }

    /// ubifs_delete_orphan.
    pub fn delete(&mut self, inum: u32) {
        self.list.retain(|orphan| orphan.inum != inum && orphan.host != Some(inum));
    }

    /// ubifs_orphan_start_commit.
    pub fn start_commit(&mut self) {
        for orphan in self.list.iter_mut().filter(|orphan| orphan.new) {
            orphan.new = false;
            self.committing.push(orphan.inum);
        }
    }

    /// avail_orphs: how many orphans still fit after the head.
    fn room(&self, geometry: &Geometry) -> u32 {
        let whole = (geometry.leb_bytes - NODE_BYTES) / INODE_NUMBER_BYTES;
        let lebs = geometry.main_first - self.leb - 1;
        lebs * whole + Self::room_in(geometry.leb_bytes - self.offset)
    }

    fn room_in(gap: u32) -> u32 {
        gap.saturating_sub(NODE_BYTES) / INODE_NUMBER_BYTES
    }
}

impl<D: NandDriver> Ubifs<D> {
    /// ubifs_orphan_end_commit.
    pub(super) fn orphan_end_commit(&mut self, now: Ns) -> Result<Ns> {
        let wanted = self.orphans.committing.len() as u32;
        if wanted == 0 {
            return Ok(now);
        }
        let from_start = self.orphans.room(&self.geometry) < wanted;
        if from_start {
            let old = self.orphans.list.iter().filter(|orphan| !orphan.new);
            self.orphans.committing = old.map(|orphan| orphan.inum).collect();
            self.orphans.leb = self.geometry.orphans_first();
            self.orphans.offset = 0;
        }
        let mut now = now;
        while !self.orphans.committing.is_empty() {
            now = self.write_orphan_node(now, from_start)?;
        }
        if from_start {
            for leb in self.orphans.leb + 1..self.geometry.main_first {
                now = self.ubi.unmap(now, leb)?;
            }
        }
        Ok(now)
    }

    /// write_orph_node.
    fn write_orphan_node(&mut self, now: Ns, atomic: bool) -> Result<Ns> {
        let Geometry { leb_bytes, page_bytes, .. } = self.geometry;
        let orphans = &mut self.orphans;
        if Orphans::room_in(leb_bytes - orphans.offset) == 0 {
            (orphans.leb, orphans.offset) = (orphans.leb + 1, 0);
        }
        let room = Orphans::room_in(leb_bytes - orphans.offset) as usize;
        let count = room.min(orphans.committing.len());
        orphans.committing.drain(..count);
        let bytes = align(NODE_BYTES + count as u32 * INODE_NUMBER_BYTES, page_bytes);
        let (leb, offset) = (orphans.leb, orphans.offset);
        orphans.offset += bytes;
        if atomic {
            return self.ubi.change(now, leb, bytes);
        }
        let now = if offset == 0 { self.ubi.unmap(now, leb)? } else { now };
        self.ubi.write(now, leb, offset, bytes)
    }
}
