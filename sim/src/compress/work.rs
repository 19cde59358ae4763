//! What compressors have to do, and what that costs: the counts by which their time is told.
//!
//! A compressor's time is a sum over what its loops do, each at a price of the board (`[software]`,
//! docs/calibration.md). The counts are those of lib/lzo, lib/zlib_deflate, lib/zstd and
//! fs/jffs2/compr_rtime.c of Linux 6.1, taken where the same is done here for the size. Unpacking
//! is told by its bytes: those that are read, and those that matches make of them.
//!
//! Left out: what the caches of a CPU do; lzo-2.02's own prices are counted like those of LZO, but
//! have a table of their own.
//!
//! Invariant: a compressor that a board has no prices for gives no time, but its name.

use crate::units::Ns;
use serde::Deserialize;

/// What LZO does with a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LzoWork {
    /// Positions at which a match was looked for.
    pub searched: u32,
    /// Matches that were found.
    pub matches: u32,
    /// Bytes in them.
    pub matched_bytes: u32,
    /// Bytes in none.
    pub literal_bytes: u32,
}

/// What deflate does with a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateWork {
    /// Bytes that were copied into the window.
    pub bytes: u32,
    /// Turns of the search: literals and matches.
    pub positions: u32,
    /// Positions entered into the hashes.
    pub inserted: u32,
    /// Earlier positions of the same hash that were looked at.
    pub candidates: u32,
    /// Bytes compared with them that were the same.
    pub compared_bytes: u32,
    /// Blocks that were ended.
    pub blocks: u32,
    /// Leaves of their trees.
    pub symbols: u32,
    /// Literals and matches written with codes.
    pub coded: u32,
    /// The window was moved, and every hash changed (`fill_window`).
    pub slides: u32,
}

/// What zstd does with the literals of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiteralsWork {
    /// Bytes whose values were counted (`HIST_count`).
    pub counted: u32,
    /// Values of these that a Huffman code was made for, whether it was used or not.
    pub symbols: u32,
    /// Bytes written in that code.
    pub coded: u32,
}

/// What zstd does with a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZstdWork {
    /// Positions at which a match was looked for.
    pub searched: u32,
    /// Matches that were found.
    pub sequences: u32,
    /// Bytes in them.
    pub matched_bytes: u32,
    /// Its literals.
    pub literals: LiteralsWork,
    /// Whether its sequences were coded, in which a block of zstd ends unless there is none.
    pub is_coded: bool,
}

/// What rtime does with a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtimeWork {
    /// Bytes that were written as they are, each with the length of the run after it.
    pub pairs: u32,
    /// Bytes in those runs.
    pub run_bytes: u32,
}

/// Of every compressor that was tried on a piece, what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Work {
    pub lzo: Option<LzoWork>,
    pub lzo_2_02: Option<LzoWork>,
    pub deflate: Option<DeflateWork>,
    pub zstd: Option<ZstdWork>,
    pub rtime: Option<RtimeWork>,
}

/// What a packed node has to be unpacked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packing {
    Lzo,
    Lzo202,
    Deflate,
    Zstd,
    Rtime,
}

impl Packing {
    /// As messages call it.
    pub const fn name(self) -> &'static str {
        match self {
            Packing::Lzo => "lzo",
            Packing::Lzo202 => "lzo-2.02",
            Packing::Deflate => "zlib",
            Packing::Zstd => "zstd",
            Packing::Rtime => "rtime",
        }
    }
}

/// Unpacking: a piece, a byte that is read, a byte that comes out besides.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpackCosts {
    /// One piece: checks, tables, codes.
    pub node_ns: Ns,
    /// One packed byte, in picoseconds: literals, codes.
    pub packed_byte_ps: u64,
    /// One byte that comes out and was not stored, in picoseconds: a copy of earlier ones.
    pub saved_byte_ps: u64,
}

impl UnpackCosts {
    fn time(&self, packed_bytes: u32, bytes: u32) -> Ns {
        let packed = Ns::from_ps(u64::from(packed_bytes), self.packed_byte_ps);
        self.node_ns + packed + Ns::from_ps((bytes - packed_bytes).into(), self.saved_byte_ps)
    }
}

/// LZO's prices.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LzoCosts {
    /// One piece: its dictionary is emptied.
    pub node_ns: Ns,
    /// Looking for a match at one position.
    pub search_ns: Ns,
    /// Writing one match.
    pub match_ns: Ns,
    /// One byte of a match, in picoseconds.
    pub matched_byte_ps: u64,
    /// One byte outside, in picoseconds.
    pub literal_byte_ps: u64,
    /// Unpacking.
    pub unpack: UnpackCosts,
}

impl LzoCosts {
    fn time(&self, work: &LzoWork) -> Ns {
        self.node_ns
            + self.search_ns * u64::from(work.searched)
            + self.match_ns * u64::from(work.matches)
            + Ns::from_ps(work.matched_bytes.into(), self.matched_byte_ps)
            + Ns::from_ps(work.literal_bytes.into(), self.literal_byte_ps)
    }
}

/// Deflate's prices.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeflateCosts {
    /// One piece: the hashes are emptied.
    pub node_ns: Ns,
    /// One byte, in picoseconds: into the window, and its checksum.
    pub byte_ps: u64,
    /// One turn of the search: a literal or a match is counted.
    pub position_ns: Ns,
    /// One position entered into the hashes, in picoseconds.
    pub insert_ps: u64,
    /// One earlier position looked at, in picoseconds.
    pub candidate_ps: u64,
    /// One byte compared, in picoseconds.
    pub compared_byte_ps: u64,
    /// One block, besides its symbols.
    pub block_ns: Ns,
    /// One leaf of a block's trees.
    pub symbol_ns: Ns,
    /// One literal or match that is written with its code, in picoseconds.
    pub code_ps: u64,
    /// Moving the window.
    pub slide_ns: Ns,
    /// Unpacking (lib/zlib_inflate).
    pub unpack: UnpackCosts,
    /// Unpacking: making the tables of a block that has codes of its own.
    pub unpack_codes_ns: Ns,
}

impl DeflateCosts {
    fn time(&self, work: &DeflateWork) -> Ns {
        self.node_ns
            + Ns::from_ps(work.bytes.into(), self.byte_ps)
            + self.position_ns * u64::from(work.positions)
            + Ns::from_ps(work.inserted.into(), self.insert_ps)
            + Ns::from_ps(work.candidates.into(), self.candidate_ps)
            + Ns::from_ps(work.compared_bytes.into(), self.compared_byte_ps)
            + self.block_ns * u64::from(work.blocks)
            + self.symbol_ns * u64::from(work.symbols)
            + Ns::from_ps(work.coded.into(), self.code_ps)
            + self.slide_ns * u64::from(work.slides)
    }
}

/// zstd's prices.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZstdCosts {
    /// One piece: parameters, tables.
    pub node_ns: Ns,
    /// Looking for a match at one position.
    pub search_ns: Ns,
    /// One sequence: its lengths and offset, stored and coded.
    pub sequence_ns: Ns,
    /// One byte of a match, in picoseconds.
    pub matched_byte_ps: u64,
    /// Counting the value of one literal, in picoseconds.
    pub literal_byte_ps: u64,
    /// One value in a Huffman code for literals.
    pub symbol_ns: Ns,
    /// One literal put into that code, in picoseconds.
    pub huffman_byte_ps: u64,
    /// Codes for the sequences of a block.
    pub codes_ns: Ns,
    /// Unpacking.
    pub unpack: UnpackCosts,
}

impl ZstdCosts {
    fn time(&self, work: &ZstdWork) -> Ns {
        let searched = self.node_ns
            + self.search_ns * u64::from(work.searched)
            + self.sequence_ns * u64::from(work.sequences)
            + Ns::from_ps(work.matched_bytes.into(), self.matched_byte_ps);
        let literals = Ns::from_ps(work.literals.counted.into(), self.literal_byte_ps)
            + self.symbol_ns * u64::from(work.literals.symbols)
            + Ns::from_ps(work.literals.coded.into(), self.huffman_byte_ps);
        searched + literals + if work.is_coded { self.codes_ns } else { Ns::ZERO }
    }
}

/// rtime's prices.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RtimeCosts {
    /// One piece: its table is emptied.
    pub node_ns: Ns,
    /// One byte with the length of a run.
    pub pair_ns: Ns,
    /// One byte of a run, in picoseconds.
    pub run_byte_ps: u64,
    /// Unpacking.
    pub unpack: UnpackCosts,
}

impl RtimeCosts {
    fn time(&self, work: &RtimeWork) -> Ns {
        let runs = Ns::from_ps(work.run_bytes.into(), self.run_byte_ps);
        self.node_ns + self.pair_ns * u64::from(work.pairs) + runs
    }
}

/// What compressors cost on a board: none of one that nobody has measured there.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct CompressorCosts {
    pub lzo: Option<LzoCosts>,
    pub lzo_2_02: Option<LzoCosts>,
    pub deflate: Option<DeflateCosts>,
    pub zstd: Option<ZstdCosts>,
    pub rtime: Option<RtimeCosts>,
}

/// From so many bytes on a block of deflate has codes of its own: of fewer random bytes they cost
/// more than they save. That is 1,216 in UBIFS and 1,431 in JFFS2, and 1,136 and 1,295 were
/// without, of all percentages of lines that are zero.
const OWN_CODES_BYTES_MIN: u32 = 1200;

/// A time, or which compressor has no price.
pub type Priced = Result<Ns, Packing>;

impl CompressorCosts {
    /// What all that was tried on a piece takes.
    pub fn time(&self, work: &Work) -> Priced {
        fn of<W, C>(
            packing: Packing,
            work: Option<&W>,
            costs: Option<&C>,
            time: impl Fn(&C, &W) -> Ns,
        ) -> Priced {
            match (work, costs) {
                (None, _) => Ok(Ns::ZERO),
                (Some(work), Some(costs)) => Ok(time(costs, work)),
                (Some(_), None) => Err(packing),
            }
        }
        let lzo = of(Packing::Lzo, work.lzo.as_ref(), self.lzo.as_ref(), LzoCosts::time)?;
        let (old, old_costs) = (work.lzo_2_02.as_ref(), self.lzo_2_02.as_ref());
        let old = of(Packing::Lzo202, old, old_costs, LzoCosts::time)?;
        let (deflate, deflate_costs) = (work.deflate.as_ref(), self.deflate.as_ref());
        let deflate = of(Packing::Deflate, deflate, deflate_costs, DeflateCosts::time)?;
        let zstd = of(Packing::Zstd, work.zstd.as_ref(), self.zstd.as_ref(), ZstdCosts::time)?;
        let rtime = of(Packing::Rtime, work.rtime.as_ref(), self.rtime.as_ref(), RtimeCosts::time)?;
        Ok(lzo + old + deflate + zstd + rtime)
    }

    /// What unpacking a node takes.
    pub fn unpacking(&self, packing: Packing, packed_bytes: u32, bytes: u32) -> Priced {
        if let (Packing::Deflate, Some(costs)) = (packing, self.deflate) {
            let has_own_codes = packed_bytes >= OWN_CODES_BYTES_MIN;
            let codes = if has_own_codes { costs.unpack_codes_ns } else { Ns::ZERO };
            return Ok(costs.unpack.time(packed_bytes, bytes) + codes);
        }
        let costs = match packing {
            Packing::Lzo => self.lzo.map(|costs| costs.unpack),
            Packing::Lzo202 => self.lzo_2_02.map(|costs| costs.unpack),
            Packing::Deflate => self.deflate.map(|costs| costs.unpack),
            Packing::Zstd => self.zstd.map(|costs| costs.unpack),
            Packing::Rtime => self.rtime.map(|costs| costs.unpack),
        };
        costs.map(|costs| costs.time(packed_bytes, bytes)).ok_or(packing)
    }
}
