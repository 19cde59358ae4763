"""Finds what existed before a program began, from its calls alone.

A path that is used but was not made existed; bytes that are read but were not written existed. It
sees calls once, in order, and follows them as translate.py does. Left out: what the program never
looked at, and the size of what it truncated before looking.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from flashbed.program.recording.calls import EXISTED, FOLDER, Call, is_outside
from flashbed.program.recording.fill import Filler
from flashbed.program.recording.known_names import Node
from flashbed.program.recording.replay_state import ReplayState, TranslationError
from flashbed.program.recording.translate import HANDLERS

__all__ = ["Discovery"]

_CREATE, _DIRECTORY, _TRUNC = 0o100, 0o200000, 0o1000
_NAMES_BYTES_MAX = 256 << 20
_MAKES = {
    "mkdir", "mkdirat", "symlink", "symlinkat", "creat", "execve", "execveat", EXISTED,
}  # fmt: skip
_OPENS = {"open", "openat", "openat2"}
_FOLLOWS = {*_OPENS, "stat", "statx", "newfstatat", "access", "faccessat", "faccessat2", "truncate",
            "chmod", "fchmodat", "chown", "utimensat"}  # fmt: skip


@dataclass
class Discovery:
    """Follows calls; `existed` is what they showed to exist before."""

    state: ReplayState = field(default_factory=lambda: ReplayState(filler=Filler(None)))
    _found: dict[int, tuple[bytes, Node, int, int]] = field(default_factory=dict)
    """By node: the path it was first seen by, and its kind and size then."""
    _made: dict[int, Node] = field(default_factory=dict)
    """Nodes that the program made; keeps them alive."""
    _names_bytes: int = 0

    def see(
        self, call: Call, *, kind: int | None = None, size: int | None = None, target: bytes = b""
    ) -> None:
        """Takes the next call, and its output: a file's kind and size, a link's target."""
        if call.result >= 0:
            self._paths(call, kind, target)
        reads = self._read(call)
        HANDLERS[call.name](self.state, call)
        self.state.lines.clear()
        if reads is not None:
            self._grow(*reads)
        if size is not None and call.result >= 0:
            self._told(call, size)

    def _paths(self, call: Call, kind: int | None, target: bytes) -> None:
        path = call.path()
        for name in ("path", "to_path"):
            value = call.path(name)
            if value is not None and not is_outside(value):
                for folder in self.state.tree.folders_to(value):
                    if self.state.tree.find(folder) is None:
                        self._add(folder, stat.S_IFDIR)
        if path is None or is_outside(path) or path == FOLDER or call.name in _MAKES:
            return
        flags = call.number("flags") if call.name in _OPENS else 0
        follow = call.name in _FOLLOWS
        known = self.state.tree.find(path, follow=follow)
        if known is not None or self.state.tree.find(path, follow=False) is not None:
            return
        if flags & _CREATE:
            self._maybe(path, flags)
            return
        if kind is None:
            is_folder = flags & _DIRECTORY or call.name == "rmdir" or call.number("flags") == 0x200
            is_link = call.name in ("readlink", "readlinkat")
            kind = stat.S_IFLNK if is_link else stat.S_IFDIR if is_folder else stat.S_IFREG
        self._add(path, kind).target = target

    def _maybe(self, path: bytes, flags: int) -> None:
        """Adds a path that may have existed: it was opened with O_CREAT."""
        node = Node()
        self.state.tree.put(path, node)
        if flags & (_TRUNC | 0o200):
            self._made[id(node)] = node
        else:
            self._found[id(node)] = (path, node, 0, 0)

    def _add(self, path: bytes, kind: int) -> Node:
        self._names_bytes += len(path)
        if self._names_bytes > _NAMES_BYTES_MAX:
            raise TranslationError(
                f"more than {_NAMES_BYTES_MAX >> 20} MiB of names of files that were there before"
            )
        node = Node(kind=kind)
        self.state.tree.put(path, node)
        self._found[id(node)] = (path, node, kind, 0)
        return node

    def _read(self, call: Call) -> tuple[Node, int] | None:
        """The file and offset that a call proved the file to reach."""
        if call.result < 0 or (call.result == 0 and call.name != "lseek"):
            return None
        description = self.state.slot(call) if "descriptor" in call.arguments else None
        if description is None or description.node is None:
            return None
        if call.name in ("read", "readv", "pread64", "preadv", "preadv2", "sendfile", "splice",
                         "copy_file_range"):  # fmt: skip
            at = call.number("offset", description.position)
            return description.node, at + call.result
        if call.name == "lseek" and call.number("command") == 2:
            return description.node, call.result - call.number("offset")
        if call.name in ("getdents", "getdents64"):
            self._grow(description.node, 0, stat.S_IFDIR)
        return None

    def _told(self, call: Call, size: int) -> None:
        path = call.path()
        if path is not None:
            node = self.state.tree.find(path)
        else:
            description = self.state.slot(call)
            node = description.node if description else None
        if node is not None and not node.is_folder:
            self._grow(node, size)

    def _grow(self, node: Node, size: int, kind: int = 0) -> None:
        """Records that a file that may have existed reached at least this far."""
        found = self._found.get(id(node))
        if found is None:
            return
        path, _, known_kind, known = found
        if kind == stat.S_IFDIR and known_kind != kind:
            node.kind = kind
            self._found[id(node)] = (path, node, kind, 0)
        elif size > node.size:
            node.size = size
            self._found[id(node)] = (path, node, known_kind or stat.S_IFREG, max(known, size))

    def is_inside(self, call: Call) -> bool:
        """Whether a call concerns the folder."""
        for name in ("path", "to_path"):
            path = call.path(name)
            if path is not None and not is_outside(path):
                return True
        return any(
            self.state.slot(call, name) is not None
            for name in ("descriptor", "to_descriptor")
            if name in call.arguments
        )

    def descriptor_known(self, call: Call, name: str) -> bool:
        """Whether a descriptor was seen being opened."""
        return self.state.descriptor(call, name) is not None

    def place_of(self, call: Call) -> tuple[int, int]:
        """The file that a call writes, as a number, and the offset."""
        description = self.state.slot(call)
        if description is None or description.node is None:
            return 0, 0
        at = call.number("offset", description.position)
        return id(description.node), description.node.size if description.append else at

    def existed(self) -> Iterator[Call]:
        """What existed, as rows of a recording."""
        for path, node, kind, size in self._found.values():
            if kind:
                arguments: dict[str, int | bytes] = {"path": path, "length": size, "mode": kind}
                if kind == stat.S_IFLNK:
                    if not node.target:
                        continue
                    arguments["target"] = node.target
                yield Call(
                    task=0,
                    start_ns=0,
                    duration_ns=0,
                    cpu_ns=None,
                    name=EXISTED,
                    arguments=arguments,
                )
