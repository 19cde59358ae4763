"""ext4 and F2FS on a flash translation layer: real kernels do the same twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.stacks import one_stack
from flashbed.running.programs import programs_of
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.uml.uml_target import UmlTarget

pytestmark = [pytest.mark.uml, pytest.mark.timeout(600)]


def chosen(name: str, *settings: str) -> list[Program]:
    experiment = load_experiment(name)
    cases = [item.case for item in plan(experiment, parse_settings(settings))]
    return list(programs_of(experiment, cases))


def on_disk(program: Program, fs: str) -> Program:
    """A program of another experiment, on a file system of disks."""
    stack = one_stack([f"fs={fs}", "partition.blocks=800"], disks=True)
    return replace(program, stack=stack, case_id=f"{fs}-{program.case_id}")


def measured(work: Path, programs: list[Program]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cases, and flash operations without their times' host: all of it is in virtual time."""
    batches: list[Batch] = list(
        UmlTarget(work_dir=work).run(programs, RunOptions(trace_flash=True))
    )
    assert [failure for batch in batches for failure in batch.failures] == []
    cases = pl.concat([batch.cases for batch in batches], how="diagonal")
    flash = pl.concat([batch.flash for batch in batches if batch.flash.height])
    return cases.sort("case_id"), flash.sort("case_id", maintain_order=True)


def test_figure3_sqlite_and_fio_take_the_same_operations_twice(tmp_path: Path) -> None:
    disks = "fs=ext4,f2fs"
    (fio,) = chosen("programs/fio-rand-rw", "fs=ubifs")
    programs = [
        *chosen("policies/disks-reads", disks, "requests=64"),
        *chosen("policies/disks-sqlite", disks, "request_bytes=600", "requests=100,300"),
        *(on_disk(fio, fs) for fs in ("ext4", "f2fs")),
    ]
    assert len(programs) == 8 + 6 + 2
    first, second = (measured(tmp_path / name, programs) for name in ("first", "second"))
    assert first[0].equals(second[0])
    assert first[1].equals(second[1])
    counts = first[0].select("flash_reads", "flash_programs", "flash_erases").sum().row(0)
    assert min(counts[:2]) > 1000


def test_an_overwritten_block_is_collected_by_the_layer_not_by_ext4(tmp_path: Path) -> None:
    """16 MiB are synced page by page on a disk with little spare: the layer has to move pages."""
    lines = ["open 0 f rw,create", *(f"write 0 {at} 65536 1 0" for at in range(0, 24 << 20, 65536))]
    prepare = "\n".join(["flashbed-ops 1", *lines, "fsync 0", "close 0", "prepared", ""])
    body = ["flashbed-ops 1", "open 0 f rw", "mark"]
    for number in range(3000):
        body += [f"write 0 {number * 7919 % 6144 * 4096} 4096 {number} 0", "fsync 0"]
    stack = one_stack(
        ["fs=ext4", "partition.blocks=320", "mount=ext4:spare_permille=50"], disks=True
    )
    program = Program(case_id="one", stack=stack, prepare=prepare, body="\n".join([*body, ""]))
    cases, flash = measured(tmp_path, [program])
    assert cases["flash_erases"].item() > 50
    assert set(flash["kind"]) == {"read", "program", "erase"}
