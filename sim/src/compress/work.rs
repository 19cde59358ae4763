//! The work of compressors and its price, which together give their time.
//!
//! A compressor's time is the sum of what its loops do, each at a price of the board (`[software]`,
//! docs/models/costs.md). The counts are those of lib/lzo, lib/zlib_deflate, lib/zstd and
//! fs/jffs2/compr_rtime.c of Linux 6.1, taken where the size computation does the same. The time of
//! decompression follows from its bytes: those read, and those that matches produce.
//!
//! Left out: effects of the processor's caches. The counts of lzo-2.02 are the same as LZO's, but
//! it has its own table of prices.
//!
//! Invariant: for a compressor that a board does not price, the result is the compressor's name,
//! not a time.

use crate::units::Ns;
use serde::Deserialize;

/// LZO's work on a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LzoWork {
    /// Positions searched for a match.
    pub searched: u32,
    /// Matches found.
    pub matches: u32,
    /// Bytes in them.
    pub matched_bytes: u32,
    /// Bytes outside of matches.
    pub literal_bytes: u32,
}

/// Deflate's work on a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateWork {
    /// Bytes copied into the window.
    pub bytes: u32,
    /// Iterations of the search: literals and matches.
    pub positions: u32,
    /// Positions entered into the hashes.
    pub inserted: u32,
    /// Earlier positions of the same hash that were examined.
    pub candidates: u32,
    /// Equal bytes compared with them.
    pub compared_bytes: u32,
    /// Blocks ended.
    pub blocks: u32,
    /// Leaves of their trees.
    pub symbols: u32,
    /// Literals and matches written as codes.
    pub coded: u32,
    /// Moves of the window, each of which changes every hash (`fill_window`).
    pub slides: u32,
}

/// zstd's work on the literals of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiteralsWork {
    /// Bytes whose values were counted (`HIST_count`).
    pub counted: u32,
    /// Values for which a Huffman code was built, whether it was used or not.
    pub symbols: u32,
    /// Bytes written in that code.
    pub coded: u32,
}

/// zstd's work on a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZstdWork {
    /// Positions searched for a match.
    pub searched: u32,
    /// Matches found.
    pub sequences: u32,
    /// Bytes in them.
    pub matched_bytes: u32,
    /// Its literals.
    pub literals: LiteralsWork,
    /// Whether its sequences were coded. Every block of zstd ends with sequences, unless it has
    /// none.
    pub is_coded: bool,
}

/// rtime's work on a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtimeWork {
    /// Bytes stored, each with the length of the run after it.
    pub pairs: u32,
    /// Bytes in those runs.
    pub run_bytes: u32,
}

/// The work of every compressor that was tried on a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Work {
    pub lzo: Option<LzoWork>,
    pub lzo_2_02: Option<LzoWork>,
    pub deflate: Option<DeflateWork>,
    pub zstd: Option<ZstdWork>,
    pub rtime: Option<RtimeWork>,
}

/// What decompresses a node.
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
    /// Its name in messages.
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

/// Prices of decompression: a piece, a byte read, a byte produced by a match.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpackCosts {
    /// One piece: checks, tables, codes.
    pub node_ns: Ns,
    /// One compressed byte: literals, codes.
    pub packed_byte_ps: u64,
    /// One byte produced by copying earlier ones.
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
    /// One piece: clearing the dictionary.
    pub node_ns: Ns,
    /// Searching for a match at one position.
    pub search_ns: Ns,
    /// Writing one match.
    pub match_ns: Ns,
    /// One byte of a match.
    pub matched_byte_ps: u64,
    /// One byte outside of matches.
    pub literal_byte_ps: u64,
    /// Decompression.
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
    /// One piece: clearing the hashes.
    pub node_ns: Ns,
    /// One byte: copying it into the window, and its checksum.
    pub byte_ps: u64,
    /// One iteration of the search: counting a literal or a match.
    pub position_ns: Ns,
    /// Entering one position into the hashes.
    pub insert_ps: u64,
    /// Examining one earlier position.
    pub candidate_ps: u64,
    /// Comparing one byte.
    pub compared_byte_ps: u64,
    /// One block, besides its symbols.
    pub block_ns: Ns,
    /// One leaf of a block's trees.
    pub symbol_ns: Ns,
    /// Writing one literal or match as a code.
    pub code_ps: u64,
    /// Moving the window.
    pub slide_ns: Ns,
    /// Decompression (lib/zlib_inflate).
    pub unpack: UnpackCosts,
    /// Decompression: building the tables of a block that has its own codes.
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
    /// Searching for a match at one position.
    pub search_ns: Ns,
    /// Storing and coding one sequence: its lengths and offset.
    pub sequence_ns: Ns,
    /// One byte of a match.
    pub matched_byte_ps: u64,
    /// Counting the value of one literal.
    pub literal_byte_ps: u64,
    /// One value of a Huffman code for literals.
    pub symbol_ns: Ns,
    /// Writing one literal in that code.
    pub huffman_byte_ps: u64,
    /// Codes for the sequences of a block.
    pub codes_ns: Ns,
    /// Decompression.
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
    /// One piece: clearing its table.
    pub node_ns: Ns,
    /// One byte with the length of a run.
    pub pair_ns: Ns,
    /// One byte of a run.
    pub run_byte_ps: u64,
    /// Decompression.
    pub unpack: UnpackCosts,
}

impl RtimeCosts {
    fn time(&self, work: &RtimeWork) -> Ns {
        let runs = Ns::from_ps(work.run_bytes.into(), self.run_byte_ps);
        self.node_ns + self.pair_ns * u64::from(work.pairs) + runs
    }
}

/// The prices of a board's compressors; none for one that was not measured there.
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

/// From this size on a block of deflate has its own codes; on fewer random bytes they cost more
/// than they save. Over all percentages of zero lines, the smallest blocks with own codes had 1,216
/// bytes in UBIFS and 1,431 in JFFS2; blocks of 1,136 and 1,295 had none.
const OWN_CODES_BYTES_MIN: u32 = 1200;

/// A time, or the compressor without a price.
pub type Priced = Result<Ns, Packing>;

impl CompressorCosts {
    /// The time of all that was tried on a piece.
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

    /// The time of decompressing a node.
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
