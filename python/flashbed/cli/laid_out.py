"""Prints a table: numbers rounded, in readable units, aligned to the right; or as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flashbed.base.human import number_reader
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["markdown_of", "markdown_table", "print_table"]

_PIPE_COLUMNS = 400


def print_table(rows: pl.DataFrame, heads: Mapping[str, str] | None = None) -> None:
    """Prints rows as wide as the terminal; into a pipe, whole. `heads` renames columns."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, kind in rows.schema.items():
        head = (heads or {}).get(name, name)
        table.add_column(head, justify="right" if kind.is_numeric() else "left")
    for cells in _cells(rows):
        table.add_row(*map(Text, cells))
    console = Console(width=None if sys.stdout.isatty() else _PIPE_COLUMNS, highlight=False)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(line for line in lines if line))


def markdown_of(rows: pl.DataFrame, heads: Mapping[str, str] | None = None) -> str:
    """The same table in Markdown."""
    numbers = {at for at, kind in enumerate(rows.dtypes) if kind.is_numeric()}
    first = [(heads or {}).get(name, name) for name in rows.columns]
    return markdown_table([first, *_cells(rows)], numbers)


def markdown_table(cells: Sequence[Sequence[str]], right: Collection[int]) -> str:
    """A table in Markdown, its head first; columns of `right` are right-aligned."""
    head, *rows = cells
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _cells(rows: pl.DataFrame) -> list[list[str]]:
    shown = [_reader(name, kind) for name, kind in rows.schema.items()]
    return [[read(value) for read, value in zip(shown, row, strict=True)] for row in rows.rows()]


def _reader(name: str, kind: pl.DataType) -> Callable[[Any], str]:
    """The formatter of a column's values, chosen by the unit that ends its name."""
    if kind.is_numeric():
        return number_reader(name, whole=kind.is_integer())
    return lambda value: "-" if value is None else escaped(str(value))
