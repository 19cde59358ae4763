"""A run's answer in a table: the compared choices, the cheapest first.

A choice is a value of each axis that a designer decides (file system, kernel, window, chip, ...) or
that describes the partition (state, faults). The other axes are the work, what the program did.
Choices that did the same works are compared by their sums. Where the works differ, or there is one
choice only, what varies in the work is a column too. Seeds are repetitions: they are added up.

A choice in which calls failed did not do the work, so it stands last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from flashbed.plan.case import AXES, AXIS_COLUMNS
from flashbed.results.failed_calls import failed_words
from flashbed.stack.profiles import USUAL_COMPRESSOR

__all__ = ["CHOICES", "COLUMNS", "COUNTS", "HEADS", "ROWS_MAX", "Answer", "answer"]

ROWS_MAX = 20
COUNTS = (
    *("flash_reads", "flash_programs", "flash_erases", "flush_programs"),
    *("bytes_written", "energy_nj"),
)
"""Columns of `cases` that are summed over works."""
HEADS = {
    "failed": "failed calls",
    "time_ns": "time in calls",
    "flash_time_ns": "chip busy",
    "flash_reads": "page reads",
    "flash_programs": "page writes",
    "flash_erases": "erases",
    "flush_programs": "left in cache",
    "bytes_written": "written",
    "amplification": "WAF",
    "energy_nj": "energy",
}
"""Measures of a case or an answer, in display order -> their headings."""
_UNSAID_IF_0 = ("failed", "flush_programs", "bytes_written", "energy_nj")
_CHOICES_APART = 64
_TIMES = ("time_ns", "flash_time_ns")
_PAGE_BYTES = r"(?:^|\+)page_bytes=(\d+)"
_PART = r"^([^+=]+)(?:\+|$)"
"""In the name of a chip: its pages, where they are not those of the board's profile."""
_CHOSEN = [name for name, about in AXES.items() if about.chosen or about.assumed]
CHOICES = ("target", *_CHOSEN, "window")
"""The target, axes that a designer decides or that describe the partition, who chose a window."""
_WORKS = [name for name in AXIS_COLUMNS if name not in CHOICES]
_REPEATED = "seed"
_FAILED = "failed"
_OF_MKFS = "; mkfs.ubifs writes lzo"
COLUMNS = (*CHOICES, *_WORKS, *_TIMES, *COUNTS, _FAILED, "failed_errno", "time_unknown")
"""The columns of `cases` that are read."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Rows for a person, the quickest first.

    `axes` are the columns in which rows differ. A row of `rows` has these, then `cases`, `failed`,
    `time_ns`, `flash_time_ns`, the columns of COUNTS, and `amplification`; null is unknown. `left`
    is the number of rows not shown. `works` is how many works each row adds up, 0 if the rows are
    single cases. `failing` is the number of rows in which calls failed, and `notes` are sentences
    that belong under the table.
    """

    axes: tuple[str, ...]
    rows: pl.DataFrame
    works: int
    left: int
    failing: int = 0
    notes: tuple[str, ...] = ()

    @property
    def best_by(self) -> str:
        """The column that orders the rows."""
        return "time_ns" if self.rows["time_ns"].null_count() == 0 else "flash_time_ns"

    @property
    def title(self) -> str:
        """What the rows are."""
        rows = self.rows.height + self.left
        first = "least chip time first" if self.best_by == "flash_time_ns" else "fastest first"
        if rows == 1 and self.works:
            title = "1 case" if self.works == 1 else f"The sum of {self.works:,} cases"
            return f"{title}; calls failed" if self.failing else title
        if not self.works or not set(self.axes) <= set(CHOICES):
            each = f"rows, each adds up {self.works:,} cases" if self.works > 1 else "cases"
            title = f"{rows:,} {each}, {first}"
            last = f"; {self.failing:,} with failed calls last" if self.failing else ""
            return title + last
        work = "the same work" if self.works == 1 else f"the same {self.works:,} cases"
        named = f"{rows:,} configurations"
        if self.failing == rows:
            return f"{named}; calls failed in each of them"
        if self.failing:
            did = f"{rows - self.failing:,} of {named} did {work}, {first}"
            return f"{did}; in the others calls failed"
        each = f"doing {work}" if self.works == 1 else f"each row adds up {work}"
        return f"{named}{' ' if self.works == 1 else ', '}{each}, {first}"

    @property
    def measured(self) -> list[str]:
        """Measures that are known and not 0 everywhere; page writes and erases may be 0."""
        names = []
        for name in HEADS:
            values = set(self.rows[name])
            unsaid = {None, 0} if name in _UNSAID_IF_0 else {None}
            if not values <= unsaid:
                names.append(name)
        return names


def answer(
    cases: pl.DataFrame | pl.LazyFrame,
    page_bytes: Mapping[str, int],
    compressors: Mapping[tuple[str, str], str] | None = None,
    apart: Collection[str] = (),
    *,
    part_bytes: Mapping[str, int] | None = None,
    remarks: Sequence[str] = (),
    axes: Sequence[str] | None = None,
    rows_max: int = ROWS_MAX,
) -> Answer:
    """The answer of a run's `cases`; `page_bytes` is each board's page size, `part_bytes` a part's.

    `remarks` become notes.

    `compressors` has the default compressor of a kernel and file system, to be named. `apart` are
    axes that are columns wherever they vary; `axes` are all that are columns, whatever varies. A
    lazy frame is read several times, a few columns each time.
    """
    rows = cases.lazy().select(COLUMNS)
    known = rows.select(
        pl.col(*CHOICES, *_WORKS).n_unique(), pl.col("time_ns").null_count()
    ).collect(engine="streaming").row(0, named=True)  # fmt: skip
    varied = [name for name in (*CHOICES, *_WORKS) if known[name] > 1]
    columns = list(axes or ())
    if axes is None:
        columns = [name for name in varied if name in CHOICES or name in apart]
        columns = columns or [name for name in varied if name != _REPEATED]
    different = [name for name in varied if name not in columns]
    count, works = _works(rows, columns, different)
    if axes is not None:
        count = min(count, _works(rows, columns, [])[0])
    elif not works:
        columns += different
    by = "time_ns" if known["time_ns"] == 0 else "flash_time_ns"
    failing = pl.col(_FAILED).fill_null(0) > 0
    summed = _summed(rows, columns)
    kept = summed.sort(failing, by, "_first", nulls_last=True).head(rows_max)
    profiled = pl.col("board").replace_strict(page_bytes, default=None, return_dtype=pl.Int64)
    part = pl.col("chip").str.extract(_PART)
    of_part = part.replace_strict(dict(part_bytes or {}), default=None, return_dtype=pl.Int64)
    page = pl.coalesce(pl.col("chip").str.extract(_PAGE_BYTES).cast(pl.Int64), of_part, profiled)
    programmed = (pl.col("flash_programs") + pl.col("flush_programs").fill_null(0)) * page
    written = pl.when(pl.col("bytes_written") > 0).then(pl.col("bytes_written"))
    kept = kept.with_columns((programmed / written).alias("amplification"))
    shown = kept.select(*columns, "cases", _FAILED, *_TIMES, *COUNTS, "amplification")
    failed = summed.filter(failing).select(pl.len()).collect(engine="streaming").item()
    return Answer(
        axes=tuple(columns),
        rows=shown.collect(engine="streaming"),
        works=works,
        left=max(0, count - rows_max),
        failing=int(failed),
        notes=(*_notes(rows, compressors or {}), *remarks),
    )


def _notes(rows: pl.LazyFrame, compressors: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """What a reader of the table has to know about its numbers."""
    failed = rows.filter(pl.col(_FAILED) > 0).select("failed_errno").collect(engine="streaming")
    words = failed_words(failed)
    if words is not None:
        yield f"WARNING: {words}: those rows are of less than the program's work"
    unknown = rows.select(pl.col("time_unknown").drop_nulls().unique().sort())
    for why in unknown.collect(engine="streaming")["time_unknown"]:
        yield f"the time is not known: {why}"
    default = rows.filter(pl.col("bytes_written") > 0, pl.col("compressor") == USUAL_COMPRESSOR)
    pairs = default.select("kernel", "fs").unique().sort("fs", "kernel")
    used: dict[str, dict[str, list[str]]] = {}
    for kernel, fs in pairs.collect(engine="streaming").iter_rows():
        if (kernel, fs) in compressors:
            used.setdefault(fs, {}).setdefault(compressors[kernel, fs], []).append(kernel)
    if used:
        named = ", ".join(f"{fs} {_of_kernels(by_name)}" for fs, by_name in used.items())
        yield f"compressor: {named} (the kernel's default{_OF_MKFS if 'ubifs' in used else ''})"


def _of_kernels(by_name: Mapping[str, Sequence[str]]) -> str:
    """A compressor, or several with the kernels that have them."""
    if len(by_name) == 1:
        return next(iter(by_name))
    return " and ".join(f"{name} on Linux {', '.join(those)}" for name, those in by_name.items())


def _summed(rows: pl.LazyFrame, axes: Sequence[str]) -> pl.LazyFrame:
    """The rows of each combination of the axes' values, and the number of the `_first` of them.

    A sum is null if any value is unknown.
    """
    summed = (*_TIMES, *COUNTS, _FAILED)
    # Without any axis there is one group.
    keys = [pl.col(name) for name in axes] or [pl.lit(0).alias("_whole")]
    groups = rows.with_row_index("_first").group_by(*keys)
    others = [name for name in ("board", "chip") if name not in axes]
    found = groups.agg(
        pl.len().alias("cases"),
        pl.col("_first").min(),
        *(pl.col(name).first() for name in others),
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
