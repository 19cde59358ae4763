"""The file of a recording: Parquet, a row per call (docs/reference/recording.md).

It is written in parts as calls arrive: the folder FILE.parts always holds whole files, and `close`
joins them into one. A killed recorder leaves the folder, which can be read as well. A file may come
from anyone: it is checked row by row, and is never whole in memory.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import polars as pl
import polars.selectors as cs

from flashbed.base.copies import DamagedError, copy
from flashbed.base.errors import InputError
from flashbed.base.files import is_stream, output, own_file, own_path, read_text, whole
from flashbed.base.footer import extent, key_value
from flashbed.base.frames import UNREADABLE, check_extent, check_text
from flashbed.base.paths import shown
from flashbed.program.recording.about import About, about_of
from flashbed.program.recording.calls import (
    ARGUMENTS,
    CALLS,
    EXISTED,
    FORKS,
    PACKED_BYTES,
    PIECE_BYTES,
    WRITES,
    Call,
    Written,
    pack_pieces,
    unpack_pieces,
)
from flashbed.program.recording.recognised import ABOUT, KEY, parts_of

__all__ = [
    "SCHEMA",
    "Recording",
    "RecordingError",
    "RecordingWriter",
    "open_recording",
]

_ROWS_AT_ONCE = 1 << 16
_DATA_AT_ONCE_BYTES = 32 << 20

SCHEMA: dict[str, pl.DataType] = {
    "task": pl.Int32(),
    "start_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "cpu_ns": pl.Int64(),
    "call": pl.String(),
    **{name: pl.Int64() if kind is int else pl.Binary() for name, kind in ARGUMENTS.items()},
    "result": pl.Int64(),
    "data": pl.Binary(),
    "sizes": pl.Binary(),
}
"""`sizes` holds for each piece the six numbers of `Piece`, 16 bits each, the low byte first."""


class RecordingError(InputError):
    """A file is no recording, or is damaged: file, row (from 1), why."""


class RecordingWriter:
    """Writes a recording; a kill loses nothing from before the last `flush`."""

    def __init__(self, path: Path, about: About) -> None:
        """Raises `InputError` if a killed recorder left its parts there."""
        self.path = path
        self._about = about
        try:
            if is_stream(path):  # beside a device or a pipe stands nothing of flashbed's
                self._folder = Path(tempfile.mkdtemp(prefix="flashbed-"))
            else:
                self._folder = parts_of(own_file(path))
                path.parent.mkdir(parents=True, exist_ok=True)
                self._folder.mkdir()
        except FileExistsError:
            raise InputError(
                f"{shown(self._folder)}: exists already; a recorder that was killed left it"
            ) from None
        except OSError as why:
            raise InputError(f"{shown(path)}: {why.strerror}") from None
        self._columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
        self._data_bytes = self._parts = self._last_ns = 0
        self.calls = 0
        self._say(about.model_copy(update={"complete": False}))

    def add(self, call: Call) -> None:
        """Adds the next call, in the order of beginnings. Raises `ValueError` for a wrong one."""
        if call.name != EXISTED:
            if call.start_ns < self._last_ns:
                raise ValueError(f"{call.name}: begins before the call before it")
            self._last_ns = call.start_ns
        check(call)
        columns = self._columns
        for name, value in (
            ("task", call.task), ("start_ns", call.start_ns), ("duration_ns", call.duration_ns),
            ("cpu_ns", call.cpu_ns), ("call", call.name), ("result", call.result),
        ):  # fmt: skip
            columns[name].append(value)
        for name in ARGUMENTS:
            columns[name].append(call.arguments.get(name))
        written = call.written
        columns["data"].append(written if isinstance(written, bytes) else None)
        sizes = pack_pieces(written) if isinstance(written, tuple) else None
        columns["sizes"].append(sizes)
        self._data_bytes += len(written) if written is not None else 0
        self.calls += 1
        if len(columns["task"]) >= _ROWS_AT_ONCE or self._data_bytes >= _DATA_AT_ONCE_BYTES:
            self.flush()

    def add_rows(self, rows: pl.DataFrame) -> None:
        """Adds a recorder's rows, in the order of beginnings, as a part of their own.

        They are checked when they are read, as all rows are.
        """
        self.flush()
        with whole(own_path(self._folder) / f"{self._parts:08}.parquet") as new:
            rows.select(*SCHEMA).write_parquet(new, compression="zstd", compression_level=3)
        self._parts += 1
        self.calls += rows.height

    def flush(self) -> None:
        """Writes what was added since the last part as a new part."""
        if not self._columns["task"]:
            return
        frame = pl.DataFrame(self._columns, schema=SCHEMA)
        with whole(own_path(self._folder) / f"{self._parts:08}.parquet") as new:
            frame.write_parquet(new, compression="zstd", compression_level=3)
        self._parts += 1
        self._data_bytes = 0
        for column in self._columns.values():
            column.clear()

    def close(self, about: About | None = None) -> None:
        """Joins the parts into one file. `about` has the final facts."""
        self.flush()
        about = about or self._about
        parts = sorted(self._folder.glob("*.parquet"))
        rows = pl.scan_parquet(parts) if parts else pl.LazyFrame(schema=SCHEMA)
        with output(self.path) as new:
            rows.sink_parquet(
                new, compression="zstd", row_group_size=_ROWS_AT_ONCE,
                metadata={KEY: about.model_dump_json()},
            )  # fmt: skip
        self.discard()

    def set_about(self, about: About) -> None:
        """Sets the facts, which `close` writes."""
        self._about = about

    def discard(self) -> None:
        """Removes the parts."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _say(self, about: About) -> None:
        with whole(self._folder / ABOUT) as new:
            new.write_text(about.model_dump_json(), encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Closes it; after an error, removes everything."""
        try:
            if kind is None:
                self.close()
        finally:
            self.discard()


class _Copies:
    """Copies of files, open as long as this object exists."""

    def __init__(self) -> None:
        self.files: dict[Path, IO[bytes]] = {}
        weakref.finalize(self, _close_all, self.files)


def _close_all(files: dict[Path, IO[bytes]]) -> None:
    for file in files.values():
        file.close()
    files.clear()


@dataclass(frozen=True)
class Recording:
    """A recording, which can be read any number of times."""

    path: Path
    about: About
    files: tuple[Path, ...]
    copies: _Copies = field(default_factory=lambda: _Copies(), compare=False, repr=False)

    def rows(self) -> pl.LazyFrame:
        """All rows of a whole recording, unchecked."""
        (file,) = self.files
        with self._copy_of(file) as safe:
            return pl.scan_parquet(_name(safe), glob=False).select(list(SCHEMA))

    def length(self) -> int:
        """The number of rows: calls, and what existed before."""
        return sum(extent(file).rows for file in self.files)

    def calls(self) -> Iterator[Call]:
        """The calls, in order. Raises `RecordingError` at the first impossible one."""
        last_ns = 0
        for row, call in self._each(pl.col("call").ne_missing(EXISTED)):
            if call.start_ns < last_ns:
                raise self._error(row, "begins before the call before it")
            last_ns = call.start_ns
            yield call

    def calls_with_paths(self) -> Iterator[Call]:
        """The calls that name a path, in order; the order itself is not checked."""
        named = pl.col("path").is_not_null() | pl.col("to_path").is_not_null()
        return (call for _, call in self._each(pl.col("call").ne_missing(EXISTED) & named))

    def roots(self) -> list[int]:
        """Tasks whose beginning was not recorded, in the order of their first calls; unchecked."""
        seen: dict[int, None] = {}
        made: set[int] = set()
        is_fork = pl.col("call").is_in(list(FORKS)) & (pl.col("result") > 0)
        for file in self.files:
            with self._copy_of(file) as safe:
                rows = pl.scan_parquet(_name(safe), glob=False)
                calls = rows.filter(pl.col("call").ne_missing(EXISTED)).drop_nulls("task")
                tasks = calls.select("task").collect()["task"]
                made.update(calls.filter(is_fork).select("result").collect()["result"])
            seen.update(dict.fromkeys(tasks.unique(maintain_order=True)))
        return [task for task in seen if task not in made]

    def took_ns(self) -> int | None:
        """When the last call had returned, unchecked; None if its source knew of no call's time."""
        last_ns = longest_ns = 0
        duration = pl.col("duration_ns").fill_null(0)
        times = ((pl.col("start_ns") + duration).max(), duration.max())
        for file in self.files:
            with self._copy_of(file) as safe:
                rows = pl.scan_parquet(_name(safe), glob=False)
                calls = rows.filter(pl.col("call").ne_missing(EXISTED))
                last, longest = calls.select(*times).collect().row(0)
            last_ns, longest_ns = max(last_ns, last or 0), max(longest_ns, longest or 0)
        return last_ns if longest_ns else None

    def calls_with_sizes(self) -> Iterator[Call]:
        """The calls whose compressed sizes were recorded, in order, which is not checked."""
        return (call for _, call in self._each(pl.col("sizes").is_not_null()))

    def existed(self, needed: Callable[[bytes], bool] | None = None) -> Iterator[Call]:
        """What existed before: a row for each file, folder and link, or those that are needed."""
        return (call for _, call in self._each(pl.col("call") == EXISTED, needed))

    def folders_and_links(self) -> Iterator[Call]:
        """What existed before and is no plain file."""
        kind = pl.col("mode") & 0o170000
        odd = (pl.col("call") == EXISTED) & (kind != stat.S_IFREG)
        return (call for _, call in self._each(odd))

    def _each(
        self, wanted: pl.Expr, needed: Callable[[bytes], bool] | None = None
    ) -> Iterator[tuple[int, Call]]:
        """Checked rows. Those whose path is not needed are passed over without a check."""
        for frame in self._frames(wanted):
            if needed is not None:
                frame = frame.filter([path is None or needed(path) for path in frame["path"]])
            for row, *values in frame.iter_rows():
                try:
                    call = _call(values)
                    check(call)
                except ValueError as why:
                    raise self._error(row, str(why)) from None
                yield row, call

    def _frames(self, wanted: pl.Expr) -> Iterator[pl.DataFrame]:
        """Rows in pieces, with their numbers."""
        before = 0
        for file in self.files:
            with self._copy_of(file) as safe:
                rows = pl.scan_parquet(_name(safe), glob=False)
                count = extent(Path(_name(safe))).rows
                for at in range(0, count, _ROWS_AT_ONCE):
                    some = rows.slice(at, _ROWS_AT_ONCE).select(list(SCHEMA))
                    numbered = some.with_row_index("row", before + at + 1).filter(wanted)
                    yield numbered.collect(engine="streaming")
            before += count

    @contextmanager
    def _copy_of(self, file: Path) -> Iterator[IO[bytes]]:
        """A copy to read; that of a whole recording is kept for the next time."""
        kept = self.copies.files.get(file)
        if kept is None:
            try:
                kept = copy(file)
            except DamagedError as why:
                raise RecordingError(f"{shown(self.path)}: {_first_line(why)}") from None
            if len(self.files) == 1:
                self.copies.files[file] = kept
        try:
            yield kept
        finally:
            if len(self.files) > 1:
                kept.close()

    def _error(self, row: int, why: str) -> RecordingError:
        return RecordingError(f"{shown(self.path)}: row {row}: {why}")


def open_recording(path: Path) -> Recording:
    """Opens a recording and checks facts, columns and size. Raises `RecordingError`."""
    folder = path if path.is_dir() else parts_of(path)
    if not path.is_file() and (folder / ABOUT).is_file():
        files = tuple(sorted(folder.glob("*.parquet")))
        text = read_text(folder / ABOUT, error=RecordingError)
    else:
        files, text = (path,), None
        if not path.exists():
            raise RecordingError(f"{shown(path)}: no such file")
    copies = _Copies()
    try:
        said = _checked(files, copies)
        text = said if text is None else text
        about = about_of(text) if text is not None else None
    except DamagedError as why:
        raise RecordingError(f"{shown(path)}: not a recording: {_first_line(why)}") from None
    except UNREADABLE as why:
        raise RecordingError(f"{shown(path)}: {_first_line(why)}") from None
    if about is None:
        raise RecordingError(f"{shown(path)}: not a recording: its metadata has no {KEY}")
    return Recording(path, about, files, copies if len(files) == 1 else _Copies())


def _checked(files: Iterable[Path], copies: _Copies) -> str | None:
    """Refuses files before they are read; returns the facts in the first."""
    first = None
    for number, file in enumerate(files):
        check_extent(file)
        first = key_value(file, KEY) if number == 0 else first
        safe = copies.files[file] = copy(file)
        rows = pl.scan_parquet(_name(safe), glob=False)
        schema = dict(rows.collect_schema())
        if schema != SCHEMA:
            odd = [name for name in SCHEMA if schema.get(name) != SCHEMA[name]]
            odd += [name for name in schema if name not in SCHEMA]
            raise DamagedError(f"column {str((odd or ['order'])[0])[:40]!r}")
        texts = (cs.binary().bin.size().sum(), cs.string().str.len_bytes().sum())
        check_text(file, sum(rows.select(*texts).collect(engine="streaming").row(0)))
        if number:
            copies.files.pop(file).close()
    return first


def _name(file: IO[bytes]) -> str:
    return f"/proc/self/fd/{file.fileno()}"


def check(call: Call) -> None:
    """Raises `ValueError`, one line, for a call that no recorder can have seen."""
    known = CALLS.get(call.name)
    if known is None:
        raise ValueError(f"{call.name[:40]!r} is not a call that a recording can have")
    if call.task < 0 or call.start_ns < 0 or (call.duration_ns or 0) < 0 or (call.cpu_ns or 0) < 0:
        raise ValueError(f"{call.name}: a task or time below 0")
    given = set(call.arguments)
    for name, may_be_missing in known:
        if name in given:
            given.remove(name)
            _check_argument(call, name)
        elif not may_be_missing:
            raise ValueError(f"{call.name}: {name} is missing")
    if given:
        raise ValueError(f"{call.name}: has no {min(given)[:40]}")
    if call.name == EXISTED and not 0 <= call.number("mode") < 1 << 16:
        raise ValueError(f"{call.name}: mode is not a file's")
    if call.name in _MOVES_DATA and call.result > _MOVED_BYTES_MAX:
        raise ValueError(f"{call.name}: more than the {_MOVED_BYTES_MAX:,} bytes of any call")
    if call.name in ("mapped_read", "mapped_write") and call.number("length") > _MOVED_BYTES_MAX:
        raise ValueError(f"{call.name}: more than {_MOVED_BYTES_MAX:,} bytes")
    if call.written is not None:
        _check_written(call, call.written)


def _check_argument(call: Call, name: str) -> None:
    value = call.arguments[name]
    if not isinstance(value, ARGUMENTS[name]):
        raise ValueError(f"{call.name}: {name} is of another type")
    if isinstance(value, bytes) and (not value or b"\0" in value) and name != "target":
        raise ValueError(f"{call.name}: {name} is empty or has a NUL byte")
    if isinstance(value, bytes) and len(value) > _PATH_BYTES_MAX:
        raise ValueError(f"{call.name}: {name} has more than the {_PATH_BYTES_MAX:,} bytes of any")
    if isinstance(value, bytes) and name in ("path", "to_path") and not value.startswith(b"/"):
        parts = value.split(b"/")
        if value != b"." and any(part in (b"", b".", b"..") for part in parts):
            raise ValueError(f"{call.name}: {name} is not relative to the folder")
    counts = name in ("offset", "length", "to_offset") and call.name != "lseek"
    may_fail = call.name != EXISTED
    if counts and isinstance(value, int) and value < 0 and (call.result >= 0 or not may_fail):
        raise ValueError(f"{call.name}: {name} is below 0")


def _check_written(call: Call, written: Written) -> None:
    if call.name not in WRITES:
        raise ValueError(f"{call.name}: writes nothing, and has data")
    moved = call.result if call.name in _MOVE else call.number("length")
    if call.result < 0 and call.name != "mapped_write":
        raise ValueError(f"{call.name}: failed, and has data")
    if isinstance(written, bytes):
        if len(written) != moved:
            raise ValueError(f"{call.name}: {len(written)} bytes of data for {moved}")
        return
    least = -(-moved // PIECE_BYTES)
    if not least <= len(written) <= least + 1:
        raise ValueError(f"{call.name}: {len(written)} sizes for {moved} bytes")
    if any(size > PIECE_BYTES for piece in written for size in piece):
        raise ValueError(f"{call.name}: a size of more than {PIECE_BYTES} bytes")


_MOVE = frozenset({"write", "writev", "pwrite64", "pwritev", "pwritev2"})
_MOVES_DATA = _MOVE | {"read", "readv", "pread64", "preadv", "preadv2", "sendfile", "splice",
                       "copy_file_range"}  # fmt: skip
_MOVED_BYTES_MAX = 0x7FFFF000
"""MAX_RW_COUNT of Linux."""
_PATH_BYTES_MAX = 8192
"""A folder's path and a path in it, each PATH_MAX of Linux at most."""
_NAMES = tuple(ARGUMENTS)


def _call(values: Sequence[Any]) -> Call:
    """A row as a call. Raises `ValueError` for a missing or impossible value."""
    task, start_ns, duration_ns, cpu_ns, name, *rest = values
    *arguments, result, data, sizes = rest
    if None in (task, start_ns, name, result):
        raise ValueError("a value is missing")
    given = {key: value for key, value in zip(_NAMES, arguments, strict=True) if value is not None}
    written: Written | None = data
    if sizes is not None:
        if data is not None or len(sizes) % PACKED_BYTES:
            raise ValueError(f"{name[:40]}: sizes of no pieces")
        written = unpack_pieces(sizes)
    return Call(
        task=task,
        start_ns=start_ns,
        duration_ns=duration_ns,
        cpu_ns=cpu_ns,
        name=name,
        arguments=given,
        result=result,
        written=written,
    )


def _first_line(why: BaseException) -> str:
    lines = str(why).splitlines() or [type(why).__name__]
    return lines[0][:200]
