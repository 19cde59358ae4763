//! The areas of a new UBIFS and the size of its journal.
//!
//! Mirrors fs/ubifs/sb.c (create_default_filesystem, validate_sb), super.c (init_constants_early,
//! init_constants_sb) and the geometry part of lpt.c (calc_dflt_lpt_geom) of Linux 6.1. Left out:
//! the big LPT model, which a volume of some gigabytes needs, and authentication.

use crate::fs::{FsError, Result};
use crate::ledger::SpaceTable;

/// Node sizes (ubifs-media.h): an inode without its data.
pub const INODE_BYTES: u32 = 160;
/// The head of a data node.
pub const DATA_HEADER_BYTES: u32 = 48;
/// A directory entry without its name.
pub const DENT_BYTES: u32 = 56;
/// A truncation.
pub const TRUNCATION_BYTES: u32 = 56;
/// A reference of the log to a LEB of the journal.
pub const REFERENCE_BYTES: u32 = 64;
/// The node that begins a commit's log.
pub const COMMIT_START_BYTES: u32 = 32;
/// The master node.
pub const MASTER_BYTES: u32 = 512;
/// The superblock.
pub const SUPERBLOCK_BYTES: u32 = 4096;
/// UBIFS_MAX_NODE_SZ: an inode with the longest symbolic link.
pub const LARGEST_NODE_BYTES: u32 = INODE_BYTES + 4096;
/// UBIFS_MAX_DATA_NODE_SZ.
pub const DATA_NODE_BYTES: u32 = DATA_HEADER_BYTES + 4096;
/// UBIFS_MAX_DENT_NODE_SZ, with a name of 255 bytes.
pub const DENT_NODE_BYTES_MAX: u32 = DENT_BYTES + 256;
/// MIN_WRITE_SZ.
pub const SMALLEST_WRITE_BYTES: u32 = DATA_HEADER_BYTES + 8;
/// UBIFS_MIN_LEB_SZ.
pub const LEB_BYTES_MIN: u32 = 15 * 1024;
/// UBIFS_MIN_LEB_CNT: superblock, two masters, log, LPT, orphans and nine main LEBs.
pub const LEBS_MIN: u32 = 1 + 2 + 2 + 2 + 1 + 9;

/// UBIFS_MIN_MAIN_LEBS. validate_sb demands as many besides the other areas.
const MAIN_LEBS_MIN: u32 = 9;

/// UBIFS_SB_LNUM.
pub const SUPERBLOCK_LEB: u32 = 0;
/// UBIFS_MST_LNUM, the first of two.
pub const MASTER_LEB: u32 = 1;
/// UBIFS_LOG_LNUM.
pub const LOG_LEB: u32 = 3;
/// The first index LEB of a new file system's main area (DEFAULT_IDX_LEB).
pub const FIRST_INDEX_LEB: u32 = 0;
/// Its first LEB of data.
pub const FIRST_DATA_LEB: u32 = 1;
/// Its first LEB of the collector.
pub const FIRST_GC_LEB: u32 = 2;

/// Children of a znode (DEFAULT_FANOUT).
pub const FANOUT: usize = 8;
/// Children of an LPT node, as a shift (UBIFS_LPT_FANOUT_SHIFT).
pub const LPT_FANOUT_SHIFT: u32 = 2;
/// UBIFS_LPT_FANOUT.
pub const LPT_FANOUT: u32 = 1 << LPT_FANOUT_SHIFT;
/// Journal heads: garbage collector, base, data.
pub const HEADS: usize = 3;
/// GCHD.
pub const GC_HEAD: usize = 0;
/// BASEHD.
pub const BASE_HEAD: usize = 1;
/// DATAHD.
pub const DATA_HEAD: usize = 2;
/// MIN_INDEX_LEBS.
pub const INDEX_LEBS_MIN: u32 = 2;

/// `DEFAULT_JNL_PERCENT`, `DEFAULT_MAX_JNL`.
const JOURNAL_PERCENT: u32 = 5;
const JOURNAL_BYTES_MAX: u32 = 32 << 20;
const JOURNAL_LEBS_MIN: u32 = 5;
const BUD_LEBS_MIN: u32 = 3;
/// CRC and type of an LPT node.
pub const LPT_HEADER_BITS: u32 = LPT_CRC_BITS + 4;
/// UBIFS_LPT_CRC_BITS.
pub const LPT_CRC_BITS: u32 = 16;

/// Rounds up to a multiple of `unit`, a power of two.
#[inline]
pub fn align(bytes: u32, unit: u32) -> u32 {
    (bytes + unit - 1) & !(unit - 1)
}

/// ubifs_idx_node_sz: the header, then key and place of each child.
#[inline]
pub fn index_node_bytes(children: usize) -> u32 {
    28 + 20 * children as u32
}

/// `dead_wm` of this minimal I/O unit.
pub fn dead_bytes(page_bytes: u32) -> u32 {
    align(SMALLEST_WRITE_BYTES, page_bytes)
}

/// `dark_wm`.
pub fn dark_bytes(page_bytes: u32) -> u32 {
    align(LARGEST_NODE_BYTES, page_bytes)
}

/// DEFAULT_RP_PERCENT, DEFAULT_MAX_RP_SIZE.
const RESERVED_PERCENT: u64 = 5;
const RESERVED_BYTES_MAX: u64 = 5 << 20;

/// What a superblock says of areas and limits.
#[derive(Clone, Copy, Debug)]
pub struct Superblock {
    /// `leb_size`.
    pub leb_bytes: u32,
    /// `min_io_size`.
    pub page_bytes: u32,
    /// `leb_cnt`.
    pub lebs: u32,
    /// `max_leb_cnt`.
    pub lebs_max: u32,
    /// `log_lebs`.
    pub log_lebs: u32,
    /// `lpt_lebs`.
    pub lpt_lebs: u32,
    /// `orph_lebs`.
    pub orphan_lebs: u32,
    /// `max_bud_bytes`.
    pub bud_bytes_max: u64,
    /// `rp_size`.
    pub pool_bytes: u64,
}

impl Superblock {
    /// LEBs that it has on a volume of so many (ubifs_read_superblock).
    pub fn grown(&self, volume: u32) -> u32 {
        self.lebs.max(volume.min(self.lebs_max))
    }

    /// The first LEB of the main area.
    pub fn main_first(&self) -> u32 {
        LOG_LEB + self.log_lebs + self.lpt_lebs + self.orphan_lebs
    }
}

/// Sizes of the LPT.
#[derive(Clone, Copy, Debug)]
pub struct LptGeometry {
    /// `lpt_first`.
    pub first_leb: u32,
    /// `lpt_lebs`.
    pub lebs: u32,
    /// Leaves: each has four LEBs (`pnode_cnt`).
    pub pnodes: u32,
    /// Levels above the leaves (`lpt_hght`).
    pub height: u32,
    /// `pnode_sz`.
    pub pnode_bytes: u32,
    /// `nnode_sz`.
    pub nnode_bytes: u32,
    /// `ltab_sz`.
    pub table_bytes: u32,
    /// The size of the tree with padding at LEB ends (`lpt_sz`).
    pub total_bytes: u32,
}

/// Areas and limits of one file system.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// `leb_size`.
    pub leb_bytes: u32,
    /// `min_io_size` and `max_write_size`: a NAND page.
    pub page_bytes: u32,
    /// `log_lebs`.
    pub log_lebs: u32,
    /// `main_first`.
    pub main_first: u32,
    /// `main_lebs`.
    pub main_lebs: u32,
    /// Journal bytes at which writers wait for a commit (`max_bud_bytes`).
    pub bud_bytes_max: u64,
    /// Journal bytes at which a background commit starts (`bg_bud_bytes`).
    pub bud_bytes_background: u64,
    /// `dead_wm`: less space than this is useless.
    pub dead_bytes: u32,
    /// `dark_wm`: less space than this may be useless.
    pub dark_bytes: u32,
    /// What is kept for root (`rp_size`).
    pub pool_bytes: u64,
    /// The LPT's sizes.
    pub lpt: LptGeometry,
}

/// fls.
pub fn bits(value: u32) -> u32 {
    u32::BITS - value.leading_zeros()
}

/// Levels of an LPT over so many leaves (do_calc_lpt_geom).
pub fn lpt_height(pnodes: u32) -> u32 {
    let (mut height, mut reach) = (1, u64::from(LPT_FANOUT));
    while reach < u64::from(pnodes) {
        height += 1;
        reach <<= LPT_FANOUT_SHIFT;
    }
    height
}

/// Bytes of an LPT's leaf and of a node above it. In the big model a node has a number of
/// `number_bits` too.
pub fn lpt_node_bytes(leb_bytes: u32, lpt_lebs: u32, number_bits: u32) -> (u32, u32) {
    let header = LPT_HEADER_BITS + number_bits;
    let space_bits = bits(leb_bytes) - 3;
    let branch_bits = bits(lpt_lebs) + bits(leb_bytes - 1);
    let pnode = (header + (space_bits * 2 + 1) * LPT_FANOUT).div_ceil(8);
    (pnode, (header + branch_bits * LPT_FANOUT).div_ceil(8))
}

/// do_calc_lpt_geom for the small model, of a main area that can grow to `main_lebs_max`.
fn lpt_geometry(
    (leb_bytes, page_bytes): (u32, u32),
    (main_lebs, main_lebs_max): (u32, u32),
    lpt_lebs: u32,
) -> LptGeometry {
    let pnodes = main_lebs.div_ceil(LPT_FANOUT);
    let height = lpt_height(main_lebs_max.div_ceil(LPT_FANOUT));
    let (mut nnodes, mut row) = (0, pnodes);
    for _ in 0..height {
        row = row.div_ceil(LPT_FANOUT);
        nnodes += row;
    }
    let (pnode_bytes, nnode_bytes) = lpt_node_bytes(leb_bytes, lpt_lebs, 0);
    let table_bytes = (LPT_HEADER_BITS + lpt_lebs * bits(leb_bytes) * 2).div_ceil(8);
    let nodes_bytes = pnodes * pnode_bytes + nnodes * nnode_bytes + table_bytes;
    let per_leb = pnode_bytes.max(nnode_bytes);
    let (mut size, mut wasted) = (nodes_bytes + per_leb, per_leb);
    while size > leb_bytes {
        size = size + per_leb - leb_bytes;
        wasted += per_leb;
    }
    wasted += align(size, page_bytes) - size;
    LptGeometry {
        first_leb: 0,
        lebs: lpt_lebs,
        pnodes,
        height,
        pnode_bytes,
        nnode_bytes,
        table_bytes,
        total_bytes: nodes_bytes + wasted,
    }
}

/// calc_dflt_lpt_geom: grows the LPT area until it holds the tree four times. The kernel chooses
/// the model first, for an area of two LEBs: it is big if the tree does not fit into one LEB.
fn default_lpt(leb_bytes: u32, page_bytes: u32, others: u32) -> Result<(LptGeometry, u32)> {
    let mut lebs = 2;
    for _ in 0..64 {
        let main = others.saturating_sub(lebs).max(1);
        let lpt = lpt_geometry((leb_bytes, page_bytes), (main, main), lebs);
        if lebs == 2 && lpt.total_bytes > leb_bytes {
            return Err(FsError::NotModelled("the big LPT of a volume this large"));
        }
        let needed = (lpt.total_bytes * 4).div_ceil(leb_bytes);
        if needed <= lebs {
            return Ok((lpt, main));
        }
        lebs = needed;
    }
    Err(FsError::NotModelled("an LPT of this shape"))
}

impl Geometry {
    /// The default geometry on a volume of at least `LEBS_MIN` LEBs.
    pub fn new(leb_bytes: u32, lebs: u32, page_bytes: u32) -> Result<Geometry> {
        assert!(lebs >= LEBS_MIN, "the partition was checked");
        let mut journal = (lebs * JOURNAL_PERCENT / 100).max(JOURNAL_LEBS_MIN);
        if u64::from(journal) * u64::from(leb_bytes) > u64::from(JOURNAL_BYTES_MAX) {
            journal = JOURNAL_BYTES_MAX / leb_bytes;
        }
        let reference = align(REFERENCE_BYTES, page_bytes);
        let mut log_lebs = (2 * reference * journal).div_ceil(leb_bytes) + 1;
        let mut lebs_min = LEBS_MIN;
        if lebs - lebs_min > 8 {
            log_lebs += 1;
            lebs_min += 1;
        }
        let buds = journal.saturating_sub(log_lebs).max(BUD_LEBS_MIN);
        let orphan_lebs = 1 + u32::from(lebs - lebs_min > 1);
        let others = lebs - LOG_LEB - log_lebs - orphan_lebs;
        let (mut lpt, main_lebs) = default_lpt(leb_bytes, page_bytes, others)?;
        lpt.first_leb = LOG_LEB + log_lebs;
        if main_lebs < MAIN_LEBS_MIN || buds > main_lebs {
            return Err(FsError::too_small(format!(
                "UBIFS has no room for its main area in {lebs} LEBs of {leb_bytes} bytes"
            )));
        }
        let main_bytes = u64::from(main_lebs) * u64::from(leb_bytes);
        let geometry = Geometry {
            leb_bytes,
            page_bytes,
            log_lebs,
            main_first: lebs - main_lebs,
            main_lebs,
            bud_bytes_max: 0,
            bud_bytes_background: 0,
            dead_bytes: dead_bytes(page_bytes),
            dark_bytes: dark_bytes(page_bytes),
            pool_bytes: (main_bytes * RESERVED_PERCENT / 100).min(RESERVED_BYTES_MAX),
            lpt,
        };
        Ok(geometry.with_buds(u64::from(buds) * u64::from(leb_bytes)))
    }

    /// What a superblock says, after it has grown to `lebs`.
    pub fn of_superblock(found: &Superblock, lebs: u32) -> Geometry {
        let Superblock { leb_bytes, page_bytes, log_lebs, lpt_lebs, .. } = *found;
        let main_first = found.main_first();
        let main_lebs = lebs - main_first;
        let main_lebs_max = found.lebs_max.max(lebs) - main_first;
        let pages = (leb_bytes, page_bytes);
        let mut lpt = lpt_geometry(pages, (main_lebs, main_lebs_max), lpt_lebs);
        lpt.first_leb = LOG_LEB + log_lebs;
        let geometry = Geometry {
            leb_bytes,
            page_bytes,
            log_lebs,
            main_first,
            main_lebs,
            bud_bytes_max: 0,
            bud_bytes_background: 0,
            dead_bytes: dead_bytes(page_bytes),
            dark_bytes: dark_bytes(page_bytes),
            pool_bytes: found.pool_bytes,
            lpt,
        };
        geometry.with_buds(found.bud_bytes_max)
    }

    /// With the limits of the journal (init_constants_sb).
    fn with_buds(self, bud_bytes_max: u64) -> Geometry {
        let least = (HEADS as u64 + 1) * u64::from(self.leb_bytes) + 1;
        Geometry {
            bud_bytes_max: bud_bytes_max.max(least + u64::from(self.leb_bytes)),
            bud_bytes_background: ((bud_bytes_max * 13) >> 4).max(least),
            ..self
        }
    }

    /// Takes the areas besides the main area.
    pub fn account(&self, table: &mut SpaceTable) {
        for (name, lebs) in [
            ("superblock", MASTER_LEB - SUPERBLOCK_LEB),
            ("master nodes", LOG_LEB - MASTER_LEB),
            ("log", self.log_lebs),
            ("LEB properties (LPT)", self.lpt.lebs),
            ("orphans", self.main_first - self.orphans_first()),
        ] {
            table.take_units("ubifs", name, lebs, self.leb_bytes);
        }
        let leb_bytes = u64::from(self.leb_bytes);
        table.tell("main_bytes", u64::from(self.main_lebs) * leb_bytes);
        table.tell("bud_bytes", self.bud_bytes_max);
        table.tell("journal_bytes", u64::from(self.log_lebs) * leb_bytes + self.bud_bytes_max);
    }

    /// The first LEB of the orphan area (`orph_first`), which ends where the main area begins.
    pub fn orphans_first(&self) -> u32 {
        self.lpt.first_leb + self.lpt.lebs
    }

    /// ubifs_next_log_lnum.
    pub fn next_log_leb(&self, leb: u32) -> u32 {
        if leb + 1 < LOG_LEB + self.log_lebs {
            leb + 1
        } else {
            LOG_LEB
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of LEBs of superblock and masters, log, LPT, orphans and main area, then the
    /// limits of buds.
    fn areas(g: &Geometry) -> [u64; 7] {
        let orphans = g.main_first - g.lpt.first_leb - g.lpt.lebs;
        let lebs = [g.log_lebs, g.lpt.lebs, orphans, g.main_first, g.main_lebs].map(u64::from);
        let [log, lpt, orphans, first, main] = lebs;
        [log, lpt, orphans, first, main, g.bud_bytes_max, g.bud_bytes_background]
    }

    fn tree(g: &Geometry) -> [u32; 6] {
        let LptGeometry { pnodes, height, pnode_bytes, nnode_bytes, .. } = g.lpt;
        [pnodes, height, pnode_bytes, nnode_bytes, g.lpt.table_bytes, g.lpt.total_bytes]
    }

    /// 356 LEBs of 126 pages of 2 KiB: the journal is 5 %, 17 LEBs; the log is ceil(2 * 2048 * 17 /
    /// 129024) + 1 + 1 LEBs.
    #[test]
    fn the_emulated_board_has_the_areas_its_kernel_shows() {
        let g = Geometry::new(126 * 1024, 356, 2048).expect("it fits");
        let leb = 126 * 1024;
        assert_eq!(areas(&g), [3, 2, 2, 10, 346, 14 * leb, 14 * leb * 13 / 16]);
        assert_eq!((g.dead_bytes, g.dark_bytes), (2048, 6144));
    }

    /// 176 LEBs of 62 pages of 4 KiB.
    ///
    /// Journal: 176 * 5 / 100 = 8. Log: ceil(2 * 4096 * 8 / 253952) + 1 + 1 = 3, so five buds. The
    /// background commit starts at 13/16 of them. Orphans take two LEBs, which leaves 168.
    ///
    /// LPT: 166 / 4 = 42 pnodes under 11 + 3 + 1 nnodes. With 15 bits of space a pnode has
    /// (16 + 4 + 4 * 31) / 8 = 18 bytes, an nnode (20 + 4 * (2 + 18)) / 8 = 13, and the table (20 +
    /// 2 * 2 * 18) / 8 = 12. With one node of waste that is 981 bytes, so a page. Four times that
    /// is less than the minimum of two LEBs.
    #[test]
    fn pages_of_4_kib_have_the_areas_the_kernels_formulas_give() {
        let leb = 62 * 4096;
        let g = Geometry::new(leb as u32, 176, 4096).expect("it fits");
        let most = 5 * leb + 1; // (jhead_cnt + 1) LEBs, a byte, and another LEB
        assert_eq!(areas(&g), [3, 2, 2, 10, 166, most, 5 * leb * 13 / 16]);
        assert_eq!(tree(&g), [42, 3, 18, 13, 12, 4096]);
        assert_eq!((g.dead_bytes, g.dark_bytes), (4096, 8192));
        assert_eq!(align(REFERENCE_BYTES, g.page_bytes), 4096);
    }

    /// 356 LEBs of 31 pages of 512 bytes.
    ///
    /// Journal: 17. Log: ceil(2 * 512 * 17 / 15872) + 1 + 1 = 4, which leaves 347. LPT: 345 / 4 =
    /// 87 pnodes under 22 + 6 + 2 + 1 nnodes. They have (20 + 4 * 23) / 8 = 14 and (20 + 4 * 16) /
    /// 8 = 11 bytes, and the table (20 + 2 * 2 * 14) / 8 = 10. With 14 bytes of waste that is 1,583
    /// bytes.
    #[test]
    fn pages_of_512_bytes_have_the_areas_the_kernels_formulas_give() {
        let leb = 31 * 512;
        let g = Geometry::new(leb as u32, 356, 512).expect("it fits");
        assert_eq!(areas(&g), [4, 2, 2, 11, 345, 13 * leb, 13 * leb * 13 / 16]);
        assert_eq!(tree(&g), [87, 4, 14, 11, 10, 2048]);
        assert_eq!((g.dead_bytes, g.dark_bytes), (512, 4608));
    }

    /// With one more LEB the tree does not fit into one LEB, and the kernel chooses the big model.
    #[test]
    fn volumes_of_more_than_these_lebs_have_the_big_lpt() {
        for (leb_bytes, page_bytes, most) in
            [(15_872, 512, 3605), (126_976, 2048, 24_190), (129_024, 2048, 24_582)]
        {
            let fits = |lebs| Geometry::new(leb_bytes, lebs, page_bytes).is_ok();
            assert_eq!((fits(most), fits(most + 1)), (true, false), "{leb_bytes}");
        }
    }

    /// UBIFS_MIN_LEB_CNT leaves a main area of nine LEBs at any page size.
    #[test]
    fn the_fewest_lebs_leave_the_smallest_main_area() {
        for (leb_bytes, page_bytes) in [(15_872, 512), (129_024, 2048), (253_952, 4096)] {
            let g = Geometry::new(leb_bytes, LEBS_MIN, page_bytes).expect("the least");
            assert_eq!((g.log_lebs, g.lpt.lebs, g.main_lebs), (2, 2, MAIN_LEBS_MIN));
        }
    }

    /// LEBs of one page, which no UBI makes: the references of a journal of five LEBs take ten of
    /// the seventeen.
    #[test]
    fn a_log_that_leaves_no_main_area_is_refused() {
        let refused = Geometry::new(16_384, LEBS_MIN, 16_384);
        assert!(matches!(refused, Err(FsError::TooSmall(_))));
    }
}
