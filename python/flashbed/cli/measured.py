"""Programs that belong to no experiment, run on a target for a command that needs all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashbed.cli.screen import bar
from flashbed.errors import RunError

if TYPE_CHECKING:
    import polars as pl

    from flashbed.targets.base import Program

__all__ = ["cases_on"]


def cases_on(name: str, title: str, programs: Sequence[Program]) -> pl.DataFrame:
    """The measured columns of `cases`, a row a program, in their order.

    Raises `RunError` for a case that failed or a target that cannot run here.
    """
    import polars as pl

    from flashbed.targets import load_target
    from flashbed.targets.base import Unavailable

    frames = []
    with bar(f"{title} on {name}") as progress:

        def show(what: str, done: int) -> None:
            progress(what, done, len(programs))

        try:
            for batch in load_target(name).run(programs, trace_flash=False, progress=show):
                for failure in batch.failures:
                    raise RunError(f"{name}: {failure.case_id}: {failure.message}")
                frames.append(batch.cases)
        except Unavailable as why:
            raise RunError(f"{name}: {why}") from None
    order = pl.DataFrame({"case_id": [program.case_id for program in programs]})
    return order.join(pl.concat(frames, how="diagonal"), on="case_id", maintain_order="left")
