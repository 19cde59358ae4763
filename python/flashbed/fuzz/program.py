"""A random program as its list of operations, so that parts can be removed.

Invariants:
1. `prepare` leaves every slot closed and has no `prepared` line; `body` has exactly one `mark`.
2. Operations after the mark are measured and numbered from 0.
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
    """A cut that did not recover, in a program with this number of changes."""

    cut: Cut
    changes: int

    def cuts(self, changes: int) -> tuple[Cut, ...]:
        """The same cut in a shorter program: at the same distance from its begin, or its end."""
        places = {self.cut.change, self.cut.change + changes - self.changes}
        return tuple(Cut(p, self.cut.seed) for p in sorted(places) if 1 <= p <= changes)


@dataclass(frozen=True)
class FuzzCase:
    """One program of the fuzzer."""

    case_id: str
    fs: str
    read_ahead_kib: int
    prepare: tuple[Operation, ...]
    body: tuple[Operation, ...]
    faults: Faults = NONE
    bulk_read: bool = False
    cut: FoundCut | None = None
    """The cut that shortening must keep."""

    @property
    def measured(self) -> tuple[Operation, ...]:
        """The measured operations that are system calls."""
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
        """The program as targets take it."""
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
    """Whether only version 2 has this form of an operation that both versions have."""
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
    """The running tasks; used to drop operations that no longer fit."""

    def __init__(self) -> None:
        self.current: object = 0
        self.running: set[object] = {0}
        self.started: set[object] = {0}

    def allows(self, operation: Operation) -> bool:
        """Takes an operation; returns whether it may stand here."""
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
    """The operation with pieces that fit its offset and length, after those were changed."""
    if operation.name != "write" or not isinstance(operation.fields[-1], str):
        return operation
    _slot, offset, length, _seed, fill = operation.fields
    try:
        check_pieces(str(fill), int(offset), int(length))
    except Refused:
        return Operation("write", (*operation.fields[:-1], 0))
    return operation


def repaired(operations: Iterable[Operation], *, close: bool) -> tuple[Operation, ...]:
    """The operations with slots and tasks made consistent after some were removed.

    Dropped are an `open` of an open slot, uses of a closed slot, and operations of a task that does
    not run. Every slot is closed before a `remount`, and at the end if `close`.
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
    """A preparation whose writes leave no gaps, as the generator makes it."""
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
