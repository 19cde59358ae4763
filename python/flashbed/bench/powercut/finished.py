"""When a program has finished a content of a file, as far as its calls tell.

A program writes a content in one or more calls, and then closes the file, syncs it, renames it or
waits; a write through a descriptor with `append` is a record by itself. The content is *whole* with
the last of these writes. It is *finished* when the task begins something other than saving it:
closing, syncing, renaming, and opening a folder to sync it belong to saving. A power cut during an
fsync that would have kept a file is no fault of the program.

Files are told apart by the name they were opened by. tree.py knows which file a name is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flashbed.program.operations import Operation

__all__ = ["DoneOperation", "Finished", "finished"]

_SAVING = frozenset({
    "chmod", "chown", "close", "fdatasync", "fsync", "link", "msync", "munmap", "rename", "sync",
    "sync_range", "syncfs", "unlink", "utimens",
})  # fmt: skip
_WRITES = {"write": 0, "truncate": 0, "copy": 2, "store": 0}
"""Operation -> the field with its slot, or its mapping."""
_NAMES = frozenset({"link", "open", "rename", "symlink", "unlink"})
_ENDS = frozenset({"close", "fdatasync", "fsync", "sync_range", "syncfs"})
_ENDS_ALL = frozenset({"pause", "sync", "remount"})
_WAITS_NS = 1_000_000
"""A shorter pause is the program's own work, as far as a recording of another machine tells."""


@dataclass(frozen=True, kw_only=True)
class DoneOperation:
    """An operation of the counted run: its result, and the chip's changes when it returned.

    `changes` of the preparation is 0: counting begins after it.
    """

    operation: Operation
    result: int
    changes: int
    data: bytes = b""
    """The bytes of the `data` lines above it."""
    task: int = 0
    start_ns: int | None = None
    """When it began, since the mark; of the preparation 0."""


@dataclass
class Finished:
    """Numbers of operations, from 0; the number of operations is after the last."""

    contents: dict[int, int] = field(default_factory=dict)
    """A write that makes a content whole -> the operation at whose begin it is finished."""
    names: dict[int, int] = field(default_factory=dict)
    """An operation that gives a name -> the same."""
    kept: set[str] = field(default_factory=set)
    """Names that exist in the end; the others are files for a moment."""


@dataclass
class _FinishedTask:
    pending: list[int] = field(default_factory=list)
    """Whole contents that are still being saved."""
    named: list[int] = field(default_factory=list)
    """Names that are."""
    written: dict[str, int] = field(default_factory=dict)
    """Name of a file -> its last write, while its content is not whole."""


@dataclass
class _Calls:
    opened: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Slot -> name, and whether each write is a record."""
    mapped: dict[int, str] = field(default_factory=dict)
    tasks: dict[int, _FinishedTask] = field(default_factory=dict)

    def name(self, operation: Operation) -> str | None:
        """The file that an operation on a slot or mapping is of."""
        number = int(operation.fields[_WRITES.get(operation.name, 0)])
        if operation.name in ("store", "msync"):
            return self.mapped.get(number)
        return self.opened.get(number, (None, False))[0]

    def keep(self, operation: Operation) -> None:
        """Notes what a slot or mapping stands for from now on."""
        fields = operation.fields
        if operation.name == "open":
            self.opened[int(fields[0])] = str(fields[1]), "append" in str(fields[2]).split(",")
        elif operation.name == "mmap":
            self.mapped[int(fields[0])] = self.opened.get(int(fields[1]), ("", False))[0]


def finished(steps: Sequence[DoneOperation]) -> Finished:
    """When each content and each name is finished."""
    found, calls = Finished(), _Calls()
    for number, step in enumerate(steps):
        task = calls.tasks.setdefault(step.task, _FinishedTask())
        if not _saves(step.operation):
            _moves_on(task, number, found)
        if step.result >= 0:
            calls.keep(step.operation)
            _apply(step.operation, number, task=task, calls=calls, found=found)
    for task in calls.tasks.values():
        task.pending += task.written.values()
        _moves_on(task, len(steps), found)
    return found


def _saves(operation: Operation) -> bool:
    if operation.name == "open":
        return "directory" in str(operation.fields[2]).split(",")
    return operation.name in _SAVING


def _apply(
    operation: Operation, number: int, *, task: _FinishedTask, calls: _Calls, found: Finished
) -> None:
    """Notes what an operation writes, and what it makes whole."""
    fields = operation.fields
    if operation.name in _WRITES:
        name = calls.name(operation)
        if name is None:
            return
        slot = int(fields[_WRITES[operation.name]])
        task.written[name] = number
        if operation.name != "store" and calls.opened[slot][1]:
            task.pending.append(task.written.pop(name))
    elif operation.name == "open" and "trunc" in str(fields[2]).split(","):
        task.written[str(fields[1])] = number
    elif operation.name in _ENDS or operation.name == "msync":
        _whole(task, calls.name(operation))
    elif operation.name in _ENDS_ALL:
        # A task that waits has finished what it wrote; the others may be in the middle.
        if operation.name != "pause" or int(fields[0]) >= _WAITS_NS:
            for name in list(task.written):
                _whole(task, name)
        if not _saves(operation):
            _moves_on(task, number, found)
    elif operation.name in ("rename", "link", "symlink"):
        _whole(task, str(fields[0]))
    if operation.name in _NAMES:
        task.named.append(number)
        _keep(operation, found.kept)


def _moves_on(task: _FinishedTask, number: int, found: Finished) -> None:
    """The task begins something other than saving."""
    found.contents |= dict.fromkeys(task.pending, number)
    found.names |= dict.fromkeys(task.named, number)
    task.pending.clear()
    task.named.clear()


def _keep(operation: Operation, kept: set[str]) -> None:
    """Notes which names exist after an operation."""
    fields = [str(part) for part in operation.fields]
    if operation.name == "open":
        if "create" in fields[2].split(","):
            kept.add(fields[1])
    elif operation.name == "unlink":
        kept.discard(fields[0])
    elif operation.name == "rename" and fields[0] not in kept:
        for name in [name for name in kept if name.startswith(f"{fields[0]}/")]:
            kept.remove(name)
            kept.add(fields[1] + name[len(fields[0]) :])
    else:
        if operation.name == "rename":
            kept.remove(fields[0])
        kept.add(fields[1])


def _whole(task: _FinishedTask, name: str | None) -> None:
    if name is not None and name in task.written:
        task.pending.append(task.written.pop(name))
