"""The paper's sentences, judged: each is an inequality over the measures of a few points.

A claim gets a verdict per file system and target and, where it says so, per further kernel of the
simulator.
The number behind a verdict is kept, so that a reader can disagree with the bound.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from flashbed.analysis.points import USUAL, table_of
from flashbed.asked import Claim, Differs
from flashbed.errors import InputError
from flashbed.experiment import Compared, Experiment

__all__ = [
    "AGREES",
    "DIFFERS",
    "JUDGED",
    "NOT_MEASURED",
    "Judged",
    "Verdict",
    "items",
    "judge",
    "judged_on",
    "with_board",
]

JUDGED = ("sim", "uml", "emulator")
"""The targets that always get verdicts, in the order in which they are shown."""
_BOARD = "board"

AGREES = "agrees"
DIFFERS = "differs"
NOT_MEASURED = "not measured"

Key = tuple[str | float, ...]
"""Of a curve: file system, pattern, and its places on the axes it does not run along."""

_BETWEEN_FS = ("largest_difference_between_fs", "smallest_ratio_of_fs", "mean_ratio_of_fs")
"""These take all file systems of a claim together."""
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Judged:
    """What a target says of a claim: the kernel, the claim's number (null if not measured)."""

    kernel: str | None
    value: float | None
    verdict: str
    why: Differs | None = None
    """Why it differs, as far as the experiment says so."""


@dataclass(frozen=True)
class Verdict:
    """One row of the table of claims: a claim on a file system, by target."""

    id: str
    claim: Claim
    fs: str
    judged: Mapping[str, Judged]

    def as_json(self) -> dict[str, Any]:
        """The row as `flashbed reproduce --format json` prints it."""
        reasons = {
            target: {"why": judged.why.why, "evidence": judged.why.evidence}
            for target, judged in self.judged.items()
            if judged.why
        }
        return {
            "id": self.id,
            "item": self.claim.item,
            "text": self.claim.text,
            "source": self.claim.source,
            "published": self.claim.published,
            **{target: judged.value for target, judged in self.judged.items()},
            **{f"verdict_{target}": judged.verdict for target, judged in self.judged.items()},
            **({"differs": reasons} if reasons else {}),
        }


def with_board(experiment: Experiment, cases: pl.DataFrame) -> Experiment:
    """The experiment with the user's own board among what stands for the paper's.

    If one was measured: the one that most cases are of, with its kernel.
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


def judge(experiment: Experiment, tables: Mapping[str, pl.DataFrame]) -> list[Verdict]:
    """Every claim of an experiment, judged on the points of its tables (analysis/points.py)."""
    verdicts = []
    for claim in experiment.claim:
        groups = [claim.fs] if claim.reduce in _BETWEEN_FS else [(fs,) for fs in claim.fs]
        table = tables[table_of(claim.metric)]
        for kernel, group in itertools.product((None, *claim.also_kernels), groups):
            verdicts.append(_verdict(experiment, claim, group, kernel, table))
    return verdicts


def items(verdicts: Sequence[Verdict]) -> dict[str, dict[str, tuple[int, int]]]:
    """Item of the paper -> target -> verdicts that agree, verdicts there are.

    A claim's further kernels are not counted: the item is judged on what stands for the paper's.
    """
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for verdict in verdicts:
        if verdict.claim.item is None or verdict.id.endswith(verdict.claim.also_kernels or ("\0",)):
            continue
        of_item = counts.setdefault(verdict.claim.item, {})
        for target, judged in verdict.judged.items():
            agree, known = of_item.setdefault(target, (0, 0))
            if judged.verdict != NOT_MEASURED:
                of_item[target] = (agree + (judged.verdict == AGREES), known + 1)
    return counts


def _verdict(
    experiment: Experiment,
    claim: Claim,
    group: Sequence[str],
    kernel: str | None,
    points: pl.DataFrame,
) -> Verdict:
    """One row; `kernel` is a further kernel of the simulator, which no real one stands beside."""
    judged = {}
    for target in judged_on(experiment):
        compared = experiment.compared.get(target)
        if compared is not None and kernel is not None:
            further = compared.model_copy(update={"kernel": kernel})
            compared = further if target == "sim" else None
        value = _value(claim, group, target, compared, points)
        holds = _holds(claim, value)
        why = _why(claim, group, target, kernel) if holds == DIFFERS else None
        name = ", ".join(map(str, claim.at["kernel"])) if "kernel" in claim.at else None
        judged[target] = Judged((name or compared.kernel) if compared else None, value, holds, why)
    identity = "/".join(part for part in (claim.id, "-".join(group), kernel) if part)
    return Verdict(identity, claim, " and ".join(group), judged)


def _why(claim: Claim, group: Sequence[str], target: str, kernel: str | None) -> Differs | None:
    """The first reason the experiment gives for these file systems on this target and kernel."""
    for differs in claim.differs:
        of_fs = differs.fs is None or set(group) <= set(differs.fs)
        of_kernel = differs.kernel is None or kernel in differs.kernel
        if target in differs.on and of_fs and of_kernel:
            return differs
    return None


def _holds(claim: Claim, value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    if claim.tolerance is not None:
        return AGREES if abs(value - claim.bound) <= claim.tolerance else DIFFERS
    return AGREES if _OPERATORS[claim.operator](value, claim.bound) else DIFFERS


def _value(
    claim: Claim,
    group: Sequence[str],
    target: str,
    compared: Compared | None,
    points: pl.DataFrame,
) -> float | None:
    """The claim's number on a target; null unless every point it speaks of was measured."""
    if compared is None:
        return None
    curves: dict[Key, list[float | None]] = {}
    for fs, pattern in itertools.product(group, claim.pattern):
        curves |= _curves(claim, fs, pattern, target, compared, points)
    if any(value is None for curve in curves.values() for value in curve):
        return None
    known = {key: [value for value in curve if value is not None] for key, curve in curves.items()}
    return round(_reduce(claim, group, known), 6)


def _curves(
    claim: Claim, fs: str, pattern: str, target: str, compared: Compared, points: pl.DataFrame
) -> dict[Key, list[float | None]]:
    """The metric at each of the claim's points, in its order: one curve, or one along an axis."""
    usual = {axis: value for axis, value in USUAL.items() if axis in points.columns}
    asked = [{**usual, "kernel": compared.kernel, **place} for place in claim.places]
    axes = list(asked[0])
    rows = points.filter(target=target, board=compared.board, fs=fs, pattern=pattern)
    values: dict[tuple[Any, ...], float | None] = {}
    for *where, value in rows.select(*axes, claim.metric).iter_rows():
        if values.setdefault(tuple(where), value) != value:
            there = dict(zip(axes, where, strict=True))
            raise InputError(f"claim {claim.id}: several points are {there}: name a further axis")
    curves: dict[Key, list[float | None]] = {}
    for place in asked:
        rest = tuple(place[axis] for axis in axes if axis != claim.along) if claim.along else ()
        curves.setdefault((fs, pattern, *rest), []).append(values.get(tuple(place.values())))
    return curves


def _reduce(claim: Claim, group: Sequence[str], curves: Mapping[Key, list[float]]) -> float:
    """Curves, one a file system and pattern, to one number."""
    if "_ratio_of_" in claim.reduce:
        ratios = _ratios(claim, group, curves)
        return sum(ratios) / len(ratios) if claim.reduce.startswith("mean") else min(ratios)
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
        case "last_above_lowest":
            return max(curve[-1] - min(curve) for curve in curves.values())
        case "last_above_rest":
            return min(curve[-1] - max(curve[:-1]) for curve in curves.values())
    raise AssertionError(claim.reduce)


def _ratios(claim: Claim, group: Sequence[str], curves: Mapping[Key, list[float]]) -> list[float]:
    """How much more the second is than the first, the third than the second, at each point.

    Of patterns or of file systems, in the claim's order.
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
    pairs = [
        (first, second)
        for row in rows
        for one, other in itertools.pairwise(row)
        for first, second in zip(one, other, strict=True)
    ]
    return [_ratio(second, first) for first, second in pairs]


def _ratio(one: float, other: float) -> float:
    """Infinite over nothing, but 1 if both are nothing."""
    if other:
        return one / other
    return float("inf") if one else 1.0
