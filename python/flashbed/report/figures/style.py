"""What all figures share: colours, shapes, panel sizes, and the marks of targets."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

__all__ = [
    "COLOURS",
    "DASHES",
    "IS_REAL",
    "IS_SIM",
    "NARROW",
    "PANEL",
    "PATTERNS",
    "PUBLISHED",
    "REQUESTS",
    "SHADES",
    "SHAPES",
    "SMALL",
    "TARGETS",
    "TARGET_NAMES",
    "X_TITLES",
    "by_target",
    "cross",
    "dashed",
    "faceted",
    "named_targets",
    "targets_of",
    "theme",
]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can separate, without their pale yellow."""
DASHES: tuple[list[int], ...] = ([], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 3])
"""Dashes in addition to colours, for pages printed in grey."""
SHADES = ("#8fbfe3", "#56a0d6", "#2380bd", "#0b5f96", "#08426a", "#042740")
"""Colours from few to many."""
PUBLISHED = "stated in the paper"
PANEL = {"width": 350, "height": 165}
SMALL = {"width": 215, "height": 150}
NARROW = {"width": 320, "height": 165}
PATTERNS = ["sequential", "random-byte", "random"]
REQUESTS = "number of 4 KiB requests"
X_TITLES = {
    "requests": "number of requests",
    "request_bytes": "bytes of a request",
    "pattern": None,
    "fs": None,
}
TARGETS = ("sim", "uml", "emulator")
TARGET_NAMES = {"sim": "simulated", "uml": "user-mode Linux", "emulator": "emulated board"}
SHAPES = {"sim": "circle", "uml": "square", "emulator": "triangle-up"}
IS_SIM = alt.datum.target == "sim"
IS_REAL = (alt.datum.target != "sim") & (alt.datum.target != "paper")


def theme(chart: Any) -> Any:
    """Sets the fonts, colours and lines that every figure uses."""
    text = "#3b4148"
    return chart.configure(
        font="Source Sans 3, Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif",
        view={"stroke": "#d0d4da"},
        axis={
            "gridColor": "#eceff3", "domainColor": "#9aa1ab", "tickColor": "#9aa1ab",
            "labelColor": text, "titleColor": text, "titleFontWeight": "normal",
            "labelFontSize": 11, "titleFontSize": 12,
        },
        header={"labelFontSize": 13, "labelColor": "#22262b", "labelPadding": 6},
        legend={
            "orient": "top", "columns": 2, "title": None, "labelFontSize": 12, "labelLimit": 360,
            "symbolStrokeWidth": 2, "symbolOpacity": 1, "labelColor": "#22262b",
            "columnPadding": 48,
        },
        title={
            "fontSize": 13, "fontWeight": 600, "color": "#22262b", "offset": 8,
            "subtitleFontSize": 11, "subtitleColor": text, "subtitlePadding": 3,
        },
    )  # fmt: skip


def targets_of(data: pl.DataFrame) -> list[str]:
    """The targets in a table, in drawing order."""
    return [name for name in TARGETS if name in data["target"]]


def named_targets(data: pl.DataFrame) -> pl.DataFrame:
    """Adds the name of each target; `paper` for published values."""
    return data.with_columns(
        pl.col("target").replace_strict(TARGET_NAMES, default="paper").alias("ran on")
    )


def by_target(targets: list[str]) -> dict[str, Any]:
    """Shape and colour by target."""
    names = [TARGET_NAMES[name] for name in targets]
    colours = [COLOURS[TARGETS.index(name)] for name in targets]
    shapes = [SHAPES[name] for name in targets]
    return {
        "color": alt.Color("ran on:N", scale=alt.Scale(domain=names, range=colours)),
        "shape": alt.Shape("ran on:N", scale=alt.Scale(domain=names, range=shapes)),
    }


def dashed(field: str, order: list[Any], legend: Any = None) -> Any:
    """Dashes for the values of a field; shares the legend of the colours."""
    dashes = [DASHES[place % len(DASHES)] for place in range(len(order))]
    scale = alt.Scale(domain=order, range=dashes)
    return alt.StrokeDash(f"{field}:N", sort=order, scale=scale, legend=legend)


def cross(x: Any, y: Any, tooltip: str = "text:N") -> Any:
    """A black cross at what the paper states in words."""
    return (
        alt.Chart()
        .transform_filter(alt.datum.target == "paper")
        .mark_point(shape="cross", filled=True, size=90, color="#111111")
        .encode(x=x, y=y, tooltip=[alt.Tooltip(tooltip, title=PUBLISHED)])
    )


def faceted(chart: Any, points: pl.DataFrame, row: str) -> Any:
    """A column for each machine, a row for each value of `row`."""
    rows = points[row].unique(maintain_order=True).to_list()
    machines = points["machine"].unique(maintain_order=True).to_list()
    return (
        chart.facet(
            column=alt.Column("machine:N", sort=machines, title=None),
            row=alt.Row(f"{row}:N", sort=rows, title=None),
        )
        .resolve_axis(x="independent", y="independent")
        .resolve_scale(y="independent")
    )
