//! Bytes of one write that no [`Source`] generates: pieces, and recorded bytes (FILL of
//! docs/reference/operations.md).
//!
//! agent/base/data.c and python/flashbed/program/content.py make the same bytes.

use super::source::Source;

const PAGE_BYTES: u64 = 4096;
/// The seed of the stream that all pieces share.
const COMMON: Source = Source { seed: 0x636f_6d6d_6f6e, compressibility: 0 };

/// How a page's part of a write is generated; the rest is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceSizes {
    /// Bytes at its beginning that all pieces share.
    pub common: u32,
    /// Zeroes after them, or spread.
    pub zeroes: u32,
    /// Bytes after those that are unique to it.
    pub own: u32,
    /// If not 0, the zeroes stand in so many runs in front of parts of the others, and text is
    /// spread.
    pub runs: u32,
    /// How many of the bytes that are not zeroes, from the first on, have only so many bits each.
    pub text: u32,
    /// The bits of a byte of text: 1 to 8.
    pub bits: u32,
}

/// The bytes of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Generated page by page.
    Pieces {
        /// The offset of the write.
        offset: u64,
        /// The seed of each piece's unique bytes.
        seed: u64,
        /// The sizes of each page's piece.
        pieces: Vec<PieceSizes>,
    },
    /// Recorded bytes.
    Bytes {
        /// The offset of the write.
        offset: u64,
        /// All its bytes.
        bytes: Vec<u8>,
    },
}

impl Written {
    /// The bytes at an offset, which lie within the write.
    pub fn fill(&self, from: u64, buffer: &mut [u8]) {
        match self {
            Written::Bytes { offset, bytes } => {
                let at = (from - offset) as usize;
                buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
            }
            Written::Pieces { offset, seed, pieces } => {
                let (mut at, mut rest) = (from, buffer);
                while !rest.is_empty() {
                    let page = at / PAGE_BYTES;
                    let bytes = ((page + 1) * PAGE_BYTES - at).min(rest.len() as u64);
                    let (piece, after) = rest.split_at_mut(bytes as usize);
                    let sizes = pieces[(page - offset / PAGE_BYTES) as usize];
                    fill_piece((page * PAGE_BYTES).max(*offset), *seed, sizes, at, piece);
                    (at, rest) = (at + bytes, after);
                }
            }
        }
    }
}

/// Some bytes of a piece that stand together and are not zero.
struct Part {
    /// Where in the piece they begin.
    place: u64,
    /// The first of them, counted among all its common and own bytes.
    first: u64,
    /// The number behind the last.
    end: u64,
}

impl PieceSizes {
    fn parts(self) -> impl Iterator<Item = Part> {
        let [common, zeroes, own] = [self.common, self.zeroes, self.own].map(u64::from);
        let runs = u64::from(self.runs);
        let count = if runs == 0 { 2 } else { runs };
        (0..count).map(move |k| match (runs, k) {
            (0, 0) => Part { place: 0, first: 0, end: common },
            (0, _) => Part { place: common + zeroes, first: common, end: common + own },
            _ => {
                let (last, bytes) = (runs - 1, (common + own) / runs);
                let first = bytes * k;
                Part {
                    place: zeroes - zeroes / runs * (last - k) + first,
                    first,
                    end: if k < last { first + bytes } else { common + own },
                }
            }
        })
    }

    /// Whether a byte is text; they are counted among common and own ones.
    fn is_text(self, number: u64) -> bool {
        let [text, bytes] = [self.text, self.common + self.own].map(u64::from);
        let text_before = |number: u64| number * text / bytes;
        match self.runs {
            0 => number < text,
            _ => text_before(number + 1) > text_before(number),
        }
    }
}

/// Generates bytes from `at` on of a piece that begins at `start`.
fn fill_piece(start: u64, seed: u64, sizes: PieceSizes, at: u64, buffer: &mut [u8]) {
    let skipped = at - start;
    let stop = skipped + buffer.len() as u64;
    buffer.fill(0);
    for Part { place, first, end } in sizes.parts().take_while(|part| part.place < stop) {
        // From numbers of bytes to their places, as far as the buffer has them.
        let within =
            |number: u64| (place + number.clamp(first, end) - first).clamp(skipped, stop) - skipped;
        let [begin, shared, end] = [first, sizes.common.into(), end].map(|at| within(at) as usize);
        let number = first + skipped + begin as u64 - place;
        COMMON.fill(number, &mut buffer[begin..shared]);
        Source { seed, compressibility: 0 }.fill(at + shared as u64, &mut buffer[shared..end]);
        if sizes.text > 0 {
            let mask = u8::MAX >> (8 - sizes.bits);
            let text = (number..).zip(&mut buffer[begin..end]).filter(|&(n, _)| sizes.is_text(n));
            text.for_each(|(_, byte)| *byte &= mask);
        }
    }
}
