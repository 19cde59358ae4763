//! Writing file data through the page cache.
//!
//! Mirrors fs/jffs2/file.c of Linux 6.1 (jffs2_write_begin, jffs2_write_end).

use super::layout::{Summary, RAW_INODE_BYTES};
use super::nodemgmt::Priority;
use super::Jffs2;
use crate::fs::{FsError, PageCache, PageWrite, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// The page whose end wraps to 0 in 32 bits; writes to it are refused.
pub(super) const LAST_PAGE: u32 = u32::MAX / PAGE_BYTES;
pub(super) const WRAPPED: &str = "the last page below 4 GiB of a file of JFFS2";

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_write_begin: a gap before the write becomes a hole node. The page is read even if it
    /// will be overwritten whole. Since 5.12 c->alloc_sem is held for that read, so that the
    /// collector does not read the page meanwhile.
    pub(super) fn begin_write(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let PageWrite { ino, page, from, cached, .. } = write;
        if page == LAST_PAGE {
            return Err(FsError::NotModelled(WRAPPED));
        }
        let start = page * PAGE_BYTES + from;
        let size = self.file(ino).size_bytes;
        let mut now = now;
        if start > size {
            let (bytes, summary) = (RAW_INODE_BYTES, Summary::Inode);
            let (_, later) = self.reserve_space(now, bytes, Priority::Normal, summary, pages)?;
            now = self.write_piece(later, ino, None, size..start, Some(ino), pages)?;
            now = self.complete_reservation(now)?;
        }
        now = self.lock_alloc(now, pages)?;
        if !cached {
            now = self.read_range(now, ino, (page * PAGE_BYTES, PAGE_BYTES), None)?;
        }
        self.unlock_alloc(now);
        Ok(now)
    }

    /// jffs2_write_end: writes the whole page if its end was written, else from a multiple of four.
    pub(super) fn end_write(
        &mut self,
        now: Ns,
        write: PageWrite,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let PageWrite { ino, page, from, to, .. } = write;
        let start = if to == PAGE_BYTES { 0 } else { from & !3 };
        let range = page * PAGE_BYTES + start..page * PAGE_BYTES + to;
        let end = range.end;
        self.write_range(now, ino, range, end, Some(ino), pages)
    }
}
