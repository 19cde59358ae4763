//! A decorator that cuts the power in the n-th program or erase.
//!
//! Does what kernel/flashbed_nand does with `cut`: the operation is begun and not finished, and all
//! later ones fail until the power is back. The simulator leaves the worst possible state. An
//! interrupted page can be neither read nor programmed. An interrupted block is empty and has to be
//! erased again. (The module tears by a seed. It may also leave a page or block as it was, or
//! finished.)
//!
//! Invariant: between the cut and `power_on` the chip below is not accessed.

use crate::flash::{Block, Counts, Done, Failed, Fault, Flash, Moves, Span, Torn, WrongBits};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};

/// A chip whose power can fail in one of its counted changes.
#[derive(Clone, Debug)]
pub struct PowerCut<F> {
    inner: F,
    /// Changes up to and including the one in which the power fails; none if it does not.
    left: Option<u64>,
    /// The interrupted operation.
    torn: Option<Torn>,
}

impl<F: Flash> PowerCut<F> {
    /// Wraps `inner`, with power.
    pub fn new(inner: F) -> PowerCut<F> {
        PowerCut { inner, left: None, torn: None }
    }

    /// Makes the power fail in the `changes`th program or erase from now on.
    pub fn cut_power_in(&mut self, changes: u64) {
        assert!(changes > 0, "changes are counted from 1");
        self.left = Some(changes);
    }

    /// Restores the power. Returns the interrupted operation, if there was one.
    pub fn power_on(&mut self) -> Option<Torn> {
        self.torn.take()
    }

    /// Whether there is power for a read.
    #[inline]
    fn powered(&self, at: Ns) -> Result<(), Failed> {
        match self.torn {
            None => Ok(()),
            Some(_) => Err(Failed { at, fault: Fault::PowerLost }),
        }
    }

    /// Whether the power fails in this change.
    #[inline]
    fn fails(&mut self, what: Torn) -> bool {
        match &mut self.left {
            None => return false,
            Some(left) => *left -= 1,
        }
        let fails = self.left == Some(0);
        if fails {
            (self.left, self.torn) = (None, Some(what));
        }
        fails
    }
}

impl<F: Flash> Flash for PowerCut<F> {
    fn profile(&self) -> &ChipProfile {
        self.inner.profile()
    }

    #[inline]
    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done {
        self.powered(now)?;
        self.inner.read(now, task, page, moves)
    }

    fn read_next(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
        self.powered(now)?;
        self.inner.read_next(now, task, page, moves, time)
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.inner.change_column(now, length)
    }

    #[inline]
    fn command(&mut self, now: Ns, time: Ns) -> Ns {
        self.inner.command(now, time)
    }

    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.powered(now)?;
        let fails = self.fails(Torn::Program(page, cells));
        let at = self.inner.program(now, task, page, moves, cells)?;
        if fails {
            return Err(Failed { at, fault: Fault::PowerLost });
        }
        Ok(at)
    }

    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done {
        self.powered(now)?;
        if self.fails(Torn::Erase(block)) {
            return Err(Failed { at: now, fault: Fault::PowerLost });
        }
        self.inner.erase(now, task, block)
    }

    fn counts(&self) -> Counts {
        self.inner.counts()
    }

    fn block(&self, block: BlockNo) -> &Block {
        self.inner.block(block)
    }

    fn wrong_bits(&self) -> Option<&WrongBits> {
        self.inner.wrong_bits()
    }
}
