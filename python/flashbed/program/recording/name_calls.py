"""Translates calls on names and metadata into operations.

A call that failed on the recorded machine is kept if it fails in the same way in a replay. A call
that lacked permission would succeed here, so only its lookup is kept.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from flashbed.program.recording.calls import Call, is_outside
from flashbed.program.recording.data_calls import Handler, written_lines
from flashbed.program.recording.known_names import Node
from flashbed.program.recording.replay_state import ReplayState, name_word

__all__ = ["HANDLERS"]

_FAILS_ALIKE = frozenset(
    -number
    for number in (
        errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EINVAL,
        errno.ENODATA, errno.ELOOP, errno.ENAMETOOLONG,
    )
)  # fmt: skip
_REMOVE_FOLDER, _EXCHANGE, _FOLLOW = 0x200, 2, 0x400
_VALUE_BYTES_MAX = 65_536
_NAME_BYTES_MAX = 255


def _add_or_look_up(state: ReplayState, call: Call, line: str, looked_up: str) -> bool:
    """Adds the line, or only the lookup if the call lacked permission."""
    if call.result < 0 and call.result not in _FAILS_ALIKE:
        state.lines.append(f"stat {looked_up}")
        return False
    state.lines.append(line)
    return call.result >= 0


def _mkdir(state: ReplayState, call: Call) -> None:
    path, raw = state.path(call), call.path()
    if path is not None and raw is not None and _add_or_look_up(state, call, f"mkdir {path}", path):
        state.tree.put(raw, Node(kind=stat.S_IFDIR))


def _unlink(state: ReplayState, call: Call) -> None:
    path, raw = state.path(call), call.path()
    folder = call.name == "rmdir" or call.number("flags") & _REMOVE_FOLDER
    if path is None or raw is None:
        return
    if _add_or_look_up(state, call, f"{'rmdir' if folder else 'unlink'} {path}", path):
        state.tree.remove(raw)


def _rename(state: ReplayState, call: Call) -> None:
    raw, to_raw = call.path(), call.path("to_path")
    path, to_path = state.path(call), state.path(call, "to_path")
    if path is None and to_path is None:
        return
    if path is None or to_path is None or raw is None or to_raw is None:
        inside = path or to_path
        if call.result >= 0:
            state.skip("rename between the folder and another: another file system on the flash")
            if raw is not None and path is not None:
                state.tree.remove(raw)
        state.lines.append(f"stat {inside}")
        return
    if call.number("flags") & _EXCHANGE:
        state.skip("renameat2 that exchanges two names")
        return
    if call.number("flags") and call.result < 0:  # RENAME_NOREPLACE, which operations do not have
        state.lines.append(f"stat {to_path}")
    elif _add_or_look_up(state, call, f"rename {path} {to_path}", path):
        state.tree.rename(raw, to_raw)


def _link(state: ReplayState, call: Call) -> None:
    raw, to_raw, to_path = call.path(), call.path("to_path"), state.path(call, "to_path")
    if to_path is None or to_raw is None:
        return
    unnamed = state.slot(call) if raw is None else None
    old = f"SLOT:{unnamed.slot}" if unnamed else state.path(call)
    if old is None:
        state.skip("link of a file outside the folder")
        return
    if _add_or_look_up(state, call, f"link {old} {to_path}", to_path):
        node = unnamed.node if unnamed else state.tree.find(raw or b"/", follow=False)
        if node is not None:
            state.tree.put(to_raw, node)


def _symlink(state: ReplayState, call: Call) -> None:
    path, raw, target = state.path(call), call.path(), call.path("target") or b""
    if path is None or raw is None:
        return
    shown = state.target(target)
    if shown is not None and _add_or_look_up(state, call, f"symlink {shown} {path}", path):
        state.tree.put(raw, Node(kind=stat.S_IFLNK, size=len(target), target=target))


def _look(operation: str) -> Handler:
    def handle(state: ReplayState, call: Call) -> None:
        path = state.path(call)
        if path is not None:
            state.lines.append(f"{operation} {path}")

    return handle


def _stat(state: ReplayState, call: Call) -> None:
    """Translates `access`, and `stat` of a link, which look up the link and its target."""
    path = state.path(call)
    if path is not None:
        state.lines.append(f"stat {path}")


@dataclass(frozen=True)
class _OfFile:
    """Translates a call on a path or a descriptor into the operation on a path."""

    operation: str
    fields: tuple[str, ...] = ()

    def __call__(self, state: ReplayState, call: Call) -> None:
        path = _path_of_either(state, call)
        if path is None:
            return
        fields = [str(call.number(name) & 0xFFF if name == "mode" else call.number(name))
                  for name in self.fields]  # fmt: skip
        if any(int(field) < 0 or int(field) > 2**32 - 2 for field in fields):
            fields = [
                "0" if int(field) < 0 or int(field) > 2**32 - 2 else field for field in fields
            ]
        _add_or_look_up(state, call, " ".join((self.operation, path, *fields)), path)


def _path_of_either(state: ReplayState, call: Call) -> str | None:
    """The path that a call names, or the path of its descriptor's file."""
    raw = call.path()
    if raw is not None:
        return None if is_outside(raw) else state.shown(raw)
    description = state.slot(call)
    if description is None:
        return None
    path = state.path_of(description.node)
    if path is None:
        state.skip(f"{call.name} of a file that has no name left")
    return path


def _xattr(operation: str) -> Handler:
    def handle(state: ReplayState, call: Call) -> None:
        path, name = _path_of_either(state, call), call.path("name")
        if path is None:
            return
        if operation == "getxattr" and call.result == -errno.ENODATA and _searched(state, call):
            # The file system looked for it, as it does for one of user.* that is not there.
            sought = (b"user." + (name or b"").removeprefix(b"user."))[:_NAME_BYTES_MAX]
            state.lines.append(f"getxattr {path} {name_word(sought)}")
            return
        if name is not None and not (
            name.startswith(b"user.") and 5 < len(name) <= _NAME_BYTES_MAX
        ):
            state.lines.append(f"stat {path}")
            state.skip(f"{operation} of an attribute that is not user.*: looked up alone")
            return
        if operation == "setxattr":
            _set(state, call, path, name_word(name or b""))
        else:
            named = f" {name_word(name)}" if name is not None else ""
            _add_or_look_up(state, call, f"{operation} {path}{named}", path)

    return handle


def _searched(state: ReplayState, call: Call) -> bool:
    """Whether a file can have attributes of user.*: links cannot."""
    raw = call.path()
    node = state.tree.find(raw, follow=False) if raw is not None else None
    return node is None or node.kind != stat.S_IFLNK


def _set(state: ReplayState, call: Call, path: str, name: str) -> None:
    """The value's bytes are generated like those of a file of its own, from its beginning."""
    length = call.number("length")
    if call.result < 0 or not 0 < length <= _VALUE_BYTES_MAX:
        state.lines.append(f"stat {path}")
        return
    lines = written_lines(state, "write 0", node=None, at=0, length=length, written=call.written)
    for line in lines:
        words = line.split(" ", 3)
        # A line is OPERATION PATH NAME LENGTH SEED FILL: no slot, no offset.
        state.lines.append(line if words[0] == "data" else f"setxattr {path} {name} {words[3]}")


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("mkdir", "mkdirat"), _mkdir),
    **dict.fromkeys(("rmdir", "unlink", "unlinkat"), _unlink),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _rename),
    **dict.fromkeys(("link", "linkat"), _link),
    **dict.fromkeys(("symlink", "symlinkat"), _symlink),
    **dict.fromkeys(("readlink", "readlinkat"), _look("readlink")),
    **dict.fromkeys(
        ("stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"), _stat
    ),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _OfFile("chmod", ("mode",))),
    **dict.fromkeys(("chown", "lchown", "fchownat", "fchown"), _OfFile("chown", ("user", "group"))),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), _OfFile("utimens")),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr"), _xattr("setxattr")),
    **dict.fromkeys(("getxattr", "lgetxattr", "fgetxattr"), _xattr("getxattr")),
    **dict.fromkeys(("listxattr", "llistxattr", "flistxattr"), _xattr("listxattr")),
    **dict.fromkeys(("removexattr", "lremovexattr", "fremovexattr"), _xattr("removexattr")),
}
