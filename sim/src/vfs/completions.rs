//! The share of recently written pages that a device wrote, which is its share of the dirty limit.
//!
//! Mirrors lib/flex_proportions.c as mm/page-writeback.c uses it (wb_domain_writeout_add,
//! writeout_period, fprop_fraction_percpu) and lib/percpu_counter.c, Linux 6.1. A timer halves the
//! counts every three seconds. It does not wake an idle processor, and stops when at most one page
//! is counted. A kernel for several processors counts in batches per processor, and a reader does
//! not see the part that is not in the total yet.
//!
//! Left out: other devices. The count begins with one, as at boot (fprop_global_init), and
//! continues through mounts.
//!
//! Invariant: the timer is set if more than one page is counted.

use crate::profile::KernelFacts;
use crate::sched::Ticks;
use crate::units::Ns;

/// VM_COMPLETIONS_PERIOD_LEN.
const PERIOD_MS: u64 = 3_000;
/// PROP_BATCH, and percpu_counter_batch.
const OWN_BATCH: i64 = 8;
const ALL_BATCH: i64 = 32;

/// struct percpu_counter.
#[derive(Clone, Copy, Debug)]
struct Counter {
    count: i64,
    /// The processor's part that is not in the total yet.
    kept: i64,
    /// None on a kernel for one processor.
    batch: Option<i64>,
}

impl Counter {
    fn new(count: i64, batch: Option<i64>) -> Counter {
        Counter { count, kept: 0, batch }
    }

    /// percpu_counter_add_batch.
    fn add(&mut self, amount: i64) {
        self.kept += amount;
        if self.batch.is_none_or(|batch| self.kept.abs() >= batch) {
            self.count += std::mem::take(&mut self.kept);
        }
    }

    /// percpu_counter_read_positive.
    fn read(&self) -> u64 {
        self.count.max(0).unsigned_abs()
    }

    /// percpu_counter_sum.
    fn sum(&self) -> i64 {
        self.count + self.kept
    }
}

/// struct fprop_global of the machine and fprop_local_percpu of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completions {
    ticks: Ticks,
    /// The longest sleep of an idle processor.
    longest_idle: Ns,
    /// See [`KernelFacts`].
    first_idle_tick: bool,
    all: Counter,
    period: u64,
    own: Counter,
    own_period: u64,
    /// period_time in jiffies, and when its timer expires.
    timer: Option<(u64, Ns)>,
    /// The time up to which the processor's activity is known.
    awake: Ns,
}

impl Completions {
    /// The state after boot.
    pub fn new(facts: &KernelFacts, now: Ns) -> Completions {
        let counter = |count, batch| Counter::new(count, facts.smp.then_some(batch));
        Completions {
            ticks: Ticks::new(facts.ticks_per_second),
            longest_idle: Ns::from_ms(facts.longest_idle_ms),
            first_idle_tick: facts.first_idle_tick,
            all: counter(1, ALL_BATCH),
            period: 0,
            own: counter(0, OWN_BATCH),
            own_period: 0,
            timer: None,
            awake: now,
        }
    }

    /// The same machine with a new device, as a mount creates one.
    pub fn of_new_device(&self) -> Completions {
        Completions { own: Counter::new(0, self.own.batch), own_period: 0, ..*self }
    }

    /// __wb_writeout_add.
    pub fn add(&mut self, pages: i64) {
        self.reflect_period();
        self.own.add(pages);
        self.all.add(pages);
        if self.timer.is_none() {
            let due = self.ticks.jiffies(self.awake) + self.period_ticks();
            self.set_timer(due, self.awake);
        }
    }

    /// wb_calc_thresh: the device's share of so many pages.
    pub fn share_of(&mut self, now: Ns, pages: u64) -> u64 {
        self.pass(now);
        self.reflect_period();
        let own = self.own.read();
        pages * own / self.all.read().max(own).max(1)
    }

    /// The processor is awake now. It was idle in between, or has been awake since the last call.
    #[inline]
    pub fn pass(&mut self, now: Ns) {
        while let Some((due, end)) = self.timer.filter(|&(_, end)| end <= now) {
            let Some(at) = self.expires_at(end, now) else { break };
            self.end_period(due, at);
        }
        self.awake = self.awake.max(now);
    }

    /// When a timer that is due at `end` expires, if it has: only ticks run the timer wheel. One
    /// follows after each interrupt where the first tick of an idle processor comes.
    fn expires_at(&self, end: Ns, now: Ns) -> Option<Ns> {
        let first = self.ticks.after(self.awake, 1);
        if self.first_idle_tick && end <= first {
            return Some(first).filter(|&first| first <= now);
        }
        let asleep = if self.first_idle_tick { first } else { self.awake };
        let idle_ns = self.longest_idle.0;
        let woken = asleep + Ns((end - asleep).0.div_ceil(idle_ns) * idle_ns);
        let is_tick = self.ticks.after(now, 0) == now;
        (woken <= now || is_tick || !self.first_idle_tick).then_some(woken.min(now))
    }

    /// writeout_period.
    fn end_period(&mut self, due: u64, now: Ns) {
        self.awake = now;
        let events = self.all.sum();
        if events <= 1 {
            self.timer = None;
            return;
        }
        let missed = (self.ticks.jiffies(now) - due) / self.period_ticks();
        self.all.add(halved(events, missed + 1) - events);
        self.period += missed + 1;
        self.set_timer(due + (missed + 1) * self.period_ticks(), now);
    }

    fn set_timer(&mut self, due: u64, now: Ns) {
        let ticks = due.saturating_sub(self.ticks.jiffies(now));
        self.timer = Some((due, self.ticks.timer_in(now, ticks)));
    }

    /// fprop_reflect_period_percpu.
    fn reflect_period(&mut self) {
        let periods = self.period - std::mem::replace(&mut self.own_period, self.period);
        if periods > 0 {
            let seen = self.own.count;
            let events = if seen < OWN_BATCH { self.own.sum() } else { seen };
            self.own.add(halved(events, periods) - events);
        }
    }

    fn period_ticks(&self) -> u64 {
        PERIOD_MS * self.ticks.per_second() / 1000
    }
}

fn halved(events: i64, times: u64) -> i64 {
    events.checked_shr(u32::try_from(times).unwrap_or(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn share_after(facts: &KernelFacts, pages: i64, seconds: u64) -> bool {
        let mut completions = Completions::new(facts, Ns(0));
        completions.add(pages);
        for second in 1..=seconds {
            completions.pass(Ns(second * S));
        }
        completions.share_of(Ns(seconds * S), 1000) > 0
    }

    #[test]
    fn a_share_is_forgotten_when_too_few_pages_were_completed() {
        assert!(!share_after(&KernelFacts::USER_MODE, 0, 1));
        assert!(share_after(&KernelFacts::USER_MODE, 1, 1));
        assert!(
            !share_after(&KernelFacts::USER_MODE, 1, 5),
            "two were counted, and one is left, which another read"
        );
        assert!(share_after(&KernelFacts::USER_MODE, 2, 5));
        assert!(share_after(&KernelFacts::USER_MODE, 256, 100), "the last of 257 is ours for ever");
    }

    /// Seven pages are in no total yet.
    #[test]
    fn several_processors_count_in_batches() {
        assert!(!share_after(&KernelFacts::DEBIAN, 7, 1));
        assert!(share_after(&KernelFacts::DEBIAN, 8, 1));
    }

    #[test]
    fn an_idle_processor_halves_once_for_each_period_it_slept_through() {
        let mut completions = Completions::new(&KernelFacts::USER_MODE, Ns(0));
        completions.add(256);
        completions.pass(Ns(14 * S));
        assert_eq!(completions.all.sum(), 16, "after 4.3 s, 8.6 s, and twice after 12.9 s");
    }
}
