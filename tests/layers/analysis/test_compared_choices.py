"""A comparison's table, its order and its sentences, on a small frame that is made up."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis.answer import answer
from flashbed.answers.analysis.compared_choices import (
    Comparison,
    cautions,
    changes,
    compared,
    effect,
    label,
    ordered,
    orders,
    sentences,
    with_years,
)
from flashbed.results.columns import conform

Row = dict[str, Any]
USUAL: Row = {
    "target": "sim", "board": "small", "kernel": "6.1", "fs": "jffs2", "pattern": "recorded",
    "requests": 1, "seed": 1, "time_ns": 100, "flash_time_ns": 90, "flash_reads": 10,
    "flash_programs": 40, "flash_erases": 200, "flush_programs": 10, "flush_reads": 1,
    "flush_erases": 2, "bytes_written": 8192, "failed": 0,
}  # fmt: skip


def table(
    *rows: Row, calls: dict[str, list[int | None]] | None = None, by: str | None = None
) -> Comparison:
    """A comparison of cases with these values; `calls` are latencies by file system."""
    full = [USUAL | {"case_id": str(at)} | row for at, row in enumerate(rows)]
    cases = conform(pl.DataFrame(full, infer_schema_length=None), "cases")
    found = answer(cases, {"small": 2048})
    named = [
        (row["case_id"], row["target"], "pause" if latency == -1 else "write", latency)
        for row in full
        for latency in (calls or {}).get(row["fs"], [])
    ]
    schema = {
        "case_id": pl.String, "target": pl.String, "op": pl.String, "latency_ns": pl.Int64
    }  # fmt: skip
    requests = pl.DataFrame(named, schema=schema, orient="row").lazy()
    whole = compared(found.rows, found.axes, cases, requests)
    return ordered(whole, found.axes, by or found.best_by, ["sim", "uml"])


def column(found: Comparison, name: str) -> list[Any]:
    return found.rows[name].to_list()


@pytest.mark.parametrize(
    ("latencies", "quantiles"),
    [
        (list(range(1, 101)), (50, 99, 100)),
        ([3, 1, 2], (2, 3, 3)),
        ([1, 2], (1, 2, 2)),
        ([7], (7, 7, 7)),
        ([5, -1, 5, -1], (5, 5, 5)),  # pauses are no calls
        ([1, None, 3], (None, None, None)),
        ([], (None, None, None)),
    ],
)
def test_quantiles_are_nearest_ranks_of_calls(
    latencies: list[int | None], quantiles: tuple[int | None, ...]
) -> None:
    found = table({"time_ns": 1}, calls={"jffs2": latencies})
    assert found.rows.select("p50_ns", "p99_ns", "worst_ns").row(0) == quantiles


def test_what_the_cache_held_is_counted() -> None:
    found = table({}, {"fs": "ubifs", "flush_programs": None, "flush_reads": None, "time_ns": 200})
    rows = found.rows.select("fs", "page_reads", "page_writes", "left_in_cache", "erases").rows()
    assert rows == [("jffs2", 11, 50, 10, 202), ("ubifs", 10, 40, None, 202)]


def test_the_best_is_first_and_what_failed_last() -> None:
    found = table(
        {"fs": "jffs2", "time_ns": 10, "failed": 2},
        {"fs": "ubifs", "time_ns": 30},
        {"fs": "yaffs2", "time_ns": 20},
    )
    assert column(found, "fs") == ["yaffs2", "ubifs", "jffs2"]
    (said,) = sentences(found)
    assert said.startswith("yaffs2: 1.50 times less time in calls than ubifs; no difference in")
    assert "failed" in found.measured


def test_ties_are_ordered_by_page_writes_and_unknown_values_are_behind() -> None:
    found = table(
        {"fs": "jffs2", "energy_nj": 5, "flash_programs": 60},
        {"fs": "ubifs", "energy_nj": 5},
        {"fs": "yaffs2", "energy_nj": None},
        by="energy_nj",
    )
    assert column(found, "fs") == ["ubifs", "jffs2", "yaffs2"]
    assert found.title == "3 configurations, least energy first"


def test_differences_below_2_percent_are_none() -> None:
    found = table(
        {"time_ns": 1000}, {"fs": "ubifs", "time_ns": 1019}, {"fs": "yaffs2", "time_ns": 1021}
    )
    better, alike = sentences(found)
    assert better.startswith("jffs2: 1.02 times less time in calls than yaffs2")
    assert alike == "jffs2: no difference from ubifs"


def test_a_sentence_says_what_is_better_worse_and_none_of_both() -> None:
    found = table(
        {"time_ns": 100, "flash_reads": 0, "flush_reads": 0},
        {"fs": "ubifs", "time_ns": 142, "flash_programs": 15, "flash_erases": 3},
    )
    assert sentences(found) == [
        "jffs2: 1.42 times less time in calls, no page reads instead of 11 than ubifs,"
        " which has 2.00 times fewer page writes, 40.40 times fewer erases"
    ]


def test_few_erases_say_nothing() -> None:
    erases = {"flush_erases": 0, "flash_erases": 1}
    found = table(erases | {"time_ns": 50}, erases | {"fs": "ubifs", "flash_erases": 2})
    (said,) = sentences(found)
    assert said.endswith("; too few erases to compare")
    assert "fewer erases" not in said


YEARS = {
    "case_id": pl.String,
    "target": pl.String,
    "years_low": pl.Float64,
    "years_high": pl.Float64,
}


@pytest.mark.parametrize(
    ("years", "said"),
    [
        ((5.0, 6.0), "8.0 to 10 years against 5.0 to 6.0 years"),
        ((5.0, 9.0), "8.0 to 10 years against 5.0 to 9.0 years: these ranges overlap, so the"),
        ((8.0, 10.0), "8.0 to 10 years for both"),
        ((None, None), ""),
    ],
)
def test_years_that_overlap_cannot_be_told_apart(
    years: tuple[float | None, float | None], said: str
) -> None:
    found = table({}, {"fs": "ubifs", "time_ns": 200})
    cases = pl.DataFrame({"case_id": ["0", "1"], "target": ["sim"] * 2, "fs": ["jffs2", "ubifs"]})
    ranges = pl.DataFrame(
        [("0", "sim", 8.0, 10.0), ("1", "sim", *years)], schema=YEARS, orient="row"
    )
    rows = with_years(found.rows, found.axes, cases, ranges)
    (sentence,) = sentences(ordered(rows, found.axes, "time_ns", ["sim"]))
    assert said in sentence
    assert ("years" in sentence) == bool(said)


def test_rows_of_several_cases_have_no_years() -> None:
    found = table({"seed": 1}, {"seed": 2}, {"fs": "ubifs"}, {"fs": "ubifs", "seed": 2})
    cases = pl.DataFrame({"case_id": ["0"], "target": ["sim"], "fs": ["jffs2"]})
    ranges = pl.DataFrame([("0", "sim", 8.0, 10.0)], schema=YEARS, orient="row")
    assert with_years(found.rows, found.axes, cases, ranges)["years_low"].null_count() == 2


def test_targets_stand_beside_each_other_in_the_order_of_the_first() -> None:
    found = table(
        {"flash_time_ns": 20, "time_ns": 30}, {"fs": "ubifs", "flash_time_ns": 10, "time_ns": 40},
        {"target": "uml", "flash_time_ns": 20, "time_ns": None, "flash_programs": 90},
        {"target": "uml", "fs": "ubifs", "flash_time_ns": 25, "time_ns": None},
    )  # fmt: skip
    assert found.by == "flash_time_ns"
    assert list(zip(column(found, "fs"), column(found, "target"), strict=True)) == [
        ("ubifs", "sim"), ("ubifs", "uml"), ("jffs2", "sim"), ("jffs2", "uml"),
    ]  # fmt: skip
    assert orders(found) == [
        "chip busy: on sim less with ubifs than with jffs2, on uml the other way round"
    ]


def test_targets_that_agree_are_said_to() -> None:
    found = table(
        {}, {"fs": "ubifs", "flash_programs": 90},
        {"target": "uml"}, {"target": "uml", "fs": "ubifs", "flash_programs": 91},
    )  # fmt: skip
    assert orders(found) == ["sim and uml order the configurations alike by page writes"]


def test_changes_are_in_percent_of_the_kept_row() -> None:
    now = table({"time_ns": 110, "flash_reads": 0, "flush_reads": 0}, {"fs": "ubifs"}).rows
    kept = table({"flash_reads": 0, "flush_reads": 0}, {"fs": "yaffs2"}).rows
    found = changes(now, kept, ["fs"]).sort("fs")
    names = ["time_ns_change_pct", "page_reads_change_pct", "energy_nj_change_pct"]
    first, second = found.select(names).rows()
    assert first == (pytest.approx(10.0), 0.0, None)
    assert second == (None, None, None)


def test_choices_are_named_as_they_are_set() -> None:
    row = {"fs": "ubifs", "compressor": "zstd", "vm": "dirty_ratio=5", "kernel": "6.1"}
    assert label(row, ["kernel", "fs", "compressor", "vm"]) == (
        "ubifs with zstd, kernel 6.1, vm.dirty_ratio=5"
    )
    assert label(row, ["compressor"]) == "compressor zstd"
    assert label(row, []) == "it"


def test_what_the_measures_do_not_show_is_said() -> None:
    names = ("page4096", "page4096-wal-syncnormal")
    found = table({"database": names[0]}, {"database": names[1], "vm": "dirty_ratio=5"})
    assert [line.split()[0] for line in cautions(found)] == ["synchronous", "a"]
    assert cautions(table({}, {"fs": "ubifs"})) == []


def test_an_effect_is_said_from_the_side_of_what_is_set() -> None:
    names = (
        "time_ns",
        "p99_ns",
        "flash_time_ns",
        "page_reads",
        "page_writes",
        "erases",
        "energy_nj",
    )
    base: Row = dict.fromkeys(names) | {"time_ns": 100, "p99_ns": 50, "page_writes": 10}
    assert effect(base | {"time_ns": 101}, base, by="time_ns") is None
    slower = base | {"time_ns": 150, "p99_ns": 100, "page_writes": 5}
    assert effect(slower, base, by="time_ns") == (
        "2.00 times fewer page writes, but 1.50 times more time in calls, 2.00"
        " times higher p99 latency"
    )
    fuller = base | {"left_bytes": 50}
    assert effect(fuller, base | {"left_bytes": 100}, by="left_bytes") == (
        "2.00 times fewer bytes left"
    )
    assert effect(fuller, base | {"left_bytes": 100}, by="time_ns") is None
