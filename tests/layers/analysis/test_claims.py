"""A verdict is no kinder than its source is precise, and says how far its number scatters."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis import measures
from flashbed.answers.analysis.verdicts import JudgedClaim, WithoutSeed, judge, worst
from flashbed.plan.case import CONDITIONS
from flashbed.plan.claims import Claim
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.results.run_directory import SCHEMAS, empty_table
from flashbed.stack.profiles import load_kernel

POINTS = (
    "board", "kernel", "fs", "window", "pattern", "requests", "request_bytes", "file_bytes",
    "seed", "pause_ns", "advice",
)  # fmt: skip


def claim(**other: Any) -> Claim:
    values = {
        "id": "c", "text": "t", "source": "s", "reading": "r", "unit": "%",
        "metric": "time_saved_pct", "fs": ["jffs2"], "pattern": ["random"], "requests": [8],
        "reduce": "only", "operator": "within", "low": 45, "high": 55,
    }  # fmt: skip
    return Claim.model_validate(values | other)


def points(value: float) -> dict[str, pl.DataFrame]:
    row = {
        "target": "sim", "board": "omap3evm", "kernel": "2.6.37", "fs": "jffs2",
        "pattern": "random", "requests": 8, "disabled_by": "kernel", "window": "forced",
        "time_saved_pct": value,
    }  # fmt: skip
    return {"savings": pl.DataFrame([row])}


def judged(one: Claim, values: list[float]) -> JudgedClaim:
    """The verdict on the mean of some seeds."""
    experiment = load_experiment("figure3").model_copy(update={"claim": (one,)})
    without = [
        WithoutSeed(frozenset({"sim"}), points(mean(values[:at] + values[at + 1 :])))
        for at in range(len(values))
        if len(values) > 1
    ]
    (verdict,) = judge(experiment, points(mean(values)), without)
    return verdict.judged["sim"]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (45, "agrees"),
        (55, "agrees"),
        (55.1, "agrees in direction"),
        (0.1, "agrees in direction"),
        (0, "differs"),
        (-3, "differs"),
    ],
)
def test_a_sentence_may_hold_without_its_number(value: float, word: str) -> None:
    assert judged(claim(direction={"operator": ">", "bound": 0}), [value]).verdict == word


def test_what_follows_from_the_sources_constants_holds_or_fails() -> None:
    """It had no verdict, so a profile that did not give its source's number back went unseen."""
    derived = claim(derived="time times its constant")
    assert judged(derived, [50]).verdict == "derived, holds"
    assert judged(derived, [56]).verdict == "derived, fails"
    assert worst(["derived, fails", "agrees"]) == "derived, fails"
    assert worst(["derived, holds", "agrees"]) == "agrees"


def test_a_number_that_a_constant_was_fitted_to_is_no_evidence() -> None:
    fitted = claim(published=50, fitted="the price of a byte")
    assert judged(fitted, [50]).counted == "fitted"
    assert judged(fitted, [56]).counted == "unexplained"
    with pytest.raises(ValueError, match="fitted: goes with published"):
        claim(fitted="the price of a byte")
    with pytest.raises(ValueError, match="fitted: goes with published"):
        claim(fitted="a", derived="b", published=50)


def test_what_no_run_explains_is_counted_as_unexplained() -> None:
    shown = {"on": ["sim"], "evidence": "nothing moved it"}
    assert judged(claim(), [60]).counted == "unexplained"
    assert judged(claim(differs=[{**shown, "tried": "another file"}]), [60]).counted == (
        "unexplained"
    )
    assert judged(claim(differs=[{**shown, "why": "the file"}]), [60]).counted == "differs"
    for neither in ({}, {"why": "a", "tried": "b"}):
        with pytest.raises(ValueError, match="why: either it, or tried"):
            claim(differs=[{**shown, **neither}])


def test_a_bound_inside_the_interval_counts_as_close() -> None:
    values = [48.0, 50.0, 53.0, 49.0]
    assert judged(claim(), values).counted == "agrees"
    assert judged(claim(low=49), values).counted == "close"
    assert judged(claim(low=50.5), values).counted == "close"
    assert worst(["close", "agrees"]) == "close"


def test_a_claim_can_say_that_a_target_does_not_measure_it() -> None:
    found = judged(claim(unmeasured={"sim": "its writes have no price"}), [50])
    assert (found.value, found.counted) == (None, "not measured")


def test_the_difference_of_two_patterns_is_a_number() -> None:
    rows = [points(value)["savings"].with_columns(pattern=pl.lit(pattern))
            for pattern, value in (("sequential", 20.0), ("random", 50.0))]  # fmt: skip
    one = claim(pattern=["sequential", "random"], reduce="mean_difference_of_patterns",
                low=29, high=31)  # fmt: skip
    experiment = load_experiment("figure3").model_copy(update={"claim": (one,)})
    (verdict,) = judge(experiment, {"savings": pl.concat(rows)})
    assert verdict.judged["sim"].value == 30


def test_the_interval_of_a_mean_is_students() -> None:
    values = [48.0, 50.0, 53.0, 49.0]
    found = judged(claim(), values)
    half = 3.182446 * stdev(values) / math.sqrt(len(values))  # of 3 degrees of freedom
    assert found.interval is not None
    assert list(found.interval) == pytest.approx(
        [mean(values) - half, mean(values) + half], abs=1e-4
    )
    assert not found.close
    assert judged(claim(low=49), values).close
    assert judged(claim(), [50.0]).interval is None
    assert judged(claim(), [50.0, 50.0]).interval is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"low": None}, "low, high: go with"),
        ({"bound": 3}, "low, high: go with"),
        ({"low": 55}, "is not below"),
        ({"published": 60}, "published: 60.0 is not between"),
        ({"operator": ">"}, "bound: goes with"),
        ({"comment": "it saves {saved} %"}, "numbers.saved: missing"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        claim(**change)


def test_one_file_system_that_differs_makes_a_claim_differ() -> None:
    assert worst(["agrees", "differs", "not measured"]) == "differs"
    assert worst(["agrees", "agrees in direction"]) == "agrees in direction"
    assert worst(["not measured", "agrees"]) == "agrees"
    assert worst([]) == "not measured"


SHIPPED = {
    "shipped-then": 0.5,
    "shipped-ubifs": 1.1,
    "shipped-now": 1.1,
    "shipped-now-block": 0.5,
    "shipped-now-real": 1.1,
}
"""Claims about what kernels ship, and what to do to the reads of those cases alone."""


def of_kernels(moved: float) -> pl.DataFrame:
    """The cases of `kernels` on sim: a window doubles the reads; shipped ones times a factor."""
    rows = []
    for item in plan(load_experiment("kernels")):
        case = item.case
        shipped_kib = load_kernel(case.kernel).shipped_kib(case.fs)
        kib = shipped_kib if case.forced_kib is None else case.forced_kib
        reads = round((200 if kib else 100) * (moved if case.window == "default" else 1))
        axes = {axis: getattr(case, axis) for axis in POINTS}
        axes |= {axis: str(getattr(case, axis)) for axis in CONDITIONS}
        rows.append({"target": "sim", **axes, "read_ahead_kib": kib, "flash_reads": reads})
    empty = pl.DataFrame(schema=SCHEMAS["cases"])
    return pl.concat([empty, pl.DataFrame(rows)], how="diagonal_relaxed").with_columns(
        case_id=pl.int_range(pl.len()).cast(pl.String)
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_a_claim_about_what_is_shipped_hangs_on_those_cases_alone(name: str) -> None:
    """They agreed whatever was measured: cases without a window were compared with themselves."""
    kernels = load_experiment("kernels")
    (one,) = [claim for claim in kernels.claim if claim.id == name]
    # Where the simulator has the window from a profile, a target that measures it is judged so.
    one = one.model_copy(update={"unmeasured": {}})
    experiment = kernels.model_copy(update={"claim": (one,), "figure": ()})
    words = []
    for moved in (1, SHIPPED[name]):
        points = {"savings": measures(of_kernels(moved), empty_table("requests"), 1)}
        verdicts = judge(experiment, points)
        words.append({verdict.judged["sim"].verdict for verdict in verdicts})
    assert words == [{"agrees"}, {"differs"}]
