//! What the laboratory does to a chip from outside, invisible to the layers above it.
//!
//! A run has one of three chips: a plain [`Chip`], one whose operations are recorded, or one that
//! can also fail and lose its power. The machine (machine.rs) uses it through this trait. flash/
//! has the decorators.

use crate::flash::{Chip, Faulty, Flash, FlashOp, PowerCut, Torn, Traced};
use crate::units::Ns;

/// A chip in the laboratory. A method does nothing on a chip without the decorator for it.
///
/// # Examples
///
/// A chip around another that counts its recordings:
///
/// ```
/// # use sim::flash::{Block, Counts, Done, Flash, FlashOp, Moves, Span, WrongBits};
/// # use sim::{profile::ChipProfile, sched::Task, units::{BlockNo, Ns, PageNo}};
/// use sim::run::Laboratory;
/// #[derive(Clone)]
/// struct Observed<F> { inner: F, recordings: u32 }
///
/// impl<F: Laboratory> Laboratory for Observed<F> {
///     fn start_recording(&mut self) {
///         self.recordings += 1;
///         self.inner.start_recording();
///     }
///     fn take_record(&mut self) -> Vec<FlashOp> { self.inner.take_record() }
/// }
/// # impl<F: Flash> Flash for Observed<F> {
/// #   fn profile(&self) -> &ChipProfile { self.inner.profile() }
/// #   fn read(&mut self, now: Ns, by: Task, page: PageNo, moves: Moves) -> Done {
/// #       self.inner.read(now, by, page, moves)
/// #   }
/// #   fn read_next(&mut self, now: Ns, by: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
/// #       self.inner.read_next(now, by, page, moves, time)
/// #   }
/// #   fn change_column(&mut self, now: Ns, length: u32) -> Ns {
/// #       self.inner.change_column(now, length)
/// #   }
/// #   fn command(&mut self, now: Ns, time: Ns) -> Ns { self.inner.command(now, time) }
/// #   fn program(&mut self, now: Ns, by: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
/// #       self.inner.program(now, by, page, moves, cells)
/// #   }
/// #   fn erase(&mut self, now: Ns, by: Task, block: BlockNo) -> Done {
/// #       self.inner.erase(now, by, block)
/// #   }
/// #   fn counts(&self) -> Counts { self.inner.counts() }
/// #   fn block(&self, block: BlockNo) -> &Block { self.inner.block(block) }
/// #   fn wrong_bits(&self) -> Option<&WrongBits> { self.inner.wrong_bits() }
/// # }
/// ```
pub trait Laboratory: Flash {
    /// Whether a run on it can record layers. Clocks around a file system are compiled for such
    /// chips only.
    const TIMES_LAYERS: bool = false;
    /// Whether its power can be cut.
    fn can_lose_power(&self) -> bool {
        false
    }
    /// Makes the power fail in the `changes`th program or erase from now on.
    fn cut_power_in(&mut self, _changes: u64) {}
    /// Restores the power. Returns the interrupted operation, if there was one.
    fn power_on(&mut self) -> Option<Torn> {
        None
    }
    /// Begins to fail operations.
    fn begin_faults(&mut self, _now: Ns) {}
    /// Starts recording operations.
    fn start_recording(&mut self) {}
    /// Stops recording; returns the recorded operations.
    fn take_record(&mut self) -> Vec<FlashOp> {
        Vec::new()
    }
}

impl Laboratory for Chip {}

impl Laboratory for Faulty<PowerCut<Chip>> {
    fn can_lose_power(&self) -> bool {
        true
    }

    fn cut_power_in(&mut self, changes: u64) {
        self.inner_mut().cut_power_in(changes);
    }

    fn power_on(&mut self) -> Option<Torn> {
        self.inner_mut().power_on()
    }

    fn begin_faults(&mut self, now: Ns) {
        Faulty::begin_faults(self, now);
    }
}

impl Laboratory for Traced<Chip> {
    const TIMES_LAYERS: bool = true;

    fn start_recording(&mut self) {
        Traced::start_recording(self);
    }

    fn take_record(&mut self) -> Vec<FlashOp> {
        Traced::take_record(self)
    }
}

impl Laboratory for Traced<Faulty<PowerCut<Chip>>> {
    fn can_lose_power(&self) -> bool {
        self.inner().can_lose_power()
    }

    fn cut_power_in(&mut self, changes: u64) {
        self.inner_mut().cut_power_in(changes);
    }

    fn power_on(&mut self) -> Option<Torn> {
        self.inner_mut().power_on()
    }

    fn begin_faults(&mut self, now: Ns) {
        self.inner_mut().begin_faults(now);
    }

    fn start_recording(&mut self) {
        Traced::start_recording(self);
    }

    fn take_record(&mut self) -> Vec<FlashOp> {
        Traced::take_record(self)
    }
}
