"""Puts a chip of the catalogue onto a board: a part, a corner and a controller become its tables.

Geometry, times of the array, ECC and endurance are the part's; memory, processor and prices stay
the board's. The controller is the board's where it has one of that bus, and else a stated one.
Where only the largest time of an operation is published it also stands at the typical corner; a
time that no source says is an error that names it. `FittedChip.notes` is for answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.human import bytes_text, time_text
from flashbed.base.toml import Strict
from flashbed.stack.bounds import ClockHz, EccBits, Lines, Ns, PageBytes
from flashbed.stack.chips import (
    ONFI_COLUMN_CHANGE_NS,
    CatalogueChip,
    ChipError,
    Corner,
    ProgramVariant,
    ReadVariant,
    chip_names,
    load_chip,
)

__all__ = [
    "ASSUMED_CLOCK_HZ",
    "ASSUMED_LINES",
    "Controller",
    "FittedChip",
    "fitted",
    "spi_cycles_ns",
]

ASSUMED_CLOCK_HZ = 52_000_000
ASSUMED_LINES = 4
"""The controller of an SPI-NAND on a board that says nothing of one."""
_OPERATIONS = ("read", "program", "erase")
_NS_PER_S = 1_000_000_000
_PS_PER_S = 1_000_000_000_000
_COLUMN_BYTES = 2
_BITS = 8
_GEOMETRY = ("page_bytes", "oob_bytes", "pages_per_block", "blocks")
_MHZ = 1_000_000


class Controller(Strict):
    """`[controller]`: what drives the part that `chip.part` names; each key may be missing."""

    clock_hz: ClockHz | None = None
    """Clock that an SPI controller really makes of what is asked of it.
    From: `spi-max-frequency`, and the dividers of the controller's source.
    """
    lines: Lines | None = None
    """Data lines that are connected and that the controller can use.
    From: device tree, `spi-rx-bus-width` and `spi-tx-bus-width`.
    """
    dtr: Annotated[int, Field(ge=0, le=1)] | None = None
    """1 for a controller of eight lines that moves data at both edges of the clock (octal DTR).
    From: the controller's driver, `dtr` of its `spi_controller_mem_caps`.
    """
    op_ns: Ns | None = None
    """What the controller and its driver need for one operation beside its cycles.
    From: a measurement.
    """
    cycle_ns: Ns | None = None
    """Cycle of a raw NAND controller for a byte or word; without it, the part's tRC and tWC.
    From: the controller's driver, or an oscilloscope.
    """
    ecc_strength_bits: EccBits | None = None
    """Wrong bits in a step that a raw NAND controller corrects; without it, the board's `[ecc]`.
    From: `/sys/class/mtd/mtdN/ecc_strength`.
    """
    ecc_step_bytes: PageBytes | None = None
    """Bytes of such a step.
    From: `/sys/class/mtd/mtdN/ecc_step_size`.
    """

    @model_validator(mode="after")
    def _whole_ecc(self) -> Self:
        if (self.ecc_strength_bits is None) != (self.ecc_step_bytes is None):
            raise ValueError("ecc_strength_bits and ecc_step_bytes need each other")
        return self


@dataclass(frozen=True)
class FittedChip:
    """A part on a board: what was chosen, and what an answer must say of it."""

    part: CatalogueChip
    corner: Corner
    controller: Controller
    given: Mapping[str, int]
    """Keys of `[chip]` that are not the part's."""
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Bus:
    """Times and tables that follow from the bus."""

    chip: dict[str, Any]
    tables: Mapping[str, Any]
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def fitted(
    board: Mapping[str, Any],
    part: CatalogueChip,
    *,
    corner: Corner,
    controller: Controller,
    given: Mapping[str, int],
) -> tuple[dict[str, Any], FittedChip]:
    """The board's tables with this part, and how it was fitted. Raises `ChipError`.

    `given` are keys of `[chip]` whose values come from elsewhere.
    """
    values = dict(board)
    times, notes = _times(part, corner, given)
    if part.nor is not None:
        bus = _nor(values, part, controller, corner)
    elif part.chip.bus == "spi":
        bus = _spi(values, part, controller)
    else:
        bus = _parallel(values, part, controller, corner)
    source = f"boards/chips/{part.name}.toml, {corner}: {_source_of(part)}"
    geometry = {key: given.get(key, getattr(part.geometry, key)) for key in _GEOMETRY}
    cells: dict[str, Any] = {"cells": part.chip.cells, "pairing": part.geometry.pairing}
    if given.get("slc_mode"):
        geometry["pages_per_block"] = given.get(
            "pages_per_block", part.geometry.pages_per_block // 2
        )
        bus.chip.pop("cache_read_ns", None)
    values["chip"] = {"source": source, **geometry, **cells, **times, **bus.chip, **given}
    values |= {"nor": None, **bus.tables}
    values["partition"], kept = _partition(board, geometry)
    values["endurance"] = None
    if part.endurance is not None and part.endurance.cycles is not None:
        values["endurance"] = {"source": part.endurance.source, "cycles": part.endurance.cycles}
    return values, FittedChip(
        part=part, corner=corner, controller=controller, given=given,
        notes=(*notes, *bus.notes, *kept), doubts=bus.doubts,
    )  # fmt: skip


def _source_of(part: CatalogueChip) -> str:
    return part.times.source if part.times is not None else part.geometry.source


def _times(
    part: CatalogueChip, corner: Corner, given: Mapping[str, int]
) -> tuple[dict[str, int], tuple[str, ...]]:
    times: dict[str, int] = {}
    notes, lacking = [], []
    for operation in _OPERATIONS:
        key = f"{operation}_array_ns"
        if operation == "read" and part.nor is not None:
            times[key] = 0
            continue
        if key in given:
            continue
        found = part.array_ns(operation, corner)
        if found is None and corner == "typical":
            found = part.array_ns(operation, "maximum")
            if found is not None:
                notes.append(
                    f"{operation} takes {time_text(found)}, the largest; no typical is known"
                )
        if found is None:
            lacking.append(operation)
        else:
            times[key] = found
    if lacking:
        raise ChipError(_lacking(part, corner, lacking))
    return times, tuple(notes)


def _lacking(part: CatalogueChip, corner: Corner, operations: Sequence[str]) -> str:
    """One line: chip, keys, what to do, and what is published of parts on the same bus."""
    keys = ", ".join(part.array_key(one) for one in operations)
    options = " ".join(f"--set chip.{one}_array_ns=NS" for one in operations)
    others = [one for one in _known_chips() if one.chip.bus == part.chip.bus]
    ranges = [_range(others, one, corner) for one in operations]
    return (
        f"{paths.shown(part.path)}: times.{corner}: {keys} not published; `{options}` gives"
        f" numbers, or write them into boards/chips/{part.name}.toml of your own (other parts with"
        f" this bus: {', '.join(one for one in ranges if one)})"
    )


def _known_chips() -> Iterator[CatalogueChip]:
    """The catalogue, without files that are not finished."""
    for name in chip_names():
        with suppress(ChipError):
            yield load_chip(name)


def _range(parts: Sequence[CatalogueChip], operation: str, corner: Corner) -> str:
    """`read 25.00 us to 120.0 us`, or nothing if no part has it."""
    found = [one.array_ns(operation, corner) for one in parts]
    if corner == "typical":
        most = [one.array_ns(operation, "maximum") for one in parts]
        found = [typical or largest for typical, largest in zip(found, most, strict=True)]
    known = [one for one in found if one is not None]
    if not known:
        return ""
    ends = dict.fromkeys((time_text(min(known)), time_text(max(known))))
    return f"{operation} {' to '.join(ends)}"


def _assumed(clock_hz: int | None, lines: int | None) -> tuple[str, ...]:
    """What to say of a controller of which not all is given; nothing if it is."""
    words = {
        f"{ASSUMED_CLOCK_HZ / _MHZ:g} MHz (--set controller.clock_hz=HZ)": clock_hz,
        f"{ASSUMED_LINES} data lines (--set controller.lines=N)": lines,
    }
    unsaid = [word for word, given in words.items() if given is None]
    return (f"its controller is assumed: {', '.join(unsaid)}",) if unsaid else ()


def _nor(
    values: dict[str, Any], part: CatalogueChip, controller: Controller, corner: Corner
) -> _Bus:
    assert part.nor is not None
    there = values.get("nor") or {}
    given_hz = controller.clock_hz or there.get("clock_hz")
    given_lines = controller.lines or there.get("lines")
    op_ns = controller.op_ns if controller.op_ns is not None else there.get("op_ns", 0)
    clock, lines = given_hz or ASSUMED_CLOCK_HZ, given_lines or ASSUMED_LINES
    if lines > ASSUMED_LINES or controller.dtr:
        raise ChipError(f"controller.lines = {lines}: SPI-NOR has 1, 2 or 4 here, and no DTR")
    if part.chip.id is None:
        raise ChipError(
            f"{paths.shown(part.path)}: chip.id is not known; write it into"
            f" boards/chips/{part.name}.toml of your own"
        )
    notes = _assumed(given_hz, given_lines)
    most = part.nor.clock_max_hz
    doubts: tuple[str, ...] = ()
    if most is not None and clock > most:
        doubts = (f"controller.clock_hz = {clock:_}: {part.name} takes {most:_} at most",)
    times = getattr(part.times, corner) if part.times else None
    nor = {
        "source": f"{part.nor.source}; the controller's clock and lines",
        "id": part.chip.id,
        "clock_hz": clock,
        "lines": lines,
        "op_ns": op_ns,
        "quad_enable": part.nor.quad_enable,
        "small_erases": part.nor.small_erases,
        "sfdp": part.nor.sfdp,
        "program_first_byte_ns": times and times.program_first_byte_ns,
        "program_next_byte_ns": times and times.program_next_byte_ns,
    }
    page_ns = spi_cycles_ns(part.geometry.page_bytes * _BITS, clock)
    chip = {
        "kind": "nor",
        "transfer": "bytes",
        "bus_read_ns": page_ns,
        "bus_program_ns": page_ns,
        "column_change_ns": 0,
    }
    ecc = {
        "source": "SPI-NOR has none that Linux knows of", "kind": "none",
        "step_bytes": part.geometry.page_bytes, "strength_bits": 0,
    }  # fmt: skip
    return _Bus(chip, {"ecc": ecc, "spi": None, "nor": nor}, notes, doubts)


def _spi(values: dict[str, Any], part: CatalogueChip, controller: Controller) -> _Bus:
    assert part.spi is not None
    there = values.get("spi") or {}
    given_hz = controller.clock_hz or there.get("clock_hz")
    given_lines = controller.lines or there.get("read_data_lines")
    op_ns = controller.op_ns if controller.op_ns is not None else there.get("op_ns", 0)
    clock, lines = given_hz or ASSUMED_CLOCK_HZ, given_lines or ASSUMED_LINES
    dtr = bool(controller.dtr if controller.dtr is not None else there.get("dtr"))
    read, program = chosen_variants(part, lines, clock, dtr=dtr)
    notes = []
    if dtr and not read.dtr:
        notes.append(f"it has no octal DTR on {lines} lines: Linux falls back to single data rate")
    if read.data_lines < lines:
        notes.append(f"it reads on {read.data_lines} of {lines} data lines")
    notes += _assumed(given_hz, given_lines)
    most = min(one for one in (part.spi.clock_max_hz, read.clock_max_hz, clock) if one is not None)
    doubts: tuple[str, ...] = ()
    if clock > most:
        doubts = (f"controller.clock_hz = {clock:_}: {part.name} takes {most:_} at most",)
    unknown = {"chip.id": part.chip.id, "spi.oob_free_bytes": part.spi.oob_free_bytes}
    for key, value in unknown.items():
        if value is None:
            raise ChipError(
                f"{paths.shown(part.path)}: {key} is not known; write it into"
                f" boards/chips/{part.name}.toml of your own"
            )
    spi = {
        "source": f"{part.spi.source}; the controller's clock and lines",
        "id": part.chip.id,
        "clock_hz": clock,
        "read_opcode": read.opcode,
        "read_address_lines": read.address_lines,
        "read_address_bytes": read.address_bytes,
        "read_dummy_bytes": read.dummy_bytes,
        "read_data_lines": read.data_lines,
        "program_opcode": program.opcode,
        "program_address_lines": program.address_lines,
        "program_data_lines": program.data_lines,
        "dtr": read.dtr,
        "linux_since": part.spi.linux_since,
        "oob_free_bytes": part.spi.oob_free_bytes,
        "continuous_reads": part.spi.continuous_reads,
        "ecc_status": part.spi.ecc_status,
        "op_ns": op_ns,
    }
    size, edges = part.geometry.page_bytes + part.geometry.oob_bytes, 1 + read.dtr
    chip = {
        "transfer": "bytes",
        "bus_read_ns": spi_cycles_ns(size * _BITS // (read.data_lines * edges), clock),
        "bus_program_ns": spi_cycles_ns(size * _BITS // (program.data_lines * edges), clock),
        "column_change_ns": 0,
    }
    return _Bus(chip, {"ecc": _on_die(part), "spi": spi}, tuple(notes), doubts)


def chosen_variants(
    part: CatalogueChip, lines: int, clock_hz: int, *, dtr: bool = False
) -> tuple[ReadVariant, ProgramVariant]:
    """The fastest commands that a controller can do, as spinand_select_op_variant() chooses them.

    Older kernels take the first that it can do, which is the same one in their tables. Octal DTR
    needs both commands, or else neither has it. Raises `ChipError`.
    """
    assert part.spi is not None
    size = part.geometry.page_bytes + part.geometry.oob_bytes
    for doubled in (True, False) if dtr else (False,):
        reads = [
            one for one in part.spi.read
            if max(one.address_lines, one.data_lines) <= lines and one.dtr == doubled
        ]  # fmt: skip
        programs = [
            one for one in part.spi.program
            if max(one.address_lines, one.data_lines) <= lines and one.dtr == doubled
        ]  # fmt: skip
        if reads and programs:
            read = min(reads, key=lambda one: _read_ps(one, size, clock_hz))
            return read, min(programs, key=lambda one: _load_cycles(one, size))
    raise ChipError(f"{paths.shown(part.path)}: spi: no command for {lines} data lines")


def _read_ps(row: ReadVariant, size: int, clock_hz: int) -> int:
    """What a page takes, in picoseconds; its opcode is the same for all commands of a rate."""
    clock = min(clock_hz, row.clock_max_hz or clock_hz)
    before = (row.address_bytes + row.dummy_bytes) * _BITS // row.address_lines
    return (before + size * _BITS // row.data_lines) * (_PS_PER_S // clock)


def _load_cycles(row: ProgramVariant, size: int) -> int:
    return _COLUMN_BYTES * _BITS // row.address_lines + size * _BITS // row.data_lines


def spi_cycles_ns(cycles: int, clock_hz: int) -> int:
    """The time of these clocks, to the nearest nanosecond."""
    return (cycles * _NS_PER_S + clock_hz // 2) // clock_hz


def _on_die(part: CatalogueChip) -> dict[str, Any]:
    if part.ecc is None or part.ecc.on_die_strength_bits is None:
        raise ChipError(
            f"{paths.shown(part.path)}: ecc.on_die_strength_bits is not known; SPI-NAND without"
            " ECC on the die is not modelled"
        )
    return {
        "source": part.ecc.source, "kind": "on-die", "step_bytes": part.ecc.on_die_step_bytes,
        "strength_bits": part.ecc.on_die_strength_bits,
    }  # fmt: skip


def _parallel(
    values: dict[str, Any], part: CatalogueChip, controller: Controller, corner: Corner
) -> _Bus:
    assert part.parallel is not None
    of_board = values.get("chip") if not values.get("spi") else None
    size = part.geometry.page_bytes + part.geometry.oob_bytes
    words = size * _BITS // part.parallel.width_bits
    ecc, said = _controller_ecc(values, part, controller)
    chip: dict[str, Any] = {"transfer": "bytes"}
    for key, cycle in (
        ("bus_read_ns", part.parallel.read_ns), ("bus_program_ns", part.parallel.write_ns),
    ):  # fmt: skip
        pace = _pace(of_board, key, size)
        if controller.cycle_ns is not None:
            chip[key] = max(controller.cycle_ns, cycle or 0) * words
        elif cycle is None and pace is None:
            raise ChipError(
                f"{paths.shown(part.path)}: parallel.read_cycle_ns is not published;"
                " `--set controller.cycle_ns=NS` sets it"
            )
        else:
            chip[key] = max(pace or 0, (cycle or 0) * words)
    chip["column_change_ns"] = 0
    if ecc["kind"] == "software-subpage":
        chip["column_change_ns"] = _column_change(part, of_board)
    notes = [*said]
    if part.parallel.cache_reads:
        chip["cache_read_ns"] = cache_ns = part.cache_read_ns(corner)
        if cache_ns is None:
            notes.append(
                "its sequential cache reads are left out: tRCBSY is not known"
                " (--set chip.cache_read_ns=NS)"
            )
    if controller.cycle_ns is None and of_board is None:
        notes.append("a controller as fast as the part is assumed (--set controller.cycle_ns=NS)")
    return _Bus(chip, {"ecc": ecc, "spi": None}, tuple(notes))


def _pace(of_board: Mapping[str, Any] | None, key: str, size: int) -> int | None:
    """What the board's controller needs for a page of this size, at its pace."""
    if of_board is None or key not in of_board:
        return None
    there: int = of_board["page_bytes"] + of_board["oob_bytes"]
    return int(of_board[key]) * size // there


def _column_change(part: CatalogueChip, of_board: Mapping[str, Any] | None) -> int:
    assert part.parallel is not None
    if part.parallel.change_ns is not None:
        return part.parallel.change_ns
    if of_board is not None and of_board.get("transfer") == "bytes":
        return int(of_board["column_change_ns"])
    return ONFI_COLUMN_CHANGE_NS[0]  # the kernel's for a part that names no mode


def _controller_ecc(
    values: dict[str, Any], part: CatalogueChip, controller: Controller
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """`[ecc]` of a raw NAND: the die's where it cannot be switched off, else the controller's."""
    asked = part.ecc
    if part.corrects_itself:
        return {**_on_die(part), "kind": "hardware-page"}, ()
    if controller.ecc_strength_bits is not None:
        return {
            "source": "the controller's", "kind": "hardware-page",
            "step_bytes": controller.ecc_step_bytes, "strength_bits": controller.ecc_strength_bits,
        }, ()  # fmt: skip
    there = values.get("ecc")
    if there and there["kind"] != "on-die":
        return dict(there), ()
    if asked is None or asked.strength_bits is None:
        raise ChipError(
            f"{paths.shown(part.path)}: ecc.strength_bits is not published, and the board has no"
            " [ecc]: write the controller's"
        )
    ecc = {
        "source": f"assumed to be what the part asks for: {asked.source}", "kind": "hardware-page",
        "step_bytes": asked.step_bytes, "strength_bits": asked.strength_bits,
    }  # fmt: skip
    return ecc, (
        f"a controller that corrects {asked.strength_bits} bits in {asked.step_bytes} bytes is"
        " assumed",
    )


def _partition(
    board: Mapping[str, Any], geometry: Mapping[str, int]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The board's bytes where they fit, else the whole part."""
    there, chip = board.get("partition"), board.get("chip") or {}
    blocks = geometry["blocks"]
    if there is None:
        return {"source": "the whole part", "first_block": 0, "blocks": blocks}, ()
    if "pages_per_block" not in chip:
        return dict(there), ()
    old = chip["page_bytes"] * chip["pages_per_block"]
    new = geometry["page_bytes"] * geometry["pages_per_block"]
    first, count = there["first_block"] * old // new, there["blocks"] * old // new
    if old == new and first + count <= blocks:
        return dict(there), ()
    if count and first + count <= blocks:
        return {**there, "first_block": first, "blocks": count}, (
            f"the partition keeps {bytes_text(count * new)} ({count} blocks)",
        )
    return {**there, "first_block": 0, "blocks": blocks}, (
        f"the partition is the whole part, {bytes_text(blocks * new)}; the board's does not fit",
    )


def weaker_ecc(fit: FittedChip, strength_bits: int, step_bytes: int) -> str | None:
    """What is wrong with a board's ECC for this part; None if it is strong enough."""
    asked = fit.part.ecc
    if asked is None or asked.strength_bits is None or asked.step_bytes is None:
        return None
    if strength_bits * asked.step_bytes >= asked.strength_bits * step_bytes:
        return None
    return (
        f"ecc.strength_bits = {strength_bits} in {step_bytes} bytes: {fit.part.name} asks for"
        f" {asked.strength_bits} in {asked.step_bytes} ({asked.source})"
    )
