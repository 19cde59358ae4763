"""Figures for an experiment that names none: what its cases took, over the axes they vary."""

from __future__ import annotations

import polars as pl

from flashbed.plan.case import AXES, CONDITIONS
from flashbed.plan.quantities import Figure, RateMetric, Value

__all__ = ["default_figures"]

_ALONG = ("requests", "request_bytes", "file_bytes")
"""Numeric axes for x; the first with several values is used."""
_ORDER = ("fs", *_ALONG, "pause_ns", "read_ahead_kib", "stack", "pattern", "advice", *CONDITIONS)
"""Axes in the order in which a reader wants them separated. `stack` is board and kernel."""
_MEASURES: dict[str, tuple[RateMetric, str, str]] = {
    "time_ns": ("time_ms", "Time in calls (ms)", "How long the program's calls took."),
    "flash_time_ns": (
        "flash_time_ms",
        "Chip busy (ms)",
        "How long the chip was busy in the program's calls.",
    ),
    "flash_reads": ("flash_reads", "Page reads", "Pages read from the chip."),
    "flash_programs": (
        "flash_programs",
        "Page writes",
        "Pages written to the chip, without those left in cache.",
    ),
    "flash_erases": ("flash_erases", "Erases", "Blocks erased."),
}
"""Column of `cases` -> the metric, the axis of values, the caption."""


def default_figures(cases: pl.DataFrame) -> tuple[Figure, ...]:
    """A figure for each measure that is known and not 0 everywhere."""
    told = _telling(cases)
    x = next((axis for axis in _ALONG if axis in told), None) or (
        "pause_ms" if "pause_ns" in told else "fs"
    )
    apart = [axis for axis in told if axis not in (x, "pause_ns")]
    placed = (["stack"] if not apart else []) + apart[:3]
    placed += [axis for axis in ("pattern", "board", "kernel") if axis not in placed][
        : 3 - len(placed)
    ]
    colour, columns, rows = placed
    if "stack" in (columns, rows):  # board and kernel can be told apart by colour only
        colour, columns, rows = "stack", *(axis for axis in placed if axis != "stack")
    only: dict[str, tuple[Value, ...]] = {"window": tuple(cases["window"].unique().sort())}
    only |= {axis: (cases[axis][0],) for axis in apart[3:] if axis not in CONDITIONS}
    left = [AXES[axis].means for axis in apart[3:] if axis in AXES]
    more = f" Only one value is drawn of: {'; '.join(left)}." if left else ""
    return tuple(
        Figure(
            id=metric, title=title, caption=f"{caption}{more}", metric=metric, x=x,
            colour=colour, rows=rows, columns=columns, only=only,
        )
        for column, (metric, title, caption) in _MEASURES.items()
        if cases[column].fill_null(0).sum() and not (column == "flash_time_ns" and _timed(cases))
    )  # fmt: skip


def _timed(cases: pl.DataFrame) -> bool:
    return cases["time_ns"].null_count() == 0


def _telling(cases: pl.DataFrame) -> list[str]:
    """The axes that tell cases apart; each separates cases that those before it do not."""
    apart, kept, columns = 1, [], list[str]()
    for axis in _ORDER:
        new = ["board", "kernel"] if axis == "stack" else [axis]
        count = cases.select(*columns, *new).n_unique()
        if count > apart:
            apart = count
            kept.append(axis)
            columns += new
    return kept
