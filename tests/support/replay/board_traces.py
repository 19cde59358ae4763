"""Turns the omap3evm traces into programs, and counts what Flashmon counted.

A series of INSERT runs is one program, from CREATE TABLE on a fresh file system on. Each run
appends to the database of the runs before it, at the times of Flashmon's logs; between runs the
page cache is dropped and the inodes are kept. The result is split into runs again by time. A SELECT
run reads what one INSERT run left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from statistics import median

import polars as pl

from flashbed.bench.tracing.flashmon_log import read_log
from flashbed.program.operations import Operation, canonical
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program
from tests.support.replay.inserts import Page, Transaction, transactions
from tests.support.replay.strace import (
    DATABASE,
    JOURNAL,
    Call,
    Pace,
    forget_pages,
    pace_of,
    reads_of,
)

__all__ = [
    "FlashmonLog",
    "Series",
    "counts_by_run",
    "insert_series",
    "read_flashmon",
    "select_program",
]

SECOND_NS = 1_000_000_000
RUN_INSERTS = 100
DATABASE_SLOT = 3
JOURNAL_SLOT = 4
JOURNAL_HEADER_BYTES = 512
READ_AHEAD_KIB = 128
SUPERS_ROUND_NS = 6 * SECOND_NS
"""Period of sync_supers; a program begins at a multiple of the machine's clock."""
CREATED_NS = SECOND_NS
"""Time between CREATE TABLE and the first run's log. The first seconds of that log contain the
flush of what CREATE TABLE's unlink left in the write-buffer."""
BETWEEN_RUNS_NS = 4 * SECOND_NS
"""Time from one run's last operation to the next run's first, where both logs exist."""
CLEANED_NS = 60 * SECOND_NS
"""Time after which the flusher has cleaned the inode, so that it can be evicted."""
ALMOST_ZEROES = 95
"""Compressibility of the journal's header."""


@dataclass(frozen=True)
class FlashmonLog:
    """When a run's program first and last used the flash, its operations, sync_supers' times."""

    start_ns: int
    end_ns: int
    counts: Counter[tuple[str, str]]
    supers_ns: tuple[int, ...]

    def total(self, kind: str) -> int:
        """Operations of a kind: read, program or erase."""
        return sum(count for (its, _), count in self.counts.items() if its == kind)


CHIP_NS = {"read": 183_000, "program": 427_000}
"""Time between consecutive operations in a burst."""
PROGRAMS = ("insert", "select")
"""Tasks of the program; the others are kernel threads."""


def read_flashmon(path: Path) -> FlashmonLog:
    """Reads a Flashmon log of a run. Raises `InputError`."""
    log = read_log(path)
    own_ns = log.filter(pl.col("task").is_in(PROGRAMS))["start_ns"]
    supers_ns = log.filter(task="sync_supers")["start_ns"]
    counts = Counter(log.select("kind", "task").iter_rows())
    return FlashmonLog(own_ns[0], own_ns[-1], counts, tuple(supers_ns))


@dataclass(frozen=True)
class Series:
    """A program, and where its runs begin (operations before each)."""

    program: Program
    starts: tuple[int, ...]


class _Recorder:
    """Operations at given times."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.now_ns = 0
        self.seed = 0

    def at(self, time_ns: float) -> None:
        """Waits until a time."""
        if round(time_ns) > self.now_ns:
            self.do("pause", round(time_ns) - self.now_ns)
            self.now_ns = round(time_ns)

    def do(self, name: str, *fields: int | str) -> None:
        self.operations.append(Operation(name, fields))

    def write(self, slot: int, offset_bytes: int, length_bytes: int, compressibility: int) -> None:
        self.seed += 1
        self.do("write", slot, offset_bytes, length_bytes, self.seed, compressibility)


def insert_series(
    record_bytes: int, logs: Mapping[int, FlashmonLog], calls: Sequence[Call]
) -> Series:
    """The runs of a series up to the last with a log, at the pace of a strace."""
    runs = max(logs)
    inserts = transactions(record_bytes, RUN_INSERTS * runs)
    pace = pace_of(calls)
    supers_ns = median(
        time_ns % SUPERS_ROUND_NS for log in logs.values() for time_ns in log.supers_ns
    )
    zero_ns = CREATED_NS + (-CREATED_NS - round(supers_ns)) % SUPERS_ROUND_NS
    recorder = _Recorder()
    recorder.at(zero_ns - CREATED_NS)
    _create(recorder)
    starts = []
    for run, (start_ns, end_ns) in enumerate(_spans(logs)):
        recorder.at(zero_ns + start_ns)
        starts.append(len(recorder.operations))
        recorder.operations += forget_pages()
        own = inserts[RUN_INSERTS * run : RUN_INSERTS * (run + 1)]
        _open(recorder, own[0], inserts[RUN_INSERTS * run - 1].leaf if run else 1)
        busy_ns = _busy_ns(logs.get(run + 1, logs[max(logs)]))
        period_ns = (end_ns - start_ns - busy_ns) / RUN_INSERTS
        for number, insert in enumerate(own):
            _insert(
                recorder,
                insert,
                pace=pace,
                start_ns=zero_ns + start_ns + number * period_ns,
                period_ns=period_ns,
            )
        recorder.do("close", DATABASE_SLOT)
        recorder.now_ns += busy_ns
    return Series(_program("inserts", recorder.operations), tuple(starts))


def _spans(logs: Mapping[int, FlashmonLog]) -> list[tuple[int, int]]:
    """Begin and end of runs; a run without a log is placed between its neighbours."""
    spans: dict[int, tuple[int, int]] = {
        run: (log.start_ns, log.end_ns) for run, log in logs.items()
    }
    for run in range(1, max(logs)):
        if run not in spans:
            start_ns = spans[run - 1][1] + BETWEEN_RUNS_NS
            spans[run] = (start_ns, spans[run + 1][0] - BETWEEN_RUNS_NS)
    return [spans[run] for run in sorted(spans)]


def _busy_ns(log: FlashmonLog) -> int:
    """The part of a run that is no pause: the chip's time in its program."""
    own = [(kind, count) for (kind, task), count in log.counts.items() if task in PROGRAMS]
    return sum(count * CHIP_NS[kind] for kind, count in own)


def _program(
    name: str, operations: Sequence[Operation], before: Sequence[Operation] = ()
) -> Program:
    board, kernel = load_board("omap3evm"), load_kernel("2.6.37")
    prepared = canonical([*before, Operation("prepared")])
    return Program(
        case_id=name,
        stack=Stack(board=board, kernel=kernel, fs="jffs2", read_ahead_kib=READ_AHEAD_KIB),
        prepare=prepared,
        body=canonical(operations),
    )


def _create(recorder: _Recorder) -> None:
    """CREATE TABLE: two pages, with a journal of only a header."""
    recorder.do("open", DATABASE_SLOT, DATABASE, "rw,create")
    recorder.do("open", JOURNAL_SLOT, JOURNAL, "rw,create")
    recorder.write(JOURNAL_SLOT, 0, JOURNAL_HEADER_BYTES, ALMOST_ZEROES)
    recorder.do("fsync", JOURNAL_SLOT)
    recorder.write(JOURNAL_SLOT, 0, 12, 0)
    recorder.do("fsync", JOURNAL_SLOT)
    for page in (Page(0, ALMOST_ZEROES), Page(1, ALMOST_ZEROES)):
        recorder.write(DATABASE_SLOT, page.offset_bytes, 1024, page.compressibility)
    _end(recorder)
    recorder.do("close", DATABASE_SLOT)


def _end(recorder: _Recorder) -> None:
    recorder.do("fsync", DATABASE_SLOT)
    recorder.do("close", JOURNAL_SLOT)
    recorder.do("unlink", JOURNAL)


def _open(recorder: _Recorder, first: Transaction, leaf: int) -> None:
    """SQLite's reads before its first INSERT: the path to the last leaf."""
    recorder.do("open", DATABASE_SLOT, DATABASE, "rw,create")
    for number in dict.fromkeys([0, 1, *(page.number for page in first.journaled), leaf]):
        recorder.do("read", DATABASE_SLOT, Page(number, 0).offset_bytes, 1024)


def _insert(
    recorder: _Recorder, insert: Transaction, pace: Pace, start_ns: float, period_ns: float
) -> None:
    """One transaction. Writes beyond those of the strace follow without a pause."""

    def wait(part: float) -> None:
        recorder.at(start_ns + part * period_ns)

    wait(0)
    recorder.do("open", JOURNAL_SLOT, JOURNAL, "rw,create")
    parts = chain(pace.journal, repeat(pace.journal[-1]))
    wait(next(parts))
    recorder.write(JOURNAL_SLOT, 0, JOURNAL_HEADER_BYTES, ALMOST_ZEROES)
    end = JOURNAL_HEADER_BYTES
    for page in insert.journaled:
        for length_bytes, compressibility in ((4, 0), (1024, page.compressibility), (4, 0)):
            wait(next(parts))
            recorder.write(JOURNAL_SLOT, end, length_bytes, compressibility)
            end += length_bytes
    wait(pace.synced)
    recorder.do("fsync", JOURNAL_SLOT)
    wait(pace.completed)
    recorder.write(JOURNAL_SLOT, 0, 12, 0)
    recorder.do("fsync", JOURNAL_SLOT)
    parts = chain(pace.database, repeat(pace.database[-1]))
    for page in insert.written:
        wait(next(parts))
        recorder.write(DATABASE_SLOT, page.offset_bytes, 1024, page.compressibility)
    wait(pace.closed)
    _end(recorder)


def select_program(
    record_bytes: int, calls: Sequence[Call], inserts: Sequence[Call], *, evicted: bool
) -> Program:
    """A SELECT run after an INSERT run, at the pace of its strace.

    It begins with the page cache dropped and, if `evicted`, the inode too.
    """
    pace = pace_of(inserts)
    period_ns = (inserts[-1].start_ns - inserts[0].start_ns) / RUN_INSERTS
    recorder = _Recorder()
    _create(recorder)
    recorder.at(CREATED_NS)
    made = transactions(record_bytes, RUN_INSERTS)
    _open(recorder, made[0], 1)
    for number, insert in enumerate(made):
        _insert(
            recorder,
            insert,
            pace=pace,
            start_ns=CREATED_NS + number * period_ns,
            period_ns=period_ns,
        )
    recorder.do("close", DATABASE_SLOT)
    recorder.at(recorder.now_ns + CLEANED_NS)
    forgotten = [Operation("drop_caches")] if evicted else forget_pages()
    return _program("select", reads_of(calls), [*recorder.operations, *forgotten])


def counts_by_run(batch: Batch, series: Series) -> list[Counter[tuple[str, str]]]:
    """Flash operations of each run, by kind and task, as Flashmon counts them.

    Flashmon sees programmed pages, but not the cleanmarker in an erased block's spare area.
    """
    starts_ns = [batch.requests["start_ns"][start] for start in series.starts]
    page_bytes = series.program.stack.board.chip.page_bytes
    seen = batch.flash.filter((pl.col("kind") != "program") | (pl.col("offset_bytes") < page_bytes))
    counts: list[Counter[tuple[str, str]]] = [Counter() for _ in series.starts]
    for start_ns, kind, task in seen.select("start_ns", "kind", "task").iter_rows():
        run = bisect_right(starts_ns, start_ns)
        if run:
            counts[run - 1][kind, task] += 1
    return counts
