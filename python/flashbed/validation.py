"""Validation suites: cases that hold the simulator against a real kernel, layer by layer.

A suite is a fixed list of small programs, disjoint from the calibration cases and from every
experiment (a test says so). It runs on the simulator and on a real kernel; counts of flash
operations and times are compared case by case. Chip timing and software costs are those of the
board's profile, and nothing is fitted on the way.

The reads suite: requests of 512 B to 128 KiB under windows of 0 to 512 KiB, in order, at random,
backward, in strides, interleaved on two files and on one; unaligned, past the end, again; the
advices of posix_fadvise; pauses; caches dropped between; opening after the inode was evicted.
Left out so far: writes, a second chip.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from flashbed.analysis.agreement import error_pct
from flashbed.operations import HEADER
from flashbed.profiles import Board, Kernel
from flashbed.targets.base import Program
from flashbed.workloads.files import prepared, written_file

__all__ = ["FILE_SYSTEMS", "MEASURES", "SUITES", "compare", "programs", "summary"]

FILE_SYSTEMS = ("jffs2", "ubifs")
FILES = {"a": 2 * 1024 * 1024, "b": 1024 * 1024, "c": 307_300}
SETTLE_NS = 10_000_000_000
WRITE_BYTES = 16384
CONTENT_SEED = 3
MEASURES = {
    "flash_reads": "flash_reads",
    "flash_programs": "flash_programs",
    "flash_erases": "flash_erases",
    "flash_time": "flash_time_ns",
    "time": "time_ns",
}
"""Measure -> its column of `cases`."""

Body = tuple[int, Sequence[str]]
"""read_ahead_kib, and the operations after drop_caches and before the end."""


def _prepare() -> str:
    """The files, each left alone after it was written.

    So timers (JFFS2's write-buffer, 5 s) run out in a rest, not in a write of a slow board.
    """
    rest = f"pause {SETTLE_NS}"
    files = (
        [*written_file(path, size, WRITE_BYTES, CONTENT_SEED), rest] for path, size in FILES.items()
    )
    return prepared(files, SETTLE_NS)


def _opened(*reads: str, path: str = "a") -> list[str]:
    return [f"open 0 {path} ro", "mark", *reads]


def _read(offset: int, length: int, slot: int = 0) -> str:
    return f"read {slot} {offset} {length}"


def _in_order() -> Iterator[tuple[str, Body]]:
    """The first 192 KiB in requests of one size, under every window."""
    for length in (512, 2048, 4096, 12288, 32768, 131072):
        for window in (0, 16, 32, 128, 512):
            reads = [_read(offset, length) for offset in range(0, 196608, length)]
            yield f"ordered-{length}-ra{window}", (window, _opened(*reads))


def _at_random() -> Iterator[tuple[str, Body]]:
    """Anywhere in the file, at any byte and on pages."""
    for length in (512, 2048, 4096, 16384, 131072):
        for window in (0, 128):
            draw = random.Random(length + window).random
            places = [int(draw() * (FILES["a"] - length)) for _ in range(24)]
            reads = [_read(place, length) for place in places]
            yield f"scattered-{length}-ra{window}", (window, _opened(*reads))
    for window in (16, 32, 128, 512):
        draw = random.Random(window).random
        pages = [int(draw() * (FILES["b"] // 4096)) for _ in range(96)]
        reads = [_read(4096 * page, 4096) for page in pages]
        yield f"pages-ra{window}", (window, _opened(*reads, path="b"))


def _patterns() -> Iterator[tuple[str, Body]]:
    """Orders that read-ahead has rules for."""
    for window in (0, 128):
        again = [_read(offset, 8192) for offset in range(0, 131072, 8192)]
        yield f"again-ra{window}", (window, _opened(*again, *again))
        both = [_read(4096 * page, 4096, slot) for page in range(24) for slot in (0, 1)]
        two = ["open 0 a ro", "open 1 b ro", "mark", *both]
        yield f"two-files-ra{window}", (window, two)
        one = ["open 0 a ro", "open 1 a ro", "mark"]
        one += [_read(4096 * page, 4096) for page in range(8)]
        for page in range(8, 24):
            one += [_read(4096 * page, 4096), _read(1048576 + 4096 * page, 4096, 1)]
        yield f"two-readers-ra{window}", (window, one)
    backward = [_read(4096 * page, 4096) for page in range(60, 0, -1)]
    yield "backward-ra128", (128, _opened(*backward))
    for stride in (2, 3, 5):
        strided = [_read(4096 * page, 4096) for page in range(0, 40 * stride, stride)]
        yield f"stride-{stride}-ra128", (128, _opened(*strided))
    tail = [_read(FILES["c"] - 9000 + 1000 * part, 1000) for part in range(9)]
    past = [_read(FILES["c"] - 100, 4096), _read(FILES["c"], 4096), _read(FILES["c"] + 9999, 1)]
    yield "end-of-file-ra128", (128, _opened(*tail, *past, path="c"))
    whole = [_read(offset, 65536) for offset in range(0, FILES["c"], 65536)]
    yield "whole-file-ra128", (128, _opened(*whole, path="c"))
    middle = [_read(700_001 + 3333 * part, 3333) for part in range(40)]
    yield "from-the-middle-ra128", (128, _opened(*middle))


def _advised() -> Iterator[tuple[str, Body]]:
    """posix_fadvise."""
    ordered = [_read(4096 * page, 4096) for page in range(24)]
    yield "advice-random-ra128", (128, _opened("fadvise 0 0 0 random", *ordered))
    yield "advice-sequential-ra128", (128, _opened("fadvise 0 0 0 sequential", *ordered))
    taken_back = ("fadvise 0 0 0 random", "fadvise 0 0 0 normal")
    yield "advice-normal-ra128", (128, _opened(*taken_back, *ordered))
    yield "advice-noreuse-ra128", (128, _opened("fadvise 0 0 0 noreuse", *ordered))
    needed = ("fadvise 0 65536 65536 willneed", _read(65536, 4096), _read(126976, 4096))
    yield "advice-willneed-ra128", (128, _opened(*needed))
    yield "advice-willneed-ra0", (0, _opened(*needed))
    dropped = (*ordered[:8], "fadvise 0 0 16384 dontneed", *ordered[:8])
    yield "advice-dontneed-ra128", (128, _opened(*dropped))


def _caches() -> Iterator[tuple[str, Body]]:
    """Pauses, caches dropped in between, and opening as part of what is measured."""
    ordered = [_read(4096 * page, 4096) for page in range(12)]
    paused = [line for read in ordered for line in (read, "pause 50000000")]
    yield "paused-ra128", (128, _opened(*paused))
    yield "dropped-ra128", (128, _opened(*ordered, "drop_caches", *ordered))
    for path in FILES:
        opening = ["mark", f"open 0 {path} ro", _read(0, 4096)]
        yield f"opening-{path}-ra0", (0, opening)


def _reads() -> Iterator[tuple[str, Body]]:
    for part in (_in_order, _at_random, _patterns, _advised, _caches):
        yield from part()


SUITES: Mapping[str, Callable[[], Iterator[tuple[str, Body]]]] = {"reads": _reads}


def programs(suite: str, board: Board, kernel: Kernel) -> list[Program]:
    """The cases of a suite on a board, those of one file system together."""
    prepare = _prepare()
    return [
        Program(
            case_id=f"validate-{fs}-{name}",
            fs=fs,
            board=board,
            kernel=kernel,
            read_ahead_kib=window,
            prepare=prepare,
            body="\n".join([HEADER, "drop_caches", *lines, ""]),
        )
        for fs in FILE_SYSTEMS
        for name, (window, lines) in SUITES[suite]()
    ]


def compare(simulated: pl.DataFrame, real: pl.DataFrame) -> pl.DataFrame:
    """case_id, and for each measure the simulator's and the kernel's value and the error, percent.

    Both tables need case_id, the flash counts, flash_time_ns and time_ns. The error is that of
    analysis.agreement: null where the kernel's value is not known.
    """
    columns = ["case_id", *MEASURES.values()]
    named = {column: name for name, column in MEASURES.items()}
    renamed = [frame.select(columns).rename(named) for frame in (simulated, real)]
    joined = renamed[0].join(renamed[1], on="case_id", suffix="_real", maintain_order="left")
    return joined.with_columns(
        error_pct(pl.col(name), pl.col(f"{name}_real")).alias(f"{name}_error_pct")
        for name in MEASURES
    )


def summary(table: pl.DataFrame) -> dict[str, Any]:
    """What `flashbed validate --format json` prints: for each measure how exact it is.

    A measure the real target does not know (time, on user-mode Linux) is null.
    """
    result: dict[str, Any] = {"cases": table.height}
    for name in MEASURES:
        errors = table[f"{name}_error_pct"].drop_nulls().abs()
        result[name] = None
        if errors.len():
            result[name] = {
                "exact_share": (errors == 0).mean(),
                "mean_error_pct": errors.mean(),
                "worst_error_pct": errors.max(),
            }
    return result
