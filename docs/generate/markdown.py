"""Markdown as the generated pages have it: lines of 120 columns, cells of 160 characters."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["CELL_CHARACTERS", "NOTE", "entry", "linked", "prose", "table", "unit_of"]

COLUMNS = 120
CELL_CHARACTERS = 160
NOTE = (
    "<!-- Generated from the program: `make docs-generated` writes it, a test holds it equal. -->"
)
_CODE = re.compile(r"(`[^`]*`)")
_PATH = re.compile(r"(?<![\w/`])(?<!\]\()docs/([\w/-]+\.md)(?:#[\w-]+)?")


_UNITS = {"_ns": "ns", "_ps": "ps", "_ms": "ms", "_bytes": "bytes", "_bits": "bits", "_kib": "KiB",
         "_mib": "MiB", "_uw": "µW", "_nj": "nJ", "_pj": "pJ", "per_second": "Hz",
         "cycles": "erases", "ra_pages": "pages"}  # fmt: skip
"""The end of a key -> its unit."""


def unit_of(name: str) -> str:
    """The unit of a key or a column, which its name ends in; nothing if it has none."""
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _escaped(text: str) -> str:
    """Text in which nothing but what stands between backticks is markup."""
    parts = _CODE.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([*<|\\])", r"\\\1", parts[at])
    return "".join(parts)


def linked(text: str) -> str:
    """Text in which a page that is named is a link to it, seen from docs/reference."""
    return _PATH.sub(lambda found: f"[{found[1]}](../{found[1]})", text)


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    """Lines that are broken between words, and within no piece of code."""
    kept = _CODE.sub(lambda code: code[1].replace(" ", "\0"), text)
    lines = textwrap.wrap(
        kept, COLUMNS, initial_indent=first, subsequent_indent=others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace("\0", " ")


def prose(text: str) -> str:
    """Paragraphs of a docstring."""
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(_wrapped(linked(_escaped(part))) for part in paragraphs)


def entry(head: str, text: str) -> str:
    """An entry of a list: what it is about, and what is said of it."""
    said = linked(_escaped(" ".join(text.split())))
    return _wrapped(f"{head}: {said}" if said else head, "- ", "  ")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; `ValueError` for a cell that is too long to be read in one."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        cells = [linked(_escaped(" ".join(cell.split()))) for cell in row]
        for cell in cells:
            if len(cell) > CELL_CHARACTERS:
                raise ValueError(f"a cell of {len(cell)} characters: {cell}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
