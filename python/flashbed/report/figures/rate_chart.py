"""A metric over the number or size of requests, as lines or bars; and single requests."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from flashbed.report.figures.style import (
    COLOURS,
    IS_REAL,
    IS_SIM,
    NARROW,
    SHAPES,
    TARGET_NAMES,
    X_TITLES,
    by_target,
    cross,
    dashed,
    faceted,
    named_targets,
    targets_of,
    theme,
)

__all__ = ["rate_figure", "request_figure"]


def rate_figure(
    points: pl.DataFrame, published: pl.DataFrame, title: str, x: str
) -> dict[str, Any]:
    """A metric of single cases over a number (lines) or by pattern or file system (bars).

    `points` is what analysis.rate_points returns; `published` has machine, fs, pattern, requests,
    request_bytes, value, text. Returns a Vega-Lite specification.
    """
    draw = _lines if x in ("requests", "request_bytes") else _bars
    data = named_targets(pl.concat([points, published], how="diagonal"))
    specification: dict[str, Any] = theme(draw(data, points, title, x)).to_dict()
    return specification


def _lines(data: pl.DataFrame, points: pl.DataFrame, title: str, x: str) -> Any:
    patterns = points["pattern"].unique(maintain_order=True).to_list()
    at = alt.X(
        f"{x}:Q",
        title=X_TITLES[x],
        scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(values=points[x].unique().sort().to_list(), format="d", labelOverlap=True),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True))
    legend = alt.Legend(symbolType="stroke", symbolSize=600)
    scale = alt.Scale(domain=patterns, range=[*COLOURS[: len(patterns)]])
    colour = alt.Color("pattern:N", sort=patterns, scale=scale, legend=legend)
    tooltip = [
        alt.Tooltip("ran on:N", title="ran on"),
        alt.Tooltip("pattern:N", title="pattern"),
        alt.Tooltip(f"{x}:Q", title=X_TITLES[x] or x),
        alt.Tooltip("value:Q", title=title, format=".4~g"),
    ]
    base = alt.Chart().encode(x=at, y=y, color=colour, tooltip=tooltip)
    layers = []
    if "sim" in points["target"]:
        simulated = base.transform_filter(IS_SIM)
        lines = simulated.mark_line(strokeWidth=1.8).encode(dashed("pattern", patterns, legend))
        layers += [lines, simulated.mark_point(filled=True, size=22)]
    real = [name for name in targets_of(points) if name != "sim"]
    if real:
        shape = alt.Shape(
            "ran on:N",
            scale=alt.Scale(
                domain=[TARGET_NAMES[name] for name in real],
                range=[SHAPES[name] for name in real],
            ),
        )
        rings = base.transform_filter(IS_REAL).mark_point(filled=False, size=85, strokeWidth=1.6)
        layers.append(rings.encode(shape=shape))
    if "paper" in data["ran on"]:
        layers.append(cross(at, y))
    return faceted(alt.layer(*layers, data=data).properties(**NARROW), points, row="fs")


def _bars(data: pl.DataFrame, points: pl.DataFrame, title: str, x: str) -> Any:
    row = "fs" if x == "pattern" else "pattern"
    targets = targets_of(points)
    names = [TARGET_NAMES[name] for name in targets]
    order = points[x].unique(maintain_order=True).to_list()
    at = alt.X(f"{x}:N", sort=order, title=X_TITLES[x], axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title=title)
    bars = (
        alt.Chart()
        .transform_filter(alt.datum.target != "paper")
        .mark_bar()
        .encode(
            x=at,
            xOffset=alt.XOffset("ran on:N", sort=names),
            y=y,
            color=by_target(targets)["color"],
            tooltip=[
                alt.Tooltip("ran on:N", title="ran on"),
                alt.Tooltip(f"{x}:N", title=x),
                alt.Tooltip("value:Q", title=title, format=".4~g"),
            ],
        )
    )
    numbers = (
        alt.Chart()
        .transform_filter(alt.datum.target != "paper")
        .mark_text(dy=-6, fontSize=9, color="#3b4148")
        .encode(
            x=at,
            xOffset=alt.XOffset("ran on:N", sort=names),
            y=y,
            text=alt.Text("value:Q", format=".3~g"),
        )
    )
    layers = [bars, numbers, *([cross(at, y)] if "paper" in data["ran on"] else [])]
    return faceted(alt.layer(*layers, data=data).properties(**NARROW), points, row=row)


def request_figure(points: pl.DataFrame, title: str) -> dict[str, Any]:
    """A metric of each request over its number.

    `points` is what analysis.per_request returns, with `value`. Returns a Vega-Lite specification.
    """
    data = named_targets(points)
    targets = targets_of(points)
    encoding = by_target(targets)
    base = alt.Chart().encode(
        x=alt.X("request:Q", title="request"),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=True)),
        color=encoding["color"],
        tooltip=[
            alt.Tooltip("ran on:N", title="ran on"),
            alt.Tooltip("request:Q", title="request"),
            alt.Tooltip("value:Q", title=title, format=".4~g"),
        ],
    )
    layers = []
    if "sim" in targets:
        layers.append(base.transform_filter(IS_SIM).mark_line(strokeWidth=1.2))
    if targets != ["sim"]:
        rings = base.transform_filter(IS_REAL).mark_point(filled=False, size=26, strokeWidth=1.2)
        layers.append(rings.encode(shape=encoding["shape"]))
    chart = alt.layer(*layers, data=data).properties(**NARROW)
    specification: dict[str, Any] = theme(faceted(chart, points, row="fs")).to_dict()
    return specification
