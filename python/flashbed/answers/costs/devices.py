"""What a program costs on a board, by a device model: counts times the times of chip and software.

Chip times are arithmetic on the board's profile (stack/bus_arithmetic.py), prices of code are its
`[software]`. Neither is in the model, so it predicts any board
and chip.

It refuses what changes counts and is no term: a state other than new, failures, mount options,
compressors other than the kernel's own, settings of write-back, another kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flashbed.answers.costs.counting import Counts, counts
from flashbed.answers.costs.device_model import PREDICTED, DeviceModel, FsModel
from flashbed.answers.costs.logs import Below, erased_blocks
from flashbed.base.errors import InputError
from flashbed.plan.case import AXES, CONDITIONS, Case
from flashbed.stack.bus_arithmetic import WiredChip, steps_of, total_ns
from flashbed.stack.prices import known_price
from flashbed.stack.profiles import CACHE_PAGE_KIB, Board
from flashbed.stack.stack import Stack

__all__ = [
    "BAND",
    "ECC_STEPS",
    "Banded",
    "ChipTimes",
    "Packing",
    "Parts",
    "below_of",
    "check_case",
    "chip_times",
    "counted_program",
    "event_count",
    "in_software",
    "priced",
    "reads_event",
]  # fmt: skip

BAND = 1.96
"""Standard deviations on either side of a prediction: 95 %."""
UNCOMPRESSED = "none"
"""The mount option with which every byte is stored as it is."""
ECC_STEPS = "ecc_step_ns"
"""The price of software ECC, which only boards that have it pay."""
_TAGS_BYTES = 28
"""Spare bytes that YAFFS2's tags need; where there are fewer, they stand in the page."""
_UBI_RESERVED, _UBI_A_CHIP = 4, 20
"""Blocks that UBI keeps: its volume table, one for levelling, one for atomic changes, and for bad
blocks 20 of each 1,024 of the chip (CONFIG_MTD_UBI_BEB_LIMIT)."""
_TERMED = ("database", "chip", "corner", "controller", "partition")
"""Conditions of a case that the model counts or works out."""


@dataclass(frozen=True)
class Packing:
    """What a file system's compressor does to pages, as `FsModel` has it."""

    stored: tuple[float, ...]
    retried: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class ChipTimes:
    """What the chip and its bus take, ns."""

    read_ns: int
    program_ns: int
    erase_ns: int


def chip_times(board: Board) -> ChipTimes:
    """The times of a page read, a page programmed, a block erased."""
    wired = WiredChip(board.chip, board.spi)
    return ChipTimes(
        read_ns=total_ns(steps_of(wired, "read")),
        program_ns=total_ns(steps_of(wired, "program")),
        erase_ns=total_ns(steps_of(wired, "erase")),
    )


def below_of(stack: Stack, system: FsModel | Packing) -> Below:
    """What counting needs of a stack."""
    board = stack.board
    blocks = board.partition.blocks
    if stack.fs == "ubifs":
        blocks -= -(-_UBI_A_CHIP * board.chip.blocks // 1024) + _UBI_RESERVED
    own: dict[str, Any] = {}
    if stack.compressor != UNCOMPRESSED:
        own = {"stored": system.stored, "retried": system.retried}
    return Below(
        fs=stack.fs,
        page_bytes=board.chip.page_bytes,
        pages_per_block=board.chip.pages_per_block,
        blocks=blocks,
        window_pages=stack.modelled_kib // CACHE_PAGE_KIB,
        in_band=board.spi is not None and board.spi.oob_free_bytes < _TAGS_BYTES,
        **own,
    )


def in_software(board: Board) -> bool:
    """Whether code works ECC out, which reads parts of pages."""
    return board.ecc.kind.startswith("software")


def reads_event(name: str, board: Board) -> str:
    """The event of reads, `page_reads` or `call_reads`, by how the board's driver makes them."""
    if in_software(board):
        return f"{name}:part"
    return f"{name}:buffered" if board.spi is None else f"{name}:direct"


def check_case(model: DeviceModel, case: Case, stack: Stack) -> FsModel:
    """The model of a case's file system. Raises `InputError` for what it does not count."""
    if stack.kernel.sha256 != model.kernel_sha256:
        raise InputError(f"kernel {case.kernel}: the model is of Linux {model.kernel}")
    for axis in CONDITIONS:
        usual = AXES[axis].usual
        if axis == "compressor" and case.compressor == UNCOMPRESSED:
            continue
        if axis not in _TERMED and str(getattr(case, axis)) != str(usual):
            raise InputError(f"{axis} {getattr(case, axis)}: the model counts {usual} only")
    system = model.systems.get(case.fs)
    if system is None:
        raise InputError(f"fs {case.fs}: the model has {', '.join(model.systems)}")
    return system


@lru_cache(maxsize=512)
def _counted(below: Below, prepare: str, body: str) -> Counts:
    return counts(below, prepare, body)


def counted_program(stack: Stack, system: FsModel, prepare: str, body: str) -> Counts:
    """The counts of a program on a stack. Raises `InputError` for calls that are not counted."""
    return _counted(below_of(stack, system), prepare, body)


def event_count(system: FsModel, event: str, counted: Counts) -> float:
    """How often an event occurs."""
    amounts = counted.amounts
    return sum(much * amounts[term] for term, much in system.events.get(event, {}).items())


@dataclass(frozen=True, kw_only=True)
class Banded:
    """A quantity and the ends of its band."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The answer; None is unknown. `chip_ns` and `software_ns` are the time's parts."""

    costs: Mapping[str, Banded | None]
    chip_ns: float
    software_ns: float | None


def priced(system: FsModel, board: Board, counted: Counts) -> Parts:
    """What counts cost on a board."""
    chip = chip_times(board)
    pages = event_count(system, "page_writes", counted)
    software_ns = _software_ns(system, board, counted)
    chip_ns = (
        event_count(system, reads_event("call_reads", board), counted) * chip.read_ns
        + event_count(system, "call_writes", counted) * chip.program_ns
    )
    written, seconds = pages / board.chip.pages_per_block, (chip_ns + (software_ns or 0.0)) / 1e9
    erases = erased_blocks(counted.below.fs, counted.space, written, seconds)
    erases += system.erases_a_commit * counted.amounts["commit"]
    chip_ns += erases * chip.erase_ns
    values = {
        "time_ns": None if software_ns is None else chip_ns + software_ns,
        "page_reads": event_count(system, reads_event("page_reads", board), counted),
        "page_writes": pages,
        "erases": erases,
    }
    return Parts(
        costs={name: _with_band(system, name, values[name]) for name in PREDICTED},
        chip_ns=chip_ns,
        software_ns=software_ns,
    )


def _with_band(system: FsModel, name: str, value: float | None) -> Banded | None:
    if value is None:
        return None
    band = BAND * system.errors[name].scatter * max(value, 1.0)
    return Banded(value=value, low=max(0.0, value - band), high=value + band)


def _software_ns(system: FsModel, board: Board, counted: Counts) -> float | None:
    """The time of code; None where a price that occurs is unknown."""
    total = 0.0
    free = {f"compressors.{name}" for name in board.software.compressors.included}
    for event in system.events:
        if not event.endswith(("_ns", "_ps")):
            continue
        if event == ECC_STEPS and not in_software(board):
            continue
        if event.startswith("compressors.") and min(counted.below.stored) == 1.0:
            continue
        occurs = event_count(system, event, counted)
        price = known_price(board.software, event)
        if price is None:
            named = event.removesuffix(".unpack").replace("deflate", "zlib")
            known_free = event in board.software.not_known or any(
                named.startswith(f"{one}.") for one in free
            )
            if occurs and not known_free:
                return None
            continue
        total += occurs * price
    return total
