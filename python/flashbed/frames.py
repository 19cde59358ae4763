"""Tables of files that may be damaged, or made to do damage: read, or refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

__all__ = ["DamagedError", "read_arrow", "read_parquet"]

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


class DamagedError(ValueError):
    """A table cannot be read. The message is the one of Polars."""


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file. Raises `DamagedError`."""
    return _read(pl.read_parquet, path)


def read_arrow(path: Path) -> pl.DataFrame:
    """An Arrow file. Raises `DamagedError`."""
    return _read(pl.read_ipc, path)


def _read(reader: Callable[[Path], pl.DataFrame], path: Path) -> pl.DataFrame:
    with _silent():
        try:
            return reader(path)
        except _UNREADABLE as why:
            raise DamagedError(str(why)) from None


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
