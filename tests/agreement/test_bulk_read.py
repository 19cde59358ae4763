"""UBIFS mounted with bulk_read: the simulator reads what the kernel reads, in its order."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest

from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import HEADER
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

PAGES = 192
PAGE = 4096
REST = 10_000_000_000
WHOLE = written_file("a", PAGES * PAGE, 16384, 1)

FILES = {
    "in order": WHOLE,
    "overwritten": [
        *WHOLE, "open 0 a rw",
        *(f"write 0 {page * PAGE} {pages * PAGE} 2 0"
          for page, pages in ((9, 1), (40, 9), (90, 31))),
        "close 0",
    ],
    "truncated": [*WHOLE, "open 0 a rw", "truncate 0 409001", "truncate 0 600000", "close 0"],
    "holes": [
        "open 0 a rw,create",
        *(f"write 0 {page * PAGE} {pages * PAGE} 1 0"
          for page, pages in ((0, 5), (6, 1), (8, 12), (60, 40), (131, 2), (170, 22))),
        "close 0",
    ],
    "compressible": ["open 0 a rw,create", f"write 0 0 {PAGES * PAGE} 1 80", "close 0"],
    "fragmented": [
        "open 0 a rw,create",
        *(line for page in random.Random(1).sample(range(PAGES), PAGES)
          for line in (f"write 0 {page * PAGE} {PAGE} 1 0", *["fsync 0"] * (page % 3 == 0))),
        "close 0",
    ],
    "two in turn": [
        "open 0 a rw,create", "open 1 b rw,create",
        *(line for page in range(0, PAGES, 3)
          for line in (f"write 0 {page * PAGE} {3 * PAGE} 1 0", f"write 1 {page * PAGE} 4096 2 0",
                       "fsync 0", "fsync 1")),
        "close 0", "close 1",
    ],
}  # fmt: skip

IN_ORDER = range(PAGES)
ORDERS = {
    "in order": IN_ORDER,
    "random": random.Random(2).sample(IN_ORDER, PAGES),
    "runs": [start + page for start in (50, 0, 120, 30, 61) for page in range(20)],
}


def body(order: str) -> str:
    reads = [f"read 0 {page * PAGE} {PAGE}" for page in ORDERS[order]]
    drops = ["drop_caches"] * 3
    return "\n".join([HEADER, *drops, "open 0 a ro", "mark", *reads, ""])


def programs(window: int, board: str) -> list[Program]:
    return [
        Program(
            case_id=f"{file}, {order}",
            stack=Stack(
                board=load_board(board),
                kernel=load_kernel("6.1"),
                fs="ubifs",
                read_ahead_kib=window,
                mount_options="bulk_read",
            ),
            prepare=prepared([lines], REST),
            body=body(order),
        )
        for file, lines in FILES.items()
        for order in ORDERS
    ]


def operations(target: str, chosen: list[Program]) -> dict[str, list[object]]:
    """Case -> where each flash operation was, after the result of every read."""
    rows: dict[str, list[object]] = {}
    for batch in load_target(target).run(chosen, RunOptions(trace_flash=True)):
        assert not batch.failures
        for (name,), part in batch.requests.group_by("case_id"):
            rows[str(name)] = [part["result"].to_list()]
        places = pl.col("kind", "block", "page", "offset_bytes", "length_bytes")
        for (name,), part in batch.flash.group_by("case_id", maintain_order=True):
            rows[str(name)] += part.select(places).rows()
    return rows


@pytest.mark.parametrize("window", [0, 32, 128])
@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_every_read_is_the_same(window: int, board: str) -> None:
    chosen = programs(window, board)
    simulated, real = (operations(target, chosen) for target in ("sim", "uml"))
    assert simulated == real
    assert all(len(rows) > 20 for rows in real.values()), "the chip is read"


def test_another_file_system_refuses_to_be_mounted_with_it() -> None:
    (one, *_) = programs(0, "emulated")
    other = replace(one, stack=replace(one.stack, fs="jffs2"))
    (batch,) = load_target("uml").run([other])
    assert "mounting jffs2" in batch.failures[0].message
