"""What an operation takes, step by step: command, address, dummy, data, array and polling.

The steps are those of drivers/mtd/nand/spi/core.c and drivers/mtd/nand/raw/nand_base.c, from a
board's profile alone: nothing is measured and no CPU time is in them. sim/src/profile.rs charges
the same for SPI-NAND; of raw NAND it leaves out the few cycles of command and address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flashbed.stack.board_tables import Chip, Spi

__all__ = ["OPERATIONS", "BusStep", "WiredChip", "attach_steps", "steps_of", "total_ns"]

OPERATIONS = ("read", "program", "erase")
_NS_PER_S = 1_000_000_000
_BITS = 8
_ROW_BYTES, _FEATURE_BYTES = 4, 3
_POLLS_NS = {"read": (6_000, 5_000), "program": (75_000, 15_000), "erase": (250_000, 50_000)}
"""SPINAND_*_INITIAL_DELAY_US and SPINAND_*_POLL_DELAY_US of include/linux/mtd/spinand.h."""
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


def steps_of(wired: WiredChip, operation: str) -> list[BusStep]:
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


def _together(what: str, steps: Sequence[BusStep]) -> BusStep:
    return BusStep(what, " + ".join(f"{step.ns:,}" for step in steps), total_ns(steps))


def _spi(wired: WiredChip, operation: str, data_bytes: int) -> list[BusStep]:
    assert wired.spi is not None
    spi, mhz = wired.spi, wired.spi.clock_hz / 1_000_000

    def clocked(what: str, parts: Sequence[tuple[str, int]]) -> BusStep:
        clocks = sum(count for _, count in parts)
        how = " + ".join(f"{name} {count}" for name, count in parts)
        cost = f" + {spi.op_ns:,} ns" if spi.op_ns else ""
        ns = spi.op_ns + clocks * _NS_PER_S // spi.clock_hz
        return BusStep(what, f"{how} = {clocks:,} clocks at {mhz:g} MHz{cost}", ns)

    row = clocked(
        f"{operation} command 0x{_ROW_OPCODE[operation]:02x}", [("command", 8), ("address", 24)]
    )
    array = _polled(wired, operation)
    enable = clocked("write enable 0x06", [("command", 8)])
    if operation == "erase":
        return [enable, row, array]
    if operation == "program":
        data = data_bytes * _BITS // spi.program_data_lines
        load = clocked(
            f"load 0x{spi.program_opcode:02x}",
            [("command", 8), ("address", 16), (f"data on {spi.program_data_lines}", data)],
        )
        return [enable, load, row, array]
    lines = spi.read_address_lines
    transfer = clocked(
        f"from register 0x{spi.read_opcode:02x}",
        [
            ("command", 8),
            (f"address on {lines}", spi.read_address_bytes * _BITS // lines),
            (f"dummy on {lines}", spi.read_dummy_bytes * _BITS // lines),
            (f"data on {spi.read_data_lines}", data_bytes * _BITS // spi.read_data_lines),
        ],
    )
    return [row, array, transfer]


def _polled(wired: WiredChip, operation: str) -> BusStep:
    """The array, until spinand_wait() finds it ready."""
    assert wired.spi is not None
    array = getattr(wired.chip, f"{operation}_array_ns")
    initial, between = _POLLS_NS[operation]
    status = wired.spi.op_ns + _FEATURE_BYTES * _BITS * _NS_PER_S // wired.spi.clock_hz
    rounds = max(0, -(-(array - initial - status) // (between + status)))
    how = (
        f"{_ARRAY_WORD[operation]} {array:,} ns, polled after {initial // 1000} us and then every"
        f" {between // 1000} us: {rounds + 1} polls"
    )
    return BusStep("array", how, initial + status + rounds * (between + status))


def _raw(wired: WiredChip, operation: str) -> list[BusStep]:
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
