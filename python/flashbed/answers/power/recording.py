"""A recording: channels in SI units on one time axis, and the rails computed from them.

A rail is a product of channels and constants that gives watts: `I_cpu*V_cpu`, `shunt/0.1ohm*1.2V`.
Nothing is assumed: a current without a voltage is no power.

Invariants: times are finite and strictly increase; all channels are finite and as long as the time
axis. A sample with a missing channel is dropped, which makes a gap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flashbed.base.errors import InputError

__all__ = [
    "GAP_STEPS",
    "LOGIC",
    "Channel",
    "Floats",
    "PowerRecording",
    "Rail",
    "parse_rails",
    "rails_of",
    "recording",
]

Floats = NDArray[np.float64]

GAP_STEPS = 3.0
"""Two samples further apart than this many usual steps have a gap between them."""
LOGIC = "logic"
"""The unit of a channel that is 0 or 1."""
_MARKERS = re.compile(r"mark|trig|gpi|sync|^d\d+$|logic", re.IGNORECASE)


@dataclass(frozen=True)
class Channel:
    """A measured quantity: `unit` is V, A, W or `logic`."""

    name: str
    unit: str
    values: Floats


@dataclass(frozen=True)
class PowerRecording:
    """The contents of an instrument's file. `name` is its name in messages."""

    name: str
    time_s: Floats
    channels: tuple[Channel, ...]

    @cached_property
    def step_s(self) -> float:
        """The usual time between samples."""
        return float(np.median(np.diff(self.time_s)))

    @cached_property
    def cells(self) -> tuple[Floats, Floats]:
        """Begin and end of the time that each sample represents.

        It extends halfway to the neighbouring samples; at a gap, by half a usual step.
        """
        gaps = np.diff(self.time_s) > GAP_STEPS * self.step_s
        middles = (self.time_s[1:] + self.time_s[:-1]) / 2
        begin = np.concatenate([[self.time_s[0] - self.step_s / 2], middles])
        end = np.concatenate([middles, [self.time_s[-1] + self.step_s / 2]])
        begin[1:][gaps] = self.time_s[1:][gaps] - self.step_s / 2
        end[:-1][gaps] = self.time_s[:-1][gaps] + self.step_s / 2
        return begin, end

    def channel(self, name: str) -> Channel:
        """The channel of this name. Raises `InputError`."""
        for channel in self.channels:
            if channel.name == name:
                return channel
        there = ", ".join(channel.name for channel in self.channels)
        raise InputError(f"{self.name}: no channel {name!r}; there are {there}")

    @property
    def marker(self) -> Channel | None:
        """The only channel whose name and values are those of a marker."""
        logic = [channel for channel in self.channels if channel.unit == LOGIC]
        named = [channel for channel in logic if _MARKERS.search(channel.name)]
        return named[0] if len(named) == 1 else None


@dataclass(frozen=True)
class Rail:
    """Power of a rail, and the channels it is computed from."""

    name: str
    power_w: Floats
    parts: tuple[Floats, ...]


SAMPLES_MIN = 20


def recording(name: str, time_s: Floats, channels: Sequence[Channel]) -> PowerRecording:
    """A recording without incomplete samples. Raises `InputError`."""
    if not channels:
        raise InputError(f"{name}: no channel with a unit of V, A or W")
    whole = np.isfinite(time_s)
    for channel in channels:
        whole &= np.isfinite(channel.values)
    if int(whole.sum()) < SAMPLES_MIN:
        raise InputError(f"{name}: only {int(whole.sum())} samples")
    kept_s = time_s[whole]
    back = np.flatnonzero(np.diff(kept_s) <= 0)
    if back.size:
        raise InputError(
            f"{name}: time does not increase after {kept_s[back[0]]:.9g} s"
            f" (sample {int(np.flatnonzero(whole)[back[0]]) + 1})"
        )
    chosen = tuple(Channel(each.name, each.unit, each.values[whole]) for each in channels)
    return PowerRecording(name, kept_s, chosen)


_NUMBER = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)\s*(m|u|k)?(ohm|V|A)", re.IGNORECASE)
_PREFIX = {"m": 1e-3, "u": 1e-6, "k": 1e3, "": 1.0}
# A unit as powers of volt and ampere.
_POWERS = {"V": (1, 0), "A": (0, 1), "W": (1, 1), "ohm": (1, -1)}


def parse_rails(texts: Sequence[str]) -> dict[str, str]:
    """Parses `NAME=PRODUCT` into name -> product. Raises `InputError`."""
    rails: dict[str, str] = {}
    for text in texts:
        name, equals, product = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or not product or name in rails:
            raise InputError(f"--rail {text}: NAME=PRODUCT, as in cpu=I_cpu*1.2V, each name once")
        rails[name] = product
    return rails


def rails_of(trace: PowerRecording, products: dict[str, str]) -> list[Rail]:
    """The given rails, or those that the channels give by themselves. Raises `InputError`."""
    if products:
        return [_product(trace, name, product) for name, product in products.items()]
    measured = [channel for channel in trace.channels if channel.unit != LOGIC]
    powers = [channel for channel in measured if channel.unit == "W"]
    if powers:
        return [Rail(_stem(each.name), each.values, (each.values,)) for each in powers]
    volts = {_stem(each.name): each for each in measured if each.unit == "V"}
    rails = []
    for current in (channel for channel in measured if channel.unit == "A"):
        stem = _stem(current.name)
        only = next(iter(volts.values())) if len(volts) == 1 else None
        voltage = volts.get(stem, only)
        if voltage is None:
            raise InputError(
                f"{trace.name}: no voltage goes with {current.name!r}; use --rail"
                f" {stem}={current.name}*1.2V, or name its channel"
            )
        parts = (current.values, voltage.values)
        rails.append(Rail(stem, current.values * voltage.values, parts))
    if not rails:
        raise InputError(
            f"{trace.name}: voltages alone give no power; name the shunt, as in --rail"
            f" cpu={measured[0].name}/0.1ohm*1.2V"
        )
    return rails


_QUANTITY = re.compile(
    r"(^|[_\s])(current|voltage|power|curr|volt|shunt|input|average|raw|in|i|v|p)\d*(?=$|[_\s])",
    re.IGNORECASE,
)


def _stem(name: str) -> str:
    """A channel's name without the quantity: the name of its rail."""
    stem = re.sub(r"[^a-z0-9]+", "_", _QUANTITY.sub(" ", name).strip().lower()).strip("_")
    return stem or "supply"


def _product(trace: PowerRecording, name: str, product: str) -> Rail:
    power = np.ones_like(trace.time_s)
    volt, ampere = 0, 0
    parts: list[Floats] = []
    for sign, factor in _factors(product):
        number = _NUMBER.fullmatch(factor)
        if number and factor not in {channel.name for channel in trace.channels}:
            unit = next(unit for unit in _POWERS if unit.lower() == number[3].lower())
            try:
                value = float(number[1]) * _PREFIX[(number[2] or "").lower()]
            except ValueError:
                value = 0.0
            if value <= 0:
                raise InputError(f"--rail {name}={product}: {factor} is not a number above 0")
            power = power * value**sign
        else:
            channel = trace.channel(factor)
            if channel.unit == LOGIC or sign < 0:
                raise InputError(f"--rail {name}={product}: {factor} is not allowed there")
            unit = channel.unit
            power = power * channel.values
            parts.append(channel.values)
        volt += sign * _POWERS[unit][0]
        ampere += sign * _POWERS[unit][1]
    if (volt, ampere) != (1, 1) or not parts:
        raise InputError(f"--rail {name}={product}: does not give watts")
    return Rail(name, power, tuple(parts))


def _factors(product: str) -> list[tuple[int, str]]:
    """Factors, each with the sign of its exponent."""
    words = re.split(r"([*/])", product)
    signs = [1, *(1 if word == "*" else -1 for word in words[1::2])]
    return [(sign, word.strip()) for sign, word in zip(signs, words[::2], strict=True)]
