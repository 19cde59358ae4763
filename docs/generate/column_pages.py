"""reference/tables.md: every column of every table, within the text of tables_page.txt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from docs.generate.markdown import NOTE, entry, unit_of
from flashbed.results.column_meanings import COLUMN_MEANINGS, ROWS
from flashbed.results.columns import SCHEMAS

__all__ = ["page"]

_TEXT = Path(__file__).with_name("tables_page.txt")
_PLACE = "<!-- tables -->"
_AXIS = "Axis: "
KEYS = ("case_id", "target")
"""The columns that every table begins with."""
_TYPES = {pl.String(): "text", pl.Int64(): "integer", pl.Float64(): "real", pl.Boolean(): "boolean"}


def page() -> str:
    """The page."""
    title, rest = _TEXT.read_text(encoding="utf-8").split("\n", 1)
    tables = "\n\n".join(_tables())
    return f"{title}\n\n{NOTE}\n{rest.replace(_PLACE, tables)}"


def _tables() -> Iterator[str]:
    first = next(iter(SCHEMAS))
    for name, schema in SCHEMAS.items():
        columns = list(schema.items())
        yield f"## {name}"
        yield f"A row is {ROWS[name]}."
        lines = []
        if name != first:
            same = [one for one, _ in columns[: len(KEYS)]]
            assert same == list(KEYS), "every table begins with the keys of a case"
            lines.append(entry(", ".join(f"`{one}`" for one in same), f"As in `{first}`."))
            columns = columns[len(KEYS) :]
        yield "\n".join([*lines, *_entries(name, columns)])


def _entries(name: str, columns: list[tuple[str, Any]]) -> Iterator[str]:
    """An entry for each column; axes that follow each other are one."""
    for is_axis, group in groupby(columns, lambda one: _meaning(name, one[0]).startswith(_AXIS)):
        some = list(group)
        if is_axis:
            names = ", ".join(f"`{column}`" for column, _ in some)
            yield entry(
                names, "The case's values of these axes (docs/reference/experiment-file.md)."
            )
            continue
        for column, kind in some:
            yield entry(f"`{column}` ({_unit(column) or _TYPES[kind]})", _meaning(name, column))


def _meaning(name: str, column: str) -> str:
    return COLUMN_MEANINGS[name][column]


def _unit(column: str) -> str:
    if column.startswith(("bytes", "flush_bytes")):
        return "bytes"
    return unit_of(column)
