//! Power cuts, as the driver and what is above it know of them.
//!
//! No kernel code has this part: a kernel that loses its power is gone. The file systems ask
//! whether that can happen, to remember what bytes are on flash, and where it did.

use super::Mtd;
use crate::flash::{Failed, Fault, Flash, Span, Torn};
use crate::stop::Stop;
use crate::units::Ns;

/// What the power failed in, within the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornAt {
    /// The program of these cells of the page at an offset.
    Program {
        /// First byte of the page.
        offset: u64,
        /// What of it was being programmed.
        cells: Span,
    },
    /// The erase of a block.
    Erase {
        /// Block of the partition.
        block: u32,
    },
}

impl<F: Flash> Mtd<F> {
    /// The power of the chip may be cut.
    pub fn expect_power_cuts(&mut self) {
        self.can_lose_power = true;
    }

    /// Whether the power can fail at all, so that it is worth remembering what bytes are on flash.
    #[inline]
    pub fn can_lose_power(&self) -> bool {
        self.can_lose_power
    }

    /// From here on the power goes when the caller gives up.
    pub fn obey(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Whether there is power still: operations of the chip ask it, and whoever does much between
    /// them.
    #[inline]
    pub fn has_power(&self, now: Ns) -> Result<(), Failed> {
        if self.stop.is_thrown() {
            return Err(Failed { at: now, fault: Fault::PowerLost });
        }
        Ok(())
    }

    /// The power is back: nothing is remembered. Returns what it failed in, as bytes of the
    /// partition.
    pub fn power_on(&mut self, torn: Option<Torn>) -> Option<TornAt> {
        self.page_buffer = None;
        let first = self.partition.first_block;
        torn.map(|torn| match torn {
            Torn::Program(page, cells) => {
                let page = page.0 - first * self.chip.pages_per_block;
                TornAt::Program { offset: u64::from(page) << self.page_shift, cells }
            }
            Torn::Erase(block) => TornAt::Erase { block: block.0 - first },
        })
    }
}
