//! The short-op cache: chunks that were written in part and not yet to the flash.
//!
//! Mirrors "Short Operations Cache" of yaffs_guts.c (yaffs_grab_chunk_cache, yaffs_use_cache,
//! yaffs_flush_file_cache, yaffs_flush_whole_cache). Left out: locked entries, which exist only
//! within a call.
//!
//! Invariant: a chunk of a file is in the cache at most once.

use super::{Yaffs2, CACHES};
use crate::content::Contents;
use crate::fs::Result;
use crate::mtd::NandDriver;
use crate::units::Ns;

/// struct yaffs_cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// 0 for a free entry.
    pub object: u32,
    pub chunk: u32,
    last_use: u64,
    pub is_dirty: bool,
    pub bytes: u32,
    /// Its bytes; kept where the power can fail.
    pub contents: Option<Contents>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    entries: [Entry; CACHES],
    last_use: u64,
}

impl Cache {
    /// yaffs_find_chunk_cache.
    #[inline]
    pub fn find(&self, object: u32, chunk: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.object == object && entry.chunk == chunk)
    }

    pub fn entry(&mut self, index: usize) -> &mut Entry {
        &mut self.entries[index]
    }

    /// yaffs_use_cache.
    pub fn touch(&mut self, index: usize, is_write: bool) {
        self.last_use += 1;
        let entry = &mut self.entries[index];
        entry.last_use = self.last_use;
        entry.is_dirty |= is_write;
    }

    /// yaffs_obj_cache_dirty.
    pub fn is_dirty(&self, object: u32) -> bool {
        self.entries.iter().any(|entry| entry.object == object && entry.is_dirty)
    }

    /// Dirty entries, in use or not, as yaffs_get_n_free_chunks counts them.
    pub fn dirty(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_dirty).count()
    }

    /// yaffs_invalidate_whole_cache.
    pub fn forget_all(&mut self, object: u32) {
        for entry in self.entries.iter_mut().filter(|entry| entry.object == object) {
            entry.object = 0;
        }
    }

    fn free(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.object == 0)
    }

    fn oldest(&self) -> usize {
        (0..CACHES).min_by_key(|&index| self.entries[index].last_use).expect("there are entries")
    }

    fn lowest_dirty(&self, object: u32) -> Option<usize> {
        let dirty = |&index: &usize| {
            let entry = &self.entries[index];
            entry.object == object && entry.is_dirty
        };
        (0..CACHES).filter(dirty).min_by_key(|&index| self.entries[index].chunk)
    }

    fn first_dirty_object(&self) -> Option<u32> {
        let dirty = |entry: &&Entry| entry.object != 0 && entry.is_dirty;
        self.entries.iter().find(dirty).map(|entry| entry.object)
    }
}

impl<D: NandDriver> Yaffs2<D> {
    /// yaffs_grab_chunk_cache: a free entry, else the least recently used one if it is clean, else
    /// the first one free after that entry's file was flushed. Assigns it to the chunk.
    pub(super) fn grab_cache(
        &mut self,
        mut now: Ns,
        object: u32,
        chunk: u32,
    ) -> Result<(usize, Ns)> {
        let index = match self.cache.free() {
            Some(index) => index,
            None => {
                let oldest = self.cache.oldest();
                if self.cache.entries[oldest].is_dirty {
                    now = self.flush_file_cache(now, self.cache.entries[oldest].object)?;
                    self.cache.free().expect("the file's entries are free")
                } else {
                    oldest
                }
            }
        };
        self.cache.entries[index] = Entry { object, chunk, ..Entry::default() };
        Ok((index, now))
    }

    /// yaffs_flush_file_cache: writes the file's dirty chunks in order until there is no space for
    /// one.
    pub(super) fn flush_file_cache(&mut self, mut now: Ns, object: u32) -> Result<Ns> {
        while let Some(index) = self.cache.lowest_dirty(object) {
            let entry = self.cache.entries[index].clone();
            let (written, later) =
                self.write_data(now, object, entry.chunk, (entry.bytes, entry.contents), true)?;
            now = later;
            let entry = &mut self.cache.entries[index];
            (entry.object, entry.is_dirty) = (0, false);
            if !written {
                break;
            }
        }
        Ok(now)
    }

    /// yaffs_flush_whole_cache.
    pub(super) fn flush_whole_cache(&mut self, mut now: Ns) -> Result<Ns> {
        while let Some(object) = self.cache.first_dirty_object() {
            now = self.flush_file_cache(now, object)?;
        }
        Ok(now)
    }
}
