"""The catalogue of chips, boards/chips/*.toml: what a part is, apart from any board.

A file says what its maker and the kernel publish of a part: geometry, times of the array at both
corners, ECC, bus, endurance, currents. Each table names its source, and what no source says is
absent. fitted_chip.py puts a part onto a board; what that board then costs is not here.
docs/reference/chips.md is made of the docstrings below.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.stack.bounds import (
    Blocks,
    ClockHz,
    EccStatus,
    EraseNs,
    Erases,
    Lines,
    Ns,
    OobBytes,
    PageBytes,
    PagesPerBlock,
    SpareBytes,
)
from flashbed.stack.names import Name, Text, is_name

__all__ = [
    "CORNERS",
    "ONFI_COLUMN_CHANGE_NS",
    "ArrayTimes",
    "CatalogueChip",
    "ChipError",
    "Corner",
    "ProgramVariant",
    "ReadVariant",
    "chip_names",
    "load_chip",
]

Corner = Literal["typical", "maximum"]
CORNERS: tuple[Corner, ...] = ("typical", "maximum")
Opcode = Annotated[int, Field(ge=0, le=0xFF)]
DummyBytes = Annotated[int, Field(ge=0, le=32)]
ArrayNs = Annotated[int, Field(gt=0, le=1_000_000_000)]
Bits = Annotated[int, Field(gt=0, le=1_024)]
MicroAmpere = Annotated[int, Field(gt=0, le=1_000_000)]
LIST = Field(min_length=1, strict=False)  # TOML has lists, a frozen model has tuples

ONFI_CYCLE_NS = (100, 50, 35, 30, 25, 20)
"""tRC and tWC of the asynchronous timing modes 0 to 5 (ONFI; nand_timings.c has the same)."""
ONFI_COLUMN_CHANGE_NS = (500, 200, 200, 200, 200, 200)
"""tCCS of the same modes."""


class ChipError(InputError):
    """A chip's file that cannot be used, or that lacks what a run needs."""


class ChipFacts(Strict):
    """`[chip]`: which part it is."""

    name: Name
    """The part's name, that of its file without `.toml`.
    From: the maker; the kernel's table, where it has the part.
    """
    title: Text
    """What the part is, in a line."""
    maker: Text
    """Who makes it."""
    bus: Literal["spi", "parallel", "nor"]
    """`spi` for SPI-NAND, which the kernel's spinand core drives; `parallel` for raw NAND; `nor`
    for SPI-NOR, which the kernel's spi-nor core drives.
    From: data sheet, title.
    """
    cells: Literal["slc", "mlc", "tlc"] = "slc"
    """Bits a cell holds: one, two or three.
    From: data sheet, features.
    """
    id: Annotated[tuple[Opcode, ...], LIST] | None = None
    """Bytes that identify it, manufacturer first, as the kernel compares them.
    From: `SPINAND_ID` and the manufacturer's id; nand_ids.c; data sheet, Read ID.
    """
    source: Text
    """Where the numbers of this table come from."""
    note: Text | None = None
    """What sources disagree on, or what a reader must know."""


class Geometry(Strict):
    """`[geometry]`: how the array is divided."""

    source: Text
    """Where the numbers of this table come from."""
    page_bytes: PageBytes
    """Main area of a page, a power of two.
    From: `NAND_MEMORG`, 2nd; data sheet, organisation.
    """
    oob_bytes: SpareBytes
    """Spare area of a page (OOB); 0 of NOR.
    From: `NAND_MEMORG`, 3rd; data sheet, organisation.
    """
    pages_per_block: PagesPerBlock
    """Pages of an erase block, a power of two.
    From: `NAND_MEMORG`, 4th; data sheet, organisation.
    """
    blocks: Blocks
    """Erase blocks of the whole part, all dies together.
    From: `NAND_MEMORG`, 5th times dies; data sheet, organisation.
    """
    pairing: Literal["dist3"] | None = None
    """Which two pages of a block share cells, of MLC; `dist3` is the kernel's name.
    From: `mtd_set_pairing_scheme` in the kernel's file of the maker; data sheet, page pairs.
    """
    planes: Annotated[int, Field(gt=0, le=8)] | None = None
    """Planes of a die that have a page register each.
    From: `NAND_MEMORG`, 7th; data sheet, organisation.
    """
    dies: Annotated[int, Field(gt=0, le=16)] | None = None
    """Dies of the part, each chosen by its own command.
    From: `NAND_MEMORG`, 8th times 9th.
    """
    max_bad_blocks: Annotated[int, Field(ge=0, le=4_096)] | None = None
    """Blocks that may be bad when the part is new, and over its life.
    From: `NAND_MEMORG`, 6th times dies; data sheet, number of valid blocks.
    """

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name in ("page_bytes", "pages_per_block"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} = {value} is not a power of two")
        if self.oob_bytes > self.page_bytes // 2:
            raise ValueError(
                f"oob_bytes = {self.oob_bytes}: a spare area is 16 to {self.page_bytes // 2} bytes"
                f" on pages of {self.page_bytes}"
            )
        if self.max_bad_blocks is not None and self.max_bad_blocks * 10 > self.blocks:
            raise ValueError(
                f"max_bad_blocks = {self.max_bad_blocks}: more than a tenth of {self.blocks} blocks"
            )
        return self


class ArrayTimes(Strict):
    """Times of one corner; a time that no source says is absent."""

    read_array_ns: ArrayNs | None = None
    """Array to page register, without ECC on the die.
    From: data sheet, tR or tRD with ECC disabled.
    """
    read_array_ecc_ns: ArrayNs | None = None
    """The same with ECC on the die.
    From: data sheet, tR_ECC or tRD with ECC enabled.
    """
    program_array_ns: ArrayNs | None = None
    """Page register to array, without ECC on the die.
    From: data sheet, tPROG or tPP.
    """
    program_array_ecc_ns: ArrayNs | None = None
    """The same with ECC on the die.
    From: data sheet, tPROG_ECC.
    """
    program_first_byte_ns: ArrayNs | None = None
    """NOR: programming one byte.
    From: data sheet, tBP1.
    """
    program_next_byte_ns: ArrayNs | None = None
    """NOR: what each further byte of a program adds.
    From: data sheet, tBP2.
    """
    erase_array_ns: Annotated[EraseNs, Field(gt=0)] | None = None
    """Erasing a block.
    From: data sheet, tBERS or tBE.
    """
    erase_4k_ns: ArrayNs | None = None
    """NOR: erasing 4 KiB.
    From: data sheet, tSE.
    """
    erase_32k_ns: Annotated[EraseNs, Field(gt=0)] | None = None
    """NOR: erasing 32 KiB.
    From: data sheet, tBE1.
    """
    cache_read_ns: ArrayNs | None = None
    """Moving the page that the array has loaded ahead into the cache register, after 31h.
    From: data sheet, tRCBSY.
    """


class Times(Strict):
    """`[times]`: what the array takes; not what moves over the bus."""

    source: Text
    """Where the numbers of this table come from."""
    typical: ArrayTimes = ArrayTimes()
    """`[times.typical]`: what the maker expects."""
    maximum: ArrayTimes = ArrayTimes()
    """`[times.maximum]`: what the maker guarantees."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for key in ArrayTimes.model_fields:
            typical, maximum = getattr(self.typical, key), getattr(self.maximum, key)
            if typical is not None and maximum is not None and typical > maximum:
                raise ValueError(
                    f"typical.{key} = {typical:_} is more than maximum.{key} = {maximum:_}"
                )
        return self


class EccFacts(Strict):
    """`[ecc]`: what the part asks for, and what it corrects itself."""

    source: Text
    """Where the numbers of this table come from."""
    strength_bits: Bits | None = None
    """Wrong bits in a step that the controller must correct.
    From: data sheet, ECC requirement; `NAND_ECC_INFO` of nand_ids.c.
    """
    step_bytes: PageBytes | None = None
    """Bytes of such a step, without spare bytes.
    From: the same place.
    """
    on_die_strength_bits: Bits | None = None
    """Wrong bits in a step that the part corrects itself.
    From: `NAND_ECCREQ` of the spinand table; data sheet, internal ECC.
    """
    on_die_step_bytes: PageBytes | None = None
    """Bytes of such a step.
    From: the same place.
    """
    on_die_always: bool = False
    """Whether ECC on the die cannot be switched off.
    From: data sheet, internal ECC.
    """

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        for bits, step in (
            ("strength_bits", "step_bytes"),
            ("on_die_strength_bits", "on_die_step_bytes"),
        ):
            if (getattr(self, bits) is None) != (getattr(self, step) is None):
                raise ValueError(f"{bits} and {step} need each other")
        return self


class ReadVariant(Strict):
    """A row of `read`: a command that reads the page register, in the kernel's order."""

    opcode: Opcode
    """The command."""
    address_lines: Lines
    """Lines that carry the column address."""
    address_bytes: Literal[2, 3] = 2
    """Bytes of the column address; 3 for the `_3A` commands."""
    dummy_bytes: DummyBytes
    """Bytes between address and data, on the address's lines."""
    data_lines: Lines
    """Lines that carry data."""
    dtr: bool = False
    """Octal DTR (8D-8D-8D): eight lines, both edges of the clock, the command twice."""
    clock_max_hz: ClockHz | None = None
    """The fastest clock of this command, where it is less than `clock_max_hz`."""


class ProgramVariant(Strict):
    """A row of `program`: a command that loads the page register, in the kernel's order."""

    opcode: Opcode
    """The command."""
    address_lines: Lines = 1
    """Lines that carry the column address."""
    data_lines: Lines
    """Lines that carry data."""
    dtr: bool = False
    """Octal DTR, as in `read`."""


class SpiBus(Strict):
    """`[spi]`: commands and clock of an SPI-NAND."""

    source: Text
    """Where the numbers of this table come from."""
    clock_max_hz: ClockHz | None = None
    """The fastest clock of the part.
    From: data sheet, fC or "clock frequency".
    """
    oob_free_bytes: OobBytes | None = None
    """Bytes of the spare area that file systems may use, ECC on the die switched on.
    From: `ooblayout` of the spinand table, its free regions together.
    """
    continuous_reads: bool = False
    """Whether it outputs page after page without a further command, once its feature is set.
    From: `SPINAND_CONT_READ` of the spinand table.
    """
    ecc_status: EccStatus = "core"
    """How the driver learns how many bits the chip corrected.
    From: the function of the spinand table that ends in `_ecc_get_status`; `core` where it is NULL.
    """
    linux_since: Text | None = None
    """The first Linux whose table has the part, where that is newer than 6.12: older kernels do not
    attach it.
    From: the kernel's releases.
    """
    read: Annotated[tuple[ReadVariant, ...], LIST]
    """Commands that read the page register; the kernel takes the fastest that the controller can
    do, the first of equal ones.
    From: `read_cache_variants` of the spinand table.
    """
    program: Annotated[tuple[ProgramVariant, ...], LIST]
    """Commands that load the page register, likewise.
    From: `update_cache_variants` of the spinand table, which the kernel writes with.
    """


class NorBus(Strict):
    """`[nor]`: clock and registers of an SPI-NOR; its commands are the kernel's choice."""

    source: Text
    """Where the numbers of this table come from."""
    clock_max_hz: ClockHz | None = None
    """The fastest clock of the part, with dummy cycles.
    From: data sheet, fC.
    """
    read_clock_max_hz: ClockHz | None = None
    """The fastest clock of a read without dummy cycles (03h).
    From: data sheet, fR.
    """
    quad_enable: Literal["always", "sr1-bit6", "sr2-bit1"]
    """The bit that enables four lines.
    From: data sheet, status registers; SFDP, 15th word.
    """
    small_erases: bool = True
    """Whether it erases 4 and 32 KiB too, everywhere.
    From: data sheet, commands 20h and 52h; `SECT_4K` of the spi-nor table.
    """
    sfdp: bool = True
    """Whether Linux reads the tables that the part has of itself (SFDP), and so uses more lines.
    From: the part's flags in `drivers/mtd/spi-nor/`; one without flags of reads is not asked.
    """


class ParallelBus(Strict):
    """`[parallel]`: cycles of a raw NAND."""

    source: Text
    """Where the numbers of this table come from."""
    width_bits: Literal[8, 16] = 8
    """Lines of data.
    From: data sheet, organisation.
    """
    timing_mode: Annotated[int, Field(ge=0, le=5)] | None = None
    """Fastest asynchronous mode of ONFI.
    From: ONFI parameter page, bytes 129 and 130; JEDEC's, bytes 144 and 145.
    """
    read_cycle_ns: Annotated[Ns, Field(gt=0)] | None = None
    """tRC; without it, that of `timing_mode`.
    From: data sheet, AC characteristics, "sequential access".
    """
    write_cycle_ns: Annotated[Ns, Field(gt=0)] | None = None
    """tWC; without it, that of `timing_mode`, or `read_cycle_ns`.
    From: data sheet, AC characteristics.
    """
    cache_reads: bool | None = None
    """Whether it has READ CACHE SEQUENTIAL (31h) and READ CACHE END (3Fh); absent is unknown.
    From: data sheet, command set; parameter page, byte 8, bit 1.
    """
    column_change_ns: Ns | None = None
    """tCCS, or tWHR; without it, that of `timing_mode`.
    From: data sheet, AC characteristics.
    """

    @property
    def read_ns(self) -> int | None:
        """A cycle of reading."""
        return self.read_cycle_ns or self._of_mode(ONFI_CYCLE_NS)

    @property
    def write_ns(self) -> int | None:
        """A cycle of writing."""
        return self.write_cycle_ns or self._of_mode(ONFI_CYCLE_NS) or self.read_cycle_ns

    @property
    def change_ns(self) -> int | None:
        """Changing the column."""
        if self.column_change_ns is not None:
            return self.column_change_ns
        return self._of_mode(ONFI_COLUMN_CHANGE_NS)

    def _of_mode(self, values: tuple[int, ...]) -> int | None:
        return None if self.timing_mode is None else values[self.timing_mode]


class Endurance(Strict):
    """`[endurance]`: how long blocks last, as the data sheet words it."""

    source: Text
    """Where the numbers of this table come from."""
    cycles: Erases | None = None
    """PROGRAM/ERASE cycles of a block, with the ECC that the part asks for.
    From: data sheet, endurance.
    """
    retention_years: Annotated[int, Field(gt=0, le=100)] | None = None
    """Years for which data are kept.
    From: data sheet, data retention.
    """
    wording: Text | None = None
    """The data sheet's condition, such as a temperature or "uncycled"."""


class CurrentsOf(Strict):
    """Currents of one corner; what no source says is absent."""

    read_ua: MicroAmpere | None = None
    """Reading the array."""
    program_ua: MicroAmpere | None = None
    """Programming."""
    erase_ua: MicroAmpere | None = None
    """Erasing."""
    standby_ua: MicroAmpere | None = None
    """Standby."""


class Currents(Strict):
    """`[currents]`: what the part draws."""

    source: Text
    """Where the numbers of this table come from."""
    typical: CurrentsOf = CurrentsOf()
    """`[currents.typical]`: what the maker expects.
    From: data sheet, DC characteristics.
    """
    maximum: CurrentsOf = CurrentsOf()
    """`[currents.maximum]`: what the maker guarantees.
    From: data sheet, DC characteristics.
    """


class CatalogueChip(FromFile):
    """A chip of the catalogue."""

    chip: ChipFacts
    """Which part it is."""
    geometry: Geometry
    """How the array is divided."""
    times: Times | None = None
    """What the array takes."""
    ecc: EccFacts | None = None
    """What the part asks for, and what it corrects itself."""
    spi: SpiBus | None = None
    """Commands and clock of an SPI-NAND."""
    parallel: ParallelBus | None = None
    """Cycles of a raw NAND."""
    nor: NorBus | None = None
    """Clock and registers of an SPI-NOR."""
    endurance: Endurance | None = None
    """How long blocks last."""
    currents: Currents | None = None
    """What the part draws."""

    @model_validator(mode="after")
    def _one_bus(self) -> Self:
        there = {"spi": self.spi, "parallel": self.parallel, "nor": self.nor}
        if there[self.chip.bus] is None:
            raise ValueError(f'chip.bus = "{self.chip.bus}": [{self.chip.bus}] is missing')
        for other, table in there.items():
            if other != self.chip.bus and table is not None:
                raise ValueError(f'chip.bus = "{self.chip.bus}": [{other}] does not belong to it')
        if (self.nor is None) == (self.geometry.oob_bytes == 0):
            raise ValueError(
                f"geometry.oob_bytes = {self.geometry.oob_bytes}: NAND has a spare area, NOR none"
            )
        return self

    @property
    def name(self) -> str:
        """The name that options, boards and experiments use."""
        return self.chip.name

    @property
    def size_bytes(self) -> int:
        """Bytes of its pages, without spare areas."""
        return self.block_bytes * self.geometry.blocks

    @property
    def block_bytes(self) -> int:
        """Bytes of a block's pages."""
        return self.geometry.page_bytes * self.geometry.pages_per_block

    @property
    def corrects_itself(self) -> bool:
        """Whether its times are those with ECC on the die when Linux drives it."""
        on_die = self.ecc is not None and self.ecc.on_die_strength_bits is not None
        return on_die and (
            self.chip.bus == "spi" or (self.ecc is not None and self.ecc.on_die_always)
        )

    def array_key(self, operation: str) -> str:
        """The key of `[times.*]` that applies to `read`, `program` or `erase`."""
        with_ecc = self.corrects_itself and operation != "erase"
        return f"{operation}_array_ecc_ns" if with_ecc else f"{operation}_array_ns"

    def array_ns(self, operation: str, corner: Corner) -> int | None:
        """A time of the array; None if no source says it.

        A data sheet that has one program time has it for both ways of ECC.
        """
        if self.times is None:
            return None
        times: ArrayTimes = getattr(self.times, corner)
        found: int | None = getattr(times, self.array_key(operation))
        if found is None and operation == "program" and self._one_program_time:
            found = times.program_array_ns
        return found

    def cache_read_ns(self, corner: Corner) -> int | None:
        """A corner's tRCBSY, or the largest; None if no source says it."""
        if self.times is None:
            return None
        of_corner = getattr(self.times, corner).cache_read_ns
        return of_corner or self.times.maximum.cache_read_ns

    @property
    def _one_program_time(self) -> bool:
        assert self.times is not None
        corners = (self.times.typical, self.times.maximum)
        return all(times.program_array_ecc_ns is None for times in corners)


def chip_names() -> list[str]:
    """The names of all chips."""
    return sorted(paths.chip_files())


def load_chip(name: str) -> CatalogueChip:
    """The chip of this name. Raises `ChipError`."""
    if not is_name(name):
        raise ChipError(f"{name}: not a chip's name; `flashbed chip list` has them")
    path = paths.chip_file(name)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        raise ChipError(
            f"{paths.shown(path)}: no such chip{_nearest(name)}; `flashbed chip list` has them,"
            f" `flashbed chip new {name}` begins one"
        ) from None
    return read_chip(path, changed_ns)


@lru_cache(maxsize=256)
def read_chip(path: Path, _changed_ns: int = 0) -> CatalogueChip:
    """A chip's file, whatever folder it is in. Raises `ChipError`."""
    part = read_model(CatalogueChip, read_toml(path, ChipError), path, ChipError)
    if part.name != path.stem.removeprefix("chip-"):
        raise ChipError(f"{paths.shown(path)}: name = {part.name!r} is not the file's name")
    part._path = path
    return part


def _nearest(name: str) -> str:
    folded = {one.upper(): one for one in chip_names()}
    near = get_close_matches(name.upper(), folded, n=1, cutoff=0.7)
    return f", {folded[near[0]]} is meant?" if near else ""
