"""The cases that the numbers in an experiment's texts are computed from.

An experiment of thousands of cases states a few dozen numbers. CI runs the cases behind them, so
that a change of a model or a profile that makes a sentence untrue is found with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flashbed.plan.experiment import Experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.planned import Plan, Planned, as_plan
from flashbed.plan.quantities import Number
from flashbed.report.numbers import numbers_of

__all__ = ["needed_cases", "numbers_by_experiment"]

_AXES = ("kernel", "requests", "request_bytes", "file_bytes", "pause_ns", "advice")
"""Axes on which a case is told from others; what it is compared with has other conditions."""


def numbers_by_experiment(
    experiments: Mapping[str, Experiment], target: str = "sim"
) -> dict[str, list[Number]]:
    """The experiment whose cases are counted -> the numbers of all texts that count them."""
    found: dict[str, list[Number]] = {}
    for name, experiment in experiments.items():
        for _, number in numbers_of(experiment):
            if number.target == target:
                found.setdefault(number.experiment or name, []).append(number)
    return found


def needed_cases(experiment: Experiment, numbers: Iterable[Number]) -> Plan:
    """The cases of an experiment that these numbers are computed from."""
    numbers = list(numbers)
    return as_plan([one for one in plan(experiment) if _needed(experiment, numbers, one)])


def _needed(experiment: Experiment, numbers: Iterable[Number], planned: Planned) -> bool:
    case = planned.case
    for number in numbers:
        usual = experiment.compared.get(number.target)
        board, kernel = number.board, number.kernel
        if usual is not None:
            board, kernel = board or usual.board, kernel or usual.kernel
        told = (case.board, case.fs in number.fs, case.pattern in number.pattern)
        if number.target in planned.targets and told == (board, True, True):
            for place in number.places:
                named = {"kernel": kernel} | place
                if all(getattr(case, axis) == named[axis] for axis in _AXES if axis in named):
                    return True
    return False
