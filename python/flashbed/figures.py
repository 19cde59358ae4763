"""Tables to Vega-Lite specifications. No arithmetic: every number drawn is in a table.

Colours tell stacks apart and are the same in all figures; real kernels are drawn as open points on
the lines of the simulator, what the paper states in words as black crosses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

__all__ = ["agreement_figure", "saving_figure", "wear_figure"]

_COLOURS = ("#4c566a", "#8a4f9e", "#c2571a", "#1f6fb2", "#2e7d4f", "#b8860b")
_PUBLISHED = "stated in the paper"
_PANEL = {"width": 350, "height": 165}
_PATTERNS = ["sequential", "random"]
_REQUESTS = "number of 4 KiB requests"


def _theme(chart: Any) -> Any:
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


def saving_figure(curves: pl.DataFrame, published: pl.DataFrame, title: str) -> dict[str, Any]:
    """What disabling read-ahead saves: a panel for each file system and pattern.

    `curves` as analysis.curves makes it, `published` with fs, pattern, requests, value, text,
    stack. Returns a Vega-Lite specification.
    """
    data = pl.concat([curves, published], how="diagonal")
    stacks = curves["stack"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "stack:N",
        scale=alt.Scale(domain=stacks, range=[*_COLOURS[: len(stacks)]]),
        legend=alt.Legend(symbolType="circle"),
    )
    x = alt.X(
        "requests:Q",
        title=_REQUESTS,
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
    chosen = alt.selection_point(fields=["stack"], bind="legend")
    faded = alt.condition(chosen, alt.value(1.0), alt.value(0.12))
    base = alt.Chart().encode(x=x, y=y)
    band = (
        base.transform_filter(simulated)
        .mark_area(opacity=0.14, interpolate="linear")
        .encode(y=alt.Y("low:Q", title=f"{title} (%)"), y2="high:Q", color=colour)
        .transform_filter(chosen)
    )
    line = base.transform_filter(simulated).mark_line(strokeWidth=1.8)
    dots = base.transform_filter(simulated).mark_point(filled=True, size=22)
    real = base.transform_filter((alt.datum.target != "sim") & (alt.datum.target != "paper"))
    rings = real.mark_point(filled=False, size=85, strokeWidth=1.8)
    cross = (
        base.transform_filter(alt.datum.target == "paper")
        .mark_point(shape="cross", filled=True, size=90, color="#111111")
        .encode(tooltip=[alt.Tooltip("text:N", title=_PUBLISHED)])
    )
    # A layer without rows would make the engine warn of a scale without an extent.
    drawn = [line, dots] if "sim" in curves["target"] else []
    drawn += [rings] if curves.filter(pl.col("target") != "sim").height else []
    layers = [band] if "sim" in curves["target"] else []
    layers += [layer.encode(color=colour, opacity=faded, tooltip=tooltip) for layer in drawn]
    layers[-1] = layers[-1].add_params(chosen)
    layers += [cross] if published.height else []
    chart = (
        alt.layer(*layers, data=data)
        .properties(**_PANEL)
        .facet(
            column=alt.Column("pattern:N", sort=_PATTERNS, title=None),
            row=alt.Row(
                "fs:N", sort=curves["fs"].unique(maintain_order=True).to_list(), title=None
            ),
        )
        .resolve_axis(x="independent")
    )
    specification: dict[str, Any] = _theme(chart).to_dict()
    return specification


def agreement_figure(errors: pl.DataFrame, bounds: pl.DataFrame) -> dict[str, Any]:
    """The simulator's error of each case: a panel for each measure.

    `errors` with case_id, fs, pattern, read_ahead, requests, measure, error_pct; `bounds` with
    measure, low, high. Returns a Vega-Lite specification.
    """
    systems = errors["fs"].unique(maintain_order=True).to_list()
    zone = (
        alt.Chart()
        .mark_rect(color="#2e7d4f", opacity=0.07)
        .encode(y=alt.Y("low:Q", title="error of the simulator (%)"), y2="high:Q")
        .transform_filter(alt.datum.zone == "yes")
    )
    points = (
        alt.Chart()  # no data of its own, or every panel would show all of it
        .mark_point(size=42, strokeWidth=1.4, opacity=0.75)
        .encode(
            x=alt.X("requests:O", title=_REQUESTS, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("error_pct:Q", title="error of the simulator (%)"),
            xOffset=alt.XOffset("read_ahead:N", sort=["off", "on"]),
            color=alt.Color(
                "fs:N",
                scale=alt.Scale(domain=systems, range=[*_COLOURS[2 : 2 + len(systems)]]),
                legend=alt.Legend(symbolType="circle"),
            ),
            shape=alt.Shape("pattern:N", sort=_PATTERNS),
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
        .properties(**_PANEL)
        .facet(alt.Facet("measure:N", sort=bounds["measure"].to_list(), title=None), columns=2)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent", y="independent")
    )
    specification: dict[str, Any] = _theme(chart).to_dict()
    return specification


_MAP_WIDTH = 350


def wear_figure(panels: Sequence[tuple[str, str, pl.DataFrame]]) -> dict[str, Any]:
    """The blocks of each case as a map, dark where they were erased most; crosses are bad blocks.

    The number beside a row is that of its first block.

    A panel is a title, a line below it, and cells as analysis.wear_map makes them. Colours mean the
    same erases in all panels. Returns a Vega-Lite specification.
    """
    charts = []
    for title, subtitle, cells in panels:
        columns, rows = cells["column"].n_unique(), cells["row"].unique().sort()
        base = alt.Chart(cells).encode(
            x=alt.X("column:O", axis=None, scale=alt.Scale(padding=0)),
            y=alt.Y(
                "row:O",
                scale=alt.Scale(padding=0),
                title=None,
                axis=alt.Axis(values=rows.gather_every(4).to_list(), ticks=False, domain=False),
            ),
            tooltip=[
                alt.Tooltip("blocks:N", title="block"),
                alt.Tooltip("erases:Q", title="erases"),
                alt.Tooltip("measured:Q", title="of them while measured"),
                alt.Tooltip("state:N", title="state"),
            ],
        )
        blocks = base.mark_rect(stroke="#ffffff", strokeWidth=0.6).encode(
            color=alt.Color(
                "erases:Q",
                scale=alt.Scale(scheme="lighttealblue"),
                legend=alt.Legend(
                    title="erases of a block", orient="top", gradientLength=220, tickMinStep=1
                ),
            )
        )
        bad = base.transform_filter(alt.datum.state == "bad").mark_point(
            shape="cross", angle=45, size=30, filled=True, color="#b3401a", opacity=1
        )
        has_bad = "bad" in cells["state"]
        chart = alt.layer(blocks, bad) if has_bad else alt.layer(blocks)
        charts.append(
            chart.properties(
                width=_MAP_WIDTH,
                height=_MAP_WIDTH / columns * rows.len(),
                view=alt.ViewBackground(stroke=None),
                title=alt.Title(title, subtitle=subtitle, anchor="start", frame="bounds"),
            )
        )
    figure = alt.concat(*charts, columns=2).resolve_scale(color="shared")
    specification: dict[str, Any] = _theme(figure).to_dict()
    return specification
