//! A decorator whose power fails in the n-th change of the chip that is around it.
//!
//! What kernel/flashbed_nand does with `cut`: the change, a program or an erase, is begun and not
//! finished, and nothing is answered until the power is back. What is left of it here is the worst
//! of what may be: the page that was being programmed cannot be read and not be programmed, and the
//! block that was being erased holds nothing and has to be erased again. (The module tears by a
//! seed, and may leave a page or block as it was or finished.)
//!
//! Invariant: between the cut and `power_on` the chip below is not touched.

use crate::flash::{pass_on, Done, Failed, Fault, Flash, Moves, Span, Torn};
use crate::units::{BlockNo, Ns, PageNo};

/// A chip, its changes counted, and the one in which its power fails.
#[derive(Clone, Debug)]
pub struct PowerCut<F> {
    inner: F,
    /// Changes until the power fails, that one included; none if it does not.
    left: Option<u64>,
    /// What was being done when it did.
    torn: Option<Torn>,
}

impl<F: Flash> PowerCut<F> {
    /// Around `inner`, with power.
    pub fn new(inner: F) -> PowerCut<F> {
        PowerCut { inner, left: None, torn: None }
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
    pass_on! {
        profile change_column counts block_erases set_block_erases is_factory_bad
        programmed_bytes wrong_bits begin_faults set_task start_recording take_record
    }

    #[inline]
    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Done {
        self.powered(now)?;
        self.inner.read(now, page, moves)
    }

    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.powered(now)?;
        if self.fails(Torn::Program(page, cells)) {
            let at = self.inner.program(now, page, moves, cells)?;
            return Err(Failed { at, fault: Fault::PowerLost });
        }
        self.inner.program(now, page, moves, cells)
    }

    fn erase(&mut self, now: Ns, block: BlockNo) -> Done {
        self.powered(now)?;
        if self.fails(Torn::Erase(block)) {
            return Err(Failed { at: now, fault: Fault::PowerLost });
        }
        self.inner.erase(now, block)
    }

    fn can_lose_power(&self) -> bool {
        true
    }

    fn cut_power_in(&mut self, changes: u64) {
        assert!(changes > 0, "changes are counted from 1");
        self.left = Some(changes);
    }

    fn power_on(&mut self) -> Option<Torn> {
        self.torn.take()
    }
}
