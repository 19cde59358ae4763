"""Prints a model and a prediction as text and JSON; no arithmetic except for units."""

from __future__ import annotations

import textwrap
from typing import Any

from flashbed.answers.costs.cost_fit import Fitted
from flashbed.answers.costs.model import CostModel, Prices
from flashbed.answers.costs.predict import Predicted, Prediction
from flashbed.stack.mounts import PLAIN

__all__ = ["amount", "model_text", "name_of", "prediction_json", "prediction_text"]

WIDTH = 100
_NAMES = {
    "time_ns": "time",
    "flash_reads": "page reads",
    "flash_programs": "page writes",
    "flash_erases": "erases",
    "energy_nj": "energy",
    "component_energy_nj": "component energy",
}
_A = {
    "transaction": "a transaction",
    "request": "a request",
    "record_kib": "a KiB of records",
    "page": "a page",
    "page_kib": "a KiB of pages",
    "read_kib": "a KiB read in",
    "spilled_page": "a spilled page",
    "spilling": "for spilling",
    "table_kib": "a KiB of tables",
}
_SCALES = {"ns": (("s", 1e9), ("ms", 1e6), ("us", 1e3)), "nJ": (("J", 1e9), ("mJ", 1e6))}


def model_text(fitted: Fitted) -> str:
    """A table for each setting: how well each quantity is explained, and its prices."""
    lines: list[str] = []
    last = ""
    for each in fitted.model.models:
        head = _setting(each)
        if head != last:
            lines += [*([""] if lines else []), head]
            last = head
        lines += ["", *_of_pattern(each)]
    for reason, count in fitted.left_out.items():
        lines += ["", f"left out: {count} cases, {reason}"]
    return "\n".join(lines)


def _setting(model: CostModel) -> str:
    at = model.setting
    ahead = f"read-ahead {at.read_ahead_kib} KiB" if at.read_ahead_kib else "no read-ahead"
    others = [
        f"database {at.database}",
        *(word for word in (at.state, at.faults) if word not in ("new", "none")),
    ]
    others += [at.mount] if at.mount != PLAIN else []
    return f"{at.fs}, {at.board}, Linux {at.kernel}, on {at.target}, {ahead}, {', '.join(others)}"


def _of_pattern(model: CostModel) -> list[str]:
    held = [f"{size:,} bytes" for size in model.held_out_request_bytes]
    held += [f"{count:,} requests" for count in model.held_out_requests]
    lines = [
        f"{model.pattern}: {model.cases} cases, {model.held_out_cases} of them held out"
        f" ({', '.join(held)})",
        f"{'':14}    fit error      error on held-out cases",
        f"{'':14}  mean     worst     mean    worst",
    ]
    for name, prices in model.quantities.items():
        if prices is not None:
            lines.append(_errors(_NAMES[name], prices))
            lines += _wrapped(_prices(prices))
    unknown = [_NAMES[name] for name, prices in model.quantities.items() if prices is None]
    if unknown:
        lines.append(f"  not in these tables: {', '.join(unknown)}")
    return lines


def _errors(name: str, prices: Prices) -> str:
    errors = (
        prices.residual_mean_pct, prices.residual_max_pct,
        prices.held_out_mean_pct, prices.held_out_max_pct,
    )  # fmt: skip
    cells = " ".join(f"{error:6.1f} %" for error in errors)
    return f"  {name:<11}{cells}"


def _prices(prices: Prices) -> list[str]:
    said = [
        f"{amount(value, prices.unit)} ± {amount(prices.standard_errors[name], prices.unit)}"
        f" {_A[name]}"
        for name, value in prices.prices.items()
        if value
    ]
    return said or ["nothing"]


def _wrapped(items: list[str]) -> list[str]:
    """Wraps lines between items."""
    held = ", ".join(item.replace(" ", "\xa0") for item in items)
    indent = " " * 4
    lines = textwrap.wrap(held, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [line.replace("\xa0", " ") for line in lines]


def name_of(found: Prediction) -> str:
    """The requests, as the first line of an answer."""
    load = found.load
    return f"{load.requests:,} x {load.pattern} of {load.request_bytes:,} bytes"


def prediction_text(found: Prediction) -> str:
    """The answer: a quantity per line and its parts, the largest first."""
    lines = [f"{name_of(found)}: {_setting(found.model)}"]
    for name, predicted in found.quantities.items():
        said = "unknown: not in the tables" if predicted is None else _predicted(predicted)
        lines.append(f"  {_NAMES[name]:<17} {said}")
    return "\n".join(lines)


def _predicted(found: Predicted) -> str:
    ends = f"{amount(found.low, found.unit)} to {amount(found.high, found.unit)}"
    if not found.value:
        return "0"
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    shares = ", ".join(
        f"{_NOUNS[name]} {100 * part / found.value:.0f} %"
        for name, part in parts
        if part >= found.value / 200
    )
    return f"{amount(found.value, found.unit)} ({ends}): {shares}"


_NOUNS = {
    "transaction": "transaction",
    "request": "requests",
    "record_kib": "bytes of records",
    "page": "pages",
    "page_kib": "bytes of pages",
    "read_kib": "reading in",
    "spilled_page": "spilled pages",
    "spilling": "spilling",
    "table_kib": "tables that were there",
}


def amount(value: float, unit: str) -> str:
    """A value with its unit, times and energies scaled."""
    for name, size in _SCALES.get(unit, ()):
        if value >= size:
            return f"{_digits(value / size)} {name}"
    return _digits(value) + ("" if unit == "operations" else f" {unit}")


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def prediction_json(found: Prediction) -> dict[str, Any]:
    """All values; unknown is null."""
    load = found.load
    return {
        **found.model.setting.model_dump(),
        "pattern": load.pattern,
        "requests": load.requests,
        "request_bytes": load.request_bytes,
        "page_bytes": load.page_bytes,
        "cache_pages": load.cache_pages,
        "records": load.records if load.pattern != "insert" else None,
        "energy_convention": found.model.energy_convention,
        **{
            name: None
            if predicted is None
            else {
                "value": predicted.value,
                "low": predicted.low,
                "high": predicted.high,
                "unit": predicted.unit,
                "parts": dict(predicted.parts),
            }
            for name, predicted in found.quantities.items()
        },
    }
