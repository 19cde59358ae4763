"""Figures of a trace in Vega-Lite: operations over time, layer by layer, by task.

"Layer by layer" follows the methodology's slides: VFS, flash file system and driver on one axis of
time. It shows how long each VFS call took and what the page cache holds; how long each call of the
file system's functions took, beside the time of one page at the driver, and how many pages it read
and programmed; and where on the chip the driver worked.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import altair as alt
import polars as pl

from flashbed.bench.tracing.perfetto import cached_pages
from flashbed.bench.tracing.trace import TABLES, Trace

__all__ = ["figures", "pages_of_calls"]

TIMES = 240
"""Parts into which the time is divided."""
CALLS_MAX = 4000
"""Calls drawn singly; if there are more, the longest."""
_WIDTH = 620
_KINDS = ("read", "program", "erase")
_COLOURS = ("#3b7dd8", "#d8823b", "#7a3bd8")
_LAYERS = ("system calls", "VFS", "file system", "flash")
_LAYER_COLOURS = ("#555555", "#2a9d6f", "#d8823b", "#3b7dd8")
_FLASH_CALLS = ("read", "program")
_OPERATIONS = {"requests": "op", "vfs": "kind", "functions": "function", "flash": "kind"}
"""Each layer's table, and its column that names the operation."""
_LAYERS_CAPTION = (
    "The VFS's calls and pages in the cache, the file system's functions with the flash pages that "
    "each read and wrote itself, the driver. A call is drawn where it began; if a layer has "
    f"more than {CALLS_MAX:,}, only the longest. Durations have a logarithmic scale; a dashed line "
    "is one page of the chip (the median). Cached pages count from the trace's beginning."
)
_PANEL_WIDTH = 530
_LEGEND = alt.Legend(title=None, orient="right", labelLimit=170)
_TENS = [10.0**power for power in range(-5, 7)]


def figures(trace: Trace) -> list[tuple[str, str, dict[str, Any]]]:
    """Title, caption and specification of each figure that has data."""
    calls = _calls(trace)
    drawn: list[tuple[str, str, dict[str, Any]]] = []
    if any(map(trace.has, TABLES)):
        drawn.append(
            (
                "Over time",
                "Operations of each layer; darker means more at that time.",
                _time(trace, calls),
            )
        )
        panels = _layers(trace, calls)
        if panels is not None:
            drawn.append(("Layer by layer", _LAYERS_CAPTION, panels))
    if trace.has("flash"):
        drawn.append(
            ("By task", "Which task caused flash operations.", _tasks(trace.lazy("flash")))
        )
    return drawn


def _calls(trace: Trace) -> pl.LazyFrame:
    """layer, operation, time_ms, duration_ms of all events."""
    took = pl.coalesce("latency_ns", "flash_time_ns")
    return pl.concat(
        trace.lazy(name).select(
            pl.lit(layer).alias("layer"),
            pl.col(column).alias("operation"),
            (pl.col("start_ns") / 1e6).alias("time_ms"),
            ((took if name == "requests" else pl.col("duration_ns")) / 1e6).alias("duration_ms"),
        )
        for layer, (name, column) in zip(_LAYERS, _OPERATIONS.items(), strict=True)
    )


def _binned(frame: pl.LazyFrame, *by: str) -> pl.DataFrame:
    """Counts rows by part of the time and the given columns: begin_ms, end_ms, count.

    In the order of first occurrence.
    """
    ends = frame.select(first=pl.col("time_ms").min(), last=pl.col("time_ms").max())
    ((first, last),) = ends.collect(engine="streaming").rows()
    step = max((last - first) / TIMES, 1e-6)
    part = ((pl.col("time_ms") - first) / step).floor().clip(0, TIMES - 1)
    return (
        frame.with_row_index("_row")
        .group_by(part.alias("_part"), *by)
        .agg(pl.len().cast(pl.Int64).alias("count"), pl.col("_row").min())
        .sort("_row")
        .with_columns(
            (first + pl.col("_part") * step).alias("begin_ms"),
            (first + (pl.col("_part") + 1) * step).alias("end_ms"),
        )
        .drop("_part", "_row")
        .collect(engine="streaming")
    )


def _layer_colour() -> alt.Color:
    scale = alt.Scale(domain=list(_LAYERS), range=list(_LAYER_COLOURS))
    return alt.Color("layer:N", scale=scale, legend=alt.Legend(title=None, orient="top"))


def _specification(chart: Any) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        specification: dict[str, Any] = chart.to_dict()
    return specification


def _time(trace: Trace, calls: pl.LazyFrame) -> dict[str, Any]:
    names = []
    for layer, (name, column) in zip(_LAYERS, _OPERATIONS.items(), strict=True):
        met = trace.lazy(name).with_row_index("_row").group_by(column).agg(pl.col("_row").min())
        operations = met.sort("_row").collect(engine="streaming")[column]
        names += [f"{layer}: {operation}" for operation in operations]
    named = calls.with_columns((pl.col("layer") + ": " + pl.col("operation")).alias("name"))
    chart = alt.Chart(_binned(named, "layer", "name")).mark_rect().encode(
        x=alt.X("begin_ms:Q", title="time, ms"),
        x2="end_ms:Q",
        y=alt.Y("name:N", sort=names, title=None),
        color=_layer_colour(),
        opacity=alt.Opacity("count:Q", legend=None, scale=alt.Scale(type="sqrt", range=[0.3, 1])),
        tooltip=["name:N", "count:Q", alt.Tooltip("begin_ms:Q", title="from, ms", format=".3f")],
    )  # fmt: skip
    return _specification(chart.properties(width=_WIDTH - 120))


def _kind_colour(legend: alt.Legend | None = _LEGEND) -> alt.Color:
    scale = alt.Scale(domain=list(_KINDS), range=list(_COLOURS))
    return alt.Color("kind:N", scale=scale, legend=legend)


def _layers(trace: Trace, calls: pl.LazyFrame) -> dict[str, Any] | None:
    """The panels that have data, on one axis of time; None without any."""
    ends = pl.col("time_ms") + pl.col("duration_ms").fill_null(0)
    both = calls.select(first=pl.col("time_ms").min(), last=ends.max())
    (bounds,) = both.collect(engine="streaming").rows()
    x_scale = alt.Scale(domain=[min(0.0, bounds[0]), max(bounds[1], bounds[0] + 1e-6)], nice=False)
    timed = trace.lazy("vfs").select(pl.col("duration_ns").is_not_null().any())
    above = _LAYERS[1] if timed.collect(engine="streaming").item() else _LAYERS[0]
    panels = [
        _durations(calls.filter(pl.col("layer") == above), above, x_scale),
        _cached(trace, x_scale),
        _durations(
            calls.filter(pl.col("layer") == _LAYERS[2]), _LAYERS[2], x_scale, _page_times(trace)
        ),
        _pages_of_calls(trace, x_scale),
        _address(trace.lazy("flash"), x_scale),
    ]
    drawn = [panel for panel in panels if panel is not None]
    if not drawn:
        return None
    bottom = alt.TitleParams("time, ms", orient="bottom", anchor="middle", fontSize=11)
    stacked = alt.vconcat(*drawn, spacing=8, title=bottom)
    return _specification(stacked.resolve_scale(color="independent"))


def _time_axis(column: str, scale: alt.Scale) -> alt.X:
    return alt.X(f"{column}:Q", title=None, scale=scale)


def _durations(
    calls: pl.LazyFrame, layer: str, x_scale: alt.Scale, marks: pl.DataFrame | None = None
) -> Any:
    """How long each call took; `marks` are horizontal lines."""
    timed = calls.filter(pl.col("duration_ms") > 0)
    ordered = timed.sort("duration_ms", descending=True, maintain_order=True)
    longest = ordered.head(CALLS_MAX).collect(engine="streaming")
    if not longest.height:
        return None
    y = alt.Y(
        "duration_ms:Q",
        title=f"{layer}, ms",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=_TENS),
    )
    points = alt.Chart(longest).mark_point(filled=True, size=16, opacity=0.7).encode(
        x=_time_axis("time_ms", x_scale),
        y=y,
        color=alt.Color("operation:N", legend=_LEGEND),
        tooltip=["operation:N", "time_ms:Q", alt.Tooltip("duration_ms:Q", format=".4f")],
    )  # fmt: skip
    if marks is None or not marks.height:
        return points.properties(width=_PANEL_WIDTH, height=130)
    rules = alt.Chart(marks).mark_rule(strokeDash=[4, 3], color="#888888").encode(y=y)
    drawn = points + rules
    for number, at in enumerate((_PANEL_WIDTH - 96, 4)):  # labels of close lines do not overlap
        words = alt.Chart(marks[number : number + 1]).mark_text(
            align="left", baseline="bottom", dy=-2, fontSize=10
        )
        drawn += words.encode(x=alt.value(at), y=y, text="what:N")
    return drawn.properties(width=_PANEL_WIDTH, height=130)


def _page_times(trace: Trace) -> pl.DataFrame:
    """what, duration_ms: one page at the driver, if the chip reports durations."""
    flash = trace.lazy("flash").with_row_index("_row")
    timed = flash.filter(pl.col("kind").is_in(_FLASH_CALLS), pl.col("duration_ns") > 0)
    times = timed.group_by("kind").agg(
        (pl.lit("one page: ") + pl.col("kind").first()).alias("what"),
        (pl.col("duration_ns").median() / 1e6).alias("duration_ms"),
        pl.col("_row").min(),
    )
    return times.sort("_row").drop("_row").collect(engine="streaming")


def _cached(trace: Trace, x_scale: alt.Scale) -> Any:
    every = max(1, sum(1 for _ in cached_pages(trace)) // CALLS_MAX)
    points = list(islice(cached_pages(trace), 0, None, every))
    if not points:
        return None
    times = [time_ns / 1e6 for time_ns, _ in points]
    frame = pl.DataFrame({"time_ms": times, "pages": [pages for _, pages in points]})
    chart = alt.Chart(frame).mark_line(interpolate="step-after").encode(
        x=_time_axis("time_ms", x_scale), y=alt.Y("pages:Q", title="cached pages")
    )  # fmt: skip
    return chart.properties(width=_PANEL_WIDTH, height=75)


def pages_of_calls(trace: Trace) -> pl.DataFrame:
    """function, time_ms, kind, pages: reads and programs by a call's own task while it ran."""
    columns = ("function", "task", "start_ns", "duration_ns")
    timed = trace.lazy("functions").select(columns).drop_nulls("duration_ns").collect()
    counted = []
    for (task,), calls in timed.group_by("task", maintain_order=True):
        starts = calls["start_ns"]
        for kind in _FLASH_CALLS:
            its = trace.lazy("flash").filter(task=task, kind=kind).select("start_ns")
            own = its.collect(engine="streaming")["start_ns"].sort()
            ends = own.search_sorted(starts + calls["duration_ns"], "right")
            pages = ends.cast(pl.Int64) - own.search_sorted(starts, "left").cast(pl.Int64)
            counted.append(
                calls.select(
                    "function",
                    (pl.col("start_ns") / 1e6).alias("time_ms"),
                    pl.lit(kind).alias("kind"),
                    pages.alias("pages"),
                )
            )
    if not counted:
        return pl.DataFrame(schema={"function": pl.String, "time_ms": pl.Float64,
                                    "kind": pl.String, "pages": pl.Int64})  # fmt: skip
    return pl.concat(counted).sort("time_ms", maintain_order=True)


def _pages_of_calls(trace: Trace, x_scale: alt.Scale) -> Any:
    pages = pages_of_calls(trace).filter(pl.col("pages") > 0)
    if not pages.height:
        return None
    most = pages.sort("pages", descending=True, maintain_order=True).head(CALLS_MAX)
    chart = alt.Chart(most).mark_point(filled=True, size=16, opacity=0.7).encode(
        x=_time_axis("time_ms", x_scale),
        y=alt.Y("pages:Q", title="flash pages", axis=alt.Axis(tickMinStep=1)),
        color=_kind_colour(legend=None),
        tooltip=["function:N", "time_ms:Q", "kind:N", "pages:Q"],
    )  # fmt: skip
    return chart.properties(width=_PANEL_WIDTH, height=80)


def _address(flash: pl.LazyFrame, x_scale: alt.Scale) -> Any:
    """Pages, or blocks if there are too many operations to draw."""
    counted = flash.select(
        rows=pl.len(), pages=pl.col("page").count(), blocks=pl.col("block").count()
    )
    ((rows, pages, blocks),) = counted.collect(engine="streaming").rows()
    few = rows <= CALLS_MAX or blocks < rows
    address = "page" if few else "block"
    if not (pages if few else blocks):
        return None
    flash = flash.drop_nulls(address)
    timed = flash.with_columns((pl.col("start_ns") / 1e6).alias("time_ms"))
    chart = alt.Chart(_binned(timed, address, "kind")).mark_point(filled=True, size=16).encode(
        x=_time_axis("begin_ms", x_scale),
        y=alt.Y(f"{address}:Q", title=f"driver, {address}", scale=alt.Scale(zero=False)),
        color=_kind_colour(),
        tooltip=[f"{address}:Q", "kind:N", "count:Q"],
    )  # fmt: skip
    return chart.properties(width=_PANEL_WIDTH, height=200)


def _tasks(flash: pl.LazyFrame) -> dict[str, Any]:
    counts = (
        flash.with_row_index("_row")
        .group_by("task", "kind")
        .agg(pl.len().cast(pl.Int64).alias("count"), pl.col("_row").min())
        .sort("_row")
        .drop("_row")
        .collect(engine="streaming")
    )
    chart = alt.Chart(counts).mark_bar().encode(
        x=alt.X("count:Q", title="flash operations"),
        y=alt.Y("task:N", sort="-x", title=None),
        color=_kind_colour(),
        tooltip=["task:N", "kind:N", "count:Q"],
    )  # fmt: skip
    return _specification(chart.properties(width=_WIDTH - 120))
