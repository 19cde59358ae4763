"""Perfetto's traces: refused, and why.

`raw_syscalls/sys_enter` holds the arguments of calls as numbers: paths are addresses in a memory
that are not kept, and there is no sign of which file a descriptor is. The events of a file system
(ext4_da_write_begin, f2fs_…) have inode numbers without names, after the page cache has cut and
merged what the program asked for, and none of flash file systems exists.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from flashbed.imports.lines import ImportedError, lines_of
from flashbed.paths import shown

__all__ = ["import_perfetto"]


def import_perfetto(path: Path, _out: Path) -> NoReturn:
    """Raises `ImportedError`."""
    next(lines_of(path), None)
    raise ImportedError(
        f"{shown(path)}: a trace of Perfetto names no file that a call opens, only addresses; "
        "record the program with strace or flashbed record"
    )
