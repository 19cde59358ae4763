//! `[spi]`: the bus of SPI-NAND, how long its operations take, and what its status tells.
//!
//! Mirrors include/linux/spi/spi-mem.h (struct spi_mem_op), include/linux/mtd/spinand.h (the delays
//! of polls) and the functions of drivers/mtd/nand/spi that decode a chip's status, Linux 6.12.
//! Octal DTR moves a byte at each edge of the clock on eight lines, commands and addresses twice
//! (8D-8D-8D). Left out: double data rate of some phases only.

use crate::units::Ns;
use serde::Deserialize;

/// `[spi]`: how the controller moves bytes from and to SPI-NAND.
///
/// An operation's cycles are the bits of its phases (command, address, dummy, data) over their
/// lines, as in struct spi_mem_op of include/linux/spi/spi-mem.h.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpiBus {
    /// The clock that the controller makes.
    pub clock_hz: u64,
    /// Lines of the address and the dummy bytes of a read from the page register.
    pub read_address_lines: u32,
    /// Bytes of that address.
    pub read_address_bytes: u32,
    /// Dummy bytes of it.
    pub read_dummy_bytes: u32,
    /// Lines of its data.
    pub read_data_lines: u32,
    /// Lines of the address of a load of the page register.
    #[serde(default = "one")]
    pub program_address_lines: u32,
    /// Lines of the data of a load of the page register.
    pub program_data_lines: u32,
    /// Octal DTR: all operations are on eight lines, at both edges of the clock.
    #[serde(default)]
    pub dtr: bool,
    /// Free bytes of an OOB, by the table of the chip's maker (its ooblayout).
    pub oob_free_bytes: u32,
    /// How the driver learns how many bits the chip corrected.
    #[serde(default)]
    pub ecc_status: EccStatus,
    /// The kernel sleeps between two polls ([`BoardProfile::driven_by`](super::BoardProfile)).
    #[serde(skip, default = "super::yes")]
    pub polls_sleep: bool,
    /// Whether page after page can be read without a further command (SPINAND_CONT_READ), and the
    /// kernel does so ([`BoardProfile::driven_by`](super::BoardProfile)).
    #[serde(default)]
    pub continuous_reads: bool,
    /// What the controller and the core of spi-mem take for an operation, besides its cycles.
    pub op_ns: Ns,
}

/// How the driver of SPI-NAND learns how many bits the chip corrected: the functions of
/// drivers/mtd/nand/spi (Linux 6.12) that end in _ecc_get_status, by what stands before that.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EccStatus {
    /// spinand_check_ecc_status: the table of the chip has none. Any correction counts as the most
    /// bits that ECC corrects. f35sqa002g tells the same.
    #[default]
    Core,
    /// The bits, in a register of their own.
    Tx58cxgxsxraix,
    /// Likewise.
    W25n02kv,
    /// The bits, by a command of its own (macronix_get_eccsr).
    Macronix,
    /// At most 3, 6 or 8.
    #[serde(rename = "micron_8")]
    Micron8,
    /// 7 or 8.
    Gd5fxgq4xa,
    /// At least 4, in a second register unless there are 8.
    Gd5fxgq4uexxg,
    /// The bits, in a second register.
    Gd5fxgq5xexxg,
    /// At least 3.
    Gd5fxgq4ufxxg,
    /// The bits.
    Xt26g0xa,
    /// At least 4.
    Xt26xxxd,
}

impl EccStatus {
    /// What the driver takes `bits` corrected bits for, of a chip that corrects `strength`.
    pub fn told(self, bits: u32, strength: u32) -> u32 {
        match self {
            EccStatus::Core => strength,
            EccStatus::Micron8 => bits.next_multiple_of(3).min(8),
            EccStatus::Gd5fxgq4xa => bits.max(7),
            EccStatus::Gd5fxgq4uexxg | EccStatus::Xt26xxxd => bits.max(4),
            EccStatus::Gd5fxgq4ufxxg => bits.max(3),
            _ => bits,
        }
    }

    /// Whether a further operation of three bytes tells them.
    fn asks(self, bits: u32) -> bool {
        match self {
            EccStatus::Gd5fxgq4uexxg => bits != 8,
            EccStatus::Tx58cxgxsxraix
            | EccStatus::W25n02kv
            | EccStatus::Gd5fxgq5xexxg
            | EccStatus::Macronix => true,
            _ => false,
        }
    }
}

/// How spinand_wait polls the status: SPINAND_*_DELAY_US of include/linux/mtd/spinand.h. Its sleeps
/// take their longest.
#[derive(Clone, Copy, Debug)]
struct Polls {
    initial: Ns,
    between: Ns,
}

fn one() -> u32 {
    1
}

/// An operation of so many cycles.
#[inline]
pub(super) fn cycles_ns(op_ns: Ns, clock_hz: u64, cycles: u64) -> Ns {
    op_ns + Ns(cycles * 1_000_000_000 / clock_hz)
}

/// Cycles of operations, by their phases.
#[derive(Clone, Copy, Debug)]
struct Cycles {
    /// An opcode.
    opcode: u64,
    /// SPINAND_SET_FEATURE: opcode, register, value.
    set: u64,
    /// SPINAND_GET_FEATURE, which waits 14 bytes for the value in octal DTR.
    get: u64,
    /// An opcode and a row's address.
    row: u64,
    /// Bits that a line moves in a cycle.
    edges: u64,
}

const SINGLE: Cycles = Cycles { opcode: 8, set: 24, get: 24, row: 32, edges: 1 };
const OCTAL_DTR: Cycles = Cycles { opcode: 1, set: 3, get: 10, row: 2, edges: 2 };
/// The column of a load of the page register.
const COLUMN_BYTES: u32 = 2;
const READ_POLLS: Polls = Polls { initial: Ns(6_000), between: Ns(5_000) };
const PROGRAM_POLLS: Polls = Polls { initial: Ns(75_000), between: Ns(15_000) };
const ERASE_POLLS: Polls = Polls { initial: Ns(250_000), between: Ns(50_000) };

impl SpiBus {
    fn op(&self, cycles: u64) -> Ns {
        cycles_ns(self.op_ns, self.clock_hz, cycles)
    }

    #[inline]
    fn cycles(&self) -> &'static Cycles {
        if self.dtr {
            &OCTAL_DTR
        } else {
            &SINGLE
        }
    }

    /// Cycles of so many bytes on so many lines.
    #[inline]
    fn moved(&self, bytes: u32, lines: u32) -> u64 {
        u64::from(bytes) * 8 / (u64::from(lines) * self.cycles().edges)
    }

    /// SPINAND_WR_EN_DIS_OP.
    #[inline]
    pub fn write_enable_ns(&self) -> Ns {
        self.op(self.cycles().opcode)
    }

    /// SPINAND_SET_FEATURE_OP.
    #[inline]
    pub fn set_feature_ns(&self) -> Ns {
        self.op(self.cycles().set)
    }

    /// SPINAND_GET_FEATURE_OP.
    #[inline]
    pub fn feature_ns(&self) -> Ns {
        self.op(self.cycles().get)
    }

    /// The operation that asks how many bits were corrected: SPINAND_GET_FEATURE_OP, or opcode,
    /// dummy byte and value. None if the status tells it, or none were.
    pub fn ecc_asked_ns(&self, bits: u32) -> Option<Ns> {
        (bits > 0 && self.ecc_status.asks(bits)).then(|| self.feature_ns())
    }

    /// SPINAND_PAGE_READ_OP, SPINAND_PROG_EXEC_OP, SPINAND_BLK_ERASE_OP: opcode and row.
    #[inline]
    pub(super) fn row_ns(&self) -> Ns {
        self.op(self.cycles().row)
    }

    /// Reads so many bytes from the page register (spinand_read_from_cache_op).
    #[inline]
    pub fn from_cache_ns(&self, bytes: u32) -> Ns {
        self.op(self.transfer_cycles(bytes))
    }

    #[inline]
    fn transfer_cycles(&self, bytes: u32) -> u64 {
        let before = self.read_address_bytes + self.read_dummy_bytes;
        self.cycles().opcode
            + self.moved(before, self.read_address_lines)
            + self.moved(bytes, self.read_data_lines)
    }

    /// Loads so many bytes into the page register (spinand_write_to_cache_op).
    #[inline]
    fn load_ns(&self, bytes: u32) -> Ns {
        self.op(self.load_cycles(bytes))
    }

    #[inline]
    fn load_cycles(&self, bytes: u32) -> u64 {
        self.cycles().opcode
            + self.moved(COLUMN_BYTES, self.program_address_lines)
            + self.moved(bytes, self.program_data_lines)
    }

    /// Loads a page into its register, polls, and reads so many bytes. Kept apart, so that the code
    /// around raw NAND stays small.
    #[inline(never)]
    pub(super) fn read_ns(&self, array: Ns, bytes: u32) -> Ns {
        self.row_ns() + self.polled_ns(array, READ_POLLS) + self.from_cache_ns(bytes)
    }

    /// Loads the page register, programs, and polls.
    #[inline(never)]
    pub(super) fn program_ns(&self, array: Ns, bytes: u32) -> Ns {
        self.load_ns(bytes) + self.row_ns() + self.program_polled_ns(array)
    }

    /// How long the driver polls the status of a program.
    fn program_polled_ns(&self, array: Ns) -> Ns {
        self.polled_ns(array, PROGRAM_POLLS)
    }

    /// How long the driver polls the status of an erase.
    pub(super) fn erase_polled_ns(&self, array: Ns) -> Ns {
        self.polled_ns(array, ERASE_POLLS)
    }

    /// The operation with which a program or an erase ends. A controller that polls by itself is
    /// one operation from the first poll on; else each poll is one.
    fn last_ns(&self, polled: Ns) -> Ns {
        if self.polls_sleep {
            polled
        } else {
            self.feature_ns()
        }
    }

    /// The last operation of a program.
    pub fn program_ends_ns(&self, array: Ns) -> Ns {
        self.last_ns(self.program_polled_ns(array))
    }

    /// The last operation of an erase.
    pub fn erase_ends_ns(&self, array: Ns) -> Ns {
        self.last_ns(self.erase_polled_ns(array))
    }

    #[inline(never)]
    fn polled_ns(&self, array: Ns, sleeping: Polls) -> Ns {
        self.polled_phase(array, sleeping).time
    }

    /// The phases of a read of a page of which so many bytes are transferred.
    pub fn read_phases(&self, array: Ns, bytes: u32) -> Vec<BusPhase> {
        let transfer = self.clocked("from register", self.transfer_cycles(bytes));
        vec![self.row_phase(), self.polled_phase(array, READ_POLLS), transfer]
    }

    /// The phases of a program of a page, after so many bytes are transferred.
    pub fn program_phases(&self, array: Ns, bytes: u32) -> Vec<BusPhase> {
        let load = self.clocked("load", self.load_cycles(bytes));
        let array = self.polled_phase(array, PROGRAM_POLLS);
        vec![self.clocked("write enable", self.cycles().opcode), load, self.row_phase(), array]
    }

    /// The phases of an erase of a block.
    pub fn erase_phases(&self, array: Ns) -> Vec<BusPhase> {
        let array = self.polled_phase(array, ERASE_POLLS);
        vec![self.clocked("write enable", self.cycles().opcode), self.row_phase(), array]
    }

    fn row_phase(&self) -> BusPhase {
        self.clocked("row", self.cycles().row)
    }

    fn clocked(&self, name: &'static str, cycles: u64) -> BusPhase {
        BusPhase { name, cycles, time: self.op(cycles), polls: None }
    }

    /// From the end of a command to the end of the poll that finds the array ready, which it is
    /// after `array` (spi_mem_poll_status). Before 5.15 spinand_wait asks again and again.
    fn polled_phase(&self, array: Ns, sleeping: Polls) -> BusPhase {
        let at_once = Polls { initial: Ns::ZERO, between: Ns::ZERO };
        let Polls { initial, between } = if self.polls_sleep { sleeping } else { at_once };
        let (first, round) = (initial + self.feature_ns(), between + self.feature_ns());
        let others = array.0.saturating_sub(first.0).div_ceil(round.0);
        let polls = Some((initial, between, others + 1));
        BusPhase { name: "array", cycles: 0, time: first + round * others, polls }
    }
}

/// A phase of an operation of SPI-NAND: what [`ChipProfile`] charges for it, made up of what.
#[derive(Clone, Copy, Debug)]
pub struct BusPhase {
    /// Which phase it is.
    pub name: &'static str,
    /// Its cycles on the bus; 0 of the array's.
    pub cycles: u64,
    /// How long it takes.
    pub time: Ns,
    /// Of the array's: the wait before the first poll, that before others, and how many polls.
    pub polls: Option<(Ns, Ns, u64)>,
}
