"""Writes to one file, in order or at random: the cost of a write, and the flash's work for it.

`sequential` writes a new file in order. `random` overwrites a file of `file_bytes`, which was
written in order before a pause, at multiples of the request size, drawn with replacement. Creating
and opening the file and syncing are not measured, so data that the file system holds back does not
count.

Left out: data that compresses.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of

__all__ = ["operations"]

FILE = "file.bin"
OVERWRITTEN_BYTES = 4096
"""Request size of the preparation that `random` overwrites."""
CONTENT_SEED = 1


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    size, count = case.request_bytes, case.requests
    if case.pattern == "sequential":
        if size * count > case.file_bytes:
            raise InputError(f"{case.case_id}: the requests write past file_bytes")
        prepare, flags = prepared([], settle_ns), "rw,create"
        offsets: Iterable[int] = range(0, size * count, size)
    elif case.pattern == "random":
        places = case.file_bytes // size
        if places == 0:
            raise InputError(f"{case.case_id}: a request does not fit the file")
        written = written_file(FILE, case.file_bytes, OVERWRITTEN_BYTES, CONTENT_SEED)
        prepare, flags = prepared([written], settle_ns), "rw"
        draw = random.Random(case.seed).random  # the same in every version of Python
        offsets = (int(draw() * places) * size for _ in range(count))
    else:
        raise InputError(f"{case.case_id}: micro-write has the patterns sequential and random")
    writes = (f"write 0 {offset} {size} {CONTENT_SEED + 1} 0" for offset in offsets)
    return prepare, text_of(itertools.chain((f"open 0 {FILE} {flags}", "mark"), writes))
