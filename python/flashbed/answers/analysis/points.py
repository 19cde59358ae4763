"""Points: rows that figures draw and claims judge, each a metric's values at a place on the axes.

Six tables have them: `savings` (measures.py), `rates` and `requests` (rates.py), `file-reads`
(file_reads.py), `statements` (statements.py), `aged` (aged.py). A metric is a column of one of
them; so is an axis. An axis that a figure or claim does not choose has its default (`USUAL`,
`as_usual`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import get_args

import polars as pl

from flashbed.plan.case import AXES, CONDITIONS
from flashbed.plan.quantities import (
    AgedMetric,
    FileReadMetric,
    RequestExtreme,
    SavingMetric,
    StatementMetric,
)
from flashbed.stack.names import FORCED

__all__ = ["USUAL", "as_usual", "chosen", "table_of"]

USUAL: Mapping[str, str] = {"disabled_by": "kernel", "window": FORCED}
"""Axis -> the value that applies if a figure or claim names none."""
_OF_MACHINE = ["target", "board", "kernel", "fs", "pattern"]


def table_of(metric: str) -> str:
    """The table that has a metric."""
    tables = {
        "savings": SavingMetric,
        "requests": RequestExtreme,
        "file-reads": FileReadMetric,
        "statements": StatementMetric,
        "aged": AgedMetric,
    }
    return next((name for name, metrics in tables.items() if metric in get_args(metrics)), "rates")


def as_usual(points: pl.DataFrame, named: Collection[str]) -> pl.DataFrame:
    """The points with one value of each condition (plan/case.py) that is not in `named`.

    That value is the default, such as a new partition of a chip that does not fail. A machine, file
    system and pattern without such a case takes its first value instead.
    """
    for axis in CONDITIONS:
        if axis in named or axis not in points.columns or not _varies(points[axis]):
            continue
        value, usual = pl.col(axis), AXES[axis].cell(AXES[axis].usual)
        there = (value == usual).any().over(_OF_MACHINE)
        first = value.first().over(_OF_MACHINE)
        points = points.filter(value == pl.when(there).then(pl.lit(usual)).otherwise(first))
    return points


def _varies(column: pl.Series) -> bool:
    """Whether a filter can drop rows. Most axes of a table have one value, and a filter is dear."""
    return column.n_unique() > 1 or column.null_count() > 0


def chosen(
    points: pl.DataFrame, metric: str, only: Mapping[str, Sequence[object]], drawn: Sequence[str]
) -> pl.DataFrame:
    """The points a figure draws, with `stack`, `value`, `low` and `high`; known ones only.

    `only` keeps these values of an axis; all values of the axes in `drawn` stay. `low` and `high`
    are one standard deviation over seeds from the mean, the mean if that is unknown.
    """
    kept = as_usual(points.filter(pl.col(metric).is_not_null()), {*only, *drawn})
    for axis in reversed(list(only)):  # sorts last by the last axis, so the first named leads
        named = pl.Series(only[axis]).cast(kept.schema[axis])
        place = pl.col(axis).replace_strict(named, range(len(named)), default=len(named))
        kept = kept.sort(place, maintain_order=True)
    usual = {axis: (value,) for axis, value in USUAL.items() if axis in points.columns}
    for axis, values in (usual | dict(only)).items():
        if axis in only or axis not in drawn:
            named = pl.Series(values).cast(kept.schema[axis])  # pauses are integers in experiments
            kept = kept.filter(pl.col(axis).is_in(named.implode()))
    spread = (
        pl.col(f"{metric}_sd").fill_null(0.0) if f"{metric}_sd" in kept.columns else pl.lit(0.0)
    )
    how = pl.col("target").replace_strict(
        {"sim": "simulated"}, default=pl.format("real ({})", "target"), return_dtype=pl.String
    )
    return kept.with_columns(
        pl.format("Linux {} {}, {}", "kernel", how, "board").alias("stack"),
        pl.col(metric).alias("value"),
        (pl.col(metric) - spread).alias("low"),
        (pl.col(metric) + spread).alias("high"),
    )
