//! Units. Time, page number and block number are types of their own, so that no bare integer with
//! two possible meanings crosses a module boundary.

use serde::Deserialize;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A simulated instant or a duration, in nanoseconds. Instants count from the creation of the chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// Zero time.
    pub const ZERO: Ns = Ns(0);

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// `count` units of `cost_ps` picoseconds each, rounded to the nearest nanosecond.
    pub fn from_ps(count: u64, cost_ps: u64) -> Ns {
        Ns(count.saturating_mul(cost_ps).saturating_add(500) / 1000)
    }
}

impl Add for Ns {
    type Output = Ns;
    fn add(self, other: Ns) -> Ns {
        Ns(self.0 + other.0)
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, other: Ns) {
        self.0 += other.0;
    }
}

impl Sub for Ns {
    type Output = Ns;
    fn sub(self, other: Ns) -> Ns {
        Ns(self.0 - other.0)
    }
}

impl Mul<u64> for Ns {
    type Output = Ns;
    fn mul(self, times: u64) -> Ns {
        Ns(self.0 * times)
    }
}

impl Sum for Ns {
    fn sum<I: Iterator<Item = Ns>>(items: I) -> Ns {
        items.fold(Ns::ZERO, Add::add)
    }
}

/// A flash page, counted from the start of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageNo(pub u32);

/// An erase block, counted from the start of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockNo(pub u32);
