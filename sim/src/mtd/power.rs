//! Power cuts, as the driver and the layers above see them.
//!
//! No kernel code does this, because a kernel without power is gone. The file systems ask whether
//! the power can fail, so that they record which bytes are on flash, and where it failed.

use super::Mtd;
use crate::flash::{Failed, Fault, Span, Torn};
use crate::mtd::NandDriver;
use crate::stop::Stop;
use crate::units::Ns;

/// The operation that a power cut interrupted, within the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornAt {
    /// The program of these cells of the page at `offset`.
    Program {
        /// First byte of the page.
        offset: u64,
        /// The cells that were being programmed.
        cells: Span,
    },
    /// The erase of a block.
    Erase {
        /// Block of the partition.
        block: u32,
    },
}

impl<D: NandDriver> Mtd<D> {
    /// Enables power cuts of the chip.
    pub fn expect_power_cuts(&mut self) {
        self.can_lose_power = true;
    }

    /// Whether the power can fail, so that the bytes on flash have to be recorded.
    #[inline]
    pub fn can_lose_power(&self) -> bool {
        self.can_lose_power
    }

    /// From now on the power fails when the caller stops the run.
    pub fn obey(&mut self, stop: Stop) {
        self.info.stop = stop;
    }

    /// Whether there is power. Chip operations check it, and so does code that does much between
    /// them.
    #[inline]
    pub fn has_power(&self, now: Ns) -> Result<(), Failed> {
        if self.info.stop.is_thrown() {
            return Err(Failed { at: now, fault: Fault::PowerLost });
        }
        Ok(())
    }

    /// Restores the power and drops the driver's pages. Returns the operation that was interrupted,
    /// within the partition.
    pub fn power_on(&mut self, torn: Option<Torn>) -> Option<TornAt> {
        self.driver.forget();
        torn.map(|torn| match torn {
            Torn::Program(page, cells) => {
                TornAt::Program { offset: self.info.offset_of(page), cells }
            }
            Torn::Erase(block) => {
                TornAt::Erase { block: block.0 - self.info.partition.first_block }
            }
        })
    }
}
