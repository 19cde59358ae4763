//! Bytes that one write has and no [`Source`] generates: pieces, and real ones (FILL of
//! docs/operations.md).
//!
//! agent/base/data.c and python/flashbed/formats/content.py make the same.

use super::source::Source;

const PAGE_BYTES: u64 = 4096;
/// Seed of the stream that all pieces have in common.
const COMMON: Source = Source { seed: 0x636f_6d6d_6f6e, compressibility: 0 };

/// What a write says its bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Generated page by page.
    Pieces {
        /// Where the write begins.
        offset: u64,
        /// The seed of each piece's own bytes.
        seed: u64,
        /// How many bytes of each piece are common to all, and how many its own.
        pieces: Vec<(u32, u32)>,
    },
    /// Real ones.
    Bytes {
        /// Where the write begins.
        offset: u64,
        /// All of it.
        bytes: Vec<u8>,
    },
}

impl Written {
    /// The bytes at an offset, all of which the write has.
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

/// Bytes from `at` on of a piece that begins at `start`.
fn fill_piece(start: u64, seed: u64, (common, own): (u32, u32), at: u64, buffer: &mut [u8]) {
    let (common, own) = (u64::from(common), u64::from(common) + u64::from(own));
    let skipped = at - start;
    let bytes = buffer.len() as u64;
    let (rest, zeroes) = buffer.split_at_mut(own.saturating_sub(skipped).min(bytes) as usize);
    let bytes = rest.len() as u64;
    let (shared, alone) = rest.split_at_mut(common.saturating_sub(skipped).min(bytes) as usize);
    COMMON.fill(skipped, shared);
    let done = shared.len() as u64;
    Source { seed, compressibility: 0 }.fill(at + done, alone);
    zeroes.fill(0);
}
