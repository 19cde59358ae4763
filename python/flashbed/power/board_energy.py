"""Fitted powers into a board's profile: rows of `[energy.paper]` or `[energy.supply]`.

Everything else in the file stays as it is, comments and order included (tomlkit). The row of the
same condition is replaced, or one is added, with its own source. What comes out is read again as a
board before it is given back: a profile is complete or refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Array

from flashbed.errors import InputError
from flashbed.formats.profiles import Board, ProfileError
from flashbed.formats.toml import read_model

__all__ = ["CONDITION", "TABLES", "with_powers"]

TABLES = {("cpu", "mem"): "paper", ("supply",): "supply"}
"""Rails -> the table of `[energy]` they are for."""
CONDITION = ("activity", "fs", "pattern", "read_ahead")
"""What a row is of."""
MEASURED = "measured on this board; each row says how"


def with_powers(
    text: str, path: Path, condition: Mapping[str, str], powers_w: Mapping[str, float], said: str
) -> str:
    """A profile's text with the powers of a condition; `said` tells where they come from.

    Raises `InputError` for rails that are no convention's, or a profile that would not be one.
    """
    kind = TABLES.get(tuple(sorted(powers_w)))
    if kind is None:
        raise InputError(
            f"rails {', '.join(sorted(powers_w))}: a profile takes cpu and mem, or supply; --rail"
            " cpu=CHANNEL calls them so"
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
    """Replaces the row of the same condition, or adds it."""
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
    """With the digits of a number in threes, as the profiles have them."""
    return tomlkit.value(f"{value:_}") if isinstance(value, int) else tomlkit.string(value)
