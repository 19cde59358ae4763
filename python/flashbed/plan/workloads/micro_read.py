"""Reads one file, in order or at random: the micro-benchmark of the read-ahead paper (3.1.1).

The file is written in order by 4 KiB writes of incompressible bytes and made durable. A pause lets
background work end. Then caches are dropped, the file is opened, and advice is given if the case
has one. `requests` reads of `request_bytes` are measured; opening is not. Between two reads the
program sleeps for the case's pause, which does not count as time of the case.

The pattern says what a random offset is: a multiple of the request size (`random`, and
`random-once`, which draws none twice), of a page of memory (`random-page`), or any byte at which
the request fits (`random-byte`). The paper names none of them.

The operations are made by common/src/micro.rs, which the playground has too.
"""

from __future__ import annotations

from functools import lru_cache

from flashbed._sim import micro_prepare, micro_reads
from flashbed.base.errors import InputError
from flashbed.plan.case import NO_ADVICE, Case

__all__ = ["operations"]

_prepare = lru_cache(maxsize=64)(micro_prepare)


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` if the requests do not fit the file.
    """
    try:
        body = micro_reads(
            pattern=case.pattern,
            requests=case.requests,
            request_bytes=case.request_bytes,
            file_bytes=case.file_bytes,
            seed=case.seed,
            pause_ns=case.pause_ns,
            advice=None if case.advice == NO_ADVICE else case.advice,
        )
    except ValueError as unfit:
        raise InputError(f"{case.case_id}: {unfit}") from None
    return _prepare(case.file_bytes, settle_ns), body
