"""Reads tables that may be damaged or malicious, or refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import polars as pl
import polars.selectors as cs

from flashbed.base.copies import DamagedError, copy
from flashbed.base.errors import InputError
from flashbed.base.footer import extent
from flashbed.base.paths import shown

__all__ = [
    "UNREADABLE",
    "DamagedError",
    "as_csv",
    "check_extent",
    "check_text",
    "open_parquet",
    "pieces",
    "read_parquet",
    "scan_parquet",
]

UNREADABLE = (pl.exceptions.PolarsError, OSError, ValueError)
"""Exceptions for a file that is damaged or has other columns."""
CELLS_MAX = 1 << 29
"""Limit of a table: 4 GiB of numbers."""
TEXT_BYTES_MAX = 4 << 30
"""Limit of a table's texts, repetitions counted: the file holds a repeated text once."""
_ROWS_AT_ONCE = 1 << 16
_CELLS_HELD = 1 << 20
_FORMULA = r"^[=+\-@\t\r]"
_scanned: list[IO[bytes]] = []
"""Copies that lazy frames may still read."""


def check_extent(path: Path) -> int:
    """Refuses a Parquet file before any of it is read. Returns its number of cells.

    Raises `DamagedError`, and `InputError` for a file that is too large.
    """
    try:
        there = extent(path)
    except (OSError, ValueError) as why:
        raise DamagedError(str(why)) from None
    if there.rows * there.columns > CELLS_MAX:
        most = CELLS_MAX // there.columns
        raise InputError(f"{shown(path)}: {there.rows:,} rows, {most:,} at most")
    return there.rows * there.columns


def check_text(path: Path, text_bytes: int) -> None:
    """Raises `InputError` for more text than a table may have."""
    if text_bytes > TEXT_BYTES_MAX:
        most = TEXT_BYTES_MAX >> 20
        raise InputError(f"{shown(path)}: {text_bytes >> 20:,} MiB of text, {most:,} MiB at most")


def read_parquet(path: Path) -> pl.DataFrame:
    """Reads a Parquet file. Raises `DamagedError`, and `InputError` for one that is too large."""
    check_extent(path)
    with copy(path) as file:
        frame = pl.read_parquet(_name(file), glob=False)
    lengths = frame.select(cs.string().str.len_bytes().sum())
    check_text(path, sum(lengths.row(0)) if lengths.width else 0)
    return frame


def scan_parquet(path: Path) -> pl.LazyFrame:
    """Scans a Parquet file, however long it is."""
    return open_parquet(path).lazy()


def open_parquet(path: Path) -> pl.DataFrame | pl.LazyFrame:
    """A short table, or a lazy frame of a long one, whose copy exists until this process ends."""
    if check_extent(path) <= _CELLS_HELD:
        return read_parquet(path)
    file = copy(path)
    _scanned.append(file)
    return pl.scan_parquet(_name(file), glob=False)


def as_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts as CSV may hold them: a spreadsheet takes one that begins like a formula for one.

    An apostrophe before it makes it text there. Numbers stay as they are.
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(
        pl.when(pl.col(name).str.contains(_FORMULA))
        .then(pl.concat_str(pl.lit("'"), pl.col(name)))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    )


def _name(file: IO[bytes]) -> str:
    return f"/proc/self/fd/{file.fileno()}"


def pieces(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yields rows of a file in pieces; at least one piece, which may be empty."""
    count = rows.select(pl.len()).collect(engine="streaming").item()
    for at in range(0, max(count, 1), _ROWS_AT_ONCE):
        yield rows.slice(at, _ROWS_AT_ONCE).collect(engine="streaming")
