"""A validation suite shares no case with others, and its errors are computed as documented."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.bench import validation
from flashbed.bench.validation import results_table as kept
from flashbed.program.operations import parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

CASES = {"reads": 234, "writes": 213}


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


def test_a_board_nobody_has_filled_is_refused() -> None:
    large = load_board("emulated").model_copy(deep=True)
    board = large.model_copy(update={"chip": large.chip.model_copy(update={"page_bytes": 8192})})
    with pytest.raises(InputError, match="8192 bytes"):
        validation.programs("writes", board, load_kernel("6.1"))


@pytest.mark.extension
def test_every_case_runs_on_the_simulator_or_is_refused_by_name(suite: list[Program]) -> None:
    batches = list(SimTarget().run(suite))
    failures = [failure for batch in batches for failure in batch.failures]
    assert [failure for failure in failures if failure.not_modelled is None] == []
    assert sum(batch.cases.height for batch in batches) == len(suite) - len(failures)
    assert sum(batch.cases.height for batch in batches) >= 60


def table(**columns: list[int | None]) -> pl.DataFrame:
    """Two cases with zeros unless a value is given."""
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
    compared = validation.ComparedSuite(
        table=validation.compare(
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


def compared(reads: list[int | None], refused: dict[str, str]) -> validation.ComparedSuite:
    names = ["validate-jffs2-a", "validate-ubifs-b"]
    real = table(flash_reads=[100, 0]).with_columns(case_id=pl.Series(names))
    simulated = table(flash_reads=reads).with_columns(case_id=pl.Series(names))
    kinds = dict.fromkeys([*names, *refused], "a kind")
    limits = validation.LIMITS["writes"]["emulator"]
    return validation.ComparedSuite(
        table=validation.compare(simulated, real),
        kinds=kinds,
        limits=limits,
        refused=refused,
        failed={},
    )


def test_what_is_kept_is_the_last_word_on_each_run(tmp_path: Path) -> None:
    first = {"board": "x", "kernel": "6.1", "target": "emulator", "suite": "writes"}
    other = {**first, "target": "uml"}
    version = {"flashbed_version": "1", "commit": None}
    kept.keep(tmp_path, first, compared([150, 0], {}), version)
    kept.keep(tmp_path, other, compared([100, 0], {"validate-ubifs-c": "a hole"}), version)
    kept.keep(tmp_path, first, compared([101, 3], {}), version)
    rows = kept.read_results(tmp_path)
    assert rows.height == 2 + 3
    lines = kept.summaries(rows)
    assert [(line["target"], line["fs"], line["cases"], line["missing"]) for line in lines] == [
        ("uml", None, 2, 1),
        ("uml", "jffs2", 1, 0),
        ("uml", "ubifs", 1, 0),
        ("emulator", None, 2, 0),
        ("emulator", "jffs2", 1, 0),
        ("emulator", "ubifs", 1, 0),
    ]
    assert lines[0]["limits"]["flash_reads"]["kept"] is True
    assert lines[3]["limits"]["flash_reads"]["kept"] is False
    assert lines[3]["flash_reads"]["worst_error_pct"] == 100.0  # none on the kernel, some here
    assert lines[4]["flash_reads"]["worst_error_pct"] == pytest.approx(1.0)
    worst = kept.worst_cases(rows, 1)
    assert [(row["target"], row["case_id"]) for row in worst] == [("emulator", "validate-ubifs-b")]


def test_what_validate_prints_and_keeps_is_json_without_infinities(tmp_path: Path) -> None:
    told = compared([100, 7], {}).as_json()
    json.dumps(told, allow_nan=False)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    (tmp_path / kept.KEPT).write_text("none")
    with pytest.raises(InputError, match=r"validation\.parquet"):
        kept.read_results(tmp_path)
