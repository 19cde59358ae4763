//! Where a file's blocks are: their sizes, added up.
//!
//! Mirrors fs/squashfs/file.c of Linux 6.1 (read_blocklist, fill_meta_index, locate_meta_index,
//! empty_meta_index, read_indexes). Long lists have slots of known places, shared by all files.

use super::format::{u32_at, Place, Size, What};
use super::{Below, Inode, Io, Squashfs, CACHED_BLOCKS, METADATA_BYTES};
use crate::errno::Result;
use crate::fs::PAGE_BYTES;
use crate::units::Ns;

/// SQUASHFS_META_SLOTS, SQUASHFS_META_ENTRIES, SQUASHFS_META_INDEXES.
const SLOTS: usize = 8;
const ENTRIES: u64 = 127;
const SIZES: u64 = METADATA_BYTES as u64 / SIZE_BYTES;
const SIZE_BYTES: u64 = 4;

/// struct meta_index: places in the list of one file, from the `first`th on.
#[derive(Clone, Debug, Default)]
struct Slot {
    inode: u32,
    first: u64,
    /// The place in the list, and in the data.
    entries: Vec<(Place, u64)>,
}

/// The slots (`msblk->meta_index`).
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    slots: Vec<Slot>,
    next: usize,
}

impl Indexes {
    /// locate_meta_index: the last slot that fits best.
    fn locate(&self, inode: u32, mut first: u64, last: u64) -> Option<usize> {
        let mut found = None;
        for (number, slot) in self.slots.iter().enumerate() {
            let is_known = slot.inode == inode && !slot.entries.is_empty();
            if is_known && slot.first >= first && slot.first <= last {
                found = Some(number);
                first = slot.first;
            }
        }
        found
    }

    /// empty_meta_index.
    fn take(&mut self, inode: u32, first: u64) -> usize {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS];
        }
        let number = self.next;
        self.next = (number + 1) % SLOTS;
        self.slots[number] = Slot { inode, first, entries: Vec::new() };
        number
    }
}

impl Squashfs {
    /// read_blocklist: the size of a file's block, and where it is.
    pub(super) fn read_block_list(
        &mut self,
        io: &mut Io<'_>,
        inode: u32,
        block: u64,
    ) -> Result<(Size, u64)> {
        let (known, mut list, mut data) = self.fill_index(io, inode, block)?;
        if known < block {
            data = data.saturating_add(self.add_sizes(io, block - known, &mut list)?);
        }
        let raw = self.read_metadata(io, &mut list, SIZE_BYTES as u32)?;
        match Size::of(u32_at(&raw, 0)) {
            Some(size) => Ok((size, data)),
            None => io.broken(),
        }
    }

    /// fill_meta_index: the nearest block whose place is known, and that place.
    fn fill_index(
        &mut self,
        io: &mut Io<'_>,
        number: u32,
        block: u64,
    ) -> Result<(u64, Place, u64)> {
        let Some(&Inode { what: What::File { bytes, start, list, .. }, .. }) =
            self.inodes.get(&number)
        else {
            return io.broken();
        };
        let blocks = bytes >> self.stored.superblock.block_log;
        let skip = (blocks / ((ENTRIES + 1) * SIZES) + 1).min(CACHED_BLOCKS as u64 - 1);
        let index = block / (SIZES * skip);
        let (mut at, mut list, mut data) = (0, list, start);
        while at < index {
            let slot = match self.indexes.locate(number, at + 1, index) {
                None => self.indexes.take(number, at + 1),
                Some(slot) => {
                    let Slot { first, ref entries, .. } = self.indexes.slots[slot];
                    at = index.min(first + entries.len() as u64 - 1);
                    (list, data) = entries[(at - first) as usize];
                    slot
                }
            };
            let Slot { first, ref entries, .. } = self.indexes.slots[slot];
            let from = first + entries.len() as u64;
            for _ in from..(index + 1).min(first + ENTRIES) {
                data = data.saturating_add(self.add_sizes(io, skip * SIZES, &mut list)?);
                self.indexes.slots[slot].entries.push((list, data));
                at += 1;
            }
        }
        Ok((at * SIZES * skip, list, data))
    }

    /// The blocks of a file, each with its position, for a reader that does not count requests.
    /// Fails where there are more than `most`.
    pub fn blocks(
        &mut self,
        below: &mut dyn Below,
        number: u32,
        most: usize,
    ) -> Result<Vec<(Size, u64)>> {
        let mut io = Io { below, now: Ns::ZERO, prices: self.prices };
        let Some(&Inode { what: What::File { bytes, start, mut list, fragment }, .. }) =
            self.inodes.get(&number)
        else {
            return io.broken();
        };
        let block_bytes = self.block_bytes();
        let count = match fragment {
            Some(_) => bytes / block_bytes,
            None => bytes.div_ceil(block_bytes),
        };
        if count > most as u64 {
            return io.broken();
        }
        let mut at = start;
        let mut found = Vec::new();
        for _ in 0..count {
            let raw = self.read_metadata(&mut io, &mut list, SIZE_BYTES as u32)?;
            let Some(size) = Size::of(u32_at(&raw, 0)) else { return io.broken() };
            found.push((size, at));
            at = at.saturating_add(size.stored().into());
        }
        Ok(found)
    }

    /// read_indexes: what the next blocks of a list take.
    fn add_sizes(&mut self, io: &mut Io<'_>, blocks: u64, list: &mut Place) -> Result<u64> {
        let at_once = u64::from(PAGE_BYTES) / SIZE_BYTES;
        let (mut left, mut sum) = (blocks, 0);
        while left > 0 {
            let count = left.min(at_once);
            let raw = self.read_metadata(io, list, (count * SIZE_BYTES) as u32)?;
            for size in raw.chunks_exact(SIZE_BYTES as usize) {
                match Size::of(u32_at(size, 0)) {
                    Some(size) => sum += u64::from(size.stored()),
                    None => return io.broken(),
                }
            }
            left -= count;
        }
        Ok(sum)
    }
}
