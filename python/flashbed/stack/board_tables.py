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
    EccStatus,
    Erases,
    Kib,
    Mhz,
    Mib,
    Ns,
    OobBytes,
    PageBytes,
    PagesPerBlock,
    Ps,
)
from flashbed.stack.names import Name, Text

__all__ = [
    "BoardFacts",
    "Chip",
    "Ecc",
    "Emulator",
    "EnduranceFacts",
    "Memory",
    "Partition",
    "Sqlite",
]

Byte = Annotated[int, Field(ge=0, le=255)]
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
    oob_bytes: OobBytes
    """Spare area of a page (OOB).
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
    """Moving a page from the array into the page register, not 0.
    From: data sheet, tR.
    """
    program_array_ns: Ns
    """Programming a page from the page register, not 0.
    From: data sheet, tPROG, typical.
    """
    erase_array_ns: Ns
    """Erasing a block, not 0.
    From: data sheet, tBERS, typical.
    """
    transfer: Literal["bytes", "page"]
    """What reading a part of a page pays on the bus: `bytes`, those that are moved; `page`, a whole
    page, as nandsim does.
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
    cells: Literal["slc", "mlc", "tlc"] = "slc"
    """Bits a cell holds: one, two or three. Linux refuses file systems where it is more than one.
    From: data sheet, features; `/sys/class/mtd/mtdN/type` is `mlc-nand` for two and three.
    """
    pairing: Literal["dist3"] | None = None
    """Which two pages of a block share cells: `dist3`, three pages apart. Missing if unknown.
    From: drivers/mtd/nand/raw/nand_hynix.c and nand_toshiba.c, mtd_set_pairing_scheme.
    """
    slc_mode: Annotated[bool, Field(strict=False)] = False
    """Whether the partition has only the first pages of pairs (Linux' SLC mode, since 5.8).
    `pages_per_block` is then the partition's, half of the chip's.
    From: device tree, `slc-mode` of the partition.
    """
    cache_read_ns: Annotated[Ns, Field(gt=0)] | None = None
    """Sequential cache reads: moving the page that the array has loaded into the cache register.
    Missing if the chip has none; SPI-NAND has `spi.continuous_reads`.
    From: data sheet, tRCBSY; ONFI parameter page, byte 8, bit 1, says whether there are any.
    """

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _power_of_two("page_bytes", self.page_bytes)
        _power_of_two("pages_per_block", self.pages_per_block)
        pages = self.pages_per_block * self.blocks
        if pages > PAGES_MAX:
            raise ValueError(f"blocks: {pages:,} pages, {PAGES_MAX:,} at most")
        if self.oob_bytes > self.page_bytes:
            raise ValueError(f"oob_bytes = {self.oob_bytes} is more than a page")
        if min(self.read_array_ns, self.program_array_ns, self.erase_array_ns) == 0:
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
    """`hardware-page`: the controller, over whole pages; `software-subpage`: the CPU, over steps;
    `on-die`: the chip, which is SPI-NAND; `none`.
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

    Linux' driver takes the first operation of its table for the chip that the controller's lines
    can do; `read_opcode` and `program_opcode` say which.
    """

    source: Text
    """Where the numbers of this table come from."""
    id: Annotated[tuple[Byte, ...], Field(strict=False, min_length=2, max_length=4)]
    """Maker and device, as Linux' table has them.
    From: data sheet, Read ID; `drivers/mtd/nand/spi/`.
    """
    clock_hz: Annotated[int, Field(ge=100_000, le=1_000_000_000)]
    """Clock that the controller makes, which may be slower than the one that a driver requests.
    From: the controller's source and divider; an oscilloscope.
    """
    read_opcode: Byte
    """Read from the page register.
    From: Linux' table of the chip, first one that the lines can do.
    """
    read_address_lines: Lines
    """Lines of that operation's address and dummy bytes.
    From: the same row.
    """
    read_address_bytes: Annotated[int, Field(ge=1, le=4)] = 2
    """Bytes of the address.
    From: the same row; 3 for rows named `_3A`.
    """
    read_dummy_bytes: Annotated[int, Field(ge=0, le=32)]
    """Dummy bytes after the address.
    From: the same row.
    """
    read_data_lines: Lines
    """Lines of its data.
    From: the same row.
    """
    program_opcode: Byte
    """Load of the page register, without a reset of the rest (`update_cache`).
    From: Linux' table of the chip.
    """
    program_address_lines: Lines = 1
    """Lines of its address.
    From: the same row.
    """
    program_data_lines: Lines
    """Lines of its data.
    From: the same row.
    """
    dtr: bool = False
    """Octal DTR (8D-8D-8D): each operation is on eight lines, at both edges of the clock.
    From: rows named `8D_8D_8D` of Linux' table for the chip; the controller.
    """
    linux_since: Text | None = None
    """The first Linux whose table has the chip; an older kernel does not attach it.
    From: the kernel's releases.
    """
    oob_free_bytes: OobBytes
    """Bytes of the spare area that file systems may use.
    From: the `ooblayout` of Linux' table for the chip, its free regions together.
    """
    continuous_reads: bool = False
    """Whether it outputs page after page without a further command, once its feature is set.
    From: `SPINAND_CONT_READ` of Linux' table for the chip.
    """
    ecc_status: EccStatus = "core"
    """How the driver learns how many bits the chip corrected.
    From: the function of Linux' table that ends in `_ecc_get_status`; `core` where it has none.
    """
    op_ns: Ns
    """What the controller and the kernel's core take for an operation besides its cycles.
    From: measured; 0 for a controller that takes nothing.
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
    From: data sheet, PROGRAM/ERASE cycles, with the ECC that it asks for.
    """


class Sqlite(Strict):
    """`[sqlite]`: where SQLite's work does not cost the same a step on this board.

    A step of `compute` is code that runs once a statement. A loop over bytes stays in the
    instruction cache and costs a small processor less.
    """

    source: Text
    """Where the numbers of this table come from."""
    text_byte_ps: Ps
    """Preparing one byte of a statement's text, in picoseconds. Without the table it is 17 steps.
    From: inserts of two sizes that reach no flash.
    """
    select_permille: Annotated[int, Field(gt=0, le=10_000)] = 1000
    """A SELECT's steps in thousandths of those of SQLite 3.54.1, where the prices are of inserts of
    another version. From: instructions of a select over those of an insert, of both versions.
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
    """The board's name, that of its file without `.toml`."""
    title: Text
    """What the board is, in a line, for tables and reports."""
    ram_mib: Mib
    """Memory of the board.
    From: its data sheet; `MemTotal` of /proc/meminfo is less.
    """
    cpu_mhz: Mhz | None = None
    """Clock of the CPU, by which `flashbed doctor --like` scales prices; of an emulated board, its
    instructions in a microsecond.
    From: the data sheet; `cpuinfo_max_freq` of /sys/devices/system/cpu/cpu0/cpufreq.
    """
    source: Text
    """Where the numbers of this table come from."""


class Memory(Strict):
    """`[memory]`: how large the page cache may become."""

    source: Text
    """Where the numbers of this table come from."""
    free_kib: Kib
    """Memory that is free when the program begins; the page cache may grow into it.
    From: `MemFree` of /proc/meminfo.
    """
