//! The superblock and the master node (validate_sb, validate_master).

use super::nodes::{kind, node_of, nodes, Node};
use crate::bytes::uuid_text;
use crate::lebs::Lebs;
use crate::problems::Problems;
use serde::Serialize;
use sim::fs::ubifs::geometry::{LEBS_MIN, LEB_BYTES_MIN, LOG_LEB, MASTER_LEB, SUPERBLOCK_LEB};

/// A larger LEB no chip has.
const LEB_BYTES_MAX: u32 = 16 << 20;
/// Nor more LEBs.
const LEBS_MAX: u32 = 1 << 20;
/// The newest format that is read (UBIFS_FORMAT_VERSION).
const FORMAT_MAX: u32 = 5;
/// UBIFS_FLG_* by bit.
const FLAGS: [(u32, &str); 5] = [
    (2, "big-lpt"),
    (4, "space-fixup"),
    (8, "double-hash"),
    (16, "encryption"),
    (32, "authentication"),
];
/// UBIFS_MST_*.
const MASTER_DIRTY: u32 = 1;
const MASTER_NO_ORPHANS: u32 = 2;

/// What a superblock says.
#[derive(Clone, Debug, Serialize)]
pub struct Superblock {
    /// `fmt_version`.
    pub format_version: u32,
    /// `ro_compat_version`.
    pub ro_compat_version: u32,
    /// The hash of names: `r5` or `test`.
    pub key_hash: String,
    /// The compressor of new data.
    pub compressor: String,
    /// Its flags.
    pub flags: Vec<&'static str>,
    /// `min_io_size`.
    pub min_io_bytes: u32,
    /// `leb_size`.
    pub leb_bytes: u32,
    /// LEBs that it takes now.
    pub lebs: u32,
    /// LEBs that it can grow to.
    pub lebs_max: u32,
    /// LEBs of the log.
    pub log_lebs: u32,
    /// LEBs of the LPT.
    pub lpt_lebs: u32,
    /// LEBs of the orphans.
    pub orphan_lebs: u32,
    /// LEBs of the main area.
    pub main_lebs: u32,
    /// The most bytes of the journal.
    pub journal_bytes: u64,
    /// Heads of the journal.
    pub journal_heads: u32,
    /// Children of an index node.
    pub fanout: u32,
    /// Bytes kept for root.
    pub reserved_bytes: u64,
    /// The unit of its times.
    pub time_granularity_ns: u32,
    /// Its identifier.
    pub uuid: String,
}

impl Superblock {
    /// The first LEB of the LPT area.
    pub fn lpt_first(&self) -> u32 {
        LOG_LEB + self.log_lebs
    }

    /// The first LEB of the main area.
    pub fn main_first(&self) -> u32 {
        self.lebs - self.main_lebs
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

/// A compressor of UBIFS by its number.
pub fn compressor(number: u16) -> String {
    match number {
        0 => "none".to_owned(),
        1 => "lzo".to_owned(),
        2 => "zlib".to_owned(),
        3 => "zstd".to_owned(),
        _ => format!("compressor {number}"),
    }
}

/// Reads the superblock of LEB 0.
pub fn read_superblock(first_leb: &[u8]) -> Result<Superblock, String> {
    let fields = node_of(first_leb, 0, kind::SUPERBLOCK)
        .map_err(|why| format!("LEB {SUPERBLOCK_LEB}: {why}"))?
        .fields;
    let [log_lebs, lpt_lebs, orphan_lebs] = [56, 60, 64].map(|at| fields.u32(at));
    let lebs = fields.u32(40);
    let areas = [LOG_LEB, log_lebs, lpt_lebs, orphan_lebs];
    let taken = areas.into_iter().fold(0, u32::saturating_add);
    let found = Superblock {
        format_version: fields.u32(80),
        ro_compat_version: fields.u32(124),
        key_hash: match fields.u8(26) {
            0 => "r5".to_owned(),
            1 => "test".to_owned(),
            other => format!("hash {other}"),
        },
        compressor: compressor(fields.u16(84)),
        flags: FLAGS
            .into_iter()
            .filter(|(bit, _)| fields.u32(28) & bit != 0)
            .map(|(_, name)| name)
            .collect(),
        min_io_bytes: fields.u32(32),
        leb_bytes: fields.u32(36),
        lebs,
        lebs_max: fields.u32(44),
        log_lebs,
        lpt_lebs,
        orphan_lebs,
        main_lebs: lebs.saturating_sub(taken),
        journal_bytes: fields.u64(48),
        journal_heads: fields.u32(68),
        fanout: fields.u32(72),
        reserved_bytes: fields.u64(96),
        time_granularity_ns: fields.u32(104),
        uuid: uuid_text(fields.part(108, 16)),
    };
    check(&found, fields.u8(27)).map_err(|why| format!("LEB 0: superblock: {why}"))?;
    Ok(found)
}

fn check(found: &Superblock, key_format: u8) -> Result<(), String> {
    let wrong = |name: &str, value: u64| Err(format!("{name} is {value}"));
    if found.format_version > FORMAT_MAX && found.ro_compat_version > 0 {
        return wrong("its format", found.format_version.into());
    }
    if key_format != 0 {
        return wrong("the format of its keys", key_format.into());
    }
    if !found.min_io_bytes.is_power_of_two() || found.min_io_bytes < 8 {
        return wrong("the smallest write", found.min_io_bytes.into());
    }
    let leb = found.leb_bytes;
    let sizes = LEB_BYTES_MIN..=LEB_BYTES_MAX;
    if !sizes.contains(&leb) || leb % 8 != 0 || leb % found.min_io_bytes != 0 {
        return wrong("the size of a LEB", leb.into());
    }
    if found.lebs > found.lebs_max {
        return wrong("the number of LEBs", found.lebs.into());
    }
    if !(LEBS_MIN..=LEBS_MAX).contains(&found.lebs_max) {
        return wrong("the largest number of LEBs", found.lebs_max.into());
    }
    let areas =
        [("the log", found.log_lebs), ("the LPT", found.lpt_lebs), ("orphans", found.orphan_lebs)];
    for (name, lebs) in areas {
        if lebs == 0 || lebs >= found.lebs {
            return wrong(&format!("the number of LEBs of {name}"), lebs.into());
        }
    }
    if found.main_lebs == 0 {
        return Err("no LEB is left for files".to_owned());
    }
    if !(3..=1024).contains(&found.fanout) {
        return wrong("its fanout", found.fanout.into());
    }
    Ok(())
}

/// What a master node says.
#[derive(Clone, Debug, Serialize)]
pub struct Master {
    /// Commits so far.
    pub commit: u64,
    /// Whether it was unmounted: else its journal has to be replayed.
    pub clean: bool,
    /// Whether orphans may be there.
    pub orphans: bool,
    /// The highest inode number.
    pub highest_inode: u64,
    /// Where the root of the index is: LEB, offset and bytes.
    pub root: (u32, u32, u32),
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Free bytes of the main area.
    pub free_bytes: u64,
    /// Its dirty bytes.
    pub dirty_bytes: u64,
    /// Bytes of its nodes, without the index.
    pub used_bytes: u64,
    /// Bytes too few for a node.
    pub dead_bytes: u64,
    /// Bytes that may be too few for one.
    pub dark_bytes: u64,
    /// LEBs without a node.
    pub empty_lebs: u32,
    /// LEBs of the index.
    pub index_lebs: u32,
    /// LEBs when it was written.
    pub lebs: u32,
    /// The LEB where the log begins.
    #[serde(skip)]
    pub log_leb: u32,
    /// The collector's LEB.
    #[serde(skip)]
    pub gc_leb: u32,
    /// The LEB to which the index is written.
    #[serde(skip)]
    pub index_head: u32,
    /// The root of the LPT.
    #[serde(skip)]
    pub lpt: (u32, u32),
    /// Where it is in its LEB.
    #[serde(skip)]
    pub offset: u32,
    /// The offset to which the index is written.
    #[serde(skip)]
    pub index_offset: u32,
    /// Where the LPT is written.
    #[serde(skip)]
    pub lpt_head: (u32, u32),
    /// Where the table of the LPT's LEBs is.
    #[serde(skip)]
    pub lpt_table: (u32, u32),
    /// Where the last scan of the LPT ended.
    #[serde(skip)]
    pub lpt_scanned: u32,
}

/// The newest master node of the two LEBs that have them (ubifs_recover_master_node).
pub fn read_master(lebs: Lebs<'_>, problems: &mut Problems) -> Result<Master, String> {
    let mut newest: Option<(u32, Node<'_>)> = None;
    for number in MASTER_LEB..=MASTER_LEB + 1 {
        let leb = lebs.leb(number);
        let masters = nodes(leb, 0).filter(|(_, node)| node.kind == kind::MASTER);
        match masters.last() {
            Some((at, node)) if newest.is_none_or(|(_, known)| known.sequence < node.sequence) => {
                newest = Some((at, node));
            }
            Some(_) => {}
            None => {
                let why = node_of(leb, 0, kind::MASTER).err().unwrap_or_default();
                problems.add(format!("LEB {number}: {why}"));
            }
        }
    }
    let Some((offset, node)) = newest else {
        return Err(format!("LEB {MASTER_LEB} and {}: no master node", MASTER_LEB + 1));
    };
    let fields = node.fields;
    let flags = fields.u32(40);
    Ok(Master {
        commit: fields.u64(32),
        clean: flags & MASTER_DIRTY == 0,
        orphans: flags & MASTER_NO_ORPHANS == 0,
        highest_inode: fields.u64(24),
        root: (fields.u32(48), fields.u32(52), fields.u32(56)),
        index_bytes: fields.u64(72),
        free_bytes: fields.u64(80),
        dirty_bytes: fields.u64(88),
        used_bytes: fields.u64(96),
        dead_bytes: fields.u64(104),
        dark_bytes: fields.u64(112),
        empty_lebs: fields.u32(156),
        index_lebs: fields.u32(160),
        lebs: fields.u32(164),
        log_leb: fields.u32(44),
        gc_leb: fields.u32(60),
        index_head: fields.u32(64),
        lpt: (fields.u32(120), fields.u32(124)),
        offset,
        index_offset: fields.u32(68),
        lpt_head: (fields.u32(128), fields.u32(132)),
        lpt_table: (fields.u32(136), fields.u32(140)),
        lpt_scanned: fields.u32(152),
    })
}
