"""Whether the rows of a table are what a run can have written: tables may be a stranger's.

Columns that say which case a row is of are known, counts and times are not negative, and a sum of
many of them still fits. Unknown is null, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["NUMBER_MAX", "implausible"]

NUMBER_MAX = 1 << 53
"""A hundred days in nanoseconds, 8 PiB."""
_SIGNED = {"result"}
"""Columns with errors of the kernel in them, below 0."""
_ANY = {"seed"}
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "cases": ("board", "kernel", "fs", "pattern", "requests"),
    "requests": ("op",),
    "flash": ("kind",),
    "wear": ("block",),
    "not_measured": ("reason",),
    "power_cuts": ("change", "verdict"),
}
"""Columns besides the key that are never null."""
_KEY = ("case_id", "target")


def implausible(rows: pl.DataFrame | pl.LazyFrame, table: str) -> str | None:
    """The first column in which there is what cannot be, and what; None if there is none."""
    schema = rows.lazy().collect_schema()
    odd = [
        *(pl.col(name).is_null().any().alias(f"{name}: null")
          for name in (*_KEY, *_KNOWN.get(table, ())) if name in schema),
        *(_beyond(name).alias(f"{name}: beyond what can be")
          for name, kind in schema.items() if kind == pl.Int64 and name not in _ANY),
        *((~pl.col(name).is_finite()).any().alias(f"{name}: no number")
          for name, kind in schema.items() if kind == pl.Float64),
    ]  # fmt: skip
    if table == "cases":
        odd.append(pl.struct(_KEY).is_duplicated().any().alias("case_id: twice"))
    found = rows.lazy().select(odd).collect(engine="streaming").to_dicts()[0]
    return next((what for what, wrong in found.items() if wrong), None)


def _beyond(name: str) -> pl.Expr:
    least = -NUMBER_MAX if name in _SIGNED else 0
    return ((pl.col(name) < least) | (pl.col(name) > NUMBER_MAX)).any()
