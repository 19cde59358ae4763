"""Reads tables of a run directory and its parts, whole or in pieces, and merges them.

A folder keeps a table as one file. For cases too long for memory it keeps numbered pieces, and the
last rows in a file after them. Merging uses bounded memory. Parts in the cases' order are scanned
one after another while the table is written. Rows out of order are distributed to windows of at
most `ROWS_AT_ONCE` rows, and one window's file is sorted at a time. A window that is a single
longer case is in order already.

Row groups have a fixed number of rows, so a table's bytes do not depend on its pieces.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from flashbed.base.copier import ROW_GROUP_ROWS, sink
from flashbed.base.copies import copied
from flashbed.base.errors import InputError, RunError
from flashbed.base.files import whole
from flashbed.base.frames import UNREADABLE, check_extent, read_parquet
from flashbed.base.paths import shown
from flashbed.plan.case import AXES, CONDITIONS
from flashbed.results.case_places import Places, places_of, runs_of
from flashbed.results.columns import SCHEMAS, Rows, conform, conforming
from flashbed.stack.names import FORCED

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


class _Sources:
    """The files of a table in several folders, in the order of the folders."""

    def __init__(self, folders: Sequence[Path], table: str) -> None:
        self.table = table
        self._files = [
            (file, number)
            for number, folder in enumerate(folders)
            for file in _files(folder, table)
        ]

    def __bool__(self) -> bool:
        return bool(self._files)

    def cases(self) -> Iterator[pl.DataFrame]:
        """_CASE and `_folder` of every row, in pieces. Raises `InputError` for a damaged file."""
        return self._pieces(self.rows(_CASE, folder=True))

    def rows_and_folders(self) -> Iterator[pl.DataFrame]:
        """Every row with its `_folder`, in pieces. Raises `InputError` for a damaged file."""
        return self._pieces(self.rows(folder=True))

    def _pieces(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        try:
            count = int(rows.select(pl.len()).collect(engine="streaming").item())
            for at in range(0, count, ROWS_AT_ONCE):
                yield rows.slice(at, ROWS_AT_ONCE).collect(engine="streaming")
        except UNREADABLE:
            self.check()
            raise

    def rows(self, columns: Sequence[str] = (), *, folder: bool = False) -> pl.LazyFrame:
        """All rows, all columns or some. Raises `InputError` for a damaged file.

        Adjacent files with exactly the table's columns are scanned as one: Polars plans as long
        for a file as it reads a part's.
        """
        usual = SCHEMAS.get(self.table, FINISHED)
        frames = []
        for alike, files in itertools.groupby(
            self._files, lambda each: self._schema(each) == usual
        ):
            for some in [list(files)] if alike else [[each] for each in files]:
                frames.append(self._scanned(some, columns, folder=folder))
        return pl.concat(frames) if len(frames) > 1 else frames[0]

    def _schema(self, each: tuple[Path, int]) -> Mapping[str, pl.DataType]:
        try:
            return pl.read_parquet_schema(each[0])
        except UNREADABLE:
            raise _damaged(each[0]) from None

    def _scanned(
        self, files: Sequence[tuple[Path, int]], columns: Sequence[str], *, folder: bool
    ) -> pl.LazyFrame:
        number = {str(file): at for file, at in files}
        try:
            rows = pl.scan_parquet(
                list(number), glob=False, include_file_paths="_file" if folder else None
            )
            there = [name for name in rows.collect_schema().names() if name != "_file"]
            if not set(columns) <= set(there):
                raise _damaged(files[0][0])
            wanted = [pl.col(name).cast(pl.String()) for name in columns]
            wanted = wanted or _columns(self.table, there)
        except UNREADABLE:
            raise _damaged(files[0][0]) from None
        if folder:
            own = pl.col("_file").replace_strict(number, return_dtype=_WHOLE)
            wanted.append(own.alias("_folder"))
        rows = rows.select(wanted)
        return rows if columns else as_now(rows, self.table)

    def check(self) -> None:
        """Reads every row of every file. Raises `InputError` for a damaged file."""
        for file, _ in self._files:
            try:
                rows = pl.scan_parquet(file, glob=False)
                rows = rows.select(_columns(self.table, rows.collect_schema().names()))
                count = int(rows.select(pl.len()).collect().item())
                for at in range(0, count, ROWS_AT_ONCE):
                    rows.slice(at, ROWS_AT_ONCE).collect(engine="streaming")
            except UNREADABLE:
                raise _damaged(file) from None


def _columns(table: str, there: Sequence[str]) -> list[pl.Expr]:
    """The columns of a table, of those that a file has. Raises `ValueError` for an unknown one."""
    if table in SCHEMAS:
        return conforming(there, table)
    return [pl.col(column).cast(kind) for column, kind in FINISHED.items()]


class _Finished:
    """The lists of cases of folders, read again each time they are iterated."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._sources = _Sources(folders, "finished")

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for rows in self._sources.cases() if self._sources else ():
            if any(rows.null_count().row(0)):
                raise _damaged(self._file_of(rows))
            yield rows

    def _file_of(self, rows: pl.DataFrame) -> Path:
        """The file with the first case without a name."""
        odd = rows.filter(pl.any_horizontal(pl.col(*_CASE).is_null()))
        return _files(self._folders[odd["_folder"][0]], "finished")[0]


def places_in(folders: Sequence[Path], order: Iterable[str]) -> Places:
    """The places of the cases of folders, which must be this process's own (`made_ours`).

    `order` is iterated more than once. Raises `InputError` for a damaged file.
    """
    return places_of(_Finished(folders), order)


def merge_table(
    folders: Sequence[Path], name: str, *, places: Places, into: Path, scratch: Path
) -> None:
    """Writes each case's rows from the last folder that has it, in the cases' order.

    A table that no folder has is not written. `scratch` is a temporary folder for the call. The
    folders must be this process's own (`made_ours`). Raises `InputError` for a damaged file.
    """
    sources = _Sources(folders, name)
    if not sources:
        return
    try:
        if _in_order(sources, places):
            write_parquet(sources.rows(), into)
        else:
            _sort(sources, places, into, scratch)
    except (InputError, RunError):
        raise
    except UNREADABLE:
        sources.check()
        raise


def _in_order(sources: _Sources, places: Places) -> bool:
    """Whether every row counts, each case's rows are adjacent, and the cases are in order."""
    last = -1
    for rows in sources.cases():
        found = places.of(runs_of(rows))
        if found.null_count() or (found.diff() <= 0).any() or int(found[0]) < last:
            return False
        last = int(found[-1])
    return True


def _placed(rows: pl.DataFrame, places: Places) -> pl.DataFrame:
    """The rows that count, with `_place` instead of `_folder`."""
    found = rows.with_columns(places.of(rows)).drop("_folder")
    return found.filter(pl.col("_place").is_not_null()) if found["_place"].null_count() else found


def _sort(sources: _Sources, places: Places, into: Path, scratch: Path) -> None:
    """Writes rows by place, otherwise in their own order."""
    counted = pl.DataFrame(schema={"_place": _WHOLE, "_rows": _WHOLE})
    for keys in sources.cases():
        own = _placed(keys, places).group_by("_place").agg(pl.len().cast(_WHOLE).alias("_rows"))
        counted.extend(own)
    sizes = counted.group_by("_place").agg(pl.col("_rows").sum()).sort("_place")
    if int(sizes["_rows"].sum()) <= ROWS_AT_ONCE:
        placed = [_placed(rows, places) for rows in sources.rows_and_folders()]
        every = pl.concat(placed or [_empty(sources)])
        if not every["_place"].is_sorted():
            every = every.sort("_place", maintain_order=True)
        write_parquet(every.drop("_place"), into)
        return
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    rows = pl.scan_ipc(_dealt(sources, places, _windows(sizes), scratch))
    write_parquet(rows.drop("_place"), into)
    shutil.rmtree(scratch)


def _empty(sources: _Sources) -> pl.DataFrame:
    return sources.rows().clear().collect().with_columns(pl.lit(0, _WHOLE).alias("_place"))


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


def _dealt(sources: _Sources, places: Places, windows: pl.DataFrame, scratch: Path) -> list[Path]:
    """Files that hold all rows in order, each at most a window."""
    pieces: list[list[Path]] = [[] for _ in range(windows.height)]
    number = 0
    for rows in sources.rows_and_folders():
        placed = _placed(rows, places)
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
