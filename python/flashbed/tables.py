"""Tables: their columns (docs/formats.md), and the directory a run keeps them in.

A run directory holds whole cases only. Each batch becomes a part, a folder that is renamed into
place when its files are written; at the end parts are merged into one Parquet file a table, in the
order of the experiment. A case that is there already, made by the same profiles, operations and
code, is not run again, so a run that was cut short goes on where it was.

Nothing here depends on the wall clock: two complete runs give the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from flashbed.case import FORCED
from flashbed.errors import InputError
from flashbed.files import begun, read_json, read_text, whole
from flashbed.frames import read_parquet
from flashbed.locking import LOCK
from flashbed.places import shown
from flashbed.plausible import implausible

__all__ = [
    "CHIP_ALONE",
    "SCHEMAS",
    "TABLES",
    "RunDirectory",
    "conform",
    "empty_table",
    "read_table",
    "runs_in",
]

_TEXT = pl.String()
_WHOLE = pl.Int64()
_REAL = pl.Float64()

SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "cases": {
        "case_id": _TEXT,
        "experiment": _TEXT,
        "target": _TEXT,
        "board": _TEXT,
        "kernel": _TEXT,
        "fs": _TEXT,
        "read_ahead_kib": _WHOLE,
        "window": _TEXT,
        "bulk_read": pl.Boolean(),
        "compressor": _TEXT,
        "pattern": _TEXT,
        "requests": _WHOLE,
        "request_bytes": _WHOLE,
        "file_bytes": _WHOLE,
        "seed": _WHOLE,
        "pause_ns": _WHOLE,
        "advice": _TEXT,
        "state": _TEXT,
        "faults": _TEXT,
        "database": _TEXT,
        "state_valid": _REAL,
        "state_invalid": _REAL,
        "time_ns": _WHOLE,
        "time_unknown": _TEXT,
        "flash_time_ns": _WHOLE,
        "elapsed_ns": _WHOLE,
        "bytes": _WHOLE,
        "bytes_written": _WHOLE,
        "flash_reads": _WHOLE,
        "flash_programs": _WHOLE,
        "flash_erases": _WHOLE,
        "bytes_data": _WHOLE,
        "bytes_metadata": _WHOLE,
        "bytes_padding": _WHOLE,
        "bytes_collection": _WHOLE,
        "bytes_wear_levelling": _WHOLE,
        "flush_reads": _WHOLE,
        "flush_programs": _WHOLE,
        "flush_erases": _WHOLE,
        "flush_bytes_data": _WHOLE,
        "flush_bytes_metadata": _WHOLE,
        "flush_bytes_padding": _WHOLE,
        "flush_bytes_collection": _WHOLE,
        "flush_bytes_wear_levelling": _WHOLE,
        "cache_hits": _WHOLE,
        "cache_misses": _WHOLE,
        "cache_adds": _WHOLE,
        "energy_convention": _TEXT,
        "energy_nj": _WHOLE,
        "energy_cpu_nj": _WHOLE,
        "energy_mem_nj": _WHOLE,
        "component_cpu_busy_nj": _WHOLE,
        "component_cpu_driver_nj": _WHOLE,
        "component_memory_nj": _WHOLE,
        "component_flash_read_nj": _WHOLE,
        "component_flash_program_nj": _WHOLE,
        "component_flash_erase_nj": _WHOLE,
        "component_bus_nj": _WHOLE,
        "erase_count_max": _WHOLE,
        "erase_count_mean": _REAL,
        "bad_blocks": _WHOLE,
        "ecc_corrected": _WHOLE,
        "ecc_failed": _WHOLE,
        "flashbed_version": _TEXT,
        "commit": _TEXT,
        "board_sha256": _TEXT,
        "kernel_sha256": _TEXT,
        "experiment_sha256": _TEXT,
        "kernel_release": _TEXT,
    },
    "requests": {
        "case_id": _TEXT,
        "target": _TEXT,
        "seq": _WHOLE,
        "op": _TEXT,
        "file": _TEXT,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "start_ns": _WHOLE,
        "latency_ns": _WHOLE,
        "flash_time_ns": _WHOLE,
        "result": _WHOLE,
        "content_crc32": _WHOLE,
        "changes": _WHOLE,
        "statement_kind": _TEXT,
        "error": _TEXT,
    },
    "flash": {
        "case_id": _TEXT,
        "target": _TEXT,
        "seq": _WHOLE,
        "start_ns": _WHOLE,
        "kind": _TEXT,
        "block": _WHOLE,
        "page": _WHOLE,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "task": _TEXT,
        "duration_ns": _WHOLE,
    },
    "vfs": {
        "case_id": _TEXT,
        "target": _TEXT,
        "start_ns": _WHOLE,
        "duration_ns": _WHOLE,
        "kind": _TEXT,
        "file": _TEXT,
        "inode": _WHOLE,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "result": _WHOLE,
        "task": _TEXT,
    },
    "functions": {
        "case_id": _TEXT,
        "target": _TEXT,
        "function": _TEXT,
        "start_ns": _WHOLE,
        "duration_ns": _WHOLE,
        "result": _WHOLE,
        "task": _TEXT,
    },
    "wear": {
        "case_id": _TEXT,
        "target": _TEXT,
        "block": _WHOLE,
        "erases": _WHOLE,
        "erases_measured": _WHOLE,
        "state": _TEXT,
        "erases_flush": _WHOLE,
    },
    "not_measured": {
        "case_id": _TEXT,
        "target": _TEXT,
        "reason": _TEXT,
    },
    "power_cuts": {
        "case_id": _TEXT,
        "target": _TEXT,
        "change": _WHOLE,
        "acknowledged_files": _WHOLE,
        "kept_files": _WHOLE,
        "lost_files": _WHOLE,
        "mounted": pl.Boolean(),
        "mount_time_ns": _WHOLE,
        "verdict": _TEXT,
        "reason": _TEXT,
    },
}
"""Columns of each table, in order."""

TABLES = tuple(SCHEMAS)
_STORED = ("requests", "flash", "power_cuts", "wear")
_RECORDS = {
    "flash": "flashbed run --trace flash",
    "power_cuts": "flashbed powercut",
    "wear": "flashbed run --trace wear",
    "vfs": "flashbed trace --vfs",
    "functions": "flashbed trace --func",
    "not_measured": "a run on a target that lacks what a case needs",
}
_WRITTEN = {
    "run.json",
    "experiment.toml",
    "parts",
    *(f"{name}.parquet" for name in (*TABLES, "finished")),
}
"""Files of a run directory. One that is being written has a dot before and a word after that."""
_FINISHED: dict[str, pl.DataType] = {"case_id": _TEXT, "target": _TEXT, "key": _TEXT}
_QUOTING = ("requests", "vfs", "functions")
"""Tables with names of files, or SQLite's words, which may be any."""
_UNREADABLE = (pl.exceptions.PolarsError, ValueError)
"""Raised for a file that is damaged, or has other columns."""
_FORMAT = "flashbed-run 1"
CHIP_ALONE = "sim-chip"
"""The target that user-mode Linux is compared with: the simulator, its software taking no time."""
_TARGET_ORDER = ("sim", CHIP_ALONE, "uml", "emulator", "board")


def _is_ours(path: Path) -> bool:
    """Whether a file is the lock of a run directory, or one that a killed process was writing."""
    if path.name == LOCK or begun(path.name) in _WRITTEN:
        return True
    return path.name.startswith(".") and path.stem[1:] in _WRITTEN


def conform(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """A frame with exactly the columns of a table; what is not known is null.

    Raises `ValueError` if the frame has a column the table does not have.
    """
    schema = SCHEMAS[table]
    unknown = [column for column in frame.columns if column not in schema]
    if unknown:
        raise ValueError(f"table {table} has no column {unknown[0]}")
    return frame.select(
        (pl.col(column).cast(kind) if column in frame.columns else pl.lit(None, kind)).alias(column)
        for column, kind in schema.items()
    )


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Writes a file whole or not at all; the same rows give the same bytes."""
    with whole(path) as new:
        frame.rechunk().write_parquet(new, compression="zstd", compression_level=1)


def _write_part(frame: pl.DataFrame, path: Path) -> None:
    """Parquet, as what is merged: a damaged Arrow file makes its reader end the process."""
    with whole(path) as new:
        frame.write_parquet(new, compression="uncompressed", statistics=False)


def _write_text(text: str, path: Path) -> None:
    with whole(path) as new:
        new.write_text(text, encoding="utf-8")


def empty_table(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=SCHEMAS[table])


def read_table(directory: Path, table: str) -> pl.DataFrame:
    """A table of a run directory; columns that an earlier version did not have are null.

    Raises `InputError` if the directory is none, the table is none or was not recorded.
    """
    if table not in SCHEMAS:
        raise InputError(f"no table {table!r}; there are {', '.join(TABLES)}")
    if not (directory / "run.json").is_file():
        raise InputError(f"{shown(directory)}: not the result of a run (no run.json)")
    path = directory / f"{table}.parquet"
    if not path.is_file():
        hint = f"; `{_RECORDS[table]}` records it" if table in _RECORDS else ""
        raise InputError(f"{shown(directory)}: {table} was not recorded{hint}")
    try:
        frame = conform(read_parquet(path), table)
        found = _as_now(frame if table in _QUOTING else _one_line(frame), table)
    except _UNREADABLE:
        raise InputError(f"{shown(path)}: cannot be read; run the experiment again") from None
    odd = implausible(found, table)
    if odd:
        raise InputError(f"{shown(path)}: {odd}; run the experiment again")
    return found


def _one_line(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts a terminal can be shown. Raises `ValueError` for another one."""
    texts = pl.col(pl.String).str.contains(r"[\p{Cc}\p{Cf}]").any()
    odd = [name for name, found in frame.select(texts).to_dicts()[0].items() if found]
    if odd:
        raise ValueError(f"{odd[0]}: not one line")
    return frame


def runs_in(directory: Path) -> list[Path]:
    """The run that is kept in a directory, or those in its folders, as `reproduce` leaves them.

    Raises `InputError` if there is none.
    """
    if (directory / "run.json").is_file():
        return [directory]
    runs = sorted(marker.parent for marker in directory.glob("*/run.json"))
    if not runs:
        raise InputError(f"{shown(directory)}: not the result of a run (no run.json)")
    return runs


@dataclass(frozen=True)
class RunDirectory:
    """The results of one experiment."""

    path: Path
    experiment_id: str

    @classmethod
    def create(cls, path: Path, experiment_id: str) -> RunDirectory:
        """Opens a run directory, making it if need be; the caller has it to itself (`held`).

        Raises `InputError` if it holds something else.
        """
        marker = path / "run.json"
        try:
            if marker.is_file():
                kept = cls.open(path)
                if kept.experiment_id != experiment_id:
                    raise InputError(
                        f"{shown(path)}: holds {kept.experiment_id}, not {experiment_id}; "
                        "choose another --out"
                    )
                kept._clear()
                return kept
            if path.is_dir() and not all(_is_ours(found) for found in path.iterdir()):
                raise InputError(f"{shown(path)}: not empty, and not the result of a run")
            path.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"format": _FORMAT, "experiment": experiment_id}, indent=1)
            _write_text(text + "\n", marker)
        except OSError as why:
            raise InputError(f"{shown(path)}: {why.strerror}") from None
        made = cls(path, experiment_id)
        made._clear()
        return made

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Opens a run directory that is there. Raises `InputError`."""
        try:
            marker = read_json(path / "run.json")
        except InputError as why:
            raise InputError(f"{why}: not the result of a run") from None
        if marker.get("format") != _FORMAT or not isinstance(marker.get("experiment"), str):
            raise InputError(f"{shown(path / 'run.json')}: not {_FORMAT}; choose another --out")
        return cls(path, marker["experiment"])

    def keep_sources(self, experiment: Path, profiles: Mapping[str, Path]) -> None:
        """Keeps the experiment and its profiles beside the results they explain."""
        (self.path / "profiles").mkdir(exist_ok=True)
        facts = {"format": _FORMAT, "experiment": self.experiment_id, "file": str(experiment)}
        _write_text(json.dumps(facts, indent=1) + "\n", self.path / "run.json")
        _write_text(read_text(experiment), self.path / "experiment.toml")
        for name, path in profiles.items():
            _write_text(read_text(path), self.path / "profiles" / f"{name}.toml")

    def finished(self) -> dict[tuple[str, str], str]:
        """(case_id, target) -> key of what is there, merged or in parts."""
        found: dict[tuple[str, str], str] = {}
        for folder in (self.path, *self._parts()):
            rows = _stored(folder, "finished")
            if rows is not None:
                found |= {(case_id, target): key for case_id, target, key in rows.iter_rows()}
        return found

    def add(self, tables: Mapping[str, pl.DataFrame], finished: pl.DataFrame) -> None:
        """Adds whole cases: their tables by name, and case_id, target, key of each."""
        parts = self.path / "parts"
        parts.mkdir(exist_ok=True)
        number = 1 + max((int(part.name) for part in self._parts()), default=0)
        temporary = parts / f".{number:06}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        for name, frame in tables.items():
            if name == "cases" or frame.height:
                _write_part(conform(frame, name), temporary / f"{name}.parquet")
        _write_part(finished.select(*_FINISHED), temporary / "finished.parquet")
        temporary.rename(parts / f"{number:06}")

    def keep_not_measured(self, target: str, rows: pl.DataFrame) -> None:
        """Keeps case_id and reason of what a target could not measure, in place of what it had."""
        path = self.path / "not_measured.parquet"
        kept = _stored(self.path, "not_measured")
        others = empty_table("not_measured") if kept is None else kept
        new = conform(rows.with_columns(pl.lit(target).alias("target")), "not_measured")
        table = pl.concat([others.filter(pl.col("target") != target), new])
        if table.height:
            _write_parquet(table, path)
        else:
            path.unlink(missing_ok=True)

    def merge(self, order: Sequence[str]) -> None:
        """Merges the parts into one file a table, cases in the order given, others after them.

        Interrupted anywhere, it can be done again: parts go only when every table is written.
        """
        parts = self._parts()
        if parts:
            folders = (self.path, *parts)
            places = _places(folders, order)
            for name in (*_STORED, "finished", "cases"):
                tables = [_stored(folder, name) for folder in folders]
                rows = [
                    table.with_columns(pl.lit(number, _WHOLE).alias("_folder"))
                    for number, table in enumerate(tables)
                    if table is not None
                ]
                if rows:
                    _write_parquet(_placed(pl.concat(rows), places), self.path / f"{name}.parquet")
        if (self.path / "parts").is_dir():
            # Renamed first: of a part that is half gone, what is left would hide the merged rows.
            gone = self.path / f".parts.{os.getpid()}"
            (self.path / "parts").rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _clear(self) -> None:
        """Removes what processes that were killed were about to write."""
        for folder in (self.path, self.path / "profiles", self.path / "parts"):
            for path in folder.glob(".*.*"):
                if folder == self.path and not _is_ours(path):
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _parts(self) -> list[Path]:
        folder = self.path / "parts"
        if not folder.is_dir():
            return []
        parts = sorted(part for part in folder.iterdir() if not part.name.startswith("."))
        for part in parts:
            if not (part.name.isascii() and part.name.isdigit()):
                raise InputError(f"{shown(part)}: no part of a run; remove it")
        return parts


def _stored(folder: Path, name: str) -> pl.DataFrame | None:
    """A table of a run directory or of one of its parts, if it is there.

    Columns that an earlier version did not have are null.
    """
    path = folder / f"{name}.parquet"
    if not path.is_file():
        return None
    try:
        frame = read_parquet(path)
        if name in SCHEMAS:
            return _as_now(conform(frame, name), name)
        finished = frame.select(pl.col(column).cast(kind) for column, kind in _FINISHED.items())
        if any(finished.null_count().row(0)):
            raise ValueError("a case without a name")
        return finished
    except _UNREADABLE:
        raise InputError(
            f"{shown(path)}: damaged; remove {shown(path.parent)} and run the experiment again"
        ) from None


def _as_now(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """What an earlier version did not say because there was one way: windows were set."""
    known = table == "cases"
    return frame.with_columns(pl.col("window").fill_null(FORCED)) if known else frame


def _places(folders: Sequence[Path], order: Sequence[str]) -> pl.DataFrame:
    """case_id, target, the number of the last folder that has the case, and its place.

    Places follow the experiment's order, then the target's; cases out of that order come last.
    """
    last: dict[tuple[str, str], int] = {}
    for number, folder in enumerate(folders):
        finished = _stored(folder, "finished")
        if finished is not None:
            last |= {(case_id, target): number for case_id, target, _ in finished.iter_rows()}
    case_rank = {case_id: rank for rank, case_id in enumerate(order)}
    target_rank = {target: rank for rank, target in enumerate(_TARGET_ORDER)}

    def place(pair: tuple[str, str]) -> tuple[int, str, int, str]:
        case_id, target = pair
        case_at = case_rank.get(case_id, len(case_rank))
        return case_at, case_id, target_rank.get(target, len(target_rank)), target

    rows = [(*pair, last[pair], at) for at, pair in enumerate(sorted(last, key=place))]
    names = {"case_id": _TEXT, "target": _TEXT, "_folder": _WHOLE, "_place": _WHOLE}
    return pl.DataFrame(rows, schema=names, orient="row")


def _placed(frame: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """The rows that are the last word on their case, at their place, in their own order."""
    placed = frame.join(places, on=["case_id", "target", "_folder"], maintain_order="left")
    if not placed["_place"].is_sorted():
        placed = placed.sort("_place", maintain_order=True)
    return placed.drop("_folder", "_place")
