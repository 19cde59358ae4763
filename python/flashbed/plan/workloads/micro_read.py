"""Reads one file, in order or at random: the micro-benchmark of the read-ahead paper (3.1.1).

The file is written in order by 4 KiB writes of incompressible bytes and made durable. A pause lets
background work end. Then caches are dropped, the file is opened, and advice is given if the case
has one. `requests` reads of `request_bytes` are measured; opening is not. Between two reads the
program sleeps for the case's pause, which does not count as time of the case.

The pattern says what a random offset is: a multiple of the request size (`random`, and
`random-once`, which draws none twice), of a page of memory (`random-page`), or any byte at which
the request fits (`random-byte`). The paper names none of them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from functools import lru_cache

from flashbed.base.errors import InputError
from flashbed.plan.case import NO_ADVICE, Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of

__all__ = ["operations"]

FILE = "file.bin"
WRITE_BYTES = 4096
CONTENT_SEED = 1
"""The file's bytes do not depend on the case's seed, so all seeds share one preparation."""
PAGE_BYTES = 4096
"""A page of memory."""


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` if the requests do not fit the file.
    """
    if case.file_bytes < case.request_bytes:
        raise InputError(
            f"{case.case_id}: a request of {case.request_bytes} bytes does not fit the file"
        )
    each_place_once = case.pattern in ("sequential", "random-once")
    if each_place_once and case.requests * case.request_bytes > case.file_bytes:
        raise InputError(f"{case.case_id}: the file does not have as many places to read")
    return _prepare(case.file_bytes, settle_ns), _body(case)


@lru_cache(maxsize=64)
def _prepare(file_bytes: int, settle_ns: int) -> str:
    return prepared([written_file(FILE, file_bytes, WRITE_BYTES, CONTENT_SEED)], settle_ns)


def _body(case: Case) -> str:
    reads: Iterable[str] = (f"read 0 {offset} {case.request_bytes}" for offset in _offsets(case))
    if case.pause_ns:
        paused = ((f"pause {case.pause_ns}", read) for read in reads)
        reads = itertools.islice(itertools.chain.from_iterable(paused), 1, None)
    advice = [] if case.advice == NO_ADVICE else [f"fadvise 0 0 0 {case.advice}"]
    before = ("drop_caches", f"open 0 {FILE} ro", *advice, "mark")
    return text_of(itertools.chain(before, reads))


def _offsets(case: Case) -> Iterator[int]:
    """Where each request begins, in bytes."""
    size = case.request_bytes
    if case.pattern == "sequential":
        yield from range(0, case.requests * size, size)
        return
    step = {"random-page": PAGE_BYTES, "random-byte": 1}.get(case.pattern, size)
    places = (case.file_bytes - size) // step + 1
    # Only random() is the same in every version of Python.
    draw = random.Random(case.seed).random
    moved: dict[int, int] = {}
    for drawn in range(case.requests):
        if case.pattern != "random-once":
            yield int(draw() * places) * step
            continue
        # A place that was drawn gets the last one's number, so that it is not drawn again.
        at, last = int(draw() * (places - drawn)), places - drawn - 1
        yield moved.get(at, at) * step
        moved[at] = moved.get(last, last)
