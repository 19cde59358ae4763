"""The paper's sentences, judged: each is an inequality over the measures of a few points.

A claim gets a verdict per file system and, where it says so, per further kernel of the simulator.
The number behind a verdict is kept, so that a reader can disagree with the bound.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from flashbed.experiment import Claim, Compared, Experiment

__all__ = ["AGREES", "DIFFERS", "NOT_MEASURED", "Verdict", "judge"]

AGREES = "agrees"
DIFFERS = "differs"
NOT_MEASURED = "not measured"

_BETWEEN_FS = "largest_difference_between_fs"
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Verdict:
    """One row of the table of claims. Values are in the claim's unit, null if not measured."""

    id: str
    claim: Claim
    fs: str
    kernel: str
    emulator_kernel: str | None
    sim: float | None
    emulator: float | None
    verdict_sim: str
    verdict_emulator: str

    def as_json(self) -> dict[str, str | float | None]:
        """The row as `flashbed reproduce --format json` prints it."""
        return {
            "id": self.id,
            "text": self.claim.text,
            "source": self.claim.source,
            "published": self.claim.published,
            "sim": self.sim,
            "emulator": self.emulator,
            "verdict_sim": self.verdict_sim,
            "verdict_emulator": self.verdict_emulator,
        }


def judge(experiment: Experiment, measured: pl.DataFrame) -> list[Verdict]:
    """Every claim of an experiment, judged on `measures` of its tables."""
    verdicts = []
    for claim in experiment.claim:
        groups = [claim.fs] if claim.reduce == _BETWEEN_FS else [(fs,) for fs in claim.fs]
        for kernel, group in itertools.product((None, *claim.also_kernels), groups):
            verdicts.append(_verdict(experiment, claim, group, kernel, measured))
    return verdicts


def _verdict(
    experiment: Experiment,
    claim: Claim,
    group: Sequence[str],
    kernel: str | None,
    measured: pl.DataFrame,
) -> Verdict:
    """One row; `kernel` is a further kernel of the simulator, which no emulator stands beside."""
    sim = experiment.compared.get("sim")
    emulator = experiment.compared.get("emulator") if kernel is None else None
    if sim is not None and kernel is not None:
        sim = sim.model_copy(update={"kernel": kernel})
    sim_value = _value(claim, group, "sim", sim, measured)
    emulator_value = _value(claim, group, "emulator", emulator, measured)
    fs = " and ".join(group)
    return Verdict(
        id="/".join(part for part in (claim.id, "-".join(group), kernel) if part),
        claim=claim,
        fs=fs,
        kernel=sim.kernel if sim else "",
        emulator_kernel=emulator.kernel if emulator else None,
        sim=sim_value,
        emulator=emulator_value,
        verdict_sim=_holds(claim, sim_value),
        verdict_emulator=_holds(claim, emulator_value),
    )


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
    """The metric at each of the claim's numbers of requests, in its order."""
    rows = measured.filter(
        target=target, board=compared.board, kernel=compared.kernel, fs=fs, pattern=pattern
    )
    values: dict[int, float | None] = dict(rows.select("requests", claim.metric).iter_rows())
    return [values.get(requests) for requests in claim.requests]


def _reduce(
    claim: Claim, group: Sequence[str], curves: dict[tuple[str, str], list[float]]
) -> float:
    """Curves, one a file system and pattern, to one number."""
    if claim.reduce == _BETWEEN_FS:
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
        case "largest_rise":
            return max(b - a for curve in curves.values() for a, b in itertools.pairwise(curve))
        case "last_above_lowest":
            return max(curve[-1] - min(curve) for curve in curves.values())
        case "last_above_rest":
            return min(curve[-1] - max(curve[:-1]) for curve in curves.values())
    raise AssertionError(claim.reduce)
