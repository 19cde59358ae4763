"""Tables of files that may be damaged, or made to do damage: read, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

__all__ = ["DamagedError", "read_arrow", "read_parquet"]

_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


class DamagedError(ValueError):
    """What Polars says of a file, of which there is nothing that a user could do with."""


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file. Raises `DamagedError`."""
    with _silent():
        try:
            return pl.read_parquet(path)
        except _UNREADABLE as why:
            raise DamagedError(str(why)) from None


def read_arrow(path: Path) -> pl.DataFrame:
    """An Arrow file. Raises `DamagedError`."""
    with _silent():
        try:
            return pl.read_ipc(path)
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
