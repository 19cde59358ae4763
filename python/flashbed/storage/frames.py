"""Tables of files that may be damaged, or made to do damage: read, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import polars.selectors as cs

from flashbed.errors import InputError
from flashbed.paths import shown
from flashbed.storage.footer import extent

__all__ = [
    "UNREADABLE",
    "DamagedError",
    "check_columns",
    "check_extent",
    "check_text",
    "pieces",
    "read_parquet",
    "silent",
]

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What Polars raises for a file that is damaged, or has other columns."""
CELLS_MAX = 1 << 29
"""Of a table: 4 GiB of numbers."""
TEXT_BYTES_MAX = 4 << 30
"""Of all its texts, each as often as it is there: a text that is repeated is in the file once."""
_ROWS_AT_ONCE = 1 << 16


class DamagedError(ValueError):
    """A table cannot be read. The message is the one of Polars."""


def check_extent(path: Path) -> None:
    """Refuses a Parquet file before any of it is read.

    Raises `DamagedError`, and `InputError` for one that is too large.
    """
    try:
        there = extent(path)
    except (OSError, ValueError) as why:
        raise DamagedError(str(why)) from None
    if there.rows * there.columns > CELLS_MAX:
        most = CELLS_MAX // there.columns
        raise InputError(f"{shown(path)}: {there.rows:,} rows, {most:,} at most")


def check_columns(schema: Mapping[str, pl.DataType]) -> None:
    """Raises `ValueError` for a column of lists or structs, which casts to no other."""
    odd = [name for name, kind in schema.items() if kind.is_nested()]
    if odd:
        raise ValueError(f"{odd[0]}: a column of lists or structs")


def check_text(path: Path, text_bytes: int) -> None:
    """Raises `InputError` for more text than a table may have."""
    if text_bytes > TEXT_BYTES_MAX:
        most = TEXT_BYTES_MAX >> 20
        raise InputError(f"{shown(path)}: {text_bytes >> 20:,} MiB of text, {most:,} MiB at most")


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file. Raises `DamagedError`, and `InputError` for one that is too large."""
    check_extent(path)
    with silent():
        try:
            check_columns(pl.read_parquet_schema(path))
            frame = pl.read_parquet(path)
            lengths = frame.select(cs.string().str.len_bytes().sum())
        except UNREADABLE as why:
            raise DamagedError(str(why)) from None
    check_text(path, sum(lengths.row(0)) if lengths.width else 0)
    return frame


def pieces(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Rows of a file, some at a time; at least one piece, which may have none."""
    count = rows.select(pl.len()).collect(engine="streaming").item()
    for at in range(0, max(count, 1), _ROWS_AT_ONCE):
        yield rows.slice(at, _ROWS_AT_ONCE).collect(engine="streaming")


@contextmanager
def silent() -> Iterator[None]:
    """Polars' readers panic at some damage, and say so on standard error before they raise it."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
