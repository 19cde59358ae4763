"""The omap3evm traces as cases: the state a run began in, its program, and what Flashmon counted.

A series began on a fresh file system: 800 blocks, of which the one before the last is written
first, as the first run's log has it. Each INSERT run appended to the database of the runs before
(the log of a later run reads four pieces of the first 4 KiB, and moves what is two runs old),
with the page cache dropped between runs and the inodes kept (no later run reads its database's
nodes on open). What a run's predecessors wrote is its own program, at earlier offsets: their
straces differ in the pauses only. A SELECT run reads what one INSERT run left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.operations import Operation, canonical
from flashbed.profiles import load_board, load_kernel
from flashbed.replay.strace import (
    DATABASE,
    DATABASE_SLOT,
    JOURNAL,
    Call,
    Content,
    forget_pages,
    grown_bytes,
    operations_of,
)
from flashbed.targets.base import Program

__all__ = ["FlashmonLog", "insert_case", "read_flashmon", "select_case"]

SECOND_NS = 1_000_000_000
JOURNAL_SLOT = 4
READ_AHEAD_KIB = 128


@dataclass(frozen=True)
class FlashmonLog:
    """A run's time from first to last flash operation, and its operations by kind and task."""

    duration_ns: int
    counts: Counter[tuple[str, str]]

    def total(self, kind: str) -> int:
        """Operations of a kind: read, program or erase."""
        return sum(count for (its, _), count in self.counts.items() if its == kind)


KINDS = {"R": "read", "W": "program", "E": "erase"}


def read_flashmon(path: Path) -> FlashmonLog:
    """A Flashmon log: time in s; kind; page or block; task."""
    rows = [line.split(";") for line in path.read_text(encoding="ascii").split()]
    seconds = float(rows[-1][0]) - float(rows[0][0])
    return FlashmonLog(round(seconds * SECOND_NS), Counter((KINDS[row[1]], row[3]) for row in rows))


def insert_case(
    name: str, calls: Sequence[Call], duration_ns: int, content: Content, run: int
) -> Program:
    """The `run`th INSERT run of a series, counted from 1."""
    step_bytes = grown_bytes(calls)
    prepare = [*_created(content.rest), *_between_runs()]
    for earlier in range(run - 1):
        prepare += operations_of(calls, duration_ns, content, step_bytes * earlier)
        prepare += _between_runs()
    body = operations_of(calls, duration_ns, content, step_bytes * (run - 1))
    return _case(name, prepare, body)


def select_case(
    name: str, calls: Sequence[Call], duration_ns: int, content: Content, inserts: Sequence[Call]
) -> Program:
    """A SELECT run after the INSERT run `inserts`."""
    took_ns = inserts[-1].start_ns - inserts[0].start_ns
    prepare = [*_created(content.rest), *_between_runs()]
    prepare += [*operations_of(inserts, took_ns, content), *_between_runs()]
    return _case(name, prepare, operations_of(calls, duration_ns, content))


def _case(name: str, prepare: Sequence[Operation], body: Sequence[Operation]) -> Program:
    board, kernel = load_board("omap3evm"), load_kernel("2.6.37")
    prepared = canonical([*prepare, Operation("prepared")])
    return Program(name, "jffs2", board, kernel, READ_AHEAD_KIB, prepared, canonical(body))


def _between_runs() -> list[Operation]:
    pause = Operation("pause", (3 * SECOND_NS,))
    return [Operation("sync"), *forget_pages(), pause]


def _created(compressibility: int) -> list[Operation]:
    """CREATE TABLE: two pages, with a journal of a header only."""
    seeds = iter(range(1_000_001, 1_000_005))

    def write(slot: int, offset_bytes: int, length_bytes: int) -> Operation:
        fields = (slot, offset_bytes, length_bytes, next(seeds), compressibility)
        return Operation("write", fields)

    sync_journal = Operation("fsync", (JOURNAL_SLOT,))
    return [
        Operation("open", (DATABASE_SLOT, DATABASE, "rw,create")),
        Operation("open", (JOURNAL_SLOT, JOURNAL, "rw,create")),
        write(JOURNAL_SLOT, 0, 512), sync_journal, write(JOURNAL_SLOT, 0, 12), sync_journal,
        write(DATABASE_SLOT, 0, 1024), write(DATABASE_SLOT, 1024, 1024),
        Operation("fsync", (DATABASE_SLOT,)),
        Operation("close", (JOURNAL_SLOT,)), Operation("unlink", (JOURNAL,)),
        Operation("close", (DATABASE_SLOT,)),
    ]  # fmt: skip
