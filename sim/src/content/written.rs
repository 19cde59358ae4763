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
    /// Zeroes after them.
    pub zeroes: u32,
    /// Bytes after those that are unique to it.
    pub own: u32,
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

/// Generates bytes from `at` on of a piece that begins at `start`.
fn fill_piece(start: u64, seed: u64, sizes: PieceSizes, at: u64, buffer: &mut [u8]) {
    let [common, zeroes, own, text] =
        [sizes.common, sizes.zeroes, sizes.own, sizes.text].map(u64::from);
    let skipped = at - start;
    let before = |end: u64| (end.saturating_sub(skipped) as usize).min(buffer.len());
    let [common_end, own_begin, end] = [common, common + zeroes, common + zeroes + own].map(before);
    let (text_in_common, text_in_own) =
        (before(text.min(common)), before(common + zeroes + text.saturating_sub(common)));
    COMMON.fill(skipped, &mut buffer[..common_end]);
    buffer[common_end..own_begin].fill(0);
    Source { seed, compressibility: 0 }.fill(at + own_begin as u64, &mut buffer[own_begin..end]);
    let mask = u8::MAX >> (8 - sizes.bits);
    for range in [0..text_in_common, own_begin..text_in_own] {
        buffer[range].iter_mut().for_each(|byte| *byte &= mask);
    }
    buffer[end..].fill(0);
}
