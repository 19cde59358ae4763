"""Tables to Vega-Lite specifications. No arithmetic: every number drawn is in a table.

Colours tell stacks apart, or patterns and targets where each stack has a panel, and are the same in
all figures; real kernels are drawn as open points on the lines of the simulator, what the paper
states in words as black crosses.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import polars as pl

__all__ = [
    "UNORDERED",
    "agreement_figure",
    "axes_figure",
    "power_figure",
    "rate_figure",
    "request_figure",
    "saving_figure",
    "wear_figure",
]

_COLOURS = ("#4c566a", "#8a4f9e", "#c2571a", "#1f6fb2", "#2e7d4f", "#b8860b", "#a8324a")
_SHADES = ("#b9d4ec", "#7fb0da", "#4a8bc2", "#1f6fb2", "#0f4a80", "#082d52")
"""From few to many."""
_PUBLISHED = "stated in the paper"
_ABOVE_IDLE = "above idle (mW)"
_PANEL = {"width": 350, "height": 165}
_SMALL = {"width": 215, "height": 150}
_NARROW = {"width": 320, "height": 165}
_PATTERNS = ["sequential", "random"]
_REQUESTS = "number of 4 KiB requests"
_X_TITLES = {
    "requests": "number of requests",
    "request_bytes": "bytes of a request",
    "pattern": None,
    "fs": None,
}
_TARGETS = ("sim", "uml", "emulator")
_TARGET_NAMES = {"sim": "simulated", "uml": "user-mode Linux", "emulator": "emulated board"}
_SHAPES = {"sim": "circle", "uml": "square", "emulator": "triangle-up"}
_IS_SIM = alt.datum.target == "sim"
_IS_REAL = (alt.datum.target != "sim") & (alt.datum.target != "paper")


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


def _targets_of(data: pl.DataFrame) -> list[str]:
    return [name for name in _TARGETS if name in data["target"]]


def _named_targets(data: pl.DataFrame) -> pl.DataFrame:
    return data.with_columns(
        pl.col("target").replace_strict(_TARGET_NAMES, default="paper").alias("ran on")
    )


def _by_target(targets: list[str]) -> dict[str, Any]:
    """Shape and colour of what ran a case."""
    names = [_TARGET_NAMES[name] for name in targets]
    colours = [_COLOURS[3 - _TARGETS.index(name)] for name in targets]
    shapes = [_SHAPES[name] for name in targets]
    return {
        "color": alt.Color("ran on:N", scale=alt.Scale(domain=names, range=colours)),
        "shape": alt.Shape("ran on:N", scale=alt.Scale(domain=names, range=shapes)),
    }


def _cross(x: Any, y: Any, tooltip: str = "text:N") -> Any:
    """What the paper states in words."""
    return (
        alt.Chart()
        .transform_filter(alt.datum.target == "paper")
        .mark_point(shape="cross", filled=True, size=90, color="#111111")
        .encode(x=x, y=y, tooltip=[alt.Tooltip(tooltip, title=_PUBLISHED)])
    )


def rate_figure(
    points: pl.DataFrame, published: pl.DataFrame, title: str, x: str
) -> dict[str, Any]:
    """A metric of single cases over a number (lines) or by pattern or file system (bars).

    `points` as analysis.rate_points makes it, `published` with machine, fs, pattern, requests,
    request_bytes, value, text. Returns a Vega-Lite specification.
    """
    draw = _lines if x in ("requests", "request_bytes") else _bars
    data = _named_targets(pl.concat([points, published], how="diagonal"))
    specification: dict[str, Any] = _theme(draw(data, points, title, x)).to_dict()
    return specification


def _lines(data: pl.DataFrame, points: pl.DataFrame, title: str, x: str) -> Any:
    patterns = points["pattern"].unique(maintain_order=True).to_list()
    at = alt.X(
        f"{x}:Q",
        title=_X_TITLES[x],
        scale=alt.Scale(type="log", base=2),
        axis=alt.Axis(values=points[x].unique().sort().to_list(), format="d", labelOverlap=True),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True))
    colour = alt.Color("pattern:N", scale=alt.Scale(domain=patterns, range=[*_COLOURS]))
    tooltip = [
        alt.Tooltip("ran on:N", title="ran on"),
        alt.Tooltip("pattern:N", title="pattern"),
        alt.Tooltip(f"{x}:Q", title=_X_TITLES[x] or x),
        alt.Tooltip("value:Q", title=title, format=".4~g"),
    ]
    base = alt.Chart().encode(x=at, y=y, color=colour, tooltip=tooltip)
    layers = []
    if "sim" in points["target"]:
        simulated = base.transform_filter(_IS_SIM)
        layers += [simulated.mark_line(strokeWidth=1.8), simulated.mark_point(filled=True, size=22)]
    real = [name for name in _targets_of(points) if name != "sim"]
    if real:
        shape = alt.Shape(
            "ran on:N",
            scale=alt.Scale(
                domain=[_TARGET_NAMES[name] for name in real],
                range=[_SHAPES[name] for name in real],
            ),
        )
        rings = base.transform_filter(_IS_REAL).mark_point(filled=False, size=85, strokeWidth=1.6)
        layers.append(rings.encode(shape=shape))
    if "paper" in data["ran on"]:
        layers.append(_cross(at, y))
    return _faceted(alt.layer(*layers, data=data).properties(**_NARROW), points, row="fs")


def _bars(data: pl.DataFrame, points: pl.DataFrame, title: str, x: str) -> Any:
    row = "fs" if x == "pattern" else "pattern"
    targets = _targets_of(points)
    names = [_TARGET_NAMES[name] for name in targets]
    order = points[x].unique(maintain_order=True).to_list()
    at = alt.X(f"{x}:N", sort=order, title=_X_TITLES[x], axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title=title)
    bars = (
        alt.Chart()
        .transform_filter(alt.datum.target != "paper")
        .mark_bar()
        .encode(
            x=at,
            xOffset=alt.XOffset("ran on:N", sort=names),
            y=y,
            color=_by_target(targets)["color"],
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
    layers = [bars, numbers, *([_cross(at, y)] if "paper" in data["ran on"] else [])]
    return _faceted(alt.layer(*layers, data=data).properties(**_NARROW), points, row=row)


def _faceted(chart: Any, points: pl.DataFrame, row: str) -> Any:
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
    "state": "initial state",
    "faults": "faults",
    "database": "database",
    "pattern": None,
    "fs": None,
}
_DOUBLING = ("requests", "request_bytes", "file_bytes")
"""Axes whose values double from one to the next, if they are not a row of even steps."""
_COUNTED = (*_DOUBLING, "statement")
"""Axes with a scale of numbers; the others are drawn evenly spaced."""
UNORDERED = (
    "pattern", "fs", "board", "advice", "window", "disabled_by", "state", "faults", "database",
)  # fmt: skip
"""Axes between whose values there is nothing, so bars are drawn and no line."""


_SLANTED = ("kernel", "state", "faults", "database")
"""Axes whose values are long words."""


def axes_figure(
    points: pl.DataFrame,
    published: pl.DataFrame,
    title: str,
    axes: Mapping[str, str],
    scale: Literal["linear", "log"] = "linear",
) -> dict[str, Any]:
    """A metric over any axes: `axes` says which column is `x`, `colour`, `rows` and `columns`.

    `points` as analysis.points.chosen makes it, `published` with the same axes, value, low, high,
    text. Returns a Vega-Lite specification.
    """
    x, colour = axes["x"], axes["colour"]
    data = _named_targets(pl.concat([points, published], how="diagonal"))
    order = {axis: points[axis].unique(maintain_order=True).to_list() for axis in axes.values()}
    place = _place(x, order[x])
    shades = _SHADES if colour in _DOUBLING else _COLOURS
    told = alt.Color(
        f"{colour}:N",
        sort=order[colour],
        scale=alt.Scale(domain=order[colour], range=[*shades[: len(order[colour])]]),
        legend=alt.Legend(
            symbolType="circle",
            title=_AXIS_TITLES.get(colour),
            columns=2 if colour == "stack" else 6,
            labelLimit=220,
        ),
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
        base, points, beside, line, unordered=x in UNORDERED, by_stack=colour == "stack"
    )
    if published.height:
        paper = alt.Chart().transform_filter(alt.datum.target == "paper")
        bar = paper.mark_rule(color="#111111", strokeWidth=1.2)
        layers.append(bar.encode(x=place, y=alt.Y("low:Q", title=title), y2="high:Q"))
        layers.append(_cross(place, y))
    chart = (
        alt.layer(*layers, data=data)
        .properties(**_SMALL if len(order[axes["columns"]]) > 2 else _PANEL)
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
    specification: dict[str, Any] = _theme(chart).to_dict()
    return specification


def _marks(
    base: Any, points: pl.DataFrame, beside: Any, line: Any, *, unordered: bool, by_stack: bool
) -> list[Any]:
    """Simulated lines, one a `line`, or bars where there is nothing between values; real points."""
    layers = []
    if "sim" in points["target"]:
        simulated = base.transform_filter(_IS_SIM)
        if unordered:
            layers.append(simulated.mark_bar().encode(xOffset=beside))
        else:
            layers.append(simulated.mark_line(strokeWidth=1.8).encode(detail=line))
            layers.append(simulated.mark_point(filled=True, size=26))
    real = [name for name in _targets_of(points) if name != "sim"]
    if real:
        scale = alt.Scale(
            domain=[_TARGET_NAMES[name] for name in real],
            range=[_SHAPES[name] for name in real],
        )
        # The names of stacks say it already.
        legend = None if by_stack else alt.Legend()
        shape = alt.Shape("ran on:N", scale=scale, legend=legend)
        rings = base.transform_filter(_IS_REAL).mark_point(filled=False, size=85, strokeWidth=1.6)
        layers.append(rings.encode(shape=shape, **({"xOffset": beside} if unordered else {})))
    return layers


def _header(axis: str) -> Any:
    """What stands over a panel: the value, and of numbers what they are of."""
    title = _AXIS_TITLES.get(axis)
    # Brackets: the engine puts an expression in the place of datum.label.
    return alt.Header(labelExpr=f"'{title}: ' + (datum.label)") if title else alt.Header()


def _place(axis: str, order: Sequence[Any]) -> Any:
    """Where a point stands on an axis: doubling numbers by their logarithm, words in a row."""
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


def request_figure(points: pl.DataFrame, title: str) -> dict[str, Any]:
    """A metric of each request over its number.

    `points` as analysis.per_request makes it, with `value`. Returns a Vega-Lite specification.
    """
    data = _named_targets(points)
    targets = _targets_of(points)
    encoding = _by_target(targets)
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
        layers.append(base.transform_filter(_IS_SIM).mark_line(strokeWidth=1.2))
    if targets != ["sim"]:
        rings = base.transform_filter(_IS_REAL).mark_point(filled=False, size=26, strokeWidth=1.2)
        layers.append(rings.encode(shape=encoding["shape"]))
    chart = alt.layer(*layers, data=data).properties(**_NARROW)
    specification: dict[str, Any] = _theme(_faceted(chart, points, row="fs")).to_dict()
    return specification


def power_figure(points: pl.DataFrame) -> dict[str, Any]:
    """Power above idle over time: a row for each rail, a column for each file system and machine.

    `points` as analysis.power_points and measured_points make them; what was measured is drawn
    in grey behind the lines. Returns a Vega-Lite specification.
    """
    data = points.with_columns(pl.format("{} on {}", pl.col("fs").str.to_uppercase(), "machine")
                               .alias("panel"))  # fmt: skip
    measured = data.filter(target="measured")["line"].unique(maintain_order=True).to_list()
    lines = sorted(data.filter(pl.col("target") != "measured")["line"].unique().to_list())
    colours = [*(_COLOURS[2 + n % 4] for n in range(len(lines))), *["#a7adb6"] * len(measured)]
    base = alt.Chart().encode(
        x=alt.X("time_ms:Q", title="time (ms)"),
        y=alt.Y("value:Q", title=_ABOVE_IDLE, scale=alt.Scale(zero=True)),
        color=alt.Color(
            "line:N",
            sort=None,
            scale=alt.Scale(domain=[*lines, *measured], range=colours),
            legend=alt.Legend(symbolType="stroke"),
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
    layers = [behind, drawn] if measured else [drawn]
    rails = data["rail"].unique(maintain_order=True).to_list()
    panels = data["panel"].unique(maintain_order=True).to_list()
    chart = (
        alt.layer(*layers, data=data)
        .properties(**_NARROW)
        .facet(
            column=alt.Column("panel:N", sort=panels, title=None),
            row=alt.Row("rail:N", sort=rails, title=None),
        )
        .resolve_axis(x="independent", y="independent")
        .resolve_scale(y="independent", x="independent")
    )
    with alt.data_transformers.disable_max_rows():
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


def _whole_steps(counts: Sequence[int]) -> list[int]:
    """About five whole numbers from the least to the most."""
    if not counts:
        return []
    low, high = min(counts), max(counts)
    return sorted({round(low + (high - low) * step / 4) for step in range(5)})


def wear_figure(panels: Sequence[tuple[str, str, pl.DataFrame]]) -> dict[str, Any]:
    """The blocks of each case as a map, dark where they were erased most; crosses are bad blocks.

    The number beside a row is that of its first block.

    A panel is a title, a line below it, and cells as analysis.wear_map makes them. Colours mean the
    same erases in all panels. Returns a Vega-Lite specification.
    """
    charts = []
    known = [erases for *_, cells in panels for erases in cells["erases"].drop_nulls()]
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
                    title="erases of a block",
                    orient="top",
                    gradientLength=220,
                    values=_whole_steps(known),
                    format=",d",
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
