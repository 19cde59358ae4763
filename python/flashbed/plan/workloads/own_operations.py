"""Runs operations that the experiment itself contains: the workload `operations`.

They are a flashbed-ops file of either version (docs/reference/operations.md). The lines before its
`prepared` line are the preparation. Without that line the program begins on an empty file system.
"""

from __future__ import annotations

from functools import lru_cache

from flashbed._sim import parted
from flashbed.plan.case import Case
from flashbed.program.operations import canonical, each, header_of

__all__ = ["operations"]


def operations(_case: Case, settle_ns: int, text: str) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `OperationError`."""
    return _parted(text, settle_ns)


@lru_cache(maxsize=4)
def _parted(text: str, settle_ns: int) -> tuple[str, str]:
    return parted(canonical(each(text), header_of(text)), settle_ns)
