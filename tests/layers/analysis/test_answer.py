"""The answer of a run compares choices that did the same work, and cases where they did not."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.analysis.answer import ROWS_MAX, answer
from flashbed.tables.columns import conform

PAGE = {"small": 2048, "large": 4096}


def cases(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {
        "target": "sim", "board": "small", "kernel": "6.1", "fs": "jffs2", "pattern": "random",
        "requests": 8, "seed": 1, "time_ns": 100, "flash_time_ns": 90, "flash_reads": 1,
        "flash_programs": 4, "flash_erases": 0, "flush_programs": 1, "bytes_written": 8192,
    }  # fmt: skip
    return conform(pl.DataFrame([usual | row for row in rows]), "cases")


def test_choices_with_the_same_works_are_compared_by_their_sums() -> None:
    found = answer(
        cases(
            {"requests": 8, "time_ns": 10}, {"requests": 64, "time_ns": 50},
            {"fs": "ubifs", "requests": 8, "time_ns": 30},
            {"fs": "ubifs", "requests": 64, "time_ns": 20},
        ),
        PAGE,
    )  # fmt: skip
    assert (found.works, found.left, found.axes) == (2, 0, ("fs",))
    rows = found.rows.select("fs", "cases", "time_ns", "flash_reads").rows()
    assert rows == [("ubifs", 2, 50, 2), ("jffs2", 2, 60, 2)]


def test_cases_stand_alone_where_works_differ() -> None:
    found = answer(cases({"requests": 8, "time_ns": 10}, {"fs": "ubifs", "requests": 64}), PAGE)
    assert (found.works, found.axes) == (0, ("fs", "requests"))
    assert found.rows["fs"].to_list() == ["jffs2", "ubifs"]


def test_amplification_counts_what_the_flush_programmed_and_the_chips_own_pages() -> None:
    found = answer(cases({}, {"board": "large"}, {"board": "unknown"}), PAGE)
    assert found.rows["amplification"].to_list() == [5 * 2048 / 8192, 5 * 4096 / 8192, None]


def test_amplification_counts_the_pages_of_a_changed_chip() -> None:
    """With `--set chip.page_bytes=4096` it was half of what it is."""
    chips = ("default", "read_array_ns=7+page_bytes=512", "page_bytes=4096+oob_bytes=128")
    found = answer(cases(*({"chip": chip} for chip in chips)), PAGE)
    amplified = dict(found.rows.select("chip", "amplification").rows())
    assert amplified == dict(zip(chips, (5 * n / 8192 for n in (2048, 512, 4096)), strict=True))


def test_amplification_of_nothing_written_is_not_known() -> None:
    found = answer(cases({"bytes_written": 0}, {"bytes_written": None, "fs": "ubifs"}), PAGE)
    assert found.rows["amplification"].null_count() == 2


def test_a_sum_with_an_unknown_value_is_not_known() -> None:
    found = answer(cases({"seed": 1, "time_ns": None}, {"seed": 2}), PAGE)
    assert found.rows["time_ns"].to_list() == [None]
    assert found.rows["flash_time_ns"].to_list() == [180]
    assert found.best_by == "flash_time_ns"


def test_only_the_first_rows_are_shown_and_the_others_counted() -> None:
    found = answer(cases(*({"read_ahead_kib": 4 * n, "time_ns": n} for n in range(25))), PAGE)
    assert found.rows.height == ROWS_MAX
    assert found.left == 5


@pytest.mark.parametrize("axis", ["target", "mount", "chip", "window"])
def test_every_choice_is_a_row(axis: str) -> None:
    found = answer(cases({axis: "one"}, {axis: "other"}), PAGE)
    assert found.axes == (axis,)
