"""What a report says of a run, taken from its tables: nothing is drawn or formatted here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from flashbed.analysis import Verdict, agreement, agreement_summary, curves, judge, measures
from flashbed.analysis.agreement import ERRORS
from flashbed.experiment import Experiment, Figure, read_experiment
from flashbed.tables import read_table

__all__ = ["BOUNDS_PCT", "Content", "agreement_errors", "collect", "figure_tables"]

BOUNDS_PCT = {"flash_reads_error_pct": 2.0, "time_error_pct": 10.0}
"""The agreement this project asks of itself, percent of the kernel's value."""

_MEASURES = {"flash_reads_error_pct": "flash reads", "time_error_pct": "time"}


@dataclass(frozen=True)
class Profile:
    """A profile that was used: its kind and name, the hash of its file, its text."""

    kind: str
    name: str
    sha256: str
    text: str


@dataclass(frozen=True)
class Content:
    """Everything a report says of one experiment."""

    experiment: Experiment
    cases: pl.DataFrame
    measured: pl.DataFrame
    verdicts: list[Verdict]
    agreement: pl.DataFrame
    agreement_summary: pl.DataFrame
    profiles: list[Profile]
    runs: list[dict[str, Any]]


def collect(directory: Path) -> Content:
    """Reads a run directory. Raises `InputError` if it is none or has no cases."""
    cases = read_table(directory, "cases")
    experiment = read_experiment(directory / "experiment.toml")
    requests = read_table(directory, "requests")
    measured = measures(cases, requests, experiment.measures.stall_ns)
    table = agreement(cases)
    return Content(
        experiment=experiment,
        cases=cases,
        measured=measured,
        verdicts=judge(experiment, measured),
        agreement=table,
        agreement_summary=agreement_summary(table),
        profiles=_profiles(directory, cases),
        runs=_runs(cases),
    )


def _profiles(directory: Path, cases: pl.DataFrame) -> list[Profile]:
    """The profiles named by the cases, with the text kept beside them."""
    found = []
    for kind in ("board", "kernel"):
        names = cases.select(kind, f"{kind}_sha256").unique(maintain_order=True)
        for name, sha256 in names.iter_rows():
            file = directory / "profiles" / f"{kind}-{name}.toml"
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            found.append(Profile(kind, name, sha256, text))
    return found


def _runs(cases: pl.DataFrame) -> list[dict[str, Any]]:
    """One row for each target, board and kernel: file systems, cases, seeds, version."""
    listed = [
        pl.col(column).unique().sort().cast(pl.String).str.join(", ").alias(column)
        for column in ("fs", "seed", "flashbed_version", "commit", "kernel_release")
    ]
    groups = cases.group_by("target", "board", "kernel", maintain_order=True)
    return groups.agg(*listed, pl.len().alias("cases")).to_dicts()


def figure_tables(content: Content, figure: Figure) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The curves of a figure, and what the paper states in words as points."""
    rows = [
        {
            "fs": fs,
            "pattern": point.pattern,
            "requests": point.requests,
            "value": point.value,
            "text": point.text,
            "target": "paper",
        }
        for point in figure.published
        for fs in point.fs
    ]
    columns = {"fs": pl.String, "pattern": pl.String, "requests": pl.Int64, "value": pl.Float64,
               "text": pl.String, "target": pl.String}  # fmt: skip
    measured = curves(content.measured, figure.metric)
    published = pl.DataFrame(rows, schema=columns)
    panels = measured.select("fs", "pattern").unique()
    return measured, published.join(panels, on=["fs", "pattern"], how="semi")


def agreement_errors(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The errors of the agreement table in long form, and the bounds they are held to."""
    wanted: Sequence[str] = [error for error in ERRORS if error in _MEASURES]
    errors = table.unpivot(
        wanted,
        index=["case_id", "fs", "pattern", "requests", "read_ahead_kib"],
        variable_name="measure",
        value_name="error_pct",
    ).with_columns(
        pl.col("measure").replace_strict(_MEASURES),
        pl.when(pl.col("read_ahead_kib") > 0)
        .then(pl.lit("on"))
        .otherwise(pl.lit("off"))
        .alias("read_ahead"),
    )
    bounds = pl.DataFrame(
        {
            "measure": [_MEASURES[error] for error in BOUNDS_PCT],
            "low": [-bound for bound in BOUNDS_PCT.values()],
            "high": list(BOUNDS_PCT.values()),
        }
    )
    return errors, bounds
