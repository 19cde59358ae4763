"""Turns cases of the stream into tables with the measured columns of docs/reference/tables.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import polars as pl

from flashbed.program.operations import writes
from flashbed.program.transfers import moved
from flashbed.results.columns import WAITS
from flashbed.results.run_directory import SCHEMAS
from flashbed.targets.base import Batch, Failure, Program
from flashbed.targets.failing import failure, failures_text
from flashbed.targets.fullness import FreeSpace, reached
from flashbed.targets.guest.job import Described, JobItem, described
from flashbed.targets.guest.stream import CaseDone, CaseRows, StreamRow

__all__ = [
    "Measuring",
    "RowsOfCase",
    "StrangeLineError",
    "batch_of",
    "failed",
    "gathered",
]

_CASES = {
    name: SCHEMAS["cases"][name]
    for name in (
        "case_id",
        "read_ahead_kib",
        "state_valid",
        "state_invalid",
        "time_ns",
        "flash_time_ns",
        "elapsed_ns",
        "bytes",
        "bytes_written",
        "failed",
        "failed_errno",
        "flash_reads",
        "flash_programs",
        "flash_erases",
        "flush_reads",
        "flush_programs",
        "flush_erases",
        "cache_hits",
        "cache_misses",
        "cache_adds",
        "erase_count_max",
        "erase_count_mean",
        "bad_blocks",
        "ecc_corrected",
        "ecc_failed",
        "kernel_release",
    )
}
# Without `target`, which the runner adds, and without causes, which no kernel tells.
_REQUESTS = {
    name: kind
    for name, kind in SCHEMAS["requests"].items()
    if name != "target" and name not in WAITS
}
_WEAR = {name: kind for name, kind in SCHEMAS["wear"].items() if name != "target"}
_FLASH = {name: kind for name, kind in SCHEMAS["flash"].items() if name != "target"}
_CALLS = {"case_id": pl.String(), "seq": pl.Int64(), "call": pl.String()}


@dataclass(frozen=True)
class Measuring:
    """What a guest's clock measures."""

    software_time: bool
    """Whether running code takes time; if not, only flash time is known, not latencies."""


def _frame(rows: Sequence[tuple[object, ...]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def failed(failures: Sequence[Failure]) -> Batch:
    """A batch of failures only."""
    return Batch(
        cases=_frame([], _CASES),
        requests=_frame([], _REQUESTS),
        flash=_frame([], _FLASH),
        failures=tuple(failures),
    )


def gathered(batches: Iterable[Batch], seconds: float) -> Iterator[Batch]:
    """Joins the batches of some seconds into one: keeping a batch costs more than a quick case.

    An interruption loses no more than that.
    """
    waiting: list[Batch] = []
    since = monotonic()
    for batch in batches:
        waiting.append(batch)
        if batch.failures or monotonic() - since >= seconds:
            yield _together(waiting)
            waiting, since = [], monotonic()
    if waiting:
        yield _together(waiting)


def _together(batches: Sequence[Batch]) -> Batch:
    cases, requests, flash, wear, calls = (
        pl.concat([getattr(batch, name) for batch in batches], how="diagonal")
        for name in ("cases", "requests", "flash", "wear", "calls")
    )
    return Batch(
        cases=cases,
        requests=requests,
        flash=flash,
        failures=tuple(failure for batch in batches for failure in batch.failures),
        surveys=tuple(survey for batch in batches for survey in batch.surveys),
        wear=wear,
        calls=calls,
        traced={name: rows for batch in batches for name, rows in batch.traced.items()},
        gc_choices={name: made for batch in batches for name, made in batch.gc_choices.items()},
    )


class StrangeLineError(Exception):
    """The board's answer names a line that is no operation."""


class RowsOfCase:
    """Rows of a running case: turned into tables as they arrive, and summed up."""

    def __init__(self, item: JobItem, measuring: Measuring) -> None:
        self.case_id = item.program.case_id
        self.time_ns = self.flash_time_ns = self.elapsed_ns = 0
        self.transferred = self.written = 0
        self.failures: Counter[str] = Counter()
        self.statements = False
        self.chip_seen = True
        """Whether the chip's time within every operation is known."""
        self._held: dict[str, list[pl.DataFrame]] = {"requests": [], "flash": []}
        self._measuring = measuring
        self._described = described(item.body)
        self._line = 0

    def tables(self, rows: CaseRows | CaseDone) -> dict[str, pl.DataFrame]:
        """The next rows as tables. Raises `StrangeLineError`."""
        requests = [self._request(row, rows.errors.get(row.seq)) for row in rows.requests]
        flash = [(self.case_id, *row) for row in rows.flash]
        return {"requests": _frame(requests, _REQUESTS), "flash": _frame(flash, _FLASH)}

    def hold(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Keeps tables until the case has ended, if no `LongRows` takes them."""
        for name, frame in tables.items():
            self._held[name].append(frame)

    def held(self, table: str) -> pl.DataFrame:
        """All rows kept so far."""
        return pl.concat(self._held[table])

    def _request(self, row: StreamRow, error: str | None) -> tuple[object, ...]:
        known = self._at(row.line)
        self.statements = self.statements or known.statement_kind is not None
        self.chip_seen = self.chip_seen and row.flash_time_ns is not None
        if known.op != "pause":
            self.time_ns += row.latency_ns
            self.flash_time_ns += row.flash_time_ns or 0
        self.elapsed_ns = max(self.elapsed_ns, row.start_ns + row.latency_ns)
        transferred, written = moved(known.op, row.result)
        self.transferred += transferred
        self.written += written
        failed = failure(known.op, known.length_bytes, row.result)
        if failed is not None:
            self.failures[failed] += 1
        what = (known.op, known.file, known.offset_bytes, known.length_bytes)
        latency = row.latency_ns if self._measuring.software_time else None
        times = (row.start_ns, latency, row.flash_time_ns)
        answer = (row.result, row.content_crc32, row.changes)
        return (self.case_id, row.seq, *what, *times, *answer, known.statement_kind, error)

    def _at(self, line: int) -> Described:
        """The operation at a line; the agent answers in their order."""
        if line > self._line:
            for number, known in self._described:
                self._line = number
                if number == line:
                    return known
        raise StrangeLineError(f"the board answers for line {line}, which is no operation")


def batch_of(
    item: JobItem,
    case: CaseDone,
    *,
    space: FreeSpace | None,
    kernel_release: str,
    measuring: Measuring,
    rows: RowsOfCase | None = None,
) -> Batch:
    """A finished case, `rows` of which came before; a failure if flash operations were lost."""
    case_id = item.program.case_id
    assert case.counts is not None, "the reader yields only cases with counts"
    reads, programs, erases, lost = case.counts
    rows = rows or RowsOfCase(item, measuring)
    try:
        rows.hold(rows.tables(case))
    except StrangeLineError as strange:
        return failed([Failure(case_id=case_id, message=str(strange))])
    if lost:
        message = f"{lost} flash operations were lost by the kernel's trace buffer"
        return failed([Failure(case_id=case_id, message=message)])
    wrong = _wrong_window(item.program, case.read_ahead_kib)
    if wrong:
        return failed([item.program.not_measured(wrong)])
    totals = (
        rows.time_ns if measuring.software_time else None,
        rows.flash_time_ns if rows.chip_seen else None,
    )
    page_cache = (None, None, None)  # the agent does not trace it
    wear = _wear_of(item, case)
    worn = [row[2] for row in wear if row[2] is not None]
    erase_counts = (max(worn), sum(worn) / len(worn)) if worn else (None, None)
    fs, page_bytes = item.program.stack.fs, item.program.stack.board.chip.page_bytes
    state = reached(space, fs, page_bytes)
    corrected, uncorrected, bad = case.faults or (None, None, None)
    # How much SQLite wrote is unknown.
    moved, written_bytes = (None, None) if rows.statements else (rows.transferred, rows.written)
    measured = (
        case_id, case.read_ahead_kib, *state, *totals, rows.elapsed_ns, moved, written_bytes,
        rows.failures.total(), failures_text(rows.failures),
        reads, programs, erases, *_flushed(item, case), *page_cache,
        *erase_counts, bad, corrected, uncorrected, kernel_release,
    )  # fmt: skip
    return Batch(
        cases=_frame([measured], _CASES),
        requests=rows.held("requests"),
        flash=rows.held("flash"),
        wear=_frame(wear, _WEAR),
        calls=_frame([(case_id, *call) for call in case.calls], _CALLS),
        traced={case_id: tuple(case.traced)} if case.traced else {},
    )


def _wrong_window(program: Program, read_back: int | None) -> str | None:
    """Why a case's read-ahead window is not the requested one; None if it is."""
    if program.stack.read_ahead_kib is None and read_back is None:
        return f"read_ahead_kib: the kernel does not report the window it gives {program.stack.fs}"
    if (
        None not in (program.stack.read_ahead_kib, read_back)
        and program.stack.read_ahead_kib != read_back
    ):
        return f"read_ahead_kib: {program.stack.read_ahead_kib} was set, the kernel has {read_back}"
    return None


def _flushed(item: JobItem, case: CaseDone) -> tuple[int | None, int | None, int | None]:
    """Page reads, page writes and erases of what was left in cache; None if unknown.

    A case that only reads has nothing to flush.
    """
    seen = case.counts is not None and case.counts[0] is not None
    if item.program.record_flush and seen and not writes(item.body):
        return 0, 0, 0
    if case.flush is None or case.flush[-1]:
        return None, None, None
    return case.flush[:3]


def _wear_of(
    item: JobItem, case: CaseDone
) -> list[tuple[str, int, int | None, int, str | None, int | None]]:
    """A row for each block of the program's partition, if wear was requested.

    A board that reports only erases omits blocks without any: they get a row with 0.
    """
    program = item.program
    if not program.record_wear:
        return []
    known = _flushed(item, case)[-1] is not None
    seen = {block: rest for block, *rest in case.wear}
    return [
        (
            program.case_id,
            block,
            *seen.get(block, (None, 0, None)),
            case.flush_erases.get(block, 0) if known else None,
        )
        for block in program.stack.blocks
    ]
