"""Goals and limits of advice: `--goal lifetime --within years>=10,p99_ms<=20`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashbed.base.errors import InputError

__all__ = ["GOALS", "Limit", "parse_limits"]

GOALS = {
    "lifetime": ("years_low", "page_writes"),
    "time": ("time_ns", "flash_time_ns"),
    "latency": ("p99_ns",),
    "energy": ("energy_nj",),
    "space": ("left_bytes",),
}
"""Goal -> the measures that stand for it, the first that is known."""
_UNITS = {
    "years": ("years_low", 1.0), "p50_ms": ("p50_ns", 1e6), "p99_ms": ("p99_ns", 1e6),
    "worst_ms": ("worst_ns", 1e6), "time_s": ("time_ns", 1e9), "page_reads": ("page_reads", 1.0),
    "page_writes": ("page_writes", 1.0), "erases": ("erases", 1.0),
    "amplification": ("amplification", 1.0), "energy_mj": ("energy_nj", 1e6),
    "left_mib": ("left_bytes", 2.0**20),
}  # fmt: skip
_ONE = re.compile(r"([a-z][a-z0-9_]*)\s*(<=|>=)\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)")


@dataclass(frozen=True)
class Limit:
    """A bound of a measure. `text` is as it was given."""

    text: str
    measure: str
    at_most: bool
    value: float

    def holds(self, row: Mapping[str, Any]) -> bool | None:
        """Whether a row keeps it; None where the measure is not known."""
        found = row[self.measure]
        if found is None:
            return None
        return bool(found <= self.value if self.at_most else found >= self.value)


def parse_limits(text: str | None) -> list[Limit]:
    """Parses `years>=10,p99_ms<=20`. Raises `InputError`."""
    return [] if text is None else [_limit(word.strip()) for word in text.split(",")]


def _limit(word: str) -> Limit:
    match = _ONE.fullmatch(word)
    if match is None or match[1] not in _UNITS:
        there_are = ", ".join(_UNITS)
        raise InputError(f"--within {word}: not NAME<=NUMBER or NAME>=NUMBER of {there_are}")
    measure, unit = _UNITS[match[1]]
    return Limit(word, measure, match[2] == "<=", float(match[3]) * unit)
