"""Rows of cases too long to hold: kept in files as they come, looked at without being loaded.

A target gives the rows of a long case in pieces before the case has ended. A consumer that wants
them so gives it a `LongRows`; without one the target keeps them for its batch.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from flashbed.tables.columns import conform

__all__ = ["LongRows"]

TABLES = ("requests", "flash")


class LongRows:
    """Pieces of tables by case. The files are gone when this is."""

    def __init__(self, folder: Path | None = None, target: str | None = None) -> None:
        """In a folder of its own inside `folder`, or where the system keeps temporary files.

        `target` is written into the column of that name.
        """
        self._folder = Path(tempfile.mkdtemp(prefix=".rows.", dir=folder))
        self._target = pl.lit(target, pl.String).alias("target")
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._pieces: dict[tuple[str, str], list[Path]] = {}
        self._number = 0

    def add(self, case_id: str, tables: Mapping[str, pl.DataFrame]) -> None:
        """The next rows of a case; those that begin with the first are in the place of all others.

        That is so where the simulator begins a case again.
        """
        for name, frame in tables.items():
            if not frame.height:
                continue
            if frame["seq"][0] == 0:
                self.forget_table(name, case_id)
            self._number += 1
            path = self._folder / f"{self._number:08}.parquet"
            rows = conform(frame.with_columns(self._target), name)
            rows.write_parquet(path, compression="zstd", compression_level=1)
            self._pieces.setdefault((name, case_id), []).append(path)

    def forget(self, case_id: str) -> None:
        """What came of a case that did not end."""
        for name in TABLES:
            self.forget_table(name, case_id)

    def forget_table(self, table: str, case_id: str) -> None:
        """What came of one of its tables."""
        for path in self._pieces.pop((table, case_id), []):
            path.unlink(missing_ok=True)

    def without_times(self, case_id: str) -> None:
        """Makes the latencies of a case unknown, which they turned out to be."""
        for path in self._pieces.get(("requests", case_id), []):
            unknown = pl.lit(None, pl.Int64).alias("latency_ns")
            rows = pl.read_parquet(path).with_columns(unknown)
            rows.write_parquet(path, compression="zstd", compression_level=1)

    def rows(self, table: str, case_id: str) -> pl.LazyFrame | None:
        """What came of a case so far, in its order; None if it comes whole with its batch."""
        pieces = self._pieces.get((table, case_id))
        return pl.scan_parquet(pieces) if pieces else None

    def take(self, table: str, case_id: str) -> list[Path]:
        """The files of a case's rows, in their order, which are the caller's to move."""
        return self._pieces.pop((table, case_id), [])

    def close(self) -> None:
        """Removes the files that nobody took."""
        self._finalizer()
