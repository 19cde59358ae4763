"""A case of a suite: its preparation, what is measured, and its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flashbed.stack.profiles import USUAL_COMPRESSOR

__all__ = ["SuiteCase", "case_id"]


@dataclass(frozen=True, kw_only=True)
class SuiteCase:
    """One case on one file system.

    `prepare` is a whole flashbed-ops file, `lines` are the operations after it. Results are
    summarised by kind.
    """

    name: str
    kind: str
    prepare: str
    lines: Sequence[str]
    read_ahead_kib: int = 0
    bulk_read: bool = False
    compressor: str = USUAL_COMPRESSOR


def case_id(fs: str, name: str) -> str:
    """The name of a suite's case on a file system."""
    return f"validate-{fs}-{name}"
