"""Writes the profile of a kernel whose sources are known: each value with the place it was read.

What the sources do not say is that of the profile `like`, and the line says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashbed.stack.imported.kernel_facts import Known
from flashbed.stack.profiles import Kernel

__all__ = ["begun_kernel_text"]


def begun_kernel_text(
    name: str, release: str, source: str, *, facts: Mapping[str, Mapping[str, Known]], like: Kernel
) -> str:
    """The text of NAME.toml."""
    values = like.model_dump(exclude_none=True)
    own: dict[str, dict[str, Any]] = {
        "kernel": {
            "name": name,
            "title": f"Linux {release}, added as {name}",
            "like": like.name,
            "targets": ["sim", "uml"],
        }
    }
    lines = [f"# {name}: Linux {release}, begun from its sources by `flashbed kernel add`."]
    for table in values:
        known = facts.get(table, {})
        lines += ["", f"[{table}]", f"source = {_toml(source)}"]
        given = {key: value for key, value in values[table].items() if key != "source"}
        for key, value in {**own.get(table, {}), **given, **own.get(table, {})}.items():
            if key in known:
                lines.append(f"{key} = {_toml(known[key].value)}  # {known[key].where}")
            elif key in own.get(table, {}):
                lines.append(f"{key} = {_toml(value)}")
            else:
                lines.append(f"{key} = {_toml(value)}  # as {like.name}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return str(value)
