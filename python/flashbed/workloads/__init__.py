"""What a program does to the file system, as operations. One module a workload.

A workload turns a case into two flashbed-ops files: the preparation, which cases share, and the
measured rest. Workloads know nothing of targets.
"""

from __future__ import annotations

from collections.abc import Callable

from flashbed.case import Case
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

__all__ = ["ADVISING", "PAUSING", "WORKLOADS", "Workload"]

Workload = Callable[[Case, int], tuple[str, str]]
"""Case and pause before measuring in ns -> (prepare, body), both flashbed-ops files."""

WORKLOADS: dict[str, Workload] = {
    "micro-read": micro_read.operations,
    "micro-write": micro_write.operations,
    "read-layout": read_layout.operations,
    "collection": collection.operations,
    "raw": raw.operations,
    "fsync-files": fsync_files.operations,
    "overwrite": overwrite.operations,
    "sqlite": sqlite.operations,
    "postmark": postmark.operations,
}

PAUSING = frozenset({"micro-read"})
"""Workloads that know `pause_ns`."""
ADVISING = frozenset({"micro-read", "postmark"})
"""Workloads that know `advice`."""
