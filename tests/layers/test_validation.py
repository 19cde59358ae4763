"""A validation suite is its own, and errors are what they are said to be."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed import calibration, validation
from flashbed.errors import InputError
from flashbed.experiment import experiment_names, load_experiment, plan
from flashbed.operations import parse
from flashbed.profiles import load_board, load_kernel
from flashbed.runner import programs_of
from flashbed.targets.base import Program, refused
from flashbed.targets.sim import SimTarget

CASES = {"reads": 138, "writes": 142}


@pytest.fixture(scope="module", params=list(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def suite(name: str) -> list[Program]:
    return validation.programs(name, load_board("emulated"), load_kernel("6.1"))


def silent(_what: str, _done: int) -> None:
    """No progress is shown."""


def test_cases_have_names_of_their_own_and_a_kind(name: str, suite: list[Program]) -> None:
    names = [program.case_id for program in suite]
    assert len(set(names)) == len(names) == CASES[name]
    assert list(validation.kinds(name, load_board("emulated"))) == names


def test_every_operation_is_one(suite: list[Program]) -> None:
    for program in suite:
        assert parse(program.prepare)[-1].name == "prepared"
        assert "mark" in [operation.name for operation in parse(program.body)]


def test_no_case_is_a_calibration_case_or_one_of_an_experiment(suite: list[Program]) -> None:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    others = {program.prepare for program in calibration.programs(board, kernel)}
    for experiment_name in experiment_names():
        experiment = load_experiment(experiment_name)
        planned = programs_of(experiment, [item.case for item in plan(experiment)])
        others |= {program.prepare for program in planned}
    assert others.isdisjoint(program.prepare for program in suite)


def test_a_board_nobody_has_filled_is_refused() -> None:
    large = load_board("emulated").model_copy(deep=True)
    board = large.model_copy(update={"chip": large.chip.model_copy(update={"page_bytes": 8192})})
    with pytest.raises(InputError, match="8192 bytes"):
        validation.programs("writes", board, load_kernel("6.1"))


@pytest.mark.extension
def test_every_case_runs_on_the_simulator_or_is_refused_by_name(suite: list[Program]) -> None:
    batches = list(SimTarget().run(suite, trace_flash=False, progress=silent))
    failures = [failure for batch in batches for failure in batch.failures]
    assert [failure for failure in failures if refused(failure.message) is None] == []
    assert sum(batch.cases.height for batch in batches) == len(suite) - len(failures)
    assert sum(batch.cases.height for batch in batches) >= 60


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


def test_limits_are_kept_or_not_and_kinds_told_apart() -> None:
    compared = validation.Compared(
        validation.compare(
            table(flash_reads=[98, 104], time_ns=[110, 100]),
            table(flash_reads=[100, 100], time_ns=[100, 100]),
        ),
        kinds={"a": "one", "b": "other", "c": "other"},
        limits={"flash_reads": (2.0, 5.0), "time": (7.0, 15.0)},
        refused={"c": "truncate"},
        failed={},
    )
    told = compared.as_json()
    assert told["limits"]["flash_reads"]["kept"] is False  # 3 % in the mean
    assert told["limits"]["time"]["kept"] is True
    assert told["kinds"]["one"]["flash_reads"]["worst_error_pct"] == pytest.approx(2.0)
    assert (told["kinds"]["other"]["cases"], told["kinds"]["other"]["refused"]) == (1, 1)
    assert told["refused"] == {"c": "truncate"}
