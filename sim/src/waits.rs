//! What a call waits for: its time by cause, for runs that record it.
//!
//! Code that begins other work than the call's own enters its cause, and the one before when that
//! work is over. The time between two changes belongs to the current cause. docs/models/latency.md
//! says which code enters which.
//!
//! Some models run a thread ahead, and let the program continue from an earlier time. What counted
//! beyond that is taken back, from the last cause first.
//!
//! Invariant: the times of a call's causes add up to the call's.

use crate::errno::Result;
use crate::units::Ns;

/// What passing time is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// The call's own work.
    #[default]
    Call,
    /// Dirty pages and write-buffers go to flash.
    WriteBack,
    /// Pages that no call has requested yet are read.
    ReadAhead,
    /// The index and what goes with it goes to flash.
    Commit,
    /// Garbage collection moves what is still of use.
    Collection,
    /// A block is moved so that blocks wear evenly.
    WearLevelling,
    /// A block is erased.
    Erase,
}

/// The number of causes.
pub const WAITS: usize = 7;

/// What a call into a layer gives: at least the time at which it is over.
pub trait Over {
    /// That time.
    fn over(&self) -> Ns;
}

impl Over for Ns {
    fn over(&self) -> Ns {
        *self
    }
}

impl<T> Over for (T, Ns) {
    fn over(&self) -> Ns {
        self.1
    }
}

/// When a call that began at `began` was over, or failed if that is known.
pub fn over<T: Over>(done: &Result<T>, began: Ns) -> Ns {
    match done {
        Ok(given) => given.over(),
        Err(error) => error.failed_at().unwrap_or(began),
    }
}

/// The time of a call by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    times: [Ns; WAITS],
    chip: Ns,
}

impl Waits {
    /// The time of a cause.
    pub fn of(&self, wait: Wait) -> Ns {
        self.times[wait as usize]
    }

    /// The times of all causes, by `Wait as usize`.
    pub fn times(&self) -> &[Ns; WAITS] {
        &self.times
    }

    /// How long of its own work the chip was busy.
    pub fn chip(&self) -> Ns {
        self.chip
    }
}

/// Adds times up while it is on.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    is_on: bool,
    wait: Wait,
    /// The cause to which time was added last.
    last: Wait,
    /// When time was last added, and how long the chip had been busy then.
    since: Ns,
    busy: Ns,
    waits: Waits,
}

impl Meter {
    /// A call begins. `busy` is how long the chip has been busy so far, here and below.
    pub fn begin(&mut self, now: Ns, busy: Ns) {
        *self = Meter { is_on: true, since: now, busy, ..Meter::default() };
    }

    /// The call is over; returns its times.
    pub fn end(&mut self, now: Ns, busy: Ns) -> Waits {
        self.add(now, busy);
        self.is_on = false;
        self.waits
    }

    /// Whether a call is being measured.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Changes the cause; returns the one before.
    pub fn enter(&mut self, now: Ns, busy: Ns, wait: Wait) -> Wait {
        self.add(now, busy);
        core::mem::replace(&mut self.wait, wait)
    }

    fn add(&mut self, now: Ns, busy: Ns) {
        if now < self.since {
            self.take_back(self.since - now);
        } else {
            let passed = now - self.since;
            self.waits.times[self.wait as usize] += passed;
            if passed > Ns::ZERO {
                self.last = self.wait;
            }
            if self.wait == Wait::Call {
                self.waits.chip += (busy - self.busy).min(passed);
            }
        }
        (self.since, self.busy) = (now, busy);
    }

    fn take_back(&mut self, mut left: Ns) {
        let rest = (0..WAITS).rev();
        for wait in core::iter::once(self.last as usize).chain(rest) {
            let time = &mut self.waits.times[wait];
            let taken = left.min(*time);
            (*time, left) = (*time - taken, left - taken);
        }
        self.waits.chip = self.waits.chip.min(self.waits.of(Wait::Call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_by_cause() {
        let mut meter = Meter::default();
        meter.begin(Ns(10), Ns(0));
        let call = meter.enter(Ns(15), Ns(2), Wait::WriteBack);
        let back = meter.enter(Ns(20), Ns(7), Wait::Erase);
        assert_eq!((call, back), (Wait::Call, Wait::WriteBack));
        meter.enter(Ns(50), Ns(37), back);
        meter.enter(Ns(45), Ns(37), call); // the thread ran ahead
        let waits = meter.end(Ns(60), Ns(40));
        assert_eq!(waits.times().map(|time| time.0), [20, 5, 0, 0, 0, 0, 25]);
        assert_eq!(waits.chip(), Ns(5));
        assert!(!meter.is_on());
    }
}
