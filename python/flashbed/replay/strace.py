"""The strace of an SQLite program on a board becomes a `flashbed-ops` file.

Reads the CSV of the omap3evm traces (time in s; call; arguments; file; elapsed). That strace was
filtered: it has no fsync and no unlink. They are put back where SQLite 3.7 (src/pager.c
syncJournal, pager_end_transaction; src/os_unix.c unixSync, unixDelete) has them in a transaction
with a rollback journal: the journal is synced before its header is completed (12 bytes at 0), and
again after; the database is synced before the journal is closed; the journal is unlinked after.

Left out: the directory's fsync after the journal's first, which on JFFS2 finds nothing pending;
reads of no bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flashbed.errors import InputError
from flashbed.operations import Operation

__all__ = ["Call", "Content", "forget_pages", "grown_bytes", "operations_of", "read_strace"]

DATABASE = "test.db"
JOURNAL = "test.db-journal"
DATABASE_SLOT = 3
"""The first descriptor after the standard ones, in every trace."""
SPARE_SLOT = 9
DATABASE_PAGE_BYTES = 1024
FIXED_BYTES = 2 * DATABASE_PAGE_BYTES
"""The database's header with the schema, and the root of its table: there before the program, and
written in place."""
JOURNALED_PAGE_BYTES = 516
"""Where the journal's first page of content begins: after its header and the page's number."""
HEADER_COMPLETED = (0, 12)
"""Offset and length of the write that makes the journal valid."""


@dataclass(frozen=True)
class Call:
    """One recorded system call; offset and length are those of `read` and `write`, else 0."""

    start_ns: int
    name: str
    slot: int
    offset_bytes: int
    length_bytes: int
    file: str


def read_strace(path: Path) -> list[Call]:
    """The recorded calls, in order. `InputError` names the line that is not one."""
    calls = []
    with path.open(newline="", encoding="ascii") as lines:
        for number, row in enumerate(csv.reader(lines, delimiter=";"), start=1):
            if row and not row[0].startswith("#"):
                try:
                    calls.append(_call(row))
                except (ValueError, IndexError):
                    message = f"{path}:{number}: not a call of a board's strace"
                    raise InputError(message) from None
    return calls


def _call(row: Sequence[str]) -> Call:
    start, name, slot = row[:3]
    moves = name in ("read", "write")
    offset_bytes, length_bytes = (int(row[3]), int(row[4])) if moves else (0, 0)
    file = row[-2].rsplit("/", 1)[1]
    return Call(round(float(start) * 1e9), name, int(slot), offset_bytes, length_bytes, file)


@dataclass(frozen=True)
class Content:
    """What the program wrote, as far as JFFS2's compressors care; the traces do not say.

    Compressibility of pages with records, and of the rest: the database's first page and the
    journal's header, which are mostly zeroes in SQLite's format.
    """

    records: int
    rest: int = 95


def grown_bytes(calls: Sequence[Call]) -> int:
    """By how much the program makes the database longer."""
    ends = [call.offset_bytes + call.length_bytes for call in calls if _grows(call)]
    return max(ends, default=FIXED_BYTES) - FIXED_BYTES


def operations_of(
    calls: Sequence[Call], duration_ns: int, content: Content, shift_bytes: int = 0
) -> list[Operation]:
    """The program with the pauses between its calls, and the calls that strace left out.

    The pauses are stretched so that the program takes `duration_ns`: the board's Flashmon log
    comes from another execution than its strace, at another pace. What makes the database longer
    is written `shift_bytes` behind where strace has it.
    """
    stretch = duration_ns / (calls[-1].start_ns - calls[0].start_ns)
    operations = []
    before = calls[0]
    for seed, call in enumerate(calls, start=1):
        pause_ns = round((call.start_ns - before.start_ns) * stretch)
        if pause_ns > 0:
            operations.append(Operation("pause", (pause_ns,)))
        if call.name == "open" and before.name == "close" and before.file == call.file == DATABASE:
            operations += forget_pages()
        moved = replace(call, offset_bytes=call.offset_bytes + shift_bytes)
        shifted = moved if _grows(call) else call
        compressibility = content.records if _holds_records(call) else content.rest
        operations += _restored(shifted, seed, compressibility)
        before = call
    return operations


def forget_pages() -> list[Operation]:
    """Drops the page cache but keeps the database's inode, as 1 in drop_caches does."""
    held = Operation("open", (SPARE_SLOT, DATABASE, "ro"))
    return [held, Operation("drop_caches"), Operation("close", (SPARE_SLOT,))]


def _grows(call: Call) -> bool:
    return call.name == "write" and call.file == DATABASE and call.offset_bytes >= FIXED_BYTES


def _holds_records(call: Call) -> bool:
    """Whether the page written, or journaled, is not the database's first."""
    first = JOURNALED_PAGE_BYTES if call.file == JOURNAL else DATABASE_PAGE_BYTES
    return call.offset_bytes == first if call.file == JOURNAL else call.offset_bytes >= first


def _restored(call: Call, seed: int, compressibility: int) -> list[Operation]:
    """A call with what SQLite does before and after it."""
    if call.file not in (DATABASE, JOURNAL):
        return []  # the directory
    sync = Operation("fsync", (call.slot,))
    at = (call.slot, call.offset_bytes, call.length_bytes)
    if call.name == "open":
        return [Operation("open", (call.slot, call.file, "rw,create"))]
    if call.name == "write":
        write = Operation("write", (*at, seed, compressibility))
        completes = call.file == JOURNAL and at[1:] == HEADER_COMPLETED
        return [sync, write, sync] if completes else [write]
    if call.name == "read":
        return [Operation("read", at)] if call.length_bytes else []
    if call.file == JOURNAL:
        database = Operation("fsync", (DATABASE_SLOT,))
        return [database, Operation("close", (call.slot,)), Operation("unlink", (JOURNAL,))]
    return [Operation("close", (call.slot,))]
