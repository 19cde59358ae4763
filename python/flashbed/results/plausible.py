"""Checks that a run can have written a table's rows: tables may come from strangers.

Columns that identify a row's case must be known. Counts and times must not be negative, and small
enough that a sum of many still fits. Unknown is null, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["NUMBER_MAX", "TIME_MAX_NS", "implausible"]

NUMBER_MAX = 1 << 53
"""8 PiB in bytes."""
TIME_MAX_NS = 10**18
"""31 years: the longest run that the simulator does. A program that sleeps and runs until free
space is used up takes years."""
_SIGNED = {"result"}
"""Columns that hold negative errno values."""
_ANY = {"seed"}
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "cases": ("board", "kernel", "fs", "pattern", "requests"),
    "requests": ("op",),
    "flash": ("kind",),
    "wear": ("block",),
    "not_measured": ("reason",),
    "power_cuts": ("change", "verdict"),
    "cut_files": ("change", "file", "state"),
}
"""Columns besides the key that are never null."""
_TEXT_BYTES = {"target": 64, "case_id": 1 << 15, "experiment": 256, "op": 256, "board": 256,
               "kernel": 256, "fs": 256, "pattern": 256, "window": 256, "advice": 256}  # fmt: skip
"""Bounds of texts that pages show: each is a name, and a figure's time grows with its length."""
_KEY = ("case_id", "target")
_TWICE = "case_id: twice"


def implausible(rows: pl.DataFrame | pl.LazyFrame, table: str) -> str | None:
    """The first column with an impossible value, and which; None if there is none."""
    schema = rows.lazy().collect_schema()
    odd = [
        *(pl.col(name).is_null().any().alias(f"{name}: null")
          for name in (*_KEY, *_KNOWN.get(table, ())) if name in schema),
        *(_beyond(name).alias(f"{name}: out of range")
          for name, kind in schema.items() if kind == pl.Int64 and name not in _ANY),
        *((pl.col(name).str.len_bytes() > most).any().alias(f"{name}: longer than {most:,} bytes")
          for name, most in _TEXT_BYTES.items() if name in schema),
        *((~pl.col(name).is_finite()).any().alias(f"{name}: not a number")
          for name, kind in schema.items() if kind == pl.Float64),
    ]  # fmt: skip
    if table == "cases":
        odd.append(pl.struct(_KEY).hash().is_duplicated().any().alias(_TWICE))
    found = rows.lazy().select(odd).collect(engine="streaming").to_dicts()[0]
    if found.get(_TWICE):  # or two names with one hash
        exact = rows.lazy().select(pl.struct(_KEY).is_duplicated().any())
        found[_TWICE] = exact.collect(engine="streaming").item()
    return next((what for what, wrong in found.items() if wrong), None)


def _beyond(name: str) -> pl.Expr:
    least = -NUMBER_MAX if name in _SIGNED else 0
    most = TIME_MAX_NS if name.endswith("_ns") else NUMBER_MAX
    return ((pl.col(name) < least) | (pl.col(name) > most)).any()
