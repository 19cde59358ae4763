"""The directory in which a run keeps its tables (docs/reference/tables.md).

A run directory holds whole cases only. Each batch becomes a part: a folder that is renamed into
place when its files are written. At the end the parts are merged into one Parquet file per table,
in the experiment's order. A case that exists already, made from the same profiles, operations and
code, is not run again, so an interrupted run continues where it stopped.

Nothing here depends on the wall clock: two complete runs give the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import polars as pl
import polars.selectors as cs

from flashbed.base.errors import InputError
from flashbed.base.files import begun, read_json, read_text, whole
from flashbed.base.frames import UNREADABLE, check_text, scan_parquet
from flashbed.base.locking import LOCK
from flashbed.base.own_folder import check_folder
from flashbed.base.paths import shown
from flashbed.results.columns import SCHEMAS, TABLES, conform, empty_table
from flashbed.results.merging import (
    FINISHED,
    as_now,
    made_ours,
    merge_table,
    places_in,
    stored,
    write_parquet,
)
from flashbed.results.plausible import implausible

__all__ = [
    "CHIP_ALONE",
    "SCHEMAS",
    "TABLES",
    "RunDirectory",
    "conform",
    "empty_table",
    "read_table",
    "runs_in",
    "scan_table",
    "write_part",
]

_STORED = ("requests", "flash", "power_cuts", "cut_files", "wear")
_RECORDS = {
    "flash": "flashbed run --trace flash",
    "power_cuts": "flashbed powercut",
    "cut_files": "flashbed powercut",
    "wear": "flashbed run --trace wear",
    "vfs": "flashbed trace --vfs",
    "functions": "flashbed trace --func",
    "not_measured": "a run on a target that lacks what a case needs",
}
_WRITTEN = {
    "run.json",
    "experiment.toml",
    "shard.json",
    "parts",
    *(f"{name}.parquet" for name in (*TABLES, "finished")),
}
"""Files of a run directory. While one is written, its name has a dot before and a word after."""
_PROFILES = "profiles"
_QUOTING = ("requests", "vfs", "functions")
"""Tables whose texts may be any: they hold file names, or SQLite's messages."""
_FORMAT = "flashbed-run 1"
CHIP_ALONE = "sim-chip"
"""The target that user-mode Linux is compared with: the simulator with software of no cost."""


def _is_ours(path: Path) -> bool:
    """Whether a file is a run directory's lock, or was being written by a killed process."""
    if path.name == LOCK or begun(path.name) in _WRITTEN:
        return True
    return path.name.startswith(".") and path.stem[1:] in _WRITTEN


def _is_written(name: str) -> bool:
    """Whether a run writes, replaces or removes what has this name in its directory."""
    return name == _PROFILES or name in _WRITTEN or _is_ours(Path(name))


def _write_part(frame: pl.DataFrame, path: Path) -> None:
    """Writes Parquet, as merging does: Polars ends the process on a damaged Arrow file."""
    with whole(path) as new:
        frame.write_parquet(new, compression="uncompressed", statistics=False)


def _write_text(text: str, path: Path) -> None:
    with whole(path) as new:
        new.write_text(text, encoding="utf-8")


def read_table(directory: Path, table: str) -> pl.DataFrame:
    """A table of a run directory; columns that an earlier version did not have are null.

    Raises `InputError` if there is no such directory or table, or if it was not recorded.
    """
    path = _recorded(directory, table)
    try:
        return _scanned(path, table).collect()
    except UNREADABLE:
        raise _cannot_be_read(path) from None


def scan_table(directory: Path, table: str, *, ours: bool = False) -> pl.LazyFrame:
    """The table as a lazy frame, however long it is; collecting reads from the file.

    All its texts are checked first, except in a file that this process wrote (`ours`). Raises
    `InputError` as `read_table` does.
    """
    path = _recorded(directory, table)
    try:
        if ours:
            return as_now(conform(pl.scan_parquet(path, glob=False), table), table)
        return _scanned(path, table)
    except UNREADABLE:
        raise _cannot_be_read(path) from None


def _recorded(directory: Path, table: str) -> Path:
    """The file of a table. Raises `InputError` if there is none."""
    if table not in SCHEMAS:
        raise InputError(f"no table {table!r}; there are {', '.join(TABLES)}")
    if not (directory / "run.json").is_file():
        raise InputError(f"{shown(directory)}: not the result of a run (no run.json)")
    path = directory / f"{table}.parquet"
    if not path.is_file():
        hint = f"; `{_RECORDS[table]}` records it" if table in _RECORDS else ""
        raise InputError(f"{shown(directory)}: {table} was not recorded{hint}")
    return path


def _cannot_be_read(path: Path) -> InputError:
    return InputError(f"{shown(path)}: cannot be read; run the experiment again")


def _scanned(path: Path, table: str) -> pl.LazyFrame:
    """Raises one of UNREADABLE for a table that is damaged or foreign, if that can be seen.

    Raises `InputError` for a table that is too large, or that no run can have written.
    """
    rows = conform(scan_parquet(path), table)
    _check(rows, path, quoting=table in _QUOTING)
    odd = implausible(rows, table)
    if odd:
        raise InputError(f"{shown(path)}: {odd}; run the experiment again")
    return as_now(rows, table)


def _check(rows: pl.LazyFrame, path: Path, *, quoting: bool) -> None:
    """Reads every row. Raises `ValueError` for text that must not reach a terminal."""
    texts = [name for name, kind in rows.collect_schema().items() if kind == pl.String]
    others = (~cs.string()).null_count()
    lengths = [pl.col(name).str.len_bytes().sum().alias(f"{name} bytes") for name in texts]
    odd = pl.col(texts).str.contains(r"[\p{Cc}\p{Cf}]").any()
    wanted = [others, *lengths] if quoting or not texts else [others, *lengths, odd]
    found = rows.select(wanted).collect(engine="streaming").to_dicts()[0]
    check_text(path, sum(found[f"{name} bytes"] for name in texts))
    wrong = [name for name in texts if found.get(name) is True]
    if wrong:
        raise ValueError(f"{wrong[0]}: not one line")


def runs_in(directory: Path) -> list[Path]:
    """The run in a directory, or the runs in its folders, as `reproduce` leaves them.

    Raises `InputError` if there is none.
    """
    if (directory / "run.json").is_file():
        return [directory]
    runs = sorted(marker.parent for marker in directory.glob("*/run.json"))
    if not runs:
        raise InputError(f"{shown(directory)}: not the result of a run (no run.json)")
    return runs


def write_part(
    below: Path,
    tables: Mapping[str, pl.DataFrame],
    finished: pl.DataFrame,
    pieces: Mapping[str, Sequence[Path]] = MappingProxyType({}),
) -> Path:
    """Writes whole cases as a new folder below another; arguments as for `RunDirectory.add`."""
    part = Path(tempfile.mkdtemp(prefix=".part.", dir=below))
    for name, files in pieces.items():
        for at, file in enumerate(files):
            file.rename(part / f"{name}-{at:08}.parquet")
    for name, frame in tables.items():
        if name == "cases" or frame.height:
            _write_part(conform(frame, name), part / f"{name}.parquet")
    _write_part(finished.select(*FINISHED), part / "finished.parquet")
    part.chmod(0o755)
    return part


@dataclass(frozen=True)
class RunDirectory:
    """The results of one experiment."""

    path: Path
    experiment_id: str
    _left: set[Path] = field(default_factory=set, init=False, repr=False, compare=False)
    """Tables left here by another process; they are copied before they are read."""

    @classmethod
    def create(cls, path: Path, experiment_id: str) -> RunDirectory:
        """Opens a run directory, creating it if needed; the caller has locked it (`held`).

        Raises `InputError` if it holds something else, or a link where a run writes.
        """
        marker = path / "run.json"
        try:
            if path.is_dir():
                check_folder(path, _is_written)
            if marker.is_file():
                kept = cls.open(path)
                if kept.experiment_id != experiment_id:
                    raise InputError(
                        f"{shown(path)}: holds {kept.experiment_id}, not {experiment_id}; "
                        "choose another --out"
                    )
                kept._clear()
                for folder in (path, *kept._parts()):
                    kept._left.update(folder.glob("*.parquet"))
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
        """Opens an existing run directory. Raises `InputError`."""
        try:
            marker = read_json(path / "run.json")
        except InputError as why:
            raise InputError(f"{why}: not the result of a run") from None
        if marker.get("format") != _FORMAT or not isinstance(marker.get("experiment"), str):
            raise InputError(f"{shown(path / 'run.json')}: not {_FORMAT}; choose another --out")
        return cls(path, marker["experiment"])

    def keep_sources(self, experiment: Path, profiles: Mapping[str, Path]) -> None:
        """Keeps the experiment and its profiles beside the results."""
        (self.path / _PROFILES).mkdir(exist_ok=True)
        facts = {"format": _FORMAT, "experiment": self.experiment_id, "file": str(experiment)}
        _write_text(json.dumps(facts, indent=1) + "\n", self.path / "run.json")
        _write_text(read_text(experiment), self.path / "experiment.toml")
        for name, path in profiles.items():
            _write_text(read_text(path), self.path / _PROFILES / f"{name}.toml")

    def finished(self) -> dict[tuple[str, str], str]:
        """(case_id, target) -> key of every result, merged or in parts."""
        found: dict[tuple[str, str], str] = {}
        for folder in (self.path, *self._parts()):
            rows = stored(folder, "finished")
            if rows is not None:
                found |= {(case_id, target): key for case_id, target, key in rows.iter_rows()}
        return found

    def add(
        self,
        tables: Mapping[str, pl.DataFrame],
        finished: pl.DataFrame,
        pieces: Mapping[str, Sequence[Path]] = MappingProxyType({}),
    ) -> None:
        """Adds whole cases: their tables by name, and case_id, target, key of each.

        For cases too long for memory, `pieces` has the rows before those of `tables`: files in
        `parts`, which are moved.
        """
        self.take(write_part(self.parts(), tables, finished, pieces), self.last_part() + 1)

    def take(self, part: Path, number: int) -> None:
        """Adds what `write_part` wrote in `parts`, as the part with this unused number.

        For a case in several parts, the part with the highest number counts.
        """
        part.rename(self.parts() / f"{number:06}")

    def last_part(self) -> int:
        """The number of the last part; 0 if there is none."""
        return max((int(part.name) for part in self._parts()), default=0)

    def parts(self) -> Path:
        """The folder of the parts; rows of running cases may also wait there."""
        folder = self.path / "parts"
        folder.mkdir(exist_ok=True)
        return folder

    def keep_not_measured(self, target: str, rows: pl.DataFrame) -> None:
        """Replaces the target's list of cases that it could not measure, with reasons."""
        path = self.path / "not_measured.parquet"
        kept = stored(self.path, "not_measured")
        others = empty_table("not_measured") if kept is None else kept
        new = conform(rows.with_columns(pl.lit(target).alias("target")), "not_measured")
        table = pl.concat([others.filter(pl.col("target") != target), new])
        if table.height:
            write_parquet(table, path)
        else:
            path.unlink(missing_ok=True)

    def merge(self, order: Iterable[str]) -> None:
        """Merges the parts into one file per table, cases in the given order, others after them.

        `order` has the cases' names and is iterated more than once. Merging can be repeated after
        an interruption: parts are removed once every table is written.
        """
        parts = self._parts()
        if parts:
            for file in sorted(filter(Path.is_file, self._left)):
                made_ours(file)
            self._left.clear()
            folders = (self.path, *parts)
            places = places_in(folders, order)
            scratch = self.path / ".parts.merging"
            for name in (*_STORED, "finished", "cases"):
                merge_table(
                    folders,
                    name,
                    places=places,
                    into=self.path / f"{name}.parquet",
                    scratch=scratch,
                )
        if (self.path / "parts").is_dir():
            # Renamed first: the rest of a half-removed part would hide merged rows.
            gone = self.path / f".parts.{os.getpid()}"
            (self.path / "parts").rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _clear(self) -> None:
        """Removes what killed processes were writing."""
        for folder in (self.path, self.path / _PROFILES, self.path / "parts"):
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
        parts = [part for part in folder.iterdir() if not part.name.startswith(".")]
        for part in sorted(parts):
            if not (part.name.isascii() and part.name.isdigit()):
                raise InputError(f"{shown(part)}: not part of a run; remove it")
        return sorted(parts, key=lambda part: int(part.name))
