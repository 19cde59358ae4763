//! The LEBs of a file system: of a volume of UBI, or of a bare image.

use crate::bytes::part;
use std::collections::BTreeMap;

/// Where LEBs are in a file.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// One after another.
    Bare,
    /// Where a volume's map says.
    Volume(&'a BTreeMap<u32, usize>),
}

/// LEBs of a size in a file.
#[derive(Clone, Copy, Debug)]
pub struct Lebs<'a> {
    bytes: &'a [u8],
    places: Places<'a>,
    /// Bytes of a LEB.
    pub size: usize,
}

impl<'a> Lebs<'a> {
    /// LEBs of so many bytes.
    pub fn new(bytes: &'a [u8], places: Places<'a>, size: usize) -> Lebs<'a> {
        Lebs { bytes, places, size }
    }

    /// Where a LEB begins in the file; none if it is not mapped.
    pub fn start(&self, leb: u32) -> Option<usize> {
        match self.places {
            Places::Bare => (leb as usize).checked_mul(self.size),
            Places::Volume(map) => map.get(&leb).copied(),
        }
        .filter(|start| *start < self.bytes.len())
    }

    /// The LEBs from the first to one that is not mapped, as one.
    pub fn joined(&self) -> Vec<u8> {
        (0..)
            .map(|leb| self.leb(leb))
            .take_while(|bytes| !bytes.is_empty())
            .flatten()
            .copied()
            .collect()
    }

    /// A LEB's bytes; none at all if it is not mapped.
    pub fn leb(&self, leb: u32) -> &'a [u8] {
        self.start(leb).map_or(&[], |start| part(self.bytes, start, self.size))
    }
}
