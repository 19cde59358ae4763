"""Which of the files that existed before a program began a replay needs.

A recording lists its whole folder, which may be a home. A replay makes only what calls can detect:
the paths they name, the folders above, the entries of opened folders (`getdents64` reads them),
everything below a renamed folder, and the targets of links.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Iterable

from flashbed.recording.calls import FOLDER, Call

__all__ = ["needed_by"]

_PATHS = ("path", "to_path")
_OPENS = frozenset({"open", "openat", "openat2"})
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
_LINKS_MAX = 40
"""Symbolic links that the kernel follows in a path, at most."""


def needed_by(calls: Iterable[Call], there: Iterable[Call]) -> Callable[[bytes], bool]:
    """Returns whether a replay of these calls needs a path; `there` has all existing ones."""
    kinds = {path: call for call in there if (path := call.path()) is not None}
    named: set[bytes] = set()
    listed: set[bytes] = set()
    moved: set[bytes] = set()
    for call in calls:
        for argument in _PATHS:
            path = call.path(argument)
            if path is None:
                continue
            followed = _followed(path, kinds, named)
            if call.name in _OPENS and (followed == FOLDER or _is_folder(kinds.get(followed))):
                listed.add(followed)
            if call.name in _RENAMES:
                moved.add(path)

    def needed(path: bytes) -> bool:
        if path in named or (posixpath.dirname(path) or FOLDER) in listed:
            return True
        return any(above in moved for above in _above(path))

    return needed


def _above(path: bytes) -> list[bytes]:
    """The folders above a path, the innermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]


def _is_folder(call: Call | None) -> bool:
    return call is not None and stat.S_ISDIR(call.number("mode"))


def _followed(path: bytes, kinds: dict[bytes, Call], named: set[bytes]) -> bytes:
    """Where a path leads; adds it, its folders and the links on the way to `named`."""
    for _ in range(_LINKS_MAX):
        named.update((path, *_above(path)))
        for part in reversed([path, *_above(path)]):
            link = kinds.get(part)
            if link is not None and stat.S_ISLNK(link.number("mode")):
                target = link.path("target") or b""
                rest = path[len(part) :]
                path = posixpath.normpath(posixpath.join(posixpath.dirname(part), target) + rest)
                break
        else:
            return path
    return path
