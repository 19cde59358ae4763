//! Bit errors that follow the chip: how many an ECC step has after so many erases, reads and hours,
//! and which bits they are.
//!
//! Mirrors kernel/flashbed_nand/errors.c to the bit, in integers alone; docs/models/bit-errors.md
//! has the curve. Each ECC step of a programmed page has a row of errors of its own, drawn from the
//! seed, the page, the erases of its block and the step. The errors of a row arrive as a Poisson
//! process of rate 1 does. The first that have arrived before the expected number are there, so
//! they stay until the block is erased, and more join them.
//!
//! Left out: errors in the OOB and in erased pages, rows of bad cells, temperature.
//!
//! Fixed point: a logarithm has 24 bits behind the point, a power 16, a number of errors 32.

use super::draws::{below, draw, next, Draw};

/// What an expected number of errors counts in.
const ONE_ERROR: u64 = 1 << 32;
const LOG2_BITS: u32 = 24;
const POWER_BITS: u32 = 16;
/// An expected number is at most 2^20 errors.
const MOST_LOG2: i64 = 20 << LOG2_BITS;
/// Errors of a step that are told apart. More than any ECC corrects.
const STEP_ERRORS_MAX: usize = 65;
/// The natural logarithm of 2, with 32 bits behind the point.
const LN_2: u64 = 2_977_044_472;
/// 2^(2^-1), 2^(2^-2), ... with 31 bits behind the point.
const ROOTS_OF_2: [u64; LOG2_BITS as usize] = [
    3_037_000_500,
    2_553_802_834,
    2_341_847_524,
    2_242_560_872,
    2_194_507_417,
    2_170_868_212,
    2_159_144_272,
    2_153_306_067,
    2_150_392_887,
    2_148_937_775,
    2_148_210_589,
    2_147_847_087,
    2_147_665_360,
    2_147_574_502,
    2_147_529_075,
    2_147_506_361,
    2_147_495_005,
    2_147_489_326,
    2_147_486_487,
    2_147_485_068,
    2_147_484_358,
    2_147_484_003,
    2_147_483_825,
    2_147_483_737,
];

/// A term of the curve: a coefficient times a power of the block's erases, times a power of the
/// reads or the hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// Logarithm to base 2 of the coefficient, in errors of an ECC step; times 2^24.
    pub log2: i32,
    /// The power of the erases, times 2^16.
    pub erases_power: u32,
    /// The power of the hours or the reads, times 2^16.
    pub power: u32,
}

/// Expected errors of an ECC step, and what the chip went through before the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCurve {
    /// Those of a page that was just programmed on a new chip.
    pub fresh: Term,
    /// Those that erases add.
    pub wear: Term,
    /// Those that hours since the program add.
    pub retention: Term,
    /// Those that reads of the block add.
    pub disturb: Term,
    /// The age when measuring starts of what was programmed before it.
    pub age_hours: u32,
    /// Reads that its block has had then.
    pub reads: u32,
}

/// fbn_log2: with 24 bits behind the point, rounded down. `number` is not 0.
fn log2(number: u64) -> i64 {
    let whole = number.ilog2();
    let mut left = if whole > 31 { number >> (whole - 31) } else { number << (31 - whole) };
    let mut log = u64::from(whole);
    for _ in 0..LOG2_BITS {
        left = (left * left) >> 31;
        let above = left >> 32;
        left >>= above;
        log = log << 1 | above;
    }
    log as i64
}

/// fbn_exp2: 2 to the power of a logarithm, as a number of errors.
fn exp2(log: i64) -> u64 {
    let log = log.min(MOST_LOG2);
    let mut found = 1 << 31;
    for (place, root) in ROOTS_OF_2.iter().enumerate() {
        if log >> (LOG2_BITS as usize - 1 - place) & 1 == 1 {
            found = (found * root) >> 31;
        }
    }
    let shift = (log >> LOG2_BITS) + 1;
    match shift {
        0.. => found << shift,
        -63..=-1 => found >> -shift,
        _ => 0,
    }
}

/// fbn_wait: the time to the next arrival of a process of rate 1, -ln(u) of a uniform draw.
fn wait(uniform: u64) -> u64 {
    let rest = !uniform;
    if rest >> 52 == 0 {
        let rest = rest >> 32;
        return rest + ((rest * rest) >> 33);
    }
    let log = (64_i64 << LOG2_BITS) - log2(uniform | 1);
    (log as u64 * LN_2) >> LOG2_BITS
}

impl Term {
    /// fbn_term: its part of the expected errors.
    fn errors(&self, erases: u32, other: u32) -> u64 {
        let raised = |power: u32, number: u32| {
            (i64::from(power) * log2(u64::from(number.max(1)))) >> POWER_BITS
        };
        exp2(i64::from(self.log2) + raised(self.erases_power, erases) + raised(self.power, other))
    }
}

impl ErrorCurve {
    /// fbn_expected: errors of an ECC step in 2^-32, of a page that was programmed after so many
    /// erases of its block, so many hours ago, in a block that was read so often since.
    pub fn expected(&self, erases: u32, hours: u32, reads: u32) -> u64 {
        let mut errors = self.fresh.errors(erases, 1) + self.wear.errors(erases, 1);
        if hours > 0 {
            errors += self.retention.errors(erases, hours);
        }
        if reads > 0 {
            errors += self.disturb.errors(erases, reads);
        }
        errors.min(ONE_ERROR << 20)
    }
}

/// fbn_draw_errors: the wrong bits of an ECC step, counted from the step's first.
///
/// `step` is the chip's: the page times 64, and its step. `expected` counts in 2^-32.
pub fn wrong_bits(seed: u64, erases: u32, step: u32, step_bits: u32, expected: u64) -> Vec<u32> {
    let mut state = draw(seed, Draw::Errors, u64::from(erases) << 32 | u64::from(step));
    let mut arrival = 0;
    let mut bits = Vec::new();
    while bits.len() < STEP_ERRORS_MAX {
        arrival += wait(next(&mut state));
        if arrival > expected {
            break;
        }
        let mut bit = below(&mut state, step_bits);
        while bits.contains(&bit) {
            bit = below(&mut state, step_bits);
        }
        bits.push(bit);
    }
    bits
}
