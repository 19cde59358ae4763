"""Simulator and real kernels wear the same blocks, and the driver's log agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.targets.base import Batch, Program, RunOptions, Target
from flashbed.targets.emulator.emulator_target import EmulatorTarget, NandsimTarget
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget
from tests.layers.lifetimes.test_wear import check_whole, erases_of, ring


def measured(target: Target, *programs: Program) -> Batch:
    """What the programs gave, in one."""
    batches = list(target.run(programs, RunOptions(trace_flash=True)))
    assert not [failure for batch in batches for failure in batch.failures]
    tables = ("cases", "requests", "flash", "wear")
    whole = (pl.concat([getattr(b, name) for b in batches], how="diagonal") for name in tables)
    return Batch(**dict(zip(tables, whole, strict=True)))


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("fs", ["yaffs2", "ubifs"])
def test_real_ones_erase_the_blocks_the_simulator_says(tmp_path: Path, fs: str) -> None:
    """Twice in one boot: the second does not know of the first."""
    program = ring("a", fs)
    real = measured(UmlTarget(work_dir=tmp_path), program, replace(program, case_id="b"))
    simulated = measured(SimTarget(), program.in_user_mode)
    check_whole(simulated)
    columns = ("block", "erases", "erases_measured", "state")
    for case_id in ("a", "b"):
        wear = real.wear.filter(case_id=case_id)
        assert simulated.wear.select(columns).equals(wear.select(columns))


@pytest.mark.uml
def test_what_a_chip_has_been_through_before_a_case_does_not_count(tmp_path: Path) -> None:
    """Cases share a boot and its chip; each is as worn as if it had been alone."""
    program = ring("a", "jffs2", 40)
    real = measured(UmlTarget(work_dir=tmp_path), program, replace(program, case_id="b"))
    assert real.cases["case_id"].to_list() == ["a", "b"]
    # Making the file system leaves the wear as it was; the garbage collector takes a block or two.
    assert all(0 <= mean < 0.05 for mean in real.cases["erase_count_mean"])


@pytest.mark.uml
def test_wear_of_user_mode_linux_is_what_its_drivers_log_says(tmp_path: Path) -> None:
    """JFFS2 with its garbage collector at work: every block has been erased again."""
    real = measured(UmlTarget(work_dir=tmp_path), ring("a", "jffs2", 8000))
    check_whole(real)
    assert real.wear["erases_measured"].sum() > 300


@pytest.mark.emulator
@pytest.mark.long
def test_the_emulated_board_knows_its_wear_and_nandsim_what_was_seen(tmp_path: Path) -> None:
    program = ring("a", "ubifs", 300)
    board = measured(EmulatorTarget(work_dir=tmp_path / "ours"), program)
    check_whole(board)
    seen = measured(NandsimTarget(work_dir=tmp_path / "nandsim"), program).wear
    assert seen["erases"].null_count() == seen.height == 400
    erases = {block: n for block, n in seen.select("block", "erases_measured").rows() if n}
    assert erases == erases_of(board.flash)
