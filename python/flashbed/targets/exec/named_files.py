"""Files of this machine that a command names, and that the program does not find on the flash.

`flashbed exec -- python3 my.py` begins in an empty folder, so Python finds no my.py.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from flashbed.targets.exec.folders import COVERS
from flashbed.targets.exec.request import Put

__all__ = ["missing_files"]


def missing_files(words: Sequence[str], puts: Sequence[Put]) -> str | None:
    """What to say about files here that the arguments name; None if there are none.

    A path below a folder that the program sees empty counts as well.
    """
    on_flash = {put.path for put in puts}
    options: dict[str, str] = {}
    for name in _names(words[1:]):
        option = _put_option(name)
        if option is not None and os.path.normpath(name) not in on_flash:
            options[name] = option
    if not options:
        return None
    are, they = ("is", "it") if len(options) == 1 else ("are", "them")
    put = " ".join(f"--put {shlex.quote(option)}" for option in dict.fromkeys(options.values()))
    return (
        f"{', '.join(options)} {are} here and not on the flash, where the program looks for {they}:"
        f" {put}"
    )


def _names(words: Sequence[str]) -> Iterator[str]:
    """The words, those within a script such as `sh -c SCRIPT` has, and values of options."""
    for word in words:
        try:
            parts = shlex.split(word) if any(each.isspace() for each in word) else [word]
        except ValueError:  # no shell's script
            continue
        for part in parts:
            yield part.partition("=")[2] if "=" in part else part


def _put_option(name: str) -> str | None:
    """What `--put` has to copy for this name to be there; None if the name is of nothing here."""
    try:
        path = Path(name)
        if path.is_absolute():
            covered = any(path.is_relative_to(folder) for folder in COVERS)
            return name if covered and path.is_file() else None
        if path.name in ("", "..") or not path.exists():
            return None
    except (OSError, ValueError):
        return None
    return name if path.parts[0] == ".." else path.parts[0]
