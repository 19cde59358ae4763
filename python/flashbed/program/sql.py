"""SQL in a line of operations: escaped text and values (docs/reference/operations.md)."""

from __future__ import annotations

import re

__all__ = ["escaped", "statement_kind", "unescaped"]

_ESCAPED = re.compile(rb"[^\x20-\x7e]|\\")
_TOKEN = re.compile(r"\\(?:\\|\||x[0-9a-f]{2})")
_FIRST_WORD = re.compile(r"\s*([A-Za-z]+)")


def escaped(text: str) -> str:
    """Escapes text for a line: a doubled backslash, numbers for bytes that are not printable."""

    def code(found: re.Match[bytes]) -> bytes:
        byte = found[0]
        return b"\\\\" if byte == b"\\" else b"\\x%02x" % byte[0]

    return _ESCAPED.sub(code, text.encode()).decode("ascii")


def unescaped(line: str) -> tuple[str, list[int | str]]:
    """An operation's statement and its values."""
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
    """The first word of a statement, in lower case."""
    word = _FIRST_WORD.match(text)
    return word[1].lower() if word else None
