"""A model of a file tree that knows at every moment what a power cut may leave of it.

Each operation is processed twice: `begin` when it is called, `returned` when it has returned. A cut
in between finds it begun only. The model keeps

- for each path, the files it may name: those since it was last durable, in order, None for none;
- for each file, the bytes at each offset and the sizes it may have: those of every moment since its
  content was last durable.

fsync and fdatasync make a file's content durable, and the name it was opened by if it still has it;
for a directory, the names in it. A write through a descriptor with `sync` or `dsync` makes its
bytes and the name durable. sync and remount make everything durable. docs/powercut.md says why.

Left out: directories as such (they matter as parts of paths only), times, owners, attributes, and
the files of a database (database_judge.py). Other features of version 2 are refused by name:
symbolic links, mapped files, copies, holes.

Invariant: the state of the last moment is always allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flashbed.errors import InputError
from flashbed.formats.content import Bytes, generated
from flashbed.formats.operations import Operation

__all__ = ["File", "Tree"]


def _zeros(length: int) -> Bytes:
    return np.zeros(length, np.uint8)


@dataclass(eq=False)
class File:
    """A file, under any of its names.

    `durable` has the bytes when it was last durable, `written` what was written since, in order, as
    (offset, bytes). `may_be_zero` marks where it may have a hole: it was shorter there and has
    grown since.
    """

    now: Bytes = field(default_factory=lambda: _zeros(0))
    durable: Bytes = field(default_factory=lambda: _zeros(0))
    written: list[tuple[int, Bytes]] = field(default_factory=list)
    may_be_zero: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    smallest: int = 0
    largest: int = 0

    @property
    def untouched(self) -> bool:
        """Whether the file is unchanged since it was durable."""
        return not self.written and self.smallest == self.largest

    def resize(self, size: int) -> None:
        """Truncates the file, or extends it by a hole."""
        self.smallest = min(self.smallest, size)
        self.largest = max(self.largest, size)
        before = len(self.now)
        if size <= before:
            self.now = self.now[:size].copy()
            return
        self.now = np.concatenate([self.now, _zeros(size - before)])
        mask = np.zeros(max(size, len(self.may_be_zero)), np.bool_)
        mask[: len(self.may_be_zero)] = self.may_be_zero
        mask[before:size] = True
        self.may_be_zero = mask

    def write(self, offset: int, data: Bytes) -> None:
        """Writes bytes; a gap before them becomes a hole."""
        end = offset + len(data)
        if end > len(self.now):
            self.resize(end)
        else:
            self.now = self.now.copy()
        self.now[offset:end] = data
        self.written.append((offset, data))

    def make_durable(self) -> None:
        """Makes the current content durable."""
        self.durable = self.now
        self.written = []
        self.may_be_zero = np.zeros(len(self.now), np.bool_)
        self.smallest = self.largest = len(self.now)

    def make_range_durable(self, start: int, end: int) -> None:
        """Makes some of its bytes durable."""
        if end > len(self.durable):
            self.durable = np.concatenate([self.durable, _zeros(end - len(self.durable))])
        else:
            self.durable = self.durable.copy()
        self.durable[start:end] = self.now[start:end]
        kept = []
        for at, data in self.written:
            before, after = max(start - at, 0), max(end - at, 0)
            kept += [(at, data[:before]), (at + after, data[after:])]
        self.written = [(at, data) for at, data in kept if len(data)]
        self.may_be_zero[start:end] = False
        self.smallest = max(self.smallest, end)

    def wrong_at(self, found: Bytes, unknown: npt.NDArray[np.bool_]) -> int | None:
        """The first offset at which found contents are impossible; None if there is none.

        `unknown` marks bytes that could not be read or identified. Sizes are not checked.
        """
        size = len(found)
        if not unknown.any() and size == len(self.now) and np.array_equal(found, self.now):
            return None
        right = np.zeros(size, np.bool_)
        known = min(size, len(self.durable))
        right[:known] = found[:known] == self.durable[:known]
        for at, data in self.written:
            end = min(at + len(data), size)
            if at < end:
                right[at:end] |= found[at:end] == data[: end - at]
        holes = min(size, len(self.may_be_zero))
        right[:holes] |= self.may_be_zero[:holes] & (found[:holes] == 0)
        right &= ~unknown
        return None if right.all() else int(np.argmin(right))


@dataclass(frozen=True)
class _Slot:
    file: File | None
    """None for a directory."""
    path: str
    append: bool
    synchronous: bool


@dataclass
class Tree:
    """The files, their names, and what may be left of both."""

    names: dict[str, list[File | None]] = field(default_factory=dict)
    """Path -> what it may name, from the durable file (first) to the current one (last)."""
    _slots: dict[int, _Slot] = field(default_factory=dict)

    def begin(self, operation: Operation, result: int) -> None:
        """Applies an operation; `result` is what it will return. A failed one does nothing.

        Raises `InputError` for what the model does not cover.
        """
        if result < 0:
            return
        fields = operation.fields
        match operation.name:
            case "open":
                self._open(int(fields[0]), str(fields[1]), str(fields[2]).split(","))
            case "close":
                self._slots.pop(int(fields[0]), None)
            case "write":
                self._write(operation, [int(number) for number in fields], result)
            case "truncate":
                self._truncate(int(fields[0]), int(fields[1]))
            case "unlink":
                self._name(str(fields[0]), None)
            case "rename":
                self._rename(str(fields[0]), str(fields[1]))
            case "link":
                self._link(str(fields[0]), str(fields[1]))
            case "symlink" | "fallocate" | "copy" | "mmap" | "store":
                raise InputError(f"line {operation.line}: {operation.name} cannot be judged yet")
            case _:
                pass

    def returned(self, operation: Operation, result: int) -> None:
        """Applies what an operation has made durable by returning."""
        if result < 0:
            return
        match operation.name:
            case "fsync" | "fdatasync":
                self._synced(self._slots.get(int(operation.fields[0])))
            case "syncfs":
                self._all_durable()
            case "write":
                start = int(operation.fields[1])
                self._written(self._slots.get(int(operation.fields[0])), start, start + result)
            case "sync" | "remount":
                self._all_durable()
            case _:
                pass

    def _now(self, path: str) -> File | None:
        return self.names.get(path, [None])[-1]

    def _name(self, path: str, file: File | None) -> None:
        self.names.setdefault(path, [None]).append(file)

    def _open(self, number: int, path: str, flags: Sequence[str]) -> None:
        file = None if "tmpfile" in flags else self._now(path)
        if "tmpfile" in flags:
            file = File()
        elif file is None and "create" in flags:
            file = File()
            self._name(path, file)
        elif file is not None and "trunc" in flags:
            file.resize(0)
        synchronous = "sync" in flags or "dsync" in flags
        self._slots[number] = _Slot(file, path, "append" in flags, synchronous)

    def _write(self, operation: Operation, numbers: Sequence[int], result: int) -> None:
        slot = self._slots.get(numbers[0])
        if slot is None or slot.file is None or result == 0:
            return
        offset = numbers[1]
        if slot.append and offset != len(slot.file.now):
            raise InputError(
                f"line {operation.line}: appends bytes of offset {offset} at {len(slot.file.now)}:"
                " their bytes could not be distinguished"
            )
        slot.file.write(offset, generated(offset, result, numbers[3], numbers[4]))

    def _link(self, old: str, new: str) -> None:
        if old.startswith("SLOT:"):
            slot = self._slots.get(int(old.removeprefix("SLOT:")))
            file = slot.file if slot else None
        else:
            file = self._now(old)
        if file is not None:
            self._name(new, file)

    def _truncate(self, number: int, size: int) -> None:
        slot = self._slots.get(number)
        if slot and slot.file is not None:
            slot.file.resize(size)

    def _rename(self, old: str, new: str) -> None:
        if old == new:
            return
        file = self._now(old)
        if file is not None:
            self._name(old, None)
            self._name(new, file)
            return
        for path in [path for path in self.names if path.startswith(f"{old}/")]:
            below = self._now(path)
            if below is not None:
                self._name(path, None)
                self._name(new + path[len(old) :], below)

    def _synced(self, slot: _Slot | None) -> None:
        if slot is None:
            return
        if slot.file is None:
            self._names_are_durable("/" if slot.path == "." else f"{slot.path}/")
        else:
            slot.file.make_durable()
            self._name_is_durable(slot)

    def _written(self, slot: _Slot | None, start: int, end: int) -> None:
        if slot is not None and slot.file is not None and slot.synchronous:
            slot.file.make_range_durable(start, end)
            self._name_is_durable(slot)

    def _name_is_durable(self, slot: _Slot) -> None:
        if slot.file is not None and self._now(slot.path) is slot.file:
            self.names[slot.path] = [slot.file]

    def _names_are_durable(self, folder: str) -> None:
        """Makes all names in a folder durable; it ends with a slash, "" is the whole tree."""
        kept: dict[str, list[File | None]] = {}
        for path, files in self.names.items():
            if folder and path.rpartition("/")[0] + "/" != folder:
                kept[path] = files
            elif files[-1] is not None:
                kept[path] = [files[-1]]
        self.names = kept

    def _all_durable(self) -> None:
        self._names_are_durable("")
        files = [slot.file for slot in self._slots.values()]
        files += [named[0] for named in self.names.values()]
        for file in files:
            if file is not None and not file.untouched:
                file.make_durable()
