"""Reads tables of a run directory and its parts, whole or in pieces, and merges them.

A folder keeps a table as one file. For cases too long for memory it keeps numbered pieces, and the
last rows in a file after them. Merging uses bounded memory. Parts in the cases' order are scanned
one after another while the table is written. Rows out of order are distributed to windows of at
most `ROWS_AT_ONCE` rows, and one window's file is sorted at a time. A window that is a single
longer case is in order already.

Row groups have a fixed number of rows, so a table's bytes do not depend on its pieces.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flashbed.errors import InputError, RunError
from flashbed.formats.names import FORCED
from flashbed.paths import shown
from flashbed.plan.case import AXES, CONDITIONS
from flashbed.storage.copier import ROW_GROUP_ROWS, sink
from flashbed.storage.copies import copied
from flashbed.storage.files import whole
from flashbed.storage.footer import extent
from flashbed.storage.frames import UNREADABLE, check_extent, read_parquet
from flashbed.tables.columns import SCHEMAS, Rows, conform
from flashbed.tables.places import Places, places_of, runs_of

__all__ = [
    "FINISHED",
    "ROW_GROUP_ROWS",
    "as_now",
    "made_ours",
    "merge_table",
    "places_in",
    "stored",
    "write_parquet",
]

ROWS_AT_ONCE = 1 << 17
FINISHED: dict[str, pl.DataType] = {
    "case_id": pl.String(), "target": pl.String(), "key": pl.String(),
}  # fmt: skip
"""Columns of `finished`, the list of a folder's cases."""
_CASE = ("case_id", "target")
_WHOLE = pl.Int64()


def write_parquet(rows: pl.DataFrame | pl.LazyFrame, path: Path) -> None:
    """Writes a file whole or not at all; equal rows give equal bytes."""
    with whole(path) as new:
        sink(rows.lazy(), new)


def made_ours(file: Path) -> None:
    """Replaces a file that another process has left by a copy.

    Copying our own table gives the same bytes. Raises `InputError` for a damaged file.
    """
    try:
        check_extent(file)
    except UNREADABLE:
        raise _damaged(file) from None
    with whole(file) as new, new.open("r+b") as there:
        try:
            copied(file, there)
        except UNREADABLE:
            raise _damaged(file) from None


def stored(folder: Path, name: str, *, ours: bool = False) -> pl.DataFrame | None:
    """A short table of a run directory or of a part, if it exists.

    Columns that an earlier version did not have are null. A file of this process (`ours`) is read
    without copying it.
    """
    for file in _files(folder, name):
        try:
            frame = pl.read_parquet(file, glob=False) if ours else read_parquet(file)
            if name in SCHEMAS:
                return as_now(conform(frame, name), name)
            finished = frame.select(pl.col(column).cast(kind) for column, kind in FINISHED.items())
            if any(finished.null_count().row(0)):
                raise ValueError("a case without a name")
            return finished
        except UNREADABLE:
            raise _damaged(file) from None
    return None


def as_now(frame: Rows, table: str) -> Rows:
    """Adds what earlier versions did not record because it had one value: windows were set."""
    if table != "cases":
        return frame
    usual = {axis: AXES[axis].cell(AXES[axis].usual) for axis in CONDITIONS}
    return frame.with_columns(
        pl.col(axis).fill_null(value) for axis, value in {"window": FORCED, **usual}.items()
    )


def _damaged(file: Path) -> InputError:
    remove = f"remove {shown(file.parent)} and run the experiment again"
    return InputError(f"{shown(file)}: damaged; {remove}")


def _files(folder: Path, name: str) -> list[Path]:
    """The files of a table in a folder, in the order of their rows."""
    pieces = sorted(file for file in folder.glob(f"{name}-*.parquet") if file.is_file())
    last = folder / f"{name}.parquet"
    return [*pieces, last] if last.is_file() else pieces


@dataclass(frozen=True)
class _Source:
    """A file of a table, and the number of its folder."""

    file: Path
    table: str
    folder: int

    def rows(self) -> pl.LazyFrame:
        """All rows. Raises `InputError` for damaged columns."""
        try:
            return _as_table(pl.scan_parquet(self.file, glob=False), self.table)
        except UNREADABLE:
            raise _damaged(self.file) from None

    def pieces(self, *columns: str) -> Iterator[pl.DataFrame]:
        """The rows in pieces, all columns or some. Raises `InputError` for a damaged file."""
        rows = self.rows().select(columns) if columns else self.rows()
        try:
            count = extent(self.file).rows
            if count <= ROWS_AT_ONCE:
                yield rows.collect()
                return
            for at in range(0, count, ROWS_AT_ONCE):
                yield rows.slice(at, ROWS_AT_ONCE).collect(engine="streaming")
        except UNREADABLE:
            raise _damaged(self.file) from None

    def check(self) -> None:
        """Reads every row. Raises `InputError` for a damaged file."""
        for _ in self.pieces():
            pass


def _as_table(rows: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """Rows with a table's columns. Raises what `conform` and Polars raise."""
    if table in SCHEMAS:
        return as_now(conform(rows, table), table)
    return rows.select(pl.col(column).cast(kind) for column, kind in FINISHED.items())


class _Finished:
    """A folder's list of cases, in pieces, as often as it is read."""

    def __init__(self, folder: Path) -> None:
        self._sources = [_Source(file, "finished", 0) for file in _files(folder, "finished")]

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for source in self._sources:
            for rows in source.pieces(*_CASE):
                if any(rows.null_count().row(0)):
                    raise _damaged(source.file)
                yield rows


def places_in(folders: Sequence[Path], order: Iterable[str]) -> Places:
    """The places of the cases of folders, which must be this process's own (`made_ours`).

    `order` is iterated more than once. Raises `InputError` for a damaged file.
    """
    return places_of([_Finished(folder) for folder in folders], order)


def merge_table(
    folders: Sequence[Path], name: str, places: Places, into: Path, scratch: Path
) -> None:
    """Writes each case's rows from the last folder that has it, in the cases' order.

    A table that no folder has is not written. `scratch` is a temporary folder for the call. The
    folders must be this process's own (`made_ours`). Raises `InputError` for a damaged file.
    """
    every = [
        _Source(file, name, number)
        for number, folder in enumerate(folders)
        for file in _files(folder, name)
    ]
    if not every:
        return
    sources = [source for source in every if len(places.own[source.folder])]
    try:
        if not sources:
            write_parquet(every[0].rows().clear(), into)
        elif _in_order(sources, places):
            write_parquet(_one_after_another(sources), into)
        else:
            _sort(sources, places, into, scratch)
    except (InputError, RunError):
        raise
    except UNREADABLE:
        for source in sources:
            source.check()
        raise


def _in_order(sources: Sequence[_Source], places: Places) -> bool:
    """Whether every row counts, each case's rows are adjacent, and the cases are in order."""
    last = -1
    for source in sources:
        for rows in source.pieces(*_CASE):
            found = places.of(source.folder, runs_of(rows))
            if found.null_count() or (found.diff() <= 0).any():
                return False
            if len(found) and int(found[0]) < last:
                return False
            last = int(found[-1]) if len(found) else last
    return True


def _one_after_another(sources: Sequence[_Source]) -> pl.LazyFrame:
    """All rows of files, read as they are written."""
    table = sources[0].table
    schema = SCHEMAS.get(table, FINISHED)
    files = [source.file for source in sources]
    if all(pl.read_parquet_schema(file) == schema for file in files):
        return _as_table(pl.scan_parquet(files, glob=False), table)
    return pl.concat([source.rows() for source in sources])


def _placed(source: _Source, rows: pl.DataFrame, places: Places) -> pl.DataFrame:
    """The rows that count, with `_place`."""
    found = rows.with_columns(places.of(source.folder, rows))
    return found.filter(pl.col("_place").is_not_null()) if found["_place"].null_count() else found


def _sort(sources: Sequence[_Source], places: Places, into: Path, scratch: Path) -> None:
    """Writes rows by place, otherwise in their own order."""
    counted = [pl.DataFrame(schema={"_place": _WHOLE, "_rows": pl.UInt32})]
    for source in sources:
        for keys in source.pieces(*_CASE):
            own = _placed(source, keys, places).select("_place")
            counted.append(own.group_by("_place").agg(pl.len().alias("_rows")))
    sizes = pl.concat(counted).group_by("_place").agg(pl.col("_rows").sum()).sort("_place")
    if int(sizes["_rows"].sum()) <= ROWS_AT_ONCE:
        pieces = ((source, rows) for source in sources for rows in source.pieces())
        placed = pl.concat([_placed(source, rows, places) for source, rows in pieces])
        write_parquet(placed.sort("_place", maintain_order=True).drop("_place"), into)
        return
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    rows = pl.scan_ipc(_dealt(sources, places, _windows(sizes), scratch))
    write_parquet(rows.drop("_place"), into)
    shutil.rmtree(scratch)


def _windows(sizes: pl.DataFrame) -> pl.DataFrame:
    """`_first` place and number of places of windows: at most ROWS_AT_ONCE rows, or one place."""
    windows: list[list[int]] = []
    filled = 0
    for place, rows in sizes.iter_rows():
        if not windows or filled + rows > ROWS_AT_ONCE:
            windows.append([place, 0])
            filled = 0
        windows[-1][1] += 1
        filled += rows
    return pl.DataFrame(windows, schema={"_first": _WHOLE, "_places": _WHOLE}, orient="row")


def _dealt(
    sources: Sequence[_Source], places: Places, windows: pl.DataFrame, scratch: Path
) -> list[Path]:
    """Files that hold all rows in order, each at most a window."""
    pieces: list[list[Path]] = [[] for _ in range(windows.height)]
    number = 0
    for source in sources:
        for rows in source.pieces():
            placed = _placed(source, rows, places)
            window = windows["_first"].search_sorted(placed["_place"], side="right") - 1
            dealt = placed.with_columns(window.alias("_window")).partition_by(
                "_window", as_dict=True, include_key=False
            )
            for (at,), frame in dealt.items():
                number += 1
                file = scratch / f"{number:08}.arrow"
                frame.write_ipc(file)
                pieces[at].append(file)
    ordered = []
    for at, files in enumerate(pieces):
        if windows["_places"][at] == 1:
            ordered += files
            continue
        frame = pl.concat([pl.read_ipc(file) for file in files])
        ordered.append(scratch / f"{at:08}-sorted.arrow")
        frame.sort("_place", maintain_order=True).write_ipc(ordered[-1])
        for file in files:
            file.unlink()
    return ordered
