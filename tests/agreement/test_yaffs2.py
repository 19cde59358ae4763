"""YAFFS2 on real kernels: what it answers is what Linux answers, and a page is two flash reads.

The core is U-Boot's (kernel/yaffs2).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.experiment import load_experiment, plan
from flashbed.fuzz.bench import Bench
from flashbed.fuzz.campaign import Plan, Report, fuzz
from flashbed.profiles import load_board, load_kernel
from flashbed.runner import run_target
from flashbed.tables import RunDirectory, read_table
from flashbed.targets.base import Target
from flashbed.targets.emulator import EmulatorTarget
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml import UmlTarget

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

REQUESTS = (8, 64, 256)


def figure3(out: Path, *targets: Target) -> pl.DataFrame:
    """Figure 3's cases of YAFFS2 on the emulated board's kernel, without a trace."""
    experiment = load_experiment("readahead/figure3")
    planned = [
        item
        for item in plan(experiment)
        if "uml" in item.targets
        and (item.case.fs, item.case.seed) == ("yaffs2", 1)
        and item.case.requests in REQUESTS
    ]
    directory = RunDirectory.create(out, experiment.id)
    for target in targets:
        done = run_target(
            experiment, planned, target, directory, trace_flash=False, progress=lambda *_: None
        )
        assert done.failures == ()
        assert done.measured == len(planned) == 12
    return read_table(out, "cases")


def two_reads_a_page(cases: pl.DataFrame, target: str) -> None:
    """2 KiB chunks: every page that is read is two reads, whatever asked for it."""
    alone = cases.filter(target=target, read_ahead_kib=0, pattern="sequential")
    for requests in REQUESTS:
        assert alone.filter(requests=requests)["flash_reads"].to_list() == [2 * requests]
    ahead = cases.filter(target=target, read_ahead_kib=128, pattern="sequential")
    # The paper's finding: at 8 requests most of what read-ahead reads is for nothing.
    assert ahead.filter(requests=8)["flash_reads"].item() > 3 * 16


def same_reads(cases: pl.DataFrame, one: str, other: str) -> None:
    reads = [
        cases.filter(target=name).sort("case_id").select("case_id", "flash_reads")
        for name in (one, other)
    ]
    assert reads[0].height == 12
    assert reads[0].equals(reads[1])


@pytest.mark.uml
def test_a_page_is_two_flash_reads_on_user_mode_linux(tmp_path: Path) -> None:
    cases = figure3(tmp_path / "out", SimTarget(), UmlTarget(work_dir=tmp_path / "work"))
    two_reads_a_page(cases, "uml")
    same_reads(cases, "sim", "uml")


@pytest.mark.emulator
def test_a_page_is_two_flash_reads_on_the_emulated_board(tmp_path: Path) -> None:
    cases = figure3(tmp_path / "out", SimTarget(), EmulatorTarget(work_dir=tmp_path / "work"))
    two_reads_a_page(cases, "emulator")
    same_reads(cases, "sim", "emulator")
    assert (cases.filter(target="emulator")["time_ns"] > 0).all()


@pytest.mark.uml
def test_sixty_random_programs_do_what_the_simulator_does(tmp_path: Path) -> None:
    """Its thread may come a tick earlier or later (docs/yaffs2.md), so not all are exact."""
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=tmp_path), load_board("emulated"), load_kernel("6.1")
    )
    plan = Plan("any", ("yaffs2",), seed=20_000, cases=60, batch=60, keep_going=True, shrink=False)
    report = Report(plan)
    fuzz(report.plan, bench, report, lambda *_: None, lambda: False)
    assert report.errors == []
    assert report.refused == {}
    assert report.programs == 60
    assert {found.difference.kind for found in report.found} <= {"flash"}
    assert report.exact >= 54
