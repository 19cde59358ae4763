//! The index: which node each key has (the TNC of the kernel, read as a whole).

use super::nodes::{kind, node_of};
use super::superblock::{Master, Superblock};
use crate::bytes::Fields;
use crate::lebs::Lebs;
use crate::problems::Problems;
use sim::fs::ubifs::Key;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes before the branches of an index node.
pub const HEADER: usize = 28;
/// Bytes of a branch before its key.
const BRANCH: usize = 12;
/// UBIFS_SK_LEN.
const KEY: usize = 8;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its LEB.
    pub leb: u32,
    /// Its offset there.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// The nodes of each key. Names with one hash share a key.
pub type Index = BTreeMap<Key, Vec<Place>>;

/// A key as nodes have it.
pub fn key(fields: Fields<'_>, at: usize) -> Key {
    Key::from_halves((fields.u32(at), fields.u32(at + 4)))
}

/// What is left to read: an index node and its level, none for the root.
struct Branch {
    place: Place,
    level: Option<u16>,
}

/// Reads all of the index; what cannot be read is a problem, and missing.
pub fn read_index(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    master: &Master,
    problems: &mut Problems,
) -> Index {
    let mut index = Index::new();
    let (leb, offset, bytes) = master.root;
    let mut left = vec![Branch { place: Place { leb, offset, bytes }, level: None }];
    let mut seen = BTreeSet::new();
    while let Some(branch) = left.pop() {
        let Place { leb, offset, bytes } = branch.place;
        if !seen.insert((leb, offset)) {
            problems.add(format!("LEB {leb}:{offset}: index node: two nodes refer to it"));
            continue;
        }
        let node = match node_of(lebs.leb(leb), offset, kind::INDEX) {
            Ok(node) => node.fields,
            Err(why) => {
                problems.add(format!("LEB {leb}:{offset}: {why}"));
                continue;
            }
        };
        let (children, level) = (usize::from(node.u16(24)), node.u16(26));
        let expected = branch.level.is_none_or(|above| above == level);
        if children == 0 || children > superblock.fanout as usize || !expected {
            problems.add(format!(
                "LEB {leb}:{offset}: index node: {children} branches at level {level}"
            ));
            continue;
        }
        // With authentication a hash follows the key.
        let stride = (bytes.min(node.len() as u32) as usize).saturating_sub(HEADER) / children;
        if stride < BRANCH + KEY {
            problems.add(format!("LEB {leb}:{offset}: index node: {bytes} bytes"));
            continue;
        }
        for child in 0..children {
            let at = HEADER + child * stride;
            let [leb, offset, bytes] = [0, 4, 8].map(|more| node.u32(at + more));
            let place = Place { leb, offset, bytes };
            if level == 0 {
                index.entry(key(node, at + BRANCH)).or_default().push(place);
            } else {
                left.push(Branch { place, level: Some(level - 1) });
            }
        }
    }
    index
}
