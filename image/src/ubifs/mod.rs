//! UBIFS: superblock, master node, space by the LPT, and files by the index and the journal.
//!
//! Mirrors what a mount of fs/ubifs reads. The sums of space are those of the last commit. Left
//! out: what a mount of a device whose power was cut cleans up, the orphans' names, and the content
//! of encrypted files.

mod dumped_volume;
mod index;
mod nodes;
mod properties_tree;
mod superblock;
mod unreplayed;

use crate::bytes::Fields;
use crate::lebs::Lebs;
use crate::problems::Problems;
use crate::tree::{device, Inode, Kind, Name, Piece, Sums, Tree};
use crate::unpack::Packing;
pub use dumped_volume::dumped;
use index::{read_index, Index, Place};
use nodes::{kind, node_of};
use properties_tree::{read_properties, Properties};
use serde::Serialize;
use sim::fs::ubifs::geometry::{dark_bytes, LPT_FANOUT};
use sim::fs::ubifs::{Counted, Key, Totals};
use std::collections::{BTreeMap, BTreeSet};
pub use superblock::{Master, Superblock};
pub use unreplayed::Journal;

/// UBIFS_ROOT_INO.
const ROOT: u32 = 1;
/// UBIFS_BLOCK_SIZE.
const BLOCK: u64 = 4096;
/// UBIFS_XATTR_FL and UBIFS_CRYPT_FL of an inode's flags.
const XATTR_FLAG: u32 = 0x20;
const ENCRYPTED_FLAG: u32 = 0x40;

/// A UBIFS.
#[derive(Clone, Debug, Serialize)]
pub struct Ubifs {
    /// What was decided when it was made.
    pub superblock: Superblock,
    /// What changes with each commit.
    pub master: Master,
    /// Its space, of a volume of `lebs` LEBs; none if the LPT cannot be read.
    pub space: Option<Space>,
    /// What is not committed.
    pub journal: Journal,
    /// Sums over its files.
    pub files: Sums,
}

/// Where the bytes of the main area are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Space {
    /// LEBs of the file system as the volume lets it grow.
    pub lebs: u32,
    /// Free bytes of LEBs.
    pub free_bytes: u64,
    /// Bytes that nothing refers to.
    pub dirty_bytes: u64,
    /// Bytes of nodes of files.
    pub used_bytes: u64,
    /// Bytes of nodes of the index.
    pub index_bytes: u64,
    /// Bytes too few for a node.
    pub dead_bytes: u64,
    /// Bytes that may be too few for one.
    pub dark_bytes: u64,
    /// LEBs without a node.
    pub empty_lebs: u32,
    /// LEBs of the index.
    pub index_lebs: u32,
    /// What `df` answers: bytes that a program that is not root's can write.
    pub available_bytes: u64,
}

/// Whether a UBIFS begins here.
pub fn is_here(leb: &[u8]) -> bool {
    let head = Fields::little(leb);
    head.u32(0) == nodes::MAGIC && head.u8(20) == kind::SUPERBLOCK
}

/// The size of a LEB of a bare image.
pub fn leb_bytes(image: &[u8]) -> Result<usize, String> {
    superblock::read_superblock(image).map(|superblock| superblock.leb_bytes as usize)
}

/// Reads a UBIFS. `volume` is the number of LEBs of its volume, none of a bare image.
pub fn read(
    lebs: Lebs<'_>,
    volume: Option<u32>,
    problems: &mut Problems,
) -> Result<(Ubifs, Tree), String> {
    let superblock = superblock::read_superblock(lebs.leb(0))?;
    if superblock.leb_bytes as usize != lebs.size {
        return Err(format!(
            "LEB 0: superblock: LEBs of {} bytes, but the volume's have {}",
            superblock.leb_bytes, lebs.size
        ));
    }
    let master = superblock::read_master(lebs, problems)?;
    let most = volume.unwrap_or(superblock.lebs_max);
    if volume.is_some_and(|lebs| lebs < superblock.lebs) {
        problems.add(format!(
            "superblock: {} LEBs, but the volume has {most}: it does not mount",
            superblock.lebs
        ));
    }
    let log = unreplayed::references(lebs, &superblock, &master, problems);
    let mut taken: BTreeSet<u32> = log.buds.iter().map(|bud| bud.leb).collect();
    taken.extend([master.gc_leb, master.index_head]);
    let space = match read_properties(lebs, &superblock, &master) {
        Ok(found) => Some(space(&superblock, &master, &found, most, &taken, problems)),
        Err(why) => {
            problems.add(why);
            None
        }
    };
    let mut index = read_index(lebs, &superblock, &master, problems);
    let journal = unreplayed::replay(lebs, &superblock, &master, &log.buds, &mut index, problems);
    let mut files = Files::default();
    files.read(lebs, &index, problems);
    if !master.clean {
        for (inode, bytes) in &journal.sizes {
            if let Some(inode) = files.inodes.get_mut(inode) {
                inode.bytes = inode.bytes.max(*bytes);
            }
        }
    }
    let tree = Tree::new(files.inodes, ROOT, &files.names, problems);
    let files = tree.sums(ROOT);
    Ok((Ubifs { superblock, master, space, journal, files }, tree))
}

/// The master's sums, held against the LPT, and what statfs makes of them in a volume of `volume`
/// LEBs (mount_ubifs gives what it grew to the empty LEBs).
fn space(
    superblock: &Superblock,
    master: &Master,
    found: &[Properties],
    volume: u32,
    taken: &BTreeSet<u32>,
    problems: &mut Problems,
) -> Space {
    let page = superblock.min_io_bytes;
    let leb = u64::from(superblock.leb_bytes);
    let sum = |of: fn(&Properties) -> u32| found.iter().map(|lp| u64::from(of(lp))).sum::<u64>();
    let (free, dirty) = (sum(|lp| lp.free), sum(|lp| lp.dirty));
    let said = (master.free_bytes, master.dirty_bytes);
    if (free, dirty) != said {
        problems.add(format!(
            "LPT: {free} free and {dirty} dirty bytes; the master node says {} and {}",
            said.0, said.1
        ));
    }
    let grown = volume.min(superblock.lebs_max).saturating_sub(superblock.lebs);
    let more = u64::from(grown);
    let dark = u64::from(dark_bytes(page));
    let totals = Totals {
        empty_lebs: master.empty_lebs.saturating_add(grown),
        taken_empty_lebs: taken.iter().filter(|leb| is_empty(superblock, found, **leb)).count()
            as u32,
        index_lebs: master.index_lebs,
        used_bytes: master.used_bytes.min(u64::from(u32::MAX) * leb),
        dead_bytes: master.dead_bytes.min(u64::from(u32::MAX) * leb),
        dark_bytes: master.dark_bytes.min(u64::from(u32::MAX) * leb) + more * dark,
    };
    let counted = Counted {
        leb_bytes: superblock.leb_bytes,
        fanout: superblock.fanout as usize,
        main_lebs: superblock.main_lebs + grown,
        dark_bytes: dark as u32,
        totals: &totals,
        lebs_for_index: totals.empty_lebs.saturating_sub(totals.taken_empty_lebs)
            + freeable(superblock, found, taken),
        index_bytes: master.index_bytes.min(u64::from(superblock.main_lebs) * leb),
        budgeted_bytes: 0,
        pool_bytes: superblock.reserved_bytes.min(u64::from(superblock.main_lebs) * leb),
    };
    Space {
        lebs: superblock.lebs + grown,
        free_bytes: master.free_bytes.saturating_add(more * leb),
        dirty_bytes: master.dirty_bytes,
        used_bytes: master.used_bytes,
        index_bytes: master.index_bytes,
        dead_bytes: totals.dead_bytes,
        dark_bytes: totals.dark_bytes,
        empty_lebs: totals.empty_lebs,
        index_lebs: master.index_lebs,
        available_bytes: counted.free_bytes(),
    }
}

/// LEBs with nothing but dirt, of the parts of the LPT that a mount reads (`freeable_cnt`): those
/// of the collector's LEB, of the index head, and of the journal's LEBs, which are taken.
fn freeable(superblock: &Superblock, found: &[Properties], taken: &BTreeSet<u32>) -> u32 {
    let slot = |leb: &u32| leb.checked_sub(superblock.main_first());
    let taken: BTreeSet<u32> = taken.iter().filter_map(slot).collect();
    let read: BTreeSet<u32> = taken.iter().map(|slot| slot / LPT_FANOUT).collect();
    let mut count = 0;
    for part in read {
        for slot in part * LPT_FANOUT..(part + 1) * LPT_FANOUT {
            let Some(lp) = found.get(slot as usize) else { continue };
            let all = lp.free + lp.dirty == superblock.leb_bytes;
            let free = lp.free == superblock.leb_bytes;
            count += u32::from(all && !free && !lp.index && !taken.contains(&slot));
        }
    }
    count
}

fn is_empty(superblock: &Superblock, found: &[Properties], leb: u32) -> bool {
    let slot = leb.checked_sub(superblock.main_first());
    slot.and_then(|slot| found.get(slot as usize)).is_some_and(|lp| lp.free == superblock.leb_bytes)
}

/// What the nodes of the index say.
#[derive(Default)]
struct Files {
    inodes: BTreeMap<u32, Inode>,
    names: BTreeMap<u32, Vec<Name>>,
}

impl Files {
    fn read(&mut self, lebs: Lebs<'_>, index: &Index, problems: &mut Problems) {
        for (key, places) in index {
            for place in places {
                let expected = match key {
                    key if key.is_inode() => kind::INODE,
                    key if key.is_data() => kind::DATA,
                    key if key.is_attribute() => kind::XENT,
                    _ => kind::DENT,
                };
                let done = node_of(lebs.leb(place.leb), place.offset, expected)
                    .and_then(|node| self.add(lebs, *key, *place, node.fields));
                if let Err(why) = done {
                    problems.add(format!("LEB {}:{}: {why}", place.leb, place.offset));
                }
            }
        }
    }

    /// A node. An inode's comes before its data, because its key is lower.
    fn add(
        &mut self,
        lebs: Lebs<'_>,
        key: Key,
        place: Place,
        fields: Fields<'_>,
    ) -> Result<(), String> {
        if index::key(fields, 24) != key {
            return Err("its key is not that of the index".to_owned());
        }
        let number = key.inum();
        if key.is_inode() {
            if fields.u32(108) & XATTR_FLAG == 0 {
                self.inodes.insert(number, inode(fields)?);
            }
        } else if key.is_data() {
            let piece = piece(lebs, key, place, fields)?;
            // Of an attribute that is too long for its inode there is none.
            if let Some(inode) = self.inodes.get_mut(&number) {
                inode.pieces.push(piece);
            } else {
                return Err(format!("data of inode {number}, which is missing"));
            }
        } else if key.is_attribute() {
            if let Some(inode) = self.inodes.get_mut(&number) {
                inode.xattrs += 1;
            }
        } else {
            let inode = u32::try_from(fields.u64(40))
                .map_err(|_| format!("a name of inode {}", fields.u64(40)))?;
            let name = unreplayed::name(fields);
            if name.len() != usize::from(fields.u16(50)) {
                return Err(format!("a name of {} bytes", fields.u16(50)));
            }
            self.names.entry(number).or_default().push(Name { name: name.to_vec(), inode });
        }
        Ok(())
    }
}

fn inode(fields: Fields<'_>) -> Result<Inode, String> {
    let mode = fields.u32(104);
    let kind = Kind::of_mode(mode).ok_or_else(|| format!("inode: mode 0o{mode:o}"))?;
    let data = fields.part(160, fields.u32(112) as usize);
    if data.len() != fields.u32(112) as usize {
        return Err(format!("inode: {} bytes of data", fields.u32(112)));
    }
    let of_device = matches!(kind, Kind::Block | Kind::Char);
    Ok(Inode {
        mode,
        uid: fields.u32(96),
        gid: fields.u32(100),
        bytes: fields.u64(48),
        links: fields.u32(92),
        mtime_s: fields.u64(72) as i64,
        target: if kind == Kind::Link { data.to_vec() } else { Vec::new() },
        device: of_device.then(|| device(Fields::little(data).u32(0))),
        xattrs: 0,
        encrypted: fields.u32(108) & ENCRYPTED_FLAG != 0,
        pieces: Vec::new(),
    })
}

fn piece(lebs: Lebs<'_>, key: Key, place: Place, fields: Fields<'_>) -> Result<Piece, String> {
    let bytes = fields.u32(40);
    if bytes == 0 || u64::from(bytes) > BLOCK {
        return Err(format!("data: {bytes} bytes of a block of {BLOCK}"));
    }
    let leb = lebs.start(place.leb).ok_or("data: outside of what is there")?;
    Ok(Piece {
        at: u64::from(key.block()) * BLOCK,
        bytes,
        start: leb + place.offset as usize + 48,
        stored: fields.len() as u32 - 48,
        packing: Packing::of_ubifs(fields.u16(44)),
    })
}
