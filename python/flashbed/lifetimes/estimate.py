"""From erases over some time to the time until a block reaches its endurance.

Pure arithmetic. A small count says little, so every rate has a 95 % interval. For blocks erased at
random it is that of a Poisson count (Garwood 1936). Most erases are more regular than that. The
blocks themselves show how much: their variance divided by their mean scales the interval. Without
any variance an uncertainty of one erase remains, for one just before the begin or after the end.
The interval of the worst block covers all blocks at once (Bonferroni), because the worst was
picked.

Two things bound a rate besides its count. Programmed pages must be erased some day, so long-run
erases are at least the programmed blocks. And UBI moves data when erase counters differ too much
(drivers/mtd/ubi/wl.c: WL_FREE_MAX_DIFF, twice its threshold), so its worst block cannot be further
ahead of the mean than that.

Left out: blocks that go bad early, retention, read disturb, a workload that changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flashbed.lifetimes.quantiles import gamma_quantile

__all__ = [
    "DAY_S",
    "USUAL_AMPLIFICATION",
    "YEAR_S",
    "Estimate",
    "Interval",
    "Observed",
    "count_interval",
    "dispersion",
    "estimate",
]

DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S
USUAL_AMPLIFICATION = 5
"""The usual guess without a measurement: technical note MISC-TN-017 of DAVE Embedded Systems."""
STEADY_SHARE = 0.9
"""Erased divided by programmed bytes from which a measurement counts as steady."""
_OUTSIDE = 0.05
_LEAST_DISPERSION = 0.01
_LEAST_BLOCKS = 10
"""Blocks needed to estimate how much they differ."""


@dataclass(frozen=True)
class Observed:
    """Erases over `seconds` of use, and the blocks' erases before.

    `erases` is over all blocks, within `erases_slack`. `worst` is of the block that will reach its
    endurance first at this rate, None if no block is known by itself. `spent_mean` and
    `spent_worst` are the erases so far, of the mean block and of that block; 0 for a new chip.
    `programmed_blocks` is what was programmed, in blocks; `dispersion` that of the erases between
    blocks. None is unknown.
    """

    seconds: float
    blocks: int | None
    erases: float | None
    worst: int | None
    spent_mean: float | None = 0.0
    spent_worst: int = 0
    erases_slack: float = 0.0
    dispersion: float = 1.0
    programmed_blocks: float | None = None
    wl_threshold: int | None = None


@dataclass(frozen=True)
class Interval:
    """Years, and the likeliest value between. None is unknown; for `high` also: no end."""

    low: float | None
    value: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """The result: `low` to `high` years, and the two intervals they are made of.

    `steady` says whether erasing kept up with programming; None if unknown.
    """

    low: float | None
    high: float | None
    perfect_levelling: Interval
    levelling_seen: Interval
    levelled_by_ubi_low: float | None
    mean_block_per_day: float | None
    worst_block_per_day: float | None
    steady: bool | None


def dispersion(counts: Sequence[int]) -> float:
    """Variance divided by mean of the blocks' counts, at most 1, which random erases would give."""
    if len(counts) < _LEAST_BLOCKS or not any(counts):
        return 1.0
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
    return min(1.0, max(_LEAST_DISPERSION, variance / mean))


def count_interval(
    count: float, scatter: float = 1.0, outside: float = _OUTSIDE
) -> tuple[float, float]:
    """The means for which a count at least this far off has a probability of `outside`.

    `scatter` is the dispersion: 1 gives the Poisson interval, 0 the count give or take 1.
    """
    scaled = count / scatter
    low = gamma_quantile(scaled, outside / 2) * scatter if count > 0 else 0.0
    high = gamma_quantile(scaled + 1, 1 - outside / 2) * scatter
    return max(0.0, low - (1 - scatter)), high + (1 - scatter)


def estimate(seen: Observed, endurance: int) -> Estimate | None:
    """Years until a block has been erased `endurance` times; None if nothing wears."""
    if not seen.erases and not seen.worst and not seen.programmed_blocks:
        return None
    perfect, mean_rates, steady = _perfect(seen, endurance)
    levelling = _levelling(seen, endurance, perfect, steady)
    by_ubi = _by_ubi(seen, endurance, mean_rates)
    low = levelling.low
    if steady is not False and by_ubi is not None:
        low = by_ubi if low is None else max(low, by_ubi)
    high = levelling.high if by_ubi is None else perfect.high or levelling.high
    mean = None if mean_rates is None else mean_rates[1] * DAY_S
    return Estimate(
        low=low,
        high=high,
        perfect_levelling=perfect,
        levelling_seen=levelling,
        levelled_by_ubi_low=by_ubi if low is not None else None,
        mean_block_per_day=mean,
        worst_block_per_day=None if seen.worst is None else seen.worst / seen.seconds * DAY_S,
        steady=steady,
    )


_Rates = tuple[float, float, float]
"""Erases of the mean block per second: lowest, likeliest, highest."""


def _perfect(seen: Observed, endurance: int) -> tuple[Interval, _Rates | None, bool | None]:
    """The estimate if all blocks are erased equally often from now on."""
    if seen.erases is None or seen.blocks is None or seen.spent_mean is None:
        return Interval(None, None, None), None, None
    low, _ = count_interval(max(seen.erases - seen.erases_slack, 0.0), seen.dispersion)
    _, high = count_interval(seen.erases + seen.erases_slack, seen.dispersion)
    value = seen.erases
    steady = None
    if seen.programmed_blocks is not None:
        steady = seen.erases >= STEADY_SHARE * seen.programmed_blocks
        value = value if steady else seen.programmed_blocks
        low, high = min(low, seen.programmed_blocks), max(high, seen.programmed_blocks)
        low = low if steady else seen.programmed_blocks
    share = seen.blocks * seen.seconds
    rates = (low / share, value / share, high / share)
    left = max(endurance - seen.spent_mean, 0.0)
    years = [_years(left, rate) for rate in rates]
    if steady is False:
        return Interval(None, None, years[0]), rates, steady
    return Interval(years[2], years[1], years[0]), rates, steady


def _levelling(seen: Observed, endurance: int, perfect: Interval, steady: bool | None) -> Interval:
    """The estimate if the worst block keeps its rate; never better than the mean block."""
    if seen.worst is None:
        return Interval(None, None, perfect.high)
    left = max(endurance - seen.spent_worst, 0)
    _, high = count_interval(seen.worst, seen.dispersion, _OUTSIDE / (seen.blocks or 1))
    low_rate, _ = count_interval(seen.worst, seen.dispersion)
    value = _years(left, seen.worst / seen.seconds)
    longest = _years(left, low_rate / seen.seconds)
    if perfect.high is not None:
        longest = perfect.high if longest is None else min(longest, perfect.high)
    if steady is False:
        return Interval(None, None, longest)
    if value is not None and longest is not None:
        value = min(value, longest)
    return Interval(_years(left, high / seen.seconds), value, longest)


def _by_ubi(seen: Observed, endurance: int, rates: _Rates | None) -> float | None:
    """Years until the mean block is within UBI's largest difference of the endurance."""
    if seen.wl_threshold is None or rates is None or seen.spent_mean is None:
        return None
    left = endurance - 2 * seen.wl_threshold - seen.spent_mean
    return _years(left, rates[2]) if left > 0 else None


def _years(erases: float, per_second: float) -> float | None:
    """Years; None for no end."""
    if per_second <= 0:
        return None
    years = erases / per_second / YEAR_S
    return years if math.isfinite(years) else None
