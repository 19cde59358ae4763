"""Results of SQL statements, put together from the operations in `requests`.

A statement ends with its `compute` (plan/sqlite/recorder.py). Where SQLite ran on the board, it is
one `sql`, and the row before it opens the database. What a target does not know is null.
"""

from __future__ import annotations

import polars as pl

from flashbed.answers.analysis.agreement import error_pct
from flashbed.answers.analysis.measures import PAUSE_MS
from flashbed.answers.analysis.rates import RATE_POINT
from flashbed.results.run_directory import CHIP_ALONE

__all__ = ["STATEMENT_POINT", "statement_agreement", "statement_points", "statements"]

STATEMENT_POINT = [*RATE_POINT, "statement"]
_MS = 1e6

_CASE = ("case_id", "target")


def statements(requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """A row for each statement, in order: case_id, target, statement, latency and flash time in ns.

    `statement` counts from 0, which is BEGIN in the SQLite study and includes opening the database.
    Operations after the last statement, which close it, belong to none. `reads`, `writes` and
    `syncs` are its system calls; null where SQLite ran on the board. Pauses belong to none.
    """
    ended = pl.col("op").is_in(("compute", "sql")).cast(pl.Int64)
    columns = (*_CASE, "seq", "op", "latency_ns", "flash_time_ns")
    paused = pl.col("op") == "pause"
    wanted = requests.lazy().select(columns).filter(~paused).collect(engine="streaming")
    numbered = wanted.sort(*_CASE, "seq", maintain_order=True).with_columns(
        ended.cum_sum().over(_CASE).sub(ended).alias("statement"),
        ended.sum().over(_CASE).alias("count"),
    )
    calls = {"reads": ("read",), "writes": ("write",), "syncs": ("fsync", "fdatasync")}
    return (
        numbered.filter(pl.col("statement") < pl.col("count"))
        .group_by(*_CASE, "statement", maintain_order=True)
        .agg(
            _known_sum("latency_ns"),
            _known_sum("flash_time_ns"),
            *(_count_of(ops).alias(name) for name, ops in calls.items()),
        )
    )


def statement_points(cases: pl.DataFrame, requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """A row for each statement of each point: the metrics of `StatementMetric`, and `seeds`."""
    placed = cases.join(statements(requests), on=_CASE, suffix="_of_it")
    return (
        placed.group_by(STATEMENT_POINT, maintain_order=True)
        .agg(
            (pl.col("latency_ns").mean() / _MS).alias("statement_ms"),
            (pl.col("flash_time_ns_of_it").mean() / _MS).alias("statement_flash_ms"),
            pl.col("writes").mean().alias("statement_writes"),
            pl.len().cast(pl.Int64).alias("seeds"),
        )
        .with_columns(PAUSE_MS)
    )


def _count_of(ops: tuple[str, ...]) -> pl.Expr:
    recorded = ~(pl.col("op") == "sql").any()
    return pl.when(recorded).then(pl.col("op").is_in(ops).sum().cast(pl.Int64))


def statement_agreement(cases: pl.DataFrame, requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Mean times of statements, simulated and real, where both are known.

    A row for each real target, file system, pattern and `part` (BEGIN, which is the first; request;
    END): `statements`, `sim_ms`, `real_ms`, and `error_pct`, the simulator's in percent.
    """
    found = statements(requests).filter(pl.col("latency_ns").is_not_null())
    last = pl.col("statement").max().over(_CASE)
    part = (
        pl.when(pl.col("statement") == 0)
        .then(pl.lit("BEGIN"))
        .when(pl.col("statement") == last)
        .then(pl.lit("END"))
        .otherwise(pl.lit("request"))
    )
    ms = (pl.col("latency_ns") / _MS).alias("real_ms")
    named = found.select(*_CASE, "statement", ms, part.alias("part"))
    sim = named.filter(target="sim").drop("target", "part").rename({"real_ms": "sim_ms"})
    real = named.filter(~pl.col("target").is_in(["sim", CHIP_ALONE]))
    axes = cases.select("case_id", "fs", "pattern").unique()
    return (
        real.join(sim, on=["case_id", "statement"], maintain_order="left")
        .join(axes, on="case_id", maintain_order="left")
        .group_by("target", "fs", "pattern", "part", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("statements"),
            pl.col("sim_ms", "real_ms").mean(),
        )
        .with_columns(error_pct(pl.col("sim_ms"), pl.col("real_ms")).alias("error_pct"))
    )


def _known_sum(column: str) -> pl.Expr:
    """A sum that is null if any part is unknown."""
    return pl.when(pl.col(column).is_not_null().all()).then(pl.col(column).sum()).alias(column)
