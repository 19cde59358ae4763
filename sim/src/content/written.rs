//! Bytes of one write that no [`Source`] generates: pieces, and recorded bytes (FILL of
//! docs/reference/operations.md).
//!
//! agent/base/data.c and python/flashbed/formats/content.py make the same bytes.

use super::source::Source;

const PAGE_BYTES: u64 = 4096;
/// The seed of the stream that all pieces share.
const COMMON: Source = Source { seed: 0x636f_6d6d_6f6e, compressibility: 0 };

/// The two highest bits of a byte of text are 0.
const TEXT_BITS: u8 = 0x3f;

/// How a page's part of a write is generated; the rest is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceSizes {
    /// Zeroes at its beginning.
    pub zeroes: u32,
    /// Bytes after them that all pieces share.
    pub common: u32,
    /// Bytes after them that are unique to it.
    pub own: u32,
    /// How many of these bytes, from the first on, have six bits each.
    pub text: u32,
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
    let [common, own, text] = [sizes.common, sizes.own, sizes.text].map(u64::from);
    let (first, skipped) = (u64::from(sizes.zeroes), at - start);
    let before = |end: u64| ((first + end).saturating_sub(skipped) as usize).min(buffer.len());
    let (begin, common_end) = (before(0), before(common));
    let (text_end, end) = (before(text), before(common + own));
    buffer[..begin].fill(0);
    COMMON.fill(skipped.saturating_sub(first), &mut buffer[begin..common_end]);
    let own = &mut buffer[common_end..end];
    Source { seed, compressibility: 0 }.fill(at + common_end as u64, own);
    buffer[begin..text_end].iter_mut().for_each(|byte| *byte &= TEXT_BITS);
    buffer[end..].fill(0);
}
