"""Rearranges a figure for a narrow page: panels below one another, fewer legend columns."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["narrowed", "one_after_another"]

_WIDTH = 265
_LABELS = 250
"""Pixels of a panel and of a legend's longest word, on a page of 390 pixels."""


def narrowed(specification: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a Vega-Lite specification that is as wide as a telephone's screen."""
    narrow = one_after_another(specification, _LABELS)
    if "facet" in narrow or "concat" in narrow:
        narrow["columns"] = 1
    if "spec" in narrow:
        narrow["spec"] = _legends(narrow["spec"]) | {"width": _WIDTH}
    config = narrow.get("config", {})
    legend = config.get("legend", {}) | {"columns": 1, "labelLimit": _LABELS}
    narrow["config"] = config | {"legend": legend}
    return narrow


def one_after_another(specification: Mapping[str, Any], label_pixels: int) -> dict[str, Any]:
    """A copy whose panels are in one list, in place of rows and columns: those with data."""
    listed: dict[str, Any] = copy.copy(dict(specification))
    facet = listed.get("facet")
    if isinstance(facet, dict) and "row" in facet:
        listed["transform"] = [
            *listed.get("transform", []),
            *_panels(facet["row"], facet["column"]),
        ]
        order = {"field": "_place", "op": "min", "order": "ascending"}
        header = {"labelLimit": label_pixels}
        listed["facet"] = {
            "field": "_panel", "type": "nominal", "title": None, "sort": order, "header": header,
        }  # fmt: skip
    return listed


def _panels(row: Mapping[str, Any], column: Mapping[str, Any]) -> list[dict[str, str]]:
    """Transforms that give each row of data its panel's name and position."""
    rows, columns = json.dumps(row["sort"]), json.dumps(column["sort"])
    line = f"indexof({rows}, datum['{row['field']}'])"
    along = f"indexof({columns}, datum['{column['field']}'])"
    parts = [_label(facet) for facet in (row, column) if len(facet["sort"]) > 1]
    name = " + ' · ' + ".join(parts or [_label(column)])
    return [
        {"calculate": name, "as": "_panel"},
        {"calculate": f"{line} * {len(column['sort'])} + {along}", "as": "_place"},
    ]


def _label(facet: Mapping[str, Any]) -> str:
    """The expression of a panel's title."""
    value = f"datum['{facet['field']}']"
    expression: str = (facet.get("header") or {}).get("labelExpr", "datum.label")
    return expression.replace("datum.label", value)


def _legends(node: Any) -> Any:
    """A copy with at most two columns per legend."""
    if isinstance(node, list):
        return [_legends(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _legends(value) for key, value in node.items() if key != "legend"}
    if "legend" in node:
        legend = node["legend"]
        if isinstance(legend, dict):
            columns = 2 if legend.get("columns", 1) > 2 else 1
            legend = legend | {"columns": columns, "labelLimit": _LABELS // columns}
        found["legend"] = legend
    return found
