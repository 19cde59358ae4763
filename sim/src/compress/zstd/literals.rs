//! The literals of a zstd block: raw, one byte repeated, or in a Huffman code
//! (zstd_compress_literals.c, huf_compress.c). Only sizes are computed, so a code is its length.

use super::super::work::LiteralsWork;
use super::{fse, gain_min};

/// Fewer literals are not compressed.
const BYTES_MIN: usize = 64;
/// More literals are in four streams, preceded by the sizes of three of them.
const ONE_STREAM_BYTES_MAX: usize = 255;
const JUMP_TABLE_BYTES: usize = 6;
const CODE_BITS_MAX: u32 = 11;
/// Weights of symbols up to this can be sent directly, half a byte each.
const PLAIN_WEIGHTS_MAX: usize = 128;

/// The work on these literals. A Huffman code is built unless they are few, all the same, or too
/// evenly distributed.
pub(super) fn work(literals: &[u8]) -> LiteralsWork {
    if literals.len() < BYTES_MIN {
        return LiteralsWork::default();
    }
    let counts = counts(literals);
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    let counted = literals.len() as u32;
    if most == literals.len() || most <= too_even_below(literals.len()) {
        return LiteralsWork { counted, ..LiteralsWork::default() };
    }
    let symbols = counts.iter().filter(|&&count| count > 0).count() as u32;
    LiteralsWork { counted, symbols, coded: counted }
}

fn counts(literals: &[u8]) -> [u32; 256] {
    let mut counts = [0_u32; 256];
    literals.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    counts
}

fn too_even_below(literals: usize) -> usize {
    (literals >> 7) + 4
}

/// The bytes of a block's literals section, header included.
pub(super) fn section_bytes(literals: &[u8]) -> usize {
    let plain_header = 1 + usize::from(literals.len() > 31) + usize::from(literals.len() > 4095);
    let header = 3 + usize::from(literals.len() >= 1024);
    let plain = plain_header + literals.len();
    if literals.len() < BYTES_MIN {
        return plain;
    }
    let counts = counts(literals);
    let most = counts.iter().copied().max().unwrap_or(0) as usize;
    if most == literals.len() {
        return plain_header + 1;
    }
    match coded_bytes(literals, &counts, most) {
        Some(coded) if coded < literals.len() - gain_min(literals.len()) => header + coded,
        _ => plain,
    }
}

/// Table and streams (`HUF_compress_internal`); none if the distribution is too even or the gain
/// too small.
fn coded_bytes(literals: &[u8], counts: &[u32; 256], most: usize) -> Option<usize> {
    if most <= too_even_below(literals.len()) {
        return None;
    }
    let symbol_max = counts.iter().rposition(|&count| count > 0)?;
    let bits_max = fse::table_log(CODE_BITS_MAX, literals.len(), symbol_max, 1);
    let code = Code::new(&counts[..=symbol_max], bits_max);
    let table = code.table_bytes()?;
    if table + 12 >= literals.len() {
        return None;
    }
    let streams = if literals.len() <= ONE_STREAM_BYTES_MAX {
        code.stream_bytes(literals)
    } else {
        let quarter = literals.len().div_ceil(4);
        let streams = literals.chunks(quarter).map(|stream| code.stream_bytes(stream));
        JUMP_TABLE_BYTES + streams.sum::<usize>()
    };
    (table + streams < literals.len() - 1).then_some(table + streams)
}

/// The length of each symbol's code; 0 for symbols that do not occur.
struct Code {
    bits: [u8; 256],
    symbol_max: usize,
    bits_max: u32,
}

#[derive(Clone, Copy, Default)]
struct Leaf {
    count: u32,
    symbol: usize,
    bits: u32,
}

impl Code {
    fn new(counts: &[u32], bits_max: u32) -> Code {
        let mut leaves: Vec<Leaf> = (0..counts.len())
            .filter(|&symbol| counts[symbol] > 0)
            .map(|symbol| Leaf { count: counts[symbol], symbol, bits: 0 })
            .collect();
        leaves.sort_by_key(|leaf| core::cmp::Reverse(leaf.count));
        measure(&mut leaves);
        let longest = leaves[leaves.len() - 1].bits;
        if longest > bits_max {
            Shortening::new(&mut leaves, bits_max).run(longest);
        }
        let mut bits = [0; 256];
        leaves.iter().for_each(|leaf| bits[leaf.symbol] = leaf.bits as u8);
        Code { bits, symbol_max: counts.len() - 1, bits_max: bits_max.min(longest) }
    }

    /// The bytes of the sent code: the weights of all symbols but the last
    /// (`HUF_writeCTable_wksp`).
    fn table_bytes(&self) -> Option<usize> {
        let weight = |bits: u8| if bits == 0 { 0 } else { self.bits_max as u8 + 1 - bits };
        let weights: Vec<u8> =
            self.bits[..self.symbol_max].iter().map(|&bits| weight(bits)).collect();
        let coded = fse::weights_bytes(&weights);
        if let Some(coded) = coded.filter(|coded| *coded > 1 && *coded < self.symbol_max / 2) {
            return Some(1 + coded);
        }
        (self.symbol_max <= PLAIN_WEIGHTS_MAX).then_some(1 + self.symbol_max.div_ceil(2))
    }

    /// One stream with its end mark, one bit.
    fn stream_bytes(&self, literals: &[u8]) -> usize {
        let bits: usize =
            literals.iter().map(|&byte| usize::from(self.bits[usize::from(byte)])).sum();
        (bits + 1).div_ceil(8)
    }
}

/// Computes the code lengths of leaves in order of falling counts (`HUF_buildTree`). Joins the two
/// rarest; of equally rare nodes joined ones come first.
fn measure(leaves: &mut [Leaf]) {
    let nodes = leaves.len() - 1;
    let mut counts = vec![0_u32; nodes];
    let mut parents = vec![0_usize; nodes];
    let mut parent_of_leaf = vec![0_usize; leaves.len()];
    let (mut leaf, mut node) = (leaves.len(), 0);
    for new in 0..nodes {
        for _ in 0..2 {
            let take_leaf = leaf > 0 && (node == new || leaves[leaf - 1].count < counts[node]);
            if take_leaf {
                leaf -= 1;
                parent_of_leaf[leaf] = new;
                counts[new] += leaves[leaf].count;
            } else {
                parents[node] = new;
                counts[new] += counts[node];
                node += 1;
            }
        }
    }
    let mut depth = vec![0_u32; nodes];
    for node in (0..nodes - 1).rev() {
        depth[node] = depth[parents[node]] + 1;
    }
    for (leaf, parent) in leaves.iter_mut().zip(parent_of_leaf) {
        leaf.bits = depth[parent] + 1;
    }
}

/// Shortens codes that are too long to the limit, and lengthens others to compensate
/// (`HUF_setMaxHeight`).
struct Shortening<'a> {
    leaves: &'a mut [Leaf],
    bits_max: u32,
    /// The rarest leaf whose code is this many bits shorter than the limit.
    rarest: [Option<usize>; CODE_BITS_MAX as usize + 3],
}

impl<'a> Shortening<'a> {
    fn new(leaves: &'a mut [Leaf], bits_max: u32) -> Self {
        Shortening { leaves, bits_max, rarest: [None; CODE_BITS_MAX as usize + 3] }
    }

    fn run(mut self, longest: u32) {
        let (bits_max, mut debt) = (self.bits_max, 0_i64);
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.bits > bits_max) {
            debt += (1 << (longest - bits_max)) - (1 << (longest - leaf.bits));
            leaf.bits = bits_max;
        }
        debt >>= longest - bits_max;
        for at in 0..self.leaves.len() {
            let shorter = bits_max - self.leaves[at].bits;
            if shorter > 0 {
                self.rarest[shorter as usize] = Some(at);
            }
        }
        while debt > 0 {
            debt -= self.lengthen(debt);
        }
        while debt < 0 {
            self.shorten_one();
            debt += 1;
        }
    }

    /// Makes one code a bit longer; returns how much that compensates.
    fn lengthen(&mut self, debt: i64) -> i64 {
        let mut shorter = debt.ilog2() as usize + 1;
        while shorter > 1 {
            let pair = (self.rarest[shorter], self.rarest[shorter - 1]);
            let (Some(high), Some(low)) = pair else {
                if pair.0.is_some() {
                    break;
                }
                shorter -= 1;
                continue;
            };
            if self.leaves[high].count <= 2 * self.leaves[low].count {
                break;
            }
            shorter -= 1;
        }
        while self.rarest[shorter].is_none() {
            shorter += 1;
        }
        let at = self.rarest[shorter].expect("a shorter code");
        self.leaves[at].bits += 1;
        if self.rarest[shorter - 1].is_none() {
            self.rarest[shorter - 1] = Some(at);
        }
        let before = at.checked_sub(1);
        let same = |&before: &usize| self.leaves[before].bits + shorter as u32 == self.bits_max;
        self.rarest[shorter] = before.filter(same);
        1 << (shorter - 1)
    }

    /// Too much was compensated: the most frequent of the longest codes becomes a bit shorter.
    fn shorten_one(&mut self) {
        let at = match self.rarest[1] {
            Some(at) => at + 1,
            None => self
                .leaves
                .iter()
                .position(|leaf| leaf.bits == self.bits_max)
                .expect("a code of the greatest length"),
        };
        self.leaves[at].bits -= 1;
        self.rarest[1] = Some(at);
    }
}
