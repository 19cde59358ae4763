"""Says why a word names no experiment, and what it may have been meant to name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from shutil import which

from flashbed.stack.names import escaped

__all__ = ["why_none"]

_SHOWN = 8
"""Names of experiments in a message, at most."""
_FILES = (".rec", ".ops", ".parquet", ".parts")
"""What a file that can be run ends in."""


def why_none(name: str, found: Sequence[str], known: Sequence[str]) -> str:
    """The message about a name that `found` experiments have, none or several, of those `known`."""
    if found:
        return f"several experiments are called {name!r}; there are {', '.join(found)}"
    file = _about_file(Path(name), {one.split("/")[0] for one in known})
    if file is not None:
        return f"{escaped(name)}: {file}"
    near = _near(name, known) if len(known) > _SHOWN else known
    some = ", ".join(near or known[:_SHOWN])
    more = f" and others; `flashbed list` has all {len(known)}" if len(known) > _SHOWN else ""
    program = f"; `flashbed exec -- {name}` runs a program" if which(name) else ""
    return f"no experiment {name!r}; there are {some}{more}{program}"


def _near(name: str, known: Sequence[str]) -> list[str]:
    """Names that are written much like this one, with their study or without."""
    words = {one.split("/")[-1]: one for one in known} | {one: one for one in known}
    return list(dict.fromkeys(words[word] for word in get_close_matches(name, words, _SHOWN)))


def _about_file(path: Path, studies: set[str]) -> str | None:
    """What is wrong with a file or folder of this name; None if none is meant."""
    try:
        if path.is_dir() and path.name not in studies:
            return "a folder, and no recording"
        if path.exists() and not path.is_dir():
            return (
                "no recording, no file of operations and no experiment (.toml);"
                " `flashbed import` reads traces of other programs"
            )
    except (OSError, ValueError):  # a name that no file can have
        return None
    return "no such file" if path.suffix in _FILES else None
