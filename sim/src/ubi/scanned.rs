//! What an attach finds out before it takes the blocks over.

use super::Leb;
use std::collections::{BTreeMap, BTreeSet};

/// The result of a scan (struct ubi_attach_info).
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub free: Vec<u32>,
    /// Blocks to erase, in order: torn ones, the last found first, then the others.
    pub torn: Vec<u32>,
    pub erase: Vec<u32>,
    pub volumes: BTreeMap<Leb, u32>,
    /// Blocks in `volumes` with corrected bit errors.
    pub scrub: BTreeSet<u32>,
    /// Blocks of fastmaps, in the order in which they were found.
    pub fastmap: Vec<u32>,
    /// A volume header was torn (`force_full_scan`).
    pub has_torn_header: bool,
}
