"""Figures show what their panels say.

The panels of simulator against kernel once drew every measure's points in each: the layer of points
had data of its own, which a facet does not divide.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import polars as pl

from flashbed.report.figures import agreement_figure, axes_figure

ERRORS = pl.DataFrame(
    {
        "case_id": ["a", "b", "a", "b"],
        "fs": ["jffs2", "ubifs"] * 2,
        "pattern": ["sequential", "random"] * 2,
        "read_ahead": ["off", "on"] * 2,
        "requests": [8, 8, 8, 8],
        "measure": ["flash reads", "flash reads", "time", "time"],
        "error_pct": [0.0, 0.0, 3.0, -3.0],
    }
)
BOUNDS = pl.DataFrame(
    {"measure": ["flash reads", "time"], "low": [-2.0, -10.0], "high": [2.0, 10.0]}
)


def layers_of(node: Any) -> list[dict[str, Any]]:
    """Every layer anywhere in a specification."""
    if isinstance(node, list):
        return [layer for item in node for layer in layers_of(item)]
    if not isinstance(node, dict):
        return []
    own = [layer for layer in node.get("layer", []) if isinstance(layer, dict)]
    return own + [layer for value in node.values() for layer in layers_of(value)]


def test_the_layers_of_a_facet_have_no_data_of_their_own() -> None:
    layers = layers_of(agreement_figure(ERRORS, BOUNDS))
    assert len(layers) >= 2
    assert all("data" not in layer for layer in layers)


def drawn(*cases: tuple[str, str]) -> dict[str, Any]:
    """A figure of cases, each a partition and a compressor, which are its rows and columns."""
    points = pl.DataFrame(
        {
            "partition": [partition for partition, _ in cases],
            "compressor": [compressor for _, compressor in cases],
            "fs": "ubifs", "pattern": "random", "target": "sim", "stack": "one", "seeds": 1,
            "value": [float(n) for n, _ in enumerate(cases)],
            "low": 0.0, "high": 0.0,
        }
    )  # fmt: skip
    axes = {"x": "fs", "colour": "pattern", "rows": "partition", "columns": "compressor"}
    return axes_figure(points, pl.DataFrame(), title="Reads", axes=axes)


def test_a_panel_is_drawn_under_its_own_name_where_axes_are_no_full_product() -> None:
    """965 reads of "128 blocks, default" stood under "512 blocks, none".

    Vega puts the panels without data behind the others in its rows and columns.
    """
    whole = drawn(("128", "default"), ("128", "none"), ("512", "default"), ("512", "none"))
    assert whole["facet"]["row"]["field"] == "partition"
    some = drawn(("128", "default"), ("512", "default"), ("512", "none"))
    assert some["facet"]["field"] == "_panel"
    assert some["columns"] == 2
    name, _ = some["transform"]
    assert "partition: " in name["calculate"]
    assert "compressor: " in name["calculate"]
    svg = import_module("vl_convert").vegalite_to_svg(json.dumps(some))
    titles = re.findall(r">(partition: \d+ · compressor: \w+)<", svg)
    assert titles == [
        "partition: 128 · compressor: default",
        "partition: 512 · compressor: default",
        "partition: 512 · compressor: none",
    ]
