"""What a partition's state costs: each case compared with the same case on a new partition.

Points are those of rates.py; the partner has the same axes and seed, but state `new` and faults
`none`. Ratios are taken per seed and averaged. A ratio is null without a partner, where a target
does not know the count, and where the partner's count is 0.
"""

from __future__ import annotations

import polars as pl

from flashbed.answers.analysis.measures import PAUSE_MS
from flashbed.answers.analysis.rates import RATE_POINT
from flashbed.stack.conditions import NEW, NONE

__all__ = ["aged"]

_COUNTS = {
    "time_over_new": "time_ns",
    "flash_time_over_new": "flash_time_ns",
    "flash_reads_over_new": "flash_reads",
    "flash_programs_over_new": "flash_programs",
}
_PAIR = [*(axis for axis in RATE_POINT if axis not in ("state", "faults")), "seed"]


def aged(cases: pl.DataFrame) -> pl.DataFrame:
    """A row for each point: the metrics of `AgedMetric`, 1 on a new partition, and `seeds`."""
    new = cases.filter(state=str(NEW), faults=str(NONE))
    pairs = cases.join(
        new.select(*_PAIR, *(pl.col(count).alias(f"{count}_new") for count in _COUNTS.values())),
        on=_PAIR, how="left", maintain_order="left",
    )  # fmt: skip
    ratios = [_over_new(count).alias(metric) for metric, count in _COUNTS.items()]
    return (
        pairs.with_columns(*ratios)
        .group_by(RATE_POINT, maintain_order=True)
        .agg(pl.col(*_COUNTS).mean(), pl.len().cast(pl.Int64).alias("seeds"))
        .with_columns(PAUSE_MS)
    )


def _over_new(count: str) -> pl.Expr:
    new = pl.col(f"{count}_new")
    return pl.when(new > 0).then(pl.col(count) / new)
