//! Files through the page cache.
//!
//! Mirrors fs/squashfs/file.c and file_direct.c of Linux 6.1 (squashfs_readahead,
//! squashfs_readahead_fragment, squashfs_read_folio, squashfs_readpage_block, squashfs_copy_cache),
//! and of mm/readahead.c page_cache_ra_unbounded, read_pages and readahead_expand. vfs/readahead
//! chooses the windows. squashfs_readahead does not move `start` from block to block, so `expected`
//! is wrong for the last block of a window of several.
//!
//! Left out: pages that are mapped or reclaimed, lengths of blocks after decompression, which are
//! taken from the file's size.
//!
//! Invariant: a page is up to date only if the kernel's is.

use super::format::{Fragment, Size, What};
use super::{Below, Io, Squashfs};
use crate::errno::{FsError, Result, EISDIR};
use crate::fs::PAGE_BYTES;
use crate::units::Ns;
use crate::vfs::readahead::{self, Asked, KernelReadAhead, ReadAheadState, Window};
use crate::vfs::{FileCache, ROOT_WINDOW_PAGES};

/// The agent reads so much at once (agent/host/boot.c).
pub const CALL_BYTES: u64 = 131_072;
const PAGE: u64 = PAGE_BYTES as u64;
/// The model's limit of a file: pages have 32 bits.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// struct readahead_control: the next pages to read.
#[derive(Clone, Copy, Debug)]
struct Control {
    index: u32,
    pages: u32,
}

/// An open file.
pub(super) struct Open {
    pub inode: u32,
    pub bytes: u64,
    pub fragment: Option<Fragment>,
    pub cache: FileCache,
    pub ahead: ReadAheadState,
    pub kernel: KernelReadAhead,
    /// Pages that were added to the cache and are not paid for yet.
    pub added: u64,
}

impl Open {
    fn pages(&self) -> u32 {
        self.bytes.div_ceil(PAGE) as u32
    }

    fn take_pages(&mut self, control: &mut Control, pages: u32) {
        control.index += pages;
        control.pages -= pages;
    }

    /// A page that is cached and not up to date.
    pub fn add_empty(&mut self, page: u32) {
        self.added += 1;
        self.cache.insert(page);
        self.cache.clear_uptodate(page);
    }

    /// readahead_expand.
    fn expand(&mut self, control: &mut Control, start: u64, mut bytes: u64) {
        while u64::from(control.index) > start / PAGE {
            let page = control.index - 1;
            if self.cache.contains(page) {
                return;
            }
            self.add_empty(page);
            control.index = page;
            control.pages += 1;
        }
        bytes = (bytes + start).saturating_sub(u64::from(control.index) * PAGE);
        while u64::from(control.pages) < bytes.div_ceil(PAGE) {
            let page = control.index + control.pages;
            if self.cache.contains(page) {
                return;
            }
            self.add_empty(page);
            control.pages += 1;
            self.ahead.size += 1;
            self.ahead.async_size += 1;
        }
    }
}

impl Squashfs {
    /// Reads a file to its end, as read(2) in calls of 128 KiB: its size, or an errno.
    pub fn read_whole(
        &mut self,
        below: &mut dyn Below,
        now: Ns,
        inode: u32,
        kernel: &KernelReadAhead,
    ) -> Result<(core::result::Result<u64, i64>, Ns)> {
        let mut io = Io { below, now, prices: self.prices };
        let (bytes, fragment) = match self.inodes.get(&inode).map(|inode| inode.what) {
            Some(What::File { bytes, fragment, .. }) => (bytes, fragment),
            Some(What::Directory { .. }) => return Ok((Err(EISDIR), now)),
            _ => return Err(FsError::NotModelled("reading a device file of the read-only root")),
        };
        if bytes > FILE_BYTES_MAX {
            return Err(FsError::NotModelled("a file of squashfs above 1 TiB"));
        }
        let cache = self.pages.remove(&inode).unwrap_or_else(|| FileCache::new(u32::MAX));
        let ahead = ReadAheadState::new(ROOT_WINDOW_PAGES);
        let kernel = *kernel;
        let mut open = Open { inode, bytes, fragment, cache, ahead, kernel, added: 0 };
        let read = self.read_to_end(&mut io, &mut open);
        self.pages.insert(inode, open.cache);
        read.map(|()| (Ok(bytes), io.now))
    }

    fn read_to_end(&mut self, io: &mut Io<'_>, open: &mut Open) -> Result<()> {
        let mut at = 0;
        while at < open.bytes {
            let end = open.bytes.min(at + CALL_BYTES);
            let last = (at + CALL_BYTES).div_ceil(PAGE) as u32;
            for page in (at / PAGE) as u32..end.div_ceil(PAGE) as u32 {
                self.get_page(io, open, page, last - page)?;
                let next = end.min((u64::from(page) + 1) * PAGE);
                open.ahead.previous_page = (next / PAGE) as i64;
            }
            at = end;
        }
        Ok(())
    }

    /// filemap_get_pages.
    pub(super) fn get_page(
        &mut self,
        io: &mut Io<'_>,
        open: &mut Open,
        page: u32,
        wanted: u32,
    ) -> Result<()> {
        let kernel = open.kernel;
        if !open.cache.contains(page) {
            let asked = Asked { state: &mut open.ahead, cache: &open.cache, page, wanted };
            if let Some(window) = readahead::on_miss(&kernel, &mut None, asked) {
                self.fill(io, open, window)?;
            }
            if !open.cache.contains(page) {
                open.add_empty(page);
                return self.read_folio(io, open, page);
            }
        }
        if open.cache.take_marker(page) {
            let asked = Asked { state: &mut open.ahead, cache: &open.cache, page, wanted };
            if let Some(window) = readahead::on_marker(&kernel, &mut None, asked) {
                self.fill(io, open, window)?;
            }
        }
        match open.cache.is_uptodate(page) {
            true => Ok(()),
            false => self.read_folio(io, open, page),
        }
    }

    /// page_cache_ra_unbounded: a page that is cached ends a run of those that are read together.
    pub(super) fn fill(&mut self, io: &mut Io<'_>, open: &mut Open, window: Window) -> Result<()> {
        let window = window.cut_to(&open.kernel, open.pages());
        let mut control = Control { index: window.start, pages: 0 };
        let mut page = window.start;
        while page < window.start + window.pages {
            if open.cache.contains(page) {
                self.read_pages(io, open, &mut control)?;
                control.index += 1;
                page = control.index + control.pages;
                continue;
            }
            open.add_empty(page);
            if window.marker == Some(page) {
                open.cache.set_marker(page);
            }
            control.pages += 1;
            page += 1;
        }
        self.read_pages(io, open, &mut control)
    }

    /// read_pages: pages that squashfs leaves are taken out of the window, and of the cache as far
    /// as they were read ahead.
    fn read_pages(
        &mut self,
        io: &mut Io<'_>,
        open: &mut Open,
        control: &mut Control,
    ) -> Result<()> {
        if control.pages == 0 {
            return Ok(());
        }
        self.squashfs_readahead(io, open, control)?;
        while control.pages > 0 {
            open.ahead.size = open.ahead.size.saturating_sub(1);
            if open.ahead.async_size >= 1 {
                open.ahead.async_size -= 1;
                open.cache.drop_clean(control.index, control.index + 1);
            }
            open.take_pages(control, 1);
        }
        Ok(())
    }

    fn squashfs_readahead(
        &mut self,
        io: &mut Io<'_>,
        open: &mut Open,
        control: &mut Control,
    ) -> Result<()> {
        let log = self.stored.superblock.block_log;
        let mask = self.block_bytes() - 1;
        let shift = log - PAGE_BYTES.ilog2();
        let position = u64::from(control.index) * PAGE;
        let start = position & !mask;
        let length = u64::from(control.pages) * PAGE + position - start;
        let file_end = open.bytes >> log;
        open.expand(control, start, (length | mask) + 1);
        io.now += io.prices.pages(core::mem::take(&mut open.added));
        let expected = match start >> log == file_end {
            true => open.bytes & mask,
            false => mask + 1,
        };
        loop {
            let batch = (expected.div_ceil(PAGE) as u32).min(control.pages);
            if batch == 0 {
                return Ok(());
            }
            let (first, last) = (control.index, control.index + batch - 1);
            let block = u64::from(first >> shift);
            open.take_pages(control, batch);
            if u64::from(first) * PAGE >= open.bytes || u64::from(last >> shift) != block {
                return Ok(());
            }
            if let Some(fragment) = open.fragment.filter(|_| block == file_end) {
                self.get_fragment(io, fragment)?;
                let tail = open.bytes & mask;
                let begins = |page: u32| (u64::from(page) * PAGE) & mask;
                for page in (first..=last).filter(|&page| begins(page) < tail) {
                    open.cache.insert(page);
                }
                continue;
            }
            let (size, at) = self.read_block_list(io, open.inode, block)?;
            if size.is_hole() {
                return Ok(());
            }
            let found = (open.bytes - (block << log)).min(mask + 1);
            if self.read_block(io, (at, size), found, expected)? {
                (first..=last).for_each(|page| open.cache.insert(page));
            }
        }
    }

    /// squashfs_read_data of a block that holds `found` bytes: whether these are `expected`. Its
    /// errors leave the pages as they are.
    fn read_block(
        &self,
        io: &mut Io<'_>,
        (at, size): (u64, Size),
        found: u64,
        expected: u64,
    ) -> Result<bool> {
        match self.read_data(io, at, size, (expected, found)) {
            Err(FsError::Io(_)) => Ok(false),
            read => read.map(|()| found == expected),
        }
    }

    pub(super) fn read_folio(&mut self, io: &mut Io<'_>, open: &mut Open, page: u32) -> Result<()> {
        io.now += io.prices.pages(core::mem::take(&mut open.added));
        let log = self.stored.superblock.block_log;
        let shift = log - PAGE_BYTES.ilog2();
        let block = u64::from(page >> shift);
        let first = page >> shift << shift;
        let end = (first + (1 << shift)).min(open.pages());
        if let Some(fragment) = open.fragment.filter(|_| block == open.bytes >> log) {
            self.get_fragment(io, fragment)?;
        } else {
            let (size, at) = self.read_block_list(io, open.inode, block)?;
            let found = (open.bytes - (block << log)).min(self.block_bytes());
            if !size.is_hole() {
                self.read_data(io, at, size, (found, found))?;
            }
        }
        (first..end).for_each(|page| open.cache.insert(page));
        Ok(())
    }
}
