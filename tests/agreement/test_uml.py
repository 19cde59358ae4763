"""User-mode Linux: the same every time, and the simulator does to the flash what it does.

The kernel's code is real, the clock virtual: counts, order, place and chip time of operations are
compared exactly. Nothing in the simulator is fitted to any of this.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis import savings
from flashbed.base.paths import cache_folder
from flashbed.bench import validation
from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.campaign import CampaignPlan, Report, fuzz
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.running.ways import Way
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets import load_target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_kernel import cached_kernel
from flashbed.targets.uml.uml_target import UmlTarget

pytestmark = [
    pytest.mark.uml,
    pytest.mark.extension,
]

SEQUENTIAL = {8: 71.4, 64: 48.4, 1024: 5.5}
"""Percent of the flash reads, by requests: what the windows of 6.1's read-ahead make of 4 KiB."""
KERNELS = pytest.mark.parametrize(
    ("board", "kernel"),
    [
        ("emulated", "6.1"),
        ("emulated-4k", "6.1"),
        ("emulated", "5.10"),
        ("emulated", "6.12"),
        ("emulated", "7.3"),
    ],
)
WITH_YAFFS2 = ("6.1", "6.12")
"""Kernels that kernel/yaffs2 is written for."""
OPERATION = ["kind", "block", "page", "offset_bytes", "length_bytes"]


def needs(kernel: str) -> None:
    """Skips where a kernel is not built: each takes minutes, and `make uml` builds only 6.1."""
    if cached_kernel(cache_folder(), kernel) is None:
        pytest.skip(f"Linux {kernel} is not built: flashbed prepare --on uml-{kernel}")


def figure3(out: Path, *targets: str) -> Path:
    """Figure 3 as user-mode Linux runs it, on targets; YAFFS2 is test_yaffs2.py's."""
    experiment = load_experiment("readahead/figure3")
    planned = [
        item for item in plan(experiment) if "uml" in item.targets and item.case.fs != "yaffs2"
    ]
    directory = RunDirectory.create(out, experiment.id)
    for name in targets:
        done = run_target(
            experiment,
            planned,
            load_target(name),
            directory,
            trace_flash=True,
            progress=lambda *_: None,
        )
        assert done.failures == ()
        assert done.measured == len(planned) == 128
    return out


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return figure3(tmp_path_factory.mktemp("figure3"), "sim", "uml")


def test_two_runs_are_the_same_bytes(tmp_path: Path) -> None:
    runs = [figure3(tmp_path / name, "uml") for name in ("one", "two")]
    for table in ("cases", "requests", "flash"):
        one, two = ((run / f"{table}.parquet").read_bytes() for run in runs)
        assert one == two, table


def test_two_guests_at_once_give_the_bytes_of_one(tmp_path: Path) -> None:
    """Each has boots of its own, with other cases before a case."""
    experiment = load_experiment("readahead/figure3")
    few = ["kernel=6.1", "board=emulated", "requests=8,64", "seed=1"]
    planned = [item for item in plan(experiment, parse_settings(few)) if "uml" in item.targets]
    for jobs in (1, 2):
        done = run_target(
            experiment,
            planned,
            load_target("uml"),
            RunDirectory.create(tmp_path / f"{jobs}", experiment.id),
            trace_flash=True,
            progress=lambda *_: None,
            way=Way(jobs),
        )
        assert (done.failures, done.measured) == ((), len(planned))
    for table in ("cases", "requests", "flash"):
        one, two = ((tmp_path / name / f"{table}.parquet").read_bytes() for name in ("1", "2"))
        assert one == two, table


def test_sequential_savings_are_those_of_the_algorithm(results: Path) -> None:
    saved = savings(read_table(results, "cases")).filter(target="uml", pattern="sequential")
    for fs in ("jffs2", "ubifs"):
        for requests, percent in SEQUENTIAL.items():
            (row,) = saved.filter(fs=fs, requests=requests).to_dicts()
            assert row["flash_reads_saved_pct"] == pytest.approx(percent, abs=0.5), (fs, requests)


def test_a_fresh_mount_has_the_window_that_its_kernel_ships(tmp_path: Path) -> None:
    """Read from the mount, behind a case that had set another one."""
    experiment = load_experiment("kernels")
    few = ["kernel=6.1", "requests=8", "pattern=sequential", "read_ahead_kib=128,default"]
    planned = [item for item in plan(experiment, parse_settings(few)) if "uml" in item.targets]
    done = run_target(
        experiment,
        planned,
        load_target("uml"),
        RunDirectory.create(tmp_path / "run", experiment.id),
        trace_flash=False,
        progress=lambda *_: None,
    )
    assert (done.failures, done.not_measured, done.measured) == ((), (), 4)
    cases = read_table(tmp_path / "run", "cases")
    for fs in ("jffs2", "ubifs"):
        (shipped,) = cases.filter(window="default", fs=fs)["read_ahead_kib"]
        assert shipped == load_kernel("6.1").shipped_kib(fs) == 0
        (set_to,) = cases.filter(window="forced", fs=fs)["read_ahead_kib"]
        assert set_to == 128


def test_the_flash_sees_the_same_operations_in_the_same_order(results: Path) -> None:
    flash = read_table(results, "flash")
    simulated, real = (
        flash.filter(target=target).sort("case_id", "seq").select("case_id", "seq", *OPERATION)
        for target in ("sim", "uml")
    )
    assert simulated.equals(real)
    assert real.height > 50_000


def test_software_time_is_unknown_and_flash_time_exact(results: Path) -> None:
    cases = read_table(results, "cases")
    real = cases.filter(target="uml").sort("case_id")
    assert real["time_ns"].null_count() == real.height
    requests = read_table(results, "requests").filter(target="uml")
    assert requests["latency_ns"].null_count() == requests.height
    simulated = cases.filter(target="sim").sort("case_id")
    assert real["flash_time_ns"].equals(simulated["flash_time_ns"])


@KERNELS
def test_the_reads_suite(board: str, kernel: str) -> None:
    needs(kernel)
    programs = [
        program
        for program in validation.programs("reads", load_board(board), load_kernel(kernel))
        if program.stack.fs != "yaffs2" or kernel in WITH_YAFFS2
    ]
    simulated, real = (
        pl.concat(
            [batch.cases for batch in target.run(programs)],
            how="diagonal",
        )
        for target in (SimTarget(), UmlTarget())
    )
    assert real.height == len(programs)
    told = validation.summary(validation.compare(simulated, real))
    for measure in ("flash_reads", "flash_programs", "flash_erases"):
        assert told[measure]["exact_share"] >= 0.9, (measure, told)
        assert told[measure]["worst_error_pct"] <= 2, (measure, told)
    assert told["time"] is None


@KERNELS
def test_random_programs_that_read(board: str, kernel: str) -> None:
    """A short run of what `make fuzz` does for hours; seeds that no one has looked at."""
    needs(kernel)
    bench = Bench(SimTarget(), UmlTarget(), load_board(board), load_kernel(kernel))
    asked = CampaignPlan(
        kind="reads",
        file_systems=("jffs2", "ubifs"),
        seed=70_000,
        cases=150,
        keep_going=True,
        shrink=False,
    )
    report = Report(plan=asked)
    fuzz(asked, bench, report=report, progress=lambda *_: None, stopped=lambda: False)
    told = report.to_json()
    assert told["exact"] == 300, told


def test_postmark_does_to_the_flash_what_it_does_on_the_kernel(tmp_path: Path) -> None:
    """Each phase of the shipped experiment, with its transactions read from dropped caches."""
    experiment = load_experiment("readahead/postmark")
    chosen = [
        item
        for item in plan(experiment)
        if "uml" in item.targets and item.case.fs == "ubifs" and item.case.read_ahead_kib == 128
    ]
    assert {item.case.pattern for item in chosen} == {"creation", "transactions", "deletion"}
    directory = RunDirectory.create(tmp_path, experiment.id)
    for name in ("sim", "uml"):
        done = run_target(
            experiment, chosen, load_target(name), directory,
            trace_flash=False, progress=lambda *_: None,
        )  # fmt: skip
        assert done.failures == ()
    counts = ["flash_reads", "flash_programs", "flash_erases", "bytes"]
    table = read_table(tmp_path, "cases").sort("case_id")
    real = table.filter(target="uml").select("case_id", *counts)
    assert real.equals(table.filter(target="sim").select("case_id", *counts))
