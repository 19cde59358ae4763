"""Each operation begins at the same time on the simulator as on user-mode Linux, to the nanosecond.

The clock that both have in common advances by the chip's time, by sleeps, and by the agent's two
readings around each call. A tick or a timer in the wrong operation lets another thread run.
"""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.program.operations import HEADER_2
from flashbed.stack.profiles import CLOCK_READ_NS, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

EVERY_CALL = [
    "mkdir d",
    "open 0 d/a rw,create",
    "write 0 0 10000 1 50",
    "fdatasync 0",
    "fsync 0",
    "read 0 0 4096",
    "fadvise 0 0 0 willneed",
    "truncate 0 5000",
    "compute 1000",
    "stat d/a",
    "chmod d/a 420",
    "chown d/a 0 0",
    "utimens d/a",
    "link d/a d/b",
    "symlink a d/c",
    "readlink d/c",
    "setxattr d/a user.x 10 3 0",
    "getxattr d/a user.x",
    "listxattr d/a",
    "removexattr d/a user.x",
    "open 1 d ro,directory",
    "readdir 1",
    "fsync 1",
    "close 1",
    "mmap 0 0 0 8192 rw",
    "touch 0 0 4096",
    "touch 0 0 4096",
    "store 0 0 4096 4 50",
    "msync 0 0 4096 sync",
    "munmap 0",
    "flock 0 exclusive",
    "fallocate 0 0 100 allocate",
    "sync_range 0 0 4096 write",
    "syncfs 0",
    "open 2 d/e rw,create",
    "copy 0 0 2 0 4096",
    "send 0 0 4096",
    "close 2",
    "rename d/e d/f",
    "unlink d/f",
    "close 0",
    "sync",
    "drop_caches",
    "unlink d/c",
    "unlink d/b",
    "unlink d/a",
    "rmdir d",
]
STORED = [
    "open 0 a rw,create", "write 0 0 524288 1 50", "mmap 0 0 0 524288 rw", "touch 0 0 524288",
    "stat a", "store 0 0 524288 2 50", "stat a", "munmap 0", "close 0",
]  # fmt: skip
TASKS = [
    "stat .", "pause 3000000", *["stat ."] * 20, "spawn 1", "stat .", "task 1", "stat .",
    "pause 3000000", "task 0", "stat .", "pause 900000", "stat .", "wait 1", "stat .", "spawn 1",
    "pause 70000000", "task 1", "stat .", "pause 70000000", "stat .", "task 0", "stat .",
]  # fmt: skip
WAKES_NS = 8
"""The kernel wakes a sleeper a nanosecond after its timer expires."""


def _programs() -> list[Program]:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    bodies = {"calls": EVERY_CALL, "stored": STORED, "tasks": TASKS}
    return [
        Program(
            case_id=f"{fs}, {name}",
            stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=128),
            prepare=f"{HEADER_2}\nsync\nprepared\n",
            body="\n".join([HEADER_2, "mark", *lines, "mkdir last", ""]),
        )
        for fs in ("jffs2", "ubifs", "yaffs2")
        for name, lines in bodies.items()
    ]


def _requests(target: str) -> pl.DataFrame:
    batches = list(load_target(target).run(_programs(), RunOptions()))
    assert [failure.message for batch in batches for failure in batch.failures] == []
    return pl.concat([batch.requests for batch in batches]).sort("case_id", "seq")


def test_every_operation_begins_at_the_same_time() -> None:
    kernels, simulated = _requests("uml"), _requests("sim-chip")
    same = pl.col("case_id", "op", "result")
    assert kernels.select(same).equals(simulated.select(same))
    # The row of a call has the reading before it.
    is_call = ~pl.col("op").is_in(["pause", "spawn", "wait"])
    began_ns = pl.col("start_ns") - pl.when(is_call).then(CLOCK_READ_NS).otherwise(0)
    later_ns = kernels.select(began_ns)["start_ns"] - simulated["start_ns"]
    wrong = kernels.with_columns(later_ns=later_ns).filter(
        ~pl.col("later_ns").is_between(0, WAKES_NS)
    )
    assert wrong.is_empty(), wrong.select("case_id", "seq", "op", "later_ns")
