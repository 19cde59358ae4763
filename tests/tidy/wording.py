"""The mechanical part of how flashbed writes: words, lines and cells that tests look for.

`python -m tests.tidy.wording` takes those exceptions out of wording.toml that are none any more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache

from tests.tidy.sources import PROJECT, files, text

__all__ = ["BANNED", "EXCEPTIONS", "banned_in", "cells", "prose_lines", "two_meanings", "wordings"]

_FILE = PROJECT / "tests" / "tidy" / "wording.toml"
_OWN = ("tests/tidy/", "tests/corpus/")
"""What names these words to ban them, and what is other programs'."""
_CHECKED = (".md", ".ipynb", ".py", ".rs", ".c", ".h", ".toml", ".j2")
_LEADER = re.compile(r"^\s*(?:///?!?|//!|\*|#|>)?\s*", re.MULTILINE)
_BLOCK = re.compile(r"^ *(```|~~~).*?^ *\1$", re.DOTALL | re.MULTILINE)

_KEPT = tomllib.loads(_FILE.read_text(encoding="utf-8"))
BANNED: dict[str, str] = _KEPT["banned"]
"""Pattern -> what to say instead."""
EXCEPTIONS: dict[str, str] = _KEPT.get("exceptions", {})
"""`PATH: WORDS` -> why they stay there."""
_PATTERN = re.compile(rf"(?<![\w-])(?:{'|'.join(BANNED)})(?![\w-])")

_RUNS = re.compile(r"\b(?:this|your|the) programs?\b(?! and erases?)|\bprogram's\b", re.IGNORECASE)
_ON_CHIP = re.compile(
    r"\b(?:page|flash) programs?\b|\bprograms? (?:and|or) (?:an )?erases?\b|\breads,? programs\b"
    r"|\bprograms? [\d,]+ (?:flash )?pages?\b|\bprogrammed\b",
    re.IGNORECASE,
)


def banned_in(body: str, *, document: bool = False) -> set[str]:
    """Banned words of a file, also those that a line's end divides."""
    if document:
        body = _BLOCK.sub("", body)
    # IGNORECASE takes three times as long as lower().
    return set(_PATTERN.findall(" ".join(_LEADER.sub("", body).lower().split())))


@cache
def wordings() -> frozenset[str]:
    """`PATH: WORDS` for every banned word in the tree."""
    found = set()
    for path in files(*_CHECKED):
        if not path.startswith(_OWN):
            document = path.endswith(".md")
            found |= {f"{path}: {words}" for words in banned_in(text(path), document=document)}
    return frozenset(found)


def two_meanings(body: str) -> list[str]:
    """Sentences of a document in which "program" is what runs and also what a chip does."""
    prose = _BLOCK.sub("", body)
    sentences = re.split(r"(?<=[.!?:|])\s+|\n\n|\n(?=[-|*])", prose)
    return [one for one in sentences if _RUNS.search(one) and _ON_CHIP.search(one)]


def prose_lines(body: str) -> Iterator[tuple[int, str]]:
    """Lines of a document with their numbers, but for blocks of code and rows of tables."""
    fence = ""
    for number, line in enumerate(body.splitlines(), 1):
        mark = re.match(r" *(```+|~~~+)", line)
        if fence or mark:
            fence = fence if mark is None else "" if fence else mark[1]
        elif not line.lstrip().startswith("|"):
            yield number, line


def cells(body: str) -> Iterator[tuple[int, str]]:
    """Cells of a document's tables, with the numbers of their lines."""
    rows = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), body).splitlines()
    for number, line in enumerate(rows, 1):
        if line.lstrip().startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                yield number, cell.strip()


def main() -> None:
    """Takes out of the list what is no exception any more; adds nothing."""
    head, _, _ = _FILE.read_text(encoding="utf-8").partition("[exceptions]\n")
    left = [f'"{what}" = "{why}"\n' for what, why in EXCEPTIONS.items() if what in wordings()]
    _FILE.write_text(f"{head.rstrip()}\n\n[exceptions]\n{''.join(left)}", encoding="utf-8")
    print(f"{len(left)} of {len(EXCEPTIONS)} exceptions left")


if __name__ == "__main__":
    main()
