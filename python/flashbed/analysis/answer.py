"""A run's answer in a table: the compared choices, the cheapest first.

A choice is a value of each axis that a designer decides (file system, kernel, window, chip, ...).
The other axes are the work, what the program did. Choices that did the same works are compared by
their sums. Where the works differ, each case is a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from flashbed.plan.case import AXES, AXIS_COLUMNS

__all__ = ["COLUMNS", "COUNTS", "HEADS", "ROWS_MAX", "Answer", "answer"]

ROWS_MAX = 20
COUNTS = ("flash_reads", "flash_programs", "flash_erases", "bytes_written", "energy_nj")
"""Columns of `cases` that are summed over works."""
HEADS = {
    "time_ns": "time",
    "flash_time_ns": "chip time",
    "flash_reads": "reads",
    "flash_programs": "programs",
    "flash_erases": "erases",
    "bytes_written": "written",
    "amplification": "amplification",
    "energy_nj": "energy",
}
"""Measures of a case or an answer, in display order -> their headings."""
_CHOICES_APART = 64
_TIMES = ("time_ns", "flash_time_ns")
_FLUSHED = "flush_programs"
_PAGE_BYTES = r"(?:^|\+)page_bytes=(\d+)"
"""In the name of a chip: its pages, where they are not those of the board's profile."""
_CHOICES = ["target", *(name for name, about in AXES.items() if about.chosen), "window"]
_WORKS = [name for name in AXIS_COLUMNS if name not in _CHOICES]
COLUMNS = (*_CHOICES, *_WORKS, *_TIMES, *COUNTS, _FLUSHED)
"""The columns of `cases` that are read."""


@dataclass(frozen=True)
class Answer:
    """Rows for a person, the quickest first.

    `axes` are the columns in which rows differ. A row of `rows` has these, then `cases`, `time_ns`,
    `flash_time_ns`, the columns of COUNTS, and `amplification`; null is unknown. `left` is the
    number of rows not shown. `works` is how many works each choice did, 0 if the rows are single
    cases.
    """

    axes: tuple[str, ...]
    rows: pl.DataFrame
    works: int
    left: int

    @property
    def best_by(self) -> str:
        """The column that orders the rows."""
        return "time_ns" if self.rows["time_ns"].null_count() == 0 else "flash_time_ns"

    @property
    def title(self) -> str:
        """What the rows are."""
        rows = self.rows.height + self.left
        by = "chip time" if self.best_by == "flash_time_ns" else "time"
        if not self.works:
            return f"{rows:,} cases, the least {by} first"
        if rows == 1:
            return "1 case" if self.works == 1 else f"The sum over {self.works:,} cases"
        each = "the same work" if self.works == 1 else f"the sum over the same {self.works:,} cases"
        return f"{rows:,} choices, {each} for each, the least {by} first"

    @property
    def measured(self) -> list[str]:
        """Measures that are known and not 0 everywhere; programs and erases may be 0."""
        names = []
        for name in HEADS:
            values = set(self.rows[name])
            unsaid = {None, 0} if name in ("bytes_written", "energy_nj") else {None}
            if not values <= unsaid:
                names.append(name)
        return names


def answer(cases: pl.DataFrame | pl.LazyFrame, page_bytes: Mapping[str, int]) -> Answer:
    """The answer of a run's `cases`; `page_bytes` is each board's page size.

    A lazy frame is read several times, a few columns each time.
    """
    rows = cases.lazy().select(COLUMNS)
    known = rows.select(
        pl.col(*_CHOICES, *_WORKS).n_unique(), pl.col("time_ns").null_count()
    ).collect(engine="streaming").row(0, named=True)  # fmt: skip
    choices = [name for name in _CHOICES if known[name] > 1]
    different = [name for name in _WORKS if known[name] > 1]
    count, works = _works(rows, choices, different)
    axes = choices if works else [*choices, *different]
    by = "time_ns" if known["time_ns"] == 0 else "flash_time_ns"
    summed = _summed(rows, axes).sort(by, "_first", nulls_last=True).head(ROWS_MAX)
    profiled = pl.col("board").replace_strict(page_bytes, default=None, return_dtype=pl.Int64)
    page = pl.coalesce(pl.col("chip").str.extract(_PAGE_BYTES).cast(pl.Int64), profiled)
    programmed = (pl.col("flash_programs") + pl.col(_FLUSHED).fill_null(0)) * page
    written = pl.when(pl.col("bytes_written") > 0).then(pl.col("bytes_written"))
    kept = summed.with_columns((programmed / written).alias("amplification"))
    shown = kept.select(*axes, "cases", *_TIMES, *COUNTS, "amplification")
    return Answer(tuple(axes), shown.collect(engine="streaming"), works, max(0, count - ROWS_MAX))


def _summed(rows: pl.LazyFrame, axes: Sequence[str]) -> pl.LazyFrame:
    """The rows of each combination of the axes' values, and the number of the `_first` of them.

    A sum is null if any value is unknown.
    """
    summed = (*_TIMES, *COUNTS, _FLUSHED)
    # Without any axis there is one group.
    keys = [pl.col(name) for name in axes] or [pl.lit(0).alias("_whole")]
    groups = rows.with_row_index("_first").group_by(*keys)
    others = [name for name in ("board", "chip") if name not in axes]
    found = groups.agg(
        pl.len().alias("cases"),
        pl.col("_first").min(),
        pl.col(*others).first(),
        pl.col(*summed).sum(),
        pl.col(*summed).null_count().name.suffix(" unknown"),
    )
    return found.with_columns(
        pl.when(pl.col(f"{name} unknown") == 0).then(name).alias(name) for name in summed
    )


def _works(rows: pl.LazyFrame, choices: Sequence[str], different: Sequence[str]) -> tuple[int, int]:
    """The number of rows of the answer, and how many works every choice did.

    The second is 0 if choices did different works, so that each case is a row.
    """

    def count(names: Sequence[str], only: pl.Expr | bool = True) -> int:
        if not names:
            return 1
        unique = rows.filter(only).select(names).unique().select(pl.len())
        return int(unique.collect(engine="streaming").item())

    chosen, works = count(choices), count(different)
    if 1 < chosen <= _CHOICES_APART:  # works of one choice at a time take less memory
        each = rows.select(choices).unique().collect(engine="streaming")
        both = sum(
            count(different, pl.all_horizontal(pl.col(k).eq_missing(v) for k, v in one.items()))
            for one in each.iter_rows(named=True)
        )
    else:
        both = count([*choices, *different])
    return (chosen, works) if both == chosen * works else (both, 0)
