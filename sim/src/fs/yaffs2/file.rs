//! Files: reading, writing and truncating.
//!
//! Mirrors "File read/write" and "File resizing" (yaffs_file_rd, yaffs_do_file_wr,
//! yaffs_wr_data_obj, yaffs_resize_file, yaffs_flush_file) of yaffs_guts.c, yaffs2_handle_hole of
//! yaffs_yaffs2.c, and kernel/yaffs2/file.c, which reads a page before it is written and keeps 20
//! chunks free. Every write goes through the short-op cache, even of whole chunks, as in the core
//! of July 2013 with the Linux glue. Mounted with `no-cache`, each goes to the flash at once.
//!
//! Invariant: a file has no chunks beyond its size.

use super::nand::{Payload, Tags};
use super::{Yaffs2, ALWAYS_FREE_CHUNKS};
use crate::causes::{Cause, Causes};
use crate::content::Contents;
use crate::fs::{FsError, PageCache, PageWrite, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// YAFFS_SMALL_HOLE_THRESHOLD, in chunks.
const SMALL_HOLE_CHUNKS: u32 = 4;

impl<D: NandDriver> Yaffs2<D> {
    fn chunk_bytes(&self) -> u64 {
        u64::from(self.chunk_bytes)
    }

    /// The chunk at an offset, counted from 1.
    fn chunk_at(&self, offset: u64) -> u32 {
        u32::try_from(offset / self.chunk_bytes()).expect("a file within yaffs_max_file_size") + 1
    }

    /// yaffs_rd_data_obj: a hole is not read from flash.
    #[inline]
    fn read_data(&mut self, now: Ns, object: u32, chunk: u32) -> Result<Ns> {
        match self.object(object).tree.get(chunk) {
            0 => Ok(now),
            place => Ok(self.read_chunk(now, place)?.1),
        }
    }

    /// yaffs_put_chunk_in_file outside of a scan.
    pub(super) fn put_chunk_in_file(&mut self, object: u32, chunk: u32, place: u32) {
        let file = self.object_mut(object);
        let before = file.tree.tnodes();
        file.data_chunks += u32::from(place != 0 && file.tree.get(chunk) == 0);
        if place != 0 || file.tree.get(chunk) == 0 {
            file.tree.set(chunk, place);
        }
        let grown = file.tree.tnodes() - before;
        self.tnodes += grown;
    }

    /// yaffs_wr_data_obj: returns whether there was space.
    pub(super) fn write_data(
        &mut self,
        now: Ns,
        object: u32,
        chunk: u32,
        (bytes, contents): (u32, Option<Contents>),
        from_reserve: bool,
    ) -> Result<(bool, Ns)> {
        let now = self.check_gc(now, false)?;
        let old = self.object(object).tree.get(chunk);
        if old == 0 {
            self.put_chunk_in_file(object, chunk, 0);
        }
        let mut causes = Causes::of(Cause::Data, bytes);
        causes.add(Causes::of(Cause::Padding, self.mtd.page_bytes() - bytes));
        let what = (Tags { object, chunk, bytes }, Payload::Data(contents));
        let (new, now) = self.write_new_chunk(now, what, causes, from_reserve)?;
        let Some(new) = new else { return Ok((false, now)) };
        self.put_chunk_in_file(object, chunk, new);
        Ok((true, self.delete_chunk(now, old)?))
    }

    /// yaffs_file_rd of a page: whole chunks, from the short-op cache where it has them.
    #[inline]
    pub(super) fn file_read(&mut self, mut now: Ns, object: u32, page: u32) -> Result<Ns> {
        if self.has_inband_tags() {
            return self.file_read_in_parts(now, object, page);
        }
        let per_page = PAGE_BYTES / self.mtd.page_bytes();
        for chunk in page * per_page + 1..(page + 1) * per_page + 1 {
            match self.cache.find(object, chunk) {
                Some(index) => self.cache.touch(index, false),
                None => now = self.read_data(now, object, chunk)?,
            }
        }
        Ok(now)
    }

    /// The same if chunks are no part of a page: each goes through the short-op cache, also one
    /// that is not there.
    #[inline(never)]
    fn file_read_in_parts(&mut self, mut now: Ns, object: u32, page: u32) -> Result<Ns> {
        let start = u64::from(page) * u64::from(PAGE_BYTES);
        for chunk in self.chunk_at(start)..=self.chunk_at(start + u64::from(PAGE_BYTES) - 1) {
            let index = match self.cache.find(object, chunk) {
                Some(index) => index,
                None if self.has_cache => {
                    let (index, later) = self.grab_cache(now, object, chunk)?;
                    now = self.read_data(later, object, chunk)?;
                    let place = self.object(object).tree.get(chunk);
                    let held = self.remembers.then(|| self.stored_contents(place));
                    self.cache.entry(index).contents = held;
                    index
                }
                None => {
                    now = self.read_data(now, object, chunk)?;
                    continue;
                }
            };
            self.cache.touch(index, false);
        }
        Ok(now)
    }

    /// write_begin of kernel/yaffs2/file.c.
    pub(super) fn begin_write(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let now = self.lock(now)?;
        self.unlock(now);
        if self.reported_free_chunks() <= ALWAYS_FREE_CHUNKS {
            pages.keep_page(write.ino, write.page, write.cached);
            return Err(FsError::NoSpace(now));
        }
        if write.cached {
            return Ok(now);
        }
        self.locked(now, |fs, now| fs.file_read(now, write.ino.0, write.page))
    }

    /// yaffs_wr_file.
    pub(super) fn end_write(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &dyn PageCache,
    ) -> Result<Ns> {
        let start = u64::from(write.page) * u64::from(PAGE_BYTES);
        let (from, to) = (start + u64::from(write.from), start + u64::from(write.to));
        self.is_dirty = true;
        let now = self.handle_hole(now, write.ino.0, from)?;
        let contents = self.remembers.then(|| pages.contents(write.ino));
        let (done, now) = self.do_file_write(now, write.ino.0, (from, to), contents)?;
        if done < to - from {
            return Err(FsError::NoSpace(now));
        }
        Ok(now)
    }

    /// yaffs_do_file_wr: returns how many bytes there was space for. Without contents the bytes are
    /// zero.
    fn do_file_write(
        &mut self,
        mut now: Ns,
        object: u32,
        (from, to): (u64, u64),
        contents: Option<&Contents>,
    ) -> Result<(u64, Ns)> {
        let whole = self.chunk_bytes();
        let mut at = from;
        while at < to {
            let chunk = self.chunk_at(at);
            let start = u64::from(chunk - 1) * whole;
            let end = to.min(start + whole);
            let size = self.object(object).size_bytes;
            // Bytes of the chunk after the written part are kept.
            let used =
                if end < start + whole { (size.min(start + whole)).max(end) } else { end } - start;
            let held = contents.map(|contents| {
                let mut held = Contents::new();
                held.copy_from(contents, start, start + used);
                held
            });
            let held =
                held.or_else(|| self.remembers.then(|| self.with_zeros(object, chunk, at, end)));
            let (written, later) = self.write_part(now, object, chunk, (used as u32, held))?;
            now = later;
            if !written {
                break;
            }
            at = end;
        }
        let file = self.object_mut(object);
        file.size_bytes = file.size_bytes.max(at);
        file.is_dirty = true;
        Ok((at - from, now))
    }

    /// A chunk's content after its bytes `from..to` become zero.
    fn with_zeros(&mut self, object: u32, chunk: u32, from: u64, to: u64) -> Contents {
        let cached = self.cache.find(object, chunk);
        let mut contents = match cached {
            Some(index) => self.cache.entry(index).contents.clone().unwrap_or_default(),
            None => self.stored_contents(self.object(object).tree.get(chunk)),
        };
        contents.clear(from, to);
        contents
    }

    /// Writes into the short-op cache, or the flash. The chunk is read first.
    fn write_part(
        &mut self,
        mut now: Ns,
        object: u32,
        chunk: u32,
        (bytes, held): (u32, Option<Contents>),
    ) -> Result<(bool, Ns)> {
        if !self.has_cache {
            let now = self.read_data(now, object, chunk)?;
            return self.write_data(now, object, chunk, (bytes, held), false);
        }
        let room = self.has_room(1);
        let index = match self.cache.find(object, chunk) {
            Some(index) if !self.cache.entry(index).is_dirty && !room => return Ok((false, now)),
            Some(index) => index,
            None if !room => return Ok((false, now)),
            None => {
                let (index, later) = self.grab_cache(now, object, chunk)?;
                now = self.read_data(later, object, chunk)?;
                index
            }
        };
        self.cache.touch(index, true);
        let entry = self.cache.entry(index);
        (entry.bytes, entry.contents) = (bytes, held);
        Ok((true, now))
    }

    /// yaffs2_handle_hole: writes a small hole as zeros, and records a larger one in a header.
    fn handle_hole(&mut self, mut now: Ns, object: u32, new_bytes: u64) -> Result<Ns> {
        let old_bytes = self.object(object).size_bytes;
        if new_bytes <= old_bytes {
            return Ok(now);
        }
        let small = u64::from(SMALL_HOLE_CHUNKS) * self.chunk_bytes();
        let is_small =
            new_bytes - old_bytes < small && self.has_room(i64::from(SMALL_HOLE_CHUNKS) + 1);
        if is_small {
            let mut at = old_bytes;
            while at < new_bytes {
                let end = new_bytes.min(at + self.chunk_bytes());
                let (done, later) = self.do_file_write(now, object, (at, end), None)?;
                now = later;
                if done < end - at {
                    break;
                }
                at = end;
            }
            if at == new_bytes {
                return Ok(now);
            }
            now = self.resize_down(now, object, old_bytes)?;
        }
        if self.object(object).is_named() {
            now = self.update_header(now, object, None, true, 0)?.1;
        }
        Ok(now)
    }

    /// yfs_setattr: the resize and the attributes each write a header.
    pub(super) fn set_size(&mut self, now: Ns, object: u32, new_bytes: u64) -> Result<Ns> {
        let now = self.resize(now, object, new_bytes)?;
        match self.update_header(now, object, None, false, 0)? {
            (true, now) => Ok(now),
            (false, now) => Err(FsError::NoSpace(now)),
        }
    }

    /// yaffs_resize_file.
    pub(super) fn resize(&mut self, now: Ns, object: u32, new_bytes: u64) -> Result<Ns> {
        let now = self.flush_file_cache(now, object)?;
        self.cache.forget_all(object);
        let mut now = self.check_gc(now, false)?;
        let old_bytes = self.object(object).size_bytes;
        if new_bytes == old_bytes {
            return Ok(now);
        }
        if new_bytes > old_bytes {
            now = self.handle_hole(now, object, new_bytes)?;
            self.object_mut(object).size_bytes = new_bytes;
        } else {
            now = self.resize_down(now, object, new_bytes)?;
        }
        let file = self.object(object);
        if file.is_named() && !file.is_shadowed {
            now = self.update_header(now, object, None, false, 0)?.1;
        }
        Ok(now)
    }

    /// yaffs_resize_file_down: deletes the chunks beyond the end, the last first, and writes the
    /// chunk at the end again.
    fn resize_down(&mut self, mut now: Ns, object: u32, new_bytes: u64) -> Result<Ns> {
        let whole = self.chunk_bytes();
        let old_bytes = self.object(object).size_bytes;
        let last = self.chunk_at(old_bytes.saturating_sub(1));
        let first = self.chunk_at(new_bytes + whole - 1);
        for chunk in self.object(object).tree.there_from(first, last) {
            let file = self.object_mut(object);
            let place = file.tree.take(chunk);
            if place != 0 {
                file.data_chunks -= 1;
                now = self.delete_chunk(now + self.mtd.costs().yaffs2_delete_ns, place)?;
            }
        }
        let used = new_bytes % whole;
        if used > 0 {
            let chunk = self.chunk_at(new_bytes);
            now = self.read_data(now, object, chunk)?;
            let place = self.object(object).tree.get(chunk);
            let contents = self.remembers.then(|| {
                let mut contents = self.stored_contents(place);
                contents.clear(new_bytes, u64::MAX);
                contents
            });
            now = self.write_data(now, object, chunk, (used as u32, contents), true)?.1;
        }
        let file = self.object_mut(object);
        file.size_bytes = new_bytes;
        let before = file.tree.tnodes();
        file.tree.prune();
        let gone = before - file.tree.tnodes();
        self.tnodes -= gone;
        Ok(now)
    }

    /// The content of a chunk on flash, as bytes of its file.
    pub(super) fn stored_contents(&self, place: u32) -> Contents {
        self.on_flash.contents.get(&place).cloned().unwrap_or_default()
    }

    /// yfs_flush_obj of kernel/yaffs2/sync.c (yaffs_flush_file): writes the file's cached chunks,
    /// and its header unless only data is wanted.
    pub(super) fn flush_file(&mut self, now: Ns, object: u32, data_only: bool) -> Result<Ns> {
        if !self.object(object).is_dirty {
            return Ok(now);
        }
        let mut now = self.flush_file_cache(now, object)?;
        let mut room = true;
        if !data_only {
            let (written, later) = self.update_header(now, object, None, false, 0)?;
            (room, now) = (written, later);
        }
        if !room || self.cache.is_dirty(object) {
            return Err(FsError::NoSpace(now));
        }
        Ok(now)
    }
}
