"""Reads tables of a run directory and its parts, whole or in pieces, and merges them.

A folder keeps a table as one file. For cases too long for memory it keeps numbered pieces, and the
last rows in a file after them. Merging uses bounded memory: rows out of order are distributed to
windows of at most `ROWS_AT_ONCE` rows, and one window's file is sorted at a time. A window that is
a single longer case is in order already.

Row groups have a fixed number of rows, so a table's bytes do not depend on its pieces.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
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
from flashbed.storage.frames import UNREADABLE, check_extent, read_parquet
from flashbed.tables.columns import SCHEMAS, Rows, conform

__all__ = [
    "FINISHED",
    "ROW_GROUP_ROWS",
    "as_now",
    "made_ours",
    "merge_table",
    "places_of",
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
_TARGET_ORDER = ("sim", "sim-chip", "uml", "emulator", "board")


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
        """All rows, with `_folder`. Raises `InputError` for damaged columns."""
        try:
            frame = as_now(conform(pl.scan_parquet(self.file), self.table), self.table)
        except UNREADABLE:
            raise _damaged(self.file) from None
        return frame.with_columns(pl.lit(self.folder, _WHOLE).alias("_folder"))

    def cases(self) -> pl.DataFrame:
        """_CASE, `_folder`, and each case's `_first` and `_last` row and number of `_rows`.

        Sorted by the first row. Raises `InputError` for a damaged file.
        """
        numbered = self.rows().select(*_CASE, "_folder").with_row_index("_row")
        row = pl.col("_row").cast(_WHOLE)
        cases = numbered.group_by(*_CASE, "_folder").agg(
            row.min().alias("_first"),
            row.max().alias("_last"),
            pl.len().cast(_WHOLE).alias("_rows"),
        )
        return self._read(cases).sort("_first")

    def pieces(self) -> Iterator[pl.DataFrame]:
        """The rows in pieces. Raises `InputError` for a damaged file."""
        rows = int(self._read(pl.scan_parquet(self.file).select(pl.len())).item())
        for at in range(0, rows, ROWS_AT_ONCE):
            yield self._read(self.rows().slice(at, ROWS_AT_ONCE))

    def check(self) -> None:
        """Reads every row. Raises `InputError` for a damaged file."""
        for _ in self.pieces():
            pass

    def _read(self, rows: pl.LazyFrame) -> pl.DataFrame:
        try:
            return rows.collect(engine="streaming")
        except UNREADABLE:
            raise _damaged(self.file) from None


def places_of(folders: Sequence[Path], order: Sequence[str]) -> pl.DataFrame:
    """case_id, target, the number of the last folder with the case, and the case's place.

    Places follow the experiment's order, then the target's; other cases come last. The folders
    must be this process's own (`made_ours`).
    """
    text = pl.String()
    columns = {"case_id": text, "target": text, "_folder": _WHOLE}
    frames = [pl.DataFrame(schema=columns)]
    for number, folder in enumerate(folders):
        finished = stored(folder, "finished", ours=True)
        if finished is not None:
            frames.append(finished.select(*_CASE, pl.lit(number, _WHOLE).alias("_folder")))
    last = pl.concat(frames).unique(_CASE, keep="last", maintain_order=True)
    ranks = pl.DataFrame({"case_id": order}, schema={"case_id": text}).with_row_index("_rank")
    targets = pl.DataFrame({"target": _TARGET_ORDER}).with_row_index("_target")
    placed = last.join(ranks.unique("case_id"), on="case_id", how="left").join(
        targets, on="target", how="left"
    )
    ordered = placed.sort("_rank", "case_id", "_target", "target", nulls_last=True)
    return ordered.select(*_CASE, "_folder").with_columns(
        pl.int_range(pl.len(), dtype=_WHOLE).alias("_place")
    )


def merge_table(
    folders: Sequence[Path], name: str, places: pl.DataFrame, into: Path, scratch: Path
) -> None:
    """Writes each case's rows from the last folder that has it, in the cases' order.

    A table that no folder has is not written. `scratch` is a temporary folder for the call. The
    folders must be this process's own (`made_ours`). Raises `InputError` for a damaged file.
    """
    if name not in SCHEMAS:
        tables = [stored(folder, name, ours=True) for folder in folders]
        frames = [
            table.with_columns(pl.lit(number, _WHOLE).alias("_folder"))
            for number, table in enumerate(tables)
            if table is not None
        ]
        write_parquet(_placed(pl.concat(frames), places), into)
        return
    sources = [
        _Source(file, name, number)
        for number, folder in enumerate(folders)
        for file in _files(folder, name)
    ]
    if not sources:
        return
    cases = pl.concat([source.cases() for source in sources])
    last = cases.join(places, on=[*_CASE, "_folder"], maintain_order="left")
    try:
        if _in_order(last):
            rows = pl.concat([source.rows() for source in sources])
            write_parquet(_last_word(rows, places).drop("_folder", "_place"), into)
        elif int(cases["_rows"].sum()) <= ROWS_AT_ONCE:
            rows = pl.concat([source.rows() for source in sources])
            write_parquet(_placed(rows.collect(), places), into)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            windows = _windows(last)
            rows = pl.scan_ipc(_dealt(sources, places, windows, scratch))
            write_parquet(rows.drop("_folder", "_place"), into)
            shutil.rmtree(scratch)
    except (InputError, RunError):
        raise
    except UNREADABLE:
        for source in sources:
            source.check()
        raise


def _in_order(last: pl.DataFrame) -> bool:
    """Whether each case's rows are adjacent and the cases are in order."""
    together = last["_last"] - last["_first"] + 1 == last["_rows"]
    return bool(together.all()) and last["_place"].is_sorted()


def _last_word(rows: Rows, places: pl.DataFrame) -> Rows:
    """The rows from each case's last folder, with `_place`."""
    on = [*_CASE, "_folder"]
    if isinstance(rows, pl.DataFrame):
        return rows.join(places, on=on, maintain_order="left")
    return rows.join(places.lazy(), on=on, maintain_order="left")


def _placed(frame: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """The rows from each case's last folder, sorted by place, otherwise in their own order."""
    placed = _last_word(frame, places)
    if not placed["_place"].is_sorted():
        placed = placed.sort("_place", maintain_order=True)
    return placed.drop("_folder", "_place")


def _windows(last: pl.DataFrame) -> pl.DataFrame:
    """`_place` -> `_window`: adjacent places with at most ROWS_AT_ONCE rows, or a single one."""
    window, filled = 0, 0
    dealt = []
    sizes = last.group_by("_place").agg(pl.col("_rows").sum()).sort("_place")
    for place, rows in sizes.iter_rows():
        if filled and filled + rows > ROWS_AT_ONCE:
            window, filled = window + 1, 0
        filled += rows
        dealt.append((place, window))
    return pl.DataFrame(dealt, schema={"_place": _WHOLE, "_window": _WHOLE}, orient="row")


def _dealt(
    sources: Sequence[_Source], places: pl.DataFrame, windows: pl.DataFrame, scratch: Path
) -> list[Path]:
    """Files that hold all rows in order, each at most a window."""
    pieces: dict[int, list[Path]] = {window: [] for window in windows["_window"].unique().sort()}
    number = 0
    for source in sources:
        for rows in source.pieces():
            placed = _last_word(rows, places).join(windows, on="_place", maintain_order="left")
            dealt = placed.partition_by("_window", as_dict=True, include_key=False)
            for (window,), frame in dealt.items():
                number += 1
                file = scratch / f"{number:08}.arrow"
                frame.write_ipc(file)
                pieces[window].append(file)
    alone = windows.group_by("_window").agg((pl.len() == 1).alias("alone"))
    long = dict(alone.iter_rows())
    ordered = []
    for window, files in pieces.items():
        if long[window]:
            ordered += files
            continue
        frame = pl.concat([pl.read_ipc(file) for file in files])
        ordered.append(scratch / f"{window:08}-sorted.arrow")
        frame.sort("_place", maintain_order=True).write_ipc(ordered[-1])
        for file in files:
            file.unlink()
    return ordered
