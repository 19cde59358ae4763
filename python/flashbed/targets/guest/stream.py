"""Reads the agent's output, `flashbed-stream 1` (agent/PROTOCOL.md), as it grows.

`Reader.feed` takes bytes as they arrive and yields whole things. A finished case is one object; a
long case is several, of which it is the last. Anything else raises `StreamError`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flashbed.targets.base import Run, Survey, SurveyedDatabase, SurveyedFile
from flashbed.targets.fullness import FreeSpace

__all__ = [
    "NOT_MEASURED",
    "CaseBegun",
    "CaseDone",
    "CaseRows",
    "CutBegun",
    "Event",
    "GroupReady",
    "Info",
    "JobDone",
    "Reader",
    "StreamError",
    "StreamRow",
    "Trouble",
]

HEADER = "flashbed-stream 1"
ROWS_AT_ONCE = 1 << 14
"""Rows in a table, at most. A row takes some hundred bytes in Python, twice while it is made."""
NOT_MEASURED = "not-measured"
"""The code of an `error` row for a case that the kernel lacks something for."""


class StreamError(Exception):
    """Bytes that are no `flashbed-stream 1`."""


@dataclass(frozen=True)
class Info:
    """A fact about the board."""

    key: str
    value: str


@dataclass(frozen=True)
class GroupReady:
    """A group's preparation has finished."""

    group_id: str
    space: FreeSpace


@dataclass(frozen=True)
class CaseBegun:
    """A case has begun."""

    case_id: str


class StreamRow(NamedTuple):
    """A measured operation; None for what the board does not know or did not measure."""

    seq: int
    line: int
    start_ns: int
    latency_ns: int
    result: int
    flash_time_ns: int | None
    content_crc32: int | None
    changes: int | None


FlashRow = tuple[int, int, str, int, int, int, int, str, int | None]


@dataclass(frozen=True)
class CaseRows:
    """The next rows of a case too long to hold; `CaseDone` has the last ones."""

    case_id: str
    requests: list[StreamRow]
    flash: list[FlashRow]
    errors: dict[int, str]


@dataclass(kw_only=True)
class CaseDone:
    """A whole case. Times in ns since the mark.

    `flash` is (seq, start_ns, kind, block, page, offset_bytes, length_bytes, task, duration_ns),
    `wear` is (block, erases, erases_measured, state) of the chip; None is what the board does not
    know.
    """

    case_id: str
    requests: list[StreamRow] = field(default_factory=list)
    flash: list[FlashRow] = field(default_factory=list)
    wear: list[tuple[int, int | None, int, str | None]] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    """SQLite's error messages, by the row of the refused statement."""
    calls: list[tuple[int, str]] = field(default_factory=list)
    """Row and system call, in order, if requested."""
    counts: tuple[int | None, int | None, int | None, int] | None = None
    """Reads, programs, erases and lost operations; always set at a case's end. None: not seen."""
    traced: list[str] = field(default_factory=list)
    """Rows of the tracers, unparsed."""
    read_ahead_kib: int | None = None
    """The read-ahead window that was read back; None if the kernel does not report it."""
    flush: tuple[int, int, int, int] | None = None
    """Reads, programs, erases and lost operations of the flush after the case."""
    flush_erases: dict[int, int] = field(default_factory=dict)
    """The flush's erases by block, if wear was requested."""
    faults: tuple[int, int, int] | None = None
    """Corrected bits, uncorrectable ECC steps, bad blocks; on our own chip only."""


@dataclass(frozen=True)
class CutBegun:
    """The chip is being put into the state of a cut. A `Survey` ends it."""

    case_id: str
    change: int


@dataclass(kw_only=True)
class _Cut:
    """What the stream has said about a cut so far."""

    case_id: str
    change: int
    mount: tuple[int, int] | None = None
    files: list[tuple[str, int, list[Run], str | None]] = field(default_factory=list)
    probe_result: int | None = None
    database: tuple[str, int, str] | None = None
    tables: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """An `error` row; `scope` is `job`, `group` or `case`, `name` its identifier."""

    scope: str
    name: str
    line: int
    code: str
    message: str


@dataclass(frozen=True)
class JobDone:
    """The job has finished."""


Event = Info | GroupReady | CaseBegun | CaseRows | CaseDone | CutBegun | Survey | Trouble | JobDone


def _known(field: str) -> int | None:
    return None if field == "-" else int(field)


def _what(text: str, blocks: Mapping[int, bytes]) -> tuple[int, int] | str | bytes | int:
    """Parses the last field of a `p` row."""
    if text == "zero":
        return text
    if text.startswith("="):
        return blocks[int(text[1:])]
    if ":" in text:
        seed, compressibility = map(int, text.split(":"))
        return seed, compressibility
    return int(text)


class Reader:
    """Turns the stream's bytes into events."""

    def __init__(self, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._rows_at_once = rows_at_once
        self._rest = b""
        self._headed = False
        self._case: CaseDone | None = None
        self._cut: _Cut | None = None
        self._blocks: dict[int, bytes] = {}
        """The `k` rows so far; a later group may use a number again."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Takes more bytes; yields what is complete. Raises `StreamError`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for raw in lines:
            line = raw.decode("ascii", "replace")
            if not self._headed:
                if line != HEADER:
                    raise StreamError(f"the first line is {line[:60]!r}, not {HEADER!r}")
                self._headed = True
                continue
            yield from self._many(line)
            try:
                event = self._row(line)
            except (ValueError, LookupError):
                raise StreamError(f"no row of {HEADER}: {line[:80]!r}") from None
            if event is not None:
                yield event

    def _many(self, line: str) -> Iterator[CaseRows]:
        """The rows of a case so far, if they are many and the next row begins."""
        case = self._case
        if case is None or line[:2] not in ("r ", "f "):
            return
        if max(len(case.requests), len(case.flash)) >= self._rows_at_once:
            yield CaseRows(case.case_id, case.requests, case.flash, case.errors)
            case.requests, case.flash, case.errors = [], [], {}

    def _row(self, line: str) -> Event | None:
        word, *fields = line.split(" ")
        match word:
            case "t" if self._case is not None:
                self._case.traced.append(line[2:])
                return None
            case "a" | "r" | "q" | "o" | "f" | "w" | "c" | "e" | "b" | "l" | "end":
                return self._case_row(word, fields)
            case "m" | "s" | "p" | "k" | "y" | "d" | "t" | "u" | "endcut":
                return self._cut_row(word, fields)
            case "cut":
                self._cut = _Cut(case_id=fields[0], change=int(fields[1]))
                return CutBegun(self._cut.case_id, self._cut.change)
            case "info":
                return Info(fields[0], " ".join(fields[1:]))
            case "group":
                fresh_bytes, now_bytes = map(int, fields[1:3])
                fresh_pages, now_pages = map(_known, fields[3:])
                return GroupReady(
                    fields[0], FreeSpace(fresh_bytes, now_bytes, fresh_pages, now_pages)
                )
            case "case":
                self._case = CaseDone(case_id=fields[0])
                return CaseBegun(fields[0])
            case "error":
                scope, _, name = fields[0].partition(":")
                return Trouble(
                    scope=scope,
                    name=name,
                    line=int(fields[1]),
                    code=fields[2],
                    message=" ".join(fields[3:]),
                )
            case "done":
                return JobDone()
            case _:
                raise ValueError(word)

    def _case_row(self, word: str, fields: list[str]) -> CaseDone | None:
        case = self._case
        if case is None:
            raise ValueError(word)
        if word == "a":
            case.read_ahead_kib = _known(fields[0])
        elif word == "r":
            seq, line, start, latency, result = map(int, fields[:5])
            flash_time, crc, changes = map(_known, fields[5:])
            case.requests.append(
                StreamRow(
                    seq=seq,
                    line=line,
                    start_ns=start,
                    latency_ns=latency,
                    result=result,
                    flash_time_ns=flash_time,
                    content_crc32=crc,
                    changes=changes,
                )
            )
        elif word == "q":
            case.errors[int(fields[0])] = " ".join(fields[1:])
        elif word == "o":
            case.calls.append((int(fields[0]), " ".join(fields[1:])))
        elif word == "f":
            seq, start, block, page, offset, length = map(int, fields[:2] + fields[3:7])
            what = (fields[2], block, page, offset, length, fields[7])
            case.flash.append((seq, start, *what, _known(fields[8])))
        elif word == "w":
            block, measured = int(fields[0]), int(fields[2])
            state = None if fields[3] == "-" else fields[3]
            case.wear.append((block, _known(fields[1]), measured, state))
        elif word == "c":
            reads, programs, erases = map(_known, fields[:3])
            (lost,) = map(int, fields[3:])
            case.counts = (reads, programs, erases, lost)
        elif word == "b":
            block, erases = map(int, fields)
            case.flush_erases[block] = erases
        elif word == "l":
            reads, programs, erases, lost = map(int, fields)
            case.flush = (reads, programs, erases, lost)
        elif word == "e":
            corrected, failed, bad_blocks = map(int, fields)
            case.faults = (corrected, failed, bad_blocks)
        else:
            if fields != [case.case_id] or case.counts is None:
                raise ValueError(word)
            self._case = None
            return case
        return None

    def _cut_row(self, word: str, fields: list[str]) -> Survey | None:
        cut = self._cut
        if cut is None or (word != "m" and cut.mount is None):
            raise ValueError(word)
        if word == "m":
            result, time_ns = map(int, fields)
            cut.mount = result, time_ns
        elif word == "s":
            size_bytes, path = fields
            cut.files.append((path, int(size_bytes), [], None))
        elif word == "p":
            offset_bytes, length_bytes, what = fields
            held = _what(what, self._blocks)
            cut.files[-1][2].append(Run(int(offset_bytes), int(length_bytes), held))
        elif word == "k":
            number, text = fields
            self._blocks[int(number)] = base64.b64decode(text, validate=True)
        elif word == "y":
            path, target = fields
            cut.files.append((path, 0, [], target))
        elif word == "d":
            cut.database = fields[0], int(fields[1]), " ".join(fields[2:])
        elif word == "t":
            cut.tables[" ".join(fields[2:])] = int(fields[0]), int(fields[1])
        elif word == "u":
            (cut.probe_result,) = map(int, fields)
        else:
            return self._survey(cut, fields)
        return None

    def _survey(self, cut: _Cut, fields: list[str]) -> Survey:
        if fields != [cut.case_id, str(cut.change)] or cut.mount is None:
            raise ValueError("endcut")
        if (cut.mount[0] == 0) != (cut.probe_result is not None):
            raise ValueError("endcut")
        self._cut = None
        files = tuple(
            SurveyedFile(path, size, tuple(runs), target) for path, size, runs, target in cut.files
        )
        database = SurveyedDatabase(*cut.database, cut.tables) if cut.database else None
        mount_result, mount_time_ns = cut.mount
        return Survey(
            case_id=cut.case_id,
            change=cut.change,
            mount_result=mount_result,
            mount_time_ns=mount_time_ns,
            files=files,
            probe_result=cut.probe_result,
            database=database,
        )
