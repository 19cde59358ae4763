"""Runs programs that belong to no experiment, for commands that need the results of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flashbed.base.errors import RunError
from flashbed.cli.boards import shown_target
from flashbed.cli.progress import bar
from flashbed.cli.remarks import say_unlike
from flashbed.targets.ssh.address import ChosenTarget, is_board

if TYPE_CHECKING:
    import polars as pl

    from flashbed.targets.base import Failure, Program

__all__ = ["TargetResults", "cases_and_requests_on", "measured_on"]


@dataclass(frozen=True)
class TargetResults:
    """The results of a target.

    `cases` has a row for each program that succeeded, in their order. `gc_choices` is that of
    `Batch`.
    """

    cases: pl.DataFrame
    requests: pl.DataFrame
    failures: list[Failure]
    gc_choices: dict[str, tuple[int, ...]]


def cases_and_requests_on(
    name: ChosenTarget, title: str, programs: Sequence[Program]
) -> tuple[pl.DataFrame, pl.DataFrame, list[Failure]]:
    """The measured columns of `cases` and `requests`, and the reasons for cases not measured.

    A row of `cases` for each measured program, in their order. Raises `RunError` for a case that
    failed or a target that cannot run here.
    """
    told = measured_on(name, title, programs)
    for failure in told.failures:
        if not failure.not_measured:
            raise RunError(f"{shown_target(name)}: {failure.case_id}: {failure.message}")
    return told.cases, told.requests, told.failures


def measured_on(
    name: ChosenTarget, title: str, programs: Sequence[Program], jobs: int | None = None
) -> TargetResults:
    """Runs programs, `jobs` guests at once; the programs that failed are in `failures`.

    Raises `RunError` if the target cannot run here or every case failed.
    """
    import polars as pl

    from flashbed.running.of_programs import batches_of
    from flashbed.running.ways import Way
    from flashbed.targets import load_target
    from flashbed.targets.unavailable import Unavailable

    frames: list[pl.DataFrame] = []
    requests: list[pl.DataFrame] = []
    failures: list[Failure] = []
    gc_choices: dict[str, tuple[int, ...]] = {}
    with bar(f"{title} on {shown_target(name)}") as progress:

        def show(what: str, done: int) -> None:
            progress(what, done, len(programs))

        try:
            for batch in batches_of(load_target(name), programs, Way(jobs), show):
                failures += batch.failures
                gc_choices |= batch.gc_choices
                if batch.cases.height:
                    frames.append(batch.cases)
                    requests.append(batch.requests)
        except Unavailable as why:
            raise RunError(f"{shown_target(name)}: {why}") from None
    if not frames:
        first = f": {failures[0].case_id}: {failures[0].message}" if failures else ""
        raise RunError(f"{shown_target(name)}: no case was measured{first}")
    order = pl.DataFrame({"case_id": [program.case_id for program in programs]})
    measured = pl.concat(frames, how="diagonal")
    if is_board(name):
        say_unlike(measured["kernel_release"])
    table = order.join(measured, on="case_id", how="inner", maintain_order="left")
    rows = pl.concat(requests, how="diagonal")
    if rows.width:
        rows = order.join(rows, on="case_id", how="inner", maintain_order="left_right")
    return TargetResults(table, rows, failures, gc_choices)
