"""A case of a suite: what is prepared, what is measured, and which kind of case it counts as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flashbed.formats.profiles import USUAL_COMPRESSOR

__all__ = ["FILE_SYSTEMS", "SuiteCase"]

FILE_SYSTEMS = ("jffs2", "yaffs2", "ubifs")
"""Those that every suite is run on."""


@dataclass(frozen=True)
class SuiteCase:
    """One case on one file system.

    `prepare` is a whole flashbed-ops file, `lines` the operations after it. Kinds are what a
    suite's result is given for.
    """

    name: str
    kind: str
    prepare: str
    lines: Sequence[str]
    read_ahead_kib: int = 0
    bulk_read: bool = False
    compressor: str = USUAL_COMPRESSOR
