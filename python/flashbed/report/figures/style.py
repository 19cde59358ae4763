"""What all figures share: colours, shapes, sizes of panels, how targets are told apart."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

__all__ = [
    "COLOURS",
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
    "faceted",
    "named_targets",
    "targets_of",
    "theme",
]

COLOURS = ("#4c566a", "#8a4f9e", "#c2571a", "#1f6fb2", "#2e7d4f", "#b8860b", "#a8324a")
SHADES = ("#b9d4ec", "#7fb0da", "#4a8bc2", "#1f6fb2", "#0f4a80", "#082d52")
"""From few to many."""
PUBLISHED = "stated in the paper"
PANEL = {"width": 350, "height": 165}
SMALL = {"width": 215, "height": 150}
NARROW = {"width": 320, "height": 165}
PATTERNS = ["sequential", "random"]
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
    """Fonts, colours and lines of every figure."""
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
    """The targets that a table has, in the order in which they are drawn."""
    return [name for name in TARGETS if name in data["target"]]


def named_targets(data: pl.DataFrame) -> pl.DataFrame:
    """The table with the name of each target, `paper` for what is published."""
    return data.with_columns(
        pl.col("target").replace_strict(TARGET_NAMES, default="paper").alias("ran on")
    )


def by_target(targets: list[str]) -> dict[str, Any]:
    """Shape and colour of what ran a case."""
    names = [TARGET_NAMES[name] for name in targets]
    colours = [COLOURS[3 - TARGETS.index(name)] for name in targets]
    shapes = [SHAPES[name] for name in targets]
    return {
        "color": alt.Color("ran on:N", scale=alt.Scale(domain=names, range=colours)),
        "shape": alt.Shape("ran on:N", scale=alt.Scale(domain=names, range=shapes)),
    }


def cross(x: Any, y: Any, tooltip: str = "text:N") -> Any:
    """What the paper states in words."""
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
