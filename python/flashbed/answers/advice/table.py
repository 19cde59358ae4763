"""The table of advice: a row for each choice of the front, and for how it is now."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from flashbed.answers.advice.front import Rows
from flashbed.answers.advice.settings import Combination
from flashbed.answers.analysis.compared_choices import MEASURES

__all__ = ["front_table"]

_SHOWN_IF_KNOWN = ("failed", "left_in_cache", "years_low", "years_high", "energy_nj")


def front_table(
    front: Sequence[Combination], rows: Rows, *, advised: Combination, now: Combination,
    measure: str,
) -> pl.DataFrame:  # fmt: skip
    """`configuration`, and the measures that are known; the chip's time only where the time is not.

    Bytes left are one where they are the goal's `measure`.
    """
    marks = {advised: "take ", now: "now "}
    marks |= {advised: "take, now "} if advised == now else {}
    names = [f"{marks.get(choice, '')}{choice.label}" for choice in front]
    found: dict[str, list[object]] = {"configuration": [*names]}
    kept = [rows[choice] for choice in front]
    unsaid = {"left_bytes"} - {measure}
    timed = any(row["time_ns"] is not None for row in kept)
    for name in MEASURES:
        values = [row[name] for row in kept]
        known = set(values) - ({None, 0} if name in _SHOWN_IF_KNOWN else {None})
        if known and name not in unsaid and not (name == "flash_time_ns" and timed):
            found[name] = values
    return pl.DataFrame(found)
