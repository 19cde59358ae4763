"""Savings and waits, a row for each point of an experiment, seeds taken together.

A point is target, board, kernel, fs, pattern, number and size of requests, pause and conditions of
the case (plan/case.py), how read-ahead was disabled and what it was before. Savings compare the run
without read-ahead to the run with it, per seed, and are then averaged, so each seed weighs the
same. A metric uses one energy convention (docs/models/energy.md) and is null where a case's energy
is unknown.
"""

from __future__ import annotations

import polars as pl

from flashbed.answers.energy.fold import COMPONENTS, RAILS
from flashbed.plan.case import CONDITIONS
from flashbed.stack.names import FORCED

__all__ = [
    "COMPONENT_NJ",
    "PAUSE_MS",
    "POINT",
    "RAIL_NJ",
    "SAVING_POINT",
    "curves",
    "measures",
    "savings",
    "waits_of_cases",
]

POINT = ["target", "board", "kernel", "fs", "pattern", "requests"]
"""Initial state and failures of a case, by name."""
_CASE = [*POINT, "request_bytes", "file_bytes", "pause_ns", *CONDITIONS]
SAVING_POINT = [*_CASE, "disabled_by", "window"]
PAUSE_MS = (pl.col("pause_ns") / 1e6).alias("pause_ms")

COMPONENT_NJ = pl.sum_horizontal(*COMPONENTS, ignore_nulls=False)
"""The energy of a case in convention `component`; null if any part is unknown."""
RAIL_NJ = {rail: pl.sum_horizontal(*columns, ignore_nulls=False) for rail, columns in RAILS.items()}
"""Rail of the board (`RAILS` of energy/fold.py) -> its part of that; null if any is unknown."""
_SAVED = {
    "time_saved_pct": "time_ns",
    "flash_reads_saved_pct": "flash_reads",
    "energy_saved_pct": "energy_nj",
    "component_energy_saved_pct": "component_nj",
    "component_cpu_saved_pct": "component_cpu_nj",
    "component_mem_saved_pct": "component_mem_nj",
}


def savings(cases: pl.DataFrame) -> pl.DataFrame:
    """What disabling read-ahead saves, in percent of the run with it.

    Columns: the point; what is saved of time, flash reads, energy, energy by component and by rail
    (mean over seeds); their standard deviations over seeds (`_sd`, null for one seed); `seeds`; how
    far the energy saved is from the time saved, in points, in either convention. A run without its
    partner (with or without read-ahead) is left out. Source: read-ahead paper,
    Figures 3 and 4.

    `disabled_by` is `kernel` (read_ahead_kib is 0) or `fadvise` (POSIX_FADV_RANDOM). `window` is
    `forced` for a window that was set, or `default` for the kernel's own, which counts as a case of
    its own even if it is 0.
    """
    summed = cases.with_columns(
        COMPONENT_NJ.alias("component_nj"),
        *(energy.alias(f"component_{rail}_nj") for rail, energy in RAIL_NJ.items()),
    )
    plain = summed.filter(pl.col("advice") == "none")
    forced = pl.col("window") == FORCED
    off = plain.filter(forced, pl.col("read_ahead_kib") == 0)
    on = plain.filter(~forced | (pl.col("read_ahead_kib") > 0))
    advised = summed.filter(pl.col("advice") == "random")
    pair = [*_CASE, "seed"]
    same = [*pair, "window", "read_ahead_kib"]
    compared = [
        _saved(on.join(off, on=pair, suffix="_off"), "kernel"),
        _saved(on.join(advised, on=same, suffix="_off"), "fadvise"),
    ]
    return pl.concat(compared).with_columns(
        PAUSE_MS,
        *(
            (pl.col(f"{energy}_saved_pct") - pl.col("time_saved_pct"))
            .abs()
            .alias(f"{energy}_apart_points")
            for energy in ("energy", "component_energy")
        ),
    )


def _saved(pairs: pl.DataFrame, disabled_by: str) -> pl.DataFrame:
    saved = [_saved_pct(column).alias(name) for name, column in _SAVED.items()]
    return (
        pairs.with_columns(pl.lit(disabled_by).alias("disabled_by"), *saved)
        .group_by(SAVING_POINT, maintain_order=True)
        .agg(
            pl.col(*_SAVED).mean(),
            *(pl.col(name).std().alias(f"{name}_sd") for name in _SAVED),
            pl.len().cast(pl.Int64).alias("seeds"),
        )
    )


def _saved_pct(column: str) -> pl.Expr:
    """The saving in percent; 0 if the run with read-ahead counts 0."""
    on, off = pl.col(column), pl.col(f"{column}_off")
    return pl.when(on == 0).then(0.0).otherwise((on - off) / on * 100)


def waits_of_cases(
    cases: pl.DataFrame, requests: pl.DataFrame | pl.LazyFrame, stall_ns: int
) -> pl.DataFrame:
    """Per case with read-ahead on: cache_hit_pct, prefetch_kib and flash_reads_per_stall.

    A request that took chip time read the chip; where chip time is unknown, one slower than
    `stall_ns` did. `prefetch_kib` of sequential requests is the distance in the file between two
    that read the chip: its median over a case, mean over seeds. `flash_reads_per_stall` is the
    case's flash reads per request that read the chip.
    """
    forced = pl.col("window") == FORCED
    on = cases.filter(forced, pl.col("read_ahead_kib") > 0, pl.col("advice") == "none")
    on = on.select("case_id", "flash_reads", *_CASE)
    reads = (
        requests.lazy()
        .filter(pl.col("op") == "read")
        .join(on.lazy(), on=["case_id", "target"], maintain_order="left")
    )
    stalled = pl.coalesce(pl.col("flash_time_ns") > 0, pl.col("latency_ns") >= stall_ns)
    distance_bytes = pl.col("offset_bytes").filter(stalled).diff().drop_nulls()
    per_case = reads.group_by("case_id", *_CASE, maintain_order=True).agg(
        ((~stalled).mean() * 100).alias("cache_hit_pct"),
        (distance_bytes.median() / 1024).alias("prefetch_kib"),
        pl.when(stalled.any())
        .then(pl.col("flash_reads").first() / stalled.sum())
        .alias("flash_reads_per_stall"),
    )
    return per_case.collect()


def _waits(per_case: pl.DataFrame) -> pl.DataFrame:
    """Means of cases over seeds."""
    sequential = pl.col("pattern") == "sequential"
    return (
        per_case.group_by(_CASE, maintain_order=True)
        .agg(pl.col("cache_hit_pct", "prefetch_kib", "flash_reads_per_stall").mean())
        .with_columns(pl.when(sequential).then("prefetch_kib").alias("prefetch_kib"))
    )


def measures(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    stall_ns: int,
    waits: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Savings and waits (null where they do not apply) of every point.

    `waits` is `waits_of_cases` of at least these cases, if it has been computed already.
    """
    waits = waits_of_cases(cases, requests, stall_ns) if waits is None else waits
    own = waits.join(cases, on=["case_id", "target"], how="semi", maintain_order="left")
    forced = [pl.lit("kernel").alias("disabled_by"), pl.lit(FORCED).alias("window")]
    means = _waits(own).with_columns(forced)
    return savings(cases).join(means, on=SAVING_POINT, how="left", maintain_order="left")


def curves(measured: pl.DataFrame, metric: str) -> pl.DataFrame:
    """A metric as a figure draws it: fs, pattern, requests, stack, target, value, low, high, seeds.

    `stack` names the kernel, `simulated` or `real`, and the board. Points with an unknown metric
    are left out. `low` and `high` are one standard deviation over seeds from the mean, the mean
    itself for one seed.
    """
    how = pl.col("target").replace_strict(
        {"sim": "simulated"}, default=pl.format("real ({})", "target")
    )
    spread = pl.col(f"{metric}_sd").fill_null(0.0)
    usual = measured.filter(pl.col("disabled_by") == "kernel", pl.col("window") == FORCED)
    return usual.filter(pl.col(metric).is_not_null()).select(
        "fs",
        "pattern",
        "requests",
        pl.format("Linux {} {}, {}", "kernel", how, "board").alias("stack"),
        "target",
        pl.col(metric).alias("value"),
        (pl.col(metric) - spread).alias("low"),
        (pl.col(metric) + spread).alias("high"),
        "seeds",
    )
