"""Tables whose measured numbers are moved, for asking whether a verdict depends on them.

Each case, and each request, is scaled by a factor of its own, drawn from a seed, in every measured
column. A claim that agrees whatever the numbers are says nothing of the stack.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl

from flashbed.analysis import judge
from flashbed.analysis.claims import AGREES, Verdict
from flashbed.analysis.points import table_of
from flashbed.energy.fold import COMPONENTS
from flashbed.report.judged import JudgedRun, points_of

__all__ = ["CASES", "REQUESTS", "scaled", "survivors"]

CASES = (
    "time_ns", "flash_time_ns", "flash_reads", "flash_programs", "flash_erases", "energy_nj",
    "energy_cpu_nj", "energy_mem_nj", *COMPONENTS,
)  # fmt: skip
REQUESTS = ("latency_ns", "flash_time_ns")
FACTORS = ((0.0, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0), (0.0, 0.0, 0.0, 0.0, 1.0, 1.0))
"""Of draws in turn: everything somewhat off, and most of it gone."""
DRAWS = 40


def scaled(
    frame: pl.DataFrame,
    columns: Sequence[str],
    draw: random.Random,
    choices: Sequence[float] = FACTORS[0],
) -> pl.DataFrame:
    """A table with each row's measured columns times one factor, in their own types."""
    factors = pl.Series("_factor", draw.choices(choices, k=frame.height), dtype=pl.Float64)
    there = [name for name in columns if name in frame.columns]
    return (
        frame.with_columns(factors)
        .with_columns(
            (pl.col(name) * pl.col("_factor")).round().cast(frame.schema[name]) for name in there
        )
        .drop("_factor")
    )


def survivors(run: JudgedRun, target: str = "sim", draws: int = DRAWS) -> list[str]:
    """Claims that agree on a target and go on agreeing whatever its numbers are."""
    left = _agreeing(run.verdicts, target)
    cases = run.cases.filter(target=target)
    requests = run.requests.filter(target=target)
    wanted = {table_of(claim.metric) for claim in run.experiment.claim}
    for seed in range(draws):
        if not left:
            break
        draw, choices = random.Random(seed), FACTORS[seed % len(FACTORS)]
        moved = scaled(cases, CASES, draw, choices), scaled(requests, REQUESTS, draw, choices)
        tables = points_of(run.experiment, *moved, run.directory, wanted)
        left &= _agreeing(judge(run.experiment, tables), target)
    return sorted(left)


def _agreeing(verdicts: Sequence[Verdict], target: str) -> set[str]:
    return {one.id for one in verdicts if one.judged[target].verdict == AGREES}
