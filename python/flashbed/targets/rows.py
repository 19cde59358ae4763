"""Rows of cases too long to hold: kept in files as they come, looked at without being loaded.

A target that can (`sim`) gives the rows of a long case in pieces before the case has ended. A
consumer that wants them so gives it a `LongRows`; without one the target keeps them for its batch.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from flashbed.tables import conform

__all__ = ["LongRows"]


class LongRows:
    """Pieces of tables by case. The files are gone when this is."""

    def __init__(self, folder: Path | None = None) -> None:
        """In a folder of its own inside `folder`, or where the system keeps temporary files."""
        self._folder = Path(tempfile.mkdtemp(prefix=".rows-", dir=folder))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._pieces: dict[tuple[str, str], list[Path]] = {}
        self._number = 0

    def add(self, case_id: str, tables: Mapping[str, pl.DataFrame]) -> None:
        """The next rows of a case; those that begin with the first are in the place of all others.

        That is so where the simulator begins a case again.
        """
        for name, frame in tables.items():
            pieces = self._pieces.setdefault((name, case_id), [])
            if not frame.height:
                continue
            if frame["seq"][0] == 0:
                pieces.clear()
            self._number += 1
            path = self._folder / f"{self._number:08}.parquet"
            conform(frame, name).write_parquet(path, compression="zstd", compression_level=1)
            pieces.append(path)

    def take(self, table: str, case_id: str) -> pl.LazyFrame | None:
        """What came of a case, in its order; None if it came whole with its batch."""
        pieces = self._pieces.pop((table, case_id), [])
        return pl.scan_parquet(pieces) if pieces else None
