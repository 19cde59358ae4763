"""A grammar for names that become paths, and one for lines that are printed.

A `Name` is a file name and never a path: letters, digits and `. _ -`, beginning with a letter or a
digit. A line has no line feed and nothing that controls a terminal. Text of other people that a
message quotes goes through `escaped`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

__all__ = [
    "DEFAULT_WINDOW",
    "FORCED",
    "USUAL_BOARD",
    "USUAL_FS",
    "USUAL_KERNEL",
    "ExperimentId",
    "Label",
    "Name",
    "Pattern",
    "Text",
    "escaped",
    "is_name",
    "message",
]

FORCED = "forced"
DEFAULT_WINDOW: Literal["default"] = "default"
"""The two values of `window`: set by the case, or the kernel's default for the mount."""
USUAL_BOARD, USUAL_KERNEL, USUAL_FS = "emulated", "6.1", "ubifs"
"""The stack of a program for which nothing else was chosen."""
Pattern = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=64)]
"""A pattern of a workload: `sequential`, `random`, or one of its own."""
NAME_CHARACTERS = 64
LABEL_CHARACTERS = 100
TEXT_CHARACTERS = 10_000
MESSAGE_CHARACTERS = 590
"""Characters of a message; a longer one loses its middle."""
_HEAD, _TAIL = 400, 170
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARACTERS - 1}}}")
_GRAMMAR = f"letters, digits and . _ -, {NAME_CHARACTERS} at most, a letter or digit first"


def is_name(text: str) -> bool:
    """Whether a text is the name of one file, wherever it stands in a path."""
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
"""The id of a figure, claim or item, in the source's numbering: `Table 2, memory`."""


def escaped(text: str) -> str:
    """Makes a text one line that cannot control a terminal; other characters become numbers."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def message(text: str) -> str:
    """A message ready to print: one line, shortened to a readable length."""
    line = escaped(text)
    if len(line) <= MESSAGE_CHARACTERS:
        return line
    return f"{line[:_HEAD]} … {line[-_TAIL:]}"
