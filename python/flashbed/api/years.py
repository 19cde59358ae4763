"""`fb.lifetime`: years until a block reaches its endurance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from flashbed.answers.lifetimes.estimate import Estimate
from flashbed.answers.lifetimes.given import endurance_of, rate_per_day
from flashbed.answers.lifetimes.mix import Mix, mixes_of
from flashbed.answers.lifetimes.observed import cases_of
from flashbed.answers.lifetimes.subject import Subject
from flashbed.api.renamed import renamed
from flashbed.api.result import Result
from flashbed.base.errors import InputError

__all__ = ["lifetime"]

_Run = Result | str | Path


@renamed(repeat="rate")
def lifetime(
    result: _Run | Sequence[_Run],
    rate: str | Sequence[str] | None = None,
    *,
    endurance: int | None = None,
) -> pl.DataFrame:
    """Estimates how long the flash lasts under each case of a run with `trace="wear"`.

    Args:
        result: A `Result`, or its folder; or a list of them, for programs that share a flash. Both
            ends are measured where the folder has runs until free space was used up: those that
            `flashbed lifetime` left there. They are bounds elsewhere.
        rate: How often the program runs, as in `10/h`; for a list, the rate of each. Without it,
            only programs that sleep for most of their time have years.
        endurance: Erases that a block lasts. By default the board's profile says.

    Returns:
        A row for each case: its axes, `years_low` and `years_high` (null: no end, or not known),
        `mean_erases_per_day` and `worst_erases_per_day` of a block, `amplification`,
        `endurance_cycles`. For a list a row for each flash, and `shares`, the share of each program
        in the erases.

    Raises:
        errors.InputError: a rate cannot be, or the programs of a list share no flash.
    """
    if isinstance(result, (Result, str, Path)):
        if not isinstance(rate, str | None):
            raise InputError("rate: one result has one rate")
        return _frame([_row(subject, endurance) for subject in _subjects(result, rate)])
    results = list(result)
    rates = [rate] * len(results) if isinstance(rate, str | None) else list(rate)
    if not results or len(rates) != len(results):
        raise InputError(f"rate: {len(rates)} rates for {len(results)} results")
    programs = {
        str(number): _subjects(run, its)
        for number, (run, its) in enumerate(zip(results, rates, strict=True), start=1)
    }
    return _frame([_mixed_row(mix, endurance) for mix in mixes_of(programs)])


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _subjects(result: _Run, rate: str | None) -> list[Subject]:
    held = result if isinstance(result, Result) else Result(result)
    rounds = None if rate is None else rate_per_day(rate)
    once = held.cases.filter(pl.col("rounds").fill_null("1") == "1")
    return cases_of(held.directory, rounds, case_ids=list(once["case_id"]))


def _row(subject: Subject, endurance: int | None) -> dict[str, Any]:
    cycles, _ = endurance_of(subject, endurance)
    work = subject.workload
    return {
        "case_id": subject.name,
        "target": subject.target,
        **subject.axes,
        **_years(subject.lasting(cycles)),
        "amplification": work.a_byte_written()["programmed"] if work else None,
        "endurance_cycles": cycles,
    }


def _mixed_row(mix: Mix, endurance: int | None) -> dict[str, Any]:
    cycles, _ = endurance_of(mix.parts[0], endurance)
    return {
        "case_id": mix.name,
        "target": mix.parts[0].target,
        **mix.axes,
        **_years(mix.lasting(cycles)),
        "endurance_cycles": cycles,
        "shares": mix.shares(),
    }


def _years(found: Estimate | None) -> dict[str, float | None]:
    return {
        "years_low": found.low if found else None,
        "years_high": found.high if found else None,
        "mean_erases_per_day": found.mean_block_per_day if found else None,
        "worst_erases_per_day": found.worst_block_per_day if found else None,
    }
