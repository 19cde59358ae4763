"""Latencies by call and by cause, on a small frame that is made up."""

from __future__ import annotations

import polars as pl

from flashbed.answers.analysis.latencies import CAUSES, latencies, parts_of, sentence, split
from flashbed.results.columns import WAITS, conform

MS = 1_000_000


def requests(*rows: dict[str, object]) -> pl.DataFrame:
    """Calls of 10 ms of the program's own, unless a row says otherwise."""
    usual = {"op": "write", "latency_ns": 10 * MS, "start_ns": 0, **dict.fromkeys(WAITS, 0)}
    full = [
        usual | {"case_id": "a", "target": "sim", "seq": at} | row for at, row in enumerate(rows)
    ]
    return conform(pl.DataFrame(full, infer_schema_length=None), "requests")


CALLS = requests(
    {},
    {"op": "pause", "latency_ns": 900 * MS},
    {"op": "fsync", "latency_ns": 300 * MS, "collection_ns": 200 * MS, "erase_ns": 60 * MS,
     "own_flash_ns": 39 * MS, "file": "log", "start_ns": 1_500 * MS},
    {"own_flash_ns": 4 * MS},
)  # fmt: skip


def test_causes_add_up_to_the_latency_and_pauses_are_no_calls() -> None:
    calls = split(CALLS)
    assert calls["op"].to_list() == ["write", "fsync", "write"]
    assert calls["processor_ns"].to_list() == [10 * MS, 1 * MS, 6 * MS]
    assert calls.select(pl.sum_horizontal(*CAUSES)).to_series().to_list() == [
        10 * MS, 300 * MS, 10 * MS,
    ]  # fmt: skip


def test_calls_have_quantiles_by_kind_and_of_all() -> None:
    found = latencies(split(CALLS))
    assert found.calls["call"].to_list() == ["fsync", "write", "all"]
    assert found.calls["calls"].to_list() == [1, 2, 3]
    assert found.calls["p50_ns"].to_list() == [300 * MS, 10 * MS, 10 * MS]
    assert found.calls["worst_ns"].to_list() == [300 * MS, 10 * MS, 300 * MS]
    assert found.time_ns == 320 * MS


def test_causes_are_those_of_all_calls_and_of_the_slowest() -> None:
    causes = {row["cause"]: row for row in latencies(split(CALLS)).causes.to_dicts()}
    assert set(causes) == {"processor", "own chip", "collection", "erase"}
    assert causes["own chip"]["all_ns"] == 43 * MS
    assert causes["own chip"]["slowest_ns"] == causes["own chip"]["worst_ns"] == 39 * MS
    assert sum(row["all_ns"] for row in causes.values()) == 320 * MS


def test_a_slow_call_is_said_with_what_it_waited_for_the_most_first() -> None:
    found = latencies(split(CALLS), slowest=1)
    (worst,) = found.slowest.to_dicts()
    assert sentence(worst) == (
        "300.0 ms fsync of log at 1.500 s: 200.0 ms collection, 60.00 ms erase, 39.00 ms own chip"
    )


def test_a_run_is_cut_into_parts_of_equal_size() -> None:
    calls = split(requests(*({} for _ in range(10))))
    assert [part.height for part in parts_of(calls, 3)] == [3, 3, 4]
    assert [part.height for part in parts_of(calls, 99)] == [1] * 10
