"""Verdicts: limits decide where there are any, and the baseline elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.answers.budgets.baseline import read_baseline, write_baseline
from flashbed.answers.budgets.limits_held import JudgedLine, Row, judged, measures_of
from flashbed.base.errors import InputError

KEY = ("rev-a", "logger", "")


def row(
    measures: dict[str, float | None], limits: dict[str, float] | None = None, **inputs: str
) -> Row:
    return Row(
        stack="rev-a", program="logger", choice="", measures=measures, limits=limits or {},
        inputs=inputs, why={"years": ": how often does it run?"},
    )  # fmt: skip


def only(
    measure: str, value: float | None, *, limit: float | None = None, kept: float | None = None
) -> JudgedLine:
    limits = {} if limit is None else {measure: limit}
    before = {KEY: {measure: kept}}
    (line,) = judged([row({measure: value}, limits)], before)
    return line


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (only("page_writes", 100, limit=100), "holds"),
        (only("page_writes", 101, limit=100), "broken"),
        (only("years", 10.0, limit=10), "holds"),
        (only("years", 9.99, limit=10), "broken"),
        (only("bytes_free", 4096, limit=8192), "broken"),
        (only("years", None, limit=10), "not known"),
        (only("page_writes", 100, limit=200, kept=50), "holds"),
        (only("page_writes", 51, kept=50), "worse"),
        (only("page_writes", 49, kept=50), "better"),
        (only("page_writes", 50, kept=50), "same"),
        (only("years", 9.0, kept=10.0), "worse"),
        (only("years", 11.0, kept=10.0), "better"),
        (only("time_ms", 1.23456789, kept=1.23457), "same"),
        (only("time_ms", 1.23458, kept=1.23457), "worse"),
        (only("energy_mj", None, kept=3.0), "not known"),
        (only("failed_calls", 1), "broken"),
        (only("failed_calls", 2, limit=2), "holds"),
        (only("page_writes", 7), "new"),
    ],
)
def test_a_measure_is_judged_by_its_limit_else_by_the_baseline(
    line: JudgedLine, verdict: str
) -> None:
    assert line.verdict == verdict
    assert line.breaks == (verdict in ("broken", "worse", "not known"))


def test_a_line_says_by_how_much() -> None:
    assert only("page_writes", 101, limit=100).text == (
        "rev-a, logger: page writes 101, at most 100: 1 more (1.0%)"
    )
    assert only("years", 9.0, limit=10).text == (
        "rev-a, logger: years 9, at least 10: 1 less (10.0%)"
    )
    assert only("time_ms", 2.5, kept=2.0).text == (
        "rev-a, logger: time 2.500 ms, 2.000 ms in the baseline: 500.0 us more (25.0%)"
    )
    assert only("years", None, limit=3).text == (
        "rev-a, logger: years: not known: how often does it run?"
    )


def test_without_a_baseline_only_limits_are_judged() -> None:
    lines = list(judged([row({"page_writes": 5, "time_ms": 1.0}, {"page_writes": 9})], None))
    assert [line.measure for line in lines] == ["page_writes"]


def test_only_what_is_watched_may_not_become_worse() -> None:
    now, before = row({"page_writes": 6, "erases": 6}), {KEY: {"page_writes": 5, "erases": 5}}
    lines = list(judged([now], before, ["erases"]))
    assert [(line.measure, line.verdict) for line in lines] == [("erases", "worse")]


def test_measures_are_those_of_compare_in_other_units() -> None:
    found = measures_of({"time_ns": 2_500_000, "page_writes": 7, "energy_nj": None})
    assert (found["time_ms"], found["page_writes"], found["energy_mj"]) == (2.5, 7, None)


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    assert read_baseline(path) is None
    before = row({"time_ms": 1.23456789, "page_writes": 7, "years": None}, kernel="a", board="b")
    write_baseline(path, [before], "1.0")
    kept = read_baseline(path)
    assert kept is not None
    assert {line.verdict for line in judged([before], kept.measures)} == {"same"}
    assert kept.changed(before, "1.0") == []
    now = row({}, kernel="c", board="b")
    assert kept.changed(now, "1.1") == ["kernel", "flashbed (1.0, now 1.1)"]
    assert kept.missing([]) == ["rev-a, logger"]
    assert len(path.read_text().splitlines()) == 3, "a row a line"


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"format": 1, "flashbed": "1", "rows": [1]}', '{"format": 9, "rows": []}',
     '{"format": 1, "flashbed": "1", "rows": [{"key": ["a", "b", ""], "measures": {"time_ms": "x"},'
     ' "inputs": {}}]}'],
)  # fmt: skip
def test_another_file_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"b\.json: "):
        read_baseline(path)
