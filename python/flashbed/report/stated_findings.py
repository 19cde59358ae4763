"""Computes findings from the tables of runs.

A finding is left out if one of its numbers was not measured or violates the finding's condition.
Its bars stand for its labelled numbers. If a real kernel ran the same cases on the same board, its
value is shown beside the bar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from flashbed.answers.analysis.verdicts import JUDGED
from flashbed.plan.experiment import Experiment
from flashbed.plan.findings import Finding, FindingNumber
from flashbed.plan.quantities import with_words
from flashbed.report.anchors import anchor_of, claim_anchor, figure_anchor
from flashbed.report.judged import JudgedRun
from flashbed.report.numbers import value_of

__all__ = ["StatedBar", "StatedFinding", "stated_findings"]


@dataclass(frozen=True)
class StatedBar:
    """A labelled number of a finding, and the same number on real kernels, by target."""

    label: str
    value: float
    text: str
    real: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StatedFinding:
    """A finding with its numbers filled in; `anchor` is the place in the report that shows more."""

    id: str
    """STUDY/NAME and the finding's id."""
    text: str
    unit: str
    anchor: str
    on_index: bool
    bars: tuple[StatedBar, ...]


def stated_findings(runs: Mapping[str, JudgedRun]) -> list[StatedFinding]:
    """The findings of these runs, which are keyed by STUDY/NAME, in their order."""
    said = []
    for name, run in runs.items():
        for finding in run.experiment.finding:
            values = _values(finding, name, runs)
            if values is not None:
                said.append(_found(finding, name, runs, values))
    return said


def _values(finding: Finding, name: str, runs: Mapping[str, JudgedRun]) -> dict[str, float] | None:
    """The finding's numbers; None if one is missing or the finding's condition does not hold."""
    values = {}
    for key, number in finding.numbers.items():
        run = runs.get(number.experiment or name)
        value = None if run is None else value_of(number, run)
        if value is None or not math.isfinite(value) or not number.fits(value):
            return None
        values[key] = value
    return values


def _found(
    finding: Finding, name: str, runs: Mapping[str, JudgedRun], values: Mapping[str, float]
) -> StatedFinding:
    numbers = finding.numbers
    words = {key: numbers[key].text(value) for key, value in values.items()}
    bars = tuple(
        StatedBar(
            number.label,
            values[key],
            f"{words[key]} {finding.unit}",
            _real(number, runs[number.experiment or name]),
        )
        for key, number in numbers.items()
        if number.label is not None
    )
    return StatedFinding(
        id=f"{name} {finding.id}",
        text=with_words(finding.text, words),
        unit=finding.unit,
        anchor=_anchor(finding, runs[name].experiment),
        on_index=finding.on_index,
        bars=bars,
    )


def _anchor(finding: Finding, experiment: Experiment) -> str:
    if finding.see is None:
        return anchor_of(experiment)
    if any(figure.id == finding.see for figure in experiment.figure):
        return figure_anchor(experiment, finding.see)
    return claim_anchor(experiment, finding.see)


def _real(number: FindingNumber, run: JudgedRun) -> dict[str, float]:
    """The same number on real kernels, for the same board and kernel."""
    usual = run.experiment.compared
    machine = {}
    for target in JUDGED:
        stands = usual.get(target)
        board = number.board or (stands.board if stands else None)
        kernel = number.kernel or (stands.kernel if stands else None)
        machine[target] = (board, kernel)
    real = {}
    for target in JUDGED:
        if target != number.target and machine[target] == machine[number.target]:
            value = value_of(number.model_copy(update={"target": target}), run)
            if value is not None and math.isfinite(value):
                real[target] = value
    return real
