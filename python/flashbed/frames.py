"""Tables of files that may be damaged, or made to do damage: read, or refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

__all__ = ["UNREADABLE", "DamagedError", "pieces", "read_arrow", "read_parquet", "silent"]

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What Polars raises for a file that is damaged, or has other columns."""


_ROWS_AT_ONCE = 1 << 16


class DamagedError(ValueError):
    """A table cannot be read. The message is the one of Polars."""


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file. Raises `DamagedError`."""
    return _read(pl.read_parquet, path)


def read_arrow(path: Path) -> pl.DataFrame:
    """An Arrow file. Raises `DamagedError`."""
    return _read(pl.read_ipc, path)


def pieces(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Rows of a file, some at a time; at least one piece, which may have none."""
    count = rows.select(pl.len()).collect(engine="streaming").item()
    for at in range(0, max(count, 1), _ROWS_AT_ONCE):
        yield rows.slice(at, _ROWS_AT_ONCE).collect(engine="streaming")


def _read(reader: Callable[[Path], pl.DataFrame], path: Path) -> pl.DataFrame:
    with silent():
        try:
            return reader(path)
        except UNREADABLE as why:
            raise DamagedError(str(why)) from None


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
