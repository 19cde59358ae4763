"""Savings, agreement and verdicts on tables small enough to check by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from flashbed.analysis import agreement, agreement_summary, curves, judge, measures, savings
from flashbed.energy import ENERGY_COLUMNS
from flashbed.experiment import Claim, load_experiment

AXES = {
    "board": "omap3evm", "kernel": "2.6.37", "request_bytes": 4096, "file_bytes": 5242880,
    "flash_programs": 0, "flash_erases": 0,
    "flash_time_ns": None,
}  # fmt: skip


def case(read_ahead_kib: int, seed: int, time_ns: int, flash_reads: int, **other: Any) -> Any:
    row = {
        "target": "sim", "fs": "jffs2", "pattern": "random", "requests": 8, "seed": seed,
        "read_ahead_kib": read_ahead_kib, "time_ns": time_ns, "flash_reads": flash_reads,
    }  # fmt: skip
    row |= AXES | dict.fromkeys(ENERGY_COLUMNS) | other
    identity = "-".join(
        str(row[k]) for k in ("fs", "pattern", "requests", "seed", "read_ahead_kib")
    )
    return {"case_id": identity, **row}


def test_savings_are_the_mean_over_seeds_of_each_seeds_saving() -> None:
    cases = pl.DataFrame(
        [case(128, 1, 100, 10), case(0, 1, 50, 5), case(128, 2, 1000, 40), case(0, 2, 900, 40)]
    )
    (row,) = savings(cases).to_dicts()
    assert row["time_saved_pct"] == pytest.approx((50 + 10) / 2)
    assert row["flash_reads_saved_pct"] == pytest.approx(25)
    assert row["seeds"] == 2
    (point,) = curves(savings(cases), "time_saved_pct").to_dicts()
    assert point["stack"] == "Linux 2.6.37 simulated, omap3evm"
    assert point["high"] - point["low"] == pytest.approx(2 * row["time_saved_pct_sd"])


def test_a_run_without_its_partner_and_a_run_of_nothing_save_nothing() -> None:
    assert savings(pl.DataFrame([case(128, 1, 100, 10), case(0, 2, 50, 5)])).height == 0
    (row,) = savings(pl.DataFrame([case(128, 1, 10, 0), case(0, 1, 10, 0)])).to_dicts()
    assert row["flash_reads_saved_pct"] == 0


def test_a_request_slower_than_a_stall_read_the_chip() -> None:
    cases = pl.DataFrame([case(128, 1, 100, 10, pattern="sequential"),
                          case(0, 1, 50, 5, pattern="sequential")])  # fmt: skip
    waits = [4000, 1, 1, 1, 4000, 1, 1, 1, 4000, 1]
    requests = pl.DataFrame(
        {
            "case_id": cases["case_id"][0],
            "target": "sim",
            "op": ["read"] * 10,
            "offset_bytes": [4096 * page for page in range(10)],
            "latency_ns": waits,
            "flash_time_ns": [None] * 10,
        }
    )
    (row,) = measures(cases, requests, stall_ns=1000).to_dicts()
    assert row["prefetch_kib"] == 16
    assert row["cache_hit_pct"] == 70


def test_agreement_is_in_percent_of_the_kernel() -> None:
    both = [case(0, 1, 110, 98), case(0, 1, 100, 100, target="emulator"), case(0, 2, 1, 1)]
    table = agreement(pl.DataFrame(both))
    (row,) = table.to_dicts()
    assert row["time_error_pct"] == pytest.approx(10)
    assert row["flash_reads_error_pct"] == pytest.approx(-2)
    assert row["flash_programs_error_pct"] == 0  # none on either
    (summary,) = agreement_summary(table).to_dicts()
    assert summary["flash_reads_error_pct_max"] == pytest.approx(2)


def test_counting_where_the_kernel_counts_none_is_an_error_of_100() -> None:
    both = [case(0, 1, 1, 1, flash_erases=3), case(0, 1, 1, 1, target="emulator")]
    assert agreement(pl.DataFrame(both))["flash_erases_error_pct"].to_list() == [100.0]


def verdict(claim: Claim, values: Mapping[tuple[str, str, int], float]) -> tuple[float | None, str]:
    experiment = load_experiment("figure3").model_copy(update={"claim": (claim,)})
    rows = [
        {"target": "sim", "board": "omap3evm", "kernel": "2.6.37", "fs": fs, "pattern": pattern,
         "requests": requests, "time_saved_pct": value}
        for (fs, pattern, requests), value in values.items()
    ]  # fmt: skip
    first = judge(experiment, pl.DataFrame(rows), pl.DataFrame(rows))[0]
    assert first.judged["emulator"].verdict == "not measured"
    return first.judged["sim"].value, first.judged["sim"].verdict


def claim(reduce: str, operator: str, bound: float, **other: Any) -> Claim:
    values = {
        "id": "c", "text": "t", "source": "s", "reading": "r", "unit": "%",
        "metric": "time_saved_pct", "fs": ["jffs2"], "pattern": ["random"], "requests": [8, 16, 32],
        "reduce": reduce, "operator": operator, "bound": bound,
    }  # fmt: skip
    return Claim.model_validate(values | other)


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("min", 10),
        ("max", 40),
        ("mean", 25),
        ("largest_rise", 30),
        ("last_above_lowest", 15),
        ("last_above_rest", -15),
    ],
)
def test_a_claim_is_a_number_made_of_points(reduce: str, expected: float) -> None:
    values = {("jffs2", "random", 8): 10, ("jffs2", "random", 16): 40, ("jffs2", "random", 32): 25}
    assert verdict(claim(reduce, ">=", expected), values) == (expected, "agrees")
    assert verdict(claim(reduce, ">", expected), values) == (expected, "differs")
    within = claim(reduce, "within", expected + 5, tolerance=5)
    assert verdict(within, values) == (expected, "agrees")


def test_a_claim_with_a_point_missing_is_not_measured() -> None:
    values = {("jffs2", "random", 8): 10.0, ("jffs2", "random", 16): 40.0}
    assert verdict(claim("min", ">", 0), values) == (None, "not measured")


def test_file_systems_are_compared_point_by_point() -> None:
    alike = claim("largest_difference_between_fs", "<=", 5, fs=["jffs2", "yaffs2"], requests=[8])
    values = {("jffs2", "random", 8): 10.0, ("yaffs2", "random", 8): 16.0}
    assert verdict(alike, values) == (6.0, "differs")
