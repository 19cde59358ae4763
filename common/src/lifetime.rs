//! The rules by which erases become years (docs/models/lifetime.md).
//!
//! Left out: the intervals of a measurement, which `python/flashbed/answers/lifetimes/` puts around
//! these numbers.

/// Seconds of a day.
pub const DAY_S: f64 = 86_400.0;
/// Seconds of a year.
pub const YEAR_S: f64 = 365.25 * DAY_S;
/// Erased divided by programmed blocks from which a measurement counts as steady.
const STEADY_SHARE: f64 = 0.9;
/// Fewer erases, in all or of the worst block, say nothing about collecting or levelling.
pub const FEW_ERASES: f64 = 10.0;
/// A program that sleeps for more of its time than this has a pace of its own.
const ASLEEP_SHARE: f64 = 0.5;

/// Whether erasing kept up with programming.
#[must_use]
pub fn is_steady(erases: f64, programmed_blocks: f64) -> bool {
    erases >= STEADY_SHARE * programmed_blocks && erases >= FEW_ERASES
}

/// The likeliest erases of the long run: every page that is programmed is erased one day.
#[must_use]
pub fn lasting(erases: f64, programmed_blocks: f64) -> f64 {
    if is_steady(erases, programmed_blocks) {
        erases.max(programmed_blocks)
    } else {
        programmed_blocks
    }
}

/// Years in which so many erases are used up; None for no end.
#[must_use]
pub fn years(erases: f64, per_second: f64) -> Option<f64> {
    if per_second <= 0.0 || per_second.is_infinite() {
        return None;
    }
    let years = erases / per_second / YEAR_S;
    years.is_finite().then_some(years)
}

/// How often a day a program runs that sleeps by itself: one run after the other. None for a
/// program without a pace of its own.
#[must_use]
pub fn own_pace(seconds: f64, busy_s: f64) -> Option<f64> {
    (seconds > 0.0 && 1.0 - busy_s / seconds > ASLEEP_SHARE).then_some(DAY_S / seconds)
}
