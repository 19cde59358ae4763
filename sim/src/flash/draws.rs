//! Random numbers that need no state: SplitMix64 (Steele, Lea, Flood 2014) over a seed, the kind of
//! the draw and a number.
//!
//! Mirrors kernel/flashbed_nand/draws.c, so a seed decides the same in the simulator and on a real
//! kernel.

/// Kinds of draws, as `enum fbn_draw` numbers them.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    Wear = 1,
    Program = 2,
    Erase = 3,
    Read = 4,
    Errors = 6,
}

/// The unit of rates: parts per million.
const PPM: u64 = 1_000_000;

fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// fbn_draw: the `number`th draw of a kind.
pub(super) fn draw(seed: u64, what: Draw, number: u64) -> u64 {
    let kind = scramble(scramble(seed.wrapping_add(1)).wrapping_add(what as u64 + 1));
    scramble(kind.wrapping_add(number).wrapping_add(1))
}

/// fbn_next.
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    scramble(*state)
}

/// fbn_below: 0 to `limit` - 1.
pub(super) fn below(state: &mut u64, limit: u32) -> u32 {
    (((next(state) >> 32) * u64::from(limit)) >> 32) as u32
}

/// fbn_hit.
pub(super) fn hit(draw: u64, ppm: u32) -> bool {
    (((draw >> 32) * PPM) >> 32) < u64::from(ppm)
}
