"""A source's own numbers are held against each other, with what their digits leave open."""

from __future__ import annotations

from typing import Any

import pytest

from flashbed.plan.claims import Claim
from flashbed.plan.cross_checks import CrossCheck, checked
from flashbed.plan.study import cross_checked, load_study


def claim(published: float, half: float) -> Claim:
    return Claim.model_validate(
        {
            "id": "c", "text": "t", "source": "s", "reading": "r", "unit": "%",
            "metric": "time_saved_pct", "fs": ["jffs2"], "pattern": ["random"], "requests": [8],
            "reduce": "only", "operator": "within", "published": published,
            "low": published - half, "high": published + half,
        }
    )  # fmt: skip


def check(formula: str = "100 * (1 - part / 10)", **other: Any) -> CrossCheck:
    row = {"name": "one", "values": {"part": "x/part"}, "printed": 70.0}
    values = {"id": "c", "title": "t", "text": "t", "formula": formula, "unit": "%", "row": [row]}
    return CrossCheck.model_validate(values | other)


def test_a_result_has_the_range_of_its_inputs() -> None:
    (row,) = checked(check(), {"x/part": claim(3, 0.5)})
    assert (row.computed.value, row.computed.low, row.computed.high) == pytest.approx((70, 65, 75))
    assert row.fits
    (row,) = checked(check(), {"x/part": claim(4, 0.5)})
    assert not row.fits


def test_digits_stand_in_place_of_a_claims_range() -> None:
    (row,) = checked(check(digits=1), {"x/part": claim(3.5, 3)})
    assert (row.computed.low, row.computed.high) == pytest.approx((64.5, 65.5))


@pytest.mark.parametrize(
    "formula", ["part +", "part ** 2", "abs(part)", "part.real", "[part]", "part; part"]
)
def test_a_formula_is_arithmetic_and_nothing_else(formula: str) -> None:
    with pytest.raises(ValueError, match="formula: "):
        check(formula)


def test_a_row_has_the_names_of_the_formula() -> None:
    with pytest.raises(ValueError, match="row 'one': values: more is not in both"):
        check("part + more")


def test_table_3_times_figure_6_is_not_figure_7() -> None:
    study = load_study("readahead")
    assert study is not None
    found = {check.id: rows for check, rows in cross_checked(study)}
    rows = found["figure-7-from-table-3"]
    assert [round(row.computed.value, 1) for row in rows] == [9.4, 43.9, 4.2, 24.3]
    assert [row.printed.value for row in rows] == [8.6, 41, 5.3, 25.5]
    assert not any(row.fits for row in rows)
