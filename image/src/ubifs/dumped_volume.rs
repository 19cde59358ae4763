//! A UBIFS as the simulator begins with it: its index node by node, the LPT, and what a scan finds.
//!
//! index.rs and unreplayed.rs read what they can of a broken image; here what is broken, or what
//! the simulator does not model, is an error. The content of a node is unpacked if the index or the
//! journal refers to it. Left out: names and attributes of orphans.
//!
//! Invariant: every place that is handed on lies within the main area, so that the simulator, which
//! trusts it, stays within its tables.

use super::index::{self, HEADER};
use super::nodes::{end_of_nodes, kind, node_of, nodes, Node};
use super::properties_tree::{read_table, read_tree};
use super::superblock::{self, Master, Superblock};
use super::unreplayed::{self, Log};
use super::XATTR_FLAG;
use crate::bytes::{is_blank, part, Fields};
use crate::lebs::Lebs;
use crate::problems::Problems;
use crate::tree::Kind as FileKind;
use crate::unpack::{unpack, Packing};
use sim::compress::UbifsCompressor;
use sim::content::Contents;
use sim::fs::ubifs::geometry::{self, index_node_bytes, FANOUT, HEADS, LOG_LEB};
use sim::fs::ubifs::geometry::{MASTER_BYTES, MASTER_LEB};
use sim::fs::ubifs::{
    Bud, Dumped, DumpedBranch, DumpedIndex, DumpedLpt, DumpedProperties, DumpedZnode, Key, Kind,
    Place, Stored, What,
};
use sim::ops::{name_text, path_text};
use std::collections::{BTreeMap, BTreeSet};

/// UBIFS_IN_NODE_GROUP.
const IN_GROUP: u8 = 1;
/// UBIFS_BLOCK_SIZE, and UBIFS_MAX_INO_DATA.
const BLOCK: u64 = 4096;
/// `UBIFS_S_KEY_BLOCK_BITS`.
const BLOCK_BITS: u32 = 29;
/// The simulator has other inodes above.
const INODES_MAX: u32 = 1 << 28;
/// UBIFS_MAX_NLEN.
const NAME_BYTES_MAX: usize = 255;
/// The `jhead_cnt` that create_default_filesystem writes: those besides two of the kernel's own.
const DATA_HEADS: u32 = 1;
/// A branch of an index node before its key, and its key.
const BRANCH: usize = 12;
const BRANCH_AND_KEY: usize = 20;

/// Reads all of it. `volume` is the number of LEBs of its volume.
pub fn dumped(lebs: Lebs<'_>, volume: u32) -> Result<Dumped, String> {
    let mut problems = Problems::default();
    let superblock = superblock::read_superblock(lebs.leb(0))?;
    if let Some(what) = not_modelled(&superblock) {
        return Err(format!("{what} is not modelled"));
    }
    let master = superblock::read_master(lebs, &mut problems)?;
    let log = unreplayed::references(lebs, &superblock, &master, &mut problems);
    let mut reader = Reader { lebs, superblock: &superblock, master: &master, number: 0 };
    reader.check_master(&log, volume)?;
    let lpt = reader.lpt()?;
    let index = reader.index()?;
    if master.clean {
        reader.check_heads(&log)?;
    }
    reader.check_space(&lpt, &index)?;
    let mut wanted: BTreeSet<(u32, u32)> = index.leaves().map(|(_, at)| at).collect();
    if wanted.len() != index.leaves().count() {
        return Err("the index has a node twice".to_owned());
    }
    let mut found = Scans::default();
    for (slot, leb) in (0..).zip(superblock.main_first()..superblock.lebs) {
        let bud = log.buds.iter().find(|bud| bud.leb == leb);
        let free = lpt.properties.get(slot).map_or(0, |lp| lp.free);
        if bud.is_some() || free < superblock.leb_bytes {
            let end = superblock.leb_bytes - if bud.is_some() { 0 } else { free };
            reader.scan(leb, end, bud, &mut wanted, &mut found)?;
            if master.clean || leb != master.index_head {
                reader.check_blank(leb, end)?; // else the mount cleans it
            }
        }
    }
    if let Some((leb, offset)) = wanted.first() {
        return Err(format!("LEB {leb}:{offset}: no scan finds the node that the index has there"));
    }
    if let Some(why) = problems.first.first() {
        return Err(why.clone());
    }
    Ok(Dumped {
        superblock: reader.areas(),
        compressor: compressor(&superblock.compressor)?,
        fixes_space: superblock.has("space-fixup"),
        master: reader.of_master()?,
        lpt,
        index: index.found,
        scans: found.scans,
        ends: found.ends,
        nodes: found.nodes,
        buds: log.buds,
        log_head: log.head,
    })
}

fn not_modelled(superblock: &Superblock) -> Option<&'static str> {
    [
        (superblock.has("big-lpt"), "the big LPT of a volume this large"),
        (superblock.has("double-hash"), "a UBIFS with two hashes a name"),
        (superblock.has("encryption"), "an encrypted UBIFS"),
        (superblock.has("authentication"), "a UBIFS with authentication"),
        (superblock.key_hash != "r5", "a UBIFS with another hash than r5"),
        (superblock.fanout as usize != FANOUT, "a UBIFS with another fanout"),
        (superblock.journal_heads != DATA_HEADS, "a UBIFS with other journal heads"),
    ]
    .into_iter()
    .find_map(|(is_there, what)| is_there.then_some(what))
}

fn compressor(name: &str) -> Result<UbifsCompressor, String> {
    Ok(match name {
        "none" => UbifsCompressor::None,
        "lzo" => UbifsCompressor::Lzo,
        "zlib" => UbifsCompressor::Zlib,
        "zstd" => UbifsCompressor::Zstd,
        other => return Err(format!("UBIFS with {other} is not modelled")),
    })
}

fn too_high(inum: u32) -> String {
    format!("inode {inum}: up to {INODES_MAX} can be simulated")
}

/// What scans find.
#[derive(Default)]
struct Scans {
    scans: BTreeMap<u32, Vec<sim::fs::ubifs::Node>>,
    ends: BTreeMap<u32, u32>,
    nodes: BTreeMap<(u32, u32), Stored>,
}

/// The index and its leaves' keys.
struct IndexFound {
    found: DumpedIndex,
}

impl IndexFound {
    fn leaves(&self) -> impl Iterator<Item = (Key, (u32, u32))> + '_ {
        let leaves = self.found.nodes.iter().filter(|node| node.level == 0);
        let branches = leaves.flat_map(|node| &node.branches);
        branches.map(|branch| (branch.key, (branch.place.leb, branch.place.offset)))
    }
}

struct Reader<'a> {
    lebs: Lebs<'a>,
    superblock: &'a Superblock,
    master: &'a Master,
    /// Data nodes that were unpacked.
    number: u64,
}

impl Reader<'_> {
    fn areas(&self) -> geometry::Superblock {
        let found = self.superblock;
        geometry::Superblock {
            leb_bytes: found.leb_bytes,
            page_bytes: found.min_io_bytes,
            lebs: found.lebs,
            lebs_max: found.lebs_max,
            log_lebs: found.log_lebs,
            lpt_lebs: found.lpt_lebs,
            orphan_lebs: found.orphan_lebs,
            bud_bytes_max: found.journal_bytes,
            pool_bytes: found.reserved_bytes.min(u64::from(u32::MAX) * u64::from(found.leb_bytes)),
        }
    }

    fn is_main(&self, leb: u32) -> bool {
        (self.superblock.main_first()..self.superblock.lebs).contains(&leb)
    }

    fn is_of_lpt(&self, leb: u32) -> bool {
        let first = self.superblock.lpt_first();
        (first..first + self.superblock.lpt_lebs).contains(&leb)
    }

    fn check_master(&self, log: &Log, volume: u32) -> Result<(), String> {
        let (master, leb) = (self.master, self.superblock.leb_bytes);
        let wrong = |what: &str| Err(format!("master node: {what}"));
        let most = u64::from(self.superblock.lebs_max) * u64::from(leb);
        if self.superblock.journal_bytes > most {
            return Err("superblock: the bytes of its journal".to_owned());
        }
        if volume < self.superblock.lebs {
            return Err(format!("its volume has {volume} of {} LEBs", self.superblock.lebs));
        }
        if !self.is_main(master.index_head) || master.index_offset > leb {
            return wrong("its index head");
        }
        if master.gc_leb != u32::MAX && !self.is_main(master.gc_leb) {
            return wrong("its collector's LEB");
        }
        if !self.is_of_lpt(master.lpt_table.0)
            || !self.is_of_lpt(master.lpt_head.0)
            || master.lpt_head.1 > leb
        {
            return wrong("its LPT");
        }
        let log_lebs = LOG_LEB..LOG_LEB + self.superblock.log_lebs;
        if !log_lebs.contains(&log.head.0) || log.head.1 > leb {
            return wrong("its log");
        }
        let page = self.superblock.min_io_bytes;
        let places = [master.index_offset, master.lpt_head.1, master.offset];
        if places.iter().any(|offset| offset % page != 0) {
            return wrong("a place that is not at a page");
        }
        let starts = log.buds.iter().all(|bud| bud.start <= leb && bud.start % page == 0);
        if !starts || log.buds.iter().any(|bud| bud.head >= HEADS) {
            return Err("a reference of the log is wrong".to_owned());
        }
        Ok(())
    }

    /// Nothing is written where the kernel writes next. A mount after a power cut cleans that.
    fn check_heads(&self, log: &Log) -> Result<(), String> {
        let (superblock, master) = (self.superblock, self.master);
        for leb in [MASTER_LEB, MASTER_LEB + 1] {
            let end = MASTER_BYTES.next_multiple_of(superblock.min_io_bytes);
            self.check_blank(leb, master.offset.saturating_add(end))?;
        }
        for (leb, offset) in [log.head, master.lpt_head, (master.index_head, master.index_offset)] {
            self.check_blank(leb, offset)?;
        }
        for bud in &log.buds {
            let end = end_of_nodes(self.lebs.leb(bud.leb), bud.start);
            self.check_blank(bud.leb, end.next_multiple_of(superblock.min_io_bytes))?;
        }
        Ok(())
    }

    fn check_blank(&self, leb: u32, offset: u32) -> Result<(), String> {
        let bytes = self.lebs.leb(leb);
        match is_blank(part(bytes, offset as usize, bytes.len())) {
            true => Ok(()),
            false => Err(format!("LEB {leb}:{offset}: what is free is not blank")),
        }
    }

    fn of_master(&self) -> Result<sim::fs::ubifs::Master, String> {
        let master = self.master;
        let highest_inode = u32::try_from(master.highest_inode).ok();
        let highest_inode = highest_inode.filter(|inum| *inum <= INODES_MAX);
        Ok(sim::fs::ubifs::Master {
            is_clean: master.clean,
            offset: master.offset,
            commits: master.commit,
            highest_inode: highest_inode.ok_or("master node: its highest inode")?,
            log_tail: master.log_leb,
            index_head: (master.index_head, master.index_offset),
            gc_leb: (master.gc_leb != u32::MAX).then_some(master.gc_leb),
        })
    }

    fn lpt(&self) -> Result<DumpedLpt, String> {
        let (superblock, master) = (self.superblock, self.master);
        let (properties, nodes) = read_tree(self.lebs, superblock, master)?;
        if properties.len() != superblock.main_lebs as usize {
            return Err("the LPT does not have every LEB".to_owned());
        }
        let known = |lp: &super::properties_tree::Properties| DumpedProperties {
            free: lp.free,
            dirty: lp.dirty,
            index: lp.index,
        };
        let scanned = Some(master.lpt_scanned).filter(|leb| self.is_main(*leb));
        Ok(DumpedLpt {
            properties: properties.iter().map(known).collect(),
            nodes,
            areas: read_table(self.lebs, superblock, master.lpt_table)?,
            table: master.lpt_table,
            head: master.lpt_head,
            scanned: scanned.ok_or("master node: its last scan of the LPT")?,
        })
    }

    /// A place in the main area that a branch has.
    fn place(&self, fields: Fields<'_>, at: usize) -> Result<Place, String> {
        let [leb, offset, bytes] = [0, 4, 8].map(|more| fields.u32(at + more));
        let end = u64::from(offset) + u64::from(bytes);
        let fits = end <= u64::from(self.superblock.leb_bytes) && bytes <= u32::from(u16::MAX);
        if !self.is_main(leb) || !fits || offset % 8 != 0 {
            return Err(format!("LEB {leb}:{offset}: a branch of {bytes} bytes"));
        }
        Ok(Place { leb, offset, bytes })
    }

    fn index(&self) -> Result<IndexFound, String> {
        let (leb, offset, bytes) = self.master.root;
        let root = Place { leb, offset, bytes };
        let mut nodes: Vec<DumpedZnode> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut left = vec![(root, None::<(u32, usize, u8)>)];
        while let Some((place, parent)) = left.pop() {
            let Place { leb, offset, .. } = place;
            let wrong = |why: &str| format!("LEB {leb}:{offset}: index node: {why}");
            if !self.is_main(leb) || !seen.insert((leb, offset)) {
                return Err(wrong("two nodes refer to it"));
            }
            let node = self.znode(place).map_err(|why| wrong(&why))?;
            let number = u32::try_from(nodes.len()).map_err(|_| wrong("too many"))?;
            if let Some((above, slot, level)) = parent {
                let branch = &mut nodes[above as usize].branches[slot];
                branch.child = number;
                if node.level + 1 != level || node.branches[0].key < branch.key {
                    return Err(wrong("it does not fit below its parent"));
                }
            }
            if node.level > 0 {
                let below = node.branches.iter().enumerate().rev();
                let below = below.map(|(at, branch)| (branch.place, (number, at, node.level)));
                left.extend(below.map(|(place, parent)| (place, Some(parent))));
            }
            nodes.push(node);
        }
        let found = IndexFound { found: DumpedIndex { root, nodes } };
        let mut before = None;
        for (key, _) in found.leaves() {
            if before == Some(key) {
                return Err("a directory entry whose hash is taken is not modelled".to_owned());
            }
            if before.is_some_and(|before| before > key) {
                return Err("the keys of the index are not in order".to_owned());
            }
            before = Some(key);
        }
        Ok(found)
    }

    /// What the index refers to is neither free nor dirty.
    fn check_space(&self, lpt: &DumpedLpt, index: &IndexFound) -> Result<(), String> {
        let mut used: BTreeMap<u32, u64> = BTreeMap::new();
        let branches = index.found.nodes.iter().flat_map(|node| &node.branches);
        for place in branches.map(|branch| branch.place).chain([index.found.root]) {
            *used.entry(place.leb).or_default() += u64::from(place.bytes.next_multiple_of(8));
        }
        for (leb, bytes) in used {
            let lp = lpt.properties[(leb - self.superblock.main_first()) as usize];
            let all = bytes + u64::from(lp.free) + u64::from(lp.dirty);
            if all > u64::from(self.superblock.leb_bytes) {
                return Err(format!("LEB {leb}: {bytes} bytes used and {lp:?}"));
            }
        }
        Ok(())
    }

    fn znode(&self, place: Place) -> Result<DumpedZnode, String> {
        let node = node_of(self.lebs.leb(place.leb), place.offset, kind::INDEX)?;
        let (children, level) = (usize::from(node.fields.u16(24)), node.fields.u16(26));
        let bytes = index_node_bytes(children);
        if children == 0 || children > FANOUT || bytes != node.bytes || bytes != place.bytes {
            return Err(format!("{children} branches in {} bytes", node.bytes));
        }
        let level = u8::try_from(level).ok().filter(|level| *level < 32).ok_or("its level")?;
        let mut branches = Vec::new();
        for child in 0..children {
            let at = HEADER + child * BRANCH_AND_KEY;
            let place = self.place(node.fields, at)?;
            let key = index::key(node.fields, at + BRANCH);
            let child = if level == 0 { self.leaf(key, place)? } else { 0 };
            branches.push(DumpedBranch { key, place, child });
        }
        if branches.windows(2).any(|two| two[0].key > two[1].key) {
            return Err("its keys are not in order".to_owned());
        }
        Ok(DumpedZnode { level, branches })
    }

    /// The unpacked bytes of a leaf of data.
    fn leaf(&self, key: Key, place: Place) -> Result<u32, String> {
        if key.inum() > INODES_MAX {
            return Err(too_high(key.inum()));
        }
        let expected = match key {
            key if key.is_inode() => kind::INODE,
            key if key.is_data() => kind::DATA,
            key if key.is_attribute() => kind::XENT,
            _ => kind::DENT,
        };
        let node = node_of(self.lebs.leb(place.leb), place.offset, expected)?;
        if node.bytes != place.bytes || index::key(node.fields, 24) != key {
            return Err(format!("LEB {}:{}: another node", place.leb, place.offset));
        }
        Ok(if expected == kind::DATA { node.fields.u32(40) } else { 0 })
    }

    /// A LEB of the main area as ubifs_scan finds it.
    fn scan(
        &mut self,
        leb: u32,
        end: u32,
        bud: Option<&Bud>,
        wanted: &mut BTreeSet<(u32, u32)>,
        found: &mut Scans,
    ) -> Result<(), String> {
        let bytes = self.lebs.leb(leb);
        let mut scan = Vec::new();
        for (offset, node) in nodes(bytes, 0) {
            if offset + node.bytes > end {
                break;
            }
            let Some(known) = scanned(offset, node)? else { continue };
            scan.push(known);
            let is_new = bud.is_some_and(|bud| offset >= bud.start);
            if is_new && known.key.inum() > INODES_MAX {
                return Err(too_high(known.key.inum()));
            }
            if (wanted.remove(&(leb, offset)) || is_new) && node.kind != kind::INDEX {
                let what = self.what(node).map_err(|why| format!("LEB {leb}:{offset}: {why}"))?;
                let more_follow = node.fields.u8(21) == IN_GROUP;
                let stored = Stored { sequence: node.sequence, more_follow, what };
                found.nodes.insert((leb, offset), stored);
            }
        }
        found.scans.insert(leb, scan);
        if let Some(bud) = bud {
            found.ends.insert(leb, end_of_nodes(bytes, bud.start));
        }
        Ok(())
    }

    fn what(&mut self, node: Node<'_>) -> Result<What, String> {
        let fields = node.fields;
        Ok(match node.kind {
            kind::INODE => inode(fields)?,
            kind::DATA => self.data(fields)?,
            kind::TRUNCATION => {
                What::Truncation { old_bytes: fields.u64(40), new_bytes: fields.u64(48) }
            }
            _ => {
                let target = u32::try_from(fields.u64(40)).ok().filter(|inum| *inum <= INODES_MAX);
                let target = target.ok_or("the inode of a name")?;
                let name = unreplayed::name(fields);
                let is_wrong = matches!(name, b"" | b"." | b"..")
                    || name.len() > NAME_BYTES_MAX
                    || name.iter().any(|byte| matches!(byte, 0 | b'/'));
                if is_wrong {
                    return Err("a wrong name".to_owned());
                }
                What::Entry { name: name_text(name), target: (target != 0).then_some(target) }
            }
        })
    }

    fn data(&mut self, fields: Fields<'_>) -> Result<What, String> {
        let bytes = fields.u32(40);
        if bytes == 0 || u64::from(bytes) > BLOCK {
            return Err(format!("data: {bytes} bytes of a block of {BLOCK}"));
        }
        let packing = Packing::of_ubifs(fields.u16(44));
        let unpacked = unpack(packing, fields.part(48, fields.len()), bytes as usize)?;
        let start = u64::from(index::key(fields, 24).block()) * BLOCK;
        self.number += 1;
        Ok(What::Data(Contents::of_dump(self.number, start, unpacked)))
    }
}

/// A node as ubifs_scan keeps it; none for one that is not of the main area.
fn scanned(offset: u32, node: Node<'_>) -> Result<Option<sim::fs::ubifs::Node>, String> {
    let fields = node.fields;
    let (key, extra) = match node.kind {
        kind::INDEX => (index::key(fields, HEADER + BRANCH), u32::from(fields.u16(26))),
        kind::DATA => (index::key(fields, 24), fields.u32(40)),
        kind::TRUNCATION => (Key::truncation(fields.u32(24)), 0),
        kind::INODE | kind::DENT | kind::XENT => (index::key(fields, 24), 0),
        _ => return Ok(None),
    };
    let bytes = u16::try_from(node.bytes).map_err(|_| format!("a node of {}", node.bytes))?;
    let extra = u16::try_from(extra).map_err(|_| format!("data of {extra} bytes"))?;
    Ok(Some(sim::fs::ubifs::Node { offset, bytes, extra, key }))
}

fn inode(fields: Fields<'_>) -> Result<What, String> {
    let found = super::inode(fields)?;
    let data_bytes = fields.u32(112);
    let largest = BLOCK << BLOCK_BITS;
    if u64::from(data_bytes) > BLOCK || found.bytes > largest {
        return Err(format!("inode: {} bytes, {data_bytes} of data", found.bytes));
    }
    let kind = match FileKind::of_mode(found.mode) {
        _ if fields.u32(108) & XATTR_FLAG != 0 => Kind::Attribute,
        Some(FileKind::Folder) => Kind::Directory,
        Some(FileKind::Link) => Kind::Link(path_text(&found.target).into()),
        _ => Kind::File,
    };
    // The simulator counts neither the entries of a directory nor their bytes.
    let is_directory = kind == Kind::Directory;
    Ok(What::Inode {
        size_bytes: if is_directory { 0 } else { found.bytes },
        links: if is_directory { found.links.min(1) } else { found.links },
        kind,
        data_bytes,
    })
}
