"""A program that runs several times, on the files that the run before left.

Between two runs nothing stays open, as when a process ends, and the program sleeps for `REST_NS`:
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

__all__ = ["REST_NS", "TEXT_BYTES_MAX", "in_rounds"]

REST_NS = 40_000_000_000
"""Dirty pages are written when they are 30 s old, looked for every 5 s; then UBIFS's write-buffers
wait 5 s (dirty_expire_centisecs, dirty_writeback_centisecs, WBUF_TIMEOUT_SOFTLIMIT)."""
TEXT_BYTES_MAX = 1 << 27
"""Of all runs together."""
_EXCLUSIVE = re.compile(r"^(open \S+ \S+ \S+?),excl\b", re.MULTILINE)


def in_rounds(body: str, rounds: int) -> str:
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
    rest = f"pause {REST_NS}"
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
