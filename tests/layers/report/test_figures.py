"""Figures show what their panels say.

The panels of simulator against kernel once drew every measure's points in each: the layer of points
had data of its own, which a facet does not divide.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from flashbed.report.figures import agreement_figure

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
