"""What the read-ahead algorithms save, simulated: the shapes that follow from them, and no more.

The ranges are those of the project's first milestone. They follow from the kernels' algorithms on a
chip without a page buffer (board `emulated`); nothing is fitted to them.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis import savings
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.targets import load_target

pytestmark = pytest.mark.extension


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Savings of the whole simulated experiment."""
    out = tmp_path_factory.mktemp("figure3")
    return savings(read_table(run(out), "cases"))


def run(out: Path) -> Path:
    experiment = load_experiment("readahead/figure3")
    directory = RunDirectory.create(out, experiment.id)
    outcome = run_target(
        experiment,
        plan(experiment),
        load_target("sim"),
        directory,
        trace_flash=False,
        progress=lambda *_: None,
    )
    assert outcome.failures == ()
    return out


def values(saved: pl.DataFrame, kernel: str, pattern: str) -> dict[int, float]:
    rows = saved.filter(board="emulated", kernel=kernel, fs="jffs2", pattern=pattern)
    return dict(rows.select("requests", "flash_reads_saved_pct").iter_rows())


@pytest.mark.parametrize("kernel", ["2.6.37", "2.6.37-64bit", "6.1"])
def test_sequential_savings_shrink_from_70_percent_to_few(saved: pl.DataFrame, kernel: str) -> None:
    curve = values(saved, kernel, "sequential")
    assert 65 <= curve[8] <= 75
    assert 45 <= curve[64] <= 52
    assert 0 < curve[1024] < 8


def test_a_backward_jump_that_looks_sequential_costs_a_third_of_few_random_reads(
    saved: pl.DataFrame,
) -> None:
    """Half of the jumps start a window of four pages, of which a request uses two."""
    curve = values(saved, "2.6.37", "random-byte")
    assert all(28 <= curve[requests] <= 41 for requests in (8, 16, 32))
    assert max(curve.values()) == curve[256]


def test_without_it_random_reads_suffer_as_the_cache_fills(saved: pl.DataFrame) -> None:
    curve = values(saved, "2.6.37-64bit", "random-byte")
    assert curve[8] < 3
    assert 15 <= curve[32] <= 25
    assert 45 <= curve[256] <= 55


def test_conservative_context_read_ahead_spares_random_reads(saved: pl.DataFrame) -> None:
    before, curve = (values(saved, kernel, "random-byte") for kernel in ("2.6.37-64bit", "6.1"))
    assert all(curve[requests] < 6 for requests in (8, 16, 32, 64))
    assert all(curve[requests] < before[requests] / 3 for requests in (32, 64, 128, 256))


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    for table in ("cases", "requests"):
        name = f"{table}.parquet"
        assert (first / name).read_bytes() == (second / name).read_bytes()
