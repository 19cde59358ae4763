"""Years by what an eMMC says of its own life."""

from __future__ import annotations

import math

import pytest

from flashbed.answers.lifetimes.estimate import YEAR_S
from flashbed.answers.lifetimes.ext_csd import DiskLife, as_json, parse_ext_csd, text
from flashbed.base.errors import InputError

MMC_UTILS = """
Extended CSD rev 1.8 (MMC 5.1)
eMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: 0x03
eMMC Life Time Estimation B [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B]: 0x01
eMMC Pre EOL information [EXT_CSD_PRE_EOL_INFO]: 0x02
"""
SYSFS = """
/sys/block/mmcblk0/device/life_time:0x03 0x01
/sys/block/mmcblk0/device/pre_eol_info:0x02
"""


@pytest.mark.parametrize("reading", [MMC_UTILS, SYSFS])
def test_both_tools_say_the_same(reading: str) -> None:
    assert parse_ext_csd(reading, "it") == DiskLife(3, 1, 2)


def test_the_bare_file_has_no_reserve() -> None:
    assert parse_ext_csd("0x03 0x01\n", "it") == DiskLife(3, 1, 0)


@pytest.mark.parametrize("reading", ["", "12 34\n", "max_ec: 4\n", "0x03\n", "# 0x03 0x01 0x02\n"])
def test_other_texts_are_no_reading(reading: str) -> None:
    assert parse_ext_csd(reading, "it") is None


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ("0x0c 0x01", "it:1: 0x0c: JESD84-B51 has values up to 0x0b"),
        ("pre_eol_info:0x04\n0x01 0x01", "it:1: 0x04: JESD84-B51 has values up to 0x03"),
        ("0x00 0x00", "it: the device does not say how much"),
        ("0x01 0x01\n0x02 0x01", "it:2: a second device"),
    ],
)
def test_what_no_device_says_is_refused(reading: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_ext_csd(reading, "it")


def test_a_share_of_life_bounds_the_years_on_both_sides() -> None:
    """Used by 20 to 30 % in three years: ten to fifteen in all."""
    left = DiskLife(3, 0).years_left(3 * YEAR_S)
    assert left.low == pytest.approx(3 / 0.3 - 3)
    assert left.high == pytest.approx(3 / 0.2 * 0.8)
    assert left.low <= 3 / 0.25 - 3 <= left.high


def test_the_worse_type_counts_and_the_first_step_has_no_upper_bound() -> None:
    assert DiskLife(3, 1).years_left(YEAR_S) == DiskLife(3, 0).years_left(YEAR_S)
    first = DiskLife(1, 1).years_left(YEAR_S)
    assert first.low == pytest.approx(9.0)
    assert math.isinf(first.high)
    assert as_json("it", DiskLife(1, 1), first)["years"] == {"low": first.low, "high": None}
    assert "too early to bound the time" in text("it", DiskLife(1, 1), first, since_before=False)


def test_an_earlier_reading_gives_the_rate_since() -> None:
    """From 10 to 20 % to 40 to 50 %: 20 to 40 % in two years."""
    left = DiskLife(5, 0).years_left(2 * YEAR_S, DiskLife(2, 0))
    assert left.low == pytest.approx(0.5 / (0.4 / 2))
    assert left.high == pytest.approx(0.6 / (0.2 / 2))
    with pytest.raises(InputError, match="swapped"):
        DiskLife(2, 0).years_left(YEAR_S, DiskLife(3, 0))


def test_a_life_that_is_over_leaves_none() -> None:
    over = DiskLife(0x0B, 1).years_left(YEAR_S)
    assert (over.low, over.high) == (0, 0)
    assert "none: the endurance has been reached" in text(
        "it", DiskLife(0x0B, 1), over, since_before=False
    )
