"""The answer of a run compares choices that did the same work, and cases where they did not."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis.answer import ROWS_MAX, answer
from flashbed.results.columns import conform

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


def test_a_choice_whose_calls_failed_stands_last_and_did_not_the_same_work() -> None:
    """62 blocks were ranked first under "the same work for each": 11,257 calls had failed there."""
    few = {"partition": "blocks=62", "failed": 11257, "failed_errno": "ENOSPC 11255, short 2"}
    found = answer(cases({"time_ns": 90}, few | {"time_ns": 10}, {"fs": "ubifs"}), PAGE)
    assert found.rows["failed"].to_list() == [None, None, 11257]
    assert found.title.startswith("2 of 3 configurations did the same work, fastest first")
    (note,) = found.notes
    assert note.startswith("WARNING: 11,257 calls failed (ENOSPC 11,255, short writes 2)")
    assert "failed" in found.measured


def test_choices_that_all_failed_are_no_comparison() -> None:
    failed = {"failed": 3, "failed_errno": "EINVAL 3"}
    found = answer(cases(failed, failed | {"fs": "ubifs"}), PAGE)
    assert found.title == "2 configurations; calls failed in each of them"
    assert "WARNING: 6 calls failed (EINVAL)" in found.notes[0]
    (one,) = answer(cases(failed), PAGE).notes
    assert answer(cases(failed), PAGE).title == "1 case; calls failed"
    assert one.startswith("WARNING: 3 calls failed (EINVAL)")


@pytest.mark.parametrize("axis", ["state", "faults", "pattern", "pause_ns", "file_bytes"])
def test_an_axis_that_varies_alone_is_a_column(axis: str) -> None:
    """Three states printed one row, their sum."""
    found = answer(cases({axis: "1"}, {axis: "2"}, {axis: "3"}), PAGE)
    assert (found.axes, found.rows.height) == ((axis,), 3)


def test_an_axis_that_was_asked_for_is_a_column_beside_the_choices() -> None:
    rows = [{"fs": fs, "requests": n} for fs in ("jffs2", "ubifs") for n in (8, 64)]
    assert answer(cases(*rows), PAGE).axes == ("fs",)
    found = answer(cases(*rows), PAGE, apart=["requests"])
    assert (found.axes, found.rows.height) == (("fs", "requests"), 4)
    assert found.title == "4 cases, fastest first"


def test_seeds_are_repetitions_and_no_column() -> None:
    found = answer(cases({"seed": 1}, {"seed": 2}), PAGE)
    assert (found.axes, found.title) == ((), "The sum of 2 cases")


def test_a_time_that_is_not_known_is_told_with_its_reason() -> None:
    why = "zstd has no price on x (boards/x.toml, [software])"
    found = answer(cases({"time_ns": None, "time_unknown": why}, {"fs": "ubifs"}), PAGE)
    assert f"the time is not known: {why}" in found.notes


def test_the_compressor_that_was_used_is_named() -> None:
    rows = cases({}, {"fs": "ubifs"}, {"fs": "yaffs2"}, {"fs": "ubifs", "compressor": "lzo"})
    rows = rows.with_columns(pl.col("compressor").fill_null("default"))
    used = {("6.1", "jffs2"): "zlib", ("6.1", "ubifs"): "zstd"}
    (note,) = answer(rows, PAGE, used).notes
    assert note.startswith("compressor: jffs2 zlib, ubifs zstd (the kernel's default;")
    assert answer(rows.with_columns(bytes_written=0), PAGE, used).notes == ()
    older = pl.concat([rows, cases({"kernel": "3.13", "fs": "ubifs", "compressor": "default"})])
    (note,) = answer(older, PAGE, used | {("3.13", "ubifs"): "lzo"}).notes
    assert "ubifs lzo on Linux 3.13 and zstd on Linux 6.1" in note
