//! A file without the OOB of its pages.
//!
//! `nanddump -o` writes each page's OOB behind it. Which pages a chip has is in no file, so each
//! geometry that chips have is tried on the first bytes, and the one under which most of them make
//! sense is taken. A page with its OOB never makes sense under another: its headers move.

use crate::bytes::part;
use crate::{jffs2, readonly, ubi, ubifs};

/// Pages and their OOB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Bytes of its OOB.
    pub oob_bytes: usize,
}

impl Pages {
    /// Where in the OOB a bad block is marked: NAND_BBM_POS_SMALL, NAND_BBM_POS_LARGE.
    fn bad_mark(self) -> usize {
        if self.page_bytes > 512 {
            0
        } else {
            5
        }
    }
}

/// Geometries of chips with OOB.
const KNOWN: [Pages; 12] = [
    Pages { page_bytes: 512, oob_bytes: 16 },
    Pages { page_bytes: 2048, oob_bytes: 64 },
    Pages { page_bytes: 2048, oob_bytes: 128 },
    Pages { page_bytes: 2048, oob_bytes: 112 },
    Pages { page_bytes: 4096, oob_bytes: 128 },
    Pages { page_bytes: 4096, oob_bytes: 224 },
    Pages { page_bytes: 4096, oob_bytes: 256 },
    Pages { page_bytes: 4096, oob_bytes: 218 },
    Pages { page_bytes: 4096, oob_bytes: 216 },
    Pages { page_bytes: 8192, oob_bytes: 448 },
    Pages { page_bytes: 8192, oob_bytes: 640 },
    Pages { page_bytes: 8192, oob_bytes: 744 },
];

/// How much of a file is tried.
const TRIED_BYTES: usize = 16 << 20;

/// The bytes of the pages, and what was cut out.
#[derive(Clone, Debug)]
pub struct Flat {
    /// Pages, one after another.
    pub bytes: Vec<u8>,
    /// Their geometry, if there was OOB.
    pub pages: Option<Pages>,
    /// The byte of each page's OOB in which a maker marks a bad block.
    markers: Vec<u8>,
}

impl Flat {
    /// The file as it is, or without its OOB. `given` is what the caller knows; 0 bytes of OOB say
    /// that there is none.
    pub fn new(file: Vec<u8>, given: Option<Pages>) -> Flat {
        let pages = given.or_else(|| found(&file)).filter(|pages| pages.oob_bytes > 0);
        let Some(pages) = pages else {
            return Flat { bytes: file, pages: None, markers: Vec::new() };
        };
        let markers = file.chunks(pages.page_bytes + pages.oob_bytes);
        let at = pages.page_bytes + pages.bad_mark();
        let markers = markers.map(|chunk| chunk.get(at).copied().unwrap_or(0xff));
        Flat { markers: markers.collect(), bytes: without(&file, pages), pages: Some(pages) }
    }

    /// Whether a block is marked bad: in the OOB of its first or second page.
    pub fn is_bad(&self, start: usize, block_bytes: usize) -> bool {
        let Some(pages) = self.pages else { return false };
        let first = start / pages.page_bytes;
        let most = (block_bytes / pages.page_bytes).min(2);
        part(&self.markers, first, most).contains(&0)
    }
}

/// The pages alone.
fn without(file: &[u8], pages: Pages) -> Vec<u8> {
    let chunks = file.chunks(pages.page_bytes + pages.oob_bytes);
    chunks.flat_map(|chunk| &chunk[..chunk.len().min(pages.page_bytes)]).copied().collect()
}

/// How much of some bytes makes sense.
fn score(bytes: &[u8]) -> i64 {
    match ubi::score(bytes) {
        0 if begins_whole(bytes) => i64::MAX,
        0 => jffs2::score(bytes),
        points => points,
    }
}

/// Whether a file system without UBI begins in them. The superblock of UBIFS is longer than a page
/// of 2 KiB, so it is whole under one geometry only.
fn begins_whole(bytes: &[u8]) -> bool {
    (ubifs::is_here(bytes) && ubifs::leb_bytes(bytes).is_ok())
        || readonly::is_squashfs(bytes)
        || readonly::is_erofs(bytes)
}

/// The geometry under which most makes sense; none if that is without OOB.
fn found(file: &[u8]) -> Option<Pages> {
    let mut best = (score(part(file, 0, TRIED_BYTES)), None);
    for pages in KNOWN {
        let both = pages.page_bytes + pages.oob_bytes;
        if file.len() % both != 0 {
            continue;
        }
        let begin = part(file, 0, TRIED_BYTES / both * both);
        let points = score(&without(begin, pages));
        if points > best.0 {
            best = (points, Some(pages));
        }
    }
    best.1
}
