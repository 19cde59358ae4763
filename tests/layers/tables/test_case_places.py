"""Places of cases follow the experiment's order, and the last folder with a case counts."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.results.case_places import Names, places_of


def listed(folder: int, *cases: tuple[str, str]) -> pl.DataFrame:
    frame = pl.DataFrame(cases, schema=["case_id", "target"], orient="row")
    return frame.with_columns(pl.lit(folder, pl.Int64).alias("_folder"))


def test_places_follow_order_and_target_and_other_cases_come_last() -> None:
    pieces = [
        listed(0, ("z", "sim"), ("b", "sim"), ("a", "uml")),
        listed(1, ("a", "sim"), ("b", "sim"), ("y", "board-x")),
    ]
    places = places_of(pieces, ["b", "a", "c"])
    rows = pl.concat(pieces)
    placed = rows.with_columns(places.of(rows)).drop_nulls().sort("_place")
    assert placed.select("case_id", "target", "_folder").rows() == [
        ("b", "sim", 1), ("a", "sim", 1), ("a", "uml", 0), ("y", "board-x", 1), ("z", "sim", 0),
    ]  # fmt: skip
    strange = listed(1, ("c", "sim"), ("z", "sim"))
    assert places.of(strange).to_list() == [None, None]


def test_names_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = pl.Series.hash

    def poor(self: pl.Series, seed: int = 0) -> pl.Series:
        return hashed(self.str.head(1), seed) if seed == 0 else hashed(self, seed)

    monkeypatch.setattr(pl.Series, "hash", poor)
    names = Names.of(["a1", "a2", "b1"])
    assert names.seed == 1
    assert names.rank(pl.Series(["b1", "a2", "a3", "a1"])).to_list() == [2, 1, None, 0]
