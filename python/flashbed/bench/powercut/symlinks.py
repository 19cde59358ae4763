"""Symbolic links of the tree, and paths walked through them as fs/namei.c does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Symlink", "resolved"]

_LINKS_MAX = 40
"""MAXSYMLINKS."""


@dataclass(frozen=True, eq=False)
class Symlink:
    """A symbolic link; its target is written as in operations."""

    target: str


def resolved(path: str, now: Callable[[str], object], *, follow: bool) -> str | None:
    """A path without symbolic links; the last name is followed only if requested.

    `now` has what a path without links names. None if a link leaves the file system.
    """
    todo, done, links = path.split("/")[::-1], list[str](), 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if not done:
                return None
            done.pop()
            continue
        entry = now("/".join((*done, name)))
        if not isinstance(entry, Symlink) or not (todo or follow):
            done.append(name)
            continue
        links += 1
        if entry.target.startswith("/") or links > _LINKS_MAX:
            return None
        todo += entry.target.split("/")[::-1]
    return "/".join(done) or "."
