"""Cases of the stream as tables: the measured columns of docs/formats.md."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from flashbed.targets.base import Batch, Failure
from flashbed.targets.emulator.job import Item, described
from flashbed.targets.emulator.stream import CaseDone

__all__ = ["batch_of", "failed"]

_TEXT, _WHOLE = pl.String(), pl.Int64()

_CASES = {
    "case_id": _TEXT,
    "time_ns": _WHOLE,
    "bytes": _WHOLE,
    "flash_reads": _WHOLE,
    "flash_programs": _WHOLE,
    "flash_erases": _WHOLE,
    "cache_hits": _WHOLE,
    "cache_misses": _WHOLE,
    "cache_adds": _WHOLE,
    "kernel_release": _TEXT,
}
_REQUESTS = {
    "case_id": _TEXT,
    "seq": _WHOLE,
    "op": _TEXT,
    "file": _TEXT,
    "offset_bytes": _WHOLE,
    "length_bytes": _WHOLE,
    "start_ns": _WHOLE,
    "latency_ns": _WHOLE,
    "result": _WHOLE,
}
_FLASH = {
    "case_id": _TEXT,
    "seq": _WHOLE,
    "start_ns": _WHOLE,
    "kind": _TEXT,
    "block": _WHOLE,
    "page": _WHOLE,
    "offset_bytes": _WHOLE,
    "length_bytes": _WHOLE,
    "task": _TEXT,
}


def _frame(rows: Sequence[tuple[object, ...]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


def failed(failures: Sequence[Failure]) -> Batch:
    """A batch that measured nothing."""
    return Batch(_frame([], _CASES), _frame([], _REQUESTS), _frame([], _FLASH), tuple(failures))


def batch_of(item: Item, case: CaseDone, kernel_release: str) -> Batch:
    """A finished case; a failure if flash operations were lost."""
    case_id = item.program.case_id
    reads, programs, erases, lost = case.counts
    if lost:
        message = f"{lost} flash operations were lost by the kernel's trace buffer"
        return failed([Failure(case_id, message)])
    lines = described(item.operations)
    time_ns = transferred = 0
    requests: list[tuple[object, ...]] = []
    for seq, line, start_ns, latency_ns, result in case.requests:
        known = lines[line]
        if known.op != "pause":
            time_ns += latency_ns
        if known.op in ("read", "write"):
            transferred += max(result, 0)
        what = (known.op, known.file, known.offset_bytes, known.length_bytes)
        requests.append((case_id, seq, *what, start_ns, latency_ns, result))
    page_cache = (None, None, None)  # not traced
    counts = (reads, programs, erases, *page_cache)
    return Batch(
        cases=_frame([(case_id, time_ns, transferred, *counts, kernel_release)], _CASES),
        requests=_frame(requests, _REQUESTS),
        flash=_frame([(case_id, *row) for row in case.flash], _FLASH),
    )
