"""Tracks the names below the recorded folder and the files' sizes as calls change them.

The model knows enough to tell where an append goes, what a name referred to when it was used, and
which file a descriptor had. Symbolic links are followed if they stay inside. Left out: permissions;
links that lead outside, which lead nowhere here.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from flashbed.program.recording.calls import FOLDER, is_outside

__all__ = ["NameTree", "Node"]

_LINKS_MAX = 40


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """A file, a folder or a link. `places` are its folders and names.

    `unflushed`: it was changed since a descriptor of it was closed, or it was synced.
    """

    kind: int = stat.S_IFREG
    size: int = 0
    target: bytes = b""
    unflushed: bool = False
    children: dict[bytes, Node] = field(default_factory=dict)
    places: dict[tuple[int, bytes], Node] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.kind == stat.S_IFDIR


class NameTree:
    """Names and their nodes. A path that is outside, or unknown, gives None."""

    def __init__(self) -> None:
        self.root = Node(kind=stat.S_IFDIR)

    def find(self, path: bytes, *, follow: bool = True) -> Node | None:
        """The node of a path; `follow` follows a link at its end."""
        if is_outside(path):
            return None
        return self._walk(path, follow, _LINKS_MAX)

    def _walk(self, path: bytes, follow: bool, links: int) -> Node | None:
        node, trail = self.root, [self.root]
        names = [] if path == FOLDER else path.split(b"/")[::-1]
        while names:
            name = names.pop()
            if name in (b"", b"."):
                continue
            if name == b"..":
                if len(trail) > 1:
                    trail.pop()
                node = trail[-1]
                continue
            below = node.children.get(name)
            if below is None:
                return None
            if below.kind == stat.S_IFLNK and (names or follow):
                links -= 1
                if links < 0 or is_outside(below.target):
                    return None
                names += below.target.split(b"/")[::-1]
                continue
            node = below
            trail.append(node)
        return node

    def parent(self, path: bytes) -> tuple[Node, bytes] | None:
        """The folder of a path's last name, and that name."""
        if is_outside(path) or path == FOLDER:
            return None
        folder, _, name = path.rpartition(b"/")
        node = self.find(folder) if folder else self.root
        return (node, name) if node is not None and node.is_folder else None

    def put(self, path: bytes, node: Node) -> None:
        """Gives a node a name, replacing another node. Ignored if its folder is unknown."""
        place = self.parent(path)
        if place is None:
            return
        folder, name = place
        self._take(folder, name)
        folder.children[name] = node
        node.places[id(folder), name] = folder

    def remove(self, path: bytes) -> Node | None:
        """Removes a name and returns its node."""
        place = self.parent(path)
        return self._take(*place) if place else None

    def _take(self, folder: Node, name: bytes) -> Node | None:
        node = folder.children.pop(name, None)
        if node is not None:
            node.places.pop((id(folder), name), None)
        return node

    def rename(self, path: bytes, to_path: bytes) -> None:
        """Moves a name."""
        node = self.find(path, follow=False)
        if node is None or node is self.find(to_path, follow=False):
            return
        self.remove(path)
        self.put(to_path, node)

    def path_of(self, node: Node) -> bytes | None:
        """A current path of a node; None if it has no name left."""
        names: list[bytes] = []
        while node is not self.root:
            if not node.places or len(names) > _LINKS_MAX * _LINKS_MAX:
                return None
            (_, name), folder = next(iter(node.places.items()))
            names.append(name)
            node = folder
        return b"/".join(reversed(names)) or FOLDER

    def folders_to(self, path: bytes) -> Iterator[bytes]:
        """The folders above a path, the outermost first."""
        at = path.find(b"/")
        while at >= 0:
            yield path[:at]
            at = path.find(b"/", at + 1)
