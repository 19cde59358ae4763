//! The collector's thread, and the clock its sleeps and the dice are read from.
//!
//! Mirrors fs/jffs2/background.c of Linux 6.1 (jffs2_garbage_collect_trigger,
//! jffs2_garbage_collect_thread) and of the timer wheel what decides when its sleeps end. A signal
//! wakes the thread at once; without one it sleeps 50 ms before each pass. It has a nice value of 10, so while
//! a program is busy it waits for the scheduler's tick.
//!
//! Since 3.13 (Linux "jffs2: do not support kill -HUP" and its followers in background.c) a signal that comes during a pass is kept:
//! each erase sends one, so the pass that erased is followed by another that moves a node.
//!
//! Invariant: the thread runs only between nodes of a writer, never within one.

use super::Jffs2;
use crate::chip::Flash;
use crate::fs::{FsError, PageCache, Result};
use crate::trace::Task;
use crate::units::Ns;

/// msecs_to_jiffies(50) is this long or a tick more.
const PACE_MS: u64 = 50;
/// Ticks come this much after whole multiples of a tick, as first seen on user-mode Linux: which of the two sides of a tick an
/// operation is on hangs on it.
const TICK_PHASE_NS: u64 = 50_000;
/// A busy program loses the processor at this tick after the thread woke up: at the one before, the thread
/// begins its pass and finds the allocation lock taken. Found on 6.1 (docs/jffs2.md).
const WAKE_TICKS: u64 = 2;
/// The same after a tick has taken the processor from the thread: weights of nice 0 and 10.
const INTERRUPTED_TICKS: u64 = 3;

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
        now.0.saturating_sub(TICK_PHASE_NS) / self.tick_ns() + self.initial()
    }

    /// When `jiffies` becomes that.
    fn time_of(&self, jiffies: u64) -> Ns {
        Ns((jiffies - self.initial()) * self.tick_ns() + TICK_PHASE_NS)
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
    fn after(&self, now: Ns, count: u64) -> Ns {
        self.time_of(self.jiffies(now) + count)
    }
}

/// What the thread is doing between passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waits {
    /// For a signal; there is nothing to do.
    #[default]
    Signal,
    /// For a signal or until then.
    Until(Ns),
    /// For the processor, since `since`. While a program is busy it gets as far as the lock at `lock`, and on at `turn`.
    Processor { since: Ns, lock: Ns, turn: Ns },
}

/// The thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collector {
    waits: Waits,
    /// SIGHUP is pending.
    signal: bool,
    /// It is in a pass.
    running: bool,
    /// When a tick takes the processor from it, if a program wants it.
    slice_end: Option<Ns>,
    /// The block whose erase it was checking when that happened, and how far it had come.
    checking: Option<(u32, u32)>,
}

impl<F: Flash> Jffs2<F> {
    /// jffs2_start_garbage_collect_thread: it begins with its sleep if there is work.
    pub(super) fn start_collector(&mut self, now: Ns) {
        self.collector = Collector::default();
        if self.space.thread_should_wake() {
            self.collector.waits = Waits::Until(self.ticks.timer(now, PACE_MS));
        }
    }

    /// jffs2_garbage_collect_trigger.
    pub(super) fn trigger_collector(&mut self, now: Ns) {
        if self.collector.signal || !self.space.thread_should_wake() {
            return;
        }
        match self.collector.waits {
            _ if self.collector.in_pass(now) => {
                self.collector.signal = self.options.collector_keeps_signals;
            }
            Waits::Signal | Waits::Until(_) => self.collector.waits = self.woken(now),
            Waits::Processor { .. } => {}
        }
    }

    fn woken(&self, since: Ns) -> Waits {
        let (lock, turn) = (self.ticks.after(since, 1), self.ticks.after(since, WAKE_TICKS));
        Waits::Processor { since, lock, turn }
    }

    /// When the thread has something to do while nobody else needs the processor.
    pub(super) fn collector_due(&self) -> Option<Ns> {
        match self.collector.waits {
            Waits::Signal => None,
            Waits::Until(due) | Waits::Processor { since: due, .. } => Some(due),
        }
    }

    /// The program is busy, but the scheduler gives the thread its turn.
    pub(super) fn let_collector_run(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        if self.collector.running {
            return Ok(now);
        }
        if let Waits::Until(due) = self.collector.waits {
            if due <= now {
                self.collector.waits = self.woken(due);
            }
        }
        if !self.has_turn(now) {
            return Ok(now);
        }
        self.collector.slice_end = Some(self.ticks.after(now, 1));
        self.mtd.flash_mut().set_task(Task::Background);
        let over = self.run_passes(now, pages);
        self.mtd.flash_mut().set_task(Task::Program);
        self.collector.slice_end = None;
        over
    }

    fn has_turn(&self, now: Ns) -> bool {
        matches!(self.collector.waits, Waits::Processor { turn, .. } if turn <= now)
    }

    /// The same in the middle of a node, where the program holds the lock: the thread needs none to go on
    /// checking an erased block.
    pub(super) fn let_check_go_on(&mut self, now: Ns) -> Result<Ns> {
        if self.collector.running || !self.has_turn(now) {
            return Ok(now);
        }
        let Some((block, offset)) = self.collector.checking.take() else { return Ok(now) };
        self.collector.slice_end = Some(self.ticks.after(now, 1));
        self.collector.running = true;
        self.mtd.flash_mut().set_task(Task::Background);
        let over = self.mark_erased_block(now, block, offset, None);
        self.mtd.flash_mut().set_task(Task::Program);
        self.collector.running = false;
        self.collector.slice_end = None;
        let now = over?;
        if self.collector.checking.is_none() {
            self.sleep_or_go_on(now);
        }
        Ok(now)
    }

    /// Passes follow each other while a signal is pending and nobody takes the processor away.
    pub(super) fn run_passes(&mut self, mut now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        loop {
            now = self.run_collector(now, pages)?;
            let again =
                matches!(self.collector.waits, Waits::Processor { since, .. } if since == now);
            if !again || self.slice_is_over(now) {
                return Ok(now);
            }
        }
    }

    /// Whether a program that waits gets the processor here (cond_resched). If so the thread goes on later,
    /// with the check of an erased block, if any, from where it is.
    pub(super) fn is_interrupted(&mut self, now: Ns, checking: Option<(u32, u32)>) -> bool {
        if !self.slice_is_over(now) {
            return false;
        }
        self.collector.checking = checking;
        let turn = self.ticks.after(now, INTERRUPTED_TICKS);
        self.collector.waits = Waits::Processor { since: now, lock: now, turn };
        true
    }

    fn slice_is_over(&self, now: Ns) -> bool {
        self.collector.slice_end.is_some_and(|end| end <= now)
    }

    /// One turn of jffs2_garbage_collect_thread, from its wake-up to its next sleep; or as far as it gets.
    fn run_collector(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let checking = self.collector.checking.take();
        self.collector.waits = Waits::Signal;
        self.collector.running = true;
        let passed = match checking {
            Some((block, offset)) => self.mark_erased_block(now, block, offset, None),
            None => self.garbage_collect_pass(now, pages).map(|(_, now)| now),
        };
        self.collector.running = false;
        let now = match passed {
            Ok(later) => later,
            // The thread ends; what it was to do is left to those who write.
            Err(FsError::NoSpace) => return Ok(now),
            Err(other) => return Err(other),
        };
        if self.collector.waits != Waits::Signal {
            return Ok(now);
        }
        self.sleep_or_go_on(now);
        Ok(now)
    }

    /// The end of a pass.
    fn sleep_or_go_on(&mut self, now: Ns) {
        self.collector.waits = if std::mem::take(&mut self.collector.signal) {
            self.woken(now)
        } else if self.space.thread_should_wake() {
            Waits::Until(self.ticks.timer(now, PACE_MS))
        } else {
            Waits::Signal
        };
    }
}

impl Collector {
    /// Whether the thread is in a pass: it runs, or waits for the lock, or was interrupted. Signals are blocked.
    fn in_pass(&self, now: Ns) -> bool {
        self.running || matches!(self.waits, Waits::Processor { lock, .. } if lock <= now)
    }
}
