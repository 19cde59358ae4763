//! The kernel's coarse clock: ticks, `jiffies`, and when timers expire.
//!
//! Mirrors kernel/time/timer.c of Linux 6.1 (calc_index, round_jiffies_common) on one processor.
//! Ticks come at multiples of the tick length (tick_init_jiffy_update).
//!
//! Invariant: a timer expires at a tick, never before it is due.

use crate::units::Ns;

/// HZ, the rate of the machine's ticks.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    per_second: u64,
    tick_ns: u64,
}

impl Ticks {
    /// Ticks at `hz` per second.
    pub fn new(hz: u64) -> Ticks {
        Ticks { per_second: hz, tick_ns: 1_000_000_000 / hz }
    }

    /// The length of a tick in nanoseconds.
    pub fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    /// INITIAL_JIFFIES: five minutes before the low 32 bits wrap.
    fn initial(&self) -> u64 {
        (1 << 32) - 300 * self.per_second
    }

    /// jiffies, correct in its low bits.
    pub fn jiffies(&self, now: Ns) -> u64 {
        now.0 / self.tick_ns + self.initial()
    }

    /// When `jiffies` reaches that value.
    fn time_of(&self, jiffies: u64) -> Ns {
        Ns((jiffies - self.initial()) * self.tick_ns)
    }

    /// The second with which inodes are stamped (current_time): the clock advances by whole ticks
    /// (ktime_get_coarse_real_ts64), and seconds begin at a tick.
    pub fn second(&self, now: Ns) -> u64 {
        now.0 / (self.tick_ns * self.per_second)
    }

    /// When a timer expires that is set `ms` from now. The timer wheel rounds up to its granularity
    /// there, and by at least one tick (kernel/time/timer.c calc_index, since 4.8).
    pub fn timer(&self, now: Ns, ms: u64) -> Ns {
        self.timer_in(now, self.of_ms(ms))
    }

    /// msecs_to_jiffies.
    pub fn of_ms(&self, ms: u64) -> u64 {
        (ms * self.per_second).div_ceil(1000)
    }

    /// HZ.
    pub fn per_second(&self) -> u64 {
        self.per_second
    }

    /// When a timer expires that is set so many ticks from now.
    pub fn timer_in(&self, now: Ns, ticks: u64) -> Ns {
        let mut shift = 0;
        while ticks >> shift >= 63 {
            shift += 3;
        }
        let expires = self.jiffies(now) + ticks;
        self.time_of(((expires >> shift) + 1) << shift)
    }

    /// When a timer next expires that was set at boot and sets itself again `ms` later, rounded by
    /// round_jiffies_up. It always rounds up, from a whole second to the next, so 5 s become rounds
    /// of 6 s (kernel/timer.c round_jiffies_common).
    pub fn next_round(&self, now: Ns, ms: u64) -> Ns {
        let round = (ms / 1000 + 1) * self.per_second;
        let since_boot = self.jiffies(now) - self.initial();
        self.time_of((since_boot / round + 1) * round + self.initial())
    }

    /// The `count`th tick from now.
    pub fn after(&self, now: Ns, count: u64) -> Ns {
        self.time_of(self.jiffies(now) + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_timers_end_with_ticks() {
        for hz in [100, 128, 250] {
            let ticks = Ticks::new(hz);
            assert_eq!(ticks.second(Ns(2_999_999_999)), 2);
            assert_eq!(ticks.second(Ns(3_000_000_000)), 3);
            let end = ticks.timer(Ns(3_000_000_001), 50);
            assert!(end.0 >= 3_050_000_001 && end.0 % ticks.tick_ns() == 0, "{hz}: {end:?}");
        }
    }
}
