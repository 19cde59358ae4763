"""A run directory's claims, judged: its tables are read, made points of, and compared.

What a report shows beside the verdicts is content.py's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flashbed.analysis import (
    Verdict,
    WithoutSeed,
    file_reads,
    judge,
    measures,
    rates,
    statement_points,
    with_board,
)
from flashbed.analysis.points import table_of
from flashbed.case import AXES
from flashbed.experiment import Experiment, read_experiment
from flashbed.profiles import KernelDefaults, ProfileError, load_kernel
from flashbed.tables import CHIP_ALONE, empty_table, read_table
from flashbed.toml_models import read_model, read_toml

__all__ = ["JudgedRun", "judged_run", "points_of"]

_BUT_SEED = [axis for axis in AXES if axis != "seed"]


@dataclass(frozen=True)
class JudgedRun:
    """An experiment with what was measured of it, as points and as verdicts."""

    directory: Path
    experiment: Experiment
    cases: pl.DataFrame
    """Without those that only stand beside user-mode Linux."""
    requests: pl.DataFrame
    tables: dict[str, pl.DataFrame]
    """Points by table (analysis/points.py), those that a figure or claim needs."""
    verdicts: list[Verdict]


def judged_run(directory: Path) -> JudgedRun:
    """Reads a run directory and judges its claims. Raises `InputError` if it has no cases."""
    every = read_table(directory, "cases")
    cases = every.filter(pl.col("target") != CHIP_ALONE)
    experiment = with_board(read_experiment(directory / "experiment.toml"), cases)
    if not experiment.metrics:
        return JudgedRun(directory, experiment, cases, empty_table("requests"), {}, [])
    omitted = "requests" in experiment.experiment.omit
    requests = empty_table("requests") if omitted else read_table(directory, "requests")
    wanted = {table_of(metric) for metric in experiment.metrics}
    tables = points_of(experiment, cases, requests, directory, wanted)
    without = _without_seeds(experiment, cases, requests, directory)
    verdicts = judge(experiment, tables, without)
    return JudgedRun(directory, experiment, cases, requests, tables, verdicts)


def _without_seeds(
    experiment: Experiment, cases: pl.DataFrame, requests: pl.DataFrame, directory: Path
) -> list[WithoutSeed]:
    """The points without each seed, where there are others beside it."""
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
        points = points_of(experiment, kept, requests, directory, wanted)
        found.append(WithoutSeed(targets, points))
    return found


def points_of(
    experiment: Experiment,
    cases: pl.DataFrame,
    requests: pl.DataFrame,
    directory: Path,
    wanted: Collection[str],
) -> dict[str, pl.DataFrame]:
    """The wanted tables of points (analysis/points.py), of these cases."""
    tables = {}
    if "savings" in wanted and experiment.measures is not None:
        shipped = _shipped_kib(directory, cases)
        tables["savings"] = measures(cases, requests, experiment.measures.stall_ns, shipped)
    if "rates" in wanted:
        tables["rates"] = rates(cases, requests)
    if "file-reads" in wanted:
        tables["file-reads"] = file_reads(cases, requests)
    if "statements" in wanted:
        tables["statements"] = statement_points(cases, requests)
    return tables


def _shipped_kib(directory: Path, cases: pl.DataFrame) -> pl.DataFrame:
    """kernel, fs, shipped_kib: the window that a kernel has unless told otherwise."""
    rows = []
    for name in cases["kernel"].unique(maintain_order=True):
        defaults = _defaults(directory, name)
        rows += [
            {"kernel": name, "fs": fs, "shipped_kib": getattr(defaults, f"{fs}_read_ahead_kib")}
            for fs in ("jffs2", "yaffs2", "ubifs")
        ]
    return pl.DataFrame(
        rows, schema={"kernel": pl.String, "fs": pl.String, "shipped_kib": pl.Int64}
    )


def _defaults(directory: Path, kernel: str) -> KernelDefaults:
    """Of the profile that is kept with a run, or the project's. Raises `InputError`."""
    kept = directory / "profiles" / f"kernel-{kernel}.toml"
    if not kept.is_file():
        return load_kernel(kernel).defaults
    table = read_toml(kept, ProfileError).get("defaults", {})
    return read_model(KernelDefaults, table, kept, ProfileError)
