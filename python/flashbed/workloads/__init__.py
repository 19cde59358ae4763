"""What a program does to the file system, as operations. One module a workload.

A workload turns a case into two flashbed-ops files: the preparation, which cases share, and the
measured rest. Workloads know nothing of targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from flashbed.errors import InputError
from flashbed.plan.case import Case
from flashbed.workloads import (
    collection,
    fsync_files,
    micro_read,
    micro_write,
    overwrite,
    postmark,
    raw,
    read_layout,
    sqlite,
)

__all__ = ["WORKLOADS", "Workload"]

_PERCENT = re.compile(r"-[1-9][0-9]?(?=-|$)")


@dataclass(frozen=True)
class Workload:
    """A program, and the words of the axes that it knows; `NN` in a pattern is from 1 to 99."""

    kind: str
    make: Callable[..., tuple[str, str]]
    patterns: tuple[str, ...]
    pauses: bool = False
    """It knows `pause_ns`."""
    advises: bool = False
    """It knows `advice`."""

    def __call__(self, case: Case, settle_ns: int, *more: str) -> tuple[str, str]:
        """A case and the pause before measuring, ns, as (prepare, body), flashbed-ops files.

        Raises `InputError`.
        """
        why = self.unknown(case.pattern) or self.without(case.pattern, case.fs)
        if why is not None:
            raise InputError(f"{case.case_id}: {why}")
        return self.make(case, settle_ns, *more)

    def unknown(self, pattern: str) -> str | None:
        """Why a word is no pattern of its; None for one that is."""
        if pattern in self.patterns or _PERCENT.sub("-NN", pattern) in self.patterns:
            return None
        return f"{self.kind} has no pattern {pattern!r}; it has {', '.join(self.patterns)}"

    def without(self, pattern: str, fs: str) -> str | None:
        """Why it does nothing on a file system; None where it does."""
        if self.kind != "raw" and fs in raw.RAW:
            return f"fs {fs}: it has no files, and only raw works without them"
        if pattern in raw.OF_PARTITIONS and self.kind == "raw" and fs not in raw.RAW:
            return f"pattern {pattern}: of a partition, fs {' or '.join(raw.RAW)}, not of {fs}"
        return None


WORKLOADS = {
    workload.kind: workload
    for workload in (
        Workload(
            "micro-read", micro_read.operations, micro_read.PATTERNS, pauses=True, advises=True
        ),
        Workload("micro-write", micro_write.operations, micro_write.PATTERNS),
        Workload("read-layout", read_layout.operations, read_layout.PATTERNS),
        Workload("collection", collection.operations, collection.PATTERNS),
        Workload("raw", raw.operations, raw.PATTERNS),
        Workload("fsync-files", fsync_files.operations, fsync_files.PATTERNS),
        Workload("overwrite", overwrite.operations, overwrite.PATTERNS),
        Workload("sqlite", sqlite.operations, sqlite.PATTERNS),
        Workload("postmark", postmark.operations, postmark.PATTERNS, advises=True),
    )
}
