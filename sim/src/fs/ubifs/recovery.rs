//! Mounting after a power cut.
//!
//! Mirrors mount_ubifs of fs/ubifs/super.c with `need_recovery`, and of recovery.c
//! ubifs_recover_master_node, ubifs_recover_inl_heads, ubifs_recover_log_leb, fix_unclean_leb,
//! ubifs_recover_size (in place) and ubifs_rcvry_gc_commit with grab_empty_leb, of Linux 6.1.
//! replay.rs replays the journal. UBI is already attached.
//!
//! The recovered state is the kernel's. The pages read and written on the way are plausible, and
//! not compared with a kernel.
//!
//! Left out: the GC head always continues in an empty LEB. The kernel first looks for a dirty LEB
//! that fits behind its head.
//!
//! Invariant: nothing that was only in memory is used. on_flash knows the nodes.

use super::budget::Budget;
use super::dumped_volume::FirstMount;
use super::geometry::align;
use super::geometry::{MASTER_BYTES, MASTER_LEB, SUPERBLOCK_BYTES, SUPERBLOCK_LEB};
use super::inode::{Attribute, Inode, Kind};
use super::key::{Key, Place};
use super::log::Journal;
use super::mount::TAKE;
use super::orphan::Orphans;
use super::properties::{Change, INDEX, TAKEN};
use super::replay::Sizes;
use super::stored::What;
use super::Ubifs;
use crate::content::Contents;
use crate::flash::Torn;
use crate::fs::{Found, FsError, Ino, Result, PAGE_BYTES, ROOT};
use crate::mtd::NandDriver;
use crate::sched::Task;
use crate::units::Ns;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl<D: NandDriver> Ubifs<D> {
    /// ubi_attach_mtd_dev and mount_ubifs.
    pub(super) fn mount_after_power_cut(&mut self, now: Ns, torn: Option<Torn>) -> Result<Ns> {
        let now = self.ubi.power_up(now, torn)?;
        self.mount_unclean(now, FirstMount::default())
    }

    /// mount_ubifs after a power cut.
    pub(super) fn mount_unclean(&mut self, now: Ns, first: FirstMount) -> Result<Ns> {
        self.forget_all();
        let mut now = self.ubi.read(now, SUPERBLOCK_LEB, 0, SUPERBLOCK_BYTES)?;
        now = self.ubi.run_kthread(now, Task::UbifsThread)?;
        now = self.recover_master(now)?;
        let root = self.tnc.root_place();
        now = self.ubi.read(now, root.leb, root.offset, root.bytes)?;
        now = self.lpt.mount(&mut self.ubi, now)?;
        if first.fixes_space {
            now = self.fix_free_space(now)?;
        }
        for (leb, offset) in [self.index_head, self.lpt.head()] {
            now = self.recover_head(now, leb, offset)?;
        }
        now = self.write_master(now)?;
        now = self.write_changed_superblock(now, first)?;
        now = self.lpt.change(&mut self.ubi, now, self.index_head.0, TAKE)?;
        now = self.recover_log(now)?;
        let buds = self.journal.buds.clone();
        let (sizes, later) = self.replay_journal(now, &buds, true)?;
        now = self.kill_orphans(later)?;
        now = self.recover_sizes(now, sizes)?;
        self.find_inodes();
        now = self.grab_empty_leb(now)?;
        self.inode(ROOT.0).in_memory = true;
        self.read_inode(now, ROOT.0)
    }

    /// Drops everything in memory and takes the state of the last master node.
    fn forget_all(&mut self) {
        let on_flash = self.on_flash.as_ref().expect("kept where the power can fail");
        let point = &on_flash.committed;
        self.tnc.clone_from(&point.tnc);
        self.lpt.clone_from(&point.lpt);
        self.index_head = point.index_head;
        self.commits = point.commits;
        self.next_inode = point.next_inode;
        self.master_offset = on_flash.master_offset;
        self.journal = Journal::new(&self.geometry);
        self.journal.log_tail = point.log_tail;
        (self.journal.log_leb, self.journal.log_offset) = on_flash.log_head;
        self.journal.buds.clone_from(&on_flash.buds);
        let whole = u64::from(self.geometry.leb_bytes);
        self.journal.bud_bytes = on_flash.buds.iter().map(|bud| whole - u64::from(bud.start)).sum();
        for leb in self.geometry.main_first..self.geometry.main_first + self.geometry.main_lebs {
            if point.lpt.is_index(leb) {
                self.written.set(leb, &point.written.nodes(leb));
            }
        }
        self.tnc.shrink();
        self.lpt.forget();
        self.budget = Budget::new(&self.geometry, self.tnc.index_bytes());
        self.orphans = Orphans::new(&self.geometry);
        self.collected_index.clear();
        self.gc_leb = None;
        self.inodes.clear();
    }

    /// ubifs_read_master: writes both copies again if they differ.
    fn recover_master(&mut self, now: Ns) -> Result<Ns> {
        let whole = self.geometry.leb_bytes;
        let bytes = align(MASTER_BYTES, self.geometry.page_bytes);
        let end = self.master_offset + bytes;
        let mut now = now;
        let copies = [MASTER_LEB, MASTER_LEB + 1];
        for leb in copies {
            now = self.ubi.read(now, leb, 0, whole)?;
        }
        let is_whole =
            |&leb: &u32| self.ubi.readable_bytes(leb) == end && !self.ubi.is_used_behind(leb, end);
        if copies.iter().all(is_whole) {
            return Ok(now);
        }
        self.master_offset = 0;
        for leb in copies {
            now = self.ubi.change(now, leb, bytes)?;
            self.master_written();
        }
        Ok(now)
    }

    /// recover_head: removes what an unfinished commit wrote at the head.
    fn recover_head(&mut self, now: Ns, leb: u32, offset: u32) -> Result<Ns> {
        let bytes = self.geometry.page_bytes.min(self.geometry.leb_bytes - offset);
        if bytes == 0 {
            return Ok(now);
        }
        let now = self.ubi.read(now, leb, offset, bytes)?;
        if !self.ubi.is_used_behind(leb, offset) {
            return Ok(now);
        }
        self.rewrite_leb(now, leb, offset, offset)
    }

    /// fix_unclean_leb: rewrites the LEB with its first `end` bytes. Those before `read` are not in
    /// memory and are read first.
    pub(super) fn rewrite_leb(&mut self, now: Ns, leb: u32, read: u32, end: u32) -> Result<Ns> {
        if end == 0 {
            return self.ubi.unmap(now, leb);
        }
        let now = if read > 0 { self.ubi.read(now, leb, 0, read)? } else { now };
        self.ubi.change(now, leb, end)
    }

    /// Scans the log; ubifs_recover_log_leb repairs its end. Older LEBs stay as they are.
    fn recover_log(&mut self, now: Ns) -> Result<Ns> {
        let mut now = self.read_log(now)?;
        let (head, offset) = (self.journal.log_leb, self.journal.log_offset);
        if offset < self.geometry.leb_bytes && self.ubi.is_used_behind(head, offset) {
            now = self.rewrite_leb(now, head, 0, offset)?;
        }
        Ok(now)
    }

    /// ubifs_mount_orphans: deletes the inodes without a name, and empties the area.
    fn kill_orphans(&mut self, mut now: Ns) -> Result<Ns> {
        let dead = |(key, place): (Key, Place)| match self.what(place) {
            What::Inode { links: 0, .. } => Some(key.inum()),
            _ => None,
        };
        let dead: Vec<u32> = self.tnc.leaves().into_iter().filter_map(dead).collect();
        for inum in dead {
            now = self.remove_inode(now, inum)?;
        }
        for leb in self.geometry.orphans_first()..self.geometry.main_first {
            now = self.ubi.unmap(now, leb)?;
        }
        Ok(now)
    }

    pub(super) fn what(&self, place: Place) -> &What {
        let on_flash = self.on_flash.as_ref().expect("kept where the power can fail");
        &on_flash.nodes.get(&(place.leb, place.offset)).expect("a leaf's node").what
    }

    /// ubifs_recover_size: removes data without an inode, and sets an inode's size to the end of
    /// its data.
    fn recover_sizes(&mut self, mut now: Ns, sizes: BTreeMap<u32, Sizes>) -> Result<Ns> {
        for (inum, Sizes { inode_bytes, data_bytes }) in sizes {
            let (leaf, later) = self.tnc.lookup(&mut self.ubi, now, Key::inode(inum))?;
            now = later;
            let Some(leaf) = leaf else {
                now = self.remove_inode(now, inum)?;
                continue;
            };
            let place = self.tnc.place(leaf);
            if inode_bytes.is_none() {
                now = self.ubi.read(now, place.leb, place.offset, place.bytes)?;
            }
            let on_flash = self.on_flash.as_mut().expect("kept where the power can fail");
            let node = on_flash.nodes.get_mut(&(place.leb, place.offset)).expect("a leaf's node");
            let What::Inode { size_bytes, .. } = &mut node.what else {
                unreachable!("an inode's leaf is of an inode")
            };
            if *size_bytes < data_bytes {
                *size_bytes = data_bytes;
                let end = self.ubi.readable_bytes(place.leb);
                now = self.ubi.read(now, place.leb, 0, self.geometry.leb_bytes)?;
                now = self.ubi.change(now, place.leb, end)?;
            }
        }
        Ok(now)
    }

    /// Lists every inode of the index with its extended attributes, none of them in memory.
    pub(super) fn find_inodes(&mut self) {
        let leaves = self.tnc.leaves();
        for &(key, place) in &leaves {
            if let What::Inode { size_bytes, kind, links, data_bytes } = self.what(place).clone() {
                let mut inode = Inode::new(kind);
                (inode.size_bytes, inode.synced_bytes) = (size_bytes, size_bytes);
                (inode.links, inode.data_bytes) = (links, data_bytes);
                inode.in_memory = false;
                self.inodes.insert(key.inum(), inode);
                self.next_inode = self.next_inode.max(key.inum() + 1);
            }
        }
        for (key, place) in leaves.into_iter().filter(|(key, _)| key.is_attribute()) {
            let What::Entry { name, target: Some(inum) } = self.what(place).clone() else {
                continue;
            };
            if let Some(host) = self.inodes.get_mut(&key.inum()) {
                host.attributes.insert(key.hash(), Attribute { name: name.into(), inum });
            }
        }
    }

    /// grab_empty_leb: reserves a LEB for the collector, and commits.
    fn grab_empty_leb(&mut self, now: Ns) -> Result<Ns> {
        let (leb, now) = self.lpt.find_for_index(&mut self.ubi, now)?;
        let leb = leb.ok_or(FsError::NotModelled("ubifs's recovery without an empty LEB"))?;
        let change = Change { set: TAKEN, clear: INDEX, ..Change::default() };
        let now = self.lpt.change(&mut self.ubi, now, leb, change)?;
        self.gc_leb = Some(leb);
        let now = self.commit(now)?;
        self.ubi.unmap(now, leb)
    }

    /// Every name and its inode, directories before their content.
    pub(super) fn tree(&self) -> Vec<Found> {
        let leaves = self.tnc.leaves();
        let mut files: BTreeMap<u32, Contents> = BTreeMap::new();
        let mut names: BTreeMap<u32, Vec<(&str, u32)>> = BTreeMap::new();
        for &(key, place) in &leaves {
            match self.what(place) {
                What::Entry { name, target: Some(target) } if !key.is_attribute() => {
                    names.entry(key.inum()).or_default().push((name, *target));
                }
                What::Data(block) => {
                    let Some(inode) = self.inodes.get(&key.inum()) else { continue };
                    let start = u64::from(key.block()) * u64::from(PAGE_BYTES);
                    let end = (start + u64::from(PAGE_BYTES)).min(inode.size_bytes);
                    let file = files.entry(key.inum()).or_default();
                    file.copy_from(block, start, end.max(start));
                }
                _ => {}
            }
        }
        let mut tree = Vec::new();
        let mut directories = VecDeque::from([ROOT.0]);
        let mut seen = BTreeSet::from([ROOT.0]);
        while let Some(directory) = directories.pop_front() {
            for &(name, inum) in names.get(&directory).into_iter().flatten() {
                let Some(inode) = self.inodes.get(&inum) else { continue };
                if inode.is_directory() {
                    if !seen.insert(inum) {
                        continue; // a dump may have loops
                    }
                    directories.push_back(inum);
                }
                tree.push(Found {
                    directory: Ino(directory),
                    name: name.to_owned(),
                    ino: Ino(inum),
                    is_directory: inode.is_directory(),
                    target: match &inode.kind {
                        Kind::Link(target) => Some(target.to_string()),
                        _ => None,
                    },
                    size_bytes: inode.size_bytes,
                    contents: files.remove(&inum).unwrap_or_default(),
                });
            }
        }
        tree
    }
}
