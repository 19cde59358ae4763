"""What a board's profile takes from elsewhere: a chip of the catalogue, prices of another board.

`[chip]` may name a `part` instead of numbers, driven by `[controller]`, and `[software]` may name a
board that it is `like`. Both are written out here, before the profile is checked as a whole, so
that nothing else knows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.base.toml import Strict, read_model
from flashbed.stack.changes import ChipChange
from flashbed.stack.chips import CatalogueChip, ChipError
from flashbed.stack.fitted_chip import Controller, FittedChip, fitted
from flashbed.stack.names import Name, Text

__all__ = ["Expanded", "expanded"]


@dataclass(frozen=True)
class Expanded:
    """The tables of a profile, written out."""

    values: dict[str, Any]
    fit: FittedChip | None = None
    like: str | None = None
    """The board whose prices it has."""


class _NamedChip(ChipChange):
    source: Text | None = None


class _Driven(Strict):
    chip: _NamedChip
    controller: Controller = Controller()


class _LikeTable(Strict):
    """`[software]` that names a board; its other keys are the profile's own."""

    like: Name
    like_permille: Annotated[int, Field(gt=0, le=100_000)] = 1_000
    sched_clock_ns: int = 1
    pointer_bytes: int


class _Borrowing(Strict):
    software: _LikeTable


def expanded(
    values: Mapping[str, Any],
    path: Path,
    *,
    chip: Callable[[str], CatalogueChip],
    prices: Callable[[str, int, int], dict[str, Any]],
) -> Expanded:
    """Writes out what a profile names. Raises `InputError`.

    `prices` has those of a board, for a clock in MHz and in thousandths of what the clocks make.
    """
    tables, fit, like = dict(values), None, None
    software = tables.get("software")
    if isinstance(software, dict) and "like" in software:
        found = read_model(_Borrowing, {"software": software}, path, InputError).software
        like = found.like
        own = {"sched_clock_ns": found.sched_clock_ns, "pointer_bytes": found.pointer_bytes}
        tables["software"] = prices(like, _clock(tables, path), found.like_permille) | own
    named = tables.get("chip")
    if isinstance(named, dict) and "part" in named:
        driven = {"chip": named, "controller": tables.pop("controller", {})}
        asked = read_model(_Driven, driven, path, InputError)
        given = {
            key: value for key, value in asked.chip.values.items() if key not in ("part", "source")
        }
        part = chip(str(asked.chip.part))
        tables.pop("chip")
        try:
            tables, fit = fitted(
                tables, part, corner="typical", controller=asked.controller, given=given
            )
        except ChipError as why:
            raise ChipError(f"{shown(path)}: chip.part = {part.name!r}: {why}") from None
        tables = {name: table for name, table in tables.items() if table is not None}
    return Expanded(tables, fit, like)


def _clock(tables: Mapping[str, Any], path: Path) -> int:
    facts = tables.get("board")
    mhz = facts.get("cpu_mhz") if isinstance(facts, dict) else None
    if not isinstance(mhz, int) or mhz <= 0:
        raise InputError(
            f"{shown(path)}: board.cpu_mhz is missing; software.like scales prices by the clock"
        )
    return mhz
