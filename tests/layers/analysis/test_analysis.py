"""Savings, agreement and verdicts on tables small enough to check by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis import (
    aged,
    agreement,
    agreement_summary,
    curves,
    file_reads,
    judge,
    measures,
    savings,
)
from flashbed.answers.analysis.points import chosen
from flashbed.answers.analysis.verdicts import items
from flashbed.answers.energy.fold import COMPONENTS, ENERGY_COLUMNS
from flashbed.plan import case as plan_case
from flashbed.plan.experiment import Claim, load_experiment

USUAL = {axis: str(plan_case.AXES[axis].usual) for axis in plan_case.CONDITIONS}

AXES = {
    "board": "omap3evm", "kernel": "2.6.37", "request_bytes": 4096, "file_bytes": 5242880,
    "flash_programs": 0, "flash_erases": 0,
    "flash_time_ns": None, "pause_ns": 0, "advice": "none", "window": "forced",
    **USUAL, **dict.fromkeys(ENERGY_COLUMNS),
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


def test_energy_by_component_is_saved_on_each_rail_of_its_own() -> None:
    on = dict.fromkeys(COMPONENTS, 100)
    off = on | {"component_cpu_busy_nj": 0, "component_bus_nj": 0, "component_memory_nj": 0}
    pair = [case(128, 1, 100, 10, **on), case(0, 1, 50, 5, **off)]
    (row,) = savings(pl.DataFrame(pair)).to_dicts()
    assert row["component_cpu_saved_pct"] == pytest.approx(50)
    assert row["component_mem_saved_pct"] == pytest.approx(40)
    apart = abs(row["component_energy_saved_pct"] - row["time_saved_pct"])
    assert row["component_energy_apart_points"] == pytest.approx(apart)
    assert apart > 1


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
    assert row["flash_reads_per_stall"] == pytest.approx(10 / 3)


def test_agreement_is_in_percent_of_the_kernel() -> None:
    both = [case(0, 1, 110, 98), case(0, 1, 100, 100, target="emulator"), case(0, 2, 1, 1)]
    table = agreement(pl.DataFrame(both))
    (row,) = table.to_dicts()
    assert row["time_error_pct"] == pytest.approx(10)
    assert row["flash_reads_error_pct"] == pytest.approx(-2)
    assert row["flash_programs_error_pct"] == 0  # none on either
    (summary,) = agreement_summary(table).to_dicts()
    assert summary["flash_reads_error_pct_max"] == pytest.approx(2)


def test_user_mode_linux_is_compared_with_the_simulator_without_software_time() -> None:
    """Where that ran; the board's comparison stays with the simulator that has it."""
    cases = [
        case(0, 1, 110, 98), case(0, 2, 110, 98), case(0, 1, 5, 99, target="sim-chip"),
        case(0, 1, 5, 100, target="uml"), case(0, 2, 5, 100, target="uml"),
        case(0, 1, 100, 100, target="emulator"),
    ]  # fmt: skip
    table = agreement(pl.DataFrame(cases))
    errors = table.select("target", "seed", "flash_reads_error_pct").rows()
    assert errors == [
        ("uml", 1, pytest.approx(-1)), ("uml", 2, pytest.approx(-2)),
        ("emulator", 1, pytest.approx(-2)),
    ]  # fmt: skip


def test_counting_where_the_kernel_counts_none_is_an_error_of_100() -> None:
    both = [case(0, 1, 1, 1, flash_erases=3), case(0, 1, 1, 1, target="emulator")]
    assert agreement(pl.DataFrame(both))["flash_erases_error_pct"].to_list() == [100.0]


def verdict(claim: Claim, values: Mapping[tuple[str, str, int], float]) -> tuple[float | None, str]:
    experiment = load_experiment("figure3").model_copy(update={"claim": (claim,)})
    rows = [
        {"target": "sim", "board": "omap3evm", "kernel": "2.6.37", "fs": fs, "pattern": pattern,
         "requests": requests, "request_bytes": 4096, "disabled_by": "kernel", "window": "forced",
         "time_saved_pct": value}
        for (fs, pattern, requests), value in values.items()
    ]  # fmt: skip
    first = judge(experiment, {"savings": pl.DataFrame(rows), "rates": pl.DataFrame(rows)})[0]
    assert first.judged["emulator"].verdict == "not measured"
    return first.judged["sim"].value, first.judged["sim"].verdict


def claim(reduce: str, operator: str, bound: float | None, **other: Any) -> Claim:
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
        ("share_of_rise", 2),
    ],
)
def test_a_claim_is_a_number_made_of_points(reduce: str, expected: float) -> None:
    values = {("jffs2", "random", 8): 10, ("jffs2", "random", 16): 40, ("jffs2", "random", 32): 25}
    assert verdict(claim(reduce, ">=", expected), values) == (expected, "agrees")
    assert verdict(claim(reduce, ">", expected), values) == (expected, "differs")
    for low, high, word in ((expected, expected + 1, "agrees"), (expected + 1, 99, "differs")):
        within = claim(reduce, "within", None, low=low, high=high)
        assert verdict(within, values) == (expected, word)


def test_a_claim_with_a_point_missing_is_not_measured() -> None:
    values = {("jffs2", "random", 8): 10.0, ("jffs2", "random", 16): 40.0}
    assert verdict(claim("min", ">", 0), values) == (None, "not measured")


def test_file_systems_are_compared_point_by_point() -> None:
    alike = claim("largest_difference_between_fs", "<=", 5, fs=["jffs2", "yaffs2"], requests=[8])
    values = {("jffs2", "random", 8): 10.0, ("yaffs2", "random", 8): 16.0}
    assert verdict(alike, values) == (6.0, "differs")


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("median_ratio_of_fs", 2),
        ("largest_ratio_of_fs", 3),
        ("smallest_ratio_of_fs", 0.5),
        ("last_ratio_above_rest", 1),
    ],
)
def test_file_systems_are_compared_by_ratios(reduce: str, expected: float) -> None:
    values = {
        ("jffs2", "random", 8): 10.0, ("jffs2", "random", 16): 20.0, ("jffs2", "random", 32): 30.0,
        ("yaffs2", "random", 8): 20.0, ("yaffs2", "random", 16): 10.0,
        ("yaffs2", "random", 32): 90.0,
    }  # fmt: skip
    compared = claim(reduce, ">=", expected, fs=["jffs2", "yaffs2"])
    assert verdict(compared, values) == (expected, "agrees")


def test_a_curve_that_does_not_rise_has_done_no_share_of_it() -> None:
    values = {("jffs2", "random", 8): 9.0, ("jffs2", "random", 16): 8.0, ("jffs2", "random", 32): 9}
    assert verdict(claim("share_of_rise", ">", 0), values) == (0.0, "differs")


def test_what_fadvise_saves_stands_beside_what_a_kernel_without_read_ahead_saves() -> None:
    cases = pl.DataFrame(
        [
            case(128, 1, 100, 10),
            case(0, 1, 50, 5),
            case(128, 1, 60, 5, advice="random"),
            case(0, 1, 1, 1, advice="random"),
        ]
    )
    saved = savings(cases)
    assert dict(saved.select("disabled_by", "time_saved_pct").iter_rows()) == {
        "kernel": pytest.approx(50),
        "fadvise": pytest.approx(40),
    }
    assert curves(saved, "time_saved_pct")["value"].to_list() == [50]


def test_what_is_shipped_is_a_run_of_its_own() -> None:
    """Cases without a window were compared with themselves where a kernel ships none.

    Whatever the simulator did with read-ahead there, "nothing is saved" agreed.
    """
    without = [case(128, 1, 100, 10), case(0, 1, 50, 5)]
    for shipped, expected in (
        (case(128, 1, 100, 10, window="default"), 50),
        (case(0, 1, 50, 5, window="default"), 0),
        (case(0, 1, 80, 8, window="default"), 37.5),
        (case(128, 1, 50, 5, window="default"), 0),
    ):
        saved = savings(pl.DataFrame([*without, shipped]))
        rows = saved.filter(window="default")
        assert rows["time_saved_pct"].to_list() == rows["flash_reads_saved_pct"].to_list()
        assert rows["time_saved_pct"].to_list() == [expected]
        assert saved.filter(window="forced")["time_saved_pct"].to_list() == [50]
    assert not savings(pl.DataFrame(without)).filter(window="default").height


def test_points_are_chosen_by_their_axes_or_are_the_usual_ones() -> None:
    cases = pl.DataFrame(
        [
            case(128, 1, 100, 10),
            case(0, 1, 50, 5),
            case(128, 1, 60, 5, advice="random"),
            case(128, 1, 100, 10, requests=16),
            case(0, 1, 90, 5, requests=16),
        ]
    )
    saved = savings(cases)
    usual = chosen(saved, "time_saved_pct", {}, ["requests"])
    assert usual["value"].to_list() == [50, pytest.approx(10)]
    named = chosen(saved, "time_saved_pct", {"requests": [16, 8]}, [])
    assert named["requests"].to_list() == [16, 8]
    one = chosen(saved, "time_saved_pct", {"requests": [8]}, ["disabled_by"])
    assert sorted(one["value"].to_list()) == [pytest.approx(40), 50]


AGED = [
    case(0, 1, 100, 10), case(0, 2, 200, 0),
    case(0, 1, 300, 20, state="full"), case(0, 2, 400, 20, state="full"),
    case(0, 1, 500, 20, state="full", faults="bad"), case(0, 3, 700, 20, state="full"),
]  # fmt: skip


def test_a_state_is_held_against_the_same_case_on_a_new_partition() -> None:
    points = aged(pl.DataFrame(AGED)).select(
        "state", "faults", "time_over_new", "flash_reads_over_new", "seeds"
    )
    assert points.rows() == [
        ("new", "none", 1.0, 1.0, 2),
        (
            "full",
            "none",
            2.5,
            2.0,
            3,
        ),  # 3 and 2; a seed without a partner, and nothing to divide by
        ("full", "bad", 5.0, 2.0, 1),
    ]


def test_without_a_name_the_new_partition_is_meant_and_a_name_chooses_another() -> None:
    points = aged(pl.DataFrame(AGED))
    assert chosen(points, "time_over_new", {}, ["requests"])["value"].to_list() == [1.0]
    drawn = chosen(points, "time_over_new", {"faults": ["none"]}, ["state"])
    assert drawn["value"].to_list() == [1.0, 2.5]
    only_full = points.filter(pl.col("state") != "new")
    assert chosen(only_full, "time_over_new", {}, [])["faults"].to_list() == ["none"]
    experiment = load_experiment("figure3")
    ratios = [
        (claim("only", ">", 1, requests=[8]), 1.0),
        (claim("smallest_rise", ">", 1, requests=[8], at={"state": ["new", "full"]}), 1.5),
        (claim("only", ">", 1, requests=[8], at={"state": ["full"], "faults": ["bad"]}), 5.0),
    ]
    for one, expected in ratios:
        about = one.model_copy(update={"metric": "time_over_new"})
        (found,) = judge(experiment.model_copy(update={"claim": (about,)}), {"aged": points})
        assert found.judged["sim"].value == expected


def test_a_curve_runs_along_the_axis_that_is_named() -> None:
    sized = claim("last_above_rest", ">", 0, requests=[8, 16], request_bytes=[4096, 2048])
    along = sized.model_copy(update={"along": "request_bytes"})
    rows = [
        {"target": "sim", "board": "omap3evm", "kernel": "2.6.37", "fs": "jffs2",
         "pattern": "random", "requests": requests, "request_bytes": size, "disabled_by": "kernel",
         "window": "forced", "time_saved_pct": float(value)}
        for requests, size, value in ((8, 4096, 10), (8, 2048, 12), (16, 4096, 30), (16, 2048, 33))
    ]  # fmt: skip
    experiment = load_experiment("figure3")
    tables = {"savings": pl.DataFrame(rows), "rates": pl.DataFrame(rows)}

    def value(one: Claim) -> float | None:
        (found,) = judge(experiment.model_copy(update={"claim": (one,)}), tables)
        return found.judged["sim"].value

    assert value(sized) == 33 - 30  # one curve: 10, 12, 30, 33
    assert value(along) == 2  # the smaller of 12 - 10 and 33 - 30
    points = claim(
        "spread", "<=", 5, requests=None,
        points=[{"requests": 8, "request_bytes": 2048}, {"requests": 16, "request_bytes": 4096}],
    )  # fmt: skip
    assert value(points) == 18


def test_a_verdict_that_differs_says_why_and_one_that_agrees_does_not() -> None:
    reasons = [
        {"on": ["sim"], "fs": ["yaffs2"], "why": "another", "evidence": "e"},
        {"on": ["sim"], "why": "because", "evidence": "e"},
    ]
    values = {("jffs2", "random", 8): 10.0}
    for bound, why in ((20, "because"), (5, None)):
        one = claim("min", ">", bound, requests=[8], differs=reasons, item="Figure 1")
        experiment = load_experiment("figure3").model_copy(update={"claim": (one,)})
        rows = pl.DataFrame(
            [{"target": "sim", "board": "omap3evm", "kernel": "2.6.37", "fs": "jffs2",
              "pattern": "random", "requests": 8, "disabled_by": "kernel", "window": "forced",
              "time_saved_pct": values["jffs2", "random", 8]}]
        )  # fmt: skip
        (found,) = judge(experiment, {"savings": rows})
        reason = found.judged["sim"].why
        assert (reason.why if reason else None) == why
        assert items([found]) == {
            "Figure 1": {"sim": (int(why is None), 1), "uml": (0, 0), "emulator": (0, 0)}
        }


def test_a_file_has_been_read_so_fast_when_a_part_of_it_is_read() -> None:
    def row(seq: int, op: str, result: int, latency_ns: int, **other: Any) -> dict[str, Any]:
        return {"case_id": "c", "target": "sim", "seq": seq, "op": op, "result": result,
                "latency_ns": latency_ns} | other  # fmt: skip

    reads = [
        row(0, "open", 0, 9), row(1, "read", 500, 100), row(2, "read", 500, 300),
        row(3, "close", 0, 9), row(4, "open", 0, 9), row(5, "write", 100, 9),
        row(6, "close", 0, 9), row(7, "open", 0, 9), row(8, "read", 1000, 600),
    ]  # fmt: skip
    slow = [one | {"case_id": "d", "latency_ns": 2 * one["latency_ns"]} for one in reads]
    cases = pl.DataFrame(
        [case(0, 1, 1, 1) | {"case_id": "c"}, case(128, 1, 1, 1) | {"case_id": "d"}]
    )
    points = file_reads(cases, pl.DataFrame(reads + slow))
    off = points.filter(read_ahead_kib=0)
    # 25 and 50 % of the first file are there after 500 bytes, of the second after all of it.
    assert dict(off.select("read_pct", "read_throughput_mb_s").iter_rows()) == {
        25: pytest.approx(1500 / 700 * 1e3),
        50: pytest.approx(1500 / 700 * 1e3),
        100: pytest.approx(2000 / 1000 * 1e3),
    }
    assert off["read_throughput_mib_s"].to_list() == pytest.approx(
        [each * 1e6 / 2**20 for each in off["read_throughput_mb_s"]]
    )
    assert off["read_throughput_ratio"].to_list() == [None] * 3
    assert points.filter(read_ahead_kib=128)["read_throughput_ratio"].to_list() == [0.5] * 3
    untimed = pl.DataFrame(reads).with_columns(pl.lit(None, pl.Int64).alias("latency_ns"))
    assert file_reads(cases, untimed)["read_throughput_mb_s"].to_list() == [None] * 3


def test_a_figure_may_choose_a_pause_by_a_whole_number() -> None:
    """`only = { pause_ms = [0] }` ended in an internal error: the column has fractions."""
    table = pl.DataFrame(
        {"kernel": ["k", "k"], "target": ["sim"] * 2, "board": ["b"] * 2, "pause_ms": [0.0, 5.0],
         "response_ms": [1.0, 2.0]}
    )  # fmt: skip
    kept = chosen(table, "response_ms", {"pause_ms": (0,)}, ())
    assert kept["value"].to_list() == [1.0]
