"""A lifetime has two ends, a rate that can be, and no years where they are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import flashbed as fb
from flashbed.answers.lifetimes.estimate import DAY_S, Observed, estimate, estimate_mix
from flashbed.answers.lifetimes.estimate_text import as_json, row, text
from flashbed.answers.lifetimes.given import rounds_per_day, with_rate
from flashbed.answers.lifetimes.mix import mixes_of
from flashbed.answers.lifetimes.subject import RoundWork, Subject
from flashbed.base.errors import InputError
from flashbed.stack.profiles import load_board

CYCLES = 100_000
SHORT = Observed(
    seconds=DAY_S, blocks=2000, erases=7, worst=7, programmed_blocks=100.0, early_erases=7.0,
    used=0.1, wl_threshold=4096,
)  # fmt: skip
"""A day that fills 100 of 2,000 blocks and erases 7; a tenth of the partition is in use."""
WORK = RoundWork(
    seconds=60.0, rounds_per_day=24.0, given_rate=True, bytes_written=4096, bytes_by_cause=None,
    bytes_programmed=20 * 2048, bytes_erased=0, programs=20, bytes_flushed=0, unsynced=0.0,
)  # fmt: skip


def subject(observed: Observed = SHORT, **work: Any) -> Subject:
    return Subject(
        name="p",
        observed=observed,
        board=load_board("emulated"),
        blocks_erased=1,
        target="sim",
        fs="ubifs",
        workload=replace(WORK, **work),
    )


def test_what_was_programmed_bounds_a_short_measurement_from_both_sides() -> None:
    """100 blocks a day are filled, so erased: 2,000 x 100,000 erases last 2 million days.

    At worst the 7 erased blocks were empty, each round through the log copies the tenth in use, and
    UBI's levelling is 8,192 erases from perfect.
    """
    found = estimate(SHORT, CYCLES)
    assert found is not None
    assert found.high == pytest.approx(2_000_000 / 365.25)
    assert found.low == pytest.approx(2000 * (CYCLES - 8192) / (107 / 0.9) / 365.25)
    assert found.steady is False


def test_the_fuller_the_partition_the_earlier_the_low_end() -> None:
    found = [estimate(replace(SHORT, used=used), CYCLES) for used in (0.1, 0.5, 0.9)]
    lows = [each.low for each in found if each and each.low]
    assert lows == sorted(lows, reverse=True)
    assert len({each.high for each in found if each}) == 1


def test_without_static_levelling_data_that_stays_keeps_its_blocks() -> None:
    """On JFFS2 and YAFFS2 the 200 blocks in use may never be erased."""
    found = estimate(replace(SHORT, wl_threshold=None, early_erases=0.0), CYCLES)
    assert found is not None
    assert found.low == pytest.approx(2000 * CYCLES * 0.9 / (100 / 0.9) / 365.25)


def test_seven_erases_are_no_band_of_levelling() -> None:
    """`if the worst block keeps this rate: 23 months to 16 years` was printed."""
    said = text(subject(), estimate(SHORT, CYCLES), CYCLES, "s")
    few = "no block was erased more than 7 times: too few to say"
    assert f"if the worst block keeps this rate: {few}" in said
    assert as_json(subject(), estimate(SHORT, CYCLES), CYCLES, "s")["years_levelling_seen"] == {
        "low": None, "value": None, "high": None,
    }  # fmt: skip


def test_a_run_that_takes_longer_than_its_period_is_refused() -> None:
    with pytest.raises(InputError, match=r"x: a run takes 24.0 h and cannot begin every 60.0 min"):
        rounds_per_day(24.0, DAY_S, 0.0, "x")
    with pytest.raises(InputError, match=r"a run takes 60.0 s and cannot begin every"):
        rounds_per_day(86_400.0, 60.0, 0.0, "x")
    # Ten minutes recorded take a little longer than ten minutes.
    assert rounds_per_day(144.0, 600.2, 0.1, "x") == 144.0


def test_only_a_program_that_sleeps_has_a_pace_of_its_own() -> None:
    assert rounds_per_day(None, 600.0, 0.1, "x") == 144.0
    assert rounds_per_day(None, 0.004, 0.004, "x") is None
    assert rounds_per_day(None, 600.0, None, "x") is None
    assert rounds_per_day(None, None, None, "x") is None


def test_without_a_rate_there_are_no_years_but_how_to_ask() -> None:
    """`11 hours to 3.5 months, 14,724,589 runs a day` was the answer."""
    unrated = subject(replace(SHORT, seconds=None), rounds_per_day=None, given_rate=False)
    assert unrated.lasting(CYCLES) is None
    said = text(unrated, None, CYCLES, "s")
    assert "  lifetime      not known: how often does it run? `--rate 1/h`" in said
    assert "years" not in said
    assert row(unrated, None)[-1] == "how often? --rate"
    assert as_json(unrated, None, CYCLES, "s")["years"] is None


def test_a_program_whose_calls_failed_has_no_lifetime() -> None:
    failed = subject(failed=11_257)
    assert failed.lasting(CYCLES) is None
    assert "  lifetime      none: 11,257 calls failed" in text(failed, None, CYCLES, "s")
    assert row(failed, None)[-1] == "none: 11,257 calls failed"


def test_data_that_was_never_synced_is_a_warning() -> None:
    said = text(subject(unsynced=0.9, bytes_flushed=40_000), estimate(SHORT, CYCLES), CYCLES, "s")
    assert "WARNING: 90% of its data was in the page cache only when it ended" in said
    assert "never synced" not in text(subject(), estimate(SHORT, CYCLES), CYCLES, "s")


def test_rates_stand_behind_a_program() -> None:
    assert with_rate("day.rec@1/d") == ("day.rec", "1/d")
    assert with_rate("a@b.rec@1/5min") == ("a@b.rec", "1/5min")
    assert with_rate("day.rec") == ("day.rec", None)
    assert with_rate("day.rec@often") == ("day.rec@often", None)


def part(filled: float, rounds: float, **more: Any) -> Subject:
    """A program that fills so many blocks a run."""
    seen = replace(SHORT, seconds=DAY_S / rounds, erases=0, worst=0, early_erases=0.0,
                   programmed_blocks=filled, used=0.01, grown=0.01)  # fmt: skip
    programs = round(filled * 64)
    found = subject(seen, rounds_per_day=rounds, programs=programs, **more)
    return replace(found, axes={"fs": "ubifs", "board": "emulated", "kernel": "6.1", "seed": 1})


def test_the_erases_of_a_mix_add_up() -> None:
    """3 blocks 144 times a day, 0.5 blocks 24 times, 170 blocks a month: 449.6 blocks a day."""
    parts = [part(3.0, 144.0), part(0.5, 24.0), part(170.0, 1 / 30.4375)]
    found = estimate_mix([one.observed for one in parts], CYCLES)
    assert found is not None
    a_day = 3 * 144 + 0.5 * 24 + 170 / 30.4375
    assert found.high == pytest.approx(2000 * CYCLES / a_day / 365.25)
    assert found.low == pytest.approx(2000 * (CYCLES - 8192) / (a_day / 0.97) / 365.25)
    (mix,) = mixes_of({"day": [parts[0]], "hour": [parts[1]], "month": [parts[2]]})
    assert mix.shares() == pytest.approx([432 / a_day, 12 / a_day, 170 / 30.4375 / a_day])
    said = mix.text(CYCLES, "s")
    assert "3 programs, ubifs-emulated-6.1 on sim" in said
    assert "  month        0.0329            10,880                357          5.59   1.2%" in said
    found_json = mix.json(CYCLES, "s")
    assert found_json["years"] == {"low": found.low, "high": found.high}
    assert [one["program"] for one in found_json["programs"]] == ["day", "hour", "month"]


def test_what_was_there_before_counts_once_in_a_mix() -> None:
    """Half of the partition was in use, and each of three programs adds a hundredth."""
    parts = [replace(SHORT, used=0.51, grown=0.01, early_erases=0.0, erases=0)] * 3
    found = estimate_mix(parts, CYCLES)
    assert found is not None
    assert found.low == pytest.approx(2000 * (CYCLES - 8192) / (300 / 0.47) / 365.25)


def test_a_mix_that_a_program_leaves_silent_says_which() -> None:
    unrated = part(1.0, 1.0)
    assert unrated.workload
    unrated = replace(unrated, workload=replace(unrated.workload, rounds_per_day=None))
    (mix,) = mixes_of({"day": [part(3.0, 1.0)], "once": [unrated]})
    assert "  lifetime      once: not known: how often does it run?" in mix.text(CYCLES, "s")


def test_programs_share_a_flash_only_where_it_is_the_same() -> None:
    other = replace(part(1.0, 1.0), axes={"fs": "jffs2", "board": "emulated", "kernel": "6.1"})
    with pytest.raises(InputError, match="a, b: not on the same flash"):
        mixes_of({"a": [part(1.0, 1.0)], "b": [other]})
    with pytest.raises(InputError, match="b: several of its cases are on one flash"):
        mixes_of({"a": [part(1.0, 1.0)], "b": [part(1.0, 1.0)] * 2})
    mixes = mixes_of({"a": [part(1.0, 1.0), other], "b": [other, part(1.0, 1.0)]})
    assert [mix.name for mix in mixes] == ["ubifs-emulated-6.1", "jffs2-emulated-6.1"]


def test_each_result_of_a_mix_has_a_rate() -> None:
    with pytest.raises(InputError, match="rate: 1 rates for 2 results"):
        fb.lifetime(["a", "b"], ["1/d"])
    with pytest.raises(InputError, match="rate: one result has one rate"):
        fb.lifetime("a", ["1/d"])
