"""Power over time: predicted and recorded."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from flashbed.report.figures.style import (
    COLOURS,
    NARROW,
    dashed,
    theme,
)

__all__ = ["power_figure"]

_ABOVE_IDLE = "above idle (mW)"


def power_figure(points: pl.DataFrame) -> dict[str, Any]:
    """Power above idle over time: a row for each rail, a column for each file system and machine.

    `points` is what analysis.power_points and measured_points return. Recordings are drawn in grey
    behind the lines. Returns a Vega-Lite specification.
    """
    data = points.with_columns(pl.format("{} on {}", pl.col("fs").str.to_uppercase(), "machine")
                               .alias("panel"))  # fmt: skip
    measured = data.filter(target="measured")["line"].unique(maintain_order=True).to_list()
    lines = sorted(data.filter(pl.col("target") != "measured")["line"].unique().to_list())
    colours = [*(COLOURS[n % 4] for n in range(len(lines))), *["#a7adb6"] * len(measured)]
    legend = alt.Legend(symbolType="stroke", symbolSize=600)
    base = alt.Chart().encode(
        x=alt.X("time_ms:Q", title="time (ms)"),
        y=alt.Y("value:Q", title=_ABOVE_IDLE, scale=alt.Scale(zero=True)),
        color=alt.Color(
            "line:N",
            sort=[*lines, *measured],
            scale=alt.Scale(domain=[*lines, *measured], range=colours),
            legend=legend,
        ),
        tooltip=[
            alt.Tooltip("line:N", title="what"),
            alt.Tooltip("time_ms:Q", title="time (ms)", format=".3f"),
            alt.Tooltip("value:Q", title=_ABOVE_IDLE, format=".1f"),
        ],
    )
    behind = base.transform_filter(alt.datum.target == "measured").mark_line(strokeWidth=1)
    drawn = base.transform_filter(alt.datum.target != "measured").mark_line(
        strokeWidth=1.6, interpolate="linear"
    )
    drawn = drawn.encode(dashed("line", [*lines, *measured], legend))
    layers = [behind, drawn] if measured else [drawn]
    rails = data["rail"].unique(maintain_order=True).to_list()
    panels = data["panel"].unique(maintain_order=True).to_list()
    chart = (
        alt.layer(*layers, data=data)
        .properties(**NARROW)
        .facet(
            column=alt.Column("panel:N", sort=panels, title=None),
            row=alt.Row("rail:N", sort=rails, title=None),
        )
        .resolve_axis(x="independent", y="independent")
        .resolve_scale(y="independent", x="independent")
    )
    with alt.data_transformers.disable_max_rows():
        specification: dict[str, Any] = theme(chart).to_dict()
    return specification
