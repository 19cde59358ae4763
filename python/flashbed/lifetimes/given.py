"""Inputs of a lifetime: durations, rates of a workload, endurance of a block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flashbed.errors import InputError
from flashbed.formats.profiles import Board
from flashbed.paths import shown

if TYPE_CHECKING:
    from flashbed.lifetimes.subject import Subject

__all__ = ["cycles_of", "duration_s", "endurance_of", "rate_per_day"]

_SECONDS = {
    "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "day": 86_400.0, "w": 604_800.0,
    "week": 604_800.0, "mo": 2_629_800.0, "month": 2_629_800.0, "y": 31_557_600.0,
    "year": 31_557_600.0,
}  # fmt: skip
_UNITS = "s, min, h, d, w, mo or y"
_AMOUNT = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"


def duration_s(text: str, option: str) -> float:
    """`3y`, `18 months`, `30d` in seconds. Raises `InputError`."""
    match = re.fullmatch(rf"{_AMOUNT}\s*([a-z]+?)s?", text.strip())
    if not match or match[2] not in _SECONDS or float(match[1]) <= 0:
        raise InputError(f"{option} {text}: must be a time above 0 with a unit of {_UNITS}, as 3y")
    return float(match[1]) * _SECONDS[match[2]]


def rate_per_day(text: str) -> float:
    """`1/min`, `10/h`, `1/5min` as rounds a day. Raises `InputError`."""
    match = re.fullmatch(rf"{_AMOUNT}/(?:{_AMOUNT}\s*)?([a-z]+)", text.strip())
    if not match or match[3] not in _SECONDS:
        raise InputError(f"--repeat {text}: N/UNIT with a unit of {_UNITS}, as in 1/min")
    often, period = float(match[1]), float(match[2] or 1)
    if often <= 0 or period <= 0:
        raise InputError(f"--repeat {text}: has to be above 0")
    return often * 86_400.0 / (period * _SECONDS[match[3]])


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
        raise InputError(f"{shown(board.path)}: has no [endurance]; use --endurance")
    return board.endurance.cycles, f"{board.endurance.cycles:,} erases ({board.endurance.source})"
