"""The answer about a run's cases, without what draws its report: every run prints it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.answer import ROWS_MAX, Answer, answer
from flashbed.base.frames import pieces
from flashbed.plan.planned import Plan
from flashbed.results.case_places import Names
from flashbed.results.run_directory import CHIP_ALONE, scan_table
from flashbed.stack.changes import OF_BOARD, changes_of
from flashbed.stack.doubts import remarks
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board, default_compressors, load_board

__all__ = ["answer_of", "answer_of_names"]
_BOARDS_MAX = 64
"""Boards whose remarks are read: a sweep may have thousands."""


def answer_of_names(
    directory: Path, names: Iterable[str], apart: Collection[str] = (), *, ours: bool = False,
    axes: Sequence[str] | None = None, rows_max: int = ROWS_MAX,
    targets: Collection[str] | None = None, packed_by: str | None = None,
) -> Answer | None:  # fmt: skip
    """The answer about cases with these names; None if none of them was measured.

    `names` may be iterated more than once. `apart` are axes that are columns wherever they vary.
    `ours` says that this process wrote the tables. `axes` and `rows_max` are those of `answer`.
    `targets` are the only ones that count, if they are given. `packed_by` is the compressor of the
    UBIFS that the cases begin with, in place of the kernel's.
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
    if targets is not None:
        kept = kept.filter(pl.col("target").is_in(list(targets)))
    boards = ["board", *(axis for axis in OF_BOARD if axis in kept.collect_schema())]
    there = kept.select("kernel", *boards).unique().sort(pl.all()).collect(engine="streaming")
    if there.is_empty():
        return None
    pages = {name: load_board(name).chip.page_bytes for name in there["board"].unique().sort()}
    changed = _changed_boards(there.select(boards).unique(maintain_order=True))
    defaults = default_compressors(there["kernel"].unique().sort())
    usual = kept.filter(pl.col("fs") == "ubifs", pl.col("compressor") == USUAL_COMPRESSOR)
    is_own = packed_by is not None and not usual.head(1).collect().is_empty()
    own = (f"compressor: ubifs {packed_by} (the dump's)",) if is_own else ()
    return answer(
        kept,
        pages,
        {key: name for key, name in defaults.items() if not own or key[1] != "ubifs"},
        apart,
        part_bytes={board.fit.part.name: board.chip.page_bytes for board in changed if board.fit},
        remarks=(*own, *remarks(*changed)),
        axes=axes,
        rows_max=rows_max,
    )


def _changed_boards(rows: pl.DataFrame) -> list[Board]:
    """The boards of these rows that have a chip of the catalogue, or borrowed prices."""
    found = (
        load_board(row["board"]).changed(changes_of(row))
        for row in rows.head(_BOARDS_MAX).iter_rows(named=True)
    )
    return [board for board in found if board.fit is not None or board.like is not None]


def answer_of(
    directory: Path, planned: Plan, apart: Collection[str] = (), *, ours: bool = False,
    packed_by: str | None = None,
) -> Answer | None:  # fmt: skip
    """The answer about these cases of a run directory; None if none of them was measured."""
    return answer_of_names(directory, planned.names, apart, ours=ours, packed_by=packed_by)
