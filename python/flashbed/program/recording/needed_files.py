"""Which of the files that existed before a program began a replay needs.

A recording lists its whole folder, which may be a home. A replay makes only what calls can detect:
the paths they name, the folders above, the entries of opened folders (`getdents64` reads them),
everything below a renamed folder, and the targets of links.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain

from flashbed.program.recording.calls import FOLDER, Call

__all__ = ["needed_by"]

_PATHS = ("path", "to_path")
_OPENS = frozenset({"open", "openat", "openat2"})
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
_LINKS_MAX = 40
"""Symbolic links that the kernel follows in a path, at most."""


def needed_by(
    calls: Iterable[Call], links: Mapping[bytes, bytes], folders: Container[bytes]
) -> Callable[[bytes], bool]:
    """Returns whether a replay of these calls needs a path.

    `links` has the target of each existing link, `folders` the existing folders.
    """
    named: set[bytes] = set()
    listed: set[bytes] = set()
    moved: set[bytes] = set()
    for call in calls:
        for argument in _PATHS:
            path = call.path(argument)
            if path is None:
                continue
            followed = _followed(path, links, named)
            if call.name in _OPENS and (followed == FOLDER or followed in folders):
                listed.add(followed)
            if call.name in _RENAMES:
                moved.add(path)
    in_order = sorted(named)

    def is_named(path: bytes) -> bool:
        """Whether a call named the path, or one below it."""
        if path in named:
            return True
        below = path + b"/"
        at = bisect_left(in_order, below)
        return at < len(in_order) and in_order[at].startswith(below)

    def needed(path: bytes) -> bool:
        if is_named(path) or (posixpath.dirname(path) or FOLDER) in listed:
            return True
        return bool(moved) and any(above in moved for above in _above(path))

    return needed


def _above(path: bytes) -> Iterator[bytes]:
    """The folders above a path, the outermost first."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _followed(path: bytes, links: Mapping[bytes, bytes], named: set[bytes]) -> bytes:
    """Where a path leads; adds it and the paths on the way to `named`."""
    named.add(path)
    if not links:
        return path
    for _ in range(_LINKS_MAX):
        parts = chain(_above(path), (path,))
        link = next((part for part in parts if part in links), None)
        if link is None:
            break
        ahead = posixpath.join(posixpath.dirname(link), links[link])
        path = posixpath.normpath(ahead + path[len(link) :])
        named.add(path)
    return path
