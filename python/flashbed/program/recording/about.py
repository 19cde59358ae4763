"""Facts about a recording: what made it, of what, on which machine, and what it leaves out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from flashbed.base.toml import Strict
from flashbed.base.toml_errors import wrong_lines
from flashbed.stack.names import Text

__all__ = ["VERSION", "About", "DumpFacts", "Think", "about_of", "shortened"]

VERSION = 1
Think = Literal["cpu", "slept", "gaps", "none"]
_WORD_CHARACTERS = 4096
_Word = Annotated[str, Field(max_length=_WORD_CHARACTERS)]
_WORDS_MAX = 4096


class DumpFacts(Strict):
    """A dump or an image that was on the flash."""

    file: _Word
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    volume: _Word | None = None
    """Of UBI: the program's."""
    compressor: _Word | None = None
    """Of UBIFS: what packs new data."""


class About(Strict):
    """The facts of a recording.

    Attributes:
        version: of the format.
        source: the tool that made it: `flashbed record`, `strace`, `fio` …
        command: the recorded command, word by word; empty if the source does not say.
        machine: `uname -srm` of the machine, or a description of it.
        think: how the time between calls is known. `cpu`: each call has the processor time that its
            task used before it. `slept`: each call has the time before it in which its task did
            not sleep. `gaps`: only when calls began and ended. `none`: no times.
        step_ps: time of one step of `compute` on that machine; None if it was not measured.
        mapped: how reads and writes of mapped files were seen. `faults`: at the page fault.
            `present`: a page in the page table when its mapping ends counts as read once.
            `whole`: each mapping counts as touched whole. `none`: not at all.
        complete: whether the recorder ended by itself.
        not_followed: what the recorder saw but does not know, and how often: calls by name, `lost`
            for those that it was too slow for.
        lacks: what the source cannot contain, a sentence each.
        dump: what the flash held before, in place of files that a replay makes.
    """

    version: Literal[1] = 1
    source: Text
    command: Annotated[tuple[_Word, ...], Field(strict=False, max_length=_WORDS_MAX)] = ()
    machine: _Word = ""
    think: Think = "none"
    step_ps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    mapped: Literal["faults", "present", "whole", "none"] = "none"
    complete: bool = True
    not_followed: Annotated[dict[str, int], Field(max_length=_WORDS_MAX)] = Field(
        default_factory=dict
    )
    lacks: Annotated[tuple[_Word, ...], Field(strict=False, max_length=_WORDS_MAX)] = ()
    dump: DumpFacts | None = None


def shortened(command: Sequence[str]) -> tuple[str, ...]:
    r"""A command as a recording keeps it: long words, and words after many, end in `…`.

    A byte that is not UTF-8 becomes `\xNN`.
    """
    words = [
        word if len(word) <= _WORD_CHARACTERS else f"{word[: _WORD_CHARACTERS - 1]}…"
        for word in map(_utf8, command[:_WORDS_MAX])
    ]
    if len(command) > _WORDS_MAX:
        words[-1] = "…"
    return tuple(words)


def _utf8(word: str) -> str:
    return os.fsencode(word).decode("utf-8", "backslashreplace")


def about_of(text: str) -> About:
    """Reads the JSON in a file's metadata. Raises `ValueError` with one line."""
    try:
        facts = json.loads(text)
        if isinstance(facts, dict) and facts.get("version") != VERSION:
            raise ValueError(f"version {facts.get('version')!r:.40}; this program reads {VERSION}")
        return About.model_validate(facts)
    except ValidationError as why:
        raise ValueError(wrong_lines(About, why)[0][:200]) from None
    except RecursionError:
        raise ValueError("no JSON object") from None
