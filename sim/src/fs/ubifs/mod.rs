//! UBIFS: a journal and a wandering tree over the LEBs of a UBI volume.
//!
//! Mirrors fs/ubifs of Linux 6.1. The modules carry the names of the kernel's files.
//! docs/models/ubifs.md lists what is modelled and what is left out.
//!
//! Written pages stay dirty in the page cache. Write-back turns each into a data node in the
//! journal (journal.rs) and updates the index in memory (tnc.rs). A commit writes the changed part
//! of the index to flash (commit.rs). A page read looks up the page's node, which may load index
//! nodes that memory pressure has evicted, and then reads the node.
//!
//! Left out so far: names with equal hashes, encryption, authentication. The simulator refuses what
//! it does not model.
//!
//! Invariants:
//! 1. Every valid node has one leaf in the index, and that leaf holds the node's place.
//! 2. An inode that is not in memory is clean.

mod budget;
mod bulk;
mod commit;
mod dir;
mod dumped_trees;
mod dumped_volume;
mod file;
mod find;
mod gc;
pub mod geometry;
mod heap;
mod inode;
mod io;
mod journal;
mod key;
mod log;
mod lprops;
mod lpt;
mod mount;
mod old_index;
mod orphan;
mod properties;
mod recovery;
mod replay;
mod scan;
mod stored;
mod tnc;
mod tnc_commit;
mod tnc_delete;
mod tnc_index;
mod tnc_insert;
mod xattr;
mod znode;

use crate::compress::UbifsCompressor;
use crate::flash::Torn;
use crate::fs::tasks;
use crate::fs::{
    Attribute, Features, FlashFs, Found, FsError, Ino, Name, Observed, PageCache, PageWrite,
    Rename, Result, Scheduled, PAGE_BYTES, ROOT,
};
use crate::ledger::SpaceTable;
use crate::mtd::{Mtd, NandDriver};
use crate::profile::KernelFacts;
use crate::sched::{Sched, Task};
use crate::ubi::{self, Ubi};
use crate::units::Ns;
use crate::victim::Victim;
use crate::waits::{over, Wait};
use budget::Budget;
pub use budget::Counted;
pub use dumped_trees::{DumpedBranch, DumpedIndex, DumpedLpt, DumpedProperties, DumpedZnode};
use dumped_volume::FirstMount;
pub use dumped_volume::{Dumped, Master};
use file::WorkingSpace;
use gc::CollectedIndex;
use geometry::{align, index_node_bytes, Geometry, COMMIT_START_BYTES};
use geometry::{FIRST_DATA_LEB, FIRST_GC_LEB, FIRST_INDEX_LEB, INODE_BYTES, LOG_LEB};
use geometry::{MASTER_LEB, SUPERBLOCK_BYTES, SUPERBLOCK_LEB};
use inode::Inode;
pub use inode::Kind;
use key::BLOCK_BITS;
pub use key::{Key, Place};
pub use log::Bud;
use log::Journal;
use lpt::Lpt;
use orphan::Orphans;
pub use properties::Totals;
pub use scan::Node;
use scan::Written;
use serde::Deserialize;
use std::collections::BTreeMap;
use stored::OnFlash;
pub use stored::{Stored, What};
use tnc::Tnc;

/// Inode numbers below this are UBIFS's own (UBIFS_FIRST_INO).
const FIRST_INODE: u32 = 64;

/// How kernels and their configurations differ.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The compressor of a file system that the kernel creates itself (create_default_filesystem).
    pub compressor: UbifsCompressor,
}

/// A mounted UBIFS.
#[derive(Clone, Debug)]
pub struct Ubifs<D> {
    ubi: Ubi<D>,
    geometry: Geometry,
    lpt: Lpt,
    tnc: Tnc,
    journal: Journal,
    budget: Budget,
    orphans: Orphans,
    /// The nodes that a scan of each main LEB would find.
    written: Written,
    /// Inodes that have a name or are open, by number.
    inodes: BTreeMap<u32, Inode>,
    /// `highest_inum` + 1.
    next_inode: u32,
    index_head: (u32, u32),
    master_offset: u32,
    /// `cmt_no`.
    commits: u64,
    /// `gc_lnum`: the LEB reserved for the GC head.
    gc_leb: Option<u32>,
    /// `idx_gc`.
    collected_index: Vec<CollectedIndex>,
    /// Chooses the LEB to collect in the kernel's place.
    victim: Option<Box<dyn Victim>>,
    options: Options,
    /// Mounted with `bulk_read`.
    reads_in_bulk: bool,
    /// A write-buffer's timer expires dirty_writeback_interval after the last node. Its slack is a
    /// tenth (hrtimer_start_range_ns): it may expire early in that range if the processor is awake.
    timer: Ns,
    compressors: WorkingSpace,
    /// What a mount after a power cut would find; kept where the power can fail.
    on_flash: Option<Box<OnFlash>>,
    /// What the first mount of a dump does besides.
    first: FirstMount,
    /// What the mount of a dump has found, until it is asked.
    found: Vec<Found>,
}

impl<D: NandDriver> Ubifs<D> {
    /// The UBI device below, for other volumes of it.
    pub fn ubi_mut(&mut self) -> &mut Ubi<D> {
        &mut self.ubi
    }

    /// ubiformat, ubiattach, `ubimkvol -m` and the first mount (create_default_filesystem,
    /// mount_ubifs). Returns when the background threads are idle.
    pub fn format(
        mtd: Mtd<D>,
        now: Ns,
        options: Options,
        facts: KernelFacts,
    ) -> Result<(Ubifs<D>, Ns)> {
        Ubifs::format_volume(mtd, now, (options, facts), &ubi::Volumes::default())
    }

    /// The same on one of several volumes.
    pub fn format_volume(
        mtd: Mtd<D>,
        now: Ns,
        (options, facts): (Options, KernelFacts),
        volumes: &ubi::Volumes,
    ) -> Result<(Ubifs<D>, Ns)> {
        let overhead = ubi::overhead_blocks(&mtd, volumes);
        let (page, blocks) = (mtd.page_bytes(), mtd.blocks());
        if blocks < overhead + geometry::LEBS_MIN {
            return Err(FsError::too_small(format!(
                "UBIFS needs a partition of at least {} blocks here: {} for itself and {overhead} \
                 that UBI keeps; this one has {blocks}",
                overhead + geometry::LEBS_MIN,
                geometry::LEBS_MIN,
            )));
        }
        let leb_bytes = ubi::leb_bytes(&mtd);
        if leb_bytes < geometry::LEB_BYTES_MIN {
            return Err(FsError::too_small(format!(
                "UBIFS needs LEBs of at least {} bytes; on these blocks they have {leb_bytes}",
                geometry::LEB_BYTES_MIN
            )));
        }
        let lebs = volumes.program_lebs(blocks - overhead, leb_bytes)?;
        if lebs < geometry::LEBS_MIN {
            return Err(FsError::too_small(format!(
                "UBIFS needs a volume of at least {} LEBs here; beside the others {lebs} are left",
                geometry::LEBS_MIN
            )));
        }
        let geometry = Geometry::new(leb_bytes, lebs, page)?;
        let (mut ubi, now) = Ubi::attach_formatted(mtd, now, facts, volumes)?;
        let (lpt, now) = Lpt::create(geometry, &mut ubi, now)?;
        let main = geometry.main_first;
        let root_place =
            Place { leb: main + FIRST_INDEX_LEB, offset: 0, bytes: index_node_bytes(1) };
        let inode = Place { leb: main + FIRST_DATA_LEB, offset: 0, bytes: INODE_BYTES };
        let tnc = Tnc::new(root_place, Key::inode(ROOT.0), inode);
        let mut fs = Ubifs {
            ubi,
            journal: Journal::new(&geometry),
            budget: Budget::new(&geometry, tnc.index_bytes()),
            orphans: Orphans::new(&geometry),
            written: Written::new(main, geometry.main_lebs),
            lpt,
            tnc,
            inodes: BTreeMap::from([(ROOT.0, Inode::new(Kind::Directory))]),
            next_inode: FIRST_INODE + 1,
            index_head: (root_place.leb, align(root_place.bytes, page)),
            master_offset: 0,
            commits: 0,
            gc_leb: Some(main + FIRST_GC_LEB),
            collected_index: Vec::new(),
            victim: None,
            options,
            reads_in_bulk: false,
            timer: Ns::from_ms(facts.vm.writeback_ms()),
            compressors: WorkingSpace::default(),
            on_flash: None,
            first: FirstMount::default(),
            found: Vec::new(),
            geometry,
        };
        fs.written.add(root_place, Key::inode(ROOT.0), 0);
        fs.written.add(inode, Key::inode(ROOT.0), 0);
        let now = fs.write_defaults(now)?;
        fs.remember(inode);
        let now = fs.mount(now)?;
        Ok((fs, now))
    }

    /// The rest of create_default_filesystem after the LPT.
    fn write_defaults(&mut self, now: Ns) -> Result<Ns> {
        let main = self.geometry.main_first;
        let page = self.geometry.page_bytes;
        let mut now = now;
        for (leb, bytes) in [
            (SUPERBLOCK_LEB, SUPERBLOCK_BYTES),
            (main + FIRST_DATA_LEB, INODE_BYTES),
            (main + FIRST_INDEX_LEB, index_node_bytes(1)),
            (MASTER_LEB, geometry::MASTER_BYTES),
            (MASTER_LEB + 1, geometry::MASTER_BYTES),
            (LOG_LEB, COMMIT_START_BYTES),
        ] {
            now = self.ubi.write(now, leb, 0, align(bytes, page))?;
        }
        Ok(now)
    }

    /// Sets the mount option `bulk_read` for the current and later mounts. Nothing has been read
    /// yet, so the current mount may change.
    pub fn with_bulk_read(self, reads_in_bulk: bool) -> Ubifs<D> {
        Ubifs { reads_in_bulk, ..self }
    }

    /// Index nodes that a commit would write now.
    pub fn dirty_znodes(&self) -> u32 {
        self.tnc.dirty_znodes()
    }

    /// All index nodes, in memory or not.
    pub fn znodes(&self) -> u64 {
        self.tnc.znodes() as u64
    }

    fn inode(&mut self, inum: u32) -> &mut Inode {
        self.inodes.get_mut(&inum).expect("an inode of this file system")
    }

    /// ubifs_tnc_read_node: reads from flash, except what is still in a write-buffer.
    #[inline]
    fn read_node(&mut self, now: Ns, place: Place, node_ns: Ns) -> Result<Ns> {
        let mut bytes = place.bytes;
        for head in &self.journal.heads {
            if head.leb == Some(place.leb) && place.offset + bytes > head.offset {
                bytes = head.offset.saturating_sub(place.offset);
            }
        }
        let costs = self.ubi.costs();
        let cpu = Ns::from_ps(u64::from(place.bytes), costs.ubifs_byte_ps) + node_ns;
        if bytes == 0 {
            return Ok(now + cpu);
        }
        Ok(self.ubi.try_read(now, place.leb, place.offset, bytes)? + cpu)
    }

    /// ubifs_tnc_locate: a node that cannot be read may have been moved by the collector meanwhile,
    /// so the kernel looks it up and reads it again. (The collector never takes a journal head's
    /// LEB.)
    #[inline]
    fn read_located(&mut self, now: Ns, place: Place, node_ns: Ns) -> Result<Ns> {
        match self.read_node(now, place, node_ns) {
            Err(FsError::Unreadable(at))
                if self.journal.heads.iter().all(|head| head.leb != Some(place.leb)) =>
            {
                self.read_node(at, place, node_ns)
            }
            other => other,
        }
    }

    /// ubifs_tnc_read_node of a node whose checksum is verified (ubifs_check_node).
    #[inline]
    fn read_checked(&mut self, now: Ns, place: Place, node_ns: Ns) -> Result<Ns> {
        self.read_located(now, place, node_ns)
            .or_else(|error| tnc::accept_if_right(&self.ubi, place, error))
    }

    /// `ro_error`: an earlier write failed permanently.
    fn check_writable(&self, now: Ns) -> Result<()> {
        if self.ubi.has_refused() {
            return Err(FsError::ReadOnly(now));
        }
        Ok(())
    }

    /// One step of ubifs_bg_thread, which has the processor, unless another task preempts it first:
    /// writes one write-buffer. The tasks that it blocks continue afterwards.
    fn run_background_thread(&mut self, now: Ns) -> Result<Ns> {
        let before = self.ubi.mtd_mut().enter(now, Wait::WriteBack);
        let done = self.sync_next_head(now);
        self.ubi.mtd_mut().enter(over(&done, now), before);
        done
    }

    fn sync_next_head(&mut self, now: Ns) -> Result<Ns> {
        if self.ubi.sched().resched(now) != Some(Task::UbifsThread) {
            return Ok(now);
        }
        let Some(head) = self.next_to_sync() else {
            self.ubi.sched().sleep(now);
            return Ok(now);
        };
        let before = self.ubi.set_caller(Some(Task::UbifsThread));
        let synced = self.sync_head(now, head);
        self.ubi.set_caller(before);
        let now = synced.or_else(|error| error.failed_at().ok_or(error))?;
        self.ubi.sched().unblock(now);
        Ok(now)
    }

    fn read_inode(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, Key::inode(inum))?;
        let leaf = leaf.expect("an inode has a node");
        self.read_checked(now, self.tnc.place(leaf), self.ubi.costs().ubifs_inode_ns)
    }
}

impl<D: NandDriver> FlashFs for Ubifs<D> {
    type Driver = D;

    fn create(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.create_inode(now, at, Inode::new(Kind::File), pages)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.create_inode(now, at, Inode::new(Kind::Directory), pages)
    }

    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        self.lookup_name(now, at, found)
    }

    #[inline]
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, pages: &mut dyn PageCache) -> Result<Ns> {
        if !self.reads_in_bulk {
            return self.do_read_page(now, ino, page);
        }
        match self.bulk_read(now, ino, page, pages)? {
            (true, now) => Ok(now),
            (false, now) => self.do_read_page(now, ino, page),
        }
    }

    fn unlink(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.remove_entry(now, at, ino, pages)
    }

    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let now = self.first_entry(now, ino)?;
        self.remove_entry(now, at, ino, pages)
    }

    fn rename(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        self.rename_entry(now, rename, None, pages)
    }

    fn truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.set_size(now, ino, size_bytes, pages)
    }

    fn evict(&mut self, now: Ns, ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        self.evict_inode(now, ino)
    }

    fn remount(&mut self, now: Ns) -> Result<Ns> {
        if self.ubi.has_refused() {
            return Err(FsError::NotModelled("a remount of UBIFS after it went read-only"));
        }
        let now = self.unmount(now)?;
        let now = self.ubi.detach(now)?;
        let now = self.ubi.attach_again(now)?;
        self.mount(now)
    }

    fn writes_back(&self) -> bool {
        true
    }

    fn write_begin(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        self.begin_page(now + self.ubi.costs().ubifs_budget_ns, write, pages)
    }

    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        self.write_dirty_page(now, write, pages)
    }

    fn write_inode(&mut self, now: Ns, ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        self.write_inode_of(now, ino)
    }

    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        inode_too: bool,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = if inode_too { self.write_inode_of(now, ino)? } else { now };
        self.sync_heads_of(now, ino.0)
    }

    fn sync(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        let now = self.sync_heads(now)?;
        let now = self.commit(now)?;
        self.ubi.sync(now)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        for (&inum, inode) in &mut self.inodes {
            inode.in_memory = inum == ROOT.0;
        }
        for &ino in kept {
            self.inode(ino.0).in_memory = true;
        }
        self.tnc.shrink();
        Ok(now)
    }

    fn inodes_in_memory(&self) -> u64 {
        self.inodes.iter().filter(|(&inum, inode)| inode.in_memory && inum != ROOT.0).count() as u64
    }

    fn mtd(&self) -> &Mtd<D> {
        self.ubi.mtd()
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        self.ubi.mtd_mut()
    }

    /// key_max_inode_size: as many blocks as a key can address.
    fn max_file_bytes(&self) -> u64 {
        u64::from(PAGE_BYTES) << BLOCK_BITS
    }
}

impl<D: NandDriver> Features for Ubifs<D> {
    fn expect_writes(&self, ino: Ino, pages: &[u32]) {
        self.tnc.touch(pages.iter().map(|&page| Key::data(ino.0, page)));
    }

    fn symlink(
        &mut self,
        now: Ns,
        at: Name<'_>,
        target: &str,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        self.create_inode(now, at, Inode::new(Kind::Link(target.into())), pages)
    }

    fn link(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.link_inode(now, at, ino, pages)
    }

    fn rename_whiteout(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        self.rename_with_whiteout(now, rename, pages)
    }

    fn exchange(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        self.exchange_entries(now, rename, pages)
    }

    fn whiteout(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.create_inode(now, at, Inode::whiteout(), pages)
    }

    fn read_volume(&mut self, now: Ns, volume: usize, at: u64, bytes: u32) -> Result<Ns> {
        self.ubi.read_volume(now, volume, at, bytes)
    }

    fn tmpfile(&mut self, now: Ns, directory: Ino, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make_tmpfile(now, directory, pages)
    }

    fn set_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        what: Attribute,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.change_attribute(now, ino, what, pages)
    }

    fn read_dir(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.read_entries(now, ino, pages)
    }

    fn listed_ns(&self) -> Ns {
        self.ubi.costs().ubifs_listed_ns
    }

    fn set_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.set_attribute_value(now, ino, name, bytes, pages)
    }

    fn get_xattr(&mut self, now: Ns, ino: Ino, name: &str) -> Result<(u32, Ns)> {
        self.attribute_bytes(now, ino, name)
    }

    fn list_xattr(&mut self, now: Ns, ino: Ino) -> Result<(u32, Ns)> {
        self.list_attributes(now, ino)
    }

    fn remove_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.remove_attribute(now, ino, name, pages)
    }

    fn page_mkwrite(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        new_time: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.budget_mapped_page(now, ino, page, new_time, pages)
    }

    fn check_dir_empty(&mut self, now: Ns, ino: Ino, _: &[Name<'_>]) -> Result<Ns> {
        self.first_entry(now, ino)
    }

    fn update_time(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.update_mctime(now, ino, pages)
    }
}

impl<D: NandDriver> Observed for Ubifs<D> {
    fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        let now = self.mount_after_power_cut(now, torn)?;
        Ok((self.tree(), now))
    }

    fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// ubifs_statfs.
    fn space(&self) -> Option<SpaceTable> {
        let mtd = self.ubi.mtd();
        let mut table = SpaceTable::new(u64::from(mtd.blocks()) * u64::from(mtd.block_bytes()));
        self.ubi.account(&mut table);
        self.geometry.account(&mut table);
        self.budget.account(&self.geometry, &self.lpt, &mut table);
        Some(table)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.victim = Some(victim);
        true
    }

    /// Of a LEB of the main area what its properties call neither free nor dirty, of others all;
    /// UBI's headers besides.
    fn live_bytes(&self, blocks: &mut [u32]) -> bool {
        let leb_bytes = self.ubi.leb_bytes();
        self.ubi.mark_live(blocks, |leb| match leb.checked_sub(self.geometry.main_first) {
            Some(_) => leb_bytes - self.lpt.free_and_dirty(leb),
            None => leb_bytes,
        });
        true
    }

    fn time_in_ubi(&self) -> Ns {
        self.ubi.own_time()
    }
}

impl<D: NandDriver> Scheduled for Ubifs<D> {
    fn next_due(&self) -> Option<Ns> {
        self.journal.next_due().map(|due| due + Ns(self.timer.0 / 10))
    }

    fn next_due_earliest(&self) -> Option<Ns> {
        self.journal.next_due()
    }

    /// Wakes UBIFS's thread for the expired timers.
    fn run_due(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        self.expire_timers(now);
        self.ubi.sched().wake(now, Task::UbifsThread);
        Ok(now)
    }

    fn sched(&mut self) -> &mut Sched {
        self.ubi.sched()
    }

    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.ubi.set_caller(task)
    }

    fn run_thread(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        match self.ubi.sched().current() {
            Some(Task::UbifsThread) => self.run_background_thread(now),
            _ => self.ubi.run_thread(now),
        }
    }

    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let now = self.ubi.reach_resched(now)?;
        tasks::resched(self, now, pages)
    }
}
