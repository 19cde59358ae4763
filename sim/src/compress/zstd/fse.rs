//! Finite state entropy: zstd's coder of lengths, offsets, and the weights of its Huffman codes
//! (fse_compress.c).
//!
//! A symbol's bits depend on the state, so all symbols are processed. States are computed; bits are
//! only counted.

/// States of the largest table.
const STATES_MAX: usize = 1 << 9;
const SYMBOLS_MAX: usize = 53;
const TABLE_LOG_MIN: u32 = 5;

/// A length or offset: its symbol, and the number of extra bits.
#[derive(Clone, Copy)]
pub(super) struct Code {
    symbol: u8,
    extra_bits: u8,
}

/// The code of a number. Larger numbers share symbols: `first` is each symbol's first value,
/// `extra_bits` its extra bits.
fn code_of(value: usize, first: &[u16], extra_bits: &[u8], alone: usize) -> Code {
    if value < alone {
        return Code { symbol: value as u8, extra_bits: 0 };
    }
    let shared = first.partition_point(|&start| usize::from(start) <= value) - 1;
    Code { symbol: (alone + shared) as u8, extra_bits: extra_bits[shared] }
}

pub(super) fn literal_length_code(length: usize) -> Code {
    const FIRST: [u16; 16] =
        [16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096];
    const EXTRA_BITS: [u8; 16] = [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12];
    code_of(length, &FIRST, &EXTRA_BITS, 16)
}

/// The code of a match length minus its minimum, 3.
pub(super) fn match_length_code(length: usize) -> Code {
    const FIRST: [u16; 17] =
        [32, 34, 36, 38, 40, 44, 48, 56, 64, 80, 96, 128, 256, 512, 1024, 2048, 4096];
    const EXTRA_BITS: [u8; 17] = [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12];
    code_of(length, &FIRST, &EXTRA_BITS, 32)
}

pub(super) fn offset_code(value: usize) -> Code {
    let bits = value.ilog2() as u8;
    Code { symbol: bits, extra_bits: bits }
}

/// A kind of number: its predefined table, and the finest table that may be sent.
pub(super) struct Kind {
    default: &'static [i16],
    default_log: u32,
    log_max: u32,
}

pub(super) const LITERAL_LENGTHS: Kind = Kind {
    default: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    default_log: 6,
    log_max: 9,
};

pub(super) const OFFSETS: Kind = Kind {
    default: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
    default_log: 5,
    log_max: 8,
};

pub(super) const MATCH_LENGTHS: Kind = Kind {
    default: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    default_log: 6,
    log_max: 9,
};

/// All numbers of one kind, coded.
pub(super) struct Stream {
    pub(super) table_bytes: usize,
    pub(super) has_own_table: bool,
    pub(super) bits: usize,
}

impl Stream {
    /// Chooses a table by rule of thumb (`ZSTD_selectEncodingType` of the fast strategies) and
    /// counts bits.
    pub(super) fn new(kind: &Kind, codes: Vec<Code>) -> Option<Stream> {
        let total = codes.len();
        let mut counts = [0_u32; SYMBOLS_MAX];
        for code in &codes {
            counts[usize::from(code.symbol)] += 1;
        }
        let symbols = counts.iter().rposition(|&count| count > 0)? + 1;
        let most = counts.iter().copied().max()? as usize;
        let extra_bits: usize = codes.iter().map(|code| usize::from(code.extra_bits)).sum();
        let backwards = codes.iter().rev().map(|code| code.symbol);
        if most == total && total > 2 {
            return Some(Stream { table_bytes: 1, has_own_table: false, bits: extra_bits });
        }
        let few = total < 1 << kind.default_log || most < total >> (kind.default_log - 1);
        if most == total || few {
            let table = Table::new(kind.default, kind.default_log);
            let bits = extra_bits + table.bits(backwards);
            return Some(Stream { table_bytes: 0, has_own_table: false, bits });
        }
        let log = table_log(kind.log_max, total, symbols - 1, 2);
        // The last symbol costs nothing, because it is the initial state.
        let last = &mut counts[usize::from(codes[total - 1].symbol)];
        let free = u32::from(*last > 1);
        *last -= free;
        let shares = normalize(&counts[..symbols], total - free as usize, log)?;
        let table = Table::new(&shares[..symbols], log);
        Some(Stream {
            table_bytes: table_bytes(&shares[..symbols], log),
            has_own_table: true,
            bits: extra_bits + table.bits(backwards),
        })
    }
}

/// Bytes of small numbers coded by two alternating states, table included (`HUF_compressWeights`).
pub(super) fn weights_bytes(weights: &[u8]) -> Option<usize> {
    const LOG_MAX: u32 = 6;
    let mut counts = [0_u32; SYMBOLS_MAX];
    for &weight in weights {
        counts[usize::from(weight)] += 1;
    }
    let most = counts.iter().copied().max()? as usize;
    if weights.len() <= 2 || most == weights.len() || most == 1 {
        return None;
    }
    let symbols = counts.iter().rposition(|&count| count > 0)? + 1;
    let log = table_log(LOG_MAX, weights.len(), symbols - 1, 2);
    let shares = normalize(&counts[..symbols], weights.len(), log)?;
    let table = Table::new(&shares[..symbols], log);
    let backwards = weights.iter().rev().copied();
    let bits = table.bits(backwards.clone().step_by(2)) + table.bits(backwards.skip(1).step_by(2));
    Some(table_bytes(&shares[..symbols], log) + (bits + 1).div_ceil(8))
}

/// The accuracy of a table (`FSE_optimalTableLog_internal`).
pub(super) fn table_log(log_max: u32, total: usize, symbol_max: usize, coarser: u32) -> u32 {
    let of_total = (total - 1).ilog2().checked_sub(coarser).unwrap_or(log_max);
    let of_symbols = symbol_max.max(1).ilog2() + 2;
    log_max.min(of_total).max(of_symbols.min(total.ilog2() + 1)).clamp(TABLE_LOG_MIN, 12)
}

/// Shares of the table's states in proportion to the counts, at least one each
/// (`FSE_normalizeCount`).
fn normalize(counts: &[u32], total: usize, log: u32) -> Option<[i16; SYMBOLS_MAX]> {
    /// The fraction of a share, in units of 2^-20, above which a small share is rounded up.
    const ROUND_UP_FROM: [u64; 8] =
        [0, 473_195, 504_333, 520_860, 550_000, 700_000, 750_000, 830_000];
    let scale = 62 - log;
    let step = (1_u64 << 62) / total as u64;
    let mut shares = [0_i16; SYMBOLS_MAX];
    let mut rest = 1_i32 << log;
    let (mut largest, mut largest_share) = (0, 0);
    for (symbol, &count) in counts.iter().enumerate().filter(|(_, &count)| count > 0) {
        let mut share = 1;
        if count > total as u32 >> log {
            let exact = u64::from(count) * step;
            share = (exact >> scale) as i16;
            if share < 8 {
                let beyond = exact - ((share as u64) << scale);
                share += i16::from(beyond > ROUND_UP_FROM[share as usize] << (scale - 20));
            }
            if share > largest_share {
                (largest, largest_share) = (symbol, share);
            }
        }
        shares[symbol] = share;
        rest -= i32::from(share);
    }
    if -rest >= i32::from(shares[largest] >> 1) {
        return normalize_few(counts, total, log);
    }
    shares[largest] += rest as i16;
    Some(shares)
}

/// The same if rounding up would take too much from the largest share (`FSE_normalizeM2`).
fn normalize_few(counts: &[u32], total: usize, log: u32) -> Option<[i16; SYMBOLS_MAX]> {
    let mut total = total as u32;
    let mut shares = [0_i16; SYMBOLS_MAX];
    let mut one_at_most = (total * 3) >> (log + 1);
    let mut open = [false; SYMBOLS_MAX];
    let mut given = 0;
    let low = total >> log;
    for (symbol, &count) in counts.iter().enumerate().filter(|(_, &count)| count > 0) {
        if count <= low.max(one_at_most) {
            shares[symbol] = 1;
            given += 1;
            total -= count;
        } else {
            open[symbol] = true;
        }
    }
    let mut rest = (1 << log) - given;
    if rest == 0 {
        return Some(shares);
    }
    if total / rest > one_at_most {
        one_at_most = total * 3 / (rest * 2);
        for (symbol, &count) in counts.iter().enumerate() {
            if open[symbol] && count <= one_at_most {
                open[symbol] = false;
                shares[symbol] = 1;
                given += 1;
                total -= count;
            }
        }
        rest = (1 << log) - given;
    }
    if given as usize == counts.len() {
        let most = *counts.iter().max()?;
        let first = counts.iter().position(|&count| count == most)?;
        shares[first] += rest as i16;
        return Some(shares);
    }
    if total == 0 {
        let with_share: Vec<usize> = (0..counts.len()).filter(|&s| shares[s] > 0).collect();
        with_share.iter().cycle().take(rest as usize).for_each(|&symbol| shares[symbol] += 1);
        return Some(shares);
    }
    let step_log = 62 - log;
    let middle = (1_u64 << (step_log - 1)) - 1;
    let step = ((1_u64 << step_log) * u64::from(rest) + middle) / u64::from(total);
    let mut at = middle;
    for (symbol, &count) in counts.iter().enumerate().filter(|(symbol, _)| open[*symbol]) {
        let end = at + u64::from(count) * step;
        let share = (end >> step_log) - (at >> step_log);
        if share < 1 {
            return None;
        }
        shares[symbol] = share as i16;
        at = end;
    }
    Some(shares)
}

/// The size of a table that is sent (`FSE_writeNCount`).
fn table_bytes(shares: &[i16], log: u32) -> usize {
    let mut bits = 4;
    let mut rest = (1_i32 << log) + 1;
    let mut threshold = 1_i32 << log;
    let mut share_bits = log + 1;
    let mut at = 0;
    let mut after_zero = false;
    while at < shares.len() && rest > 1 {
        if after_zero {
            let zeros = shares[at..].iter().take_while(|&&share| share == 0).count();
            at += zeros;
            bits += zeros as u32 / 24 * 16 + zeros as u32 % 24 / 3 * 2 + 2;
        }
        let share = i32::from(shares[at]);
        at += 1;
        let short = 2 * threshold - 1 - rest;
        rest -= share.abs();
        let mut value = share + 1;
        if value >= threshold {
            value += short;
        }
        bits += share_bits - u32::from(value < short);
        after_zero = share == 0;
        while rest < threshold {
            share_bits -= 1;
            threshold >>= 1;
        }
    }
    bits.div_ceil(8) as usize
}

/// States by symbol, and the transitions between them (`FSE_buildCTable_wksp`).
struct Table {
    log: u32,
    /// Next states, grouped by symbol.
    next: [u16; STATES_MAX],
    symbols: [Symbol; SYMBOLS_MAX],
}

#[derive(Clone, Copy, Default)]
struct Symbol {
    /// Bits of a state, times 2^16, minus the first state that takes one more.
    bits: i32,
    /// Offset from a state without its bits to its successor in `next`.
    find: i32,
}

impl Table {
    fn new(shares: &[i16], log: u32) -> Table {
        let spread = spread(shares, log);
        let mut table =
            Table { log, next: [0; STATES_MAX], symbols: [Symbol::default(); SYMBOLS_MAX] };
        let mut begin = [0_usize; SYMBOLS_MAX];
        let mut total = 0;
        for (symbol, &share) in shares.iter().enumerate() {
            begin[symbol] = total;
            let states = i32::from(share.abs());
            let bits_max = if states > 1 { log - (states as u32 - 1).ilog2() } else { log };
            let first_with_all = if states > 1 { states << bits_max } else { 1 << log };
            table.symbols[symbol] = Symbol {
                bits: ((bits_max << 16) as i32) - first_with_all,
                find: total as i32 - states,
            };
            total += states as usize;
        }
        for (state, &symbol) in spread[..1 << log].iter().enumerate() {
            let place = &mut begin[usize::from(symbol)];
            table.next[*place] = ((1 << log) + state) as u16;
            *place += 1;
        }
        table
    }

    /// Bits of the symbols, the data's last one first, and of the final state.
    fn bits(&self, mut backwards: impl Iterator<Item = u8>) -> usize {
        let Some(first) = backwards.next() else { return 0 };
        let mut state = self.first_state(first);
        let mut sum = self.log as usize;
        for symbol in backwards {
            let symbol = self.symbols[usize::from(symbol)];
            let bits = (i32::from(state) + symbol.bits) >> 16;
            sum += bits as usize;
            state = self.next[(i32::from(state >> bits) + symbol.find) as usize];
        }
        sum
    }

    /// The smallest state of this symbol.
    fn first_state(&self, symbol: u8) -> u16 {
        let symbol = self.symbols[usize::from(symbol)];
        let bits = (symbol.bits + (1 << 15)) >> 16;
        let value = (bits << 16) - symbol.bits;
        self.next[((value >> bits) + symbol.find) as usize]
    }
}

/// The symbol of each state: symbols are scattered; those of share -1 are at the end.
fn spread(shares: &[i16], log: u32) -> [u8; STATES_MAX] {
    let states = 1_usize << log;
    let step = (states >> 1) + (states >> 3) + 3;
    let mut spread = [0; STATES_MAX];
    let mut end = states;
    for (symbol, _) in shares.iter().enumerate().filter(|(_, &share)| share == -1) {
        end -= 1;
        spread[end] = symbol as u8;
    }
    let mut at = 0;
    for (symbol, &share) in shares.iter().enumerate() {
        for _ in 0..share.max(0) {
            spread[at] = symbol as u8;
            at = (at + step) % states;
            while at >= end {
                at = (at + step) % states;
            }
        }
    }
    spread
}
