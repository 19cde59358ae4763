"""The answer about a run's cases, without what draws its report: every run prints it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.answer import Answer, answer
from flashbed.base.frames import pieces
from flashbed.plan.planned import Plan
from flashbed.results.case_places import Names
from flashbed.results.run_directory import CHIP_ALONE, scan_table
from flashbed.stack.profiles import default_compressors, load_board

__all__ = ["answer_of", "answer_of_names"]


def answer_of_names(
    directory: Path, names: Iterable[str], apart: Collection[str] = (), *, ours: bool = False
) -> Answer | None:
    """The answer about cases with these names; None if none of them was measured.

    `names` may be iterated more than once. `apart` are axes that are columns wherever they vary.
    `ours` says that this process wrote the tables.
    """
    if not (directory / "cases.parquet").is_file():
        return None
    wanted = Names.of(names)
    chosen = pl.col("case_id").map_batches(wanted.has, pl.Boolean(), is_elementwise=True)
    # Only the needed columns are read: a sweep's table may not fit into memory.
    kept = scan_table(directory, "cases", ours=ours)
    keys = kept.select("case_id", "target")
    if not all(
        wanted.has(rows["case_id"]).all() and (rows["target"] != CHIP_ALONE).all()
        for rows in pieces(keys)
    ):
        kept = kept.filter(chosen, pl.col("target") != CHIP_ALONE)
    there = kept.select("board", "kernel").unique().sort(pl.all()).collect(engine="streaming")
    if there.is_empty():
        return None
    pages = {name: load_board(name).chip.page_bytes for name in there["board"].unique().sort()}
    return answer(kept, pages, default_compressors(there["kernel"].unique().sort()), apart)


def answer_of(
    directory: Path, planned: Plan, apart: Collection[str] = (), *, ours: bool = False
) -> Answer | None:
    """The answer about these cases of a run directory; None if none of them was measured."""
    return answer_of_names(directory, planned.names, apart, ours=ours)
