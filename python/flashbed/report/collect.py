"""Collects what a report says about a run from its tables; it draws and formats nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import polars as pl

from flashbed.answers.analysis import (
    Verdict,
    agreement,
    agreement_summary,
    curves,
    energy_gaps,
    energy_summary,
    per_request,
    power_points,
    rate_points,
    statement_agreement,
    wear_map,
    wear_summary,
)
from flashbed.answers.analysis.answer import Answer, answer
from flashbed.answers.analysis.points import as_usual, chosen, table_of
from flashbed.answers.lifetimes.observed import board_of_run, cases_of
from flashbed.base.files import read_text
from flashbed.bench.powercut.outcomes import cut_tables, summary
from flashbed.bench.validation.results_table import read_results, summaries, worst_cases
from flashbed.plan.case import AXIS_COLUMNS
from flashbed.plan.experiment import Experiment, read_experiment
from flashbed.plan.quantities import Figure, PowerMetric, RequestMetric, SavingMetric
from flashbed.report.again import run_again, validate_again
from flashbed.report.default_figures import default_figures
from flashbed.report.judged import JudgedRun, judged_run, traced
from flashbed.report.playground import LiveCase, live_cases
from flashbed.results.run_directory import CHIP_ALONE, read_table, scan_table
from flashbed.stack.changes import AS_PROFILED_WORDS
from flashbed.stack.energy import Energy
from flashbed.stack.names import is_name
from flashbed.stack.profiles import default_compressors

__all__ = [
    "BOUNDS_PCT",
    "MEASURES",
    "Content",
    "Validation",
    "WornCase",
    "agreement_errors",
    "collect",
    "collect_validation",
    "figure_tables",
]

BOUNDS_PCT = {"flash_reads_error_pct": 2.0, "time_error_pct": 10.0}
"""The agreement that this project aims at, in percent of the kernel's value."""

MEASURES = {
    "flash_reads_error_pct": "page reads",
    "flash_programs_error_pct": "page writes",
    "flash_erases_error_pct": "erases",
    "flash_time_error_pct": "chip busy",
    "time_error_pct": "time in calls",
}
"""Column of an error -> the quantity's name in the report."""


AGREEMENT_SHOWN = 25
"""Cases of simulator and kernel that a page lists, beginning with the largest errors."""
CONVENTIONS_DRAWN = {"power_mw": "paper", "component_power_mw": "component"}
"""Metric -> its energy convention."""


@dataclass(frozen=True)
class Profile:
    """A profile that was used: its kind, name and text, and the hash of its file."""

    kind: str
    name: str
    sha256: str | None
    text: str


@dataclass(frozen=True)
class WornCase:
    """A case whose wear was recorded: its row of `wear_summary`, its cells of `wear_map`.

    `a_byte_written` holds the bytes programmed and erased per byte that the program wrote.
    """

    figures: dict[str, Any]
    cells: pl.DataFrame
    a_byte_written: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a report says about one experiment."""

    experiment: Experiment
    judged: JudgedRun
    answer: Answer | None
    """The compared choices; None without cases."""
    declared: bool
    """Whether the experiment names its figures; the others are default ones."""
    cases: pl.DataFrame
    tables: dict[str, pl.DataFrame]
    """Points by table (answers/analysis/points.py), those that a figure or claim needs."""
    single: pl.DataFrame
    """Single requests, if a figure draws them."""
    power: dict[str, pl.DataFrame]
    """Power over time by metric, if a figure draws it."""
    energy: list[dict[str, Any]]
    """`energy_summary`."""
    energy_gaps: list[str]
    verdicts: list[Verdict]
    agreement: pl.DataFrame
    agreement_summary: pl.DataFrame
    statements: list[dict[str, Any]]
    """`statement_agreement`, for experiments with SQL statements."""
    power_cuts: list[dict[str, Any]]
    not_measured: list[dict[str, Any]]
    """Rows of target, reason, and the number of cases not measured for it."""
    wear: list[WornCase]
    profiles: list[Profile]
    runs: list[dict[str, Any]]
    again: list[str]
    """The commands that repeat the run."""
    live: list[LiveCase]
    """The cases that the playground can show."""


def collect(directory: Path) -> Content:
    """Reads a run directory. Raises `InputError` if it is none or has no cases."""
    named = read_experiment(directory / "experiment.toml")
    run = judged_run(directory, _with_figures(named, directory))
    experiment, cases, requests, tables = run.experiment, run.cases, run.requests, run.tables
    metrics = experiment.metrics
    single = pl.DataFrame()
    if any(metric in get_args(RequestMetric) for metric in metrics):
        single = per_request(cases, requests, traced(directory), ("program",))
    table = agreement(read_table(directory, "cases"))
    energy = energy_summary(cases)
    power_cuts = _power_cuts(directory)
    needs_energies = bool(energy) or any(
        "energy" in metric or "power" in metric for metric in metrics
    )
    return Content(
        experiment=experiment,
        judged=run,
        answer=_answer(directory, cases),
        declared=bool(named.figure),
        cases=cases,
        tables=tables,
        single=single,
        power=_power(directory, experiment, cases),
        energy=energy,
        energy_gaps=energy_gaps(cases, _energies(directory, cases)) if needs_energies else [],
        verdicts=run.verdicts,
        agreement=table,
        agreement_summary=agreement_summary(table),
        statements=statement_agreement(cases, requests).to_dicts()
        if "statements" in tables
        else [],
        power_cuts=power_cuts,
        not_measured=_not_measured(directory),
        wear=_wear(directory, cases),
        profiles=_profiles(directory, cases),
        runs=_runs(cases),
        again=run_again(directory, cases, power_cuts=bool(power_cuts)),
        live=live_cases(directory, named, cases),
    )


def _with_figures(experiment: Experiment, directory: Path) -> Experiment:
    """The experiment, with the default figures if it names none."""
    if experiment.figure:
        return experiment
    cases = read_table(directory, "cases").filter(pl.col("target") != CHIP_ALONE)
    return experiment.model_copy(update={"figure": default_figures(cases)})


def _answer(directory: Path, cases: pl.DataFrame) -> Answer | None:
    if not cases.height:
        return None
    boards = {name: board_of_run(directory, name) for name in cases["board"].unique()}
    pages = {name: board.chip.page_bytes for name, board in boards.items()}
    return answer(cases, pages, default_compressors(cases["kernel"].unique().sort()))


def _not_measured(directory: Path) -> list[dict[str, Any]]:
    if not (directory / "not_measured.parquet").is_file():
        return []
    reasons = read_table(directory, "not_measured").group_by(
        "target", "reason", maintain_order=True
    )
    return reasons.len("cases").to_dicts()


@dataclass(frozen=True)
class Validation:
    """What `validate` kept: a line for each run and file system, and the largest errors."""

    lines: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    again: list[str]
    """The commands that repeat it."""
    gc_choices: int
    """JFFS2's garbage collection choices that the simulator replayed from the kernel."""


WORST_SHOWN = 12
"""Cases of a run that a report lists."""


def collect_validation(directory: Path) -> Validation:
    """Reads what `validate` kept in a directory. Raises `InputError`."""
    table = read_results(directory)
    gc_choices = int(table["gc_choices"].sum() or 0) if "gc_choices" in table.columns else 0
    lines = summaries(table)
    worst = worst_cases(table, WORST_SHOWN)
    return Validation(lines, worst, validate_again(directory, lines), gc_choices)


def _energies(directory: Path, cases: pl.DataFrame) -> dict[str, Energy | None]:
    """Each board's energy constants as they were during the run."""
    return {name: board_of_run(directory, name).energy for name in cases["board"].unique()}


def _power(directory: Path, experiment: Experiment, cases: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The power over time of every case, for the figures that draw it."""
    drawn = {metric for metric in experiment.metrics if metric in get_args(PowerMetric)}
    if not drawn:
        return {}
    requests = scan_table(directory, "requests")
    boards = _energies(directory, cases)
    usual = AS_PROFILED_WORDS.items()
    own = [pl.col(axis) == value for axis, value in usual if axis in cases.columns]
    cases = cases.filter(*own)  # constants hold for the board's own chip
    given = experiment.experiment.activity
    return {
        metric: power_points(
            cases,
            requests,
            flash=traced(directory),
            boards=boards,
            convention=CONVENTIONS_DRAWN[metric],
            given_activity=given,
        )
        for metric in sorted(drawn)
    }


def _power_cuts(directory: Path) -> list[dict[str, Any]]:
    """A row for each case whose power was cut."""
    if not (directory / "power_cuts.parquet").is_file():
        return []
    return summary(*cut_tables(directory))


def _wear(directory: Path, cases: pl.DataFrame) -> list[WornCase]:
    """The cases whose wear was recorded, in their order."""
    if not (directory / "wear.parquet").is_file():
        return []
    wear = read_table(directory, "wear")
    if not wear.height:
        return []
    boards = {name: board_of_run(directory, name) for name in cases["board"].unique()}
    endurance = {
        name: board.endurance.cycles if board.endurance else None for name, board in boards.items()
    }
    maps = wear_map(wear).partition_by("case_id", "target", as_dict=True)
    recorded = cases.join(wear.select("case_id", "target").unique(), on=["case_id", "target"],
                          how="semi", maintain_order="left")  # fmt: skip
    lines = wear_summary(wear, recorded, endurance).to_dicts()
    written = {
        (subject.name, subject.target): subject.workload.a_byte_written()
        for subject in cases_of(directory, None)
        if subject.workload
    }
    keys = [(line["case_id"], line["target"]) for line in lines]
    return [WornCase(line, maps[key], written[key]) for line, key in zip(lines, keys, strict=True)]


def _profiles(directory: Path, cases: pl.DataFrame) -> list[Profile]:
    """The profiles that the cases name, with the text kept beside them."""
    found = []
    for kind in ("board", "kernel"):
        names = cases.select(kind, f"{kind}_sha256").unique(maintain_order=True)
        for name, sha256 in names.iter_rows():
            file = directory / "profiles" / f"{kind}-{name}.toml"
            text = read_text(file) if is_name(name) and file.is_file() else ""
            found.append(Profile(kind, name, sha256, text))
    return found


def _runs(cases: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each target, board and kernel: file systems, cases, seeds, version."""
    listed = [
        pl.col(column).unique().sort().cast(pl.String).str.join(", ").alias(column)
        for column in ("fs", "seed", "flashbed_version", "commit", "kernel_release")
    ]
    groups = cases.group_by("target", "board", "kernel", maintain_order=True)
    return groups.agg(*listed, pl.len().alias("cases")).to_dicts()


def figure_tables(content: Content, figure: Figure) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The points that a figure draws, and the points that the paper states."""
    if figure.metric in get_args(PowerMetric):
        return content.power[figure.metric], pl.DataFrame()
    published = _published(figure, content.experiment.workload.request_bytes)
    if figure.over_axes:
        drawn = [axis for axis in (figure.x, figure.colour, figure.rows, figure.columns) if axis]
        only = {str(axis): values for axis, values in figure.only.items()}
        single = figure.metric in get_args(RequestMetric)
        table = content.single if single else content.tables[table_of(figure.metric)]
        points = chosen(table, figure.metric, only, drawn)
        columns = [name for name in published.columns if name in points.columns]
        return points, published.select(*columns, "text")
    if figure.metric in get_args(RequestMetric):
        measured = as_usual(content.single, ()).filter(pl.col(figure.metric).is_not_null())
        measured = measured.with_columns(pl.col(figure.metric).alias("value"))
    elif figure.metric in get_args(SavingMetric):
        measured = curves(as_usual(content.tables["savings"], ()), figure.metric)
    else:
        measured = rate_points(as_usual(content.tables["rates"], ()), figure.metric)
    panel = [name for name in ("machine", "fs", "pattern") if name in measured.columns]
    panels = measured.select(panel).unique(maintain_order=True)
    usual = published.select(
        "fs", "pattern", "requests", "request_bytes", "value", "text", "target"
    )
    return measured, usual.join(panels, on=["fs", "pattern"], maintain_order="left")


def _published(figure: Figure, request_bytes: int) -> pl.DataFrame:
    rows = [
        {
            "fs": fs,
            "pattern": point.pattern,
            "requests": point.requests,
            "request_bytes": point.request_bytes or request_bytes,
            "value": point.value,
            "low": point.value if point.low is None else point.low,
            "high": point.value if point.high is None else point.high,
            "text": point.text,
            "target": "paper",
            **point.at,
        }
        for point in figure.published
        for fs in point.fs
    ]
    columns: dict[str, pl.DataType] = {
        "fs": pl.String(), "pattern": pl.String(), "requests": pl.Int64(),
        "request_bytes": pl.Int64(), "value": pl.Float64(), "low": pl.Float64(),
        "high": pl.Float64(), "text": pl.String(), "target": pl.String(),
    }  # fmt: skip
    further = [str(axis) for point in figure.published for axis in point.at]
    return pl.DataFrame(
        rows, schema=columns | {axis: _KINDS.get(axis, pl.String()) for axis in further}
    )


_KINDS: dict[str, pl.DataType] = {
    **{axis: pl.Int64() for axis, kind in AXIS_COLUMNS.items() if kind is int},
    "pause_ms": pl.Float64(), "read_pct": pl.Int64(), "statement": pl.Int64(),
}  # fmt: skip


def agreement_errors(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The errors of the agreement table in long form, and the bounds to keep."""
    long = table.unpivot(
        list(BOUNDS_PCT),
        index=["target", "case_id", "fs", "pattern", "requests", "read_ahead_kib"],
        variable_name="measure",
        value_name="error_pct",
    )
    known = long.filter(pl.col("error_pct").is_not_null())
    errors = known.with_columns(
        pl.format("{} on {}", pl.col("measure").replace_strict(MEASURES), "target").alias(
            "measure"
        ),
        pl.col("measure").alias("error"),
        pl.when(pl.col("read_ahead_kib") > 0)
        .then(pl.lit("on"))
        .otherwise(pl.lit("off"))
        .alias("read_ahead"),
    )
    bounds = errors.select("measure", "error").unique(maintain_order=True)
    width = pl.col("error").replace_strict(BOUNDS_PCT)
    return errors, bounds.select("measure", (-width).alias("low"), width.alias("high"))
