"""A random program as its list of operations, so that parts can be removed.

Invariants:
1. `prepare` leaves every slot closed and has no `prepared` line; `body` has exactly one `mark`.
2. Operations after the mark are measured and numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flashbed.bench.fuzz.fault_draw import worn_erases
from flashbed.program.operation_fields import FIELDS, Refused, check_pieces
from flashbed.program.operation_order import Order
from flashbed.program.operations import HEADER, HEADER_2, Operation, canonical
from flashbed.stack.conditions import NONE, Faults, State
from flashbed.stack.profiles import Board, Kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Cut, Program

__all__ = ["MARK", "FoundCut", "FuzzCase", "header_for", "packed", "repaired"]

MARK = Operation("mark")
_PREPARED = Operation("prepared")


@dataclass(frozen=True)
class FoundCut:
    """A cut that did not recover, in a program with this number of changes."""

    cut: Cut
    changes: int

    def cuts(self, changes: int) -> tuple[Cut, ...]:
        """The same cut in a shorter program: at the same distance from its begin, or its end."""
        places = {self.cut.change, self.cut.change + changes - self.changes}
        return tuple(Cut(p, self.cut.seed) for p in sorted(places) if 1 <= p <= changes)


@dataclass(frozen=True, kw_only=True)
class FuzzCase:
    """One program of the fuzzer."""

    case_id: str
    fs: str
    read_ahead_kib: int
    prepare: tuple[Operation, ...]
    body: tuple[Operation, ...]
    faults: Faults = NONE
    wear: int = 0
    """How worn the chip is (`worn_erases`)."""
    bulk_read: bool = False
    cut: FoundCut | None = None
    """The cut that shortening must keep."""
    recorded: bool = False
    """It comes from a recording: the oracle does not know all of its operations, and its
    preparation is not the generator's."""

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
        whole = (*self.prepare, _PREPARED, *self.body)
        return canonical(whole, header_for(whole))

    def program(self, board: Board, kernel: Kernel) -> Program:
        """The program as targets take it."""
        return Program(
            case_id=self.case_id,
            stack=Stack(
                fs=self.fs,
                board=board,
                kernel=kernel,
                read_ahead_kib=self.read_ahead_kib,
                erases=State(worn=worn_erases(board, self.wear)).erases(board.partition.blocks),
                faults=self.faults,
                mount_options="bulk_read" if self.bulk_read else "",
            ),
            prepare=canonical((*self.prepare, _PREPARED), header_for(self.prepare)),
            body=canonical(self.body, header_for(self.body)),
            check_contents=True,
        )


def header_for(operations: Iterable[Operation]) -> str:
    """The first version of the format that has all of these."""
    return HEADER_2 if any(map(_is_new, operations)) else HEADER


def _is_new(operation: Operation) -> bool:
    """Whether only version 2 has this operation, or this form of it."""
    if operation.name not in FIELDS:
        return True
    done: list[str | int] = []
    try:
        for read, given in zip(FIELDS[operation.name], operation.fields, strict=True):
            done.append(read(str(given), done))
    except Refused:
        return True
    return False


def _fitting(operation: Operation) -> Operation:
    """The operation with pieces that fit its offset and length, after those were changed."""
    if operation.name != "write" or operation.fields[-1] == "data":
        return operation
    if not isinstance(operation.fields[-1], str):
        return operation
    _slot, offset, length, _seed, fill = operation.fields
    try:
        check_pieces(str(fill), int(offset), int(length))
    except Refused:
        return Operation("write", (*operation.fields[:-1], 0))
    return operation


def repaired(operations: Iterable[Operation], *, close: bool) -> tuple[Operation, ...]:
    """The operations without those that no longer fit after some were removed.

    Dropped are an `open` of an open slot, uses of a closed slot or mapping, and operations of a
    task that does not run. What is open is closed before a `remount`, and at the end if `close`.
    """
    result: list[Operation] = []
    data: list[Operation] = []
    order = Order()

    def take(operation: Operation) -> None:
        try:
            order.check(operation)
        except Refused:
            data.clear()
            return
        data.append(operation)
        if operation.name != "data":  # which goes with the operation below it
            result.extend(data)
            data.clear()

    for operation in map(_fitting, operations):
        if operation.name == "remount":
            for closing in _closes(order):
                take(closing)
        take(operation)
    if close:
        for closing in _closes(order):
            take(closing)
    return tuple(result)


def _closes(order: Order) -> Iterator[Operation]:
    yield from [Operation("munmap", (mapping,)) for mapping in order.mappings]
    yield from [Operation("close", (slot,)) for slot in order.open_slots]


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
