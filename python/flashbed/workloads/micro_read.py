"""Reads of one file, in order or at random: the micro-benchmark of the read-ahead paper (3.1.1).

The file is written in order by 4 KiB writes of bytes that cannot be compressed, made durable, and
left alone until background work has settled. Then caches are dropped, the file is opened, and
`requests` reads of `request_bytes` are measured; opening is not. Random offsets are multiples of
the request size, drawn with replacement.

Left out: inter-arrival times and unaligned requests (the paper's figures 2 and 4).
"""

from __future__ import annotations

import random
from functools import lru_cache

from flashbed.case import Case
from flashbed.errors import InputError
from flashbed.operations import HEADER
from flashbed.workloads.files import prepared, written_file

__all__ = ["operations"]

FILE = "file.bin"
WRITE_BYTES = 4096
CONTENT_SEED = 1
"""The file's bytes do not depend on the case's seed, so that all seeds share one preparation."""


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
    body = _body(case.pattern, case.requests, case.request_bytes, case.file_bytes, case.seed)
    return _prepare(case.file_bytes, settle_ns), body


@lru_cache(maxsize=64)
def _prepare(file_bytes: int, settle_ns: int) -> str:
    return prepared([written_file(FILE, file_bytes, WRITE_BYTES, CONTENT_SEED)], settle_ns)


@lru_cache(maxsize=1024)
def _body(pattern: str, requests: int, request_bytes: int, file_bytes: int, seed: int) -> str:
    places = file_bytes // request_bytes
    if pattern == "sequential":
        offsets = range(0, requests * request_bytes, request_bytes)
        reads = [f"read 0 {offset} {request_bytes}" for offset in offsets]
    else:
        # Only random() is the same in every version of Python.
        draw = random.Random(seed).random
        reads = [
            f"read 0 {int(draw() * places) * request_bytes} {request_bytes}"
            for _ in range(requests)
        ]
    return "\n".join((HEADER, "drop_caches", f"open 0 {FILE} ro", "mark", *reads, ""))
