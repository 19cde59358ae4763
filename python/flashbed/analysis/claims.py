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

import polars as pl

from flashbed.experiment import Claim, Compared, Experiment

__all__ = ["AGREES", "DIFFERS", "JUDGED", "NOT_MEASURED", "Judged", "Verdict", "judge"]

JUDGED = ("sim", "uml", "emulator")
"""The targets that get verdicts, in the order in which they are shown."""

AGREES = "agrees"
DIFFERS = "differs"
NOT_MEASURED = "not measured"

_BETWEEN_FS = ("largest_difference_between_fs", "smallest_ratio_of_fs")
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


@dataclass(frozen=True)
class Verdict:
    """One row of the table of claims: a claim on a file system, by target."""

    id: str
    claim: Claim
    fs: str
    judged: Mapping[str, Judged]

    def as_json(self) -> dict[str, str | float | None]:
        """The row as `flashbed reproduce --format json` prints it."""
        return {
            "id": self.id,
            "text": self.claim.text,
            "source": self.claim.source,
            "published": self.claim.published,
            **{target: judged.value for target, judged in self.judged.items()},
            **{f"verdict_{target}": judged.verdict for target, judged in self.judged.items()},
        }


def judge(experiment: Experiment, measured: pl.DataFrame, rated: pl.DataFrame) -> list[Verdict]:
    """Every claim of an experiment, judged on `measures` and `rates` of its tables."""
    verdicts = []
    for claim in experiment.claim:
        groups = [claim.fs] if claim.reduce in _BETWEEN_FS else [(fs,) for fs in claim.fs]
        table = measured if claim.of_pairs else rated
        for kernel, group in itertools.product((None, *claim.also_kernels), groups):
            verdicts.append(_verdict(experiment, claim, group, kernel, table))
    return verdicts


def _verdict(
    experiment: Experiment,
    claim: Claim,
    group: Sequence[str],
    kernel: str | None,
    measured: pl.DataFrame,
) -> Verdict:
    """One row; `kernel` is a further kernel of the simulator, which no real one stands beside."""
    judged = {}
    for target in JUDGED:
        compared = experiment.compared.get(target)
        if compared is not None and kernel is not None:
            further = compared.model_copy(update={"kernel": kernel})
            compared = further if target == "sim" else None
        value = _value(claim, group, target, compared, measured)
        judged[target] = Judged(compared.kernel if compared else None, value, _holds(claim, value))
    identity = "/".join(part for part in (claim.id, "-".join(group), kernel) if part)
    return Verdict(identity, claim, " and ".join(group), judged)


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
    measured: pl.DataFrame,
) -> float | None:
    """The claim's number on a target; null unless every point it speaks of was measured."""
    if compared is None:
        return None
    curves: dict[tuple[str, str], list[float | None]] = {
        (fs, pattern): _curve(claim, fs, pattern, target, compared, measured)
        for fs, pattern in itertools.product(group, claim.pattern)
    }
    if any(value is None for curve in curves.values() for value in curve):
        return None
    known = {key: [value for value in curve if value is not None] for key, curve in curves.items()}
    return round(_reduce(claim, group, known), 6)


def _curve(
    claim: Claim, fs: str, pattern: str, target: str, compared: Compared, measured: pl.DataFrame
) -> list[float | None]:
    """The metric at each of the claim's numbers and sizes of requests, in its order."""
    rows = measured.filter(
        target=target, board=compared.board, kernel=compared.kernel, fs=fs, pattern=pattern
    )
    if claim.request_bytes is None:
        values: dict[int, float | None] = dict(rows.select("requests", claim.metric).iter_rows())
        return [values.get(requests) for requests in claim.requests]
    columns = rows.select("requests", "request_bytes", claim.metric).iter_rows()
    sized = {(requests, size): value for requests, size, value in columns}
    return [sized.get(point) for point in itertools.product(claim.requests, claim.request_bytes)]


def _reduce(
    claim: Claim, group: Sequence[str], curves: dict[tuple[str, str], list[float]]
) -> float:
    """Curves, one a file system and pattern, to one number."""
    if claim.reduce in ("smallest_ratio_of_patterns", "smallest_ratio_of_fs"):
        return _smallest_ratio(claim, group, curves)
    if claim.reduce == "largest_difference_between_fs":
        first, second = group
        return max(
            abs(one - other)
            for pattern in claim.pattern
            for one, other in zip(curves[first, pattern], curves[second, pattern], strict=True)
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
        case "largest_over_smallest":
            return max(everything) / min(everything)
        case "largest_rise":
            return max(b - a for curve in curves.values() for a, b in itertools.pairwise(curve))
        case "last_above_lowest":
            return max(curve[-1] - min(curve) for curve in curves.values())
        case "last_above_rest":
            return min(curve[-1] - max(curve[:-1]) for curve in curves.values())
    raise AssertionError(claim.reduce)


def _smallest_ratio(
    claim: Claim, group: Sequence[str], curves: dict[tuple[str, str], list[float]]
) -> float:
    """How much more the second is than the first, the third than the second, at each point.

    Of patterns or of file systems, in the claim's order; the smallest of all such ratios. A first
    of nothing is left out where the second is nothing too, and infinitely less otherwise.
    """
    if claim.reduce == "smallest_ratio_of_patterns":
        rows = [[curves[fs, pattern] for pattern in claim.pattern] for fs in group]
    else:
        rows = [[curves[fs, pattern] for fs in group] for pattern in claim.pattern]
    pairs = [
        (first, second)
        for row in rows
        for one, other in itertools.pairwise(row)
        for first, second in zip(one, other, strict=True)
    ]
    return min(
        second / first if first else float("inf") if second else 1.0 for first, second in pairs
    )
