"""A random program as what it is made of: operations, so that parts of it can be taken out.

Invariants:
1. `prepare` leaves every slot closed and has no `prepared` line; `body` has exactly one `mark`.
2. What stands after the mark is measured; operation number 0 is the first of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flashbed.formats.operations import Operation, canonical
from flashbed.formats.profiles import Board, Kernel
from flashbed.plan.conditions import NONE, Faults
from flashbed.targets.base import Cut, Program

__all__ = ["MARK", "FoundCut", "FuzzCase", "packed", "repaired"]

MARK = Operation("mark")
_PREPARED = Operation("prepared")
_NO_SLOT = frozenset(
    {"mkdir", "unlink", "rmdir", "rename", "sync", "drop_caches", "remount", "pause", "compute",
     "prepared", "mark"}
)  # fmt: skip


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
        """The operations after the mark."""
        return self.body[self.body.index(MARK) + 1 :]

    @property
    def before_mark(self) -> tuple[Operation, ...]:
        """The operations that must not fail: the preparation, and the body up to the mark."""
        return (*self.prepare, *self.body[: self.body.index(MARK)])

    @property
    def text(self) -> str:
        """The whole program as one flashbed-ops file."""
        return canonical((*self.prepare, _PREPARED, *self.body))

    def program(self, board: Board, kernel: Kernel) -> Program:
        """What a target is given."""
        return Program(
            case_id=self.case_id,
            fs=self.fs,
            board=board,
            kernel=kernel,
            read_ahead_kib=self.read_ahead_kib,
            prepare=canonical((*self.prepare, _PREPARED)),
            body=canonical(self.body),
            check_contents=True,
            faults=self.faults,
            mount_options="bulk_read" if self.bulk_read else "",
        )


def repaired(operations: Iterable[Operation], *, close: bool) -> tuple[Operation, ...]:
    """The operations with slots put right, whatever was taken out of them.

    An `open` of an open slot and any use of a closed one are left out; before a `remount`, and at
    the end if `close`, every slot is closed.
    """
    opened: list[int] = []
    result: list[Operation] = []
    for operation in operations:
        if operation.name == "remount":
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
