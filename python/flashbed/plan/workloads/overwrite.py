"""Overwrites and syncs a file again and again, which wears flash.

The file is written in order, made durable and left alone. Then `requests` writes of
`request_bytes`, each followed by fsync, go through the file in order and begin again at its end (a
ring: a log, a recording), or to random places, drawn with replacement (a database). As many writes
come before the mark as after it, so that the measured part begins on a flash that such writes have
used. No two writes write the same bytes.

Left out: files that grow, are removed or renamed; data that compresses.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of

__all__ = ["operations"]

FILE = "file.bin"
WRITE_BYTES = 4096
CONTENT_SEED = 1


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` if a request does not fit the file.
    """
    places = case.file_bytes // case.request_bytes
    if not places:
        raise InputError(
            f"{case.case_id}: a request of {case.request_bytes} bytes does not fit the file"
        )
    body = text_of(itertools.chain((f"open 0 {FILE} rw",), _writes(case, places)))
    return prepared(
        [written_file(FILE, case.file_bytes, WRITE_BYTES, CONTENT_SEED)], settle_ns
    ), body


def _writes(case: Case, places: int) -> Iterator[str]:
    draw = random.Random(case.seed).random  # the same in every version of Python
    for number in range(2 * case.requests):
        if number == case.requests:
            yield "mark"
        place = number % places if case.pattern == "sequential" else int(draw() * places)
        offset = place * case.request_bytes
        content = case.seed * 10_000_000 + number + CONTENT_SEED + 1
        yield f"write 0 {offset} {case.request_bytes} {content} 0"
        yield "fsync 0"
