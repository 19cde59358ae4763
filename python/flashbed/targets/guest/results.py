"""Cases of the stream as tables: the measured columns of docs/formats.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

import polars as pl

from flashbed.operations import writes
from flashbed.tables import SCHEMAS
from flashbed.targets.base import Batch, Failure, Program
from flashbed.targets.guest.job import Item, described
from flashbed.targets.guest.stream import CaseDone
from flashbed.targets.room import Room, reached

__all__ = ["Measuring", "batch_of", "failed", "gathered"]

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
# The runner adds the target.
_REQUESTS = {name: kind for name, kind in SCHEMAS["requests"].items() if name != "target"}
_WEAR = {name: kind for name, kind in SCHEMAS["wear"].items() if name != "target"}
_FLASH = {name: kind for name, kind in SCHEMAS["flash"].items() if name != "target"}
_CALLS = {"case_id": pl.String(), "seq": pl.Int64(), "call": pl.String()}


@dataclass(frozen=True)
class Measuring:
    """What a guest's clock knows."""

    software_time: bool
    """Whether running code takes time; if not, latencies are unknown, and only flash time is."""


def _frame(rows: Sequence[tuple[object, ...]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def failed(failures: Sequence[Failure]) -> Batch:
    """A batch that measured nothing."""
    return Batch(_frame([], _CASES), _frame([], _REQUESTS), _frame([], _FLASH), tuple(failures))


def gathered(batches: Iterable[Batch], seconds: float) -> Iterator[Batch]:
    """The same batches, those of some time in one: keeping a batch costs more than a quick case.

    Whoever is interrupted loses no more than that.
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
        cases,
        requests,
        flash,
        failures=tuple(failure for batch in batches for failure in batch.failures),
        surveys=tuple(survey for batch in batches for survey in batch.surveys),
        wear=wear,
        calls=calls,
        traced={name: rows for batch in batches for name, rows in batch.traced.items()},
        dice={name: throws for batch in batches for name, throws in batch.dice.items()},
    )


def batch_of(
    item: Item, case: CaseDone, room: Room | None, kernel_release: str, measuring: Measuring
) -> Batch:
    """A finished case; a failure if flash operations were lost."""
    case_id = item.program.case_id
    assert case.counts is not None, "the reader gives no case without"
    reads, programs, erases, lost = case.counts
    lines = described(item.operations)
    strange = [row.line for row in case.requests if row.line not in lines]
    if strange:
        message = f"the board answers for line {strange[0]}, which is no operation"
        return failed([Failure(case_id, message)])
    if lost:
        message = f"{lost} flash operations were lost by the kernel's trace buffer"
        return failed([Failure(case_id, message)])
    wrong = _wrong_window(item.program, case.read_ahead_kib)
    if wrong:
        return failed([Failure(case_id, wrong, not_measured=True)])
    time_ns = transferred = written = elapsed_ns = flash_time_ns = 0
    requests: list[tuple[object, ...]] = []
    statements = False
    for row in case.requests:
        known = lines[row.line]
        statements = statements or known.statement_kind is not None
        if known.op != "pause":
            time_ns += row.latency_ns
            flash_time_ns += row.flash_time_ns or 0
        elapsed_ns = row.start_ns + row.latency_ns
        if known.op in ("read", "write"):
            transferred += max(row.result, 0)
        if known.op == "write":
            written += max(row.result, 0)
        what = (known.op, known.file, known.offset_bytes, known.length_bytes)
        latency = row.latency_ns if measuring.software_time else None
        times = (row.start_ns, latency, row.flash_time_ns)
        answer = (row.result, row.content_crc32, row.changes)
        sql = (known.statement_kind, case.errors.get(row.seq))
        requests.append((case_id, row.seq, *what, *times, *answer, *sql))
    unknown = any(row.flash_time_ns is None for row in case.requests)
    totals = (time_ns if measuring.software_time else None, None if unknown else flash_time_ns)
    page_cache = (None, None, None)  # not traced
    wear = _wear_of(item, case)
    worn = [row[2] for row in wear if row[2] is not None]
    erase_counts = (max(worn), sum(worn) / len(worn)) if worn else (None, None)
    fs, page_bytes = item.program.fs, item.program.board.chip.page_bytes
    state = reached(room, fs, page_bytes)
    corrected, uncorrected, bad = case.faults or (None, None, None)
    # How much SQLite wrote is not known.
    moved, written_bytes = (None, None) if statements else (transferred, written)
    measured = (
        case_id, case.read_ahead_kib, *state, *totals, elapsed_ns, moved, written_bytes,
        reads, programs, erases, *_flushed(item, case), *page_cache,
        *erase_counts, bad, corrected, uncorrected, kernel_release,
    )  # fmt: skip
    return Batch(
        cases=_frame([measured], _CASES),
        requests=_frame(requests, _REQUESTS),
        flash=_frame([(case_id, *row) for row in case.flash], _FLASH),
        wear=_frame(wear, _WEAR),
        calls=_frame([(case_id, *call) for call in case.calls], _CALLS),
        traced={case_id: tuple(case.traced)} if case.traced else {},
    )


def _wrong_window(program: Program, read_back: int | None) -> str | None:
    """Why a case's window is not the one that it is about; None if it is."""
    if program.read_ahead_kib is None and read_back is None:
        return f"read_ahead_kib: the kernel does not say which window it gives {program.fs}"
    if None not in (program.read_ahead_kib, read_back) and program.read_ahead_kib != read_back:
        return f"read_ahead_kib: {program.read_ahead_kib} was set, the kernel has {read_back}"
    return None


def _flushed(item: Item, case: CaseDone) -> tuple[int | None, int | None, int | None]:
    """Reads, programs and erases of the flush after the case; None is not known.

    A case that only reads leaves nothing.
    """
    seen = case.counts is not None and case.counts[0] is not None
    if item.program.record_flush and seen and not writes(item.body):
        return 0, 0, 0
    if case.flush is None or case.flush[-1]:
        return None, None, None
    return case.flush[:3]


def _wear_of(
    item: Item, case: CaseDone
) -> list[tuple[str, int, int | None, int, str | None, int | None]]:
    """A row each block of the partition, if wear was asked for.

    A board that sees erases only, and no blocks, names those it saw: the others had none.
    """
    program = item.program
    if not program.record_wear:
        return []
    known = _flushed(item, case)[-1] is not None
    seen = {block: rest for block, *rest in case.wear}
    first = program.board.partition.first_block
    blocks = range(first, first + program.board.partition.blocks)
    return [
        (
            program.case_id,
            block,
            *seen.get(block, (None, 0, None)),
            case.flush_erases.get(block, 0) if known else None,
        )
        for block in blocks
    ]
