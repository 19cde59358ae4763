"""A random program as what it is made of: operations, so that parts of it can be taken out.

Invariants:
1. `prepare` leaves every slot closed and has no `prepared` line; `body` has exactly one `mark`.
2. What stands after the mark is measured; operation number 0 is the first of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flashbed.formats.operation_fields import FIELDS, Refused, check_pieces
from flashbed.formats.operations import HEADER, HEADER_2, Operation, canonical
from flashbed.formats.profiles import Board, Kernel
from flashbed.plan.conditions import NONE, Faults
from flashbed.targets.base import Cut, Program

__all__ = ["MARK", "FoundCut", "FuzzCase", "header_for", "packed", "repaired"]

MARK = Operation("mark")
_PREPARED = Operation("prepared")
_NO_SLOT = frozenset(
    {"mkdir", "unlink", "rmdir", "rename", "sync", "drop_caches", "remount", "pause", "compute",
     "prepared", "mark", "stat"}
)  # fmt: skip


_OF_TASKS = frozenset({"task", "spawn", "wait"})


@dataclass(frozen=True)
class FoundCut:
    """A cut that did not recover, in a program that made so many changes."""

    cut: Cut
    changes: int

    def cuts(self, changes: int) -> tuple[Cut, ...]:
        """The same in a program of which something was taken out behind it, or before it."""
        places = {self.cut.change, self.cut.change + changes - self.changes}
        return tuple(Cut(p, self.cut.seed) for p in sorted(places) if 1 <= p <= changes)


@dataclass(frozen=True)
class FuzzCase:
    """One program of the fuzz."""

    case_id: str
    fs: str
    read_ahead_kib: int
    prepare: tuple[Operation, ...]
    body: tuple[Operation, ...]
    faults: Faults = NONE
    bulk_read: bool = False
    cut: FoundCut | None = None
    """Of a program that is being made shorter."""

    @property
    def measured(self) -> tuple[Operation, ...]:
        """The operations after the mark that are calls."""
        after = self.body[self.body.index(MARK) + 1 :]
        return tuple(operation for operation in after if operation.name != "task")

    @property
    def before_mark(self) -> tuple[Operation, ...]:
        """The operations that must not fail: the preparation, and the body up to the mark."""
        return (*self.prepare, *self.body[: self.body.index(MARK)])

    @property
    def text(self) -> str:
        """The whole program as one flashbed-ops file."""
        return canonical((*self.prepare, _PREPARED, *self.body), header_for(self.body))

    def program(self, board: Board, kernel: Kernel) -> Program:
        """What a target is given."""
        return Program(
            case_id=self.case_id,
            fs=self.fs,
            board=board,
            kernel=kernel,
            read_ahead_kib=self.read_ahead_kib,
            prepare=canonical((*self.prepare, _PREPARED)),
            body=canonical(self.body, header_for(self.body)),
            check_contents=True,
            faults=self.faults,
            mount_options="bulk_read" if self.bulk_read else "",
        )


def header_for(operations: Iterable[Operation]) -> str:
    """The first version of the format that has all of these."""
    new = any(operation.name not in FIELDS or _is_new(operation) for operation in operations)
    return HEADER_2 if new else HEADER


def _is_new(operation: Operation) -> bool:
    """Whether only version 2 has this form of an operation that both have."""
    fields = operation.fields
    match operation.name:
        case "write":
            return isinstance(fields[-1], str)
        case "open":
            return fields[1] == "." or not {"directory", "nofollow"}.isdisjoint(
                str(fields[2]).split(",")
            )
        case _:
            return False


class _Tasks:
    """Which tasks run, so that what is no longer right is left out."""

    def __init__(self) -> None:
        self.current: object = 0
        self.running: set[object] = {0}
        self.started: set[object] = {0}

    def allows(self, operation: Operation) -> bool:
        """Whether the operation may stand here; it has taken place then."""
        task = operation.fields[0]
        match operation.name:
            case "spawn":
                fits = task not in self.started
                self.started.add(task)
                self.running.add(task)
            case "wait":
                fits = task in self.running and task != self.current
                self.running -= {task} if fits else set()
            case _:
                fits = task in self.running
                self.current = task if fits else self.current
        return fits


def _fitting(operation: Operation) -> Operation:
    """The operation with the pieces it writes put right, after its place or length was changed."""
    if operation.name != "write" or not isinstance(operation.fields[-1], str):
        return operation
    _slot, offset, length, _seed, fill = operation.fields
    try:
        check_pieces(str(fill), int(offset), int(length))
    except Refused:
        return Operation("write", (*operation.fields[:-1], 0))
    return operation


def repaired(operations: Iterable[Operation], *, close: bool) -> tuple[Operation, ...]:
    """The operations with slots and tasks put right, whatever was taken out of them.

    An `open` of an open slot and any use of a closed one are left out, and so is a task that does
    not run; before a `remount`, and at
    the end if `close`, every slot is closed.
    """
    opened: list[int] = []
    result: list[Operation] = []
    tasks = _Tasks()
    for operation in map(_fitting, operations):
        if operation.name in _OF_TASKS:
            if not tasks.allows(operation):
                continue
        elif operation.name == "copy":
            if not {operation.fields[0], operation.fields[2]} <= set(opened):
                continue
        elif operation.name == "remount":
            result += _closes(opened)
        elif operation.name not in _NO_SLOT:
            slot = int(operation.fields[0])
            if (slot in opened) == (operation.name == "open"):
                continue
            if operation.name == "open":
                opened.append(slot)
            elif operation.name == "close":
                opened.remove(slot)
        result.append(operation)
    if close:
        result += _closes(opened)
    return tuple(result)


def packed(prepare: Iterable[Operation]) -> tuple[Operation, ...]:
    """A preparation whose writes follow each other without gaps, as the generator makes it."""
    bytes_of: dict[str, int] = {}
    path_of: dict[int, str] = {}
    result: list[Operation] = []
    for operation in prepare:
        if operation.name == "open":
            path_of[int(operation.fields[0])] = str(operation.fields[1])
        elif operation.name == "write":
            slot, _offset, length, *content = operation.fields
            path = path_of[int(slot)]
            at = bytes_of.get(path, 0)
            bytes_of[path] = at + int(length)
            operation = Operation("write", (slot, at, length, *content))
        result.append(operation)
    return tuple(result)


def _closes(opened: list[int]) -> Sequence[Operation]:
    closes = [Operation("close", (slot,)) for slot in opened]
    opened.clear()
    return closes
