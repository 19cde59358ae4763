//! How many bytes of a file go into a node, and how small they become there.
//!
//! Mirrors the use of fs/jffs2/compr.c (jffs2_compress) of Linux 6.1. compress/ has the compressors
//! themselves.
//!
//! Invariant: two values with the same compressors give the same results. Their working memory is
//! allocated at first use.

use crate::compress::work::Priced;
use crate::compress::{Compressors, Jffs2Compressor};
use crate::content::Contents;
use crate::profile::SoftwareCosts;
use core::fmt;
use std::ops::Range;

/// A data node's payload.
#[derive(Clone, Copy, Debug)]
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
}

impl Compression {
    /// A kernel with these compressors (CONFIG_JFFS2_*).
    pub fn new(available: Vec<Jffs2Compressor>) -> Compression {
        Compression { available, compressors: None }
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
