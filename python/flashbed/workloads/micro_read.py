"""Reads one file, in order or at random: the micro-benchmark of the read-ahead paper (3.1.1).

The file is written in order by 4 KiB writes of incompressible bytes and made durable. A pause lets
background work end. Then caches are dropped, the file is opened, and advice is given if the case
has one. `requests` reads of `request_bytes` are measured; opening is not. Between two reads the
program sleeps for the case's pause, which does not count as time of the case. Random offsets are
multiples of the request size, drawn with replacement.

Left out: requests at other offsets than multiples of their size.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from functools import lru_cache

from flashbed.errors import InputError
from flashbed.formats.operations import text_of
from flashbed.plan.case import NO_ADVICE, Case
from flashbed.workloads.layout_files import prepared, written_file

__all__ = ["operations"]

FILE = "file.bin"
WRITE_BYTES = 4096
CONTENT_SEED = 1
"""The file's bytes do not depend on the case's seed, so all seeds share one preparation."""


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` if the requests do not fit the file.
    """
    if case.file_bytes < case.request_bytes:
        raise InputError(
            f"{case.case_id}: a request of {case.request_bytes} bytes does not fit the file"
        )
    if case.pattern == "sequential" and case.requests * case.request_bytes > case.file_bytes:
        raise InputError(f"{case.case_id}: the requests read past the end of the file")
    return _prepare(case.file_bytes, settle_ns), _body(case)


@lru_cache(maxsize=64)
def _prepare(file_bytes: int, settle_ns: int) -> str:
    return prepared([written_file(FILE, file_bytes, WRITE_BYTES, CONTENT_SEED)], settle_ns)


def _body(case: Case) -> str:
    size = case.request_bytes
    places = case.file_bytes // size
    if case.pattern == "sequential":
        offsets: Iterable[int] = range(0, case.requests * size, size)
    else:
        # Only random() is the same in every version of Python.
        draw = random.Random(case.seed).random
        offsets = (int(draw() * places) * size for _ in range(case.requests))
    reads: Iterable[str] = (f"read 0 {offset} {size}" for offset in offsets)
    if case.pause_ns:
        paused = ((f"pause {case.pause_ns}", read) for read in reads)
        reads = itertools.islice(itertools.chain.from_iterable(paused), 1, None)
    advice = [] if case.advice == NO_ADVICE else [f"fadvise 0 0 0 {case.advice}"]
    before = ("drop_caches", f"open 0 {FILE} ro", *advice, "mark")
    return text_of(itertools.chain(before, reads))
