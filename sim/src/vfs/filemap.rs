//! Reading through the page cache.
//!
//! Mirrors mm/filemap.c (do_generic_file_read of 2.6.37, filemap_read of 6.1) and
//! page_cache_ra_unbounded of mm/readahead.c. readahead/ decides which pages are read ahead.
//!
//! Invariant: a page is in the cache at most once, and only after the file system has filled it or
//! failed to.

use super::inode::Inode;
use super::readahead::{self, Asked, PreviousPosition, ReadAheadState, Window};
use super::{ReadPosition, Vfs, Wanted};
use crate::errno::{errno, FsError, Outcome, EBADF, EISDIR};
use crate::fs::{FlashFs, PAGE_BYTES};
use crate::units::Ns;
use crate::waits::Wait;

impl<S: FlashFs> Vfs<S> {
    /// pread: reads page by page. A missing page brings its read-ahead window with it.
    pub fn read(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let byte_ps = self.costs.copy_to_user_byte_ps;
        self.read_pages(now + self.costs.syscall_ns, slot, (offset, length), byte_ps)
    }

    /// filemap_read within a system call. `byte_ps` is the cost of a byte.
    pub(super) fn read_pages(
        &mut self,
        mut now: Ns,
        slot: usize,
        (offset, length): (u64, u64),
        byte_ps: u64,
    ) -> Outcome {
        // A copy of the state that a read moves, because reads and reclaim borrow the slots.
        let (inode, mut position) = match &self.slots[slot] {
            Some(open) if open.flags.read => (open.inode, open.position),
            _ => return Ok((EBADF, now)),
        };
        if self.inodes[inode].is_directory {
            return Ok((EISDIR, now));
        }
        let size = self.inodes[inode].size_bytes;
        let end = size.min(offset.saturating_add(length));
        if offset >= end {
            return self.read_past_end(now, slot, (offset, length));
        }
        let page_bytes = u64::from(PAGE_BYTES);
        let last = u32::try_from((offset + length).div_ceil(page_bytes)).unwrap_or(u32::MAX);
        let first = (offset / page_bytes) as u32;
        let stop = end.div_ceil(page_bytes) as u32;
        now += Ns::from_ps(end - offset, byte_ps);
        for page in first..stop {
            match self.get_page(
                now + self.costs.page_find_ns,
                inode,
                &mut position.readahead,
                page,
                last - page,
            ) {
                Ok(later) => now = later,
                Err(error) => {
                    self.read_at(slot, position);
                    let (errno, now) = errno(error, now)?;
                    let read = (u64::from(page) * page_bytes).saturating_sub(offset) as i64;
                    return Ok((if read > 0 { read } else { errno }, now));
                }
            }
            if self.kernel.previous_position == PreviousPosition::NextByte {
                let next = end.min((u64::from(page) + 1) * page_bytes);
                position.readahead.previous_page = (next / page_bytes) as i64;
            }
            if position.last_page.replace(page) != Some(page) && !self.inodes[inode].is_lower() {
                self.inodes.mark_accessed(inode, page);
            }
        }
        match self.kernel.previous_position {
            PreviousPosition::LastPage => position.readahead.previous_page = i64::from(stop) - 1,
            PreviousPosition::NextByteAtEnd => {
                position.readahead.previous_page = (end / page_bytes) as i64;
            }
            PreviousPosition::NextByte => {}
        }
        self.read_at(slot, position);
        Ok(((end - offset) as i64, now))
    }

    /// Nothing is left to read. Before 6.1 the kernel compares the position with the file's end
    /// only when it has the page, so the last page is read.
    #[cold]
    #[inline(never)]
    fn read_past_end(&mut self, now: Ns, slot: usize, (offset, length): (u64, u64)) -> Outcome {
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        let (inode, mut position) = (open.inode, open.position);
        let page_bytes = u64::from(PAGE_BYTES);
        let pages = self.inodes[inode].size_bytes.div_ceil(page_bytes);
        let page = offset / page_bytes;
        let has_page = page < pages && length > 0;
        if !has_page || !self.kernel.past_end_reads_last_page {
            return Ok((0, now));
        }
        let last = u32::try_from((offset + length).div_ceil(page_bytes)).unwrap_or(u32::MAX);
        let ahead = &mut position.readahead;
        let done = self.get_page(
            now + self.costs.page_find_ns,
            inode,
            ahead,
            page as u32,
            last - page as u32,
        );
        self.read_at(slot, position);
        match done {
            Ok(later) => Ok((0, later)),
            Err(error) => errno(error, now),
        }
    }

    fn read_at(&mut self, slot: usize, position: ReadPosition) {
        if let Some(open) = &mut self.slots[slot] {
            open.position = position;
        }
    }

    /// Brings a page into the cache, and reads ahead as the kernel would. Inlined into the loop of
    /// reads, which a call a page would slow.
    #[inline(always)]
    fn get_page(
        &mut self,
        mut now: Ns,
        inode: usize,
        ahead: &mut ReadAheadState,
        page: u32,
        wanted: u32,
    ) -> core::result::Result<Ns, FsError> {
        if self.inodes[inode].is_lower() {
            return self.read_lower(now, inode, ahead, Wanted::Page(page, wanted));
        }
        let cache = &mut self.inodes[inode].cache;
        if !cache.contains(page) {
            self.cache_misses += 1;
            let asked = Asked { state: ahead, cache, page, wanted };
            let window = readahead::on_miss(&self.kernel, &mut self.policy, asked);
            if let Some(window) = window {
                self.wants(page, wanted);
                now = self.fill(now, inode, window)?;
            }
            if !self.inodes[inode].cache.contains(page) {
                now = self.fill(now, inode, Window { start: page, pages: 1, marker: None })?;
                if !self.inodes[inode].cache.is_uptodate(page) {
                    return Err(FsError::Io(now));
                }
            }
        } else {
            self.cache_hits += 1;
        }
        let cache = &mut self.inodes[inode].cache;
        if cache.take_marker(page) {
            let asked = Asked { state: ahead, cache, page, wanted };
            let window = readahead::on_marker(&self.kernel, &mut self.policy, asked);
            if let Some(window) = window {
                self.wants(page, wanted);
                now = self.fill(now, inode, window)?;
            }
        }
        self.update_page(now, inode, page)
    }

    /// filemap_update_page: retries a page that read-ahead could not read.
    #[inline]
    pub(super) fn update_page(
        &mut self,
        now: Ns,
        index: usize,
        page: u32,
    ) -> core::result::Result<Ns, FsError> {
        let Inode { ino, ref cache, .. } = self.inodes[index];
        if cache.is_uptodate(page) {
            return Ok(now);
        }
        if self.inodes[index].is_lower() {
            let ahead = &mut ReadAheadState::new(0);
            return self.read_lower(now, index, ahead, Wanted::Folio(page));
        }
        let read = self.fs.read_page(now, ino, page, &mut self.inodes);
        self.cache_adds += std::mem::take(&mut self.inodes.added_besides);
        match read {
            Ok(now) => {
                self.inodes[index].cache.insert(page);
                Ok(now)
            }
            Err(error) => Err(error.failed_at().map_or(error, FsError::Io)),
        }
    }

    /// page_cache_ra_unbounded: reads the missing pages of a window, up to the end of the file. A
    /// page that was already cached gets no marker. A page that cannot be read is cached, but not
    /// up to date.
    #[inline]
    pub(super) fn fill(
        &mut self,
        mut now: Ns,
        inode: usize,
        window: Window,
    ) -> core::result::Result<Ns, FsError> {
        let window = window.cut_to(&self.kernel, self.inodes[inode].cache.pages());
        if self.wanted.is_some() {
            return self.fill_recorded(now, inode, window);
        }
        for page in window.start..window.start + window.pages {
            now = self.fill_page(now, inode, window, page)?;
        }
        self.inodes.next_in_window = None;
        Ok(now)
    }

    /// The same where waits are recorded.
    #[cold]
    fn fill_recorded(
        &mut self,
        mut now: Ns,
        inode: usize,
        window: Window,
    ) -> core::result::Result<Ns, FsError> {
        let (first, end) = self.wanted.take().unwrap_or_default();
        for page in window.start..window.start + window.pages {
            if first <= page && page < end {
                now = self.fill_page(now, inode, window, page)?;
            } else {
                let before = self.fs.mtd_mut().enter(now, Wait::ReadAhead);
                now = self.fill_page(now, inode, window, page)?;
                self.fs.mtd_mut().enter(now, before);
            }
        }
        self.inodes.next_in_window = None;
        Ok(now)
    }

    /// One page of a window.
    #[inline(always)]
    fn fill_page(
        &mut self,
        now: Ns,
        inode: usize,
        window: Window,
        page: u32,
    ) -> core::result::Result<Ns, FsError> {
        let Inode { ino, ref cache, .. } = self.inodes[inode];
        if cache.contains(page) {
            return Ok(now);
        }
        let is_followed = page + 1 < window.start + window.pages;
        let next = (self.kernel.window_is_added_first && is_followed).then_some((inode, page + 1));
        self.inodes.next_in_window = next;
        self.inodes.add_page(inode, page);
        let begun = now + self.costs.page_add_ns;
        let read = self.fs.read_page(begun, ino, page, &mut self.inodes);
        self.cache_adds += 1 + std::mem::take(&mut self.inodes.added_besides);
        let now = match read {
            Ok(later) => later,
            Err(error) => {
                self.inodes[inode].cache.clear_uptodate(page);
                error.failed_at().ok_or(error)?
            }
        };
        let now = self.resched(now)?;
        if window.marker == Some(page) {
            self.inodes[inode].cache.set_marker(page);
        }
        Ok(now)
    }

    /// The call wants these pages of the window that is filled next; the others are read ahead.
    /// That matters only where waits are recorded.
    #[inline]
    pub(super) fn wants(&mut self, page: u32, pages: u32) {
        if self.fs.mtd().records_waits() {
            self.wanted = Some((page, page.saturating_add(pages)));
        }
    }
}
