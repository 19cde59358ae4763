"""One grammar for what becomes a path, and one for what is printed.

A `Name` is a file's name, so it is no path: letters, digits and `. _ -`, the first a letter or a
digit. A line is printed, so it has no line feed and nothing that a terminal obeys. What others
wrote and a message quotes goes through `escaped`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

__all__ = [
    "FORCED",
    "SHIPPED",
    "ExperimentId",
    "FileSystem",
    "Label",
    "Name",
    "Pattern",
    "Text",
    "escaped",
    "is_name",
    "message",
]

FORCED = "forced"
SHIPPED: Literal["shipped"] = "shipped"
"""The two values of `window`: a case sets it, or leaves the one the kernel gives the mount."""
FileSystem = Literal["jffs2", "yaffs2", "ubifs", "mtd", "mtd-driver"]
Pattern = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]
"""A word that the workload knows: `sequential`, `random`, and each workload's own."""
NAME_CHARACTERS = 64
LABEL_CHARACTERS = 100
TEXT_CHARACTERS = 10_000
MESSAGE_CHARACTERS = 590
"""Of a message; its middle is left out of a longer one."""
_HEAD, _TAIL = 400, 170
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARACTERS - 1}}}")
_GRAMMAR = f"letters, digits and . _ -, {NAME_CHARACTERS} at most, a letter or digit first"


def is_name(text: str) -> bool:
    """Whether a text is one file's name wherever it stands in a path."""
    return _NAME.fullmatch(text) is not None


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{text!r} is no name: {_GRAMMAR}")
    return text


def _experiment_id(text: str) -> str:
    parts = text.split("/")
    if len(parts) != 2 or not all(map(is_name, parts)):
        raise ValueError(f"{text!r} is not STUDY/NAME, each of {_GRAMMAR}")
    return text


def _line(text: str) -> str:
    if not text.isprintable():
        at = next(at for at, character in enumerate(text) if not character.isprintable())
        raise ValueError(f"character {at + 1} is {escaped(text[at])}: one line of printable text")
    return text


Name = Annotated[str, AfterValidator(_name)]
ExperimentId = Annotated[str, AfterValidator(_experiment_id)]
"""STUDY/NAME."""
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS), AfterValidator(_line)]
Label = Annotated[str, Field(min_length=1, max_length=LABEL_CHARACTERS), AfterValidator(_line)]
"""The id of a figure, a claim or an item, as the source numbers it: `Table 2, memory`."""


def escaped(text: str) -> str:
    """One line that a terminal prints and does not obey: the rest by its number."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def message(text: str) -> str:
    """A message as it is printed: one line, not longer than a reader reads."""
    line = escaped(text)
    if len(line) <= MESSAGE_CHARACTERS:
        return line
    return f"{line[:_HEAD]} … {line[-_TAIL:]}"
