"""Programs of version 2 give the same results and flash operations on the simulator as on uml."""

from __future__ import annotations

import base64
import random
from dataclasses import replace

import polars as pl
import pytest

from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import HEADER_2
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

FILE_SYSTEMS = ("jffs2", "ubifs", "yaffs2")
REST = 10_000_000_000
LAYOUT = [
    ["mkdir d", "mkdir d/e"],
    written_file("a", 300_000, 16384, 1),
    written_file("d/b", 40_000, 4096, 2),
]
SECOND = 1_000_000_000
LAST = "mkdir last"
"""A case that writes nothing would leave its caches to the next, which shares its file system."""


def data(content: bytes) -> list[str]:
    parts = [content[at : at + 3000] for at in range(0, len(content), 3000)]
    return [f"data {base64.b64encode(part).decode()}" for part in parts]


def text(length: int, seed: int) -> bytes:
    """Something like a log, which compresses."""
    draw = random.Random(seed)
    lines = (b"%d error at line %d\n" % (draw.randrange(10**6), at) for at in range(length))
    return b"".join(lines)[:length]


BODIES: dict[str, list[str]] = {
    "stat": [
        "stat a", "stat d/b", "stat d/e", "stat none", "stat a/b", "stat none/b", "stat .",
        "open 0 a ro", "stat a", "drop_caches", "stat d/b", "stat a", "close 0",
    ],
    "names": [
        "mkdir %20%FF", "open 0 %20%FF/%C3%A4%0A rw,create", "write 0 0 5000 1 0", "fsync 0",
        "close 0", f"mkdir {'%20' * 250}", "rename %20%FF/%C3%A4%0A %25", "drop_caches", "stat %25",
        f"stat {'%20' * 250}", "unlink %25", "sync",
    ],
    "directories": [
        "open 0 . ro,directory", "open 1 d ro,directory", "open 2 a ro,directory",
        "open 3 a ro,nofollow", "fsync 0", "mkdir f", "fsync 0", "fsync 1", "fdatasync 0",
        "open 4 d/c rw,create", "write 4 0 3000 1 0", "fsync 1", "fsync 4", "read 1 0 10",
        "open 5 d rw", "open 6 . rw", "open 7 . ro,create", "syncfs 0", "fsync 0", "close 0",
    ],
    "pieces": [
        "open 0 p rw,create", "write 0 0 20480 3 96+1000x5", "fsync 0",
        "write 0 3000 9000 4 10+500,96+3000,0+0", "fsync 0", "write 0 0 100 5 50+50", "sync",
        "open 1 q wo,create,append", "write 1 0 5000 6 96+900,0+800",
        "write 1 5000 5000 7 96+900,0+1808", "fsync 1", "drop_caches", "read 0 0 20480",
    ],
    "data": [
        "open 0 p rw,create", *data(text(20_000, 1)), "write 0 0 20000 0 data", "fsync 0",
        *data(text(7000, 2)), "write 0 5000 7000 0 data", "fdatasync 0",
        *data(bytes(4096)), "write 0 8192 4096 0 data", *data(b"x"), "write 0 30000 1 0 data",
        "sync", "truncate 0 6001", "fsync 0",
    ],
    "copy": [
        "open 0 a ro", "open 1 c rw,create", "copy 0 0 1 0 300000", "fsync 1",
        "copy 0 100 1 5 70000", "copy 0 4000 1 400000 140000", "fsync 1", "copy 1 0 1 600000 66000",
        "copy 1 0 1 100 66000", "copy 1 0 0 0 10", "copy 0 299999 1 0 5000", "copy 0 300000 1 0 1",
        "open 2 . ro", "copy 2 0 1 0 1", "open 3 g wo,create,append", "copy 0 0 3 0 1",
        "open 4 d/b ro", "copy 4 39000 1 39000 2000", "sync", "drop_caches", "read 1 0 700000",
    ],
    "copy of data": [
        "open 0 p rw,create", *data(text(12_000, 3)), "write 0 0 12000 0 data", "fsync 0",
        "open 1 q rw,create", "copy 0 1000 1 77 9000", "fsync 1", "open 2 r rw,create,sync",
        "copy 0 0 2 0 12000", "write 2 3 10 1 0",
    ],
    "send": [
        "drop_caches", "open 0 a ro", "send 0 0 300000", "send 0 0 5", "drop_caches", "open 1 a ro",
        "send 1 5000 100000", "send 1 105000 100000", "send 1 299999 10", "send 1 300000 10",
        "open 2 d/b ro", "send 2 1 1000000", "open 3 d ro", "send 3 0 1", "open 4 z wo,create",
        "send 4 0 1", "send 1 9223372036854775000 1",
    ],
    "sync_range": [
        "open 0 c rw,create", "write 0 0 60000 1 0", "sync_range 0 4096 8192 write",
        "sync_range 0 4096 8192 wait_before", "sync_range 0 5000 1 write,wait_after",
        "sync_range 0 0 0 wait_before,write,wait_after", "write 0 0 100 2 0",
        "sync_range 0 50000 0 write", "sync_range 0 4095 2 write", "fsync 0",
        "open 1 d ro", "sync_range 1 0 0 write",
    ],
    "syncfs": [
        "open 0 c rw,create", "write 0 0 30000 1 0", "open 1 d/b ro", "syncfs 1", "syncfs 1",
        "mkdir x", "write 0 100 200 3 0", "syncfs 0", "unlink d/b", "syncfs 1", "close 1",
        "syncfs 0",
    ],
    "fallocate": [
        "open 0 c rw,create", "open 1 a ro", "open 2 . ro", "fallocate 0 0 4096 allocate",
        "fallocate 0 0 4096 keep", "fallocate 0 0 4096 punch", "fallocate 0 0 4096 zero",
        "fallocate 0 0 4096 collapse", "fallocate 0 0 4096 insert", "fallocate 0 0 0 allocate",
        "fallocate 1 0 1 allocate", "fallocate 2 0 1 keep", "fsync 0",
        "fallocate 0 0 9223372036854775807 keep", "fallocate 0 9223372036854775806 1 keep",
    ],
    "flock": [
        "open 0 a ro", "open 1 a rw", "open 2 d/b ro", "flock 0 shared", "flock 1 shared",
        "flock 1 exclusive", "flock 1 shared", "flock 0 unlock", "flock 1 exclusive",
        "flock 1 exclusive", "flock 0 shared", "flock 2 exclusive", "close 1", "flock 0 exclusive",
        "flock 0 unlock", "flock 0 unlock", "open 3 d ro", "flock 3 shared",
    ],
    "tasks": [
        "spawn 1", "open 0 c rw,create", "write 0 0 20000 1 0", f"pause {7 * SECOND}", "task 1",
        "open 1 e rw,create", "write 1 0 30000 2 0", "fsync 1", f"pause {3 * SECOND}",
        "write 1 30000 4096 3 0", "task 0", "write 0 20000 9000 4 0", "task 1",
        f"pause {40 * SECOND}", "task 0", f"pause {SECOND}", "mkdir y", "wait 1", "mkdir z",
        "write 0 0 10 5 0", f"pause {60 * SECOND}",
    ],
    "many tasks": [
        *(line for task in range(1, 9) for line in (
            f"spawn {task}", f"task {task}", f"open {task} t{task} rw,create", "task 0")),
        *(line for turn in range(12) for task in range(1, 9) for line in (
            f"task {task}", f"write {task} {turn * 3000} 3000 {turn} 40",
            *[f"fsync {task}"] * (task % 3 == turn % 3), f"pause {task * SECOND // 2}")),
        "task 0", *(f"wait {task}" for task in range(1, 9)), "sync",
    ],
}  # fmt: skip


def programs(board: str) -> list[Program]:
    return [
        Program(
            case_id=f"{fs}, {name}",
            stack=Stack(
                board=load_board(board), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=128
            ),
            prepare=prepared(LAYOUT, REST),
            body="\n".join([HEADER_2, "mark", *lines, LAST, ""]),
        )
        for fs in FILE_SYSTEMS
        for name, lines in BODIES.items()
    ]


def in_user_mode(program: Program) -> Program:
    """The same on a simulator that is user-mode Linux, whose software takes no time."""
    board, kernel = program.stack.board.without_software(), program.stack.kernel.in_user_mode
    return replace(program, stack=replace(program.stack, board=board, kernel=kernel))


Rows = list[tuple[object, ...]]


def answers(target: str, chosen: list[Program]) -> dict[str, tuple[Rows, Rows]]:
    """Case -> the result of every operation, and where each flash operation was."""
    found: dict[str, tuple[Rows, Rows]] = {}
    for batch in load_target(target).run(chosen, RunOptions(trace_flash=True)):
        assert not batch.failures, batch.failures
        for (name,), part in batch.requests.sort("seq").group_by("case_id", maintain_order=True):
            found[str(name)] = (part.select("op", "file", "result").rows(), [])
        places = pl.col("kind", "block", "page", "offset_bytes", "length_bytes")
        for (name,), part in batch.flash.group_by("case_id", maintain_order=True):
            found[str(name)][1].extend(part.select(places).rows())
    return found


def difference(one: Rows, other: Rows) -> str:
    """Where two lists part."""
    pairs = enumerate(zip(one, other, strict=False))
    first = next((f"{at}: {pair}" for at, pair in pairs if pair[0] != pair[1]), "the end")
    return f"{len(one)} and {len(other)} rows, from {first}"


def test_results_and_flash_operations_are_those_of_the_kernel() -> None:
    chosen = programs("emulated")
    simulated = answers("sim", [in_user_mode(program) for program in chosen])
    real = answers("uml", chosen)
    different = {
        f"{name}, {what}": difference(*both)
        for name in real
        for what, *both in zip(("results", "flash"), simulated[name], real[name], strict=True)
        if both[0] != both[1]
    }
    assert not different, "\n".join(f"{name}: {what}" for name, what in different.items())
    assert sum(len(flash) for _, flash in real.values()) > 1000, "the chip is used"
