"""Whether a database's transactions kept their rate (plan/sqlite/pace.py)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["COLUMNS", "overdue"]

COLUMNS = ("case_id", "target", "database", "requests", "rounds", "elapsed_ns")
"""The columns of `cases` that are needed."""
_SHARE = 0.02
_LEAST_NS = 10**9
"""The program opens the database before its first transaction, and closes it after the last."""


def overdue(cases: pl.DataFrame, period_ns: Mapping[str, int]) -> str | None:
    """One line about the case that took longest for its rate; None if all kept it.

    `period_ns` is of the databases that have a rate. Kept is within 2 % or a second.
    """
    due_ns = pl.col("requests") * pl.col("database").replace_strict(
        period_ns, default=None, return_dtype=pl.Int64
    )
    late_ns = pl.col("elapsed_ns") - due_ns
    once = pl.col("rounds").fill_null("1") == "1"
    late = (
        cases.filter(once)
        .with_columns(due_ns.alias("due_ns"), (late_ns / due_ns).alias("share"))
        .filter(late_ns > _LEAST_NS, pl.col("share") > _SHARE)
    )
    if late.is_empty():
        return None
    worst = late.sort("share", descending=True, maintain_order=True).row(0, named=True)
    more = f", the furthest of {late.height} cases" if late.height > 1 else ""
    return (
        f"WARNING: {worst['requests']:,} transactions at this rate are due in"
        f" {worst['due_ns'] / 1e9:,.1f} s and took {worst['elapsed_ns'] / 1e9:,.1f} s on"
        f" {worst['target']}, {worst['case_id']}{more}: what is per day is of the slower rate"
    )
