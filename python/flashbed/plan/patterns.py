"""The workloads that an experiment can name, and the values of axes that each knows.

workloads/ turns cases into operations; a test there holds the two lists equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flashbed.stack.file_systems import RAW

__all__ = ["OF_PARTITIONS", "SQLITE", "WORKLOADS", "Workload"]

"""Pseudo file systems: their one file is the partition."""
SQLITE = "sqlite"
OF_PARTITIONS = ("erase",)
"""Patterns of `raw` that need a partition."""
_PERCENT = re.compile(r"-[1-9][0-9]?(?=-|$)")


@dataclass(frozen=True)
class Workload:
    """A program and the values of axes that it knows; `NN` in a pattern is from 1 to 99."""

    kind: str
    patterns: tuple[str, ...]
    pauses: bool = False
    """Whether it knows `pause_ns`."""
    advises: bool = False
    """Whether it knows `advice`."""
    syncs: bool = False
    """Whether it knows `sync_every_s`."""

    def unknown(self, pattern: str) -> str | None:
        """Why a word is not one of its patterns; None if it is."""
        if pattern in self.patterns or _PERCENT.sub("-NN", pattern) in self.patterns:
            return None
        return f"{self.kind} has no pattern {pattern!r}; it has {', '.join(self.patterns)}"

    def without(self, pattern: str, fs: str) -> str | None:
        """Why it cannot run on a file system; None if it can."""
        if self.kind != "raw" and fs in RAW:
            return f"fs {fs}: has no files, and only the workload raw works without them"
        if pattern in OF_PARTITIONS and self.kind == "raw":
            if fs not in RAW:
                return f"pattern {pattern}: needs a partition, fs {' or '.join(RAW)}, not {fs}"
            if RAW[fs].is_block_device:
                return f"pattern {pattern}: fs {fs} is a disk, and erases by itself"
        return None


_COLLECTION = tuple(
    f"{layout}-NN{idle}" for layout in ("fill", "apart", "mixed", "all") for idle in ("", "-idle")
)
_READS = ("sequential", "random", "random-page", "random-byte", "random-once")
_STATEMENTS = (
    "insert", "select", "select-random", "update", "join", "select-all", "contacts",
    "contacts-random", "contacts-insert", "contacts-update", "contacts-delete", "scanned",
    "indexed", "join-three", "group-by", "subquery", "script",
)  # fmt: skip

_ENGINES = tuple(
    f"{engine}-{request}"
    for engine in ("sqlite", "berkeleydb", "lmdb")
    for request in ("insert", "select", "update", "join")
)

WORKLOADS = {
    workload.kind: workload
    for workload in (
        Workload("micro-read", _READS, pauses=True, advises=True),
        Workload("micro-write", ("sequential", "random")),
        Workload("read-layout", ("unfragmented", "fragmented", "fragmented-NN", "cached")),
        Workload("collection", _COLLECTION),
        Workload("raw", ("read", "read-random", "write", "write-random", "erase")),
        Workload("fsync-files", ("random",)),
        Workload("overwrite", ("sequential", "random")),
        Workload(SQLITE, _STATEMENTS, pauses=True),
        Workload("program", ("recorded", "flat-out"), syncs=True),
        Workload("engines", _ENGINES),
        Workload("operations", ("as-written",), syncs=True),
        Workload("postmark", ("creation", "transactions", "deletion", "all"), advises=True),
    )
}
