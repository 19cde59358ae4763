"""Keeps the rows of cases too long for memory in files, and reads them back lazily.

A target yields the rows of a long case in pieces before the case has ended. It passes them to a
`LongRows` if the consumer gives one; otherwise it keeps them for its batch.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from flashbed.base.forks import remover
from flashbed.results.columns import conform

__all__ = ["LongRows"]

TABLES = ("requests", "flash")


class LongRows:
    """Pieces of tables by case. The files are removed with this object."""

    def __init__(self, folder: Path | None = None, target: str | None = None) -> None:
        """Keeps files in a new folder inside `folder`, or in the system's temporary folder.

        `target` fills the column of that name.
        """
        self._folder = Path(tempfile.mkdtemp(prefix=".rows.", dir=folder))
        self._target = pl.lit(target, pl.String).alias("target")
        self._finalizer = weakref.finalize(self, remover(self._folder))
        self._pieces: dict[tuple[str, str], list[Path]] = {}
        self._number = 0

    def add(self, case_id: str, tables: Mapping[str, pl.DataFrame]) -> None:
        """Adds the next rows of a case; rows that begin with the first replace all others.

        The simulator does that when it begins a case again.
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
        """Drops the rows of a case that did not finish."""
        for name in TABLES:
            self.forget_table(name, case_id)

    def forget_table(self, table: str, case_id: str) -> None:
        """Drops a case's rows of one table."""
        for path in self._pieces.pop((table, case_id), []):
            path.unlink(missing_ok=True)

    def without_times(self, case_id: str) -> None:
        """Makes the latencies of a case null, when they turn out to be unknown."""
        for path in self._pieces.get(("requests", case_id), []):
            unknown = pl.lit(None, pl.Int64).alias("latency_ns")
            rows = pl.read_parquet(path).with_columns(unknown)
            rows.write_parquet(path, compression="zstd", compression_level=1)

    def rows(self, table: str, case_id: str) -> pl.LazyFrame | None:
        """A case's rows so far, in order; None if its batch has them all."""
        pieces = self._pieces.get((table, case_id))
        return pl.scan_parquet(pieces) if pieces else None

    def take(self, table: str, case_id: str) -> list[Path]:
        """The files of a case's rows, in order; the caller moves them."""
        return self._pieces.pop((table, case_id), [])

    def close(self) -> None:
        """Removes the files that nothing has taken."""
        self._finalizer()
