"""A program that runs several times, on the files that the run before left.

Between two runs nothing stays open, as when a process ends, and the program sleeps for `rest_ns`:
so long that the kernel's flusher writes what was left in the page cache. The same calls come again,
at the same offsets. Left out of later runs is the flag `excl`, because its file is there.

A longer log, and another answer of a program to what it finds, are left out: calls are repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flashbed.base.errors import InputError
from flashbed.program.operation_order import Order
from flashbed.program.operations import HEADER_2, each, text_of
from flashbed.stack.changes import AS_BOOTED, VmChange

__all__ = ["TEXT_BYTES_MAX", "in_rounds", "rest_ns"]

_EXPIRE_CENTISECS, _WRITEBACK_CENTISECS = 3_000, 500
"""As the kernel boots (mm/page-writeback.c)."""
_WRITE_BUFFERS_CENTISECS = 500
"""For how long UBIFS's write-buffers wait at most (WBUF_TIMEOUT_SOFTLIMIT)."""
_CENTISEC_NS = 10_000_000
TEXT_BYTES_MAX = 1 << 27
"""Of all runs together."""
_EXCLUSIVE = re.compile(r"^(open \S+ \S+ \S+?),excl\b", re.MULTILINE)


def rest_ns(vm: VmChange) -> int:
    """The rest between two runs: 40 s as the kernel boots.

    Dirty pages are written when they are `dirty_expire_centisecs` old, and looked for every
    `dirty_writeback_centisecs`. With 0 the kernel does not look for them, however long the rest is.
    """
    expire, look = vm.dirty_expire_centisecs, vm.dirty_writeback_centisecs
    waits = (
        _EXPIRE_CENTISECS if expire is None else expire,
        _WRITEBACK_CENTISECS if look is None else look,
        _WRITE_BUFFERS_CENTISECS,
    )
    return sum(waits) * _CENTISEC_NS


def in_rounds(body: str, rounds: int, vm: VmChange = AS_BOOTED) -> str:
    """The body of a case that runs so often. Raises `InputError` for one that is too long."""
    if rounds == 1:
        return body
    if len(body) * rounds > TEXT_BYTES_MAX:
        raise InputError(
            f"rounds={rounds}: {len(body) * rounds:,} bytes of operations; {TEXT_BYTES_MAX:,} are"
            " the most"
        )
    _, _, lines = body.partition("\n")
    first = [*lines.splitlines(), *_ends(body)]
    again = _EXCLUSIVE.sub(r"\1", "\n".join(line for line in first if line != "mark"))
    rest = f"pause {rest_ns(vm)}"
    return text_of([*first, *(f"{rest}\n{again}" for _ in range(rounds - 1))], HEADER_2)


def _ends(body: str) -> Iterator[str]:
    """Operations that end what the body leaves: mappings, open files, tasks."""
    order = Order()
    for operation in each(body):
        order.check(operation)
    yield from (f"munmap {mapping}" for mapping in order.mappings)
    yield from (f"close {slot}" for slot in order.open_slots)
    if order.database is not None:
        yield f"sql_close {order.database}"
    if order.task:
        yield "task 0"
    yield from (f"wait {task}" for task in sorted(order.running - {0}))
