"""What disabling read-ahead saves, over the number of requests, a panel for each pattern."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from flashbed.report.figures.style import (
    COLOURS,
    PANEL,
    PATTERNS,
    PUBLISHED,
    REQUESTS,
    dashed,
    theme,
)

__all__ = ["saving_figure"]


def saving_figure(curves: pl.DataFrame, published: pl.DataFrame, title: str) -> dict[str, Any]:
    """What disabling read-ahead saves: a panel for each file system and pattern.

    `curves` is what analysis.curves returns; `published` has fs, pattern, requests, value, text,
    stack. Returns a Vega-Lite specification.
    """
    data = pl.concat([curves, published], how="diagonal")
    stacks = curves["stack"].unique(maintain_order=True).to_list()
    legend = alt.Legend(symbolType="stroke", symbolSize=600)
    colour = alt.Color(
        "stack:N",
        sort=stacks,
        scale=alt.Scale(domain=stacks, range=[*COLOURS[: len(stacks)]]),
        legend=legend,
    )
    x = alt.X(
        "requests:Q",
        title=REQUESTS,
        scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(values=curves["requests"].unique().sort().to_list(), format="d"),
    )
    y = alt.Y("value:Q", title=f"{title} (%)")
    tooltip = [
        alt.Tooltip("stack:N", title="stack"),
        alt.Tooltip("requests:Q", title="requests"),
        alt.Tooltip("value:Q", title="saved (%)", format=".1f"),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
    simulated = alt.datum.target == "sim"
    base = alt.Chart().encode(x=x, y=y)
    band = (
        base.transform_filter(simulated)
        .mark_area(opacity=0.14, interpolate="linear")
        .encode(y=alt.Y("low:Q", title=f"{title} (%)"), y2="high:Q", color=colour)
    )
    line = base.transform_filter(simulated).mark_line(strokeWidth=1.8)
    line = line.encode(dashed("stack", stacks, legend))
    dots = base.transform_filter(simulated).mark_point(filled=True, size=22)
    real = base.transform_filter((alt.datum.target != "sim") & (alt.datum.target != "paper"))
    rings = real.mark_point(filled=False, size=85, strokeWidth=1.8)
    cross = (
        base.transform_filter(alt.datum.target == "paper")
        .mark_point(shape="cross", filled=True, size=90, color="#111111")
        .encode(tooltip=[alt.Tooltip("text:N", title=PUBLISHED)])
    )
    # Vega warns of a scale without an extent if a layer has no rows.
    drawn = [line, dots] if "sim" in curves["target"] else []
    drawn += [rings] if curves.filter(pl.col("target") != "sim").height else []
    layers = [band] if "sim" in curves["target"] else []
    layers += [layer.encode(color=colour, tooltip=tooltip) for layer in drawn]
    layers += [cross] if published.height else []
    chart = (
        alt.layer(*layers, data=data)
        .properties(**PANEL)
        .facet(
            column=alt.Column("pattern:N", sort=PATTERNS, title=None),
            row=alt.Row(
                "fs:N", sort=curves["fs"].unique(maintain_order=True).to_list(), title=None
            ),
        )
        .resolve_axis(x="independent")
    )
    specification: dict[str, Any] = theme(chart).to_dict()
    return specification
