//! Copies within the kernel: copy_file_range and sendfile.
//!
//! Mirrors generic_copy_file_range (fs/read_write.c) and splice_direct_to_actor (fs/splice.c) of
//! Linux 6.1. None of the file systems implements the copy itself, so pages go through a pipe of 16
//! pages: read, written, and so on. A read that begins within a page fills the pipe with fewer
//! bytes than requested, but has already looked up the page after them.

use super::{Bytes, Vfs};
use crate::content::{Contents, Source};
use crate::errno::Outcome;
use crate::errno::{EBADF, EFBIG, EINVAL, EISDIR, EOVERFLOW, EXDEV};
use crate::fs::{FlashFs, PAGE_BYTES};
use crate::units::Ns;

/// PIPE_DEF_BUFFERS pages.
const PIPE_BYTES: u64 = 16 * PAGE_BYTES as u64;

impl<S: FlashFs> Vfs<S> {
    /// copy_file_range.
    pub fn copy(
        &mut self,
        now: Ns,
        (from, from_offset): (usize, u64),
        (to, to_offset): (usize, u64),
        length: u64,
    ) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        let left = match self.copy_checks((from, from_offset), (to, to_offset), length) {
            Ok(bytes) => bytes,
            Err(errno) => return Ok((errno, now)),
        };
        let mut done = 0;
        while done < left {
            let at = from_offset + done;
            let (read, later) = self.fill_pipe(now, from, at, left - done)?;
            now = later;
            if read <= 0 {
                return Ok((if done > 0 { done as i64 } else { read }, now));
            }
            let (written, later) = self.empty_pipe(now, from, at, (to, to_offset + done), read)?;
            now = later;
            if written <= 0 {
                return Ok((if done > 0 { done as i64 } else { written }, now));
            }
            done += written as u64;
            if written < read {
                break;
            }
        }
        Ok((done as i64, now))
    }

    /// generic_copy_file_checks: returns how many bytes to copy.
    fn copy_checks(
        &self,
        (from, from_offset): (usize, u64),
        (to, to_offset): (usize, u64),
        length: u64,
    ) -> Result<u64, i64> {
        let (Some(source), Some(target)) = (&self.slots[from], &self.slots[to]) else {
            return Err(EBADF);
        };
        if [source, target].iter().any(|open| self.inodes[open.inode].is_directory) {
            return Err(EISDIR);
        }
        if !source.flags.read || !target.flags.write || target.flags.append {
            return Err(EBADF);
        }
        if self.inodes[source.inode].is_lower() {
            return Err(EXDEV);
        }
        let size = self.inodes[source.inode].size_bytes;
        let max = self.fs.max_file_bytes();
        if to_offset >= max {
            return Err(EFBIG);
        }
        let bytes = length.min(size.saturating_sub(from_offset)).min(max - to_offset);
        let overlaps = to_offset + bytes > from_offset && to_offset < from_offset + bytes;
        if source.inode == target.inode && overlaps {
            return Err(EINVAL);
        }
        Ok(bytes)
    }

    /// sendfile to a reader that takes everything.
    pub fn send(&mut self, now: Ns, slot: usize, offset: u64, length: u64) -> Outcome {
        let mut now = now + self.costs.syscall_ns;
        let Some(open) = &self.slots[slot] else { return Ok((EBADF, now)) };
        if !open.flags.read {
            return Ok((EBADF, now));
        }
        let max = self.fs.max_file_bytes();
        if offset >= max {
            return Ok((EOVERFLOW, now));
        }
        if self.inodes[open.inode].is_directory {
            return Ok((EINVAL, now));
        }
        let (left, mut done) = (length.min(max - offset), 0);
        while done < left {
            let (read, later) = self.fill_pipe(now, slot, offset + done, left - done)?;
            now = later;
            if read <= 0 {
                return Ok((if done > 0 { done as i64 } else { read }, now));
            }
            done += read as u64;
        }
        Ok((done as i64, now))
    }

    /// generic_file_splice_read into an empty pipe.
    fn fill_pipe(&mut self, now: Ns, slot: usize, offset: u64, left: u64) -> Outcome {
        let (read, now) = self.read_pages(now, slot, (offset, left.min(PIPE_BYTES)), 0)?;
        let room = PIPE_BYTES - offset % u64::from(PAGE_BYTES);
        Ok((read.min(room as i64), now))
    }

    /// iter_file_splice_write: writes `bytes` that were read at `offset`.
    fn empty_pipe(
        &mut self,
        now: Ns,
        from: usize,
        offset: u64,
        (to, to_offset): (usize, u64),
        bytes: i64,
    ) -> Outcome {
        let index = self.slots[from].as_ref().map_or(0, |open| open.inode);
        let mut copied = Contents::new();
        let range = (offset, offset + bytes as u64);
        copied.move_from(&self.inodes[index].contents, range, to_offset);
        self.copied = Some(copied);
        let source = Source::of_write(0); // replaced by `copied`
        let written = self.write_pages_of(now, to, (to_offset, bytes as u64), source);
        self.copied = None;
        written
    }

    /// Applies a write to a file's content.
    #[inline]
    pub(super) fn put_bytes(&mut self, index: usize, bytes: Bytes) {
        let Bytes { at, to, source, offset } = bytes;
        if source.is_written() {
            return self.put_recorded(index, bytes);
        }
        self.inodes[index].contents.write_from(at, to, source, offset);
    }

    /// The same for bytes that no source generates: recorded or copied ones.
    #[cold]
    fn put_recorded(&mut self, index: usize, bytes: Bytes) {
        let Bytes { at, to, source, offset } = bytes;
        let contents = &mut self.inodes[index].contents;
        if let Some(copied) = &self.copied {
            return contents.copy_from(copied, at, to);
        }
        if let Some(written) = &self.writing {
            contents.keep(source, written);
        }
        contents.write_from(at, to, source, offset);
    }
}
