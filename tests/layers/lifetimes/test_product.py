"""What a product's answer says beside its years: the hottest block, and what wears the flash most.

By hand, for programs that fill 100 and 300 blocks a day of 400.
"""

from __future__ import annotations

import pytest

from flashbed.answers.lifetimes.estimate import DAY_S, Observed
from flashbed.answers.lifetimes.mix import Mix
from flashbed.answers.lifetimes.subject import RoundWork, Subject

CYCLES, YEAR_DAYS = 100_000, 365.25


def program(blocks: float, *, wl_threshold: int | None, used: float | None = 0.0) -> Subject:
    observed = Observed(
        seconds=DAY_S, blocks=400, erases=blocks, worst=1, dispersion=0.01,
        programmed_blocks=blocks, used=used, wl_threshold=wl_threshold,
    )  # fmt: skip
    work = RoundWork(
        seconds=60.0, rounds_per_day=1.0, given_rate=True, bytes_written=1000,
        bytes_by_cause=None, bytes_programmed=1e7, bytes_erased=1e7, programs=64 * blocks,
    )  # fmt: skip
    return Subject(
        name="program", observed=observed, board=None, blocks_erased=None, target="sim",
        fs="ubifs", workload=work, axes={},
    )  # fmt: skip


def mix(wl_threshold: int | None, used: float | None = 0.0) -> Mix:
    parts = [program(n, wl_threshold=wl_threshold, used=used) for n in (100.0, 300.0)]
    return Mix(("logger", "database"), tuple(parts))


def test_ubi_keeps_the_hottest_block_within_twice_its_threshold_of_the_mean() -> None:
    both = mix(4096)
    found = both.lasting(CYCLES)
    assert found is not None
    block = both.hottest(found, CYCLES)
    assert block.per_day is not None
    assert block.ahead == 8192
    assert block.per_day == pytest.approx(1.0, rel=0.05)
    assert block.in_ten_years == pytest.approx(3652.5 + 8192, rel=0.02)
    assert found.low == pytest.approx((CYCLES - 8192) / block.per_day / YEAR_DAYS)
    assert "and 8,192 ahead of the mean: <= 11," in block.text(CYCLES)


def test_elsewhere_the_blocks_whose_data_moves_take_all_erases() -> None:
    """Half of the partition stays: the others have twice the mean."""
    both = mix(None, used=0.5)
    found = both.lasting(CYCLES)
    assert found is not None
    block = both.hottest(found, CYCLES)
    assert block.per_day is not None
    assert block.ahead is None
    assert block.per_day == pytest.approx(2.0, rel=0.05)
    assert found.low == pytest.approx(CYCLES / block.per_day / YEAR_DAYS)


def test_a_flash_whose_low_end_is_not_known_has_no_hottest_block() -> None:
    both = Mix(("logger",), (program(5.0, wl_threshold=None, used=None),))
    found = both.lasting(CYCLES)
    assert found is not None
    assert both.hottest(found, CYCLES).per_day is None
    assert "hottest block" not in both.text(CYCLES, "data sheet")


def test_the_largest_part_is_named_with_the_years_without_it() -> None:
    part = mix(4096).largest(CYCLES)
    assert part is not None
    assert part.name == "database"
    assert part.share == pytest.approx(0.75)
    alone = Mix(("logger",), (program(100.0, wl_threshold=4096),)).lasting(CYCLES)
    assert part.without == alone
    assert Mix(("logger",), (program(100.0, wl_threshold=4096),)).largest(CYCLES) is None
