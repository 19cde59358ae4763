"""The simulator and a real kernel on the emulated board do the same to the flash, and take as long.

One boot for some of Figure 3's cases, from few requests (where one flash read more is 3 %) to many.
The board's software costs come from calibration cases, none of which is among these.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis import agreement
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.targets.base import Target
from flashbed.targets.emulator.emulator_target import EmulatorTarget
from flashbed.targets.sim import SimTarget

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.extension,
    pytest.mark.timeout(600),
]

FLASH_READS_ERROR_PCT_MAX = 2.0
TIME_ERROR_PCT_MAX = 10.0


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JFFS2 and UBIFS, both patterns, read-ahead on and off, at 8, 64 and 256 requests."""
    experiment = load_experiment("readahead/figure3")
    planned = [
        item
        for item in plan(experiment)
        if "emulator" in item.targets
        and item.case.fs != "yaffs2"
        and item.case.requests in (8, 64, 256)
        and item.case.seed in (1, 2)
    ]
    out = tmp_path_factory.mktemp("both")
    directory = RunDirectory.create(out, experiment.id)
    targets: tuple[Target, ...] = (
        SimTarget(),
        EmulatorTarget(work_dir=tmp_path_factory.mktemp("board")),
    )
    for target in targets:
        outcome = run_target(
            experiment,
            planned,
            target,
            directory,
            trace_flash=True,
            progress=lambda *_: None,
        )
        assert outcome.failures == ()
        assert outcome.measured == len(planned) == 36
    return out


def by_target(results: Path, table: str, columns: list[str]) -> list[pl.DataFrame]:
    """The columns of a table from the simulator and from the board, in the same order."""
    rows = read_table(results, table)
    return [
        rows.filter(target=target).sort("case_id", "seq").select("case_id", "seq", *columns)
        for target in ("sim", "emulator")
    ]


def test_every_case_reads_the_flash_as_often_and_takes_as_long(results: Path) -> None:
    table = agreement(read_table(results, "cases"))
    assert table.height == 36
    for row in table.iter_rows(named=True):
        assert abs(row["flash_reads_error_pct"]) <= FLASH_READS_ERROR_PCT_MAX, row
        assert abs(row["time_error_pct"]) <= TIME_ERROR_PCT_MAX, row


def test_the_flash_sees_the_same_reads_in_the_same_order(results: Path) -> None:
    """Kind, block, page, column and bytes, operation by operation."""
    place = ["kind", "block", "page", "offset_bytes", "length_bytes"]
    simulated, real = by_target(results, "flash", place)
    assert simulated.height == real.height > 10_000
    pairs = zip(simulated.iter_rows(), real.iter_rows(), strict=True)
    differences = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
    assert differences[:3] == []


def test_a_request_returns_the_same(results: Path) -> None:
    simulated, real = by_target(
        results, "requests", ["op", "file", "offset_bytes", "length_bytes", "result"]
    )
    assert simulated.equals(real)
