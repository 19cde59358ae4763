"""Rates of bit errors, boards/errors/*.toml, and what they are on a board.

A curve says how many raw bit errors an ECC step has after so many erases, hours and reads
(docs/models/bit-errors.md). Each number has a source, and three values where it is uncertain.
`error_rates` makes whole numbers of it, which the simulator and kernel/flashbed_nand both count
with (sim/src/flash/errors.rs). Left out: temperature, differences between pages of a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.stack.bounds import Erases
from flashbed.stack.conditions import BitErrors, Level
from flashbed.stack.names import Text, is_name

if TYPE_CHECKING:
    from flashbed.stack.profiles import Board

__all__ = ["STEPS_MAX", "CurveError", "ErrorCurve", "ErrorRates", "error_rates", "load_curve"]

_LOG2_ONE = 1 << 24
_POWER_ONE = 1 << 16
_NEVER = -(1 << 31)
"""The logarithm of a term that is not there."""
STEPS_MAX = 64
"""ECC steps of a page (FBN_STEPS_MAX of kernel/flashbed_nand)."""
_HOURS_A_DAY = 24
_BITS = 8
_HALVINGS = 200
_SUM_TERMS = 400

Rate = Annotated[float, Field(gt=0, le=1)]
Reads = Annotated[float, Field(gt=0, le=1_000_000_000)]
Days = Annotated[float, Field(gt=0, le=36_500)]
Share = Annotated[float, Field(ge=0, le=1)]
Power = Annotated[float, Field(ge=0, le=8)]


class CurveError(InputError):
    """A wrong or missing file of boards/errors/."""


class _Shares(Strict):
    """Three values of a share."""

    low: Share
    typical: Share
    high: Share


class _Powers(Strict):
    """Three values of a power."""

    low: Power
    typical: Power
    high: Power


class _ErrorShares(Strict):
    """Three values of a rate."""

    low: Rate
    typical: Rate
    high: Rate


class _Reads(Strict):
    """Three values of a number of reads."""

    low: Reads
    typical: Reads
    high: Reads


_Value = float | _Shares | _Powers | _ErrorShares | _Reads


def _at(value: _Value, level: Level) -> float:
    return value if isinstance(value, int | float) else float(getattr(value, level))


class CurveFacts(Strict):
    """`[curve]`: what it is."""

    title: Text
    """In a few words."""
    note: Text | None = None
    """What is to be known of it."""


class Promised(Strict):
    """`[promised]`: the rate of the other tables' shares, and where it holds.

    `uber` is for a data sheet: the rate is that at which the ECC that the part asks for leaves so
    many uncorrected errors a bit, after its rated erases. A measured curve has `rate` and `erases`.
    """

    source: Text
    """Where the numbers of this table come from."""
    uber: _ErrorShares | Rate | None = None
    """Uncorrected errors a bit that is read."""
    rate: _ErrorShares | Rate | None = None
    """Wrong bits a bit."""
    erases: Erases | None = None
    """Erases at which this rate was measured."""
    days: Days
    """Age of the data then."""

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        if (self.uber is None) == (self.rate is None):
            raise ValueError("uber or rate: one of them")
        if (self.rate is None) != (self.erases is None):
            raise ValueError("rate and erases need each other; uber has the part's rated erases")
        return self


class Fresh(Strict):
    """`[fresh]`: errors of a page that was just programmed on a new chip."""

    source: Text
    """Where the numbers of this table come from."""
    share: _Shares | Share
    """Of the promised rate."""


class Wear(Strict):
    """`[wear]`: errors that erases add."""

    source: Text
    """Where the numbers of this table come from."""
    share: _Shares | Share
    """Of the promised rate."""
    erases_power: _Powers | Power
    """They grow with this power of the erases."""


class Retention(Strict):
    """`[retention]`: errors that time adds."""

    source: Text
    """Where the numbers of this table come from."""
    share: _Shares | Share
    """Of the promised rate."""
    erases_power: _Powers | Power
    """They grow with this power of the erases."""
    hours_power: _Powers | Power
    """They grow with this power of the whole hours since the page was programmed."""


class Disturb(Strict):
    """`[disturb]`: errors that reads of the block add, whichever of its pages is read."""

    source: Text
    """Where the numbers of this table come from."""
    share: _Shares | Share
    """Of the promised rate, after `reads` at the rated erases."""
    erases_power: _Powers | Power
    """They grow with this power of the erases."""
    reads: _Reads | Reads
    """Reads of the block that add the share."""
    reads_power: _Powers | Power
    """They grow with this power of the reads since the page was programmed."""


class ErrorCurve(FromFile):
    """A curve of bit errors."""

    curve: CurveFacts
    """What it is."""
    promised: Promised
    """The rate of the shares."""
    fresh: Fresh
    """Of a new chip."""
    wear: Wear
    """Of erases."""
    retention: Retention
    """Of time."""
    disturb: Disturb
    """Of reads."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        levels: tuple[Level, ...] = ("low", "typical", "high")
        for level in levels:
            total = sum(_at(one.share, level) for one in (self.fresh, self.wear, self.retention))
            if not math.isclose(total, 1, abs_tol=1e-3):
                raise ValueError(
                    f"share of fresh, wear and retention at {level}: {total:g} in all, not 1"
                )
        return self


@dataclass(frozen=True)
class ErrorRates:
    """Expected errors of an ECC step in whole numbers, as the simulator and the module have them.

    Of each term the logarithm to base 2 of its coefficient times 2^24, the power of the erases and
    the power of hours or reads times 2^16.
    """

    fresh: tuple[int, int, int]
    wear: tuple[int, int, int]
    retention: tuple[int, int, int]
    disturb: tuple[int, int, int]
    age_hours: int
    reads: int


def load_curve(name: str) -> ErrorCurve:
    """The curve of this name. Raises `CurveError`."""
    path = paths.error_curve_file(name)
    known = sorted(paths.error_curve_files())
    if not is_name(name) or not path.is_file():
        raise CurveError(f"{name}: no curve of boards/errors/; there are {', '.join(known)}")
    return _load(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _load(path: Path, _changed_ns: int) -> ErrorCurve:
    curve = read_model(ErrorCurve, read_toml(path, CurveError), path, CurveError)
    curve._path = path
    return curve


def error_rates(asked: BitErrors, board: Board) -> ErrorRates:
    """The curve on this board's chip, for its ECC's steps. Raises `InputError`."""
    curve, level = load_curve(asked.curve), asked.level
    step_bits = board.ecc.step_bytes * _BITS
    if board.chip.page_bytes // board.ecc.step_bytes > STEPS_MAX:
        raise InputError(f"faults: bit_errors: a page has {STEPS_MAX} ECC steps at most")
    erases, rate = _promised(curve, board, level)
    hours = curve.promised.days * _HOURS_A_DAY

    def term(
        share: float, erases_power: float = 0, number: float = 1, power: float = 0
    ) -> tuple[int, int, int]:
        if not share:
            return (_NEVER, 0, 0)
        log2 = math.log2(rate * share * step_bits)
        log2 -= erases_power * math.log2(erases) + power * math.log2(number)
        return (
            max(round(log2 * _LOG2_ONE), _NEVER),
            round(erases_power * _POWER_ONE),
            round(power * _POWER_ONE),
        )

    def of(value: _Value) -> float:
        return _at(value, level)

    wear, kept, read = curve.wear, curve.retention, curve.disturb
    return ErrorRates(
        fresh=term(of(curve.fresh.share)),
        wear=term(of(wear.share), of(wear.erases_power)),
        retention=term(of(kept.share), of(kept.erases_power), hours, of(kept.hours_power)),
        disturb=term(
            of(read.share), of(read.erases_power), of(read.reads), of(read.reads_power)
        ),
        age_hours=asked.age_days * _HOURS_A_DAY,
        reads=asked.reads,
    )  # fmt: skip


def _promised(curve: ErrorCurve, board: Board, level: Level) -> tuple[int, float]:
    """The erases and the rate of raw errors that the shares are of."""
    promised = curve.promised
    if promised.rate is not None and promised.erases is not None:
        return promised.erases, _at(promised.rate, level)
    if board.endurance is None:
        raise InputError(
            f"faults: bit_errors: curve {curve.path.stem} needs the erases that the chip is rated"
            f" for; {board.name} has no [endurance]"
        )
    strength, step_bytes = _asked_ecc(board)
    if not strength:
        raise InputError(f"faults: bit_errors: {board.name} has no ECC")
    assert promised.uber is not None
    rate = _rate_at(_at(promised.uber, level), strength, step_bytes * _BITS)
    return board.endurance.cycles, rate


def _asked_ecc(board: Board) -> tuple[int, int]:
    """Strength and step of the ECC that the chip asks for; of a board without one, its own."""
    asked = board.fit.part.ecc if board.fit is not None else None
    if asked is not None:
        pairs = (
            (asked.strength_bits, asked.step_bytes),
            (asked.on_die_strength_bits, asked.on_die_step_bytes),
        )
        for strength, step in pairs:
            if strength is not None and step is not None:
                return strength, step
    return board.ecc.strength_bits, board.ecc.step_bytes


def _rate_at(uber: float, strength_bits: int, step_bits: int) -> float:
    """The raw rate whose steps with more errors than ECC corrects are `uber` a bit."""
    low, high = -60.0, math.log(step_bits)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _more_than(strength_bits, math.exp(middle)) / step_bits < uber:
            low = middle
        else:
            high = middle
    return math.exp(low) / step_bits


def _more_than(count: int, mean: float) -> float:
    """The probability of more than `count` of a Poisson distribution."""
    first = count + 1
    logs = (
        number * math.log(mean) - mean - math.lgamma(number + 1)
        for number in range(first, first + _SUM_TERMS)
    )
    return min(1.0, sum(map(math.exp, logs)))
