"""Inputs of a lifetime: durations, rates of a workload, endurance of a block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flashbed._sim import own_pace
from flashbed.answers.lifetimes.estimate import DAY_S
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import Board

if TYPE_CHECKING:
    from flashbed.answers.lifetimes.subject import Subject

__all__ = [
    "UPDATE",
    "blocks_filled",
    "cycles_of",
    "duration_s",
    "early_erases",
    "endurance_of",
    "rate_per_day",
    "rounds_per_day",
    "time_text",
    "with_rate",
]

UPDATE = "update:"
"""Of a word that names a volume's update (volume_update.py), not a program."""
_SECONDS = {
    "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "day": 86_400.0, "w": 604_800.0,
    "week": 604_800.0, "mo": 2_629_800.0, "month": 2_629_800.0, "y": 31_557_600.0,
    "year": 31_557_600.0,
}  # fmt: skip
_UNITS = "s, min, h, d, w, mo or y"
_AMOUNT = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_RATE = rf"{_AMOUNT}/(?:{_AMOUNT}\s*)?([a-z]+)"
LONGER_SHARE = 0.02
"""A recording may be longer than its period by this, for a program's start and end."""


def duration_s(text: str, option: str) -> float:
    """`3y`, `18 months`, `30d` in seconds. Raises `InputError`."""
    match = re.fullmatch(rf"{_AMOUNT}\s*([a-z]+?)s?", text.strip())
    if not match or match[2] not in _SECONDS or float(match[1]) <= 0:
        raise InputError(f"{option} {text}: must be a time above 0 with a unit of {_UNITS}, as 3y")
    return float(match[1]) * _SECONDS[match[2]]


def rate_per_day(text: str) -> float:
    """`1/min`, `10/h`, `1/5min` as rounds a day. Raises `InputError`."""
    match = re.fullmatch(_RATE, text.strip())
    if not match or match[3] not in _SECONDS:
        raise InputError(f"--rate {text}: N/UNIT with a unit of {_UNITS}, as in 1/min")
    often, period = float(match[1]), float(match[2] or 1)
    if often <= 0 or period <= 0:
        raise InputError(f"--rate {text}: has to be above 0")
    return often * 86_400.0 / (period * _SECONDS[match[3]])


def with_rate(word: str) -> tuple[str, str | None]:
    """`day.rec@1/d` as a program and its rate; the rate is None where none stands there."""
    match = re.fullmatch(rf"(.+)@({_RATE})", word, re.DOTALL)
    return (match[1], match[2]) if match else (word, None)


def rounds_per_day(
    given: float | None, seconds: float | None, busy_s: float | None, name: str
) -> float | None:
    """How often a round runs: as given, or one after the other if it has a pace of its own.

    `busy_s` is the part of its `seconds` in which it did not sleep. None if neither is known.
    Raises `InputError` for a rate that the round is too long for.
    """
    if given is None:
        return None if seconds is None or busy_s is None else own_pace(seconds, busy_s)
    if seconds is not None and seconds * given > DAY_S * (1 + LONGER_SHARE):
        raise InputError(
            f"{name}: a run takes {time_text(seconds)} and cannot begin every"
            f" {time_text(DAY_S / given)}: give a lower rate"
        )
    return given


def early_erases(fs: str | None, erases: int) -> float:
    """Those among a run's erases whose blocks may not have been full; see `Observed`.

    JFFS2 fills a block before it erases it. UBIFS frees its log's LEBs at every commit, YAFFS2 the
    blocks of its last checkpoint.
    """
    row = FILE_SYSTEMS.get(fs or "")
    return 0.0 if row is not None and row.fills_blocks else float(erases)


def blocks_filled(board: Board, programs: float, programmed_bytes: float | None) -> float:
    """Blocks that were filled. NAND programs whole pages, NOR any part of one.

    `programmed_bytes` is None where they are not known; a page then counts as whole.
    """
    chip = board.chip
    if board.nor is None or programmed_bytes is None:
        return programs / chip.pages_per_block
    return programmed_bytes / (chip.block_bytes)


def time_text(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for unit, length in (("days", DAY_S), ("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds * 1000:,.0f} ms"


def endurance_of(subject: Subject, given: int | None) -> tuple[int, str]:
    """Erases a block endures, and the source of the number. Raises `InputError`."""
    if given is not None:
        return given, f"{given:,} erases (--endurance)"
    board = subject.board
    if board is None:
        raise InputError("--endurance N or --board NAME: how often may a block be erased?")
    return cycles_of(board)


def cycles_of(board: Board) -> tuple[int, str]:
    """Endurance and source in the board's profile. Raises `InputError`."""
    if board.endurance is None:
        lacking = board.path if board.fit is None else board.fit.part.path
        raise InputError(f"{shown(lacking)}: has no [endurance]; use --endurance N")
    return board.endurance.cycles, f"{board.endurance.cycles:,} erases ({board.endurance.source})"
