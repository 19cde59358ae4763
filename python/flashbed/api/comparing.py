"""A comparison of choices from a folder of results: `flashbed compare` prints it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.answer import CHOICES
from flashbed.answers.analysis.compared_choices import (
    BY,
    CALLS,
    CASES,
    MEASURES,
    Comparison,
    cautions,
    changes,
    compared,
    ordered,
    orders,
    sentences,
    with_years,
)
from flashbed.answers.lifetimes.estimate_text import notes
from flashbed.answers.lifetimes.given import endurance_of
from flashbed.answers.lifetimes.subject import Subject
from flashbed.api.answering import answer_of_names
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.plan.experiment import Experiment
from flashbed.results.case_places import Names
from flashbed.results.columns import empty_table
from flashbed.results.run_directory import scan_table

__all__ = ["ComparedRun", "compared_run", "measured_cases", "with_requests"]

_ALL = 1 << 31
_SEVERAL = "years are of one program each; rows that add up several cases have none"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """A comparison, the title of its table, sentences from it, and what must not be concluded.

    `orders` says how targets order the choices. `changes` is a table against kept results.
    """

    title: str
    table: Comparison
    sentences: Sequence[str]
    orders: Sequence[str]
    notes: Sequence[str]
    changes: pl.DataFrame | None = None


def with_requests(experiment: Experiment) -> Experiment:
    """The experiment, with a row for each call where it would leave them out."""
    facts = experiment.experiment.model_copy(update={"omit": ()})
    return experiment.model_copy(update={"experiment": facts})


def compared_run(
    directory: Path, names: Iterable[str], *, apart: Collection[str] = (), by: str | None = None,
    targets: Sequence[str] = ("sim",), worn: Sequence[Subject] = (), endurance: int | None = None,
    against: Path | None = None, ours: bool = False,
) -> ComparedRun | None:  # fmt: skip
    """Compares the named cases of a folder; None if none was measured.

    `worn` are their subjects of `lifetime`, for years; `by` is a word of `BY`. Raises `InputError`
    if that is not known, or `against` has none of these cases.
    """
    names = list(names)
    found = answer_of_names(directory, names, apart, ours=ours, rows_max=_ALL, targets=targets)
    if found is None:
        return None
    axes, said = found.axes, list(found.notes)
    rows, cases = _rows(directory, names, found.rows, axes, targets=targets, ours=ours)
    if worn:
        years, doubts = _years(worn, endurance)
        rows = with_years(rows, axes, cases, years)
        said += doubts if rows["cases"].max() == 1 else [_SEVERAL]
    column = found.best_by if by is None else BY[by]
    if rows[column].null_count() == rows.height:
        raise InputError(f"--by {by}: is known of none of these configurations")
    table = ordered(rows, axes, column, targets)
    difference = None
    if against is not None:
        kept = answer_of_names(against, names, apart, axes=axes, rows_max=_ALL, targets=targets)
        if kept is None:
            raise InputError(f"--against {shown(against)}: holds none of these cases")
        old, _ = _rows(against, names, kept.rows, axes, targets=targets, ours=False)
        difference = changes(table.rows, old, axes)
    return ComparedRun(
        title=found.title if by is None else table.title,
        table=table,
        sentences=sentences(table),
        orders=orders(table),
        notes=[*cautions(table), *said],
        changes=difference,
    )


def measured_cases(
    directory: Path, names: Iterable[str], *, target: str, ours: bool
) -> pl.DataFrame:
    """A row for each of these cases that a target measured: `case_id`, and every measure.

    They are of one program, so that their choices tell them apart.
    """
    names = list(names)
    none = pl.DataFrame(schema=["case_id", *MEASURES])
    found = answer_of_names(
        directory, names, axes=CHOICES, rows_max=_ALL, targets=[target], ours=ours
    )
    if found is None:
        return none
    rows, cases = _rows(directory, names, found.rows, CHOICES, targets=[target], ours=ours)
    known = cases.select("case_id", *CHOICES).join(rows, on=list(CHOICES), nulls_equal=True)
    return known.select("case_id", *MEASURES)


def _rows(
    directory: Path, names: Sequence[str], answered: pl.DataFrame, axes: Sequence[str], *,
    targets: Sequence[str], ours: bool,
) -> tuple[pl.DataFrame, pl.DataFrame]:  # fmt: skip
    """The rows with every measure, and the cases that they are of."""
    wanted = Names.of(names)
    chosen = pl.col("case_id").map_batches(wanted.has, pl.Boolean(), is_elementwise=True)
    chosen &= pl.col("target").is_in(list(targets))
    columns = dict.fromkeys([*CASES, *axes])
    cases = scan_table(directory, "cases", ours=ours).filter(chosen).select(*columns).collect()
    if (directory / "requests.parquet").is_file():
        requests = scan_table(directory, "requests", ours=ours)
    else:  # an experiment may leave them out
        requests = empty_table("requests").lazy()
    return compared(answered, axes, cases, requests.select(CALLS)), cases


def _years(worn: Sequence[Subject], endurance: int | None) -> tuple[pl.DataFrame, list[str]]:
    """Years of each case, and the warnings that `lifetime` has of them, each once."""
    rows: list[tuple[str, str | None, float | None, float | None]] = []
    doubts: dict[str, str] = {}
    for subject in worn:
        cycles, source = endurance_of(subject, endurance)
        found = subject.lasting(cycles)
        ends = (found.low, found.high) if found else (None, None)
        rows.append((subject.name, subject.target, *ends))
        for note in notes(subject, found, source):
            if note.startswith("WARNING"):
                doubts.setdefault(note, subject.name)
    schema = {
        "case_id": pl.String, "target": pl.String, "years_low": pl.Float64, "years_high": pl.Float64
    }  # fmt: skip
    said = [f"{name}: {note.removeprefix('WARNING: ')}" for note, name in doubts.items()]
    return pl.DataFrame(rows, schema=schema, orient="row"), said
