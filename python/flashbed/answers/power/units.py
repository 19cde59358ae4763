"""Names and units of columns, in the notations of instruments.

`I_cpu (mA)`, `V[V]`, `power_mw`, sigrok's bare `mV DC` and `nanoseconds`, and the kernel's names of
sensor files, whose units its ABI defines: hwmon (Documentation/hwmon/sysfs-interface.rst) and iio
(Documentation/ABI/testing/sysfs-bus-iio). A column without a unit cannot be used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["LOGIC", "TIME", "Column", "column", "frequency_hz", "quantity"]

TIME = "s"
LOGIC = "logic"
_PREFIX = {"": 1.0, "m": 1e-3, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "n": 1e-9, "k": 1e3}
_WORDS = {
    "seconds": ("s", 1.0), "sec": ("s", 1.0), "milliseconds": ("s", 1e-3),
    "microseconds": ("s", 1e-6), "nanoseconds": ("s", 1e-9), "picoseconds": ("s", 1e-12),
    "volt": ("V", 1.0), "volts": ("V", 1.0), "ampere": ("A", 1.0), "amps": ("A", 1.0),
    "amp": ("A", 1.0), "watt": ("W", 1.0), "watts": ("W", 1.0), "logic": (LOGIC, 1.0),
}  # fmt: skip
# hwmon's and iio's files: name without its number -> unit, factor to SI.
_SENSORS = (
    (re.compile(r"power\d+_(input|average)"), "W", 1e-6),
    (re.compile(r"in\d+_input"), "V", 1e-3),
    (re.compile(r"curr\d+_input"), "A", 1e-3),
    (re.compile(r"in_power\d*_input"), "W", 1e-3),
    (re.compile(r"in_voltage\d*_input"), "V", 1e-3),
    (re.compile(r"in_current\d*_input"), "A", 1e-3),
)
_RAW = re.compile(r"in_(power|voltage|current)(\d*)_raw")
_IIO_UNITS = {"power": "W", "voltage": "V", "current": "A"}


@dataclass(frozen=True)
class Column:
    """A column of a table: `unit` is s, V, A, W, logic, or empty; values times `factor` are SI."""

    name: str
    unit: str
    factor: float


def quantity(unit: str) -> tuple[str, float] | None:
    """A unit as SI unit and factor; None if unknown. `mV DC` is a unit too."""
    word = unit.strip().split(" ")[0] if unit.strip() else ""
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if word and word[-1] in "sVAW" and word[:-1] in _PREFIX and word != "ks":
        return word[-1], _PREFIX[word[:-1]]
    return None


def column(header: str, scales: dict[str, float]) -> Column:
    """Parses a header's field. `scales` are those of iio's raw channels, by `in_power2`."""
    text = header.strip().strip('"').strip()
    for pattern, unit, factor in _SENSORS:
        if pattern.fullmatch(text):
            return Column(text, unit, factor)
    raw = _RAW.fullmatch(text)
    if raw and text.removesuffix("_raw") in scales:
        return Column(text, _IIO_UNITS[raw[1]], scales[text.removesuffix("_raw")] * 1e-3)
    bracketed = re.fullmatch(r"(.*?)\s*[\(\[]([^\)\]]*)[\)\]]", text)
    if bracketed:
        known = quantity(bracketed[2])
        if known:
            return Column(bracketed[1].strip() or bracketed[2], *known)
        return Column(text, "", 1.0)
    bare = quantity(text)
    if bare:
        return Column(text, *bare)
    name, _, last = text.rpartition("_")
    # A single letter is as often a channel's name: `I_A` may be the current of A.
    known = _lower(last) if name else None
    return Column(name, *known) if known else Column(text, "", 1.0)


def _lower(unit: str) -> tuple[str, float] | None:
    """A unit at the end of a name, where `mw` means `mW`; never a prefix alone."""
    known = quantity(unit)
    if known:
        return known
    if len(unit) <= 2 and unit and unit[-1] in "vaw":
        return quantity(unit[:-1] + unit[-1].upper())
    return None


def frequency_hz(text: str) -> float | None:
    """`10 kHz`, `1 MHz`, `250000` in hertz; None for anything else."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kMG]?)(?:Hz)?\s*", text)
    try:
        hertz = (
            float(match[1]) * {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]] if match else 0.0
        )
    except ValueError:
        return None
    return hertz or None
