//! The kernel's coarse clock: ticks, `jiffies`, and when its timers end.
//!
//! Mirrors kernel/time/timer.c of Linux 6.1 (calc_index, round_jiffies_common) on one processor. Ticks come at whole multiples of a tick
//! (tick_init_jiffy_update).
//!
//! Invariant: a timer ends at a tick, never before it is due.

use crate::units::Ns;

/// The clock's steps come this much after ticks: between 154 and 300 us on user-mode Linux.
const CLOCK_PHASE_NS: u64 = 200_000;

/// HZ, by which the machine's clock counts.
#[derive(Clone, Copy, Debug)]
pub struct Ticks(u64);

impl Ticks {
    /// So many a second.
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

    /// The last tick.
    pub fn last(&self, now: Ns) -> Ns {
        self.time_of(self.jiffies(now))
    }

    /// The second that inodes are stamped with (current_time), by a clock that goes on by whole ticks and was last
    /// `updated` then (timekeeping_advance, ktime_get_coarse_real_ts64).
    pub fn stamp_s(&self, updated: Ns) -> u64 {
        let ticks = updated.0.saturating_sub(CLOCK_PHASE_NS) / self.tick_ns();
        (ticks * self.tick_ns() + CLOCK_PHASE_NS) / 1_000_000_000
    }

    /// When a timer ends that is set to `ms` from now: the wheel rounds up to its granularity there,
    /// at least one tick (kernel/time/timer.c calc_index, since 4.8).
    pub fn timer(&self, now: Ns, ms: u64) -> Ns {
        self.timer_in(now, (ms * self.0).div_ceil(1000))
    }

    /// HZ.
    pub fn per_second(&self) -> u64 {
        self.0
    }

    /// The same of a timer that is set to so many ticks from now.
    pub fn timer_in(&self, now: Ns, ticks: u64) -> Ns {
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

    /// The `count`th tick from now.
    pub fn after(&self, now: Ns, count: u64) -> Ns {
        self.time_of(self.jiffies(now) + count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured on user-mode Linux: a write 4.0 ms after a whole second is stamped with it, one 3.8 ms after with
    /// the one before; on a processor that wakes up then, 0.3 ms are enough and 0.1 are not.
    #[test]
    fn a_second_begins_with_a_tick_or_a_wake_up() {
        let ticks = Ticks::new(250);
        let second = |us: u64| Ns(3_000_000_000 + us * 1_000);
        assert_eq!(ticks.stamp_s(ticks.last(second(3_900))), 2);
        assert_eq!(ticks.stamp_s(ticks.last(second(4_100))), 3);
        assert_eq!(ticks.stamp_s(second(101)), 2);
        assert_eq!(ticks.stamp_s(second(301)), 3);
    }
}
