"""Tables whose measured numbers are moved, for asking whether a verdict depends on them.

Each case, and each request, is scaled by a factor drawn from a seed, in every measured column. The
requests of a case, or those of a kind, share theirs in some draws, and so do the cases of a window
or of a pattern: the mean of hundreds that each have one of their own hardly moves. In other draws
cases and requests exchange what was measured, which is what moves a number that is nothing; or
nothing was written. Of a trace each operation is kept or not. A claim that agrees whatever the
numbers are says nothing of the stack.

`standing` moves the points instead, one side of a comparison at a time: a file system, a pattern,
or one value of an axis, by as much as the source's digits leave open. A sentence that only says
which of two is more has no digits: there one side is moved past the other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl

from flashbed.answers.analysis import judge
from flashbed.answers.analysis.points import table_of
from flashbed.answers.analysis.verdicts import AGREES, FITTED, Verdict
from flashbed.answers.energy.fold import COMPONENTS
from flashbed.plan.claims import Claim
from flashbed.report.judged import JudgedRun, points_of

__all__ = ["CASES", "REQUESTS", "exchanged", "scaled", "standing", "survivors", "unwritten"]

CASES = (
    "time_ns", "flash_time_ns", "flash_reads", "flash_programs", "flash_erases", "energy_nj",
    "energy_cpu_nj", "energy_mem_nj", "ecc_corrected", "ecc_failed", *COMPONENTS,
)  # fmt: skip
REQUESTS = ("latency_ns", "flash_time_ns", "offset_bytes", "result")
FACTORS = ((0.0, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 100.0), (0.0, 0.0, 0.0, 0.0, 1.0, 1.0), (0.0,))
"""Of draws in turn: everything somewhat off, most of it gone, and all of it."""
TOGETHER: tuple[tuple[str, ...], ...] = ((), ("case_id",), ("op",))
"""Of draws in turn: the columns of requests that have one factor together; none, each its own."""
ALIKE: tuple[tuple[str, ...], ...] = ((), ("read_ahead_kib",), ("fs", "pattern"))
"""The same of cases: a window of read-ahead, or a pattern, can be dearer as a whole."""
DRAWS = 60
PRECISION = 0.1
"""How far a side is moved whose sentence has a number without digits of its own."""
PAST = 1000.0
"""How far a side is moved of which only the order is said."""


def scaled(
    frame: pl.DataFrame,
    columns: Sequence[str],
    draw: random.Random,
    choices: Sequence[float] = FACTORS[0],
    together: Sequence[str] = (),
) -> pl.DataFrame:
    """A table with each row's measured columns times one factor, in their own types.

    A factor above 1 adds 1 besides, so that nothing becomes something.
    """
    place = pl.struct(together).rank("dense") - 1 if together else pl.int_range(pl.len())
    placed = frame.with_columns(place.cast(pl.Int64).alias("_place"))
    factors = pl.Series(draw.choices(choices, k=max(1, frame.height)), dtype=pl.Float64)
    there = [name for name in columns if name in frame.columns]
    return (
        placed.with_columns(factors.gather(placed["_place"]).alias("_factor"))
        .with_columns(
            (pl.col(name) * pl.col("_factor") + (pl.col("_factor") > 1))
            .round()
            .cast(frame.schema[name])
            for name in there
        )
        .drop("_factor", "_place")
    )


def exchanged(frame: pl.DataFrame, columns: Sequence[str], draw: random.Random) -> pl.DataFrame:
    """A table whose rows have each other's measured columns, and operations within a case."""
    order = draw.sample(range(frame.height), frame.height)
    there = [name for name in columns if name in frame.columns]
    moved = frame.with_columns(frame[order].select(there))
    if "op" not in frame.columns:
        return moved
    seed = draw.randrange(2**32)
    return moved.with_columns(pl.col("op").shuffle(seed).over("target", "case_id"))


def unwritten(frame: pl.DataFrame) -> pl.DataFrame:
    """A table of operations of which none writes."""
    return frame.with_columns(pl.col("op").replace("write", "read"))


def survivors(run: JudgedRun, target: str = "sim", draws: int = DRAWS) -> list[str]:
    """Claims that agree on a target whatever its numbers are."""
    left = _agreeing(run.verdicts, target)
    cases = run.cases.filter(target=target)
    requests = run.requests.filter(target=target).collect()
    flash = pl.DataFrame() if run.flash is None else run.flash.collect()
    wanted = {table_of(claim.metric) for claim in run.experiment.claim}
    for seed in range(draws):
        if not left:
            break
        draw, kind = random.Random(seed), seed % (len(FACTORS) + 2)
        if kind < len(FACTORS):
            turn = seed // (len(FACTORS) + 2)
            together = TOGETHER[turn % len(TOGETHER)]
            moved = (
                scaled(
                    cases,
                    CASES,
                    draw=draw,
                    choices=FACTORS[kind],
                    together=ALIKE[turn % len(ALIKE)],
                ),
                scaled(requests, REQUESTS, draw=draw, choices=FACTORS[kind], together=together),
            )
        elif kind == len(FACTORS):
            moved = exchanged(cases, CASES, draw), exchanged(requests, REQUESTS, draw)
        else:
            moved = cases, unwritten(requests)
        kept = draw.choices((True, False), k=flash.height)
        seen = flash.filter(pl.Series(kept, dtype=pl.Boolean))
        tables = points_of(run.experiment, moved[0], requests=moved[1], flash=seen, wanted=wanted)
        left &= _agreeing(judge(run.experiment, tables), target)
    return sorted(left)


def _agreeing(verdicts: Sequence[Verdict], target: str) -> set[str]:
    return {one.id for one in verdicts if one.judged[target].verdict == AGREES}


def standing(run: JudgedRun, target: str = "sim") -> list[str]:
    """Claims that agree still when any one side of them moves by the source's precision."""
    agreeing = {
        one.id: one for one in run.verdicts if one.judged[target].verdict in (AGREES, FITTED)
    }
    return sorted(
        name
        for name, verdict in agreeing.items()
        if verdict.further_kernel is None and not _turns(run, verdict, target)
    )


def _turns(run: JudgedRun, verdict: Verdict, target: str) -> bool:
    """Whether moving one side of a claim, up or down, gives it another verdict."""
    claim, fs = verdict.claim, verdict.fs.split(" and ")
    value = verdict.judged[target].value
    assert value is not None
    alone = run.experiment.model_copy(update={"claim": (claim.model_copy(update={"fs": fs}),)})
    name = table_of(claim.metric)
    for axis, side in _sides(claim, fs):
        for factor in _factors(claim, value):
            moved = _moved(run.tables[name], claim.metric, axis=axis, side=side, factor=factor)
            (now, *_) = judge(alone, {name: moved})
            if now.judged[target].verdict not in (AGREES, FITTED):
                return True
    return False


def _sides(claim: Claim, fs: Sequence[str]) -> list[tuple[str, object]]:
    """What one side of a claim can be: each of its file systems, patterns and places on an axis."""
    sides: list[tuple[str, object]] = [("fs", name) for name in fs]
    sides += [("pattern", pattern) for pattern in claim.pattern]
    for place in claim.places:
        sides += [side for side in place.items() if side not in sides]
    return sides


def _factors(claim: Claim, value: float) -> tuple[float, ...]:
    """By how much a side is moved up and down."""
    if claim.low is not None and claim.high is not None:
        share = min(0.99, 1.01 * (claim.high - claim.low) / max(abs(value), 1e-9))
        return (1 + share, 1 - share)
    if not claim.published and claim.bound in (0, 1):
        return (PAST, 1 / PAST, 0.0)
    return (1 + PRECISION, 1 - PRECISION)


def _moved(
    points: pl.DataFrame, metric: str, axis: str, side: object, factor: float
) -> pl.DataFrame:
    """The points with one side's metric times a factor; what is nothing becomes something."""
    value = pl.col(metric).cast(pl.Float64)
    something = (factor - 1) * 100 if metric.endswith("_pct") else factor
    return points.with_columns(
        pl.when(pl.col(axis) == side)
        .then(value * factor + pl.when((value == 0) & (factor > 1)).then(something).otherwise(0.0))
        .otherwise(value)
        .alias(metric)
    )
