//! The driver that a board's chip needs: of raw NAND, SPI-NAND or SPI-NOR.
//!
//! Mirrors no kernel code, where a device tree chooses. An enum and no second type of stack: the
//! file systems are compiled once for each chip and decorator, not for each driver as well.

use super::{MtdInfo, NandDriver, RawNand, SpiNand, SpiNor};
use crate::flash::{Done, Flash, Span};
use crate::profile::BoardProfile;
use crate::units::{BlockNo, Ns, PageNo};

/// A chip with its driver.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the types say it")]
pub enum Driven<F> {
    Raw(RawNand<F>),
    Spi(SpiNand<F>),
    Nor(SpiNor<F>),
}

impl<F: Flash> Driven<F> {
    /// The driver of `board` for its chip.
    pub fn new(flash: F, board: &BoardProfile) -> Driven<F> {
        match (board.chip.spi, board.chip.nor) {
            (None, None) => Driven::Raw(RawNand::new(flash, board)),
            (Some(_), _) => Driven::Spi(SpiNand::new(flash, board)),
            (None, Some(_)) => Driven::Nor(SpiNor::new(flash, board)),
        }
    }
}

/// Calls the driver that there is.
macro_rules! each {
    ($of:ident, $driver:ident => $what:expr) => {
        match $of {
            Driven::Raw($driver) => $what,
            Driven::Spi($driver) => $what,
            Driven::Nor($driver) => $what,
        }
    };
}

impl<F: Flash> NandDriver for Driven<F> {
    type Flash = F;

    #[inline]
    fn flash(&self) -> &F {
        each!(self, driver => driver.flash())
    }

    #[inline]
    fn flash_mut(&mut self) -> &mut F {
        each!(self, driver => driver.flash_mut())
    }

    #[inline]
    fn subpage_bytes(&self) -> u32 {
        each!(self, driver => driver.subpage_bytes())
    }

    fn free_oob_bytes(&self) -> u32 {
        each!(self, driver => driver.free_oob_bytes())
    }

    fn forget(&mut self) {
        each!(self, driver => driver.forget());
    }

    fn erases_before_mark(&self) -> bool {
        each!(self, driver => driver.erases_before_mark())
    }

    #[inline]
    fn reads_across_pages(&self) -> bool {
        each!(self, driver => driver.reads_across_pages())
    }

    #[inline]
    fn begin_read(&mut self, mtd: &MtdInfo, page: PageNo, column: u32, length: u32) {
        each!(self, driver => driver.begin_read(mtd, page, column, length));
    }

    #[inline(always)]
    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        each!(self, driver => driver.read(mtd, now, page, part))
    }

    #[inline]
    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        each!(self, driver => driver.program(mtd, now, page, part))
    }

    #[inline]
    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
        each!(self, driver => driver.erase(mtd, now, block))
    }
}
