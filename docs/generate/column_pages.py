"""reference/tables.md: every column of every table, within the text of tables_page.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from docs.generate.markdown import NOTE, table, unit_of
from flashbed.results.column_meanings import COLUMN_MEANINGS, ROWS
from flashbed.results.columns import SCHEMAS

__all__ = ["page"]

_TEXT = Path(__file__).with_name("tables_page.txt")
_PLACE = "<!-- tables -->"
_TYPES = {pl.String(): "text", pl.Int64(): "integer", pl.Float64(): "real", pl.Boolean(): "boolean"}


def page() -> str:
    """The page."""
    title, rest = _TEXT.read_text(encoding="utf-8").split("\n", 1)
    tables = "\n\n".join(_tables())
    return f"{title}\n\n{NOTE}\n{rest.replace(_PLACE, tables)}"


def _tables() -> Iterator[str]:
    for name, schema in SCHEMAS.items():
        yield f"## {name}"
        yield f"A row is {ROWS[name]}."
        yield table(
            ("column", "type", "unit", "holds"),
            (
                (f"`{column}`", _TYPES[kind], _unit(column), COLUMN_MEANINGS[name][column])
                for column, kind in schema.items()
            ),
        )


def _unit(column: str) -> str:
    if column.startswith(("bytes", "flush_bytes")):
        return "bytes"
    return unit_of(column)
