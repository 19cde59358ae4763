"""Statements as operations for SQLite on the board: `sql_open`, `sql`, `sql_close`.

It mirrors `Recording` on the host: the same connection, settings, statements and seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flashbed.base.errors import InputError
from flashbed.plan.database import Database
from flashbed.plan.sqlite.pace import UNPACED, Pace
from flashbed.program.operations import LINE_BYTES_MAX
from flashbed.program.sql import escaped

__all__ = ["executed"]

Bindings = Sequence[int | str | bytes]


def executed(
    path: str, database: Database, *, statements: Iterable[tuple[str, Bindings] | None], seed: int,
    pace: Pace = UNPACED,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Operations that open the database at `path`, and those that run statements and close it.

    None among the statements stands between two requests. Raises `InputError` for a statement that
    is too long for a line.
    """
    use = database.sync + (",prepared" if database.prepared else "")
    settings = "; ".join(database.pragmas)
    lines: list[str] = list(pace.first)
    for statement in statements:
        lines += pace.between if statement is None else [_line(path, *statement)]
    return [f"sql_open {path} {seed} {use} {settings}"], [*lines, *pace.last, f"sql_close {path}"]


def _line(path: str, text: str, values: Bindings) -> str:
    line = f"sql {path} {escaped(text)}{''.join(map(_bound, values))}"
    if len(line) > LINE_BYTES_MAX:
        raise InputError(
            f"a statement of {len(line)} bytes with its path and values: the board accepts at most"
            f" {LINE_BYTES_MAX}: {text[:40]}..."
        )
    return line


def _bound(value: int | str | bytes) -> str:
    if isinstance(value, bytes):
        raise InputError(
            'prepared: a board that runs SQLite binds no bytes; use database.contents = "letters"'
        )
    return f"\\|{value}" if isinstance(value, int) else f"\\|'{escaped(value)}"
