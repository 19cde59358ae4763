//! The content of nodes on flash, and the last commit. Kept only where the power can fail.
//!
//! Not a part of UBIFS: the simulated flash stores no bytes, so this module keeps what a mount
//! after a power cut would read. A node is identified by its place; [`Written`] has the nodes that
//! a scan finds.
//!
//! Invariant: `committed` is what the newest master node on flash points to, `buds` are the log's
//! references since then, and `log_head` is the end of its last node.

use super::inode::{Inode, Kind};
use super::key::Place;
use super::log::Bud;
use super::lpt::Lpt;
use super::scan::Written;
use super::tnc::Tnc;
use super::Ubifs;
use crate::content::Contents;
use crate::fs::ROOT;
use crate::mtd::NandDriver;
use std::collections::BTreeMap;

/// The content of a node besides its key.
#[derive(Clone, Debug)]
pub enum What {
    /// An inode.
    Inode {
        /// Its size.
        size_bytes: u64,
        /// What it is.
        kind: Kind,
        /// nlink.
        links: u32,
        /// data_len.
        data_bytes: u32,
    },
    /// A directory entry; one that removes a name has no inode.
    Entry {
        /// The name, as operations have it.
        name: String,
        /// The inode that it names.
        target: Option<u32>,
    },
    /// A block of a file, at its offset there.
    Data(Contents),
    /// A truncation.
    Truncation {
        /// The size before.
        old_bytes: u64,
        /// The size after.
        new_bytes: u64,
    },
}

/// A node.
#[derive(Clone, Debug)]
pub struct Stored {
    /// `sqnum`; a copy by the collector keeps it.
    pub sequence: u64,
    /// UBIFS_IN_NODE_GROUP: more nodes of its group follow.
    pub more_follow: bool,
    /// What it holds.
    pub what: What,
}

/// What the master node points to.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub tnc: Tnc,
    pub lpt: Lpt,
    /// The scans of the index LEBs.
    pub written: Written,
    pub index_head: (u32, u32),
    pub commits: u64,
    pub next_inode: u32,
    pub log_tail: u32,
    buds: Vec<Bud>,
}

/// The content of the flash.
#[derive(Clone, Debug)]
pub(super) struct OnFlash {
    pub nodes: BTreeMap<(u32, u32), Stored>,
    pub sequence: u64,
    pub committed: Committed,
    /// What the next master node will point to.
    pub pending: Option<Committed>,
    pub master_offset: u32,
    pub buds: Vec<Bud>,
    pub log_head: (u32, u32),
}

impl<D: NandDriver> Ubifs<D> {
    pub(super) fn commit_point(&self) -> Committed {
        Committed {
            tnc: self.tnc.clone(),
            lpt: self.lpt.clone(),
            written: self.written.clone(),
            index_head: self.index_head,
            commits: self.commits,
            next_inode: self.next_inode,
            log_tail: self.journal.log_tail,
            buds: self.journal.buds.clone(),
        }
    }

    /// Starts recording on a new file system, if the power can fail.
    pub(super) fn remember(&mut self, root: Place) {
        if !self.ubi.mtd().can_lose_power() {
            return;
        }
        self.on_flash = Some(Box::new(OnFlash {
            nodes: BTreeMap::new(),
            sequence: 0,
            committed: self.commit_point(),
            pending: None,
            master_offset: self.master_offset,
            buds: Vec::new(),
            log_head: (self.journal.log_leb, self.journal.log_offset),
        }));
        self.store_inode(root, ROOT.0, false);
    }

    /// Records a node at its place.
    pub(super) fn store(&mut self, place: Place, more_follow: bool, what: impl FnOnce() -> What) {
        if let Some(on_flash) = &mut self.on_flash {
            on_flash.sequence += 1;
            let stored = Stored { sequence: on_flash.sequence, more_follow, what: what() };
            on_flash.nodes.insert((place.leb, place.offset), stored);
        }
    }

    /// Records an inode's node with the inode's current state.
    pub(super) fn store_inode(&mut self, place: Place, inum: u32, more_follow: bool) {
        if self.on_flash.is_none() {
            return;
        }
        let Inode { size_bytes, ref kind, links, data_bytes, .. } = self.inodes[&inum];
        let kind = kind.clone();
        self.store(place, more_follow, || What::Inode { size_bytes, kind, links, data_bytes });
    }

    /// Records the collector's copy of a node.
    pub(super) fn store_copy(&mut self, from: (u32, u32), to: Place) {
        if let Some(on_flash) = &mut self.on_flash {
            let copy = on_flash.nodes.get(&from).expect("a node in use").clone();
            on_flash.nodes.insert((to.leb, to.offset), copy);
        }
    }

    /// Prepares for the master nodes that the commit is about to write.
    pub(super) fn prepare_commit_point(&mut self) {
        let Some(mut on_flash) = self.on_flash.take() else { return };
        on_flash.pending = Some(self.commit_point());
        self.on_flash = Some(on_flash);
    }

    /// The first copy of the master node is on flash.
    pub(super) fn master_written(&mut self) {
        if let Some(on_flash) = &mut self.on_flash {
            on_flash.master_offset = self.master_offset;
            if let Some(point) = on_flash.pending.take() {
                on_flash.buds.clone_from(&point.buds);
                on_flash.committed = point;
            }
        }
    }

    /// A log node is on flash, which may refer to a bud.
    pub(super) fn log_written(&mut self, bud: Option<Bud>) {
        if let Some(on_flash) = &mut self.on_flash {
            on_flash.log_head = (self.journal.log_leb, self.journal.log_offset);
            on_flash.buds.extend(bud);
        }
    }
}
