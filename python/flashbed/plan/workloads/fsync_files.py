"""Small files that are made durable one after the other, for power cuts.

`requests` steps, drawn by the seed, on a dozen files of at most `file_bytes` bytes in two folders,
with writes of at most `request_bytes`. A step rewrites a file, appends to it or overwrites part of
it, each followed by a sync (mostly fsync, some fdatasync, some a descriptor opened with `sync`); or
it replaces a file (written beside it, synced, renamed over it), truncates and syncs it, removes it,
or writes to it without a sync. Sometimes there is a `sync`, or a pause long enough for write-back.
No two writes write the same bytes; a quarter of them compresses.

Left out: files of more than a few pages, many names in one folder, a full file system.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of

__all__ = ["operations"]

FOLDERS = ("", "d/")
NAMES = tuple(f"{folder}f{number}" for folder in FOLDERS for number in range(6))
PREPARED = NAMES[::3]
"""Files that exist, and are durable, when the case begins."""
REST_NS = 40_000_000_000
"""More than the 30 s after which write-back writes dirty pages (vm.dirty_expire_centisecs)."""


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` for requests larger than a file.
    """
    if case.request_bytes > case.file_bytes:
        raise InputError(f"{case.case_id}: a request does not fit a file")
    first = case.file_bytes // 2
    files = [
        written_file(name, first, case.request_bytes, 1 + number) if first else []
        for number, name in enumerate(PREPARED)
    ]
    steps = _Steps(case, dict.fromkeys(PREPARED, first))
    for _ in range(case.requests):
        steps.step()
    body = text_of(itertools.chain(("mark",), steps.lines))
    return prepared([["mkdir d"], *files], settle_ns), body


@dataclass
class _Steps:
    """The operations so far, and the sizes of the existing files."""

    case: Case
    sizes: dict[str, int]
    lines: list[str] = field(default_factory=list)
    writes: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.case.seed).random  # the same in every version of Python
        self._kinds: tuple[tuple[int, Callable[[str], None]], ...] = (
            (20, self._anew),
            (25, self._append),
            (15, self._overwrite),
            (20, self._replace),
            (3, self._shorten),
            (6, self._unlink),
            (8, self._unsynced),
            (2, lambda _: self.lines.append("sync")),
            (1, lambda _: self.lines.append(f"pause {REST_NS}")),
        )

    def step(self) -> None:
        """Adds one step of a random kind on a random file."""
        at = self._below(sum(weight for weight, _ in self._kinds))
        name = NAMES[self._below(len(NAMES))]
        for weight, kind in self._kinds:
            if at < weight:
                kind(name)
                return
            at -= weight

    def _below(self, limit: int) -> int:
        return int(self._draw() * limit)

    def _length(self, most: int) -> int:
        return 1 + self._below(min(self.case.request_bytes, most))

    def _write(self, offset: int, length: int) -> str:
        self.writes += 1
        compressibility = 60 if self._below(4) == 0 else 0
        return (
            f"write 0 {offset} {length} {self.case.seed * 100_000 + self.writes} {compressibility}"
        )

    def _write_file(self, name: str) -> list[str]:
        """Writes in order up to a random size, which becomes the file's."""
        size = at = 0
        wanted = self._length(self.case.file_bytes)
        wanted = max(wanted, self._below(self.case.file_bytes))
        writes = []
        while at < wanted:
            size = min(self.case.request_bytes, wanted - at)
            writes.append(self._write(at, size))
            at += size
        self.sizes[name] = wanted
        return writes

    def _anew(self, name: str) -> None:
        writes = self._write_file(name)
        self.lines += [f"open 0 {name} wo,create,trunc", *writes, "fsync 0", "close 0"]

    def _append(self, name: str) -> None:
        size = self.sizes.get(name, 0)
        if size >= self.case.file_bytes:
            self._anew(name)
            return
        length = self._length(self.case.file_bytes - size)
        self.sizes[name] = size + length
        self._changed(name, self._write(size, length))

    def _overwrite(self, name: str) -> None:
        size = self.sizes.get(name, 0)
        if size == 0:
            self._anew(name)
            return
        offset = self._below(size)
        self._changed(name, self._write(offset, self._length(size - offset)))

    def _changed(self, name: str, write: str) -> None:
        """Adds one write, made durable in one of the ways."""
        way = self._below(8)
        flags = "wo,create,sync" if way == 0 else "wo,create"
        sync = [] if way == 0 else ["fdatasync 0" if way == 1 else "fsync 0"]
        self.lines += [f"open 0 {name} {flags}", write, *sync, "close 0"]

    def _replace(self, name: str) -> None:
        beside = f"{name}.new"
        writes = self._write_file(name)
        self.lines += [f"open 0 {beside} wo,create,trunc", *writes, "fsync 0", "close 0"]
        self.lines.append(f"rename {beside} {name}")

    def _shorten(self, name: str) -> None:
        size = self.sizes.get(name, 0)
        if size == 0:
            self._anew(name)
            return
        self.sizes[name] = self._below(size)
        self.lines += [f"open 0 {name} wo", f"truncate 0 {self.sizes[name]}", "fsync 0", "close 0"]

    def _unlink(self, name: str) -> None:
        if self.sizes.pop(name, None) is None:
            self._anew(name)
        else:
            self.lines.append(f"unlink {name}")

    def _unsynced(self, name: str) -> None:
        size = self.sizes.get(name, 0)
        offset = self._below(min(size, self.case.file_bytes - 1) + 1)
        length = self._length(self.case.file_bytes - offset)
        self.sizes[name] = max(size, offset + length)
        self.lines += [f"open 0 {name} wo,create", self._write(offset, length), "close 0"]
