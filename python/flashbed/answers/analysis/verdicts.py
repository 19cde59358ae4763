"""Judges the source's sentences: each is an inequality over the measures of a few points.

A claim gets a verdict per file system and target and, if it says so, per further kernel of the
simulator. A value that only follows from the source's own constants is no evidence. It still holds
or fails, under words of its own: a profile that does not give its source's number back is wrong.
Nor is one evidence that agrees with a number to which a constant was fitted.
The value behind a verdict is kept, so that a reader can disagree with the bound. Seeds are averaged
before a claim is judged. Their scatter is shown as a 95 % interval (a jackknife that leaves out one
seed at a time); the verdict rests on the mean alone.
"""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from flashbed.answers.analysis.points import USUAL, as_usual, table_of
from flashbed.answers.lifetimes.quantiles import student_quantile
from flashbed.base.errors import InputError
from flashbed.plan.claims import Claim, Differs
from flashbed.plan.experiment import Compared, Experiment
from flashbed.plan.quantities import ReducedMetric, TargetNumber

__all__ = [
    "AGREES",
    "CLOSE",
    "DERIVED_FAILS",
    "DERIVED_HOLDS",
    "DIFFERS",
    "FITTED",
    "IN_DIRECTION",
    "JUDGED",
    "LESSER",
    "NOT_MEASURED",
    "NO_EVIDENCE",
    "UNEXPLAINED",
    "JudgedClaim",
    "Verdict",
    "WithoutSeed",
    "computed",
    "items",
    "judge",
    "judged_on",
    "with_board",
    "worst",
]

JUDGED = ("sim", "uml", "emulator")
"""The targets that always get verdicts, in display order."""
_BOARD = "board"

AGREES = "agrees"
IN_DIRECTION = "agrees in direction"
DIFFERS = "differs"
DERIVED_HOLDS = "derived, holds"
DERIVED_FAILS = "derived, fails"
FITTED = "fitted"
NOT_MEASURED = "not measured"
UNEXPLAINED = "unexplained"
CLOSE = "close"
_WORST_FIRST = (
    UNEXPLAINED, DIFFERS, DERIVED_FAILS, CLOSE, IN_DIRECTION, AGREES, FITTED, DERIVED_HOLDS,
    NOT_MEASURED,
)  # fmt: skip

LESSER = (DIFFERS, IN_DIRECTION, DERIVED_FAILS)
"""The verdicts that an experiment has to explain."""

NO_EVIDENCE = (FITTED, DERIVED_HOLDS, NOT_MEASURED)
"""The verdicts that say nothing for the model and nothing against it."""

Tables = Mapping[str, pl.DataFrame]
"""Points by table (answers/analysis/points.py)."""

Key = tuple[str | float, ...]
"""A curve: file system, pattern, and its values on the axes it does not run along."""

_BETWEEN_FS = (
    "largest_difference_between_fs",
    "last_ratio_above_rest",
    "smallest_ratio_of_fs",
    "median_ratio_of_fs",
    "largest_ratio_of_fs",
    "mean_ratio_of_fs",
)
"""Reductions that combine all file systems of a claim."""
_OF_RATIOS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "largest": max,
    "smallest": min,
}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class WithoutSeed:
    """The points with one seed left out, and the targets that have other seeds."""

    targets: frozenset[str]
    tables: Tables


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim on one target: the kernel, the claim's value (null if not measured), the verdict."""

    kernel: str | None
    value: float | None
    verdict: str
    why: Differs | None = None
    """Why the verdict is less than `agrees`, if the experiment explains it."""
    interval: tuple[float, float] | None = None
    """95 % interval of the value over seeds; null for one seed."""
    close: bool = False
    """Whether part of the interval would get another verdict: more seeds might change it."""

    @property
    def counted(self) -> str:
        """The verdict as tables count it.

        Seeds have not decided a close one. One that differs is unexplained if no run shows why.
        """
        if self.close:
            return CLOSE
        explained = self.why is not None and not self.why.unexplained
        return UNEXPLAINED if self.verdict == DIFFERS and not explained else self.verdict


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One row of the table of claims: a claim on a file system, by target."""

    id: str
    claim: Claim
    fs: str
    judged: Mapping[str, JudgedClaim]
    further_kernel: str | None = None
    """One of `also_kernels`, which the source did not have."""

    def as_json(self) -> dict[str, Any]:
        """The row as `flashbed reproduce --format json` prints it."""
        reasons = {
            target: dict(zip(("why", "evidence"), judged.why.explanation, strict=True))
            for target, judged in self.judged.items()
            if judged.why
        }
        intervals = {
            target: judged.interval for target, judged in self.judged.items() if judged.interval
        }
        return {
            "id": self.id,
            "item": self.claim.item,
            "text": self.claim.text,
            "source": self.claim.source,
            "published": self.claim.published,
            **{target: judged.value for target, judged in self.judged.items()},
            **{f"verdict_{target}": judged.verdict for target, judged in self.judged.items()},
            **({"intervals": intervals} if intervals else {}),
            **({"differs": reasons} if reasons else {}),
        }


def with_board(experiment: Experiment, cases: pl.DataFrame) -> Experiment:
    """The experiment with the user's own board as a machine that represents the paper's.

    Without such a board it is unchanged; of several, the one with the most cases counts.
    """
    there = cases.filter(pl.col("target") == _BOARD)
    if not there.height:
        return experiment
    pairs = there.group_by("board", "kernel", maintain_order=True).len().sort("len")
    board, kernel, _ = pairs.row(-1)
    own = Compared(board=board, kernel=kernel, note="measured over ssh")
    return experiment.model_copy(update={"compared": {**experiment.compared, _BOARD: own}})


def judged_on(experiment: Experiment) -> tuple[str, ...]:
    """The targets that get verdicts on an experiment's claims."""
    return (*JUDGED, _BOARD) if _BOARD in experiment.compared else JUDGED


def judge(
    experiment: Experiment, tables: Tables, without: Sequence[WithoutSeed] = ()
) -> list[Verdict]:
    """Judges every claim of an experiment on the points of its tables (answers/analysis/points.py).

    `without` has the tables that leave out one seed each, for the intervals.
    """
    verdicts = []
    for claim in experiment.claim:
        groups = [claim.fs] if claim.reduce in _BETWEEN_FS else [(fs,) for fs in claim.fs]
        for kernel, group in itertools.product((None, *claim.also_kernels), groups):
            verdicts.append(
                _verdict(
                    experiment, claim, group=group, kernel=kernel, tables=tables, without=without
                )
            )
    return verdicts


def computed(number: TargetNumber, experiment: Experiment, tables: Tables) -> float | None:
    """A number of a text, from its experiment's points; null if they were not measured."""
    usual = experiment.compared.get(number.target)
    if usual is None and not (number.board and number.kernel):
        return None
    board = number.board or (usual.board if usual else "")
    kernel = number.kernel or (usual.kernel if usual else "")
    table = tables[table_of(number.metric)]
    return _value(number, number.fs, target=number.target, board=board, kernel=kernel, points=table)


def worst(words: Sequence[str]) -> str:
    """The worst of several verdicts."""
    return next((word for word in _WORST_FIRST if word in words), NOT_MEASURED)


def items(verdicts: Sequence[Verdict]) -> dict[str, dict[str, tuple[int, int]]]:
    """Item of the paper -> target -> verdicts that agree, and all verdicts.

    A claim's further kernels do not count, since items are judged on machines that represent the
    paper's. Nor do values that follow from the paper's own constants, or that a constant was fitted
    to, unless one fails.
    """
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for verdict in verdicts:
        if verdict.claim.item is None or verdict.further_kernel:
            continue
        of_item = counts.setdefault(verdict.claim.item, {})
        for target, judged in verdict.judged.items():
            agree, known = of_item.setdefault(target, (0, 0))
            if judged.verdict not in NO_EVIDENCE:
                of_item[target] = (agree + (judged.verdict == AGREES), known + 1)
    return counts


def _verdict(
    experiment: Experiment,
    claim: Claim,
    *,
    group: Sequence[str],
    kernel: str | None,
    tables: Tables,
    without: Sequence[WithoutSeed],
) -> Verdict:
    """One row; `kernel` is a further kernel of the simulator, without a real counterpart."""
    table = table_of(claim.metric)
    judged = {}
    for target in judged_on(experiment):
        compared = experiment.compared.get(target)
        unlike = kernel is not None and target != "sim"
        if compared is None or unlike or target in claim.unmeasured:
            judged[target] = JudgedClaim(kernel=None, value=None, verdict=NOT_MEASURED)
            continue
        machine = {
            "target": target,
            "board": compared.board,
            "kernel": kernel or compared.kernel,
        }
        value = _value(claim, group, **machine, points=tables[table])
        holds = _holds(claim, value)
        others = [
            _value(claim, group, **machine, points=left.tables[table])
            for left in without
            if value is not None and target in left.targets
        ]
        interval = _interval(value, [other for other in others if other is not None])
        why = _why(claim, group, target, kernel) if holds in LESSER else None
        name = (
            ", ".join(map(str, claim.at["kernel"])) if "kernel" in claim.at else machine["kernel"]
        )
        close = interval is not None and {_holds(claim, end) for end in interval} != {holds}
        judged[target] = JudgedClaim(
            kernel=name, value=value, verdict=holds, why=why, interval=interval, close=close
        )
    identity = "/".join(part for part in (claim.id, "-".join(group), kernel) if part)
    return Verdict(
        id=identity, claim=claim, fs=" and ".join(group), judged=judged, further_kernel=kernel
    )


def _interval(value: float | None, without: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval over seeds, from the values without each seed; null if none changes it.

    Jackknife: Efron and Stein, The Jackknife Estimate of Variance (1981), with Student's t.
    """
    count = len(without)
    if value is None or count < 2 or min(without) == max(without):
        return None
    if not all(math.isfinite(other) for other in (value, *without)):
        return None
    mean = sum(without) / count
    variance = (count - 1) / count * sum((other - mean) ** 2 for other in without)
    half = student_quantile(count - 1, 0.975) * math.sqrt(variance)
    return (round(value - half, 6), round(value + half, 6))


def _why(claim: Claim, group: Sequence[str], target: str, kernel: str | None) -> Differs | None:
    """The first explanation for these file systems on this target and kernel."""
    for differs in claim.differs:
        of_fs = differs.fs is None or set(group) <= set(differs.fs)
        of_kernel = differs.kernel is None or kernel in differs.kernel
        if target in differs.on and of_fs and of_kernel:
            return differs
    return None


def _holds(claim: Claim, value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    if claim.low is not None and claim.high is not None:
        holds = claim.low <= value <= claim.high
    else:
        assert claim.bound is not None  # the model checks it
        holds = _OPERATORS[claim.operator](value, claim.bound)
    if claim.derived is not None:
        return DERIVED_HOLDS if holds else DERIVED_FAILS
    if holds:
        return FITTED if claim.fitted is not None else AGREES
    way = claim.direction
    return IN_DIRECTION if way and _OPERATORS[way.operator](value, way.bound) else DIFFERS


def _value(
    measured: ReducedMetric,
    group: Sequence[str],
    *,
    target: str,
    board: str,
    kernel: str,
    points: pl.DataFrame,
) -> float | None:
    """The claim's value on a machine; null unless all its points were measured."""
    curves: dict[Key, list[float | None]] = {}
    for fs, pattern in itertools.product(group, measured.pattern):
        rows = points.filter(target=target, board=board, fs=fs, pattern=pattern)
        curves |= _curves(measured, (fs, pattern), kernel, rows)
    if any(value is None for curve in curves.values() for value in curve):
        return None
    known = {key: [value for value in curve if value is not None] for key, curve in curves.items()}
    return round(_reduce(measured, group, known), 6)


def _curves(
    measured: ReducedMetric, curve: tuple[str, str], kernel: str, rows: pl.DataFrame
) -> dict[Key, list[float | None]]:
    """The metric at each point, in order: one curve, or one along an axis for each place."""
    usual = {axis: value for axis, value in USUAL.items() if axis in rows.columns}
    wanted = [{**usual, "kernel": kernel, **place} for place in measured.places]
    axes = list(wanted[0])
    rows = as_usual(rows, axes)
    values: dict[tuple[Any, ...], float | None] = {}
    for *where, value in rows.select(*axes, measured.metric).iter_rows():
        if values.setdefault(tuple(where), value) != value:
            there = dict(zip(axes, where, strict=True))
            name = getattr(measured, "id", measured.metric)
            raise InputError(f"claim {name}: several points are {there}: name a further axis")
    curves: dict[Key, list[float | None]] = {}
    along = measured.along
    for place in wanted:
        rest = tuple(place[axis] for axis in axes if axis != along) if along else ()
        curves.setdefault((*curve, *rest), []).append(values.get(tuple(place.values())))
    return curves


def _reduce(claim: ReducedMetric, group: Sequence[str], curves: Mapping[Key, list[float]]) -> float:
    """Reduces curves, one per file system and pattern, to one number."""
    if "_ratio_of_" in claim.reduce:
        pairs = _pairs(claim, group, curves)
        return _OF_RATIOS[claim.reduce.split("_")[0]]([_ratio(b, a) for a, b in pairs])
    if claim.reduce == "mean_difference_of_patterns":
        return statistics.fmean(b - a for a, b in _pairs(claim, group, curves))
    if claim.reduce == "last_ratio_above_rest":
        first, second = group
        ratios = [
            [_ratio(b, a) for a, b in zip(curve, curves[(second, *key[1:])], strict=True)]
            for key, curve in curves.items()
            if key[0] == first
        ]
        return min(curve[-1] - max(curve[:-1]) for curve in ratios)
    if claim.reduce == "largest_difference_between_fs":
        first, second = group
        return max(
            abs(one - other)
            for key, curve in curves.items()
            if key[0] == first
            for one, other in zip(curve, curves[(second, *key[1:])], strict=True)
        )
    everything = [value for curve in curves.values() for value in curve]
    match claim.reduce:
        case "min":
            return min(everything)
        case "max":
            return max(everything)
        case "mean":
            return sum(everything) / len(everything)
        case "only":
            (value,) = everything
            return value
        case "spread":
            return max(max(curve) - min(curve) for curve in curves.values())
        case "largest_over_smallest":
            return _ratio(max(everything), min(everything))
        case "largest_rise":
            return max(b - a for curve in curves.values() for a, b in itertools.pairwise(curve))
        case "smallest_rise":
            return min(b - a for curve in curves.values() for a, b in itertools.pairwise(curve))
        case "share_of_rise":
            return min(_share_of_rise(*curve) for curve in curves.values())
        case "last_above_lowest":
            return max(curve[-1] - min(curve) for curve in curves.values())
        case "last_above_rest":
            return min(curve[-1] - max(curve[:-1]) for curve in curves.values())
    raise AssertionError(claim.reduce)


def _pairs(
    claim: ReducedMetric, group: Sequence[str], curves: Mapping[Key, list[float]]
) -> list[tuple[float, float]]:
    """The first beside the second, the second beside the third and so on, at each point.

    They are of patterns or of file systems, in the claim's order.
    """
    rests = dict.fromkeys(key[2:] for key in curves)
    if claim.reduce.endswith("_of_patterns"):
        rows = [
            [curves[(fs, pattern, *rest)] for pattern in claim.pattern]
            for fs, rest in itertools.product(group, rests)
        ]
    else:
        rows = [
            [curves[(fs, pattern, *rest)] for fs in group]
            for pattern, rest in itertools.product(claim.pattern, rests)
        ]
    return [
        (first, second)
        for row in rows
        for one, other in itertools.pairwise(row)
        for first, second in zip(one, other, strict=True)
    ]


def _share_of_rise(first: float, second: float, last: float) -> float:
    """The share of a curve's rise that its second point has reached; 0 if it does not rise."""
    return (second - first) / (last - first) if last > first else 0.0


def _ratio(one: float, other: float) -> float:
    """A quotient; infinite for a divisor of 0, but 1 if both are 0."""
    if other:
        return one / other
    return float("inf") if one else 1.0
