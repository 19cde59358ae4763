//! `[nor]`: the bus of SPI-NOR, and how long its operations take.
//!
//! Mirrors include/linux/spi/spi-mem.h (struct spi_mem_op) and drivers/mtd/spi-nor/core.c
//! (spi_nor_wait_till_ready_with_timeout) of Linux 6.1. Left out: double data rate.

use super::spi::cycles_ns;
use crate::units::Ns;
use serde::Deserialize;

/// `[nor]`: how the controller moves bytes from and to SPI-NOR.
///
/// Which read the kernel chooses for the lines is known before (python/flashbed/stack). A program
/// and all else is on one line.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NorBus {
    /// The clock that the controller makes.
    pub clock_hz: u64,
    /// Lines of address, dummy and data bytes of a read.
    pub read_lines: u32,
    /// Its mode and dummy cycles.
    pub read_dummy_cycles: u32,
    /// Bytes of an address: three, or four of a chip of more than 16 MiB.
    pub address_bytes: u32,
    /// Programming one byte; none if a program takes as long whatever it has.
    #[serde(default)]
    pub program_first_byte_ns: Option<Ns>,
    /// What each further byte adds, up to `program_array_ns`.
    #[serde(default)]
    pub program_next_byte_ns: Option<Ns>,
    /// What the controller and the core of spi-mem take for an operation, besides its cycles.
    pub op_ns: Ns,
}

const BYTE_CYCLES: u32 = 8;
/// SPINOR_OP_RDSR: opcode and status.
const STATUS_CYCLES: u32 = 2 * BYTE_CYCLES;

impl NorBus {
    fn op(&self, cycles: u32) -> Ns {
        cycles_ns(self.op_ns, self.clock_hz, u64::from(cycles))
    }

    /// SPINOR_OP_WREN, SPINOR_OP_WRDI.
    pub fn opcode_ns(&self) -> Ns {
        self.op(BYTE_CYCLES)
    }

    /// spi_nor_spimem_read_data, of any length.
    pub fn read_ns(&self, bytes: u32) -> Ns {
        let moved = (self.address_bytes + bytes) * BYTE_CYCLES / self.read_lines;
        self.op(BYTE_CYCLES + self.read_dummy_cycles + moved)
    }

    /// spi_nor_spimem_write_data, and the polls until the chip is ready.
    pub fn program_ns(&self, array: Ns, bytes: u32) -> Ns {
        let moved = (1 + self.address_bytes + bytes) * BYTE_CYCLES;
        self.op(moved) + self.program_polled_ns(array, bytes)
    }

    /// spi_nor_erase_sector, and the polls until the chip is ready.
    pub fn erase_ns(&self, array: Ns) -> Ns {
        self.op((1 + self.address_bytes) * BYTE_CYCLES) + self.polled_ns(array)
    }

    /// The polls after a program of so many bytes.
    pub fn program_polled_ns(&self, array: Ns, bytes: u32) -> Ns {
        let time = match (self.program_first_byte_ns, self.program_next_byte_ns) {
            (Some(first), Some(next)) => (first + next * u64::from(bytes - 1)).min(array),
            _ => array,
        };
        self.polled_ns(time)
    }

    /// The status is read again and again, without a sleep, until the chip is ready.
    fn polled_ns(&self, array: Ns) -> Ns {
        let poll = self.op(STATUS_CYCLES);
        poll * array.0.div_ceil(poll.0)
    }
}
