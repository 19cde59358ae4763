"""Tables of a board's profile, boards/*.toml: its chip, ECC, partition and memory.

The docstring below a key says what it is and, behind `From:`, where its number is found;
docs/reference/profiles.md is made of these. profiles.py puts the tables together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from flashbed.base.toml import Strict
from flashbed.stack.bounds import (
    PAGES_MAX,
    Blocks,
    ClockHz,
    EccStatus,
    EraseNs,
    Erases,
    Kib,
    Mhz,
    Mib,
    Ns,
    OobBytes,
    PageBytes,
    PagesPerBlock,
    Ps,
    SpareBytes,
)
from flashbed.stack.names import Name, Text

__all__ = [
    "BoardFacts",
    "Chip",
    "Ecc",
    "Emulator",
    "EnduranceFacts",
    "Memory",
    "Nor",
    "Partition",
    "Sqlite",
]

Byte = Annotated[int, Field(ge=0, le=255)]
NOR_PAGE_BYTES = 256
"""What a program of SPI-NOR takes at most."""
_NAND_NS_MAX = 1_000_000_000
_SHORT_ADDRESS_BYTES = 1 << 24
_DUMMY_CYCLES = {1: 8, 2: 4, 4: 6}
"""Of 0b, bb and eb, mode cycles included."""
HAMMING_STEP_BYTES = (256, 512)
HAMMING_STRENGTH_BITS = 1


def _power_of_two(name: str, value: int) -> None:
    if value & (value - 1):
        raise ValueError(f"{name} = {value} is not a power of two")


class Chip(Strict):
    """`[chip]`: geometry and the data sheet's times, array and bus separately."""

    source: Text
    """Where the numbers of this table come from."""
    page_bytes: PageBytes
    """Main area of a page, a power of two.
    From: data sheet, page size; `/sys/class/mtd/mtdN/writesize`.
    """
    oob_bytes: SpareBytes
    """Spare area of a page (OOB); 0 of NOR.
    From: data sheet, spare area; `/sys/class/mtd/mtdN/oobsize`.
    """
    pages_per_block: PagesPerBlock
    """Pages of an erase block, a power of two.
    From: data sheet; `/sys/class/mtd/mtdN/erasesize` over `writesize`.
    """
    blocks: Blocks
    """Erase blocks of the chip, at most 8,388,608 pages in all.
    From: data sheet; the size of the chip over that of a block.
    """
    read_array_ns: Ns
    """Moving a page from the array into the page register, not 0; 0 of NOR.
    From: data sheet, tR.
    """
    program_array_ns: Ns
    """Programming a page from the page register, not 0.
    From: data sheet, tPROG, typical.
    """
    erase_array_ns: EraseNs
    """Erasing a block, not 0.
    From: data sheet, tBERS, typical; tBE or tSE of NOR.
    """
    transfer: Literal["bytes", "page"]
    """What reading a part of a page pays on the bus: its `bytes`, or a whole `page` (nandsim).
    From: `bytes` for a real chip.
    """
    bus_read_ns: Ns
    """Moving a whole page and its OOB from the page register to the controller.
    From: data sheet or controller: bytes times tRC.
    """
    bus_program_ns: Ns
    """Moving a whole page and its OOB to the page register.
    From: data sheet or controller: bytes times tWC.
    """
    column_change_ns: Ns
    """Changing the column within the page register (random data output).
    From: data sheet, tRHW and tWHR; only software ECC changes columns.
    """
    kind: Literal["nand", "nor"] = "nand"
    """`nor` for SPI-NOR, whose bus is `[nor]`.
    From: `/sys/class/mtd/mtdN/type`.
    """
    cells: Literal["slc", "mlc", "tlc"] = "slc"
    """Bits a cell holds: one, two or three.
    From: data sheet, features; `/sys/class/mtd/mtdN/type` is `mlc-nand` for two and three.
    """
    pairing: Literal["dist3"] | None = None
    """Which two pages of a block share cells: `dist3`, three pages apart.
    From: drivers/mtd/nand/raw/nand_hynix.c and nand_toshiba.c, mtd_set_pairing_scheme.
    """
    slc_mode: Annotated[bool, Field(strict=False)] = False
    """Whether the partition has only the first pages of pairs (SLC mode); `pages_per_block` is then
    half of the chip's.
    From: device tree, `slc-mode` of the partition.
    """
    cache_read_ns: Annotated[Ns, Field(gt=0)] | None = None
    """Sequential cache reads: moving a page into the cache register. Without it, none.
    From: data sheet, tRCBSY; ONFI parameter page, byte 8, bit 1.
    """

    @property
    def block_bytes(self) -> int:
        """Bytes of an erase block, without the OOB."""
        return self.page_bytes * self.pages_per_block

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _power_of_two("page_bytes", self.page_bytes)
        _power_of_two("pages_per_block", self.pages_per_block)
        pages = self.pages_per_block * self.blocks
        if pages > PAGES_MAX:
            raise ValueError(f"blocks: {pages:,} pages, {PAGES_MAX:,} at most")
        if self.oob_bytes > self.page_bytes:
            raise ValueError(f"oob_bytes = {self.oob_bytes} is more than a page")
        nor = self.kind == "nor"
        if nor and (self.oob_bytes or self.page_bytes != NOR_PAGE_BYTES):
            raise ValueError("kind: NOR has pages of 256 bytes without a spare area")
        if not nor and not self.oob_bytes:
            raise ValueError("oob_bytes = 0: NAND has a spare area")
        if not nor and self.erase_array_ns > _NAND_NS_MAX:
            raise ValueError(f"erase_array_ns = {self.erase_array_ns:_} is more than a second")
        read_ns = self.read_array_ns or nor
        if min(read_ns, self.program_array_ns, self.erase_array_ns) == 0:
            raise ValueError("read_array_ns, program_array_ns and erase_array_ns cannot be 0")
        if self.pairing and self.cells != "mlc":
            raise ValueError(f"pairing: {self.cells} has no pairs of pages")
        if self.slc_mode and not self.pairing:
            raise ValueError("slc_mode: the kernel needs to know which pages are pairs (pairing)")
        if self.slc_mode and self.cache_read_ns is not None:
            raise ValueError("cache_read_ns: in SLC mode Linux reads page by page")
        return self


class Ecc(Strict):
    """`[ecc]`: what corrects wrong bits, over how many bytes, and how many bits of them.

    `none` corrects nothing: the page is its only step (nand_scan_tail), with strength 0.
    """

    source: Text
    """Where the numbers of this table come from."""
    kind: Literal["hardware-page", "software-subpage", "on-die", "none"]
    """`hardware-page`: the controller, over pages; `software-subpage`: the CPU, over steps;
    `on-die`: an SPI-NAND chip.
    From: device tree `nand-ecc-mode`; the driver.
    """
    step_bytes: PageBytes
    """Bytes that one ECC covers; 256 or 512 with `software-subpage`, a page with `none`.
    From: `/sys/class/mtd/mtdN/ecc_step_size`.
    """
    strength_bits: Annotated[int, Field(ge=0, le=1_024)]
    """Wrong bits that are corrected in a step; 0 with `none` only, 1 with `software-subpage`.
    From: `/sys/class/mtd/mtdN/ecc_strength`.
    """

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.strength_bits == 0) != (self.kind == "none"):
            raise ValueError(
                f"strength_bits = {self.strength_bits} with kind = {self.kind!r}: it is 0 with"
                " 'none' and with nothing else"
            )
        if self.kind == "software-subpage":
            if self.strength_bits != HAMMING_STRENGTH_BITS:
                raise ValueError("strength_bits: the kernel's software ECC is a Hamming code, 1")
            if self.step_bytes not in HAMMING_STEP_BYTES:
                raise ValueError("step_bytes: the kernel's Hamming code has steps of 256 or 512")
        return self


Lines = Literal[1, 2, 4, 8]


class Spi(Strict):
    """`[spi]`: the bus of an SPI-NAND chip, which replaces the four bus times of `[chip]`.

    Linux takes the first operation of its table that the lines can do; the opcodes say which.
    """

    source: Text
    """Where the numbers of this table come from."""
    id: Annotated[tuple[Byte, ...], Field(strict=False, min_length=2, max_length=4)]
    """Maker and device, as Linux' table has them.
    From: data sheet, Read ID; `drivers/mtd/nand/spi/`.
    """
    clock_hz: Annotated[int, Field(ge=100_000, le=1_000_000_000)]
    """Clock that the controller makes.
    From: the controller's source and divider; an oscilloscope.
    """
    read_opcode: Byte
    """Read from the page register.
    From: the row of Linux' table.
    """
    read_address_lines: Lines
    """Lines of that operation's address and dummy bytes.
    From: the row of Linux' table.
    """
    read_address_bytes: Annotated[int, Field(ge=1, le=4)] = 2
    """Bytes of the address.
    From: the row's name, `_3A`.
    """
    read_dummy_bytes: Annotated[int, Field(ge=0, le=32)]
    """Dummy bytes after the address.
    From: the row of Linux' table.
    """
    read_data_lines: Lines
    """Lines of its data.
    From: the row of Linux' table.
    """
    program_opcode: Byte
    """Load of the page register, without a reset of the rest (`update_cache`).
    From: the row of Linux' table.
    """
    program_address_lines: Lines = 1
    """Lines of its address.
    From: the row of Linux' table.
    """
    program_data_lines: Lines
    """Lines of its data.
    From: the row of Linux' table.
    """
    dtr: bool = False
    """Octal DTR (8D-8D-8D): eight lines, both edges of the clock.
    From: rows named `8D_8D_8D`; the controller.
    """
    linux_since: Text | None = None
    """The first Linux whose table has the chip.
    From: the kernel's releases.
    """
    oob_free_bytes: OobBytes
    """Bytes of the spare area that file systems may use.
    From: `ooblayout` of Linux' table, free regions together.
    """
    continuous_reads: bool = False
    """Whether it outputs page after page without a further command.
    From: `SPINAND_CONT_READ` of Linux' table.
    """
    ecc_status: EccStatus = "core"
    """How the driver learns how many bits the chip corrected.
    From: the table's function that ends in `_ecc_get_status`; `core` where it has none.
    """
    op_ns: Ns
    """What controller and kernel take for an operation besides its cycles.
    From: a measurement.
    """

    @property
    def sim_tables(self) -> dict[str, Any]:
        """The numbers for the simulator."""
        own = {"source", "id", "read_opcode", "program_opcode", "linux_since"}
        return self.model_dump(exclude=own)

    @property
    def rx_lines(self) -> int:
        """Data lines that the controller reads."""
        return self.read_data_lines

    @property
    def tx_lines(self) -> int:
        """Lines that the controller writes, addresses included."""
        return max(self.program_data_lines, self.program_address_lines, self.read_address_lines)

    @model_validator(mode="after")
    def _octal(self) -> Self:
        lines = (self.read_address_lines, self.read_data_lines)
        if self.dtr and {*lines, self.program_address_lines, self.program_data_lines} != {8}:
            raise ValueError("dtr: octal DTR has 8 lines everywhere")
        return self


class Nor(Strict):
    """`[nor]`: the bus of an SPI-NOR chip, which replaces the four bus times of `[chip]`.

    Linux chooses the read and the program by its table and the chip's own (SFDP).
    """

    source: Text
    """Where the numbers of this table come from."""
    id: Annotated[tuple[Byte, ...], Field(strict=False, min_length=3, max_length=6)]
    """Maker and device, as Linux' table has them.
    From: data sheet, JEDEC ID; `drivers/mtd/spi-nor/`.
    """
    clock_hz: ClockHz
    """Clock that the controller makes.
    From: the controller's source and divider; an oscilloscope.
    """
    lines: Literal[1, 2, 4]
    """Lines that the controller has for addresses and data.
    From: device tree, `spi-rx-bus-width`.
    """
    op_ns: Ns
    """What controller and kernel take for an operation besides its cycles.
    From: a measurement.
    """
    quad_enable: Literal["always", "sr1-bit6", "sr2-bit1"]
    """The bit that enables four lines.
    From: data sheet, status registers; SFDP, 15th word.
    """
    small_erases: bool = True
    """Whether it erases 4 and 32 KiB too, everywhere.
    From: data sheet, commands 20h and 52h.
    """
    sfdp: bool = True
    """Whether Linux reads the chip's own tables (SFDP); else it reads on one line.
    From: the chip's flags in `drivers/mtd/spi-nor/`.
    """
    program_first_byte_ns: Ns | None = None
    """Programming one byte. Without it, programming takes `program_array_ns` whatever it has.
    From: data sheet, tBP1.
    """
    program_next_byte_ns: Ns | None = None
    """What each further byte adds, up to `program_array_ns`.
    From: data sheet, tBP2.
    """

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.program_first_byte_ns is None) != (self.program_next_byte_ns is None):
            raise ValueError("program_first_byte_ns and program_next_byte_ns need each other")
        return self

    def sim_tables(self, chip_bytes: int) -> dict[str, int | None]:
        """The numbers for the simulator: the bus, and the read that Linux chooses for the lines.

        `spi_nor_select_read()`: eb, bb or 0b, with addresses of four bytes where three are short.
        """
        lines = self.lines if self.sfdp else 1
        return {
            "clock_hz": self.clock_hz,
            "read_lines": lines,
            "read_dummy_cycles": _DUMMY_CYCLES[lines],
            "address_bytes": 3 if chip_bytes <= _SHORT_ADDRESS_BYTES else 4,
            "program_first_byte_ns": self.program_first_byte_ns,
            "program_next_byte_ns": self.program_next_byte_ns,
            "op_ns": self.op_ns,
        }


class Partition(Strict):
    """`[partition]`: the blocks of the file system."""

    source: Text
    """Where the numbers of this table come from."""
    first_block: Annotated[int, Field(ge=0, lt=65_536)]
    """First block of the partition, counted from the start of the chip.
    From: `/sys/class/mtd/mtdN/offset` over the size of a block.
    """
    blocks: Blocks
    """Blocks of the partition; it ends within the chip.
    From: `/proc/mtd`, size over erasesize.
    """


class EnduranceFacts(Strict):
    """`[endurance]`: how often a block may be erased, by the chip's data sheet."""

    source: Text
    """Where the numbers of this table come from."""
    cycles: Erases
    """Erases that the maker promises for a block.
    From: data sheet, PROGRAM/ERASE cycles.
    """


class Sqlite(Strict):
    """`[sqlite]`: where SQLite's work does not cost the same a step on this board.

    A loop over bytes stays in the instruction cache and costs a small processor less than a step of
    `compute`.
    """

    source: Text
    """Where the numbers of this table come from."""
    text_byte_ps: Ps
    """Preparing one byte of a statement's text. Without the table, 17 steps.
    From: inserts of two sizes that reach no flash.
    """
    select_permille: Annotated[int, Field(gt=0, le=10_000)] = 1000
    """A SELECT's steps in thousandths of those of SQLite 3.54.1. From: instructions of a select
    over those of an insert, of both versions.
    """
    update_permille: Annotated[int, Field(gt=0, le=10_000)] = 1000
    """The same of an UPDATE."""


class Emulator(Strict):
    """`[emulator]`: the options of QEMU and nandsim that make the emulated board this board.

    `nandsim` is missing if nandsim cannot imitate the chip.
    """

    source: Text
    """Where the numbers of this table come from."""
    machine: Text
    """QEMU's `-machine`.
    From: `qemu-system-arm -machine help`.
    """
    cpu: Text
    """QEMU's `-cpu`.
    From: `qemu-system-arm -cpu help`.
    """
    icount_shift: Annotated[int, Field(ge=0, le=10)]
    """QEMU's `-icount shift`: an instruction takes 2^N ns.
    From: the clock of the board.
    """
    nandsim: Text | None = None
    """Parameters of the kernel's module nandsim, for the target `emulator-nandsim`.
    From: `modinfo nandsim`.
    """


class BoardFacts(Strict):
    """`[board]`: the board's name and its memory."""

    name: Name
    """That of its file without `.toml`."""
    title: Text
    """What the board is, in a line."""
    ram_mib: Mib
    """Memory of the board.
    From: its data sheet; `MemTotal` of /proc/meminfo is less.
    """
    cpu_mhz: Mhz | None = None
    """Clock of the CPU, by which prices are scaled; of an emulated board, instructions in a
    microsecond.
    From: the data sheet; `cpuinfo_max_freq` of /sys/devices/system/cpu/cpu0/cpufreq.
    """
    source: Text
    """Where the numbers of this table come from."""


class Memory(Strict):
    """`[memory]`: how large the page cache may become."""

    source: Text
    """Where the numbers of this table come from."""
    free_kib: Kib
    """Free memory when the program begins, for the page cache.
    From: `MemFree` of /proc/meminfo.
    """
