"""A program for the flash, written in Python: `flashbed-ops 2` (docs/reference/operations.md).

Every method adds one operation and returns the file or the program, so that calls can be chained.
Written bytes are generated; only their number and compressibility matter.
"""

from __future__ import annotations

from typing import Self

from flashbed.base.errors import InputError
from flashbed.program.operations import HEADER_2, parse, text_of

__all__ = ["OwnFile", "OwnProgram"]

_MODES = {
    "r": "ro",
    "r+": "rw",
    "w": "wo,create,trunc",
    "w+": "rw,create,trunc",
    "a": "wo,create,append",
    "a+": "rw,create,append",
    "x": "wo,create,excl",
}
_SLOTS = 1024
_NS = 1_000_000_000


class OwnProgram:
    """Operations in order. `fb.run` runs them, `text` is the file.

    Operations before `prepared` bring the file system into its initial state; the others are
    measured.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: dict[int, str] = {}
        self._sizes: dict[str, int] = {}
        self._seed = 0

    @classmethod
    def from_text(cls, text: str) -> OwnProgram:
        """Reads a program from a flashbed-ops file. Raises `errors.InputError` with the line."""
        program = cls()
        program._lines = [str(operation) for operation in parse(text)]
        return program

    @property
    def text(self) -> str:
        """The program as a `flashbed-ops 2` file. Raises `errors.InputError` for a wrong one."""
        text = text_of(self._lines, HEADER_2)
        parse(text)
        return text

    def open(self, path: str, mode: str = "r", *, flags: str = "") -> OwnFile:
        """Opens a file as Python's `open` does; `flags` adds `sync`, `dsync` or `direct`."""
        if mode not in _MODES:
            raise InputError(f"open {path}: mode {mode!r} is not one of {', '.join(_MODES)}")
        slot = next((slot for slot in range(_SLOTS) if slot not in self._open), None)
        if slot is None:
            raise InputError(f"open {path}: {_SLOTS} files are open already")
        words = [_MODES[mode], *(flags.split(",") if flags else [])]
        self.add("open", slot, path, ",".join(words))
        self._open[slot] = path
        if "trunc" in words[0]:
            self._sizes[path] = 0
        return OwnFile(self, slot, path, appends=mode.startswith("a"))

    def add(self, name: str, *fields: str | int) -> Self:
        """Adds any operation of docs/reference/operations.md."""
        self._lines.append(" ".join((name, *map(str, fields))))
        return self

    def mkdir(self, path: str) -> Self:
        """Makes a folder."""
        return self.add("mkdir", path)

    def unlink(self, path: str) -> Self:
        """Removes a file."""
        self._sizes.pop(path, None)
        return self.add("unlink", path)

    def rename(self, old: str, new: str) -> Self:
        """Renames a file, replacing another if there is one."""
        if old in self._sizes:
            self._sizes[new] = self._sizes.pop(old)
        return self.add("rename", old, new)

    def sync(self) -> Self:
        """Writes everything that is dirty to the flash."""
        return self.add("sync")

    def drop_caches(self) -> Self:
        """Drops clean pages from the page cache."""
        return self.add("drop_caches")

    def pause(self, seconds: float) -> Self:
        """Waits; a pause never counts as time of the program."""
        return self.add("pause", round(seconds * _NS))

    def prepared(self) -> Self:
        """Ends the preparation. No file may be open."""
        return self.add("prepared")

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"Program({len(self)} operations)"

    def _next_seed(self) -> int:
        """A new seed for every write, so that no two writes have the same bytes."""
        self._seed += 1
        return self._seed


class OwnFile:
    """An open file of an `fb.Program`, with a position like that of Python's files."""

    def __init__(self, program: OwnProgram, slot: int, path: str, *, appends: bool) -> None:
        self._program = program
        self._slot = slot
        self._path = path
        self._appends = appends
        self._at = 0

    def write(self, size: int, *, at: int | None = None, compressibility: int = 0) -> Self:
        """Writes bytes; `compressibility` is the percentage of their 64-byte lines that is zero."""
        sizes = self._program._sizes
        end = sizes.get(self._path, 0)
        at = end if self._appends else self._at if at is None else at
        self._program.add(
            "write", self._slot, at, size, self._program._next_seed(), compressibility
        )
        self._at = at + size
        sizes[self._path] = max(end, self._at)
        return self

    def read(self, size: int, *, at: int | None = None) -> Self:
        """Reads bytes."""
        at = self._at if at is None else at
        self._program.add("read", self._slot, at, size)
        self._at = at + size
        return self

    def seek(self, at: int) -> Self:
        """Sets the position, without a system call."""
        self._at = at
        return self

    def truncate(self, size: int) -> Self:
        """Sets the file's size."""
        self._program._sizes[self._path] = size
        self._program.add("truncate", self._slot, size)
        return self

    def fsync(self) -> Self:
        """Waits until the file is on flash."""
        self._program.add("fsync", self._slot)
        return self

    def fdatasync(self) -> Self:
        """Waits until the file's data is on flash."""
        self._program.add("fdatasync", self._slot)
        return self

    def close(self) -> OwnProgram:
        """Closes the file and returns the program."""
        self._program.add("close", self._slot)
        del self._program._open[self._slot]
        return self._program

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"File({self._path!r} at {self._at})"
