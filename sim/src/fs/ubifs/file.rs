//! Files: dirtying, reading and writing pages, and changing sizes.
//!
//! Mirrors fs/ubifs/file.c (ubifs_write_begin with its fast and its slow path, ubifs_write_end,
//! do_readpage, ubifs_writepage, do_truncation, do_setattr, update_mctime, ubifs_vm_page_mkwrite)
//! and compress.c of Linux 6.1. bulk.rs has bulk-read.

use super::budget::Request;
use super::geometry::{DATA_HEADER_BYTES, TRUNCATION_BYTES};
use super::key::{r5_hash, Key, Place};
use super::Ubifs;
use crate::compress::{Compressors, UbifsData};
use crate::fs::{Attribute, FsError, Ino, PageCache, PageWrite, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::ubi::Ubi;
use crate::units::Ns;

/// The attribute that `look_for_capabilities` looks up.
const CAPABILITIES: u32 = r5_hash("security.capability");

/// The compressors' working memory, allocated when the first compressible bytes are written.
#[derive(Default)]
pub struct WorkingSpace(Option<Box<Compressors>>);

impl WorkingSpace {
    /// Never inlined: the compressors are built on the stack. Inlined, a write of incompressible
    /// bytes would reserve these kilobytes, too.
    #[inline(never)]
    fn get(&mut self) -> &mut Compressors {
        self.0.get_or_insert_default()
    }
}

impl Clone for WorkingSpace {
    /// A clone starts empty: compressors carry no state from one call to the next.
    fn clone(&self) -> WorkingSpace {
        WorkingSpace(None)
    }
}

impl core::fmt::Debug for WorkingSpace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WorkingSpace")
    }
}

/// The parts of a data node that a read checks, by offset and length: magic; length and type; key.
pub(super) const DATA_NODE: [(u32, u32); 3] = [(0, 4), (16, 5), (24, 8)];
/// Offset and length of size and compressor.
pub(super) const DATA_SIZE: (u32, u32) = (40, 6);

/// Whether one of these parts of a node has wrong bits.
pub(super) fn wrong_data<D: NandDriver>(ubi: &Ubi<D>, place: Place, parts: &[(u32, u32)]) -> bool {
    parts.iter().any(|&(from, bytes)| ubi.is_wrong(place.leb, place.offset + from, bytes))
}

fn page_of(bytes: u64) -> u32 {
    u32::try_from(bytes / u64::from(PAGE_BYTES)).expect("a file below 16 TiB")
}

impl<D: NandDriver> Ubifs<D> {
    /// do_readpage.
    #[inline]
    pub(super) fn do_read_page(&mut self, now: Ns, ino: Ino, page: u32) -> Result<Ns> {
        let size = self.inode(ino.0).size_bytes;
        if u64::from(page) * u64::from(PAGE_BYTES) >= size {
            self.inode(ino.0).set_hole(page, true);
            return Ok(now + self.ubi.costs().ubifs_hole_ns);
        }
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, Key::data(ino.0, page))?;
        self.inode(ino.0).set_hole(page, leaf.is_none());
        match leaf {
            Some(leaf) => {
                let (place, unpacked) = (self.tnc.place(leaf), self.tnc.data_bytes(leaf));
                let cost = self.ubi.costs().ubifs_node_ns + self.unpacking_cost(place, unpacked);
                match self.read_located(now, place, cost) {
                    Err(FsError::Unreadable(at)) => self.read_with_wrong_bits(at, place, unpacked),
                    other => other,
                }
            }
            None => Ok(now + self.ubi.costs().ubifs_hole_ns),
        }
    }

    /// The time to decompress a node, if it is compressed. All nodes use the same compressor.
    pub(super) fn unpacking_cost(&mut self, place: Place, unpacked_bytes: u32) -> Ns {
        let bytes = place.bytes - DATA_HEADER_BYTES;
        match self.options.compressor.packing().filter(|_| bytes < unpacked_bytes) {
            Some(packing) => {
                let costs = self.ubi.costs().compressors;
                self.ubi.charge(costs.unpacking(packing, bytes, unpacked_bytes))
            }
            None => Ns::ZERO,
        }
    }

    /// Reads a data node with wrong bits. The kernel checks only its header (no_chk_data_crc). It
    /// returns wrong data as if they were right, unless decompressing them fails.
    pub(super) fn read_with_wrong_bits(
        &self,
        at: Ns,
        place: Place,
        unpacked_bytes: u32,
    ) -> Result<Ns> {
        if wrong_data(&self.ubi, place, &DATA_NODE) || wrong_data(&self.ubi, place, &[DATA_SIZE]) {
            return Err(FsError::Damaged(at));
        }
        let packed_bytes = place.bytes - DATA_HEADER_BYTES;
        let packed = [(DATA_HEADER_BYTES, packed_bytes)];
        if packed_bytes != unpacked_bytes && wrong_data(&self.ubi, place, &packed) {
            return Err(FsError::NotModelled("unpacking data with wrong bits"));
        }
        Ok(at)
    }

    /// update_mctime.
    pub(super) fn update_mctime(
        &mut self,
        now: Ns,
        ino: Ino,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.budget_space(now, &Request::INODE, pages)?;
        self.make_inode_dirty(ino);
        Ok(now)
    }

    /// security_inode_need_killpriv: every write and truncation looks the attribute up, because
    /// UBIFS does not set SB_NOSEC.
    fn look_for_capabilities(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let key = Key::xent(ino.0, CAPABILITIES);
        Ok(self.tnc.lookup(&mut self.ubi, now, key)?.1)
    }

    /// ubifs_write_begin, and the inode's part of ubifs_write_end.
    pub(super) fn begin_page(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let PageWrite { ino, page, from, to, .. } = write;
        let mut now = self.look_for_capabilities(now, ino)?;
        self.check_writable(now)?;
        let end = u64::from(page) * u64::from(PAGE_BYTES) + u64::from(to);
        let skipped_read = !write.cached && from == 0 && to == PAGE_BYTES;
        if skipped_read {
            self.inode(ino.0).set_hole(page, true);
        } else if !write.cached {
            now = self.do_read_page(now, ino, page)?;
        }
        let mut inode = self.inodes.get_mut(&ino.0).expect("an inode of this file system");
        let appending = end > inode.size_bytes;
        let request = Request {
            new_page: !inode.is_budgeted(page) && inode.is_hole(page),
            dirtied_page: !inode.is_budgeted(page) && !inode.is_hole(page),
            dirtied_inodes: u64::from(appending && !inode.dirty),
            ..Request::default()
        };
        if !self.budget.promise(&self.geometry, &self.lpt, &request) {
            // The page stays in the cache, even if there is no space.
            pages.keep_page(ino, page, !skipped_read);
            now = self.begin_page_slowly(now, write, appending, pages)?;
            inode = self.inode(ino.0);
        }
        inode.set_budgeted(page);
        if appending {
            inode.size_bytes = end;
            inode.dirty = true;
        }
        Ok(now)
    }

    /// write_begin_slow: budgets the worst case and releases what it does not need.
    fn begin_page_slowly(
        &mut self,
        now: Ns,
        write: PageWrite,
        appending: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let PageWrite { ino, page, .. } = write;
        let inodes = u64::from(appending);
        let request = Request { dirtied_inodes: inodes, ..Request::NEW_PAGE };
        let now = self.budget_space(now, &request, pages)?;
        let inode = &self.inodes[&ino.0];
        let (budgeted, hole, dirty) = (inode.is_budgeted(page), inode.is_hole(page), inode.dirty);
        if budgeted {
            self.release_budget(&Request::NEW_PAGE);
        } else if !hole {
            self.budget.convert_page(&self.geometry);
        }
        if appending && dirty {
            self.release_budget(&Request::INODE);
        }
        Ok(now)
    }

    /// Releases the budget of a page that was written or dropped.
    fn release_page(&mut self, ino: Ino, page: u32) {
        match self.inode(ino.0).take_page(page) {
            Some(true) => self.release_budget(&Request::NEW_PAGE),
            Some(false) => self.release_budget(&Request::PAGE),
            None => {}
        }
    }

    /// ubifs_invalidate_folio for every page from `first` on.
    pub(super) fn release_pages(&mut self, ino: Ino, first: u32) {
        for page in self.inode(ino.0).flagged_pages(first) {
            self.release_page(ino, page);
        }
    }

    /// ubifs_writepage. A page beyond the size in the inode's node on flash makes UBIFS write the
    /// inode first.
    pub(super) fn write_dirty_page(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let PageWrite { ino, page, .. } = write;
        let inode = &self.inodes[&ino.0];
        let (size, synced) = (inode.size_bytes, inode.synced_bytes);
        let (last, tail) = (page_of(size), (size % u64::from(PAGE_BYTES)) as u32);
        if page > last || (page == last && tail == 0) {
            return Ok(now);
        }
        let inside = page < last;
        let inode_first = if inside { page >= page_of(synced) } else { size > synced };
        let now = if inode_first { self.write_inode_of(now, ino)? } else { now };
        self.do_write_page(now, ino, page, if inside { PAGE_BYTES } else { tail }, pages)
    }

    /// do_writepage.
    fn do_write_page(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        bytes: u32,
        pages: &dyn PageCache,
    ) -> Result<Ns> {
        let start = u64::from(page) * u64::from(PAGE_BYTES);
        let packed = self.compress(ino, start, start + u64::from(bytes), pages);
        let now = self.jnl_write_data(now, ino.0, page, bytes, packed, pages)?;
        self.release_page(ino, page);
        Ok(now)
    }

    /// ubifs_compress: the payload of a node for these bytes of a file.
    pub(super) fn compress(
        &mut self,
        ino: Ino,
        start: u64,
        end: u64,
        pages: &dyn PageCache,
    ) -> UbifsData {
        let compressor = self.options.compressor;
        let contents = pages.contents(ino);
        if end - start == u64::from(PAGE_BYTES) && contents.is_random(start, end) {
            return compressor.of_random(PAGE_BYTES as usize);
        }
        self.compressors.get().ubifs(compressor, contents, start, end)
    }

    /// Makes a budgeted inode dirty. An inode that is already dirty has its budget, so the new one
    /// is released.
    pub(super) fn make_inode_dirty(&mut self, ino: Ino) {
        let inode = self.inode(ino.0);
        let request = inode.request();
        if std::mem::replace(&mut inode.dirty, true) {
            self.release_budget(&request);
        }
    }

    /// ubifs_setattr with a size.
    pub(super) fn set_size(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.look_for_capabilities(now, ino)?;
        if size_bytes < self.inode(ino.0).size_bytes {
            return self.do_truncation(now, ino, size_bytes, pages);
        }
        let now = self.budget_space(now, &Request::INODE, pages)?;
        pages.truncate_setsize(ino, size_bytes);
        self.inode(ino.0).size_bytes = size_bytes;
        self.make_inode_dirty(ino);
        pages.mark_inode_dirty(now, ino, true);
        Ok(now)
    }

    /// do_setattr without a size: the inode becomes dirty, and the next write-back writes it.
    pub(super) fn change_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        what: Attribute,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = match what {
            Attribute::Owner if !self.inodes[&ino.0].is_directory() => {
                self.look_for_capabilities(now, ino)?
            }
            _ => now,
        };
        let request = self.inodes[&ino.0].request();
        let now = self.budget_space(now, &request, pages)?;
        self.make_inode_dirty(ino);
        pages.mark_inode_dirty(now, ino, false);
        Ok(now)
    }

    /// ubifs_vm_page_mkwrite: budgets a new page and, if the time changes, the inode.
    pub(super) fn budget_mapped_page(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        new_time: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.check_writable(now)?;
        let request = Request { dirtied_inodes: u64::from(new_time), ..Request::NEW_PAGE };
        let now = self.budget_space(now, &request, pages)?;
        let inode = self.inode(ino.0);
        let (is_budgeted, is_hole) = (inode.is_budgeted(page), inode.is_hole(page));
        inode.set_budgeted(page);
        if is_budgeted {
            self.release_budget(&Request::NEW_PAGE);
        } else if !is_hole {
            self.budget.convert_page(&self.geometry);
        }
        if new_time {
            self.make_inode_dirty(ino);
            pages.mark_inode_dirty(now, ino, false);
        }
        Ok(now)
    }

    /// do_truncation: writes a dirty last page before it reads that block's remainder from flash.
    /// Truncating to 0 proceeds without a budget.
    fn do_truncation(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let old_bytes = self.inode(ino.0).size_bytes;
        let tail = (size_bytes % u64::from(PAGE_BYTES)) as u32;
        let more_bytes = u64::from(TRUNCATION_BYTES);
        let request = Request { dirtied_page: tail > 0, more_bytes, ..Request::INODE };
        let (mut now, budgeted) = match size_bytes {
            0 => self.budget_if_there_is(now, &request, pages)?,
            _ => (self.budget_space(now, &request, pages)?, true),
        };
        pages.truncate_setsize(ino, size_bytes);
        self.release_pages(ino, size_bytes.div_ceil(u64::from(PAGE_BYTES)) as u32);
        let page = page_of(size_bytes);
        if tail > 0 && pages.find_page(ino, page) == Some(true) {
            pages.clear_dirty(ino, page);
            now = self.do_write_page(now, ino, page, tail, pages)?;
        }
        let inode = self.inode(ino.0);
        inode.size_bytes = size_bytes;
        now = self.jnl_truncate(now, ino, old_bytes, size_bytes, pages)?;
        self.release_if(budgeted, &request);
        Ok(now)
    }
}
