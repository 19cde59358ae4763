"""What calls wait for: the simulator's causes against the flash log of a real kernel.

The log of user-mode Linux has the task and the kind of each flash operation, and no cause. Software
takes no time there, and none in the simulator beside it, so that times by cause are chip time.
Causes that the log tells apart are compared: erases, what UBI's thread does, what the flusher
writes for sync(), and what JFFS2's thread does while the program sleeps.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.results.columns import WAITS
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

HEADER = "flashbed-ops 1\n"
FULL = (
    f"{HEADER}open 0 file rw,create\n"
    + "".join(f"write 0 {n * 65536} 65536 {n} 0\n" for n in range(24))
    + "fsync 0\nclose 0\nsync\npause 10000000000\nprepared\n"
)
OVERWRITES = f"{HEADER}open 0 file rw\nmark\n" + "".join(
    f"write 0 {n * 7919 % 384 * 4096} 4096 {n} 0\n"
    + ("fsync 0\n" if n % 16 == 0 else "")
    + ("sync\n" if n % 97 == 96 else "")
    + ("pause 7000000000\n" if n % 256 == 0 else "")
    for n in range(1500)
)
COUNTED = ("write_back", "commit")
BOARDS = {"jffs2": "emulated-small", "yaffs2": "emulated-small", "ubifs": "emulated-46-lebs"}


def _measured(target: Target, program: Program) -> Batch:
    options = RunOptions(trace_flash=True, trace_waits=True)
    (batch,) = target.run([program], options)
    assert not batch.failures
    return batch


def _waited(batch: Batch, *causes: str, op: str | None = None) -> int:
    rows = batch.requests if op is None else batch.requests.filter(pl.col("op") == op)
    return int(sum(rows[cause].sum() for cause in causes))


def _chip_time(batch: Batch, chosen: pl.Expr) -> int:
    return int(batch.flash.filter(chosen)["duration_ns"].sum())


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("fs", sorted(BOARDS))
def test_causes_have_the_chip_time_that_the_kernels_log_has(tmp_path: Path, fs: str) -> None:
    program = Program(
        case_id="one",
        stack=Stack(
            board=load_board(BOARDS[fs]), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
        ),
        prepare=FULL,
        body=OVERWRITES,
    )
    real = _measured(UmlTarget(work_dir=tmp_path), program)
    simulated = _measured(SimTarget(), program.in_user_mode)
    assert set(WAITS).isdisjoint(real.requests.columns), "no kernel tells causes"
    erased, by = _waited(simulated, "erase_ns"), pl.col("task").str.starts_with
    if fs == "ubifs":  # its thread also writes the header of an erased block
        assert erased + _waited(simulated, "wear_levelling_ns") == _chip_time(real, by("ubi_bgt"))
        flushed, committed = (_waited(simulated, f"{c}_ns", op="sync") for c in COUNTED)
        # The flusher, and the program's own sync(), may have to commit.
        assert 0 < flushed <= _chip_time(real, by("kworker")) <= flushed + committed
    else:
        assert erased == _chip_time(real, pl.col("kind") == "erase") > 0
    if fs == "jffs2":  # only its thread works while the program sleeps
        slept = real.requests.filter(pl.col("op") == "pause")["flash_time_ns"].sum()
        assert _waited(simulated, "collection_ns", "erase_ns", op="pause") == slept > 0
