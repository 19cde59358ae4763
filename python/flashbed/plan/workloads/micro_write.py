"""Writes to one file, in order or at random: the cost of a write, and the flash's work for it.

`sequential` writes a new file in order. `random` overwrites a file of `file_bytes`, which was
written in order before a pause, at multiples of the request size, drawn with replacement. Creating
and opening the file and syncing are not measured, so data that the file system holds back does not
count.

The operations are made by common/src/micro.rs, which the playground has too. Left out: data that
compresses.
"""

from __future__ import annotations

from flashbed._sim import micro_writes
from flashbed.base.errors import InputError
from flashbed.plan.case import Case

__all__ = ["operations"]


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    try:
        return micro_writes(
            pattern=case.pattern,
            requests=case.requests,
            request_bytes=case.request_bytes,
            file_bytes=case.file_bytes,
            seed=case.seed,
            settle_ns=settle_ns,
        )
    except ValueError as unfit:
        raise InputError(f"{case.case_id}: {unfit}") from None
