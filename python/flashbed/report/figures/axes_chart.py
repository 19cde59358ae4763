"""A metric over any axes of an experiment: on x, and as colours, columns and rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import polars as pl

from flashbed.plan.case import CONDITIONS
from flashbed.report.figures.style import (
    COLOURS,
    IS_REAL,
    IS_SIM,
    PANEL,
    SHADES,
    SHAPES,
    SMALL,
    TARGET_NAMES,
    cross,
    dashed,
    named_targets,
    targets_of,
    theme,
)
from flashbed.report.narrow import one_after_another

__all__ = ["UNORDERED", "axes_figure"]

_AXIS_TITLES = {
    "requests": "number of requests",
    "request_bytes": "bytes of a request",
    "file_bytes": "largest file (bytes)",
    "pause_ms": "pause between requests (ms)",
    "read_ahead_kib": "read-ahead (KiB)",
    "read_pct": "part of the file that is read (%)",
    "kernel": "Linux",
    "window": "window",
    "disabled_by": "disabled by",
    "advice": "advice",
    "statement": "statement",
    "request": "request",
    "arrival_ms": "arrival of the request (ms)",
    **{axis: axis for axis in CONDITIONS},
    "state": "initial state",
    "pattern": None,
    "fs": None,
}
_DOUBLING = ("requests", "request_bytes", "file_bytes")
"""Axes whose values double from step to step, unless the steps are even."""
_COUNTED = (*_DOUBLING, "statement", "request", "arrival_ms")
"""Axes with a numeric scale; the others are evenly spaced."""
UNORDERED = (
    "pattern", "fs", "board", "advice", "window", "disabled_by", *CONDITIONS,
)  # fmt: skip
"""Axes without values in between: figures draw bars and no line."""
_DOTS_MAX = 16
"""Up to this many values, a line has dots."""
_SLANTED = ("kernel", *CONDITIONS)
"""Axes whose values are long words."""


def axes_figure(
    points: pl.DataFrame,
    published: pl.DataFrame,
    *,
    title: str,
    axes: Mapping[str, str],
    scale: Literal["linear", "log"] = "linear",
) -> dict[str, Any]:
    """A metric over any axes: `axes` names the columns for `x`, `colour`, `rows` and `columns`.

    `points` is what analysis.points.chosen returns; `published` has the same axes, value, low,
    high, text. Returns a Vega-Lite specification.
    """
    x, colour = axes["x"], axes["colour"]
    data = named_targets(pl.concat([points, published], how="diagonal"))
    order = {axis: points[axis].unique(maintain_order=True).to_list() for axis in axes.values()}
    place = _axis_scale(x, order[x])
    shades = SHADES if colour in _DOUBLING else COLOURS
    legend = alt.Legend(
        symbolType="circle" if x in UNORDERED else "stroke",
        symbolSize=100 if x in UNORDERED else 600,
        title=_AXIS_TITLES.get(colour),
        columns=2 if colour == "stack" else 6,
        labelLimit=320 if colour == "stack" else 220,
    )
    told = alt.Color(
        f"{colour}:N",
        sort=order[colour],
        scale=alt.Scale(domain=order[colour], range=[*shades[: len(order[colour])]]),
        legend=legend,
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(type=scale))
    tooltip = [
        alt.Tooltip("stack:N", title="stack"),
        *(alt.Tooltip(f"{axis}:N", title=_AXIS_TITLES.get(axis) or axis) for axis in axes.values()),
        alt.Tooltip("value:Q", title=title, format=".3~f"),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
    base = alt.Chart().encode(x=place, y=y, color=told, tooltip=tooltip)
    beside = alt.XOffset(f"{colour}:N", sort=order[colour])
    line = alt.Detail("board:N" if x == "kernel" else "stack:N")
    layers = _marks(
        base,
        points,
        beside,
        [line, dashed(colour, order[colour], legend)],
        axis=x,
        by_stack=colour == "stack",
    )
    if published.height:
        paper = alt.Chart().transform_filter(alt.datum.target == "paper")
        bar = paper.mark_rule(color="#111111", strokeWidth=1.2)
        layers.append(bar.encode(x=place, y=alt.Y("low:Q", title=title), y2="high:Q"))
        layers.append(cross(place, y))
    chart = _panels(alt.layer(*layers, data=data), axes, order)
    specification: dict[str, Any] = theme(chart).to_dict()
    panels = len(order[axes["rows"]]) * len(order[axes["columns"]])
    if data.select(axes["rows"], axes["columns"]).n_unique() == panels:
        return specification
    # In rows and columns Vega appends the panels without data and shifts those behind them.
    listed = one_after_another(specification, specification["spec"]["width"])
    return listed | {"columns": len(order[axes["columns"]])}


def _panels(drawn: Any, axes: Mapping[str, str], order: Mapping[str, Sequence[Any]]) -> Any:
    """The chart with a panel for each value of two axes."""
    return (
        drawn.properties(**SMALL if len(order[axes["columns"]]) > 2 else PANEL)
        .facet(
            column=alt.Column(
                f"{axes['columns']}:N",
                sort=order[axes["columns"]],
                title=None,
                header=_header(axes["columns"]),
            ),
            row=alt.Row(
                f"{axes['rows']}:N",
                sort=order[axes["rows"]],
                title=None,
                header=_header(axes["rows"]),
            ),
        )
        .resolve_axis(x="independent")
    )


def _marks(
    base: Any,
    points: pl.DataFrame,
    beside: Any,
    lines: Sequence[Any],
    *,
    axis: str,
    by_stack: bool,
) -> list[Any]:
    """Simulated values as lines by `lines`, or as bars for unordered axes; real ones as points."""
    layers = []
    if "sim" in points["target"]:
        simulated = base.transform_filter(IS_SIM)
        if axis in UNORDERED:
            layers.append(simulated.mark_bar().encode(xOffset=beside))
        else:
            layers.append(simulated.mark_line(strokeWidth=1.8).encode(*lines))
            if points[axis].n_unique() <= _DOTS_MAX:
                layers.append(simulated.mark_point(filled=True, size=26))
    real = [name for name in targets_of(points) if name != "sim"]
    if real:
        scale = alt.Scale(
            domain=[TARGET_NAMES[name] for name in real],
            range=[SHAPES[name] for name in real],
        )
        # The legend of stacks names the targets already.
        legend = None if by_stack else alt.Legend()
        shape = alt.Shape("ran on:N", scale=scale, legend=legend)
        rings = base.transform_filter(IS_REAL).mark_point(filled=False, size=85, strokeWidth=1.6)
        layers.append(
            rings.encode(shape=shape, **({"xOffset": beside} if axis in UNORDERED else {}))
        )
    return layers


def _header(axis: str) -> Any:
    """A panel's title: the value, and for numbers the name of the axis."""
    title = _AXIS_TITLES.get(axis)
    # The brackets matter: Vega substitutes an expression for datum.label.
    return alt.Header(labelExpr=f"'{title}: ' + (datum.label)") if title else alt.Header()


def _axis_scale(axis: str, order: Sequence[Any]) -> Any:
    """The scale of an axis: logarithmic for doubling numbers, evenly spaced for words."""
    title = _AXIS_TITLES.get(axis, axis)
    if axis not in _COUNTED:
        slope = alt.Axis(labelAngle=-30 if axis in _SLANTED else 0)
        return alt.X(f"{axis}:N", sort=order, title=title, axis=slope)
    values = sorted(order)
    steps = {after - before for before, after in itertools.pairwise(values)}
    if axis not in _DOUBLING or (len(values) > 4 and len(steps) == 1):
        return alt.X(f"{axis}:Q", title=title, scale=alt.Scale(zero=False))
    return alt.X(
        f"{axis}:Q",
        title=title,
        scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(values=values, format="d", labelOverlap=True),
    )
