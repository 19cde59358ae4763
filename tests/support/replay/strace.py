"""System calls of an SQLite program, from a strace made on a board.

Reads the CSV of the omap3evm traces (time in s; call; arguments; file; elapsed). That strace was
filtered: it has no fsync and no unlink (evidence/board-traces.md says where they belong). A
program that only reads is replayed as logged. One that writes is regenerated (inserts.py) and takes
only its pace from here.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.program.operations import Operation

__all__ = ["DATABASE", "JOURNAL", "Call", "Pace", "pace_of", "read_strace", "reads_of"]

DATABASE = "test.db"
JOURNAL = "test.db-journal"
SPARE_SLOT = 9
HEADER_COMPLETED = (0, 12)
"""Offset and length of the write that makes the journal valid."""


@dataclass(frozen=True)
class Call:
    """One recorded system call; offset and length are 0 except for `read` and `write`."""

    start_ns: int
    name: str
    slot: int
    offset_bytes: int
    length_bytes: int
    file: str


def read_strace(path: Path) -> list[Call]:
    """The recorded calls, in order. `InputError` names the line of anything else."""
    calls = []
    lines = read_text(path).splitlines(keepends=True)
    rows = csv.reader(lines, delimiter=";")
    try:
        for row in rows:
            if row and not row[0].startswith("#"):
                calls.append(_call(row))
    except (ValueError, IndexError, OverflowError, csv.Error):
        raise InputError(f"{path}:{rows.line_num}: not a call of a board's strace") from None
    return calls


def _call(row: Sequence[str]) -> Call:
    start, name, slot = row[:3]
    moves = name in ("read", "write")
    offset_bytes, length_bytes = (int(row[3]), int(row[4])) if moves else (0, 0)
    file = row[-2].rsplit("/", 1)[1]
    return Call(
        start_ns=round(float(start) * 1e9),
        name=name,
        slot=int(slot),
        offset_bytes=offset_bytes,
        length_bytes=length_bytes,
        file=file,
    )


def reads_of(calls: Sequence[Call]) -> list[Operation]:
    """A program that only reads the database, with the pauses between its calls.

    Where it reopens the database the page cache was dropped in between: its first read went to the
    flash again. Reads of no bytes are left out.
    its first read went to the flash again. Reads of no bytes are left out.
    """
    operations = []
    before = calls[0]
    for call in calls:
        if call.start_ns > before.start_ns:
            operations.append(Operation("pause", (call.start_ns - before.start_ns,)))
        if (before.name, call.name) == ("close", "open"):
            operations += forget_pages()
        if call.name == "open":
            operations.append(Operation("open", (call.slot, call.file, "ro")))
        elif call.name == "close":
            operations.append(Operation("close", (call.slot,)))
        elif call.length_bytes:
            at = (call.slot, call.offset_bytes, call.length_bytes)
            operations.append(Operation("read", at))
        before = call
    return operations


def forget_pages() -> list[Operation]:
    """Drops the page cache but keeps the database's inode, as 1 in drop_caches does."""
    held = Operation("open", (SPARE_SLOT, DATABASE, "ro"))
    return [held, Operation("drop_caches"), Operation("close", (SPARE_SLOT,))]


@dataclass(frozen=True)
class Pace:
    """When a transaction makes its calls, as parts of the time to the next: medians of a strace."""

    journal: tuple[float, ...]
    """Writes up to the journal's first sync: header; for each page its number, page, checksum."""
    synced: float
    completed: float
    """The header is completed and the journal synced again."""
    database: tuple[float, ...]
    """Writes to the database."""
    closed: float
    """The database is synced, the journal closed and unlinked."""


def pace_of(calls: Sequence[Call]) -> Pace:
    """The pace of a strace's INSERTs."""
    starts = [
        index for index, call in enumerate(calls) if (call.name, call.file) == ("open", JOURNAL)
    ]
    made = [calls[start:end] for start, end in pairwise([*starts, len(calls)])]
    period_ns = median(
        calls[after].start_ns - calls[start].start_ns for start, after in pairwise(starts)
    )

    def part(transaction: Sequence[Call], of: Callable[[Call], bool]) -> list[float]:
        begin_ns = transaction[0].start_ns
        return [(call.start_ns - begin_ns) / period_ns for call in transaction if of(call)]

    def medians(of: Callable[[Call], bool]) -> tuple[float, ...]:
        rows = [part(transaction, of) for transaction in made]
        return tuple(map(median, _columns(rows)))

    def completes(call: Call) -> bool:
        return (
            _is("write", JOURNAL)(call)
            and (call.offset_bytes, call.length_bytes) == HEADER_COMPLETED
        )

    return Pace(
        journal=medians(lambda call: _is("write", JOURNAL)(call) and not completes(call)),
        synced=medians(_is("read", JOURNAL))[0],
        completed=medians(completes)[0],
        database=medians(_is("write", DATABASE)),
        closed=medians(_is("close", JOURNAL))[0],
    )


def _is(name: str, file: str) -> Callable[[Call], bool]:
    return lambda call: (call.name, call.file) == (name, file)


def _columns(rows: Sequence[Sequence[float]]) -> Iterable[list[float]]:
    """The first element of each row, then the second of rows that have one, and so on."""
    for column in range(max(map(len, rows))):
        yield [row[column] for row in rows if len(row) > column]
