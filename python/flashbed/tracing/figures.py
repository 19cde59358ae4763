"""Figures of a trace: over time, over address, by task, how long calls took. Vega-Lite."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from flashbed.tracing.trace import Trace

__all__ = ["figures"]

TIMES = 240
"""Parts of the time that are drawn apart."""
CALLS_MAX = 4000
"""Calls that are drawn one by one; of more, the longest."""
_WIDTH = 620
_KINDS = ("read", "program", "erase")
_COLOURS = ("#3b7dd8", "#d8823b", "#7a3bd8")
_LAYERS = ("system calls", "VFS", "file system", "flash")
_LAYER_COLOURS = ("#555555", "#2a9d6f", "#d8823b", "#3b7dd8")


def figures(trace: Trace) -> list[tuple[str, str, dict[str, Any]]]:
    """Title, caption and specification of each that there is something for."""
    calls = _calls(trace)
    drawn: list[tuple[str, str, dict[str, Any]]] = []
    if calls.height:
        drawn.append(
            (
                "Over time",
                "Operations of each layer; the darker, the more at that time.",
                _time(calls),
            )
        )
    if trace.flash["page"].drop_nulls().len():
        drawn.append(
            ("Over address", "Where in the chip was read, programmed and erased, and when.",
             _address(trace.flash))
        )  # fmt: skip
    if trace.flash.height:
        drawn.append(("By task", "Who had the flash do something.", _tasks(trace.flash)))
    timed = calls.filter(pl.col("duration_ms") > 0)
    if timed.height:
        drawn.append(
            ("How long it took", "Each call, by when it began; note the logarithmic scale."
             + (f" The {CALLS_MAX:,} longest." if timed.height > CALLS_MAX else ""),
             _durations(timed))
        )  # fmt: skip
    return drawn


def _calls(trace: Trace) -> pl.DataFrame:
    """layer, operation, time_ms, duration_ms of everything."""
    took = pl.coalesce("latency_ns", "flash_time_ns")
    parts = (
        (_LAYERS[0], trace.requests, "op", took),
        (_LAYERS[1], trace.vfs, "kind", pl.col("duration_ns")),
        (_LAYERS[2], trace.functions, "function", pl.col("duration_ns")),
        (_LAYERS[3], trace.flash, "kind", pl.col("duration_ns")),
    )
    return pl.concat(
        frame.select(
            pl.lit(layer).alias("layer"),
            pl.col(column).alias("operation"),
            (pl.col("start_ns") / 1e6).alias("time_ms"),
            (duration / 1e6).alias("duration_ms"),
        )
        for layer, frame, column, duration in parts
    )


def _binned(frame: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Rows counted by parts of the time and whatever else: begin_ms, end_ms, count."""
    first, last = frame["time_ms"].min(), frame["time_ms"].max()
    assert isinstance(first, float)
    assert isinstance(last, float)
    step = max((last - first) / TIMES, 1e-6)
    part = ((pl.col("time_ms") - first) / step).floor().clip(0, TIMES - 1)
    return (
        frame.with_columns(part.alias("_part"))
        .group_by("_part", *by, maintain_order=True)
        .agg(pl.len().cast(pl.Int64).alias("count"))
        .with_columns(
            (first + pl.col("_part") * step).alias("begin_ms"),
            (first + (pl.col("_part") + 1) * step).alias("end_ms"),
        )
        .drop("_part")
    )


def _layer_colour() -> alt.Color:
    scale = alt.Scale(domain=list(_LAYERS), range=list(_LAYER_COLOURS))
    return alt.Color("layer:N", scale=scale, legend=alt.Legend(title=None, orient="top"))


def _specification(chart: Any) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        specification: dict[str, Any] = chart.to_dict()
    return specification


def _time(calls: pl.DataFrame) -> dict[str, Any]:
    order = calls.select("layer", "operation").unique(maintain_order=True)
    names = [f"{layer}: {operation}" for layer, operation in order.iter_rows()]
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


def _kind_colour() -> alt.Color:
    scale = alt.Scale(domain=list(_KINDS), range=list(_COLOURS))
    return alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None, orient="top"))


def _address(flash: pl.DataFrame) -> dict[str, Any]:
    """Pages, or blocks where there are too many operations to draw."""
    few = flash.height <= CALLS_MAX or flash["block"].null_count()
    address = "page" if few else "block"
    flash = flash.drop_nulls(address)
    timed = flash.with_columns((pl.col("start_ns") / 1e6).alias("time_ms"))
    chart = alt.Chart(_binned(timed, address, "kind")).mark_point(filled=True, size=16).encode(
        x=alt.X("begin_ms:Q", title="time, ms"),
        y=alt.Y(f"{address}:Q", title=address, scale=alt.Scale(zero=False)),
        color=_kind_colour(),
        tooltip=[f"{address}:Q", "kind:N", "count:Q"],
    )  # fmt: skip
    return _specification(chart.properties(width=_WIDTH, height=300))


def _tasks(flash: pl.DataFrame) -> dict[str, Any]:
    counts = flash.group_by("task", "kind", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count")
    )
    chart = alt.Chart(counts).mark_bar().encode(
        x=alt.X("count:Q", title="flash operations"),
        y=alt.Y("task:N", sort="-x", title=None),
        color=_kind_colour(),
        tooltip=["task:N", "kind:N", "count:Q"],
    )  # fmt: skip
    return _specification(chart.properties(width=_WIDTH - 120))


def _durations(timed: pl.DataFrame) -> dict[str, Any]:
    longest = timed.sort("duration_ms", descending=True).head(CALLS_MAX)
    chart = alt.Chart(longest).mark_point(filled=True, size=14, opacity=0.6).encode(
        x=alt.X("time_ms:Q", title="time, ms"),
        y=alt.Y("duration_ms:Q", title="duration, ms", scale=alt.Scale(type="log")),
        color=_layer_colour(),
        tooltip=["layer:N", "operation:N", alt.Tooltip("duration_ms:Q", format=".4f")],
    )  # fmt: skip
    return _specification(chart.properties(width=_WIDTH, height=260))
