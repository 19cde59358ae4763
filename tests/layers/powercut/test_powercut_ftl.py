"""Power cuts under a flash translation layer: what a disk acknowledged is there after each."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.judge import RECOVERED
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.stacks import one_stack
from flashbed.running.programs import programs_of
from flashbed.targets.base import Program, Target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

BLOCKS, PAGE_BYTES = 16, 2048


def cuts_of(target: Target, programs: list[Program], choice: Choice) -> pl.DataFrame:
    batches = list(PowerCuts(target, choice, target.name).run(programs))
    assert [failure for batch in batches for failure in batch.failures] == []
    return pl.concat([batch.power_cuts for batch in batches if batch.power_cuts.height])


def overwritten(seed: int, mount: str, requests: int) -> Program:
    """A full disk of 16 blocks that synced writes of any sectors overwrite; some are read."""
    stack = one_stack([f"partition.blocks={BLOCKS}", "fs=ftl", f"mount={mount}"], raw=True)
    size = (BLOCKS - 3) * 64 * 700 // 1000 * PAGE_BYTES
    draw = random.Random(seed)
    filled = [f"write 0 {at} {PAGE_BYTES} 1 0" for at in range(0, size, PAGE_BYTES)]
    lines = ["open 0 partition rw,direct,dsync", "mark"]
    for number in range(requests):
        sectors = draw.choice([1, 3, 4, 8, 20])
        at = draw.randrange(size // 512 - sectors) * 512
        lines.append(f"write 0 {at} {sectors * 512} {number + 2} 0")
        if number % 9 == 0:
            lines.append(f"read 0 {at} 512")
        if number % 200 == 199:
            lines += ["close 0", "remount", "open 0 partition rw,direct,dsync"]
    return Program(
        case_id=f"{mount}-{seed}",
        stack=stack,
        prepare="\n".join(
            ["flashbed-ops 1", "open 0 partition rw,direct", *filled, "close 0", "prepared", ""]
        ),
        body="\n".join(["flashbed-ops 1", *lines, ""]),
    )


@pytest.mark.extension
@pytest.mark.parametrize("mount", ["ftl:spare_permille=300", "ftl:spare_permille=300+map_pages=1"])
def test_what_the_simulated_disk_acknowledged_survives_every_cut(mount: str) -> None:
    rows = cuts_of(SimTarget(), [overwritten(1, mount, 300)], Choice(1, None, 1))
    assert rows.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
    assert rows.height > 800
    assert rows["acknowledged_files"].max() == 1
    # Every page of the disk is read.
    assert rows["mount_time_ns"].min() > BLOCKS * 64 * 25_000  # type: ignore[operator]


@pytest.mark.uml
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mount", ["ftl:spare_permille=300", "ftl:spare_permille=300+map_pages=1"])
def test_what_the_kernels_disk_acknowledged_survives_torn_pages(tmp_path: Path, mount: str) -> None:
    rows = cuts_of(UmlTarget(work_dir=tmp_path), [overwritten(2, mount, 150)], Choice(None, 100, 1))
    assert rows.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
    assert rows.height == 100


@pytest.mark.uml
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mount", ["ext4:barrier", "f2fs:fsync_mode=strict"])
def test_what_fsync_acknowledged_survives_under_real_file_systems(
    tmp_path: Path, mount: str
) -> None:
    """But in a truncation: both write the last page, zeros behind its end, before the size.

    Pages of the chip are blocks of the file systems here. Where a block is two pages, a torn commit
    of ext4's journal is not mounted; without strict, F2FS loses files (docs/models/ftl.md).
    """
    experiment = load_experiment("powercut/fsync")
    cases = [item.case for item in plan(experiment, parse_settings(["fs=jffs2"]))]
    chosen = [f"fs={mount.partition(':')[0]}", f"mount={mount}"]
    stack = one_stack(["board=emulated-4k", "partition.blocks=240", *chosen], disks=True)
    programs = [replace(program, stack=stack) for program in programs_of(experiment, cases)]
    rows = cuts_of(UmlTarget(work_dir=tmp_path), programs, Choice(None, 60, 1))
    for reason in rows.filter(pl.col("verdict") != RECOVERED)["reason"]:
        assert "acknowledged bytes are zero" in reason
    assert rows.height == 60
    assert rows.filter(pl.col("verdict") == RECOVERED).height > 50
    assert rows["acknowledged_files"].max() > 8  # type: ignore[operator]
