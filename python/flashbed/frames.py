"""Tables of files that may be damaged, or made to do damage: read, or refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from flashbed.errors import InputError
from flashbed.footer import extent
from flashbed.places import shown

__all__ = ["DamagedError", "read_parquet"]

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)

CELLS_MAX = 1 << 29
"""Of a table that is read at once: 4 GiB of numbers."""
TEXT_BYTES_MAX = 4 << 30
"""Of all its texts, each as often as it is there: a text that is repeated is in the file once."""


class DamagedError(ValueError):
    """A table cannot be read. The message is the one of Polars."""


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file. Raises `DamagedError`, and `InputError` for one that is too large."""
    try:
        there = extent(path)
    except (OSError, ValueError) as why:
        raise DamagedError(str(why)) from None
    if there.rows * there.columns > CELLS_MAX:
        most = CELLS_MAX // there.columns
        raise InputError(f"{shown(path)}: {there.rows:,} rows, {most:,} at most")
    return _read(pl.read_parquet, path)


def _read(reader: Callable[[Path], pl.DataFrame], path: Path) -> pl.DataFrame:
    with _silent():
        try:
            frame = reader(path)
            if any(kind.is_nested() for kind in frame.schema.values()):
                raise ValueError("a column of lists or structs, which casts to no other")
            text_bytes = sum(
                int(frame[name].str.len_bytes().sum())
                for name, kind in frame.schema.items()
                if kind == pl.String
            )
        except _UNREADABLE as why:
            raise DamagedError(str(why)) from None
    if text_bytes > TEXT_BYTES_MAX:
        most = TEXT_BYTES_MAX >> 20
        raise InputError(f"{shown(path)}: {text_bytes >> 20:,} MiB of text, {most:,} MiB at most")
    return frame


@contextmanager
def _silent() -> Iterator[None]:
    """Polars' readers panic at some damage, and say so on standard error before they raise it."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
