//! The index and the LEB properties tree of a dump, node by node, as they lie on flash.
//!
//! Mirrors the nodes that fs/ubifs/tnc_misc.c (read_znode) and lpt.c (ubifs_unpack_nnode,
//! unpack_pnode, unpack_ltab) of Linux 6.1 read. The crate `image` reads them; tnc.rs and lpt.rs
//! make their trees of them. Left out: the save table of the big LPT.
//!
//! Invariant: places lie within their areas, and nothing has two places.

use super::key::{Key, Place};
use std::collections::BTreeMap;

/// The properties of a LEB of the main area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpedProperties {
    /// Free bytes at its end.
    pub free: u32,
    /// Bytes that nothing refers to.
    pub dirty: u32,
    /// Whether it is of the index.
    pub index: bool,
}

/// The LEB properties tree.
#[derive(Clone, Debug)]
pub struct DumpedLpt {
    /// The properties of each LEB of the main area.
    pub properties: Vec<DumpedProperties>,
    /// The place of each node by its level, leaves first, and its number there. One that was never
    /// written is missing.
    pub nodes: BTreeMap<(u32, u32), (u32, u32)>,
    /// Free and dirty bytes of each LEB of the LPT area (`ltab`).
    pub areas: Vec<(u32, u32)>,
    /// Where that table is.
    pub table: (u32, u32),
    /// `nhead_lnum` and `nhead_offs`.
    pub head: (u32, u32),
    /// `lscan_lnum`.
    pub scanned: u32,
}

/// A branch of an index node.
#[derive(Clone, Copy, Debug)]
pub struct DumpedBranch {
    /// Its key.
    pub key: Key,
    /// Where its node is.
    pub place: Place,
    /// Of an index node its number in [`DumpedIndex::nodes`], of a data node its unpacked bytes.
    pub child: u32,
}

/// An index node.
#[derive(Clone, Debug)]
pub struct DumpedZnode {
    /// 0 for one above leaves.
    pub level: u8,
    /// Its branches, in the order of their keys.
    pub branches: Vec<DumpedBranch>,
}

/// The index.
#[derive(Clone, Debug)]
pub struct DumpedIndex {
    /// Where the root is.
    pub root: Place,
    /// Its nodes, the root first, each node before those below it.
    pub nodes: Vec<DumpedZnode>,
}
