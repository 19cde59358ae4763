"""The partition itself, below any file system: the simulator's answers are the kernel's."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.program.operations import HEADER
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Program, RunOptions

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

LINES = """open 0 partition rw
open 1 partition ro
open 2 partition wo
mark
write 0 0 2048 1 0
write 0 2048 131072 1 0
write 1 135168 2048 1 0
read 0 0 4096
read 0 100 3000
read 1 1 5
read 2 0 1
read 0 52426752 4096
read 0 52428800 1
write 0 52428800 2048 1 0
write 0 135169 2048 1 0
write 0 135168 1000 1 0
write 0 135168 512 1 0
erase 1 0 131072
erase 0 100 131072
erase 0 0 1000
erase 0 0 262144
erase 0 52428800 131072
erase 0 52297728 262144
{again}
fsync 0
fdatasync 0
truncate 0 0
fadvise 0 0 0 random
close 1
read 0 0 65536
"""


def measured(target: str, fs: str, board: str) -> Batch:
    # The driver's file erases nothing, so its first page may not be programmed again.
    again = "write 0 0 2048 1 0" if fs == "mtd" else "sync"
    program = Program(
        case_id="raw",
        stack=Stack(board=load_board(board), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0),
        prepare=f"{HEADER}\nprepared\n",
        body=f"{HEADER}\n{LINES.format(again=again)}",
    )
    run = load_target(target).run([program], RunOptions(trace_flash=True))
    (batch,) = list(run)
    assert not batch.failures
    return batch


@pytest.mark.parametrize("fs", ["mtd", "mtd-driver"])
@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_answers_and_flash_operations_are_the_same(fs: str, board: str) -> None:
    simulated, real = (measured(target, fs, board) for target in ("sim", "uml"))
    columns = ["seq", "op", "result", "flash_time_ns"]
    assert simulated.requests.select(columns).rows() == real.requests.select(columns).rows()
    places = [pl.col("kind", "block", "page", "offset_bytes", "length_bytes")]
    assert simulated.flash.select(places).rows() == real.flash.select(places).rows()
