"""One file overwritten at random until the file system has to collect what it left behind.

The partition is filled with files of 1 MiB up to a share of its bytes, the overwritten file of
`file_bytes` included: `fill-30` is 30 %. Measured are `requests` writes of `request_bytes` at
multiples of that, drawn with replacement. `fill-75-idle` lets one second pass after every
`IDLE_EVERY_BYTES` written, in which nobody waits for what the file system does.

Left out: where the valid data lies: files are written in order and never touched again.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache

from flashbed.case import Case
from flashbed.errors import InputError
from flashbed.operations import HEADER
from flashbed.profiles import Board, load_board
from flashbed.workloads.files import prepared, written_file

__all__ = ["operations"]

FILE = "overwritten.bin"
FILL_BYTES = 1024 * 1024
FILL_WRITE_BYTES = 65536
CONTENT_SEED = 1
IDLE_EVERY_BYTES = 256 * 1024
IDLE_NS = 1_000_000_000
REST_NS = 10_000_000_000
"""After each file of the preparation: timers run out in it."""
_PATTERN = re.compile(r"fill-([1-9][0-9]?)(-idle)?")


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    named = _PATTERN.fullmatch(case.pattern)
    if not named:
        raise InputError(f"{case.case_id}: collection has patterns like fill-30 and fill-30-idle")
    places = case.file_bytes // case.request_bytes
    if places == 0:
        raise InputError(f"{case.case_id}: a request does not fit the file")
    size = case.request_bytes
    draw = random.Random(case.seed).random  # the same in every version of Python
    writes = [f"write 0 {int(draw() * places) * size} {size} 2 0" for _ in range(case.requests)]
    if named[2]:
        every = max(1, IDLE_EVERY_BYTES // size)
        for end in range(len(writes) // every * every, 0, -every):
            writes.insert(end, f"pause {IDLE_NS}")
    prepare = _prepare(load_board(case.board), int(named[1]), case.file_bytes, settle_ns)
    return prepare, "\n".join((HEADER, f"open 0 {FILE} rw", "mark", *writes, ""))


@lru_cache(maxsize=16)
def _prepare(board: Board, percent: int, file_bytes: int, settle_ns: int) -> str:
    block_bytes = board.chip.page_bytes * board.chip.pages_per_block
    wanted = board.partition.blocks * block_bytes * percent // 100 - file_bytes
    rest = f"pause {REST_NS}"
    files = [
        [*written_file(f"fill-{number}", FILL_BYTES, FILL_WRITE_BYTES, CONTENT_SEED), rest]
        for number in range(max(0, wanted // FILL_BYTES))
    ]
    measured = written_file(FILE, file_bytes, FILL_WRITE_BYTES, CONTENT_SEED)
    return prepared([*files, measured], settle_ns)
