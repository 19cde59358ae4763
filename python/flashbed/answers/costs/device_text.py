"""Prints a device model and its predictions as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashbed.answers.costs.device_model import PREDICTED, DeviceModel
from flashbed.answers.costs.devices import Parts
from flashbed.answers.costs.model_text import amount

__all__ = ["checked_lines", "device_json", "device_text", "devices_text"]

_NAMES = {
    "time_ns": "time", "page_reads": "page reads", "page_writes": "page writes", "erases": "erases",
}  # fmt: skip


def devices_text(model: DeviceModel) -> str:
    """How far the model is off on chips that were left out of its fit, by file system."""
    lines = [f"Linux {model.kernel}, fitted to {', '.join(model.fitted_to)}"]
    for fs, system in model.systems.items():
        lines += [
            "",
            f"{fs}: each chip predicted by a fit to the others",
            f"{'':14}  mean     worst",
        ]
        for name in PREDICTED:
            found = system.errors[name]
            said = f"{found.mean_pct:6.1f} % {found.worst_pct:6.1f} %   {found.cases:,} cases"
            lines.append(f"  {_NAMES[name]:<12}{said if found.cases else '  not tested'}")
    return "\n".join(lines)


def device_text(name: str, found: Parts) -> str:
    """The answer: a quantity a line, with its band, and what the time consists of."""
    lines = [name]
    for key, cost in found.costs.items():
        unit = PREDICTED[key]
        said = "unknown: a price of the board's software is"
        if cost is not None:
            ends = f"{amount(cost.low, unit)} to {amount(cost.high, unit)}"
            said = f"{amount(cost.value, unit)} ({ends})"
        if key == "time_ns" and cost is not None and cost.value:
            said += f": chip {100 * found.chip_ns / cost.value:.0f} %"
        lines.append(f"  {_NAMES[key]:<12} {said}")
    return "\n".join(lines)


def device_json(name: str, found: Parts) -> dict[str, Any]:
    """All values; unknown is null."""
    quantities = {
        key: None
        if cost is None
        else {"value": cost.value, "low": cost.low, "high": cost.high, "unit": PREDICTED[key]}
        for key, cost in found.costs.items()
    }
    return {
        "case": name, **quantities, "chip_ns": found.chip_ns, "software_ns": found.software_ns,
    }  # fmt: skip


def checked_lines(
    label: str, predicted: Mapping[str, Any], simulated: Mapping[str, Any]
) -> list[str]:
    """A choice as the model predicted it and as the simulator ran it."""
    lines = [label]
    for key, unit in PREDICTED.items():
        one, two = predicted[key], simulated[key]
        if one is None or two is None:
            continue
        off = f"{100 * (one - two) / two:+.1f} %" if two else "none there"
        lines.append(
            f"  {_NAMES[key]:<12} {amount(one, unit)} predicted, {amount(two, unit)}: {off}"
        )
    return lines
