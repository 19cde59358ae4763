//! UBIFS: a journal and a wandering tree over the logical blocks of a UBI volume.
//!
//! Mirrors fs/ubifs of Linux 6.1; the modules carry the names of the kernel's files. Written pages
//! wait in the page cache. Write-back makes each a data node in the journal (journal.rs) and an
//! entry of the index in memory (tnc.rs); a commit puts the changed part of the index on flash
//! (commit.rs). A page read looks its node up, which loads index nodes that memory pressure has
//! evicted, and reads it. docs/ubifs.md says what is kept and what is left out.
//!
//! Left out so far: compression (data must be incompressible), unlink, rename, truncate, garbage
//! collection, mounting what was written before, bulk-read, encryption, authentication. What is
//! left out is refused, not guessed.
//!
//! Invariants:
//! 1. Every node that is in use has one leaf in the index, and the leaf its place.
//! 2. An inode that is not in memory is clean.

mod budget;
mod commit;
mod geometry;
mod journal;
mod lprops;
mod lpt;
mod mount;
mod tnc;

use crate::chip::Flash;
use crate::fs::{
    FlashFs, Found, FsError, Ino, Name, PageCache, PageWrite, Result, PAGE_BYTES, ROOT,
};
use crate::mtd::Mtd;
use crate::trace::Task;
use crate::ubi::{self, Ubi};
use crate::units::Ns;
use budget::Budget;
use geometry::{align, index_node_bytes, Geometry, COMMIT_START_BYTES, DATA_HEADER_BYTES};
use geometry::{DENT_BYTES, FIRST_DATA_LEB, FIRST_GC_LEB, FIRST_INDEX_LEB, INODE_BYTES, LOG_LEB};
use geometry::{MASTER_LEB, SUPERBLOCK_BYTES, SUPERBLOCK_LEB};
use journal::{Journal, BASE_HEAD, DATA_HEAD};
use lpt::Lpt;
use tnc::{Key, Leaf, Place, Tnc};

/// Inode numbers below are UBIFS's own (UBIFS_FIRST_INO).
const FIRST_INODE: u32 = 64;
/// A data node is written compressed if that saves so much (UBIFS_MIN_COMPRESS_DIFF) of at least so
/// many bytes (UBIFS_MIN_COMPR_LEN).
const COMPRESSED_SAVES_BYTES: u32 = 64;
const COMPRESSED_BYTES_MIN: u32 = 128;
/// Granularity of times in inodes (DEFAULT_TIME_GRAN).
const TIME_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
struct Inode {
    inum: u32,
    size_bytes: u64,
    /// The size its node on flash or in a write-buffer has (`synced_i_size`).
    synced_bytes: u64,
    modified_s: u64,
    dirty: bool,
    in_memory: bool,
    /// Pages that are dirty in the page cache, a bit each.
    pending: Vec<u64>,
    contents: Vec<Contents>,
}

/// What the bytes of a page are, as far as compression asks.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    /// The byte after the last that was written.
    written_to: u16,
    /// Bytes before it that were skipped, and so are zero.
    skipped: u16,
}

/// A mounted UBIFS.
#[derive(Clone, Debug)]
pub struct Ubifs<F> {
    ubi: Ubi<F>,
    geometry: Geometry,
    lpt: Lpt,
    tnc: Tnc,
    journal: Journal,
    budget: Budget,
    /// The root first, then by number.
    inodes: Vec<Inode>,
    index_head: (u32, u32),
    master_offset: u32,
}

impl Inode {
    fn new(inum: u32, now: Ns) -> Inode {
        Inode {
            inum,
            size_bytes: 0,
            synced_bytes: 0,
            modified_s: now.0 / TIME_NS,
            dirty: false,
            in_memory: true,
            pending: Vec::new(),
            contents: Vec::new(),
        }
    }

    /// Notes that bytes `from..to` of a page are data now.
    fn note_written(&mut self, page: u32, from: u32, to: u32) {
        let page = page as usize;
        if page >= self.contents.len() {
            self.contents.resize(page + 1, Contents::default());
        }
        let contents = &mut self.contents[page];
        contents.skipped += (from as u16).saturating_sub(contents.written_to);
        contents.written_to = contents.written_to.max(to as u16);
    }

    /// Zeroes among the first `bytes` of a page; those that were written over later count as well.
    fn zeroes(&self, page: u32, bytes: u32) -> u32 {
        let contents = self.contents.get(page as usize).copied().unwrap_or_default();
        u32::from(contents.skipped) + bytes.saturating_sub(u32::from(contents.written_to))
    }

    /// Marks a page dirty or clean; whether it was dirty.
    fn set_pending(&mut self, page: u32, dirty: bool) -> bool {
        let (word, bit) = ((page / 64) as usize, 1u64 << (page % 64));
        if word >= self.pending.len() {
            self.pending.resize(word + 1, 0);
        }
        let before = self.pending[word] & bit != 0;
        self.pending[word] =
            if dirty { self.pending[word] | bit } else { self.pending[word] & !bit };
        before
    }
}

impl<F: Flash> Ubifs<F> {
    /// What ubiformat, ubiattach, `ubimkvol -m` and the first mount do
    /// (create_default_filesystem, mount_ubifs); over when the background threads are idle.
    pub fn format(mtd: Mtd<F>, now: Ns) -> Result<(Ubifs<F>, Ns)> {
        let overhead = ubi::overhead_blocks(mtd.flash().profile().blocks);
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
        let geometry = Geometry::new(leb_bytes, blocks - overhead, page)?;
        let (mut ubi, now) = Ubi::attach_formatted(mtd, now)?;
        let (lpt, now) = Lpt::create(geometry, &mut ubi, now)?;
        let main = geometry.main_first;
        let root_place =
            Place { leb: main + FIRST_INDEX_LEB, offset: 0, bytes: index_node_bytes(1) };
        let inode = Place { leb: main + FIRST_DATA_LEB, offset: 0, bytes: INODE_BYTES };
        let tnc = Tnc::new(root_place, Key::inode(ROOT.0), inode);
        let mut fs = Ubifs {
            ubi,
            journal: Journal::new(&geometry),
            budget: Budget::new(tnc.index_bytes()),
            lpt,
            tnc,
            inodes: vec![Inode::new(ROOT.0, now)],
            index_head: (root_place.leb, align(root_place.bytes, page)),
            master_offset: 0,
            geometry,
        };
        let now = fs.write_defaults(now)?;
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

    /// `gc_lnum`: the LEB that is kept for a collector.
    fn gc_leb(&self) -> u32 {
        self.geometry.main_first + FIRST_GC_LEB
    }

    /// The driver below.
    pub fn mtd(&self) -> &Mtd<F> {
        self.ubi.mtd()
    }

    /// Index nodes that a commit would write.
    pub fn dirty_znodes(&self) -> u32 {
        self.tnc.dirty_znodes()
    }

    fn index_lebs_min(&self) -> u32 {
        self.budget.index_lebs_min(&self.geometry)
    }

    /// An inode's slot in `inodes`.
    #[inline]
    fn slot(ino: Ino) -> usize {
        if ino == ROOT {
            0
        } else {
            (ino.0 - FIRST_INODE) as usize
        }
    }

    /// ubifs_tnc_read_node: from flash, but for what is still in a write-buffer.
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
        Ok(self.ubi.read(now, place.leb, place.offset, bytes)? + cpu)
    }

    fn find(&mut self, now: Ns, key: Key) -> Result<(Option<Leaf>, Ns)> {
        self.tnc.lookup(&mut self.ubi, now, key)
    }

    fn read_inode(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let (leaf, now) = self.find(now, Key::inode(inum))?;
        let leaf = leaf.expect("an inode has a node");
        self.read_node(now, self.tnc.place(leaf), self.ubi.costs().ubifs_inode_ns)
    }

    fn add_leaf(&mut self, now: Ns, key: Key, place: Place) -> Result<Ns> {
        self.tnc.add(&mut self.ubi, &mut self.lpt, now, key, place)
    }

    /// finish_reservation: the commit lock is free, so a commit that was asked for begins.
    fn finish_reservation(&mut self, now: Ns) -> Result<Ns> {
        if self.journal.commit_wanted {
            return self.commit(now);
        }
        Ok(now)
    }

    /// ubifs_create and ubifs_mkdir: the name, its inode and the directory's in one group
    /// (ubifs_jnl_update).
    fn add_entry(&mut self, now: Ns, directory: Ino, name: &str) -> Result<(Ino, Ns)> {
        if !self.budget.fits(&self.geometry, &self.lpt) {
            return Err(FsError::NoSpace);
        }
        let key = Key::dent(directory.0, name);
        let (taken, now) = self.find(now, key)?;
        if taken.is_some() {
            return Err(FsError::NotModelled("a directory entry whose name or hash is taken"));
        }
        let inum = FIRST_INODE + self.inodes.len() as u32;
        let dent_bytes = DENT_BYTES + name.len() as u32 + 1;
        let bytes = align(dent_bytes, 8) + 2 * INODE_BYTES;
        let inums = [inum, directory.0];
        let (group, now) = self.write_nodes(now, BASE_HEAD, bytes, &inums)?;
        self.budget.release_entry();
        let dent = Place { bytes: dent_bytes, ..group };
        let offset = group.offset + align(dent_bytes, 8);
        let inode = Place { offset, bytes: INODE_BYTES, ..group };
        let parent = Place { offset: offset + INODE_BYTES, ..inode };
        let now = self.add_leaf(now, key, dent)?;
        let now = self.add_leaf(now, Key::inode(inum), inode)?;
        let now = self.add_leaf(now, Key::inode(directory.0), parent)?;
        self.inodes.push(Inode::new(inum, now));
        self.inodes[Self::slot(directory)].dirty = false;
        Ok((Ino(inum), self.finish_reservation(now)?))
    }

    /// ubifs_write_inode: only if it is dirty.
    fn write_inode_node(&mut self, now: Ns, slot: usize) -> Result<Ns> {
        let inode = &mut self.inodes[slot];
        if !std::mem::take(&mut inode.dirty) {
            return Ok(now);
        }
        let inum = inode.inum;
        inode.synced_bytes = inode.size_bytes;
        let (place, now) = self.write_nodes(now, BASE_HEAD, INODE_BYTES, &[inum])?;
        let now = self.add_leaf(now, Key::inode(inum), place)?;
        self.finish_reservation(now)
    }

    /// ubifs_writepage before do_writepage: a page past the size on flash makes the inode go
    /// first. Returns how much of the page there is to write.
    fn prepare_write_page(&mut self, now: Ns, write: PageWrite) -> Result<(u32, Ns)> {
        let slot = Self::slot(write.ino);
        let inode = &self.inodes[slot];
        let (size, synced) = (inode.size_bytes, inode.synced_bytes);
        let page_bytes = u64::from(PAGE_BYTES);
        let (last, tail) = (size / page_bytes, (size % page_bytes) as u32);
        let page = u64::from(write.page);
        if page > last || (page == last && tail == 0) {
            return Ok((0, now));
        }
        let inside = page < last;
        let bytes = if inside { PAGE_BYTES } else { tail };
        let inode_first = if inside { page >= synced / page_bytes } else { size > synced };
        let now = if inode_first { self.write_inode_node(now, slot)? } else { now };
        Ok((bytes, now))
    }
}

impl<F: Flash> FlashFs for Ubifs<F> {
    type Flash = F;

    fn create(&mut self, now: Ns, at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.add_entry(now, at.directory, at.name)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.add_entry(now, at.directory, at.name)
    }

    /// ubifs_lookup: a name that is not there costs the index nodes on the way to where it would be.
    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        let (leaf, now) = self.find(now, Key::dent(at.directory.0, at.name))?;
        let Some(ino) = found else {
            return match leaf {
                Some(_) => Err(FsError::NotModelled("a directory entry whose hash is taken")),
                None => Ok(now),
            };
        };
        let leaf = leaf.expect("a file has a directory entry");
        let cached = self.tnc.cache(leaf);
        let place = self.tnc.place(leaf);
        let inode_ns = self.ubi.costs().ubifs_inode_ns;
        let mut now = if cached { now } else { self.read_node(now, place, inode_ns)? };
        if !std::mem::replace(&mut self.inodes[Self::slot(ino)].in_memory, true) {
            now = self.read_inode(now, ino.0)?;
        }
        Ok(now)
    }

    #[inline]
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32) -> Result<Ns> {
        let size = self.inodes[Self::slot(ino)].size_bytes;
        if u64::from(page) * u64::from(PAGE_BYTES) >= size {
            return Ok(now);
        }
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, Key::data(ino.0, page))?;
        match leaf {
            Some(leaf) => {
                let node_ns = self.ubi.costs().ubifs_node_ns;
                Ok(self.read_node(now, self.tnc.place(leaf), node_ns)?)
            }
            None => Ok(now),
        }
    }

    fn unlink(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("ubifs's unlink"))
    }

    fn rmdir(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("ubifs's rmdir"))
    }

    fn rename(
        &mut self,
        _now: Ns,
        _old: Name<'_>,
        _new: Name<'_>,
        _ino: Ino,
        _replaced: Option<Ino>,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("ubifs's rename"))
    }

    fn truncate(&mut self, _: Ns, _: Ino, _: u64, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("ubifs's truncate"))
    }

    fn evict(&mut self, _: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("ubifs's unlink"))
    }

    fn remount(&mut self, now: Ns) -> Result<Ns> {
        let now = self.unmount(now)?;
        let now = self.ubi.attach_again(now)?;
        self.mount(now)
    }

    fn power_up(&mut self, _now: Ns) -> Result<(Vec<Found>, Ns)> {
        Err(FsError::NotModelled("ubifs's mount after a power cut"))
    }

    fn writes_back(&self) -> bool {
        true
    }

    fn write_begin(&mut self, now: Ns, write: PageWrite, _pages: &mut dyn PageCache) -> Result<Ns> {
        // Every write asks for the file's capabilities, for UBIFS does not set SB_NOSEC.
        let (_, mut now) = self.find(now, Key::xent(write.ino.0, "security.capability"))?;
        let whole = write.from == 0 && write.to == PAGE_BYTES;
        if !write.cached && !whole {
            now = self.read_page(now, write.ino, write.page)?;
        }
        let slot = Self::slot(write.ino);
        let inode = &mut self.inodes[slot];
        if !inode.set_pending(write.page, true) {
            self.budget.promise_page();
            if !self.budget.fits(&self.geometry, &self.lpt) {
                self.budget.release_page();
                inode.set_pending(write.page, false);
                return Err(FsError::NoSpace);
            }
        }
        inode.note_written(write.page, write.from, write.to);
        let end = u64::from(write.page) * u64::from(PAGE_BYTES) + u64::from(write.to);
        let second = now.0 / TIME_NS;
        if end > inode.size_bytes || second != inode.modified_s {
            inode.size_bytes = inode.size_bytes.max(end);
            inode.modified_s = second;
            inode.dirty = true;
        }
        Ok(now)
    }

    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        let first = u64::from(write.page) * u64::from(PAGE_BYTES);
        let written = first + u64::from(write.from)..first + u64::from(write.to);
        let mut sources = pages.contents(write.ino).extents(written.start, written.end);
        if sources.any(|(_, _, source)| source.compressibility > 0) {
            return Err(FsError::NotModelled("ubifs compressing data"));
        }
        let slot = Self::slot(write.ino);
        let (bytes, now) = self.prepare_write_page(now, write)?;
        if self.inodes[slot].set_pending(write.page, false) {
            self.budget.release_page();
        }
        if bytes == 0 {
            return Ok(now);
        }
        let zeroes = self.inodes[slot].zeroes(write.page, bytes);
        if bytes >= COMPRESSED_BYTES_MIN && zeroes > COMPRESSED_SAVES_BYTES {
            return Err(FsError::NotModelled("ubifs compressing the zeroes of a hole"));
        }
        let inum = write.ino.0;
        let spent = self.ubi.costs().ubifs_write_byte_ps;
        let now = now + Ns::from_ps(u64::from(bytes), spent);
        let bytes = DATA_HEADER_BYTES + bytes;
        let (place, now) = self.write_nodes(now, DATA_HEAD, bytes, &[inum])?;
        let now = self.add_leaf(now, Key::data(inum, write.page), place)?;
        self.finish_reservation(now)
    }

    fn write_inode(&mut self, now: Ns, ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        self.write_inode_node(now, Self::slot(ino))
    }

    fn fsync(
        &mut self,
        mut now: Ns,
        ino: Ino,
        inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if inode_too {
            now = self.write_inode(now, ino, pages)?;
        }
        self.sync_heads_of(now, ino.0)
    }

    fn sync(&mut self, now: Ns) -> Result<Ns> {
        let now = self.sync_heads(now)?;
        let now = self.commit(now)?;
        self.ubi.sync(now)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        for inode in &mut self.inodes[1..] {
            inode.in_memory = false;
        }
        for &ino in kept {
            self.inodes[Self::slot(ino)].in_memory = true;
        }
        self.tnc.shrink();
        Ok(now)
    }

    fn next_due(&self) -> Option<Ns> {
        [self.ubi.next_due(), self.journal.next_due()].into_iter().flatten().min()
    }

    /// UBI's thread, or UBIFS's for its timers.
    fn run_due(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        if self.ubi.next_due().is_some_and(|due| due <= now) {
            return self.ubi.run_thread(now);
        }
        let now = self.set_task(now, Some(Task::UbifsThread))?;
        let now = self.sync_due_heads(now)?;
        self.set_task(now, None)
    }

    fn set_task(&mut self, now: Ns, task: Option<Task>) -> Result<Ns> {
        self.ubi.set_task(now, task)
    }

    fn flash(&self) -> &F {
        self.ubi.mtd().flash()
    }

    fn flash_mut(&mut self) -> &mut F {
        self.ubi.mtd_mut().flash_mut()
    }

    fn forget_page_buffer(&mut self) {
        self.ubi.mtd_mut().forget_page_buffer();
    }
}
