"""How much of its life an eMMC says it has used, and the years that follow.

From the registers DEVICE_LIFE_TIME_EST_TYP_A, _B and PRE_EOL_INFO of the EXT_CSD (JEDEC
JESD84-B51, 7.4), as `mmc extcsd read` (mmc-utils), or the files `life_time` and `pre_eol_info` of
the device in sysfs print them. A device counts in steps of 10 %; how, no maker says. Type A and
type B are two kinds of its cells, usually those for firmware and metadata and those for data.

Left out: UFS' health descriptor, SSDs' SMART.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from flashbed.answers.lifetimes.estimate import YEAR_S
from flashbed.answers.lifetimes.estimate_text import years_text
from flashbed.base.errors import InputError

__all__ = ["DiskLife", "Years", "as_json", "parse_ext_csd", "text"]

_STEP = 0.1
_EXCEEDED = 0x0B
_NOT_DEFINED = 0x00
_RESERVES = {
    0x00: "not said",
    0x01: "normal: less than 80 % of its reserve blocks are used",
    0x02: "warning: 80 % of its reserve blocks are used",
    0x03: "urgent: 90 % of its reserve blocks are used",
}
_HEX = r"(0[xX][0-9a-fA-F]{1,2})\b"
_TYPE_A = re.compile(rf"LIFE_TIME_EST_TYP_A\]?\s*[:=]\s*{_HEX}")
_TYPE_B = re.compile(rf"LIFE_TIME_EST_TYP_B\]?\s*[:=]\s*{_HEX}")
_PRE_EOL = re.compile(rf"(?:PRE_EOL_INFO\]?|pre_eol_info)\s*[:=]\s*{_HEX}")
_BOTH = re.compile(rf"^(?:\S*life_time\s*[:=]?\s*)?{_HEX}\s+{_HEX}$")


@dataclass(frozen=True)
class Years:
    """An interval; `high` is infinite where nothing bounds it."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """In words."""
        return years_text(self.low, None if math.isinf(self.high) else self.high)


@dataclass(frozen=True)
class DiskLife:
    """A reading: the used life of both types as the register has it, and the reserve blocks."""

    type_a: int
    type_b: int
    pre_eol: int = _NOT_DEFINED

    @property
    def used(self) -> dict[str, int]:
        """The types that say something."""
        both = {"type A": self.type_a, "type B": self.type_b}
        return {name: value for name, value in both.items() if value != _NOT_DEFINED}

    @property
    def reserve(self) -> str:
        """The state of its reserve blocks, in words."""
        return _RESERVES[self.pre_eol]

    def years_left(self, seconds: float, before: DiskLife | None = None) -> Years:
        """Until the first of its types is used up, if it is used as it was in these seconds.

        They are its age, or the time since the reading `before`. Raises `InputError` if that is a
        later one.
        """
        lefts = [
            _left(value, seconds, None if before is None else before.used.get(name))
            for name, value in self.used.items()
        ]
        return Years(min(left.low for left in lefts), min(left.high for left in lefts))


def _left(value: int, seconds: float, before: int | None) -> Years:
    """Of one type: the register is `value` now, and was `before`."""
    years = seconds / YEAR_S
    if value >= _EXCEEDED:
        return Years(0.0, 0.0)
    if before is not None and before > value:
        raise InputError("less of its life is used now than before: the readings are swapped")
    most, least = value * _STEP, (value - 1) * _STEP
    if before is None:
        fastest, slowest = most / years, least / years
    else:
        steps = value - before
        fastest, slowest = (steps + 1) * _STEP / years, max(0, steps - 1) * _STEP / years
    high = (1 - least) / slowest if slowest > 0 else math.inf
    return Years(max(0.0, 1 - most) / fastest, high)


def text(name: str, life: DiskLife, years: Years, *, since_before: bool) -> str:
    """The answer and its parts, a fact per line."""
    used = ", ".join(f"{kind} {_share(value)}" for kind, value in life.used.items())
    facts = [
        ("life used", used),
        ("reserve", life.reserve),
        ("time left", years.text),
        ("from", "EXT_CSD (JESD84-B51): the device's own estimate, in steps of 10 %"),
        ("", "no maker says how its device counts"),
        ("assumes", "the device continues to be used as it was in that time"),
    ]
    if not since_before and max(life.used.values()) == 1:
        facts.append(("", "the first step: too early to bound the time from above"))
    return "\n".join([name, *(f"  {head:<14}{what}" for head, what in facts)])


def as_json(name: str, life: DiskLife, years: Years) -> dict[str, Any]:
    """All values; unknown is null."""
    return {
        "name": name,
        "life_used_type_a": life.used.get("type A"),
        "life_used_type_b": life.used.get("type B"),
        "pre_eol_info": life.pre_eol or None,
        "years": {"low": years.low, "high": None if math.isinf(years.high) else years.high},
    }


def _share(value: int) -> str:
    """A register's value as a share of life: `10 to 20 %`."""
    if value >= _EXCEEDED:
        return "all: its promised life is over"
    return f"{10 * (value - 1)} to {10 * value} %"


def parse_ext_csd(text: str, name: str) -> DiskLife | None:
    """The reading in a text; None if it has none. Raises `InputError` for an impossible one."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        both = _BOTH.match(line.strip())
        if both:
            values = {"type_a": both[1], "type_b": both[2]}
        else:
            kinds = {"type_a": _TYPE_A, "type_b": _TYPE_B, "pre_eol": _PRE_EOL}
            matches = {key: kind.search(line) for key, kind in kinds.items()}
            values = {key: match[1] for key, match in matches.items() if match}
        for key, word in values.items():
            most = max(_RESERVES) if key == "pre_eol" else _EXCEEDED
            if int(word, 16) > most:
                raise InputError(
                    f"{name}:{number}: {word}: JESD84-B51 has values up to {most:#04x}"
                )
            if found.setdefault(key, int(word, 16)) != int(word, 16):
                raise InputError(f"{name}:{number}: a second device; give one at a time")
    if not found.keys() & {"type_a", "type_b"}:
        return None
    life = DiskLife(found.get("type_a", 0), found.get("type_b", 0), found.get("pre_eol", 0))
    if not life.used:
        raise InputError(f"{name}: the device does not say how much of its life is used (0x00)")
    return life
