"""Judges a run directory's claims: reads its tables, makes points of them, compares.

What a report shows in addition to the verdicts comes from report/collect.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flashbed.answers.analysis import (
    Verdict,
    WithoutSeed,
    aged,
    extremes,
    file_reads,
    judge,
    measures,
    rates,
    requests_of_cases,
    statement_points,
    throughput_of_cases,
    waits_of_cases,
    with_board,
)
from flashbed.answers.analysis.points import table_of
from flashbed.plan.case import AXIS_COLUMNS
from flashbed.plan.experiment import Experiment, read_experiment
from flashbed.results.run_directory import CHIP_ALONE, empty_table, read_table, scan_table

__all__ = ["JudgedRun", "judged_run", "points_of", "traced"]

_BUT_SEED = [axis for axis in AXIS_COLUMNS if axis != "seed"]


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """An experiment with its results, as points and as verdicts."""

    experiment: Experiment
    cases: pl.DataFrame
    """Verdicts, without the targets that the experiment only compares user-mode Linux with."""
    requests: pl.LazyFrame
    flash: pl.LazyFrame | None
    """Every flash operation; None if the run did not record them."""
    tables: dict[str, pl.DataFrame]
    """Points by table (answers/analysis/points.py), those that a figure or claim needs."""
    verdicts: list[Verdict]


def judged_run(directory: Path, experiment: Experiment | None = None) -> JudgedRun:
    """Reads a run directory and judges its claims, or those of today's `experiment`.

    Raises `InputError` if it has no cases.
    """
    every = read_table(directory, "cases")
    cases = every.filter(pl.col("target") != CHIP_ALONE)
    experiment = with_board(experiment or read_experiment(directory / "experiment.toml"), cases)
    if not experiment.metrics and not experiment.finding:
        return JudgedRun(
            experiment=experiment,
            cases=cases,
            requests=empty_table("requests").lazy(),
            flash=None,
            tables={},
            verdicts=[],
        )
    omitted = "requests" in experiment.experiment.omit
    requests = empty_table("requests").lazy() if omitted else scan_table(directory, "requests")
    flash = traced(directory)
    wanted = {table_of(metric) for metric in experiment.metrics}
    folded = _Folded.of(experiment, cases, requests, wanted)
    tables = points_of(
        experiment, cases, requests=requests, flash=flash, wanted=wanted, folded=folded
    )
    without = _without_seeds(experiment, cases, requests=requests, flash=flash, folded=folded)
    verdicts = judge(experiment, tables, without)
    return JudgedRun(
        experiment=experiment,
        cases=cases,
        requests=requests,
        flash=flash,
        tables=tables,
        verdicts=verdicts,
    )


def _without_seeds(
    experiment: Experiment,
    cases: pl.DataFrame,
    *,
    requests: pl.LazyFrame,
    flash: pl.LazyFrame | None,
    folded: _Folded,
) -> list[WithoutSeed]:
    """For each seed, the points of all other seeds; only of cases that ran with several."""
    if not experiment.claim:
        return []
    several = cases.with_columns(
        (pl.col("seed").n_unique().over(["target", *_BUT_SEED]) > 1).alias("several")
    )
    wanted = {table_of(claim.metric) for claim in experiment.claim}
    found = []
    for seed in several.filter("several")["seed"].unique().sort():
        left = (pl.col("seed") != seed) | ~pl.col("several")
        targets = frozenset(several.filter(~left)["target"].unique().to_list())
        kept = several.filter(left).drop("several")
        points = points_of(
            experiment, kept, requests=requests, flash=flash, wanted=wanted, folded=folded
        )
        found.append(WithoutSeed(targets, points))
    return found


@dataclass(frozen=True)
class _Folded:
    """What rates, savings and file reads need of requests: computed once for all seeds."""

    requests: pl.DataFrame | None = None
    waits: pl.DataFrame | None = None
    throughput: pl.DataFrame | None = None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        cases: pl.DataFrame,
        requests: pl.DataFrame | pl.LazyFrame,
        wanted: Collection[str],
    ) -> _Folded:
        measured = experiment.measures if "savings" in wanted else None
        return cls(
            requests_of_cases(requests) if "rates" in wanted else None,
            waits_of_cases(cases, requests, measured.stall_ns) if measured else None,
            throughput_of_cases(requests) if "file-reads" in wanted else None,
        )


def points_of(
    experiment: Experiment,
    cases: pl.DataFrame,
    *,
    requests: pl.DataFrame | pl.LazyFrame,
    flash: pl.DataFrame | pl.LazyFrame | None,
    wanted: Collection[str],
    folded: _Folded | None = None,
) -> dict[str, pl.DataFrame]:
    """Tables of points (answers/analysis/points.py) of these cases and their trace."""
    folded = folded or _Folded()
    tables = {}
    if "savings" in wanted and experiment.measures is not None:
        stall_ns = experiment.measures.stall_ns
        tables["savings"] = measures(cases, requests, stall_ns, folded.waits)
    if "rates" in wanted:
        tables["rates"] = rates(cases, requests, folded.requests)
    if "requests" in wanted:
        tables["requests"] = extremes(cases, requests, flash)
    if "file-reads" in wanted:
        tables["file-reads"] = file_reads(cases, requests, folded.throughput)
    if "statements" in wanted:
        tables["statements"] = statement_points(cases, requests)
    if "aged" in wanted:
        tables["aged"] = aged(cases)
    return tables


def traced(directory: Path) -> pl.LazyFrame | None:
    """Every flash operation of a run; None if the run did not record them."""
    there = (directory / "flash.parquet").is_file()
    return scan_table(directory, "flash") if there else None
