"""Formats numbers for tables that a person reads: a suitable unit, few digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "aligned",
    "bytes_text",
    "count_text",
    "energy_text",
    "number_reader",
    "ratio_text",
    "time_text",
]

UNKNOWN = "-"
_DIGITS = 4


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """In the largest unit that gives at least 1, with four digits."""
    for size, unit in units:
        if abs(value) >= size:
            return f"{_few(value / size)} {unit}"
    return f"{_few(value / units[-1][0])} {units[-1][1]}"


def _few(value: float) -> str:
    whole = len(str(int(abs(value))))
    return f"{value:,.{max(0, _DIGITS - whole)}f}"


def time_text(ns: float | None) -> str:
    """A time in nanoseconds."""
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
    return UNKNOWN if ns is None else "0" if ns == 0 else _scaled(ns, units)


def bytes_text(count: float | None) -> str:
    """A number of bytes."""
    if count is None or count < 10_240:
        return UNKNOWN if count is None else f"{int(count):,} B"
    return _scaled(count, ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")))


def energy_text(nj: float | None) -> str:
    """An energy in nanojoules."""
    units = ((1e9, "J"), (1e6, "mJ"), (1e3, "uJ"))
    return UNKNOWN if nj is None else "0" if nj == 0 else _scaled(nj, units)


def count_text(count: float | None) -> str:
    """A whole number."""
    return UNKNOWN if count is None else f"{int(count):,}"


def ratio_text(ratio: float | None) -> str:
    """A quotient."""
    return UNKNOWN if ratio is None else f"{ratio:.2f}"


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Lines with columns of one width: the first `left` of them, and the last, to the left."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row[:-1], wide, strict=False))
        ]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return lines


_BY_UNIT: dict[str, Callable[[Any], str]] = {
    "ns": time_text,
    "bytes": bytes_text,
    "nj": energy_text,
}


def number_reader(column: str, *, whole: bool) -> Callable[[Any], str]:
    """The formatter of a column's numbers, chosen by the unit that ends its name."""
    by_unit = _BY_UNIT.get(column.rsplit("_", 1)[-1])
    return by_unit or (count_text if whole else ratio_text)
