"""`table --where --sort --columns`: what it keeps, and what it refuses in one line."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.results.selecting import select

ROWS = pl.LazyFrame(
    {
        "fs": ["jffs2", "ubifs", "yaffs2"],
        "requests": [8, 64, None],
        "mean": [0.5, 1.5, 2.5],
        "mounted": [True, False, None],
    }
)


def kept(where: list[str], columns: str = "fs", sort: str = "") -> list[str]:
    rows = select(ROWS, columns.split(","), sort.split(",") if sort else [], where)
    return rows.collect()["fs"].to_list()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("fs=jffs2", ["jffs2"]), ("fs=jffs2,yaffs2", ["jffs2", "yaffs2"]),
        ("fs!=jffs2", ["ubifs", "yaffs2"]), ("requests>=64", ["ubifs"]), ("requests<64", ["jffs2"]),
        ("requests = 8", ["jffs2"]), ("mean>1", ["ubifs", "yaffs2"]), ("mounted=false", ["ubifs"]),
        ("fs=", []),
    ],
)  # fmt: skip
def test_a_condition_keeps_the_rows_that_fulfil_it(where: str, found: list[str]) -> None:
    assert kept([where]) == found


def test_all_conditions_hold_together() -> None:
    assert kept(["requests>1", "mean>1"]) == ["ubifs"]


def test_rows_are_sorted_and_what_is_not_known_comes_last() -> None:
    assert kept([], sort="-requests") == ["ubifs", "jffs2", "yaffs2"]
    assert kept([], sort="requests,fs") == ["jffs2", "ubifs", "yaffs2"]


@pytest.mark.parametrize(
    ("columns", "sort", "where", "word"),
    [
        (["size"], [], [], "--columns size"), ([], ["-size"], [], "--sort size"),
        ([], [], ["size=1"], "--where size"), ([], [], ["fs"], "--where fs: COLUMN"),
        ([], [], ["requests>many"], "'many' is not a number"),
        ([], [], ["mounted=yes"], "true or false"),
    ],
)  # fmt: skip
def test_what_the_table_does_not_have_is_one_line(
    columns: list[str], sort: list[str], where: list[str], word: str
) -> None:
    with pytest.raises(InputError, match=word):
        select(ROWS, columns, sort, where)
