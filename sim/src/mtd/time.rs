//! How long the driver was called for.

use super::Mtd;
use crate::units::Ns;

impl<F> Mtd<F> {
    /// How long calls into the driver have taken so far, the chip's time included. Calls that
    /// failed are left out.
    pub fn time(&self) -> Ns {
        self.time
    }

    /// A call from `began` on, which is over.
    #[inline]
    pub(super) fn took(&mut self, began: Ns, over: Ns) -> Ns {
        self.time += over - began;
        over
    }
}
