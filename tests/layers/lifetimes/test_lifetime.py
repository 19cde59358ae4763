"""Lifetime: arithmetic that was done by hand, and readings of boards as people paste them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashbed.answers.lifetimes.counters import COUNTER_MAX, Counters, parse_counters
from flashbed.answers.lifetimes.estimate import (
    DAY_S,
    YEAR_S,
    Observed,
    count_interval,
    dispersion,
    estimate,
)
from flashbed.answers.lifetimes.estimate_text import years_text
from flashbed.answers.lifetimes.given import duration_s, rate_per_day
from flashbed.answers.lifetimes.observed import counters_of
from flashbed.base.errors import InputError

EVEN = Observed(
    seconds=DAY_S, blocks=100, erases=10_000, worst=100, programmed_blocks=9_900, dispersion=0.01
)
"""A hundred blocks, each erased a hundred times a day."""


def test_blocks_that_are_erased_alike_last_as_long_as_the_mean_one() -> None:
    """100,000 erases at 100 a day are 1,000 days, 2.74 years; every block has that."""
    found = estimate(EVEN, 100_000)
    assert found is not None
    assert found.perfect_levelling.value == pytest.approx(1000 / 365.25)
    assert found.levelling_seen.value == pytest.approx(1000 / 365.25, rel=0.01)
    assert found.mean_block_per_day == 100
    assert found.worst_block_per_day == 100
    assert found.low is not None
    assert found.high is not None
    assert 2.55 < found.low < 2.74 < found.high < 2.80
    assert found.steady is True


def test_one_block_that_takes_half_of_all_erases_decides() -> None:
    """5,000 of 10,000 erases a day on one block: 100,000 are reached in 20 days."""
    found = estimate(replace(EVEN, worst=5_000, dispersion=1.0), 100_000)
    assert found is not None
    assert found.levelling_seen.value == pytest.approx(20 / 365.25)
    assert found.perfect_levelling.value == pytest.approx(1000 / 365.25)
    assert found.low is not None
    assert found.high is not None
    assert 18 < found.low * 365.25 < 20 < found.high * 365.25 < 21


def test_ubi_does_not_let_a_block_run_ahead() -> None:
    """The same on UBI: the mean block has 100,000 - 8,192 when the worst is worn out."""
    found = estimate(replace(EVEN, worst=5_000, wl_threshold=4096), 100_000)
    assert found is not None
    assert found.levelled_by_ubi_low == pytest.approx(91_808 / 101.0 / 365.25, rel=0.02)
    assert found.low == found.levelled_by_ubi_low
    assert found.high == found.perfect_levelling.high
    # With an endurance below that difference it guarantees nothing.
    weak = estimate(replace(EVEN, worst=5_000, wl_threshold=4096), 8_000)
    assert weak is not None
    assert weak.levelled_by_ubi_low is None
    assert weak.low == weak.levelling_seen.low


def test_a_used_device_has_the_rest_left() -> None:
    """40,000 of 100,000 erases are gone in the mean block: 600 days are left of 1,000."""
    found = estimate(replace(EVEN, spent_mean=40_000.0, spent_worst=50_000), 100_000)
    assert found is not None
    assert found.perfect_levelling.value == pytest.approx(600 / 365.25)
    assert found.levelling_seen.value == pytest.approx(500 / 365.25)
    over = estimate(replace(EVEN, spent_mean=100_000.0, spent_worst=120_000), 100_000)
    assert over is not None
    assert (over.low, over.high) == (0.0, 0.0)
    assert years_text(over.low, over.high) == "none: the endurance has been reached"


def test_erases_that_do_not_keep_up_with_programs_bound_the_lifetime_from_above_only() -> None:
    """200 blocks' worth programmed a day and 50 erased: at least 2 erases a block and day come."""
    found = estimate(replace(EVEN, erases=50, worst=1, programmed_blocks=200), 100_000)
    assert found is not None
    assert found.steady is False
    assert found.low is None
    assert found.high == pytest.approx(50_000 / 365.25)
    assert years_text(found.low, found.high) == "<= 137 years"


def test_beyond_a_thousand_years_no_number_is_printed() -> None:
    """`<= 14,377 years` was."""
    assert years_text(None, 14_377.0) == "over 1,000 years, or too little data"
    assert years_text(2_000.0, None) == years_text(2_000.0, 9e9) == "over 1,000 years"
    assert years_text(400.0, 14_377.0) == "400 to over 1,000 years"
    assert years_text(None, 999.0) == "<= 999 years"


def test_a_workload_that_programs_without_erasing_wears_all_the_same() -> None:
    found = estimate(replace(EVEN, erases=0, worst=0, programmed_blocks=200), 100_000)
    assert found is not None
    assert found.low is None
    assert found.high == pytest.approx(50_000 / 365.25)


def test_a_workload_that_reads_has_no_end() -> None:
    assert estimate(replace(EVEN, erases=0, worst=0, programmed_blocks=0.0), 100_000) is None


def test_the_worst_block_alone_gives_an_interval_around_its_rate() -> None:
    """400 erases in 4 years: 100 a year, 99,600 left, 996 years."""
    seen = Observed(
        seconds=4 * YEAR_S, blocks=None, erases=None, worst=400, spent_mean=None, spent_worst=400
    )
    found = estimate(seen, 100_000)
    assert found is not None
    assert found.perfect_levelling.value is None
    assert found.levelling_seen.value == pytest.approx(996)
    assert found.low is not None
    assert found.high is not None
    assert 880 < found.low < 996 < found.high < 1120


def test_the_interval_of_a_count_is_garwoods() -> None:
    """0: 0 to 3.689; 10: 4.795 to 18.39 (Garwood 1936, any table of Poisson limits)."""
    assert count_interval(0) == pytest.approx((0.0, 3.689), abs=0.001)
    assert count_interval(10) == pytest.approx((4.795, 18.39), abs=0.01)
    # Where blocks hardly differ it is little more than the erase that was just missed.
    low, high = count_interval(3, 0.01)
    assert 1.5 < low < 2.1 < 4.0 < high < 4.5


def test_dispersion_is_variance_over_mean_and_never_more_than_random() -> None:
    assert dispersion([2] * 50) == 0.01
    assert dispersion([0, 2] * 50) == 1.0
    assert dispersion([1, 2] * 50) == pytest.approx(0.25252525 / 1.5)
    assert dispersion([0, 100] * 50) == 1.0
    assert dispersion([0] * 50) == 1.0
    assert dispersion([3]) == 1.0


@given(
    blocks=st.integers(1, 1000),
    worst=st.integers(1, 10_000),
    share=st.floats(0.01, 1.0),
    scatter=st.floats(0.01, 1.0),
    endurance=st.integers(100, 1_000_000),
)
def test_bounds_are_in_order(
    blocks: int, worst: int, share: float, scatter: float, endurance: int
) -> None:
    erases = max(float(worst), worst * blocks * share)
    seen = Observed(seconds=DAY_S, blocks=blocks, erases=erases, worst=worst, dispersion=scatter)
    found = estimate(seen, endurance)
    assert found is not None
    for interval in (found.perfect_levelling, found.levelling_seen):
        assert interval.low is not None
        assert interval.value is not None
        assert interval.low <= interval.value
        assert interval.high is None or interval.value <= interval.high
    assert found.low is not None
    assert found.low <= (found.high or math.inf)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (6.2, 7.9, "6.2 to 7.9 years"),
        (0.7, 6.0, "8.4 months to 6.0 years"),
        (10.0, 10.4, "about 10 years"),
        (30 / 365.25, 40 / 365.25, "30 to 40 days"),
        (0.001, 0.001, "about 8.8 hours"),
        (900, 2000, "900 to over 1,000 years"),
        (1200, None, "over 1,000 years"),
        (None, 3.0, "<= 3.0 years"),
        (3.0, None, ">= 3.0 years"),
        (None, None, "too little data"),
    ],
)
def test_years_have_the_digits_that_mean_something(
    low: float | None, high: float | None, words: str
) -> None:
    assert years_text(low, high) == words


UBINFO = """UBI version:                    1
Count of UBI devices:           1
UBI control device major/minor: 10:59
Present UBI devices:            ubi0

ubi0
Volumes count:                           2
Logical eraseblock size:                 126976 bytes, 124.0 KiB
Total amount of logical eraseblocks:     2012 (255475712 bytes, 243.6 MiB)
Amount of available logical eraseblocks: 0 (0 bytes)
Maximum count of volumes                 128
Count of bad physical eraseblocks:       4
Count of reserved physical eraseblocks:  36
Current maximum erase counter value:     431
Minimum input/output unit size:          2048 bytes
Character device major/minor:            250:0
Present volumes:                         0, 1

Volume ID:   0 (on ubi0)
Type:        dynamic
Alignment:   1
Size:        1900 LEBs (241254400 bytes, 230.0 MiB)
State:       OK
Name:        rootfs
"""
SYSFS = """/sys/class/ubi/ubi0/avail_eraseblocks:0
/sys/class/ubi/ubi0/bad_peb_count:4
/sys/class/ubi/ubi0/eraseblock_size:126976
/sys/class/ubi/ubi0/max_ec:431
/sys/class/ubi/ubi0/total_eraseblocks:2012
"""
KERNEL = """[    7.506] ubi0: attached mtd4 (name "rootfs", size 252 MiB)
[    7.513] ubi0: good PEBs: 2012, bad PEBs: 4, corrupted PEBs: 0
[    7.519] ubi0: user volume: 2, internal volumes: 1, max. volumes count: 128
[    7.526] ubi0: max/mean erase counter: 431/213, WL threshold: 128, image sequence
"""
OLD_KERNEL = """UBI: attached mtd4 to ubi0
UBI: number of good PEBs:        2012
UBI: number of bad PEBs:         4
UBI: wear-leveling threshold:    4096
UBI: max/mean erase counter: 431/213
"""
DEBUGFS = "physical_block_number\terase_count\n" + "".join(
    f"{block:<22}\t{7 + block % 3:<11}\n" for block in range(12) if block != 5
)
DUMP = "".join(f"{7 + block % 3}\n" for block in range(12))
BLOCKS = "0 3 good\n1 9 bad\n2 5 good\n3 4 worn\n"


def test_ubinfo_knows_the_worst_block() -> None:
    expected = Counters(worst=431, blocks=2012, wl_threshold=4096)
    assert parse_counters(UBINFO, "f") == expected
    assert parse_counters(SYSFS, "f") == expected
    assert parse_counters(f"root@board:~# ubinfo -a\n{UBINFO}", "f") == expected
    assert parse_counters("max_ec=431\n", "f") == Counters(worst=431, wl_threshold=4096)


def test_the_kernels_log_knows_the_mean_too_rounded_down() -> None:
    read = parse_counters(KERNEL, "f")
    assert read == Counters(worst=431, blocks=2012, mean=213, mean_is_floor=True, wl_threshold=128)
    assert parse_counters(OLD_KERNEL, "f") == replace(read, wl_threshold=4096)


def test_every_block_may_be_listed() -> None:
    read = parse_counters(DEBUGFS, "f")
    assert (read.worst, read.blocks, read.wl_threshold) == (9, 11, 4096)
    assert read.each[4] == 8
    assert 5 not in read.each
    assert read.mean == pytest.approx(sum(read.each.values()) / 11)
    assert parse_counters(DUMP, "f").each == {block: 7 + block % 3 for block in range(12)}
    assert parse_counters(f"# cat erase_count\n{DUMP}", "f").blocks == 12
    # flashbed_nand's own file: it is no UBI, and what is bad wears no more.
    assert parse_counters(BLOCKS, "f") == Counters(worst=5, blocks=2, mean=4.0, each={0: 3, 2: 5})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "f: empty"),
        (" \n\t\n", "f: empty"),
        ("hello\n", "f:1: 'hello' is no row"),
        (f"{DUMP}oops\n", "f:13: 'oops' is no row"),
        (f"{DUMP}1 2\n", "f:13: '1 2' is no row"),
        ("-3\n", "f:1: '-3' is no row"),
        ("3.5\n", "f:1: '3.5' is no row"),
        (f"{COUNTER_MAX + 1}\n", f"f:1: '{COUNTER_MAX + 1}' is no row"),
        ("0 1\n0 2\n", "f: a block is listed twice"),
        ("0 1 fine\n", "f:1: '0 1 fine' is no row"),
        ("0 1 bad\n", "f: no good block"),
        ("physical_block_number erase_count\n", "f: no good block"),
        ("mtd4\nAmount of eraseblocks:           2016 (264241152 bytes, 252.0 MiB)\n", "mtdinfo"),
        ("ubi0: good PEBs: 2012, bad PEBs: 4\n", "f: no erase counters"),
        (UBINFO.replace("431", "many"), "f:14: worst is 'many', not a number"),
        (UBINFO.replace("431", "99999999999"), "f:14: worst is '99999999999'"),
        (KERNEL.replace("431/213", "4/213"), "a mean of 213 above a maximum of 4"),
        (KERNEL.replace("2012", "0"), "a device without blocks"),
        (UBINFO + UBINFO.replace("ubi0", "ubi1"), "one device at a time"),
    ],
)
def test_what_is_no_reading_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_counters(text, "f")
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


_PIECES = st.one_of(
    st.sampled_from([*UBINFO.splitlines(), *SYSFS.splitlines(), *KERNEL.splitlines(),
                     *DEBUGFS.splitlines(), *BLOCKS.splitlines(), "3", "max_ec", "ubi1", "0x10"]),
    st.text(max_size=30),
    st.integers(-10, 2**40).map(str),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("\n".join))
def test_any_text_is_a_reading_or_an_error_of_one_line(text: str) -> None:
    read = None
    message = "f"
    try:
        read = parse_counters(text, "f")
    except InputError as error:
        message = str(error)
    assert message.startswith("f")
    assert "\n" not in message
    if read is None:
        return
    assert 0 <= read.worst <= COUNTER_MAX
    assert read.blocks is None or read.blocks > 0
    assert read.mean is None or 0 <= read.mean <= read.worst
    subject = counters_of(read, None, seconds=YEAR_S, name="f", board=None)
    found = estimate(subject.observed, 100_000)
    if found is not None and found.low is not None and found.high is not None:
        assert found.low <= found.high * 1.000001


def test_two_readings_are_taken_apart_block_by_block() -> None:
    """Block 2 went from 10 to 16 in a month, the others by one."""
    before = parse_counters("\n".join(["10"] * 12), "may")
    each = dict.fromkeys(range(12), 11) | {2: 16}
    now = parse_counters("\n".join(map(str, each.values())), "june")
    seen = counters_of(now, before, seconds=30 * DAY_S, name="june", board=None).observed
    assert (seen.worst, seen.spent_worst, seen.erases) == (6, 16, 17.0)
    assert seen.spent_mean == pytest.approx((11 * 11 + 16) / 12)
    found = estimate(seen, 1000)
    assert found is not None
    assert found.levelling_seen.value == pytest.approx((1000 - 16) / (6 / 30) / 365.25)


def test_means_that_were_rounded_down_widen_the_interval() -> None:
    """213 to 214 in a month may be anything above 0 and below 2 a block."""
    before = parse_counters(KERNEL, "may")
    now = parse_counters(KERNEL.replace("431/213", "440/214"), "june")
    seen = counters_of(now, before, seconds=30 * DAY_S, name="june", board=None).observed
    assert (seen.erases, seen.erases_slack, seen.worst) == (2012.0, 2012.0, 9)
    assert seen.spent_mean == 214.5
    found = estimate(seen, 100_000)
    assert found is not None
    assert found.perfect_levelling.value == pytest.approx((100_000 - 214.5) / (1 / 30) / 365.25)
    assert found.perfect_levelling.high is None


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        ("0 5\n1 5\n", "0 5\n1 6\n", "block 1 has 5 erases now and 6 before"),
        ("0 5\n2 5\n", "0 5\n1 5\n", "other blocks than before"),
        (SYSFS.replace("431", "9"), SYSFS, "fewer erases now than before"),
        (SYSFS, SYSFS.replace("2012", "4012"), "2012 blocks now and 4012 before"),
    ],
)
def test_readings_that_cannot_follow_each_other_are_refused(
    now: str, before: str, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        counters_of(
            parse_counters(now, "now"),
            parse_counters(before, "b"),
            seconds=DAY_S,
            name="now",
            board=None,
        )


def test_a_block_that_went_bad_between_two_readings_is_left_out() -> None:
    before = "".join(f"{block} 5 good\n" for block in range(20))
    now = before.replace("3 5 good", "3 6 bad", 1).replace("7 5 good", "7 8 good", 1)
    seen = counters_of(
        parse_counters(now, "n"), parse_counters(before, "b"), seconds=DAY_S, name="n", board=None
    )
    assert (seen.observed.blocks, seen.observed.erases, seen.observed.worst) == (19, 3.0, 3)


def test_rates_and_times() -> None:
    assert rate_per_day("1/min") == 1440
    assert rate_per_day("10/h") == 240
    assert rate_per_day("1/5min") == pytest.approx(288)
    assert rate_per_day("0.5/day") == 0.5
    assert duration_s("30d", "--age") == 30 * DAY_S
    assert duration_s("30 days", "--age") == 30 * DAY_S
    assert duration_s("3y", "--age") == 3 * YEAR_S
    assert duration_s("18 months", "--age") == pytest.approx(1.5 * YEAR_S)
    assert duration_s("90s", "--age") == 90
    for text in ("", "3", "0d", "-3d", "3 parsecs", "d", "1e9y", "nan d"):
        with pytest.raises(InputError, match="--age"):
            duration_s(text, "--age")
    for text in ("", "1", "1/", "/min", "0/min", "1/0min", "1/fortnight", "1/min/h", "-1/h"):
        with pytest.raises(InputError, match="--rate"):
            rate_per_day(text)
