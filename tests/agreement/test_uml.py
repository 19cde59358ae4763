"""User-mode Linux: the same every time, and the simulator does to the flash what it does.

The kernel's code is real, the clock virtual: counts, order, place and chip time of operations are
compared exactly. Nothing in the simulator is fitted to any of this.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed import validation
from flashbed.analysis import savings
from flashbed.experiment import load_experiment, plan
from flashbed.fuzz.bench import Bench
from flashbed.fuzz.campaign import Plan, Report, fuzz
from flashbed.profiles import load_board, load_kernel
from flashbed.runner import run_target
from flashbed.tables import RunDirectory, read_table
from flashbed.targets import load_target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml import UmlTarget

pytestmark = [
    pytest.mark.uml,
    pytest.mark.extension,
]

SEQUENTIAL = {8: 71.4, 64: 48.4, 1024: 5.5}
"""Percent of the flash reads, by requests: what the windows of 6.1's read-ahead make of 4 KiB."""
OPERATION = ["kind", "block", "page", "offset_bytes", "length_bytes"]


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


def test_sequential_savings_are_those_of_the_algorithm(results: Path) -> None:
    saved = savings(read_table(results, "cases")).filter(target="uml", pattern="sequential")
    for fs in ("jffs2", "ubifs"):
        for requests, percent in SEQUENTIAL.items():
            (row,) = saved.filter(fs=fs, requests=requests).to_dicts()
            assert row["flash_reads_saved_pct"] == pytest.approx(percent, abs=0.5), (fs, requests)


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


@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_the_reads_suite(board: str) -> None:
    programs = validation.programs("reads", load_board(board), load_kernel("6.1"))
    simulated, real = (
        pl.concat(
            [
                batch.cases
                for batch in target.run(programs, trace_flash=False, progress=lambda *_: None)
            ],
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


@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_random_programs_that_read(board: str) -> None:
    """A short run of what `make fuzz` does for hours; seeds that no one has looked at."""
    bench = Bench(SimTarget(), UmlTarget(), load_board(board), load_kernel("6.1"))
    asked = Plan("reads", ("jffs2", "ubifs"), seed=70_000, cases=150, keep_going=True, shrink=False)
    report = Report(asked)
    fuzz(asked, bench, report, lambda *_: None, lambda: False)
    told = report.to_json()
    assert told["exact"] == 300, told
