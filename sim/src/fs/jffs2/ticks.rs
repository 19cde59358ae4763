//! The machine's clock as far as JFFS2 reads it: the dice are thrown with the tick's number, and timers end at ticks.
//!
//! Mirrors jiffies (include/linux/jiffies.h) and the timer wheel (kernel/time/timer.c) of Linux 6.1. Ticks come at whole multiples of
//! a tick (tick_init_jiffy_update).

use crate::units::Ns;

/// HZ, by which the machine's clock counts.
#[derive(Clone, Copy, Debug)]
pub struct Ticks(u64);

impl Ticks {
    pub fn new(hz: u64) -> Ticks {
        Ticks(hz)
    }

    /// Nanoseconds of a tick.
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / self.0
    }

    /// INITIAL_JIFFIES: five minutes before the low 32 bits wrap.
    fn initial(&self) -> u64 {
        (1 << 32) - 300 * self.0
    }

    /// jiffies, as far as anybody looks at its low bits.
    pub fn jiffies(&self, now: Ns) -> u64 {
        now.0 / self.tick_ns() + self.initial()
    }

    /// When `jiffies` becomes that.
    fn time_of(&self, jiffies: u64) -> Ns {
        Ns((jiffies - self.initial()) * self.tick_ns())
    }

    /// When a timer ends that is set to `ms` from now: the wheel rounds up to its granularity there,
    /// at least one tick (kernel/time/timer.c calc_index, since 4.8).
    pub fn timer(&self, now: Ns, ms: u64) -> Ns {
        let ticks = (ms * self.0).div_ceil(1000);
        let mut shift = 0;
        while ticks >> shift >= 63 {
            shift += 3;
        }
        let expires = self.jiffies(now) + ticks;
        self.time_of(((expires >> shift) + 1) << shift)
    }

    /// When a timer next ends that was set at boot and sets itself again to `ms` from then, rounded by round_jiffies_up: that is
    /// always up, from a whole second to the one after, so 5 s make a round of 6 s (kernel/timer.c round_jiffies_common).
    pub fn next_round(&self, now: Ns, ms: u64) -> Ns {
        let round = (ms / 1000 + 1) * self.0;
        let since_boot = self.jiffies(now) - self.initial();
        self.time_of((since_boot / round + 1) * round + self.initial())
    }
}
