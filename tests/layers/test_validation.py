"""A validation suite is its own, and errors are what they are said to be."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed import calibration, validation
from flashbed.experiment import experiment_names, load_experiment, plan
from flashbed.profiles import load_board, load_kernel
from flashbed.runner import programs_of
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget


@pytest.fixture(scope="module")
def suite() -> list[Program]:
    return validation.programs("reads", load_board("emulated"), load_kernel("6.1"))


def silent(_what: str, _done: int) -> None:
    """No progress is shown."""


def test_cases_have_names_of_their_own(suite: list[Program]) -> None:
    names = [program.case_id for program in suite]
    assert len(set(names)) == len(names) == 138


def test_no_case_is_a_calibration_case_or_one_of_an_experiment(suite: list[Program]) -> None:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    others = {program.prepare for program in calibration.programs(board, kernel)}
    for name in experiment_names():
        experiment = load_experiment(name)
        planned = programs_of(experiment, [item.case for item in plan(experiment)])
        others |= {program.prepare for program in planned}
    assert others.isdisjoint(program.prepare for program in suite)


@pytest.mark.extension
def test_every_case_runs_on_the_simulator(suite: list[Program]) -> None:
    batches = list(SimTarget().run(suite, trace_flash=False, progress=silent))
    assert [failure for batch in batches for failure in batch.failures] == []
    assert sum(batch.cases.height for batch in batches) == len(suite)


def table(**columns: list[int | None]) -> pl.DataFrame:
    """Two cases with zeros where nothing is said."""
    names = validation.MEASURES.values()
    filled = {name: columns.get(name, [0, 0]) for name in names}
    return pl.DataFrame({"case_id": ["a", "b"], **filled})


def test_an_error_is_relative_to_the_kernel_and_none_where_both_are_zero() -> None:
    compared = validation.compare(
        table(flash_reads=[98, 5], time_ns=[110, 100]),
        table(flash_reads=[100, 0], time_ns=[100, 100]),
    )
    assert compared["flash_reads_error_pct"].to_list() == [pytest.approx(-2.0), 100.0]
    assert compared["flash_erases_error_pct"].to_list() == [0.0, 0.0]
    told = validation.summary(compared)
    assert told["cases"] == 2
    assert told["time"] == {
        "exact_share": 0.5,
        "mean_error_pct": pytest.approx(5.0),
        "worst_error_pct": pytest.approx(10.0),
    }


def test_what_the_kernel_cannot_know_is_no_error() -> None:
    told = validation.summary(validation.compare(table(), table(time_ns=[None, None])))
    assert told["time"] is None
    assert told["flash_time"]["exact_share"] == 1
