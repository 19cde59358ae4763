"""`fb.lifetime`: years until a block reaches its endurance."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from flashbed.api.result import Result
from flashbed.lifetimes.estimate import estimate
from flashbed.lifetimes.given import endurance_of, rate_per_day
from flashbed.lifetimes.observed import cases_of

__all__ = ["lifetime"]


def lifetime(
    result: Result | str | Path, repeat: str | None = None, *, endurance: int | None = None
) -> pl.DataFrame:
    """Estimates how long the flash lasts under each case of a run with `trace="wear"`.

    Args:
        result: A `Result`, or its folder.
        repeat: How often the program runs, as in `10/h`. By default it runs without a pause.
        endurance: Erases that a block lasts. By default the board's profile says.

    Returns:
        A row for each case: `years_low` and `years_high` (null: no end), `mean_erases_per_day` and
        `worst_erases_per_day` of a block, `amplification`, `endurance_cycles`.
    """
    held = result if isinstance(result, Result) else Result(result)
    rounds = None if repeat is None else rate_per_day(repeat)
    rows = []
    for subject in cases_of(held.directory, rounds, case_ids=list(held.cases["case_id"])):
        cycles, _ = endurance_of(subject, endurance)
        found = estimate(subject.observed, cycles)
        work = subject.workload
        rows.append(
            {
                "case_id": subject.name,
                "target": subject.target,
                "years_low": found.low if found else None,
                "years_high": found.high if found else None,
                "mean_erases_per_day": found.mean_block_per_day if found else 0.0,
                "worst_erases_per_day": found.worst_block_per_day if found else 0.0,
                "amplification": work.a_byte_written()["programmed"] if work else None,
                "endurance_cycles": cycles,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
