"""Recomputes our own numbers in the texts of experiments.

A text shows a number as the experiment's file has it (`[…numbers.NAME]`,
experiments/FIGURES.md). After a change of a model this finds the sentences that are
no longer true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from flashbed.answers.analysis.points import table_of
from flashbed.answers.analysis.verdicts import computed
from flashbed.base.errors import InputError
from flashbed.plan.experiment import Experiment
from flashbed.plan.quantities import Number, TargetNumber
from flashbed.report.judged import JudgedRun, points_of

__all__ = ["OutdatedNumber", "numbers_of", "outdated_numbers", "value_of"]


@dataclass(frozen=True)
class OutdatedNumber:
    """A number whose text is outdated; `now` is null if it was not measured."""

    where: str
    """STUDY/NAME and the number's key."""
    said: str
    now: str | None


def numbers_of(experiment: Experiment) -> Iterator[tuple[str, Number]]:
    """Every number in an experiment's texts, with its key in the file."""
    for figure in experiment.figure:
        for name, number in figure.numbers.items():
            yield f"figure {figure.id}: numbers.{name}", number
    for claim in experiment.claim:
        for name, number in claim.numbers.items():
            yield f"claim {claim.id}: numbers.{name}", number
        for place, differs in enumerate(claim.differs, start=1):
            for name, number in differs.numbers.items():
                yield f"claim {claim.id}: differs.{place}.numbers.{name}", number


def outdated_numbers(
    runs: Mapping[str, JudgedRun], target: str = "sim", without: Collection[str] = ()
) -> list[OutdatedNumber]:
    """The numbers of these runs whose value on a target differs from the text.

    Runs are keyed by STUDY/NAME. Numbers of the experiments of `without` are skipped. Raises
    `InputError` for a number of another experiment that is not among the runs.
    """
    found = []
    for name, run in runs.items():
        for key, number in numbers_of(run.experiment):
            if number.target != target or number.experiment in without:
                continue
            source = runs.get(number.experiment or name)
            if source is None:
                raise InputError(f"{name}: {key}: {number.experiment} was not run")
            value = value_of(number, source)
            now = None if value is None else f"{value:.{number.digits}f}"
            if now != number.shown:
                found.append(OutdatedNumber(f"{name}: {key}", number.shown, now))
    return found


def value_of(number: TargetNumber, run: JudgedRun) -> float | None:
    """The number's value in a run; None if it was not measured."""
    table = table_of(number.metric)
    if table not in run.tables:
        made = points_of(
            run.experiment, run.cases, requests=run.requests, flash=run.flash, wanted={table}
        )
        run.tables.update(made)
    return computed(number, run.experiment, run.tables) if table in run.tables else None
