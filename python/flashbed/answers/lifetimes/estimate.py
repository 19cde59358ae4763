"""From erases over some time to the time until a block reaches its endurance.

Pure arithmetic. Two counts bound the erases of the long run. Every programmed page is erased one
day, so they are at least the programmed blocks. And a log that collects the space it has used
copies, at worst, all data in use once a round: with a share `used` of the partition in use, erases
are at most 1 / (1 - used) of what fills it. A measurement in which erases keep up with programs
says more: then its erases count, with a 95 % interval.

For blocks erased at random that interval is that of a Poisson count (Garwood 1936). Most erases are
more regular than that. The blocks themselves show how much: their variance divided by their mean
scales the interval. Without any variance an uncertainty of one erase remains, for one just before
the begin or after the end. The interval of the worst block covers all blocks at once (Bonferroni),
because the worst was picked.

Levelling: UBI moves data when erase counters differ too much (drivers/mtd/ubi/wl.c:
WL_FREE_MAX_DIFF, twice its threshold), so its worst block cannot be further ahead of the mean than
that. Elsewhere data that stays may keep its blocks from every erase.

The rules themselves, whether a measurement is steady and what it makes of years, are those of
common/src/lifetime.rs, which the playground has too. This puts the intervals around them.

Left out: blocks that go bad early, retention, read disturb, a workload that changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from flashbed._sim import DAY_S, FEW_ERASES, YEAR_S, is_steady, lasting_erases, years
from flashbed.answers.lifetimes.quantiles import gamma_quantile

__all__ = [
    "DAY_S",
    "FEW_ERASES",
    "USED_MAX",
    "USUAL_AMPLIFICATION",
    "YEAR_S",
    "Estimate",
    "Interval",
    "Observed",
    "count_interval",
    "dispersion",
    "erases_per_day",
    "estimate",
    "estimate_mix",
    "used_by",
]

USUAL_AMPLIFICATION = 5
"""The usual guess without a measurement: technical note MISC-TN-017 of DAVE Embedded Systems."""
USED_MAX = 0.95
"""File systems keep a share of the partition free to collect with."""
_OUTSIDE = 0.05
_LEAST_DISPERSION = 0.01
_LEAST_BLOCKS = 10
"""Blocks needed to estimate how much they differ."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Erases over `seconds` of use, and the blocks' erases before.

    `erases` is over all blocks, within `erases_slack`. `worst` is of the block that will reach its
    endurance first at this rate, None if no block is known by itself. `spent_mean` and
    `spent_worst` are the erases so far, of the mean block and of that block; 0 for a new chip.
    `programmed_blocks` is what was programmed, in blocks. `early_erases` are those among `erases`
    whose blocks may not have been full. `used` is the share of the partition that files use in the
    end, and `grown` the part of it that is new. `dispersion` is that of the erases between blocks.
    None is unknown; of `seconds`: no rate was given.
    """

    seconds: float | None
    blocks: int | None
    erases: float | None
    worst: int | None
    spent_mean: float | None = 0.0
    spent_worst: int = 0
    erases_slack: float = 0.0
    dispersion: float = 1.0
    programmed_blocks: float | None = None
    early_erases: float = 0.0
    used: float | None = None
    grown: float = 0.0
    wl_threshold: int | None = None

    @property
    def steady(self) -> bool | None:
        """Whether erasing kept up with programming; None if unknown."""
        if self.programmed_blocks is None or self.erases is None:
            return None
        return is_steady(self.erases, self.programmed_blocks)


@dataclass(frozen=True)
class Interval:
    """Years, and the likeliest value between. None is unknown; for `high` also: no end."""

    low: float | None
    value: float | None
    high: float | None


_UNKNOWN = Interval(None, None, None)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The result: `low` to `high` years, and the two intervals they are made of.

    `steady` says whether erasing kept up with programming; None if unknown. `levelling_seen` is
    unknown where the worst block was erased too rarely to say anything.
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
    """Years until a block has been erased `endurance` times; None if nothing wears.

    `seen.seconds` has to be known.
    """
    if not seen.erases and not seen.worst and not seen.programmed_blocks:
        return None
    assert seen.seconds is not None
    rates = _rates(seen, seen.used)
    levelling = _levelling(seen, endurance, rates)
    worst = None if seen.worst is None else seen.worst / seen.seconds * DAY_S
    return _estimated(seen, endurance, rates=rates, levelling=levelling, worst=worst)


def estimate_mix(parts: Sequence[Observed], endurance: int) -> Estimate | None:
    """Years of a new chip that several programs wear, each at its own rate.

    The parts have the same blocks and levelling. What they use of the partition adds up.
    """
    wearing = [part for part in parts if part.erases or part.programmed_blocks]
    if not wearing:
        return None
    whole = used_by(parts)
    rates = [found for part in wearing if (found := _rates(part, whole.used)) is not None]
    total = _Rates(*(sum(column) for column in zip(*rates, strict=True)))
    steady = all(part.steady for part in wearing)
    return replace(
        _estimated(whole, endurance, rates=total, levelling=_UNKNOWN, worst=None), steady=steady
    )


def used_by(parts: Sequence[Observed]) -> Observed:
    """The blocks that the parts share, with what all of them use of the partition."""
    before = [part.used - part.grown for part in parts if part.used is not None]
    used = None
    if len(before) == len(parts):
        used = min(USED_MAX, max(before) + sum(part.grown for part in parts))
    return replace(parts[0], worst=None, used=used)


def erases_per_day(seen: Observed) -> float | None:
    """The likeliest erases of all blocks in the long run; None if unknown."""
    rates = _rates(seen, seen.used)
    return None if rates is None else rates.value * DAY_S


class _Rates(NamedTuple):
    """Erases of all blocks per second: lowest, likeliest, highest."""

    low: float
    value: float
    high: float


def _rates(seen: Observed, used: float | None) -> _Rates | None:
    """The erases of the long run; None if the erases of all blocks are unknown."""
    if seen.erases is None or seen.seconds is None:
        return None
    low, _ = count_interval(max(seen.erases - seen.erases_slack, 0.0), seen.dispersion)
    _, high = count_interval(seen.erases + seen.erases_slack, seen.dispersion)
    value, filled = seen.erases, seen.programmed_blocks
    if filled is not None:
        value = lasting_erases(seen.erases, filled)
        if seen.steady:
            low, high = max(low, filled), max(high, filled)
        else:
            low = filled
            high = math.inf if used is None else (filled + seen.early_erases) / (1 - used)
    return _Rates(low / seen.seconds, value / seen.seconds, high / seen.seconds)


def _estimated(
    seen: Observed,
    endurance: int,
    *,
    rates: _Rates | None,
    levelling: Interval,
    worst: float | None,
) -> Estimate:
    perfect = _perfect(seen, endurance, rates)
    by_ubi = _by_ubi(seen, endurance, rates)
    low = levelling.low
    high = perfect.high if levelling.high is None else levelling.high
    if by_ubi is not None:
        low = by_ubi if low is None else max(low, by_ubi)
        high = high if perfect.high is None else perfect.high
    elif low is None and seen.programmed_blocks is not None and seen.used is not None:
        # Blocks with data that stays take no part; the others take all erases.
        low = None if perfect.low is None else perfect.low * (1 - seen.used)
    mean = rates.value / seen.blocks * DAY_S if rates and seen.blocks else None
    return Estimate(
        low=low,
        high=high,
        perfect_levelling=perfect,
        levelling_seen=levelling,
        levelled_by_ubi_low=by_ubi,
        mean_block_per_day=mean,
        worst_block_per_day=worst,
        steady=seen.steady,
    )


def _perfect(seen: Observed, endurance: int, rates: _Rates | None) -> Interval:
    """The estimate if all blocks are erased equally often from now on."""
    if rates is None or seen.blocks is None or seen.spent_mean is None:
        return _UNKNOWN
    left = max(endurance - seen.spent_mean, 0.0) * seen.blocks
    low, value, high = (years(left, rate) for rate in reversed(rates))
    return Interval(low, value, high)


def _levelling(seen: Observed, endurance: int, rates: _Rates | None) -> Interval:
    """The estimate if the worst block keeps its rate; never better than the mean block."""
    perfect = _perfect(seen, endurance, rates)
    if seen.worst is None or seen.seconds is None:
        return Interval(None, None, perfect.high)
    if seen.programmed_blocks is not None and (seen.worst < FEW_ERASES or not seen.steady):
        return _UNKNOWN
    left = max(endurance - seen.spent_worst, 0)
    _, high = count_interval(seen.worst, seen.dispersion, _OUTSIDE / (seen.blocks or 1))
    low_rate, _ = count_interval(seen.worst, seen.dispersion)
    value = years(left, seen.worst / seen.seconds)
    longest = years(left, low_rate / seen.seconds)
    if perfect.high is not None:
        longest = perfect.high if longest is None else min(longest, perfect.high)
    if value is not None and longest is not None:
        value = min(value, longest)
    return Interval(years(left, high / seen.seconds), value, longest)


def _by_ubi(seen: Observed, endurance: int, rates: _Rates | None) -> float | None:
    """Years until the mean block is within UBI's largest difference of the endurance."""
    if seen.wl_threshold is None or rates is None or seen.spent_mean is None or not seen.blocks:
        return None
    left = endurance - 2 * seen.wl_threshold - seen.spent_mean
    return years(left * seen.blocks, rates.high) if left > 0 else None
