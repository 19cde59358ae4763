"""`left_bytes`: what the simulator says is left after a run is what df says on a real kernel.

A kernel tells df after a preparation only. So the whole program is a preparation there, and the
simulator runs it both ways.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.plan.workloads.space import usable_bytes
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

HEADER = "flashbed-ops 1\n"
BEFORE = "open 0 old rw,create\nwrite 0 0 262144 1 0\nfsync 0\nclose 0\nsync\n"
WORK = (
    "open 0 log rw,create\n"
    + "".join(
        f"write 0 {n * 3000} 3000 {n} 40\n" + ("fsync 0\n" * (n % 8 == 0)) for n in range(200)
    )
    + "close 0\nunlink old\n"
)
AFTER = "sync\npause 100000000\n"


def _measured(target: Target, program: Program) -> Batch:
    (batch,) = target.run([program], RunOptions())
    assert not batch.failures
    return batch


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_bytes_left_are_those_of_df(tmp_path: Path, fs: str) -> None:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    stack = Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=0)
    ran = Program(
        case_id="ran", stack=stack, prepare=f"{HEADER}{BEFORE}prepared\n",
        body=f"{HEADER}mark\n{WORK}", record_flush=True,
    )  # fmt: skip
    prepared = Program(
        case_id="prepared", stack=stack, prepare=f"{HEADER}{BEFORE}{WORK}{AFTER}prepared\n",
        body=f"{HEADER}mark\nsync\n",
    )  # fmt: skip
    (left,) = _measured(SimTarget(), ran.in_user_mode).cases["left_bytes"]
    (simulated,) = _measured(SimTarget(), prepared.in_user_mode).cases["state_valid"]
    (real,) = _measured(UmlTarget(work_dir=tmp_path), prepared).cases["state_valid"]
    assert simulated == real
    fresh = usable_bytes(fs, board, ())
    assert 1 - left / fresh == pytest.approx(real, abs=1e-9)
