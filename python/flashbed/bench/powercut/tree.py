"""A model of a file tree that knows at every moment what a power cut may leave of it.

Each operation is processed twice: `begin` when it is called, `returned` when it has returned. A cut
in between finds it begun only. The model keeps

- for each path, the files and symbolic links it may name: those since it was last durable, in
  order, None for none;
- for each file, whatever its names, the bytes at each offset and the sizes it may have: those of
  every moment since its content was last durable.

fsync and fdatasync make a file's content durable, and the name it was opened by if it still has it;
for a directory, the names in it. A write or copy through a descriptor with `sync` or `dsync` makes
its bytes and the name durable, msync those of its pages. sync, syncfs and remount make everything
durable. In a folder that was renamed since, only they make names durable. docs/models/power-cuts.md
says why.

Left out: directories as such (they matter as parts of paths only), times, owners, attributes, and
the files of a database (database_judge.py). What cannot be judged is refused with its line: a
fallocate that succeeds, a store behind the end of a file or one that failed half way, and a
symbolic link that leaves the file system.

Invariant: the state of the last moment is always allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flashbed.base.errors import InputError
from flashbed.bench.powercut.symlinks import Symlink, resolved
from flashbed.program.content import Bytes, generated, generated_pieces
from flashbed.program.operation_fields import PAGE_BYTES
from flashbed.program.operations import Operation
from flashbed.targets.base import SurveyedFile

__all__ = ["Entry", "FileTree", "Symlink", "TreeFile"]


def _zeros(length: int) -> Bytes:
    return np.zeros(length, np.uint8)


@dataclass(eq=False, kw_only=True)
class TreeFile:
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


Entry = TreeFile | Symlink | None
"""What a path may name."""


@dataclass
class _Slot:
    file: TreeFile | None
    """None for a directory."""
    path: str
    """Without symbolic links; of a directory, its name now."""
    append: bool = False
    synchronous: bool = False


@dataclass(frozen=True)
class _Mapping:
    slot: _Slot
    offset: int
    shared: bool
    """Whether msync writes back: it may be stored to."""


@dataclass(kw_only=True)
class FileTree:
    """The files, their names, and what may be left of both."""

    names: dict[str, list[Entry]] = field(default_factory=dict)
    """Path -> what it may name, from the durable file (first) to the current one (last)."""
    _slots: dict[int, _Slot] = field(default_factory=dict)
    _mappings: dict[int, _Mapping] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)
    """Folders, by their new names, that were renamed since everything was durable."""
    _wrote: tuple[_Slot, int, int] | None = None
    """Slot, start and end of what the operation in progress writes."""
    named: list[str] = field(default_factory=list)
    """Paths that name something else since the last `begin`."""

    def add_disks(self, found: Iterable[SurveyedFile]) -> None:
        """Adds files that were there before any operation, with zeros and their size."""
        for each in found:
            file = TreeFile()
            file.resize(each.size_bytes)
            file.make_durable()
            self.names[each.path] = [file]

    def add(self, entries: Mapping[str, Entry]) -> None:
        """Adds what was there before any operation."""
        for path, entry in entries.items():
            self.names[path] = [entry]

    def file_of(self, operation: Operation) -> TreeFile | None:
        """The file that an operation writes to, by its slot or mapping."""
        fields = operation.fields
        if operation.name == "store":
            mapping = self._mappings.get(int(fields[0]))
            return mapping.slot.file if mapping else None
        slot = self._slots.get(int(fields[2 if operation.name == "copy" else 0]))
        return slot.file if slot else None

    def begin(self, operation: Operation, result: int, data: bytes = b"") -> None:
        """Applies an operation; `result` is what it will return. A failed one does nothing.

        `data` are the bytes of the `data` lines above it. Raises `InputError` for what the model
        does not cover.
        """
        self._wrote = None
        self.named.clear()
        fields = operation.fields
        if operation.name == "store" and (result < 0) and int(fields[0]) in self._mappings:
            raise _unjudged(operation, "a store that failed half way")
        if result < 0:
            return
        match operation.name:
            case "open":
                self._open(operation, int(fields[0]), str(fields[2]).split(","))
            case "close":
                self._slots.pop(int(fields[0]), None)
            case "write":
                self._write(operation, result, data)
            case "copy":
                self._copy([int(number) for number in fields], result)
            case "mmap":
                self._map(operation)
            case "munmap":
                self._mappings.pop(int(fields[0]), None)
            case "store":
                self._store(operation, data)
            case "truncate":
                self._truncate(int(fields[0]), int(fields[1]))
            case "unlink":
                self._name(self._path(operation, 0), None)
            case "rename":
                self._rename(self._path(operation, 0), self._path(operation, 1))
            case "link":
                self._link(operation)
            case "symlink":
                self._name(self._path(operation, 1), Symlink(str(fields[0])))
            case "fallocate":
                raise _unjudged(operation, "a fallocate that succeeds")
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
            case "write" | "copy":
                self._written()
            case "msync" if operation.fields[3] == "sync":
                self._mapping_synced([int(number) for number in operation.fields[:3]])
            case "sync" | "remount":
                self._all_durable()
            case _:
                pass

    def _now(self, path: str) -> Entry:
        return self.names.get(path, [None])[-1]

    def _name(self, path: str, entry: Entry) -> None:
        self.named.append(path)
        self.names.setdefault(path, [None]).append(entry)

    def _path(self, operation: Operation, field_number: int, *, follow: bool = False) -> str:
        """A path with its symbolic links resolved; one in the last place only with `follow`."""
        path = resolved(str(operation.fields[field_number]), self._now, follow=follow)
        if path is None:
            raise _unjudged(operation, "a symbolic link that leaves the file system")
        return path

    def _open(self, operation: Operation, number: int, flags: Sequence[str]) -> None:
        exclusive = "excl" in flags and "create" in flags
        path = self._path(operation, 1, follow="nofollow" not in flags and not exclusive)
        now = self._now(path)
        file = now if isinstance(now, TreeFile) and "tmpfile" not in flags else None
        if "tmpfile" in flags:
            file = TreeFile()
        elif file is None and "create" in flags:
            file = TreeFile()
            self._name(path, file)
        elif file is not None and "trunc" in flags:
            file.resize(0)
        synchronous = "sync" in flags or "dsync" in flags
        self._slots[number] = _Slot(file, path, "append" in flags, synchronous)

    def _write(self, operation: Operation, result: int, data: bytes) -> None:
        number, offset = int(operation.fields[0]), int(operation.fields[1])
        slot = self._slots.get(number)
        if slot is not None and slot.file is not None and result:
            start = len(slot.file.now) if slot.append else offset
            content = _content(operation, offset, data)[:result]
            self._put(slot, start, content)

    def _put(self, slot: _Slot, start: int, content: Bytes) -> None:
        if slot.file is not None:
            slot.file.write(start, content)
            self._wrote = slot, start, start + len(content)

    def _copy(self, numbers: Sequence[int], result: int) -> None:
        source, target = self._slots.get(numbers[0]), self._slots.get(numbers[2])
        if source is None or source.file is None or target is None:
            return
        content = source.file.now[numbers[1] : numbers[1] + result]
        if len(content):
            self._put(target, numbers[3], content)

    def _map(self, operation: Operation) -> None:
        mapping, number, offset = (int(number) for number in operation.fields[:3])
        slot = self._slots.get(number)
        if slot is not None:
            self._mappings[mapping] = _Mapping(slot, offset, operation.fields[4] == "rw")

    def _store(self, operation: Operation, data: bytes) -> None:
        mapping = self._mappings.get(int(operation.fields[0]))
        if mapping is None or mapping.slot.file is None:
            return
        start = mapping.offset + int(operation.fields[1])
        if start + int(operation.fields[2]) > len(mapping.slot.file.now):
            raise _unjudged(operation, "a store behind the end of its file")
        mapping.slot.file.write(start, _content(operation, start, data))

    def _mapping_synced(self, numbers: Sequence[int]) -> None:
        """Writes back whole pages, as msync does, of a mapping that may be stored to."""
        mapping = self._mappings.get(numbers[0])
        if mapping is None or mapping.slot.file is None or not mapping.shared:
            return
        start = mapping.offset + numbers[1]
        end = -(-(start + numbers[2]) // PAGE_BYTES) * PAGE_BYTES
        end = min(end, len(mapping.slot.file.now))
        if start < end:
            mapping.slot.file.make_range_durable(start, end)
            self._name_is_durable(mapping.slot)

    def _link(self, operation: Operation) -> None:
        old = str(operation.fields[0])
        if old.startswith("SLOT:"):
            slot = self._slots.get(int(old.removeprefix("SLOT:")))
            entry: Entry = slot.file if slot else None
        else:
            entry = self._now(self._path(operation, 0))
        if entry is not None:
            self._name(self._path(operation, 1), entry)

    def _truncate(self, number: int, size: int) -> None:
        slot = self._slots.get(number)
        if slot and slot.file is not None:
            slot.file.resize(size)

    def _rename(self, old: str, new: str) -> None:
        file = self._now(old)
        if old == new or (file is not None and file is self._now(new)):
            return  # rename(2) of two names of one file does nothing
        if file is not None:
            self._name(old, None)
            self._name(new, file)
            return
        self._moved.add(new)
        for slot in {id(slot): slot for slot in self._all_slots()}.values():
            if f"{slot.path}/".startswith(f"{old}/"):
                slot.path = new + slot.path[len(old) :]
        for path in [path for path in self.names if path.startswith(f"{old}/")]:
            below = self._now(path)
            if below is not None:
                self._name(path, None)
                self._name(new + path[len(old) :], below)

    def _all_slots(self) -> list[_Slot]:
        return [*self._slots.values(), *(mapping.slot for mapping in self._mappings.values())]

    def _synced(self, slot: _Slot | None) -> None:
        if slot is None:
            return
        if slot.file is not None:
            slot.file.make_durable()
            self._name_is_durable(slot)
        elif not self._has_moved(f"{slot.path}/"):
            self._names_are_durable("/" if slot.path == "." else f"{slot.path}/")

    def _written(self) -> None:
        if self._wrote is None:
            return
        slot, start, end = self._wrote
        if slot.file is not None and slot.synchronous:
            slot.file.make_range_durable(start, end)
            self._name_is_durable(slot)

    def _has_moved(self, path: str) -> bool:
        return any(path.startswith(f"{folder}/") for folder in self._moved)

    def _name_is_durable(self, slot: _Slot) -> None:
        is_named = slot.file is not None and self._now(slot.path) is slot.file
        if is_named and not self._has_moved(slot.path):
            self.names[slot.path] = [slot.file]

    def _names_are_durable(self, folder: str) -> None:
        """Makes all names in a folder durable; it ends with a slash, "" is the whole tree."""
        kept: dict[str, list[Entry]] = {}
        for path, files in self.names.items():
            if folder and path.rpartition("/")[0] + "/" != folder:
                kept[path] = files
            elif files[-1] is not None:
                kept[path] = [files[-1]]
        self.names = kept

    def _all_durable(self) -> None:
        self._names_are_durable("")
        self._moved.clear()
        files: list[Entry] = [slot.file for slot in self._all_slots()]
        files += [named[0] for named in self.names.values()]
        for file in files:
            if isinstance(file, TreeFile) and not file.untouched:
                file.make_durable()


def _unjudged(operation: Operation, what: str) -> InputError:
    return InputError(f"line {operation.line}: {operation.name}: {what}")


def _content(operation: Operation, offset: int, data: bytes) -> Bytes:
    """The bytes of a `write` or `store`, whose OFFSET in the file decides them."""
    length, seed, fill = operation.fields[2:5]
    if fill == "data":
        return np.frombuffer(data, np.uint8)
    if isinstance(fill, str):
        return generated_pieces(offset, int(length), int(seed), fill)
    return generated(offset, int(length), int(seed), fill)
