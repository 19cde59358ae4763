"""Turns rows of the stream into rows of a recording: relative paths, compressed sizes of writes.

It works on whole chunks, because a program may make a million calls. Rows arrive in the order in
which calls ended; they are held back until no call that began earlier can arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from flashbed._sim import PieceSizer
from flashbed.base.errors import RunError
from flashbed.program.recording.calls import ARGUMENTS, CALLS, EXISTED, FOLDER, PIECE_BYTES
from flashbed.program.recording.file import SCHEMA
from flashbed.targets.recorder.wire import Chunk

__all__ = ["CONTENTS_BYTES_MAX", "Assembler", "Folders"]

_TEXTS = ("path", "to_path", "name", "target")
_BIT = {name: 1 << place for place, name in enumerate(ARGUMENTS)}
_HAS_BYTES = 1 << 15
_UNKNOWN = np.uint64(2**64 - 1)
_PIECE_BYTES = 12
_BY_LENGTH = frozenset({"setxattr", "lsetxattr", "fsetxattr", "mapped_write"})
CONTENTS_BYTES_MAX = 64 << 20
"""Of a write whose bytes are kept: a row of a table is in memory several times."""
_LENGTHS = ("offset", "length", "to_offset")


@dataclass(frozen=True)
class Folders:
    """The followed folders.

    The first is the recording's. Files of the others keep their whole path, without the first
    slash.
    """

    paths: tuple[bytes, ...]

    def relative(self, path: bytes) -> bytes:
        """A path as a recording has it. One outside the folders stays absolute."""
        for place, folder in enumerate(self.paths):
            inside = folder.rstrip(b"/") + b"/"
            if path == folder or (path + b"/") == inside:
                return FOLDER if place == 0 else path[1:] or FOLDER
            if path.startswith(inside):
                return path[len(inside) :] if place == 0 else path[1:]
        return path or b"/"

    def above(self) -> list[bytes]:
        """Folders above those of `--below`, the outermost first."""
        found: dict[bytes, None] = {}
        for folder in self.paths[1:]:
            if self.relative(folder) != folder[1:]:
                continue
            names = folder[1:].split(b"/")
            found.update((b"/".join(names[: at + 1]), None) for at in range(len(names)))
        return list(found)


@dataclass(kw_only=True)
class _Begun:
    """A write whose bytes have not all arrived."""

    order: int
    file: int
    at: int
    left: int
    column: str
    """`data` for its bytes, `sizes` for their compressed sizes."""
    tail: bytes = b""
    parts: list[bytes] = field(default_factory=list)


@dataclass(kw_only=True)
class Assembler:
    """Takes chunks and returns frames of complete rows."""

    names: Sequence[str]
    """Names of calls, by their number in the stream; number 0 is ""."""
    folders: Folders
    contents: bool
    threads: int = 2
    written_bytes: int = 0
    without_contents: int = 0
    """Writes of more than CONTENTS_BYTES_MAX, of which only the sizes are kept."""
    _begun: _Begun | None = None
    _late: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    """By row: the column, and its value that came after the row."""
    _held: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        self._sizer = PieceSizer(self.threads)
        self._relative = lru_cache(maxsize=1 << 16)(self.folders.relative)
        known = [dict(CALLS.get(name, ())) for name in self.names]
        self._allowed = np.array([_mask(call) for call in known], np.uint16)
        self._needed = np.array(
            [_mask([name for name, may_miss in call.items() if not may_miss]) for call in known],
            np.uint16,
        )
        self._by_length = np.array([name in _BY_LENGTH for name in self.names])
        self._seeks = np.array([name == "lseek" for name in self.names])
        self._known = np.array([name in CALLS for name in self.names])
        self._name = pl.Series("call", list(self.names), pl.String)

    def chunk(self, chunk: Chunk) -> pl.DataFrame | None:
        """The rows that no earlier row can precede any more."""
        rows = chunk.rows
        if rows.size and int(rows["call"].max()) >= len(self.names):
            raise RunError("the recorder's stream has a call without a name")
        texts = sum(rows[name].astype(np.int64) for name in _TEXTS)
        ends = np.cumsum(texts + rows["bytes"].astype(np.int64))
        if rows.size and int(ends[-1]) != len(chunk.blob):
            raise RunError("the recorder's stream has rows whose texts have another length")
        begins = ends - texts - rows["bytes"].astype(np.int64)
        written = self._written(rows, chunk.blob, begins + texts)
        wanted = np.flatnonzero(self._wanted(rows))
        frame = self._frame(rows[wanted], chunk.blob, begins[wanted]).with_columns(
            pl.Series(column, [of.get(place) for place in wanted.tolist()], pl.Binary)
            for column, of in written.items()
        )
        return self._released(frame, chunk.oldest)

    def rest(self) -> pl.DataFrame | None:
        """The rows held back; calls that had not ended are dropped."""
        if self._begun is not None:
            if self._held is not None:
                self._held = self._held.filter(pl.col("order") != self._begun.order)
            self._begun = None
        return self._released(None, 2**63)

    def existed_above(self) -> pl.DataFrame | None:
        """Rows for the folders above those of `--below`."""
        above = self.folders.above()
        if not above:
            return None
        rows = [
            dict.fromkeys(SCHEMA)
            | {"task": 0, "start_ns": 0, "duration_ns": 0, "call": EXISTED, "result": 0}
            | {"path": path, "length": 0, "mode": 0o40755}
            for path in above
        ]
        return pl.DataFrame(rows, schema=SCHEMA)

    def _wanted(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
        """Which rows are calls that a recording can have, with all their arguments."""
        call = rows["call"]
        whole = (rows["has"] & self._needed[call]) == self._needed[call]
        wanted: npt.NDArray[np.bool_] = np.logical_and(self._known[call], whole)
        return wanted

    def _frame(
        self, rows: npt.NDArray[np.void], blob: bytes, begins: npt.NDArray[np.int64]
    ) -> pl.DataFrame:
        call, result = rows["call"], rows["result"]
        has = rows["has"] & self._allowed[call]
        columns: dict[str, pl.Series] = {
            "order": pl.Series(rows["order"].astype(np.int64)),
            "task": pl.Series(rows["task"].astype(np.int32)),
            "start_ns": pl.Series(rows["start_ns"].astype(np.int64)),
            "duration_ns": pl.Series(rows["duration_ns"].astype(np.int64)),
            "cpu_ns": _nullable(rows["cpu_ns"].astype(np.int64), rows["cpu_ns"] != _UNKNOWN),
            "call": self._name.gather(call.astype(np.uint32)),
            "result": pl.Series(np.ascontiguousarray(result)),
        }
        at = begins
        for name, kind in ARGUMENTS.items():
            there = (has & _BIT[name]) != 0
            if kind is bytes:
                columns[name] = self._text(name, blob, begins=at, lengths=rows[name], there=there)
                at = at + rows[name]
                continue
            values = rows[name].astype(np.int64)
            if name in _LENGTHS:
                # Some calls accept sizes that exceed the column's type.
                values = np.where(
                    (values < 0) & (result >= 0) & ~self._seeks[call], 2**63 - 1, values
                )
            columns[name] = _nullable(values, there)
        return pl.DataFrame(columns).select(
            "order", *(name for name in SCHEMA if name not in ("data", "sizes"))
        )

    def _text(
        self, name: str, blob: bytes, *, begins: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.uint16], there: npt.NDArray[np.bool_],
    ) -> pl.Series:  # fmt: skip
        column: list[bytes | None] = [None] * len(lengths)
        is_path = name in ("path", "to_path")
        places = np.flatnonzero(there)
        ends = (begins + lengths)[places].tolist()
        for place, begin, end in zip(places.tolist(), begins[places].tolist(), ends, strict=True):
            text = blob[begin:end]
            column[place] = self._relative(text) if is_path else text
        return pl.Series(name, column, pl.Binary)

    def _written(
        self, rows: npt.NDArray[np.void], blob: bytes, begins: npt.NDArray[np.int64]
    ) -> dict[str, dict[int, bytes]]:
        """`data` and `sizes`: for each row the bytes that it wrote, or their compressed sizes."""
        done: dict[str, dict[int, bytes]] = {"data": {}, "sizes": {}}
        places: list[int] = []
        writes: list[tuple[int, int, int]] = []
        parts: list[bytes] = []
        of_writes = (rows["has"] & _HAS_BYTES != 0) | (rows["call"] == 0)
        for place in np.flatnonzero(of_writes).tolist():
            row, begin = rows[place], int(begins[place])
            data = blob[begin : begin + int(row["bytes"])]
            if row["call"] == 0:
                self._more(int(row["order"]), data)
                continue
            total = int(row["length"] if self._by_length[row["call"]] else row["result"])
            file, at = int(row["file"]) ^ int(row["device"]) << 40, max(0, int(row["at"]))
            self.written_bytes += total
            keeps = self.contents and total <= CONTENTS_BYTES_MAX
            self.without_contents += self.contents and not keeps
            if len(data) == total and keeps:
                done["data"][place] = data
                continue
            if len(data) == total:
                places.append(place)
                writes.append((file & (2**64 - 1), at, total))
                parts.append(data)
                continue
            column = "data" if keeps else "sizes"
            self._begun = _Begun(
                order=int(row["order"]), file=file & (2**64 - 1), at=at, left=total, column=column
            )
            self._more(int(row["order"]), data)
        sizes = self._sizer.sizes(b"".join(parts), writes) if writes else b""
        end = 0
        for place, (_, at, length) in zip(places, writes, strict=True):
            pieces = (at % PIECE_BYTES + length + PIECE_BYTES - 1) // PIECE_BYTES
            done["sizes"][place] = sizes[end : end + pieces * _PIECE_BYTES]
            end += pieces * _PIECE_BYTES
        return done

    def _more(self, order: int, data: bytes) -> None:
        """Takes further bytes of a long write; measures whole pages."""
        begun = self._begun
        if begun is None or begun.order != order or len(data) > begun.left:
            raise RunError("the recorder's stream has bytes without a write")
        begun.left -= len(data)
        if begun.column == "data":
            begun.parts.append(data)
        else:
            whole = begun.tail + data
            cut = len(whole)
            if begun.left:
                cut = max(0, cut - (begun.at + cut) % PIECE_BYTES)
            if cut:
                begun.parts.append(self._sizer.sizes(whole[:cut], [(begun.file, begun.at, cut)]))
            begun.at += cut
            begun.tail = whole[cut:]
        if begun.left == 0:
            self._late[order] = begun.column, b"".join(begun.parts)
            self._begun = None

    def _released(self, frame: pl.DataFrame | None, oldest: int) -> pl.DataFrame | None:
        frames = [each for each in (self._held, frame) if each is not None]
        if not frames:
            return None
        limit = oldest if self._begun is None else min(oldest, self._begun.order)
        every = pl.concat(frames).sort("order")
        ready = every.filter(pl.col("order") < limit)
        self._held = every.filter(pl.col("order") >= limit)
        for order in [order for order in self._late if order < limit]:
            column, value = self._late.pop(order)
            late = pl.lit(value, pl.Binary)
            ready = ready.with_columns(
                pl.when(pl.col("order") == order).then(late).otherwise(pl.col(column)).alias(column)
            )
        return ready.select(*SCHEMA) if ready.height else None


def _mask(names: Iterable[str]) -> int:
    return sum(_BIT[name] for name in names)


def _nullable(values: npt.NDArray[np.int64], there: npt.NDArray[np.bool_]) -> pl.Series:
    series = pl.Series(np.ascontiguousarray(values))
    return series.set(pl.Series(~there), None)
