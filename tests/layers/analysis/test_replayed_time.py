"""A replay that takes another time than its recording says so, in one line."""

from __future__ import annotations

import polars as pl

from flashbed.answers.analysis.replayed_time import COLUMNS, other_time

SECOND_NS = 10**9


def _note(
    recorded_s: float, *replayed_s: float | None, pattern: str = "recorded", rounds: str = "1"
) -> str | None:
    rows = [
        ("sim", "ubifs", pattern, rounds, None if each is None else round(each * SECOND_NS))
        for each in replayed_s
    ]
    schema = dict.fromkeys(COLUMNS, pl.String) | {"elapsed_ns": pl.Int64}
    cases = pl.DataFrame(rows, schema, orient="row")
    return other_time(cases, round(recorded_s * SECOND_NS))


def test_the_replay_that_is_furthest_away_is_named() -> None:
    note = _note(600, 601, 1742, 1000)
    assert note is not None
    assert "\n" not in note
    assert "600.0 s when it was recorded, its replay 1,742.0 s on sim, ubifs" in note
    assert "the furthest of 2 replays" in note


def test_a_tenth_or_a_second_is_near() -> None:
    assert _note(600, 545, 655, None) is None
    assert _note(0.1, 1.0) is None
    assert _note(600, 530) is not None


def test_a_replay_without_pauses_is_not_meant_to_take_as_long() -> None:
    assert _note(600, 1, pattern="flat-out") is None


def test_a_replay_of_several_rounds_takes_longer_on_purpose() -> None:
    assert _note(600, 6000, rounds="10") is None
