"""The numbers that a source prints, each beside what was measured, and how far they are apart.

A number counts if its claim has it in `published` and judges it within a range: a sentence such as
"more than 50 %" has no error. A value of 0 has none either, and one that only follows from the
source's own constants (`derived`) is no evidence. Points of figures and cells of tables
(`figure.published`) count where no claim takes them in. A number that a constant of a profile was
fitted to (`fitted`) is counted apart. A claim's number counts once for each of its file systems.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashbed.answers.analysis.verdicts import AGREES, DIFFERS, NOT_MEASURED
from flashbed.plan.claims import Claim
from flashbed.plan.experiment import Experiment
from flashbed.plan.quantities import Figure, PublishedPoint, TargetNumber
from flashbed.plan.study import Study
from flashbed.report.judged import JudgedRun
from flashbed.report.numbers import value_of

__all__ = [
    "NEAR_PCT",
    "NOT_JUDGED",
    "Errors",
    "PrintedNumber",
    "counted_line",
    "errors_by_item",
    "errors_of",
    "printed_numbers",
]

NEAR_PCT = 10.0
"""The error that the authors promise of their own simulator (slides, Following work)."""
NOT_JUDGED = "not judged"
"""The verdict on a point of a figure of which the source leaves no range open."""


@dataclass(frozen=True, kw_only=True)
class PrintedNumber:
    """A number of a source and what a target measured; `simulated` is null if it did not."""

    study: str
    item: str
    """The figure, table or section of the source."""
    name: str
    """EXPERIMENT/CLAIM, or EXPERIMENT/FIGURE of a point that no claim takes in."""
    fs: str
    where: str
    text: str
    unit: str
    printed: float
    simulated: float | None
    verdict: str
    fitted: str | None = None
    """The constant that was fitted to it."""

    @property
    def error_pct(self) -> float | None:
        """The error in percent of what is printed."""
        if self.simulated is None:
            return None
        return (self.simulated - self.printed) / abs(self.printed) * 100

    def as_json(self) -> dict[str, Any]:
        """The number as `flashbed verdicts --numbers --format json` prints it."""
        error = self.error_pct
        return {**vars(self), "error_pct": None if error is None else round(error, 2)}


@dataclass(frozen=True)
class Errors:
    """The errors of some numbers: how many are known and within `NEAR_PCT`, and their median."""

    numbers: int
    measured: int
    near: int
    median_pct: float | None


def printed_numbers(
    name: str, study: Study, runs: Mapping[str, JudgedRun], target: str = "sim"
) -> list[PrintedNumber]:
    """Every number that the source of a study prints, in the source's order.

    `runs` are the study's, by the experiment's name without its study. Numbers of experiments that
    were not run are left out.
    """
    order = [item.id for item in study.item]
    found: list[PrintedNumber] = []
    for experiment, run in runs.items():
        found += _of_claims(name, experiment, run, target)
        found += _of_figures(name, experiment, run, target)
    place = {item: at for at, item in enumerate(order)}
    return sorted(found, key=lambda one: place.get(one.item, len(place)))


def errors_of(numbers: Iterable[PrintedNumber]) -> Errors:
    """The errors of these numbers, taken together."""
    every = [number.error_pct for number in numbers]
    known = [abs(error) for error in every if error is not None]
    near = sum(error <= NEAR_PCT for error in known)
    return Errors(len(every), len(known), near, statistics.median(known) if known else None)


def errors_by_item(numbers: Sequence[PrintedNumber]) -> dict[tuple[str, str], Errors]:
    """(study, item) -> the errors of its numbers, without those that a constant was fitted to."""
    groups: dict[tuple[str, str], list[PrintedNumber]] = {}
    for number in numbers:
        if number.fitted is None:
            groups.setdefault((number.study, number.item), []).append(number)
    return {item: errors_of(group) for item, group in groups.items()}


def counted_line(numbers: Sequence[PrintedNumber]) -> str:
    """One sentence of how near the numbers are."""
    free = errors_of(number for number in numbers if number.fitted is None)
    fitted = errors_of(number for number in numbers if number.fitted is not None)
    if free.median_pct is None:
        return "No printed number was measured."
    line = (
        f"Of {free.measured} printed numbers {free.near} come out within {NEAR_PCT:.0f} %; "
        f"the median error is {free.median_pct:.1f} %."
    )
    if fitted.measured:
        line += f" {fitted.measured} more are not counted: constants were fitted to them."
    return line


def _of_claims(study: str, name: str, run: JudgedRun, target: str) -> Iterable[PrintedNumber]:
    for verdict in run.verdicts:
        claim = verdict.claim
        if verdict.further_kernel is not None or claim.published is None or not _counts(claim):
            continue
        judged = verdict.judged.get(target)
        yield PrintedNumber(
            study=study,
            item=claim.item or "",
            name=f"{name}/{claim.id}",
            fs=verdict.fs,
            where=claim.source,
            text=claim.text,
            unit=claim.unit,
            printed=claim.published,
            simulated=judged.value if judged else None,
            verdict=judged.counted if judged else NOT_MEASURED,
            fitted=claim.fitted,
        )


def _counts(claim: Claim) -> bool:
    return claim.operator == "within" and bool(claim.published) and claim.derived is None


def _of_figures(study: str, name: str, run: JudgedRun, target: str) -> Iterable[PrintedNumber]:
    for figure in run.experiment.figure:
        for point in figure.published:
            for fs in point.fs:
                if not point.value or _taken_in(run.experiment, figure, point, fs):
                    continue
                value = value_of(_measured(figure, point, fs, target), run)
                yield PrintedNumber(
                    study=study,
                    item=figure.id if figure.id[:1].isupper() else f"Figure {figure.id}",
                    name=f"{name}/{figure.id}",
                    fs=fs,
                    where=point.text,
                    text=figure.title,
                    unit="",
                    printed=point.value,
                    simulated=value,
                    verdict=_verdict(point, value),
                )


def _place(point: PublishedPoint) -> dict[str, Any]:
    size = {"request_bytes": point.request_bytes} if point.request_bytes else {}
    further = {str(axis): value for axis, value in point.at.items() if axis != "board"}
    return {"requests": point.requests, **size, **further}


def _taken_in(experiment: Experiment, figure: Figure, point: PublishedPoint, fs: str) -> bool:
    """Whether a claim about the same metric has a published number for this point."""
    place = _place(point)
    for claim in experiment.claim:
        same = claim.metric == figure.metric and fs in claim.fs and point.pattern in claim.pattern
        if same and claim.published is not None:
            for other in claim.places:
                if all(other[axis] == place[axis] for axis in other.keys() & place.keys()):
                    return True
    return False


def _measured(figure: Figure, point: PublishedPoint, fs: str, target: str) -> TargetNumber:
    place = _place(point)
    board = point.at.get("board")
    values: dict[str, Any] = {
        "metric": figure.metric,
        "fs": [fs],
        "pattern": [point.pattern],
        "requests": [place.pop("requests")],
        "reduce": "only",
        "target": target,
        "board": None if board is None else str(board),
    }
    if "request_bytes" in place:
        values["request_bytes"] = [place.pop("request_bytes")]
    return TargetNumber.model_validate(
        values | {"at": {axis: [value] for axis, value in place.items()}}
    )


def _verdict(point: PublishedPoint, value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    if point.low is None or point.high is None:
        return NOT_JUDGED
    return AGREES if point.low <= value <= point.high else DIFFERS
