"""Statements as operations, for SQLite on the board to execute: `sql_open`, `sql`, `sql_close`.

Mirrors what `Recording` does on the host: the same connection, settings, statements and seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flashbed.errors import InputError
from flashbed.formats.operations import LINE_BYTES_MAX
from flashbed.sqlite.settings import Database

__all__ = ["escaped", "executed", "statement_kind", "unescaped"]

_ESCAPED = re.compile(rb"[^\x20-\x7e]|\\")
_TOKEN = re.compile(r"\\(?:\\|\||x[0-9a-f]{2})")
_FIRST_WORD = re.compile(r"\s*([A-Za-z]+)")
Bindings = Sequence[int | str]


def executed(
    path: str, database: Database, statements: Iterable[tuple[str, Bindings]], seed: int
) -> tuple[list[str], list[str]]:
    """Operations that open the database at `path`, and those that run statements and close it.

    Raises `InputError` for a statement that is too long for a line.
    """
    use = database.sync + (",prepared" if database.prepared else "")
    settings = "; ".join(database.pragmas)
    lines = [_line(path, text, values) for text, values in statements]
    return [f"sql_open {path} {seed} {use} {settings}"], [*lines, f"sql_close {path}"]


def escaped(text: str) -> str:
    """Text within a line: a backslash doubled, bytes that are not printable by their number."""

    def code(found: re.Match[bytes]) -> bytes:
        byte = found[0]
        return b"\\\\" if byte == b"\\" else b"\\x%02x" % byte[0]

    return _ESCAPED.sub(code, text.encode()).decode("ascii")


def unescaped(line: str) -> tuple[str, list[int | str]]:
    """A statement of an operation, and the values behind it."""
    parts, at = [bytearray()], 0
    for token in _TOKEN.finditer(line):
        parts[-1] += line[at : token.start()].encode()
        at = token.end()
        if token[0] == "\\|":
            parts.append(bytearray())
        else:
            parts[-1] += b"\\" if token[0] == "\\\\" else bytes([int(token[0][2:], 16)])
    parts[-1] += line[at:].encode()
    text, *values = (part.decode("utf-8", "surrogateescape") for part in parts)
    return text, [value[1:] if value.startswith("'") else int(value) for value in values]


def statement_kind(text: str) -> str | None:
    """The first word of a statement, in small letters."""
    word = _FIRST_WORD.match(text)
    return word[1].lower() if word else None


def _line(path: str, text: str, values: Bindings) -> str:
    bound = (
        f"\\|{value}" if isinstance(value, int) else f"\\|'{escaped(value)}" for value in values
    )
    line = f"sql {path} {escaped(text)}{''.join(bound)}"
    if len(line) > LINE_BYTES_MAX:
        raise InputError(
            f"a statement of {len(line)} bytes with its path and values: on the board, at most"
            f" {LINE_BYTES_MAX}: {text[:40]}..."
        )
    return line
