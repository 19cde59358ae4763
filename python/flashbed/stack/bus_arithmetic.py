"""What an operation takes, step by step: command, address, dummy, data, array and polling.

The steps are those of drivers/mtd/nand/spi/core.c and drivers/mtd/nand/raw/nand_base.c, from a
board's profile alone: nothing is measured and no CPU time is in them. The simulator says what it
charges for SPI-NAND; of raw NAND it leaves out the few cycles of command and address.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flashbed._sim import spi_phases
from flashbed.stack.board_tables import Chip, Spi

__all__ = [
    "OPERATIONS",
    "BusStep",
    "WiredChip",
    "attach_steps",
    "block_read_steps",
    "steps_of",
    "total_ns",
]

Operation = Literal["read", "program", "erase"]
OPERATIONS: tuple[Operation, ...] = ("read", "program", "erase")
_BITS = 8
_FEATURE_BYTES = 3
_COLUMN_BYTES, _ROW_BYTES, _DTR_ROW_BYTES = 2, 3, 2
_ROW_OPCODE = {"read": 0x13, "program": 0x10, "erase": 0xD8}
_ARRAY_WORD = {"read": "tR", "program": "tPROG", "erase": "tBERS"}
_RAW_CYCLES = {"read": (2, 5), "program": (2, 5), "erase": (2, 3)}
"""Command and address cycles of a raw NAND's operation (large pages, three row cycles)."""


@dataclass(frozen=True)
class WiredChip:
    """A chip and its bus, as a board's profile has them."""

    chip: Chip
    spi: Spi | None


@dataclass(frozen=True)
class BusStep:
    """A part of an operation: how its time is worked out, and the time."""

    what: str
    how: str
    ns: int


def total_ns(steps: Sequence[BusStep]) -> int:
    """The steps together."""
    return sum(step.ns for step in steps)


def steps_of(wired: WiredChip, operation: Operation) -> list[BusStep]:
    """The steps of reading or programming a page, or erasing a block."""
    if wired.spi is None:
        return _raw(wired, operation)
    chip = wired.chip
    whole = chip.page_bytes + (chip.oob_bytes if operation == "program" else 0)
    return _spi(wired, operation, whole)


def attach_steps(wired: WiredChip) -> list[BusStep]:
    """The steps of UBI's scan of an eraseblock: bad-block mark, EC and VID header.

    SPI-NAND reads the mark from the OOB each time; raw NAND has a table of them in memory. Neither
    kind has sub-pages with ECC over whole pages, so the headers stand in pages of their own.
    """
    steps = []
    if wired.spi is not None:
        steps.append(_together("bad-block mark", _spi(wired, "read", wired.chip.oob_bytes)))
    for header in ("EC header", "VID header"):
        steps.append(_together(header, steps_of(wired, "read")))
    return steps


def block_read_steps(wired: WiredChip) -> list[BusStep]:
    """The steps of reading an eraseblock while the array loads ahead; none if the chip does not."""
    chip, pages = wired.chip, wired.chip.pages_per_block
    if wired.spi is None:
        return _cache_reads(wired) if chip.cache_read_ns is not None else []
    if not wired.spi.continuous_reads:
        return []
    clocks = 3 * _FEATURE_BYTES * _BITS  # no part is known to have these in octal DTR
    registers = BusStep(
        "feature set, status, feature cleared",
        f"3 x {_FEATURE_BYTES * _BITS} = {clocks} clocks",
        3 * (wired.spi.op_ns + _FEATURE_BYTES * _BITS * 1_000_000_000 // wired.spi.clock_hz),
    )
    return [*_spi(wired, "read", pages * chip.page_bytes), registers]


def _cache_reads(wired: WiredChip) -> list[BusStep]:
    chip, pages = wired.chip, wired.chip.pages_per_block
    assert chip.cache_read_ns is not None
    command, array, data = _raw(wired, "read")
    waits = max(0, array.ns - data.ns)
    steps = [
        command,
        array,
        BusStep("cache register", f"{pages} x tRCBSY {chip.cache_read_ns:,} ns",
                pages * chip.cache_read_ns),
        BusStep("data", f"{pages} x {data.ns:,} ns", pages * data.ns),
    ]  # fmt: skip
    if waits:
        how = f"{pages - 1} x {waits:,} ns that tR is longer than the data"
        steps.append(BusStep("array", how, (pages - 1) * waits))
    return steps


def _together(what: str, steps: Sequence[BusStep]) -> BusStep:
    return BusStep(what, " + ".join(f"{step.ns:,}" for step in steps), total_ns(steps))


def _spi(wired: WiredChip, operation: Operation, data_bytes: int) -> list[BusStep]:
    assert wired.spi is not None
    spi, array_ns = wired.spi, getattr(wired.chip, f"{operation}_array_ns")
    mhz, cost = spi.clock_hz / 1_000_000, f" + {spi.op_ns:,} ns" if spi.op_ns else ""
    steps = []
    for name, clocks, ns, polls in spi_phases(
        json.dumps(spi.sim_tables), operation, array_ns, data_bytes
    ):
        if polls is None:
            what, parts = _moved(spi, name, operation, data_bytes)
            how = " + ".join(f"{part} {count}" for part, count in parts)
            steps.append(BusStep(what, f"{how} = {clocks:,} clocks at {mhz:g} MHz{cost}", ns))
            continue
        first, between, count = polls
        how = (
            f"{_ARRAY_WORD[operation]} {array_ns:,} ns, polled after {first // 1000} us and then"
            f" every {between // 1000} us: {count} polls"
        )
        steps.append(BusStep(name, how, ns))
    return steps


def _moved(
    spi: Spi, phase: str, operation: Operation, data_bytes: int
) -> tuple[str, list[tuple[str, int]]]:
    """What a phase is called, and its parts with their clocks."""
    opcode, edges = (1, 2) if spi.dtr else (_BITS, 1)
    dtr = ", both edges" if spi.dtr else ""

    def clocks(size: int, lines: int) -> int:
        return size * _BITS // (lines * edges)

    if phase == "row":
        row = (_DTR_ROW_BYTES, 8) if spi.dtr else (_ROW_BYTES, 1)
        return f"{operation} command 0x{_ROW_OPCODE[operation]:02x}", [
            ("command", opcode),
            ("address", clocks(*row)),
        ]
    if phase == "load":
        lines, wide = spi.program_address_lines, spi.program_data_lines
        address = "address" if lines == 1 else f"address on {lines}"
        return f"load 0x{spi.program_opcode:02x}", [
            ("command", opcode),
            (address, clocks(_COLUMN_BYTES, lines)),
            (f"data on {wide}{dtr}", clocks(data_bytes, wide)),
        ]
    if phase == "from register":
        lines, wide = spi.read_address_lines, spi.read_data_lines
        return f"from register 0x{spi.read_opcode:02x}", [
            ("command", opcode),
            (f"address on {lines}", clocks(spi.read_address_bytes, lines)),
            (f"dummy on {lines}", clocks(spi.read_dummy_bytes, lines)),
            (f"data on {wide}{dtr}", clocks(data_bytes, wide)),
        ]
    return f"{phase} 0x06", [("command", opcode)]


def _raw(wired: WiredChip, operation: Operation) -> list[BusStep]:
    chip, whole = wired.chip, wired.chip.page_bytes + wired.chip.oob_bytes
    commands, address = _RAW_CYCLES[operation]
    cycle = chip.bus_program_ns / whole
    count = commands + address
    steps = [
        BusStep(
            "command, address",
            f"{count} cycles of {cycle:.1f} ns",
            round(count * cycle),
        )
    ]
    array = getattr(chip, f"{operation}_array_ns")
    waited = BusStep("array", f"{_ARRAY_WORD[operation]} {array:,} ns", array)
    if operation == "erase":
        return [*steps, waited]
    bus = chip.bus_read_ns if operation == "read" else chip.bus_program_ns
    moved = BusStep("data", f"{whole:,} bytes of {bus / whole:.1f} ns", bus)
    return [*steps, waited, moved] if operation == "read" else [*steps, moved, waited]
