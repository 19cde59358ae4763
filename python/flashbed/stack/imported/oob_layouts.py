"""How many spare bytes a kernel's OOB layout leaves free, read from its C functions.

The functions of drivers/mtd/nand/spi/*.c are a guard on the section and one or two assignments to
`region->length`. What is written in another way is not understood, and its number is absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["free_bytes"]

SECTIONS_MAX = 32
_OPS = re.compile(r"struct\s+mtd_ooblayout_ops\s+(\w+)\s*=\s*\{([^}]*)\}")
_FREE = re.compile(r"\.free\s*=\s*(\w+)")
_DEFINE = re.compile(r"#define\s+(\w+)\s+(\d+)\s*$", re.MULTILINE)
_GUARD = re.compile(r"if\s*\(section\s*(?:(>=?)\s*([^)]*?))?\)\s*return\s+-ERANGE;")
_CHOICE = re.compile(
    r"if\s*\((!?)section(?:\s*==\s*(\d+))?\)\s*\{([^}]*)\}(?:\s*else\s*\{([^}]*)\})?"
)
_LENGTH = re.compile(r"\w+->length\s*(-?)=\s*([^;]*);")
_OF_OOB = re.compile(r"\(?\s*mtd->oobsize(?:\s*/\s*(\d+))?\s*\)?(?:\s*-\s*(\d+))?")


def free_bytes(text: str, layout: str, geometry: Mapping[str, int], step_bytes: int) -> int | None:
    """The free bytes of a layout's regions together; None if they are not understood."""
    function = next(
        (found[1] for name, body in _OPS.findall(text) if name == layout
         for found in [_FREE.search(body)] if found),
        None,
    )  # fmt: skip
    begun = re.search(rf"\b{function}\s*\([^)]*\)\s*\{{", text) if function else None
    if begun is None:
        return None
    body = text[begun.end() : text.index("\n}", begun.end())]
    count = _sections(body, dict(_DEFINE.findall(text)), geometry, step_bytes)
    lengths = [_length(_GUARD.sub("", body), at, geometry["oob_bytes"]) for at in range(count)]
    known = [length for length in lengths if length is not None]
    return sum(known) if known and len(known) == count else None


def _sections(
    body: str, defines: Mapping[str, str], geometry: Mapping[str, int], step_bytes: int
) -> int:
    guard = _GUARD.search(body)
    if guard is None:
        return 0
    if guard[1] is None:
        return 1
    limit = guard[2].strip()
    if "pagesize" in limit and "ecc_step_size" in limit:
        most = geometry["page_bytes"] // step_bytes
    else:
        limit = defines.get(limit, limit)
        most = int(limit) if limit.isdecimal() else 0
    return min(SECTIONS_MAX, most + (guard[1] == ">"))


def _length(body: str, section: int, oob_bytes: int) -> int | None:
    def chosen(found: re.Match[str]) -> str:
        holds = section == int(found[2]) if found[2] else section > 0
        taken = holds != (found[1] == "!")
        return found[3] if taken else found[4] or ""

    total = None
    for minus, words in _LENGTH.findall(_CHOICE.sub(chosen, body)):
        value = _value(words.strip(), oob_bytes)
        if value is None:
            return None
        total = (total or 0) - value if minus else value
    return total


def _value(words: str, oob_bytes: int) -> int | None:
    if words.isdecimal():
        return int(words)
    found = _OF_OOB.fullmatch(words)
    return oob_bytes // int(found[1] or 1) - int(found[2] or 0) if found else None
