"""Overwrites a file at random until the file system has to collect garbage.

The pattern names the layout of the valid data and its share of the partition's bytes (`mixed-60` is
60 %):

- `fill`: files of 1 MiB that stay unchanged, and one file of `file_bytes` that is overwritten.
- `apart`: half of the valid data is one file that is overwritten (hot), the other half one that is
  not (cold). The cold file is written first, so that few blocks hold bytes of both.
- `mixed`: the same two files, written in turns of `TURN_BYTES`, so that every block holds both.
- `all`: one file, overwritten everywhere.

The last three are aged before the mark: the hot file is overwritten with as many bytes as the
partition has. Free space has then been used up, and each block has its share of obsolete bytes.
These writes are synced one by one, because UBIFS otherwise would not write them to the flash.
`fill` is neither aged nor synced.

The measured part is `requests` writes of `request_bytes` at multiples of that, drawn with
replacement. `fill-75-idle` pauses a second after every `IDLE_EVERY_BYTES` written, in which only
the file system works. Left out: more than two temperatures of data; data that compresses.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from functools import lru_cache

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of
from flashbed.stack.profiles import Board

__all__ = ["operations"]

FILE = "overwritten.bin"
COLD = "cold.bin"
FILL_BYTES = 1024 * 1024
FILL_WRITE_BYTES = 65536
TURN_BYTES = 32768
"""A quarter of a block of 128 KiB."""
AGED_WRITE_BYTES = 65536
CONTENT_SEED = 1
IDLE_EVERY_BYTES = 256 * 1024
IDLE_NS = 1_000_000_000
REST_NS = 10_000_000_000
"""Pause after each file of the preparation, in which timers expire."""
_PATTERN = re.compile(r"(fill|apart|mixed|all)-([1-9][0-9]?)(-idle)?")
_HOT = {"apart": 2, "mixed": 2, "all": 1}
"""Layout -> inverse of the hot file's share of the valid data."""


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    named = _PATTERN.fullmatch(case.pattern)
    assert named, case.pattern
    layout, percent, idle = named[1], int(named[2]), named[3]
    board = case.profile()
    size = case.request_bytes
    hot_bytes = case.file_bytes if layout == "fill" else _hot_bytes(board, layout, percent)
    if hot_bytes < size:
        raise InputError(f"{case.case_id}: a request does not fit the file")
    synced = layout in _HOT
    writes = _overwrites(hot_bytes, size, case.requests, case.seed, synced=synced)
    if idle:
        writes = _with_pauses(writes, max(1, IDLE_EVERY_BYTES // size) * (2 if synced else 1))
    prepare = (
        _filled(board, percent, case.file_bytes, settle_ns)
        if layout == "fill"
        else _aged(board, layout, percent, settle_ns)
    )
    return prepare, text_of(itertools.chain((f"open 0 {FILE} rw", "mark"), writes))


def _overwrites(
    file_bytes: int, size: int, count: int, seed: int, *, synced: bool
) -> Iterator[str]:
    places = file_bytes // size
    draw = random.Random(seed).random  # the same in every version of Python
    for _ in range(count):
        yield f"write 0 {int(draw() * places) * size} {size} {CONTENT_SEED + 1} 0"
        if synced:
            yield "fsync 0"


def _with_pauses(lines: Iterator[str], every: int) -> Iterator[str]:
    """Adds a pause after every `every` lines."""
    for number, line in enumerate(lines, start=1):
        yield line
        if number % every == 0:
            yield f"pause {IDLE_NS}"


def _hot_bytes(board: Board, layout: str, percent: int) -> int:
    """A multiple of a turn, so that the files' sizes match the share exactly."""
    wanted = board.partition_bytes * percent // 100 // _HOT[layout]
    return wanted // TURN_BYTES * TURN_BYTES


@lru_cache(maxsize=16)
def _filled(board: Board, percent: int, file_bytes: int, settle_ns: int) -> str:
    wanted = board.partition_bytes * percent // 100 - file_bytes
    rest = f"pause {REST_NS}"
    files = [
        [*written_file(f"fill-{number}", FILL_BYTES, FILL_WRITE_BYTES, CONTENT_SEED), rest]
        for number in range(max(0, wanted // FILL_BYTES))
    ]
    measured = written_file(FILE, file_bytes, FILL_WRITE_BYTES, CONTENT_SEED)
    return prepared([*files, measured], settle_ns)


@lru_cache(maxsize=16)
def _aged(board: Board, layout: str, percent: int, settle_ns: int) -> str:
    hot_bytes = _hot_bytes(board, layout, percent)
    cold = written_file(COLD, hot_bytes, FILL_WRITE_BYTES, CONTENT_SEED)
    written = {
        "apart": [*cold, *written_file(FILE, hot_bytes, FILL_WRITE_BYTES, CONTENT_SEED)],
        "mixed": _in_turns(hot_bytes),
        "all": written_file(FILE, hot_bytes, FILL_WRITE_BYTES, CONTENT_SEED),
    }[layout]
    count = board.partition_bytes // AGED_WRITE_BYTES
    overwritten = _overwrites(hot_bytes, AGED_WRITE_BYTES, count, CONTENT_SEED, synced=True)
    aged = [f"open 0 {FILE} rw", *overwritten, "close 0"]
    return prepared([written, [f"pause {REST_NS}"], aged], settle_ns)


def _in_turns(hot_bytes: int) -> list[str]:
    """Writes both files in turns, each synced: write-back would sort what is left to it."""
    turns = [
        line
        for offset in range(0, hot_bytes, TURN_BYTES)
        for slot in (0, 1)
        for line in (f"write {slot} {offset} {TURN_BYTES} {CONTENT_SEED} 0", f"fsync {slot}")
    ]
    opened = [f"open 0 {FILE} rw,create", f"open 1 {COLD} rw,create"]
    return [*opened, *turns, "close 0", "close 1"]
