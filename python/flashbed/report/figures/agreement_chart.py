"""How far the simulator is from real kernels, case by case."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from flashbed.report.figures.style import (
    COLOURS,
    PANEL,
    REQUESTS,
    theme,
)

__all__ = ["agreement_figure"]

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
"""Shapes of file systems, in addition to their colours."""


def agreement_figure(errors: pl.DataFrame, bounds: pl.DataFrame) -> dict[str, Any]:
    """The simulator's error in each case, a panel for each measure.

    `errors` with case_id, fs, pattern, read_ahead, requests, measure, error_pct; `bounds` with
    measure, low, high. Returns a Vega-Lite specification.
    """
    systems = errors["fs"].unique(maintain_order=True).to_list()
    zone = (
        alt.Chart()
        .mark_rect(color=COLOURS[2], opacity=0.09)
        .encode(y=alt.Y("low:Q", title="error of the simulator (%)"), y2="high:Q")
        .transform_filter(alt.datum.zone == "yes")
    )
    points = (
        alt.Chart()  # without data of its own; with it, every panel would show all points
        .mark_point(size=42, strokeWidth=1.4, opacity=0.75)
        .encode(
            x=alt.X("requests:O", title=REQUESTS, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("error_pct:Q", title="error of the simulator (%)"),
            xOffset=alt.XOffset("read_ahead:N", sort=["off", "on"]),
            color=alt.Color("fs:N", scale=alt.Scale(domain=systems, range=[*COLOURS])),
            shape=alt.Shape("fs:N", scale=alt.Scale(domain=systems, range=[*_SHAPES])),
            tooltip=[
                alt.Tooltip("case_id:N", title="case"),
                alt.Tooltip("error_pct:Q", title="error (%)", format=".2f"),
            ],
        )
        .transform_filter(alt.datum.zone != "yes")
    )
    data = pl.concat([errors, bounds.with_columns(pl.lit("yes").alias("zone"))], how="diagonal")
    chart = (
        alt.layer(zone, points, data=data)
        .properties(**PANEL)
        .facet(alt.Facet("measure:N", sort=bounds["measure"].to_list(), title=None), columns=2)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent", y="independent")
    )
    specification: dict[str, Any] = theme(chart).to_dict()
    return specification
