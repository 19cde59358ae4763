//! A UBIFS that a dump or an image by mkfs.ubifs has: what its nodes say, and its first mount.
//!
//! Mirrors of fs/ubifs of Linux 6.1 what a mount does once: sb.c (the growth of
//! ubifs_read_superblock to the volume, ubifs_fixup_free_space) and master.c (the sums of
//! ubifs_read_master that grow with it). mount.rs has the rest of a mount after an unmount,
//! recovery.rs that after a power cut. The crate `image` reads the nodes.
//!
//! Left out, and refused by that crate: the big LPT, authentication, encryption, names with equal
//! hashes, other hashes, fanouts and journal heads than `create_default_filesystem` chooses.
//!
//! Invariant: what is built from the nodes is what memory and `on_flash` hold after an unmount or a
//! power cut of a file system of the simulator's own.

use super::budget::Budget;
use super::dumped_trees::{DumpedIndex, DumpedLpt};
use super::file::WorkingSpace;
use super::geometry::{align, Geometry, Superblock};
use super::geometry::{COMMIT_START_BYTES, MASTER_BYTES, MASTER_LEB};
use super::geometry::{SUPERBLOCK_BYTES, SUPERBLOCK_LEB};
use super::log::{Bud, Journal};
use super::lpt::Lpt;
use super::orphan::Orphans;
use super::scan::{Node, Written};
use super::stored::{Committed, OnFlash, Stored};
use super::tnc::Tnc;
use super::{Options, Ubifs};
use crate::compress::UbifsCompressor;
use crate::fs::{FsError, Result, ROOT};
use crate::mtd::{Mtd, NandDriver};
use crate::profile::KernelFacts;
use crate::ubi::{self, Ubi};
use crate::units::Ns;
use std::collections::BTreeMap;

/// What the newest master node says.
#[derive(Clone, Copy, Debug)]
pub struct Master {
    /// It was unmounted (UBIFS_MST_DIRTY is not set).
    pub is_clean: bool,
    /// Its offset in its LEB.
    pub offset: u32,
    /// `cmt_no`.
    pub commits: u64,
    /// `highest_inum`.
    pub highest_inode: u32,
    /// `log_lnum`.
    pub log_tail: u32,
    /// `ihead_lnum` and `ihead_offs`.
    pub index_head: (u32, u32),
    /// `gc_lnum`; none if no LEB is kept.
    pub gc_leb: Option<u32>,
}

/// What a dump says.
#[derive(Clone, Debug)]
pub struct Dumped {
    /// What was decided when it was made.
    pub superblock: Superblock,
    /// The compressor of new data.
    pub compressor: UbifsCompressor,
    /// UBIFS_FLG_SPACE_FIXUP: the first mount writes what ends in free space again.
    pub fixes_space: bool,
    /// What the last commit says.
    pub master: Master,
    /// Free and dirty space.
    pub lpt: DumpedLpt,
    /// Which node has which key.
    pub index: DumpedIndex,
    /// The nodes of LEBs of the main area.
    pub scans: BTreeMap<u32, Vec<Node>>,
    /// Where the nodes of a LEB of the journal end, padding included.
    pub ends: BTreeMap<u32, u32>,
    /// The content of all of them but the index's.
    pub nodes: BTreeMap<(u32, u32), Stored>,
    /// The LEBs that the log names, in its order.
    pub buds: Vec<Bud>,
    /// Where the log ends.
    pub log_head: (u32, u32),
}

/// What a mount does besides, if it is the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstMount {
    /// It takes more of the volume (ubifs_read_superblock).
    pub grows: bool,
    /// See [`Dumped::fixes_space`].
    pub fixes_space: bool,
    /// The journal has nodes although it was unmounted.
    pub replays: bool,
    /// It was mounted when it was dumped.
    pub is_unclean: bool,
}

impl Dumped {
    fn check<D: NandDriver>(&self, mtd: &Mtd<D>) -> Result<()> {
        let Superblock { leb_bytes, page_bytes, .. } = self.superblock;
        let there = (ubi::leb_bytes(mtd), mtd.page_bytes());
        if (leb_bytes, page_bytes) != there {
            return Err(FsError::too_small(format!(
                "the UBIFS of the dump has LEBs of {leb_bytes} bytes and pages of {page_bytes}, \
                 this chip of {} and {}",
                there.0, there.1
            )));
        }
        if self.master.gc_leb.is_none() && self.master.is_clean {
            return Err(FsError::NotModelled("a UBIFS without a LEB for its collector"));
        }
        Ok(())
    }

    /// The kernel's journal as the log says.
    fn journal(&self, geometry: &Geometry) -> Journal {
        let mut journal = Journal::new(geometry);
        journal.log_tail = self.master.log_tail;
        (journal.log_leb, journal.log_offset) = self.log_head;
        journal.buds.clone_from(&self.buds);
        let whole = u64::from(geometry.leb_bytes);
        journal.bud_bytes = self.buds.iter().map(|bud| whole - u64::from(bud.start)).sum();
        journal
    }

    fn written(&self, geometry: &Geometry) -> Written {
        let mut written = Written::new(geometry.main_first, geometry.main_lebs);
        for (&leb, nodes) in &self.scans {
            written.set(leb, nodes);
        }
        written
    }

    fn on_flash(&self, committed: Committed) -> OnFlash {
        OnFlash {
            nodes: self.nodes.clone(),
            sequence: self.nodes.values().map(|node| node.sequence).max().unwrap_or(0),
            committed,
            pending: None,
            master_offset: self.master.offset,
            buds: self.buds.clone(),
            log_head: self.log_head,
        }
    }

    /// Whether the journal has nodes.
    fn has_journal(&self) -> bool {
        let behind = |bud: &Bud| {
            let nodes = self.scans.get(&bud.leb);
            nodes.and_then(|nodes| nodes.last()).is_some_and(|node| node.offset >= bud.start)
        };
        self.buds.iter().any(behind)
    }
}

impl<D: NandDriver> Ubifs<D> {
    /// Puts a dump onto the partition. Its UBI is not attached yet.
    pub fn put(
        mtd: Mtd<D>,
        facts: KernelFacts,
        ubi: &ubi::Dumped,
        dumped: &Dumped,
    ) -> Result<Ubifs<D>> {
        dumped.check(&mtd)?;
        let ubi = Ubi::put(mtd, facts, ubi)?;
        if ubi.lebs() < dumped.superblock.lebs {
            return Err(FsError::too_small(format!(
                "the UBIFS of the dump has {} LEBs, its volume {}",
                dumped.superblock.lebs,
                ubi.lebs()
            )));
        }
        let mut fs = Ubifs::of_dump(ubi, facts, dumped);
        fs.find_inodes();
        match fs.inodes.contains_key(&ROOT.0) {
            true => Ok(fs),
            false => Err(FsError::NotModelled("a UBIFS without a root")),
        }
    }

    /// ubiattach of a dump that was put there.
    pub fn attach_found(&mut self, now: Ns) -> Result<Ns> {
        let now = self.ubi.attach_again(now)?;
        let ends: Vec<(u32, u32)> =
            self.journal.buds.iter().map(|bud| (bud.leb, self.end_of(bud))).collect();
        for (leb, end) in ends {
            self.ubi.forget_behind(leb, end); // it is torn
        }
        Ok(now)
    }

    /// Where the nodes of a bud of a dump end.
    fn end_of(&self, bud: &Bud) -> u32 {
        let head = &self.journal.heads[bud.head];
        if head.leb == Some(bud.leb) {
            head.offset
        } else {
            self.geometry.leb_bytes
        }
    }

    /// The mount after that.
    pub fn mount_found(&mut self, now: Ns) -> Result<Ns> {
        let first = std::mem::take(&mut self.first);
        let now = match first.is_unclean {
            false => self.mount_as(now, first)?,
            true => self.mount_unclean(now, first)?,
        };
        self.found = self.tree();
        if !self.ubi.mtd().can_lose_power() {
            self.on_flash = None;
        }
        Ok(now)
    }

    /// All of that: a dump's first mount.
    pub fn mount_dumped(
        mtd: Mtd<D>,
        now: Ns,
        facts: KernelFacts,
        ubi: &ubi::Dumped,
        dumped: &Dumped,
    ) -> Result<(Ubifs<D>, Ns)> {
        let mut fs = Ubifs::put(mtd, facts, ubi, dumped)?;
        let now = fs.attach_found(now)?;
        let now = fs.mount_found(now)?;
        Ok((fs, now))
    }

    fn of_dump(ubi: Ubi<D>, facts: KernelFacts, dumped: &Dumped) -> Self {
        let lebs = dumped.superblock.grown(ubi.lebs());
        let geometry = Geometry::of_superblock(&dumped.superblock, lebs);
        let tnc = Tnc::of_dump(&dumped.index);
        let master = &dumped.master;
        let first = FirstMount {
            grows: lebs > dumped.superblock.lebs,
            fixes_space: dumped.fixes_space,
            replays: dumped.has_journal(),
            is_unclean: !master.is_clean,
        };
        let mut fs = Ubifs {
            ubi,
            journal: dumped.journal(&geometry),
            budget: Budget::new(&geometry, tnc.index_bytes()),
            orphans: Orphans::new(&geometry),
            written: dumped.written(&geometry),
            lpt: Lpt::of_dump(geometry, &dumped.lpt),
            tnc,
            inodes: BTreeMap::new(),
            next_inode: master.highest_inode.saturating_add(1),
            index_head: master.index_head,
            master_offset: master.offset,
            commits: master.commits,
            gc_leb: master.gc_leb,
            collected_index: Vec::new(),
            victim: None,
            options: Options { compressor: dumped.compressor },
            reads_in_bulk: false,
            timer: Ns::from_ms(facts.vm.writeback_ms()),
            compressors: WorkingSpace::default(),
            on_flash: None,
            first,
            found: Vec::new(),
            geometry,
        };
        for bud in &dumped.buds {
            let end = dumped.ends.get(&bud.leb).copied().unwrap_or(bud.start);
            let end = align(end, geometry.page_bytes).max(bud.start);
            fs.seek_head(bud.head, bud.leb, end);
        }
        let committed = fs.commit_point();
        fs.on_flash = Some(Box::new(dumped.on_flash(committed)));
        fs
    }

    /// ubifs_write_sb_node, after the master node (`superblock_need_write`).
    pub(super) fn write_changed_superblock(&mut self, now: Ns, first: FirstMount) -> Result<Ns> {
        if !first.grows && !first.fixes_space {
            return Ok(now);
        }
        self.ubi.change(now, SUPERBLOCK_LEB, align(SUPERBLOCK_BYTES, self.geometry.page_bytes))
    }

    /// ubifs_fixup_free_space.
    pub(super) fn fix_free_space(&mut self, mut now: Ns) -> Result<Ns> {
        let geometry = self.geometry;
        let page = geometry.page_bytes;
        let master_end = self.master_offset + align(MASTER_BYTES, page);
        for leb in [MASTER_LEB, MASTER_LEB + 1] {
            now = self.fix_leb(now, leb, master_end)?;
        }
        let tail = self.journal.log_tail;
        let mut leb = geometry.next_log_leb(tail);
        while leb != tail {
            now = self.fix_leb(now, leb, 0)?;
            leb = geometry.next_log_leb(leb);
        }
        now = self.fix_leb(now, tail, align(COMMIT_START_BYTES, page))?;
        for (leb, free) in self.lpt.free_of_area() {
            if free > 0 {
                now = self.fix_leb(now, leb, geometry.leb_bytes - free)?;
            }
        }
        for leb in geometry.orphans_first()..geometry.main_first {
            now = self.fix_leb(now, leb, 0)?;
        }
        for leb in geometry.main_first..geometry.main_first + geometry.main_lebs {
            now = self.lpt.load(&mut self.ubi, now, leb)?;
            let (free, _) = self.lpt.space(leb);
            if free > 0 {
                now = self.fix_leb(now, leb, geometry.leb_bytes - free)?;
            }
        }
        Ok(now)
    }

    /// fixup_leb.
    fn fix_leb(&mut self, now: Ns, leb: u32, bytes: u32) -> Result<Ns> {
        if bytes == 0 {
            return self.ubi.unmap(now, leb);
        }
        let now = self.ubi.read(now, leb, 0, bytes)?;
        self.ubi.change(now, leb, bytes)
    }
}
