//! 256 KiB of a file's content: which part of which write each byte is.
//!
//! A file that is written page by page in any order has as many extents as pages, so extents are
//! stored compactly. If each page of a region has its own seed, which is small because writes are
//! counted, and the extents differ in nothing else, the region stores only the seeds.
//!
//! Invariant: pieces are in order, not empty and disjoint. Two adjacent pieces that continue the
//! same source are merged, except those stored as pages.

use super::source::Source;
use crate::collections::search::partition_point_near;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u64,
    pub end: u64,
    pub source: Source,
    /// Byte `p` of the file is byte `p + shift` of the source; not 0 for writes through a
    /// descriptor opened with `append`.
    pub shift: u64,
}

impl Extent {
    fn same_bytes(&self, other: &Extent) -> bool {
        self.source == other.source && self.shift == other.shift
    }

    fn continues_in(&self, next: &Extent) -> bool {
        self.end == next.start && self.same_bytes(next)
    }

    pub fn clipped(self, start: u64, end: u64) -> Extent {
        Extent { start: self.start.max(start), end: self.end.min(end), ..self }
    }
}

const REGION_BITS: u32 = 18;
pub(super) const REGION_BYTES: u64 = 1 << REGION_BITS;

/// The part of an extent within a region, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    seed: u64,
    /// From the lowest bit on: first and last byte from the start of the region, the index into the
    /// region's `shifts`, whether it has a shift, and the compressibility.
    packed: u64,
}

impl Piece {
    fn new(
        seed: u64,
        (first, last): (u64, u64),
        shift: Option<usize>,
        compressibility: u8,
    ) -> Piece {
        let is_shifted = u64::from(shift.is_some()) << (3 * REGION_BITS);
        let shift = (shift.unwrap_or(0) as u64) << (2 * REGION_BITS);
        let compressibility = u64::from(compressibility) << 56;
        let packed = first | last << REGION_BITS | shift | is_shifted | compressibility;
        Piece { seed, packed }
    }

    const fn first(self) -> u64 {
        self.packed % REGION_BYTES
    }

    const fn last(self) -> u64 {
        (self.packed >> REGION_BITS) % REGION_BYTES
    }

    const fn holds(self, position: u64) -> bool {
        self.first() <= position && position <= self.last()
    }

    fn shift(self) -> Option<usize> {
        let shift = (self.packed >> (2 * REGION_BITS)) % REGION_BYTES;
        (self.packed >> (3 * REGION_BITS) & 1 == 1).then_some(shift as usize)
    }

    const fn source(self) -> Source {
        Source { seed: self.seed, compressibility: (self.packed >> 56) as u8 }
    }
}

const PAGE_BITS: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// From this many pieces on they are converted to pages if possible, which take a quarter of the
/// memory.
const PACKED_LEAST: usize = 4;

/// The content of 256 KiB of a file.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub start: u64,
    extents: Extents,
}

/// The extents, in order.
#[derive(Clone, Debug)]
enum Extents {
    /// The seed of each page from the region's first on, without shifts.
    Pages { seeds: Vec<u32>, compressibility: u8 },
    /// Arbitrary pieces, and their non-zero shifts in the order of the pieces.
    Pieces { pieces: Vec<Piece>, shifts: Vec<u64> },
}

impl Region {
    pub const fn new(start: u64) -> Region {
        Region { start, extents: Extents::Pieces { pieces: Vec::new(), shifts: Vec::new() } }
    }

    /// The number of pieces or pages.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.extents {
            Extents::Pages { seeds, .. } => seeds.len(),
            Extents::Pieces { pieces, .. } => pieces.len(),
        }
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<Extent> {
        match &self.extents {
            Extents::Pages { seeds, compressibility } => {
                let start = self.start + at as u64 * PAGE_BYTES;
                let seed = u64::from(*seeds.get(at)?);
                let source = Source { seed, compressibility: *compressibility };
                Some(Extent { start, end: start + PAGE_BYTES, source, shift: 0 })
            }
            Extents::Pieces { pieces, shifts } => {
                let piece = pieces.get(at)?;
                Some(Extent {
                    start: self.start + piece.first(),
                    end: self.start + piece.last() + 1,
                    source: piece.source(),
                    shift: piece.shift().map_or(0, |shift| shifts[shift]),
                })
            }
        }
    }

    /// The extents from one on. Two adjacent pages may continue the same source.
    pub fn extents_from(&self, first: usize) -> impl Iterator<Item = Extent> + '_ {
        (first..self.len()).map_while(|at| self.get(at))
    }

    /// The index of the first extent that ends after a position, which may lie before the region.
    #[inline]
    pub fn first_after(&self, position: u64) -> usize {
        let position = position.saturating_sub(self.start);
        let pieces = match &self.extents {
            Extents::Pages { seeds, .. } => {
                return seeds.len().min((position >> PAGE_BITS) as usize)
            }
            Extents::Pieces { pieces, .. } => pieces,
        };
        // If all pieces have one size, as is usual, the guess is right.
        let guess = ((position * pieces.len() as u64) >> REGION_BITS) as usize;
        if pieces.get(guess).is_some_and(|piece| piece.holds(position)) {
            return guess;
        }
        let ends_before = |piece: &Piece| piece.last() < position;
        partition_point_near(pieces, (position, REGION_BYTES), ends_before)
    }

    /// The seed, if an extent can be stored as pages.
    #[inline]
    fn page_seed(&self, extent: &Extent) -> Option<u32> {
        let is_whole = (extent.start | extent.end) % PAGE_BYTES == 0 && extent.shift == 0;
        u32::try_from(extent.source.seed).ok().filter(|_| is_whole)
    }

    /// Writes `new` into a region that is stored as pages and can stay so; returns whether it did.
    #[inline]
    fn write_pages(&mut self, new: &Extent) -> bool {
        let seed = self.page_seed(new);
        let Extents::Pages { seeds, compressibility } = &mut self.extents else { return false };
        let page = |position: u64| ((position - self.start) >> PAGE_BITS) as usize;
        let (first, end) = (page(new.start), page(new.end));
        let Some(seed) = seed.filter(|_| first <= seeds.len()) else { return false };
        if new.source.compressibility != *compressibility {
            return false;
        }
        if end > seeds.len() {
            seeds.resize(end, seed);
        }
        seeds[first..end].fill(seed);
        true
    }

    /// Converts many pieces to pages, if possible.
    fn pack(&mut self) {
        let Extents::Pieces { pieces, .. } = &self.extents else { return };
        if pieces.len() < PACKED_LEAST || !pieces.len().is_power_of_two() {
            return;
        }
        let Source { compressibility, .. } = pieces[0].source();
        let pages = Extents::Pages { seeds: Vec::new(), compressibility };
        let mut packed = Region { start: self.start, extents: pages };
        if self.extents_from(0).all(|extent| packed.write_pages(&extent)) {
            *self = packed;
        }
    }

    fn push(&mut self, extent: Extent) {
        let bytes = (extent.start - self.start, extent.end - 1 - self.start);
        let Extents::Pieces { pieces, shifts } = &mut self.extents else {
            panic!("pages are written")
        };
        let shift = (extent.shift != 0).then_some(shifts.len());
        let Source { seed, compressibility } = extent.source;
        pieces.push(Piece::new(seed, bytes, shift, compressibility));
        shifts.extend(shift.is_some().then_some(extent.shift));
    }

    fn pop(&mut self) {
        let Extents::Pieces { pieces, shifts } = &mut self.extents else {
            panic!("pages are written")
        };
        if pieces.pop().is_some_and(|piece| piece.shift().is_some()) {
            shifts.pop();
        }
    }

    /// Writes `new` into the region.
    #[inline]
    pub fn write(&mut self, new: Extent) {
        if !self.write_pages(&new) {
            self.write_pieces(new);
        }
    }

    /// The common cases first: the same bytes are already there, or are appended after all others,
    /// or replace exactly one piece.
    fn write_pieces(&mut self, new: Extent) {
        let at = self.first_after(new.start);
        let Some(there) = self.get(at) else {
            return self.append(at, new);
        };
        if there.start <= new.start && there.end >= new.end && there.same_bytes(&new) {
            return;
        }
        let replaces = (there.start, there.end) == (new.start, new.end);
        let is_plain = (there.shift, new.shift) == (0, 0);
        let before = at.checked_sub(1).and_then(|before| self.get(before));
        let stands_alone = !before.is_some_and(|before| before.continues_in(&new))
            && !self.get(at + 1).is_some_and(|behind| new.continues_in(&behind));
        match &mut self.extents {
            Extents::Pieces { pieces, .. } if replaces && is_plain && stands_alone => {
                let Source { seed, compressibility } = new.source;
                let bytes = (pieces[at].first(), pieces[at].last());
                pieces[at] = Piece::new(seed, bytes, None, compressibility);
            }
            _ => self.replace(new.start, new.end, Some(new)),
        }
    }

    /// Appends bytes after all `count` pieces.
    fn append(&mut self, count: usize, new: Extent) {
        if matches!(self.extents, Extents::Pages { .. }) {
            return self.replace(new.start, new.end, Some(new));
        }
        let before = count.checked_sub(1).and_then(|last| self.get(last));
        let before = before.filter(|before| before.continues_in(&new));
        if before.is_some() {
            self.pop();
        }
        self.push(Extent { start: before.map_or(new.start, |before| before.start), ..new });
        self.pack();
    }

    /// Replaces what covers `start..end` by `new`.
    pub fn replace(&mut self, start: u64, end: u64, new: Option<Extent>) {
        let old = std::mem::replace(self, Region::new(self.start));
        let before = old.extents_from(0).map(|extent| extent.clipped(0, start));
        let after = old.extents_from(0).map(|extent| extent.clipped(end, u64::MAX));
        for extent in joined(before.chain(new).chain(after)) {
            self.push(extent);
        }
        self.pack();
    }
}

/// Drops empty extents, and merges two that continue the same source.
pub(super) fn joined(extents: impl Iterator<Item = Extent>) -> impl Iterator<Item = Extent> {
    let mut extents = extents.filter(|extent| extent.start < extent.end).peekable();
    core::iter::from_fn(move || {
        let mut extent = extents.next()?;
        while let Some(next) = extents.next_if(|next| extent.continues_in(next)) {
            extent.end = next.end;
        }
        Some(extent)
    })
}
