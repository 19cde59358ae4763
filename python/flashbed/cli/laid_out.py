"""Prints a table on a terminal: numbers rounded, in readable units, aligned to the right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flashbed.base.human import number_reader
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

__all__ = ["print_table"]

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
    shown = {name: _reader(name, kind) for name, kind in rows.schema.items()}
    for row in rows.iter_rows(named=True):
        table.add_row(*(Text(shown[name](value)) for name, value in row.items()))
    console = Console(width=None if sys.stdout.isatty() else _PIPE_COLUMNS, highlight=False)
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(line for line in lines if line))


def _reader(name: str, kind: pl.DataType) -> Callable[[Any], str]:
    """The formatter of a column's values, chosen by the unit that ends its name."""
    if kind.is_numeric():
        return number_reader(name, whole=kind.is_integer())
    return lambda value: "-" if value is None else escaped(str(value))
