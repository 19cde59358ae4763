"""Refuses Perfetto's traces, and says why.

`raw_syscalls/sys_enter` holds arguments as numbers. Paths are addresses in memory that is not in
the trace, and nothing tells which file a descriptor is. Events of a file system
(ext4_da_write_begin, f2fs_…) have inode numbers without names, and come after the page cache has
split and merged the program's requests. Flash file systems have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, lines_of

__all__ = ["import_perfetto"]


def import_perfetto(path: Path, _out: Path) -> NoReturn:
    """Raises `ImportedError`."""
    next(lines_of(path), None)
    raise ImportedError(
        f"{shown(path)}: a Perfetto trace does not name the files that calls open, only addresses;"
        " record the program with strace or flashbed record"
    )
