"""Whether a replay took as long as the recorded program: rates a day follow from its time."""

from __future__ import annotations

import polars as pl

__all__ = ["COLUMNS", "other_time"]

COLUMNS = ("target", "fs", "pattern", "rounds", "elapsed_ns")
"""The columns of `cases` that are needed."""
_RECORDED = "recorded"
_SHARE = 0.1
_LEAST_NS = 10**9


def other_time(cases: pl.DataFrame, recorded_ns: int) -> str | None:
    """One line about the replay that is furthest from the recording's time; None if all are near.

    Near is within 10 % or a second. Replays without the program's pauses, or of several rounds, are
    not meant.
    """
    off = (pl.col("elapsed_ns") - recorded_ns).abs()
    once = pl.col("rounds").fill_null("1") == "1"
    far = cases.filter(
        pl.col("pattern") == _RECORDED, once, off > recorded_ns * _SHARE, off > _LEAST_NS
    ).sort(off, descending=True, maintain_order=True)
    if far.is_empty():
        return None
    worst = far.row(0, named=True)
    more = f", the furthest of {far.height} replays" if far.height > 1 else ""
    return (
        f"WARNING: the program took {recorded_ns / 1e9:,.1f} s when it was recorded, its replay"
        f" {worst['elapsed_ns'] / 1e9:,.1f} s on {worst['target']}, {worst['fs']}{more}: what is"
        " per day is of the replay"
    )
