"""A map of the erases of every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from flashbed.report.figures.style import (
    theme,
)

__all__ = ["wear_figure"]

_MAP_WIDTH = 350


def _whole_steps(counts: Sequence[int]) -> list[int]:
    """About five whole numbers between the least and the most."""
    if not counts:
        return []
    low, high = min(counts), max(counts)
    return sorted({round(low + (high - low) * step / 4) for step in range(5)})


def wear_figure(panels: Sequence[tuple[str, str, pl.DataFrame]]) -> dict[str, Any]:
    """A map of each case's blocks, darker for more erases; crosses are bad blocks.

    The number beside a row is that of its first block.

    A panel is a title, a line below it, and cells from analysis.wear_map. A colour means the same
    number of erases in all panels. Returns a Vega-Lite specification.
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
                alt.Tooltip("measured:Q", title="of which while measured"),
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
    specification: dict[str, Any] = theme(figure).to_dict()
    return specification
