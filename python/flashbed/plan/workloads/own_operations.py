"""Runs operations that the experiment itself contains: the workload `operations`.

They are a flashbed-ops file of either version (docs/reference/operations.md). The lines before its
`prepared` line are the preparation. Without that line the program begins on an empty file system.
"""

from __future__ import annotations

from functools import lru_cache

from flashbed.plan.case import Case
from flashbed.program.operations import Operation, canonical, each, header_of

__all__ = ["operations"]

_PREPARED = "prepared"


def operations(_case: Case, settle_ns: int, text: str) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `OperationError`."""
    return _parted(text, settle_ns)


@lru_cache(maxsize=4)
def _parted(text: str, settle_ns: int) -> tuple[str, str]:
    header, read = header_of(text), list(each(text))
    at = next((at for at, operation in enumerate(read) if operation.name == _PREPARED), None)
    before, body = ([], read) if at is None else (read[:at], read[at + 1 :])
    rest = [Operation("sync", ()), Operation("pause", (settle_ns,)), Operation(_PREPARED, ())]
    return canonical([*before, *rest], header), canonical(body, header)
