"""Writes fitted powers into a board's profile: rows of `[energy.paper]` or `[energy.supply]`.

The rest of the file stays unchanged, comments and order included (tomlkit). A row with the same
condition is replaced, otherwise one is added, with a source of its own. The result is read again as
a board before it is returned: a profile is complete or refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array

from flashbed.base.errors import InputError
from flashbed.base.toml import read_model
from flashbed.stack.profiles import Board, ProfileError

__all__ = ["CONDITION", "TABLES", "with_powers"]

TABLES = {("cpu", "mem"): "paper", ("supply",): "supply"}
"""Rails -> their table of `[energy]`."""
CONDITION = ("activity", "fs", "pattern", "read_ahead")
"""Keys of a row's condition."""
MEASURED = "measured on this board; each row says how"


def with_powers(
    text: str, path: Path, *, condition: Mapping[str, str], powers_w: Mapping[str, float], said: str
) -> str:
    """A profile's text with the powers of a condition; `said` is their source.

    Raises `InputError` for rails of no convention, or if the result is not a valid profile.
    """
    kind = TABLES.get(tuple(sorted(powers_w)))
    if kind is None:
        raise InputError(
            f"rails {', '.join(sorted(powers_w))}: a profile takes cpu and mem, or supply; rename"
            " them by --rail cpu=CHANNEL"
        )
    document = tomlkit.parse(text)
    table = _child(_child(document, "energy", is_super=True), kind)
    if "source" not in table:
        table["source"] = MEASURED
    rows = table.setdefault("power", tomlkit.array())
    values: dict[str, str | int] = {key: given for key, given in condition.items() if given}
    values |= {f"{rail}_uw": round(power_w * 1e6) for rail, power_w in sorted(powers_w.items())}
    _put(rows, values | {"source": said})
    changed = tomlkit.dumps(document)
    read_model(Board, tomllib.loads(changed), path, ProfileError)
    return changed


def _child(parent: Any, name: str, *, is_super: bool = False) -> Any:
    if name not in parent:
        parent[name] = tomlkit.table(is_super_table=is_super)
    return parent[name]


def _put(rows: Any, row: Mapping[str, str | int]) -> None:
    """Replaces the row with the same condition, or adds one."""
    for there in rows:
        if all(there.get(key) == row.get(key) for key in CONDITION):
            for key in [key for key in there if key not in row]:
                del there[key]
            for key, value in row.items():
                there[key] = _item(value)
            return
    if isinstance(rows, Array):
        shown_row = ", ".join(f"{key} = {_item(value).as_string()}" for key, value in row.items())
        new = not rows
        rows.add_line(tomlkit.value(f"{{ {shown_row} }}"), indent="  ")
        if new:
            rows.add_line(indent="")
    else:  # [[energy.paper.power]]
        table = tomlkit.table()
        for key, value in row.items():
            table[key] = _item(value)
        rows.append(table)


def _item(value: str | int) -> Any:
    """A value with its digits in groups of three, as profiles have them."""
    return tomlkit.value(f"{value:_}") if isinstance(value, int) else tomlkit.string(value)
