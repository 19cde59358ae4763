//! The journal: what was written after the last commit (replay.c, and recover_size of recovery.c).
//!
//! After an unmount there is nothing in it. The dump of a device that runs, or whose power was
//! cut, has what its next mount will find.

use super::index::{key, Index, Place};
use super::nodes::{end_of_nodes, kind, node_at, nodes, Node};
use super::superblock::{Master, Superblock};
use crate::bytes::Fields;
use crate::lebs::Lebs;
use crate::problems::Problems;
use serde::Serialize;
use sim::fs::ubifs::geometry::LOG_LEB;
use sim::fs::ubifs::{Bud, Key};
use std::collections::{BTreeMap, BTreeSet};

/// UBIFS_BLOCK_SIZE.
const BLOCK: u64 = 4096;
/// `UBIFS_S_KEY_BLOCK_MASK`.
const BLOCKS_MAX: u64 = (1 << 29) - 1;

/// What the journal had.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Journal {
    /// LEBs that the log names.
    pub lebs: u32,
    /// Nodes in them.
    pub nodes: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Sizes of files whose data was written and their inode was not.
    #[serde(skip)]
    pub sizes: BTreeMap<u32, u64>,
}

/// A node of the journal.
struct Entry {
    sequence: u64,
    kind: u8,
    key: Key,
    place: Place,
}

/// The log since the last commit.
pub struct Log {
    /// The parts of LEBs that it names.
    pub buds: Vec<Bud>,
    /// The LEB and the offset where it ends.
    pub head: (u32, u32),
}

/// Applies the journal, whose LEBs the log names, to the index.
pub fn replay(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    master: &Master,
    buds: &[Bud],
    index: &mut Index,
    problems: &mut Problems,
) -> Journal {
    let mut journal = Journal::default();
    let mut entries = Vec::new();
    for &Bud { leb, start: offset, .. } in buds {
        journal.lebs += 1;
        let bytes = lebs.leb(leb);
        for (at, node) in nodes(bytes, offset) {
            let of_files = node.kind <= kind::TRUNCATION;
            if !of_files {
                continue;
            }
            journal.nodes += 1;
            journal.bytes += u64::from(node.bytes);
            let truncated = || Key::truncation(node.fields.u32(24));
            entries.push(Entry {
                sequence: node.sequence,
                kind: node.kind,
                key: if node.kind == kind::TRUNCATION { truncated() } else { key(node.fields, 24) },
                place: Place { leb, offset: at, bytes: node.bytes },
            });
        }
        torn(leb, bytes, offset, superblock, master, problems);
    }
    entries.sort_by_key(|entry| entry.sequence);
    for entry in &entries {
        let Ok(node) = node_at(lebs.leb(entry.place.leb), entry.place.offset) else { continue };
        apply(lebs, entry, node, index, &mut journal);
    }
    journal
}

/// What follows the last node of a LEB of the journal: nothing, or a write that the power cut.
fn torn(
    leb: u32,
    bytes: &[u8],
    offset: u32,
    superblock: &Superblock,
    master: &Master,
    problems: &mut Problems,
) {
    let end = end_of_nodes(bytes, offset).next_multiple_of(superblock.min_io_bytes);
    let rest = crate::bytes::part(bytes, end as usize, bytes.len());
    if !crate::bytes::is_blank(rest) {
        let why = node_at(bytes, end).err().unwrap_or_default();
        let hint = if master.clean { "" } else { " (a write that the power cut ends like this)" };
        problems.add(format!("LEB {leb}:{end}: journal: {why}{hint}"));
    }
}

/// The parts of LEBs that the log names since the last commit (ubifs_replay_journal).
pub fn references(
    lebs: Lebs<'_>,
    superblock: &Superblock,
    master: &Master,
    problems: &mut Problems,
) -> Log {
    let mut found = Log { buds: Vec::new(), head: (master.log_leb, 0) };
    let log = LOG_LEB..LOG_LEB + superblock.log_lebs;
    if !log.contains(&master.log_leb) {
        problems.add(format!("master node: the log begins in LEB {}", master.log_leb));
        return found;
    }
    let mut seen = BTreeSet::new();
    let mut begun: Option<u64> = None;
    for number in (master.log_leb..log.end).chain(log.start..master.log_leb) {
        let mut any = false;
        for (offset, node) in nodes(lebs.leb(number), 0) {
            if begun.is_none() {
                if node.kind != kind::COMMIT_START || node.fields.u64(24) != master.commit {
                    problems.add(format!("LEB {number}:{offset}: the log has no start of commit"));
                    return found;
                }
                begun = Some(node.sequence);
            }
            if begun.is_some_and(|sequence| node.sequence < sequence) {
                return found;
            }
            any = true;
            let [leb, start, head] = [24, 28, 32].map(|at| node.fields.u32(at));
            let of_main = (superblock.main_first()..superblock.lebs).contains(&leb);
            if node.kind == kind::REFERENCE && of_main && seen.insert(leb) {
                found.buds.push(Bud { leb, start, head: head as usize });
            }
        }
        if any {
            let end = end_of_nodes(lebs.leb(number), 0);
            found.head = (number, end.next_multiple_of(superblock.min_io_bytes));
        }
        if begun.is_none() {
            problems.add(format!("LEB {number}: the log is missing"));
            return found;
        }
        if !any {
            break;
        }
    }
    found
}

/// apply_replay_entry.
fn apply(lebs: Lebs<'_>, entry: &Entry, node: Node<'_>, index: &mut Index, journal: &mut Journal) {
    let fields = node.fields;
    let inode = entry.key.inum();
    match entry.kind {
        kind::INODE if fields.u32(92) == 0 => {
            remove(index, Key::inode(inode)..=Key::last_of(inode));
            journal.sizes.remove(&inode);
        }
        kind::INODE => {
            index.insert(entry.key, vec![entry.place]);
        }
        kind::DATA => {
            let end = u64::from(entry.key.block()) * BLOCK + u64::from(fields.u32(40));
            let known = journal.sizes.entry(inode).or_default();
            *known = end.max(*known);
            index.insert(entry.key, vec![entry.place]);
        }
        kind::TRUNCATION => {
            let (old, new) = (fields.u64(40), fields.u64(48));
            let first = new.div_ceil(BLOCK).min(BLOCKS_MAX) as u32;
            let last = (old.div_ceil(BLOCK)).min(BLOCKS_MAX) as u32;
            if first < last {
                remove(index, Key::data(inode, first)..=Key::data(inode, last - 1));
            }
            journal.sizes.insert(inode, new);
        }
        _ => {
            // A name: it takes the place of the one before, or only removes it.
            let places = index.entry(entry.key).or_default();
            places.retain(|place| name_of(lebs, *place) != Some(name(fields)));
            if fields.u64(40) != 0 {
                places.push(entry.place);
            }
            if places.is_empty() {
                index.remove(&entry.key);
            }
        }
    }
}

fn remove(index: &mut Index, keys: std::ops::RangeInclusive<Key>) {
    let gone: Vec<Key> = index.range(keys).map(|(key, _)| *key).collect();
    for key in gone {
        index.remove(&key);
    }
}

/// The name in a directory entry.
pub fn name(fields: Fields<'_>) -> &[u8] {
    fields.part(56, usize::from(fields.u16(50)))
}

fn name_of(lebs: Lebs<'_>, place: Place) -> Option<&[u8]> {
    node_at(lebs.leb(place.leb), place.offset).ok().map(|node| name(node.fields))
}
