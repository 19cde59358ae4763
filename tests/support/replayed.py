"""Operations of version 2 executed in a folder, as far as they change files: what a test compares.

Knows operations whose bytes are at hand (`data`). Stores through a mapping are writes to its file.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import unquote

__all__ = ["replay"]

_FLAGS = {
    "ro": os.O_RDONLY, "wo": os.O_WRONLY, "rw": os.O_RDWR, "create": os.O_CREAT,
    "excl": os.O_EXCL, "trunc": os.O_TRUNC, "append": 0, "directory": os.O_DIRECTORY,
    "nofollow": os.O_NOFOLLOW, "tmpfile": os.O_TMPFILE, "sync": 0, "dsync": 0, "direct": 0,
}  # fmt: skip
_NOTHING = """
task spawn wait compute pause read stat readdir readlink fsync fdatasync sync syncfs fadvise
sync_range flock touch msync getxattr listxattr setxattr removexattr utimens chown
"""


class _Replay:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slots: dict[str, int] = {}
        self.mapped: dict[str, tuple[int, int]] = {}
        self.data = b""

    def path(self, word: str) -> str:
        return str(self.folder / unquote(word))

    def line(self, word: str, *fields: str) -> None:
        numbers = [int(field) if field.isdigit() else 0 for field in fields]
        if word == "data":
            self.data += base64.b64decode(fields[0])
        elif word == "open":
            flags = [_FLAGS[flag] for flag in fields[2].split(",")]
            self.slots[fields[0]] = os.open(self.path(fields[1]), sum(flags), 0o644)
        elif word == "close":
            os.close(self.slots.pop(fields[0]))
        elif word in ("write", "store"):
            file, at = self.mapped[fields[0]] if word == "store" else (self.slots[fields[0]], 0)
            assert len(self.data) == numbers[2], "its bytes are not at hand"
            os.pwrite(file, self.data, at + numbers[1])
            self.data = b""
        elif word == "mmap":
            self.mapped[fields[0]] = os.dup(self.slots[fields[1]]), numbers[2]
        elif word == "munmap":
            os.close(self.mapped.pop(fields[0])[0])
        elif word == "copy":
            piece = os.pread(self.slots[fields[0]], numbers[4], numbers[1])
            os.pwrite(self.slots[fields[2]], piece, numbers[3])
        elif word == "truncate":
            os.ftruncate(self.slots[fields[0]], numbers[1])
        elif word == "fallocate":
            assert fields[3] == "allocate"
            os.posix_fallocate(self.slots[fields[0]], numbers[1], numbers[2])
        else:
            self.name(word, *fields)

    def name(self, word: str, *fields: str) -> None:
        paths = [Path(self.path(field)) for field in fields]
        if word == "mkdir":
            paths[0].mkdir()
        elif word == "rmdir":
            paths[0].rmdir()
        elif word == "unlink":
            paths[0].unlink()
        elif word == "rename":
            paths[0].rename(paths[1])
        elif word == "link":
            paths[1].hardlink_to(paths[0])
        elif word == "symlink":
            paths[1].symlink_to(unquote(fields[0]))
        elif word == "chmod":
            paths[0].chmod(int(fields[1]))
        else:
            assert word in _NOTHING.split(), word


def replay(operations: str, folder: Path) -> None:
    """Executes them. A call that failed when it was recorded fails again, which means nothing."""
    made = _Replay(folder)
    for line in operations.splitlines()[1:]:
        try:
            made.line(*line.split(" "))
        except OSError:
            made.data = b""
