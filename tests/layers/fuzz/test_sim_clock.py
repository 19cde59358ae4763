"""The simulator's clock: what a call did to the chip takes its time, also where the call fails.

Programs that fill a partition meet the paths on which a call returns without what it looked for.
Each such path has to hand on the time at which it ended.
"""

from __future__ import annotations

import pytest

from flashbed.bench.fuzz.generator import generate
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.base import RunOptions
from flashbed.targets.sim import SimTarget

BOARDS = {"jffs2": "emulated-small", "ubifs": "emulated-46-lebs", "yaffs2": "emulated-small"}
SEEDS = (*range(15), 66)
"""In 6 UBIFS' collector has moved nodes when the log is full; in 66 a scan of the LPT finds no LEB
with space."""


@pytest.mark.parametrize("fs", BOARDS)
def test_no_operation_of_the_chip_begins_before_the_last_has_begun(fs: str) -> None:
    board, kernel = load_board(BOARDS[fs]), load_kernel("6.1")
    programs = [
        generate("full", fs, seed, ()).program(board, kernel).in_user_mode for seed in SEEDS
    ]
    ran = 0
    for batch in SimTarget().run(programs, RunOptions(trace_flash=True)):
        assert not batch.failures
        for (case_id,), flash in batch.flash.group_by("case_id", maintain_order=True):
            starts = flash.sort("seq")["start_ns"]
            assert starts.is_sorted(), case_id
            ran += 1
    assert ran == len(SEEDS)
