//! How many bytes of a file go into a node, and how small they become there.
//!
//! Mirrors the use of fs/jffs2/compr.c (jffs2_compress) of Linux 6.1. compress/ has the compressors
//! themselves.
//!
//! Invariants:
//! 1. Two values with the same compressors give the same results. Their working memory is allocated
//!    at first use.
//! 2. The costs are those of the board, the same at each call.

use crate::compress::work::Priced;
use crate::compress::{is_random_for_jffs2, Compressors, Jffs2Compressor};
use crate::content::Contents;
use crate::profile::SoftwareCosts;
use core::fmt;
use std::ops::Range;

/// A data node's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the file it holds.
    pub file_bytes: u32,
    /// Bytes it takes in the node.
    pub node_bytes: u32,
    /// The compressor, if the payload is compressed.
    pub packed_by: Option<Jffs2Compressor>,
}

/// A kernel's compressors.
pub struct Compression {
    available: Vec<Jffs2Compressor>,
    compressors: Option<Box<Compressors>>,
    /// The length of the last random piece, the room for it, and its result. Programs write many
    /// alike, and pricing one takes longer than all else here.
    last_random: Option<((u64, u32), (Piece, Priced))>,
}

impl Compression {
    /// A kernel with these compressors (CONFIG_JFFS2_*).
    pub fn new(available: Vec<Jffs2Compressor>) -> Compression {
        Compression { available, compressors: None, last_random: None }
    }

    /// jffs2_compress of a range of a file, for a node with `room` bytes for data. Returns the
    /// payload and the processor time.
    pub fn compress(
        &mut self,
        contents: &Contents,
        range: &Range<u32>,
        room: u32,
        costs: &SoftwareCosts,
    ) -> (Piece, Priced) {
        let (start, end) = (u64::from(range.start), u64::from(range.end));
        if !is_random_for_jffs2(contents, start, end, room as usize) {
            return self.try_compressors(contents, range, room, costs);
        }
        let size = (end - start, room.min(range.end - range.start));
        match self.last_random {
            Some((known, result)) if known == size => result,
            _ => {
                let result = self.try_compressors(contents, range, room, costs);
                self.last_random = Some((size, result));
                result
            }
        }
    }

    fn try_compressors(
        &mut self,
        contents: &Contents,
        range: &Range<u32>,
        room: u32,
        costs: &SoftwareCosts,
    ) -> (Piece, Priced) {
        let (start, end) = (u64::from(range.start), u64::from(range.end));
        let compressors = self.compressors.get_or_insert_default();
        let data = compressors.jffs2(&self.available, contents, start, end, room as usize);
        let (file_bytes, node_bytes) = (data.file_bytes as u32, data.node_bytes as u32);
        let piece = Piece { file_bytes, node_bytes, packed_by: data.compressor };
        (piece, costs.jffs2_write_ns(node_bytes, &data.work))
    }
}

impl Clone for Compression {
    fn clone(&self) -> Compression {
        Compression::new(self.available.clone())
    }
}

impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compression").field(&self.available).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Source;

    fn costs() -> SoftwareCosts {
        let board: toml::Table = include_str!("../../../../boards/emulated.toml").parse().unwrap();
        let mut costs = board["software"].as_table().unwrap().clone();
        costs.remove("source");
        costs.try_into().unwrap()
    }

    #[test]
    fn a_piece_is_the_same_whatever_was_compressed_before() {
        // LZO's work depends on the length, that of the others on the room.
        let available = vec![Jffs2Compressor::Lzo, Jffs2Compressor::Zlib, Jffs2Compressor::Rtime];
        let costs = costs();
        let mut contents = Contents::new();
        contents.write(0, 8192, Source { seed: 1, compressibility: 0 });
        contents.write(8192, 12288, Source { seed: 2, compressibility: 50 });
        let mut used = Compression::new(available.clone());
        let page = 0..4096;
        let (mut results, mut clone) = (Vec::new(), None);
        for (range, room) in [
            (page.clone(), 5000),
            (4096..8192, 9000),
            (page.clone(), 700),
            (8192..12288, 700),
            (4096..4796, 700),
            (page.clone(), 5000),
            (page.clone(), 20),
        ] {
            let fresh =
                Compression::new(available.clone()).compress(&contents, &range, room, &costs);
            assert_eq!(used.compress(&contents, &range, room, &costs), fresh, "{range:?} {room}");
            let clone = clone.get_or_insert_with(|| used.clone());
            assert_eq!(clone.compress(&contents, &range, room, &costs), fresh, "{range:?} {room}");
            results.push(fresh);
        }
        assert_eq!(results[0], results[1]);
        assert!(results[2] != results[0] && results[2] != results[3] && results[2] != results[4]);
    }
}
