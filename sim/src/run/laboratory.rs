//! What the laboratory does to a chip, which none of the layers above it knows of.
//!
//! The chips that a run can have are a plain [`Chip`], one whose operations are recorded, and one
//! that can fail and lose its power besides. The machine (machine.rs) holds it by this trait; the
//! decorators themselves are in flash/.

use crate::flash::{Chip, Faulty, Flash, FlashOp, PowerCut, Torn, Traced};

/// A chip in the laboratory. What a chip has no decorator for does nothing.
///
/// # Examples
///
/// A chip around another that notes when it was recorded:
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
/// #   fn change_column(&mut self, now: Ns, length: u32) -> Ns {
/// #       self.inner.change_column(now, length)
/// #   }
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
    /// Whether its power can be cut.
    fn can_lose_power(&self) -> bool {
        false
    }
    /// The power is going to fail in the `changes`th program or erase from here on.
    fn cut_power_in(&mut self, _changes: u64) {}
    /// The power is back; what it failed in, if it did.
    fn power_on(&mut self) -> Option<Torn> {
        None
    }
    /// Operations fail from here on.
    fn begin_faults(&mut self) {}
    /// Operations are written down from here on.
    fn start_recording(&mut self) {}
    /// What was written down, which ends it.
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

    fn begin_faults(&mut self) {
        Faulty::begin_faults(self);
    }
}

impl<F: Laboratory> Laboratory for Traced<F> {
    fn can_lose_power(&self) -> bool {
        self.inner().can_lose_power()
    }

    fn cut_power_in(&mut self, changes: u64) {
        self.inner_mut().cut_power_in(changes);
    }

    fn power_on(&mut self) -> Option<Torn> {
        self.inner_mut().power_on()
    }

    fn begin_faults(&mut self) {
        self.inner_mut().begin_faults();
    }

    fn start_recording(&mut self) {
        Traced::start_recording(self);
    }

    fn take_record(&mut self) -> Vec<FlashOp> {
        Traced::take_record(self)
    }
}
