"""Calibration finds the costs it was shown, and never sees a case of an experiment."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.bench import calibration
from flashbed.bench.calibration.cases import PAUSE_NS
from flashbed.bench.calibration.fit import TIMER_SLACK_NS
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.targets.base import Program, RunOptions
from flashbed.targets.sim import SimTarget


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("emulated")


@pytest.fixture(scope="module")
def cases(board: Board) -> list[Program]:
    return calibration.programs(board, load_kernel("6.1"))


def silent(_what: str, _done: int) -> None:
    """No progress is shown."""


def simulated_ns(cases: list[Program]) -> list[int]:
    times: dict[str, int] = {}
    for batch in SimTarget().run(cases):
        assert not batch.failures
        times |= dict(batch.cases.select("case_id", "time_ns").iter_rows())
    return [times[program.case_id] for program in cases]


@pytest.fixture(scope="module")
def times_ns(cases: list[Program]) -> list[int]:
    return simulated_ns(cases)


@pytest.fixture(scope="module")
def fitted(cases: list[Program], times_ns: list[int]) -> calibration.Fit:
    return calibration.fit(cases, times_ns)


def test_the_fit_explains_times_that_the_model_itself_made(fitted: calibration.Fit) -> None:
    """Single costs may trade against each other; what they come to together may not."""
    assert fitted.cases["error_pct"].abs().max() < 0.1  # type: ignore[operator]


def test_a_dearer_flash_read_is_found_as_such(
    cases: list[Program], times_ns: list[int], fitted: calibration.Fit
) -> None:
    """4 us more a flash read, and nothing else, moves what a read costs by 4 us.

    What a thread reads in a pause is in no case's time.
    """
    reads: Counter[str] = Counter()
    for batch in SimTarget().run(cases, RunOptions(trace_flash=True)):
        own = batch.flash.filter(kind="read", task="program")
        reads.update(own["case_id"].to_list())
    dearer = [
        time + 4000 * reads[program.case_id] for time, program in zip(times_ns, cases, strict=True)
    ]
    after = calibration.fit(cases, dearer)
    gained = after.costs["nand_read_ns"] - fitted.costs["nand_read_ns"]
    assert gained == pytest.approx(4000, abs=400)
    assert after.cases["error_pct"].abs().max() < 0.1  # type: ignore[operator]


def test_the_software_table_is_replaced_and_the_rest_of_the_profile_kept(
    board: Board, fitted: calibration.Fit
) -> None:
    old = board.path.read_text(encoding="utf-8")
    new = calibration.with_software_table(old, fitted, seen={}, board=board, source="a test")
    before, after = tomllib.loads(old), tomllib.loads(new)
    assert after["software"]["source"] == "a test"
    assert after["software"].keys() == before["software"].keys()
    for by_hand in ("jffs2_erased_byte_ps", "squashfs"):
        assert after["software"][by_hand] == before["software"][by_hand]
    assert {k: v for k, v in after.items() if k != "software"} == {
        k: v for k, v in before.items() if k != "software"
    }


def test_a_profile_whose_software_table_is_not_last_is_refused(
    board: Board, fitted: calibration.Fit
) -> None:
    with pytest.raises(InputError, match="not the last table"):
        calibration.with_software_table(
            "[software]\n[chip]\n", fitted, seen={}, board=board, source="a test"
        )


def test_what_is_seen_in_requests_and_between_them() -> None:
    late = PAUSE_NS + TIMER_SLACK_NS + 3_000
    requests = pl.DataFrame(
        {
            "case_id": ["calibrate-ubifs-kept-8192"] * 3
            + ["calibrate-ubifs-written-40"] * 2
            + ["calibrate-jffs2-paused"] * 3,
            "op": ["write"] * 5 + ["write", "pause", "pause"],
            "start_ns": [100, 83_000, 165_000, 0, 999_999, 0, 1, 2],
            "latency_ns": [900, 0, 0, 1, 1, 7, late + 22_000, late + 60_000],
            "length_bytes": [8192, 8192, 8192, 40, 40, 200, None, None],
        }
    )
    seen = calibration.seen_costs(requests, syscall_ns=3_000)
    assert seen == {"fill_byte_ps": round(1000 * 164_000 / 16_384), "wake_ns": 22_000}


def test_prices_fitted_alone_are_found_and_the_others_stay(
    board: Board, cases: list[Program]
) -> None:
    """6 us more a walk, and nothing else: the fit of two prices finds it, and writes these two."""
    only = ("path_ns", "stat_ns")
    some = calibration.cases_with(cases, only)
    assert {"calibrate-jffs2-stats", "calibrate-ubifs-changed-modes"} <= {c.case_id for c in some}
    assert len(some) < len(cases) / 3
    dearer = board.software.model_copy(update={"path_ns": board.software.path_ns + 6000})
    priced = board.model_copy(update={"software": dearer})
    times_ns = simulated_ns(
        [replace(program, stack=replace(program.stack, board=priced)) for program in some]
    )
    fitted = calibration.fit(some, times_ns, only)
    assert fitted.costs == {"path_ns": dearer.path_ns, "stat_ns": dearer.stat_ns}
    old = board.path.read_text(encoding="utf-8")
    before = tomllib.loads(old)["software"]
    after = tomllib.loads(calibration.with_prices(old, fitted, board))["software"]
    assert after == {**before, **fitted.costs}
    without = "\n".join(line for line in old.splitlines() if not line.startswith("path_ns"))
    again = tomllib.loads(calibration.with_prices(without, fitted, board))["software"]
    assert again == after


def test_a_price_that_is_not_fitted_is_refused(cases: list[Program]) -> None:
    with pytest.raises(InputError, match="--only wake_ns: no price that a calibration fits"):
        calibration.cases_with(cases, ("path_ns", "wake_ns"))
