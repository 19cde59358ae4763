"""The baseline beside a budget: what was measured when it was last accepted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashbed.answers.budgets.limits_held import MEASURES, Row, rounded
from flashbed.base.errors import InputError
from flashbed.base.files import read_json, whole
from flashbed.base.paths import shown

__all__ = ["Baseline", "read_baseline", "write_baseline"]

_FORMAT = 1
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Baseline:
    """The measures and the inputs of each row, and the version that measured them."""

    version: str
    measures: Mapping[Key, Mapping[str, float | None]]
    inputs: Mapping[Key, Mapping[str, str]]

    def changed(self, row: Row, version: str) -> list[str]:
        """What a row was measured with that is another now."""
        before = self.inputs.get(row.key)
        if before is None:
            return []
        found = [name for name, now in row.inputs.items() if before.get(name, now) != now]
        if self.version != version:
            found.append(f"flashbed ({self.version}, now {version})")
        return found

    def missing(self, rows: Sequence[Row]) -> list[str]:
        """Rows that the budget no longer has."""
        there = {row.key for row in rows}
        return [", ".join(filter(None, key)) for key in self.measures if key not in there]


def read_baseline(path: Path) -> Baseline | None:
    """Reads a baseline; None if there is none. Raises `InputError` if it is not one."""
    if not path.exists():
        return None
    values = read_json(path)
    try:
        if values["format"] != _FORMAT:
            raise InputError(f"{shown(path)}: format {values['format']}: of another flashbed")
        rows = [(tuple(row["key"]), row) for row in values["rows"]]
        return Baseline(
            str(values["flashbed"]),
            {key: _measures(row["measures"]) for key, row in rows},
            {key: {str(n): str(v) for n, v in row["inputs"].items()} for key, row in rows},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{shown(path)}: not a baseline; --update writes it again") from None


def _measures(values: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in MEASURES:
        value = values.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(name)
        found[name] = value
    return found


def write_baseline(path: Path, rows: Sequence[Row], version: str) -> None:
    """Writes what was measured, a row a line, so that a change of one is a line of a diff."""
    lines = [
        json.dumps(
            {
                "key": list(row.key),
                "measures": {
                    name: rounded(value)
                    for name, value in row.measures.items()
                    if value is not None
                },
                "inputs": dict(row.inputs),
            }
        )
        for row in rows
    ]
    head = f'{{"format": {_FORMAT}, "flashbed": {json.dumps(version)}, "rows": [\n'
    with whole(path) as new:
        new.write_text(head + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
