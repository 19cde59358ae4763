"""Programs that belong to no experiment, run on a target for a command that needs all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashbed.cli.boards import shown_target
from flashbed.cli.screen import bar
from flashbed.errors import RunError

if TYPE_CHECKING:
    import polars as pl

    from flashbed.targets.base import Failure, Program

__all__ = ["cases_and_requests_on", "cases_or_failures"]


def cases_and_requests_on(
    name: str, title: str, programs: Sequence[Program]
) -> tuple[pl.DataFrame, pl.DataFrame, list[Failure]]:
    """The measured columns of `cases`, a row a program that was measured, in their order.

    And of `requests`, and what the target lacks something for. Raises `RunError` for a case that
    failed or a target that cannot run here.
    """
    table, requests, failures = _run(name, title, programs)
    for failure in failures:
        if not failure.not_measured:
            raise RunError(f"{shown_target(name)}: {failure.case_id}: {failure.message}")
    lacking = [failure.case_id for failure in failures]
    return table.filter(~table["case_id"].is_in(lacking)), requests, failures


def cases_or_failures(
    name: str, title: str, programs: Sequence[Program]
) -> tuple[pl.DataFrame, list[Failure]]:
    """The cases with a row for each that did not fail, and those that did.

    Raises `RunError` if the target cannot run here or no case was left.
    """
    table, _, failures = _run(name, title, programs)
    return table, failures


def _run(
    name: str, title: str, programs: Sequence[Program]
) -> tuple[pl.DataFrame, pl.DataFrame, list[Failure]]:
    import polars as pl

    from flashbed.targets import load_target
    from flashbed.targets.base import Unavailable

    frames: list[pl.DataFrame] = []
    requests: list[pl.DataFrame] = []
    failures: list[Failure] = []
    with bar(f"{title} on {shown_target(name)}") as progress:

        def show(what: str, done: int) -> None:
            progress(what, done, len(programs))

        try:
            for batch in load_target(name).run(programs, trace_flash=False, progress=show):
                failures += batch.failures
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
    table = order.join(measured, on="case_id", maintain_order="left")
    return table, pl.concat(requests, how="diagonal"), failures
