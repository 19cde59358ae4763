"""Calls of a recorded program: their fields, and the arguments of every call that flashbed knows.

Numbers are those of Linux on x86-64, whatever the machine: flags of `openat`, `fallocate`, `mmap`,
`errno`. A recorder on another machine translates them. docs/reference/recording.md has the same
tables. translate.py knows what calls do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import starmap
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "ARGUMENTS",
    "CALLS",
    "COMPRESSORS",
    "EXISTED",
    "FOLDER",
    "FORKS",
    "PACKED_BYTES",
    "PIECE_BYTES",
    "Call",
    "Piece",
    "Written",
    "is_outside",
    "pack_pieces",
    "pieces_of",
    "unpack_pieces",
]

PIECE_BYTES = 4096
COMPRESSORS = ("lzo", "zlib", "zstd")
FOLDER = b"."
"""The path of the recorded folder itself."""
EXISTED = "existed"
"""Not a call: a row for each file and folder that existed before the program began."""


class Piece(NamedTuple):
    """Compressed sizes of a piece of written data, each at most the piece's length.

    A write is cut into pieces at multiples of 4,096 bytes in the file. `alone` is the size of the
    piece compressed by itself. `context` is what the piece adds to the bytes before it in its page:
    the compressed size of both together minus that of the bytes before, or minus what the pieces
    that were written there one behind the other say. At the beginning of a page both are equal.
    """

    lzo_alone: int
    lzo_context: int
    zlib_alone: int
    zlib_context: int
    zstd_alone: int
    zstd_context: int


_PACKED = struct.Struct("<6H")
PACKED_BYTES = _PACKED.size
"""Bytes of a piece in a recording's file."""


def pack_pieces(pieces: Iterable[Piece]) -> bytes:
    """Sizes in the file's encoding: 16 bits each, the low byte first."""
    return b"".join(starmap(_PACKED.pack, pieces))


def unpack_pieces(sizes: bytes) -> tuple[Piece, ...]:
    """Decodes a whole number of pieces."""
    return tuple(starmap(Piece, _PACKED.iter_unpack(sizes)))


Written = bytes | tuple[Piece, ...]
"""Data that a call wrote: its bytes, or the sizes of its pieces."""

ARGUMENTS: Mapping[str, type[int] | type[bytes]] = MappingProxyType(
    {
        "descriptor": int,
        "path": bytes,
        "offset": int,
        "length": int,
        "to_descriptor": int,
        "to_path": bytes,
        "to_offset": int,
        "flags": int,
        "mode": int,
        "command": int,
        "user": int,
        "group": int,
        "name": bytes,
        "target": bytes,
        "address": int,
    }
)
"""Every argument that a call can have, in the order of the file's columns."""

_READ = "descriptor length"
_AT = "descriptor offset length"
_PATH = "path flags?"
_XATTR = "name length"

_TABLE = {
    # opening and descriptors
    "open openat openat2": "path flags mode?",
    "creat": "path mode?",
    "close": "descriptor",
    "close_range": "descriptor to_descriptor flags?",
    "dup": "descriptor",
    "dup2 dup3": "descriptor to_descriptor flags?",
    "fcntl": "descriptor command flags?",
    "lseek": "descriptor offset command",
    # data; without an offset, at the descriptor's own position
    "read readv": _READ,
    "pread64 preadv preadv2": "descriptor offset? length flags?",
    "write writev": _READ,
    "pwrite64 pwritev pwritev2": "descriptor offset? length flags?",
    "ftruncate": "descriptor length",
    "truncate": "path length",
    "fallocate": "descriptor mode offset length",
    "fadvise64": "descriptor offset length command",
    "readahead": _AT,
    "copy_file_range": "descriptor offset? to_descriptor to_offset? length flags?",
    "sendfile splice": "descriptor offset? to_descriptor? to_offset? length flags?",
    # durability and locks
    "fsync fdatasync syncfs": "descriptor",
    "sync": "",
    "sync_file_range": "descriptor offset length flags",
    "flock": "descriptor command",
    # names
    "mkdir mkdirat": "path mode?",
    "rmdir": "path",
    "unlink unlinkat": _PATH,
    "rename renameat renameat2": "path to_path flags?",
    "link linkat": "path? descriptor? to_path flags?",
    "symlink symlinkat": "target path",
    "readlink readlinkat": "path",
    "getdents getdents64": _READ,
    # metadata
    "stat lstat newfstatat statx access faccessat faccessat2": _PATH,
    "fstat": "descriptor",
    "chmod fchmodat fchmodat2": "path mode flags?",
    "fchmod": "descriptor mode",
    "chown lchown fchownat": "path user group flags?",
    "fchown": "descriptor user group",
    "utime utimes futimesat utimensat": "path? descriptor? flags?",
    "setxattr lsetxattr": f"path {_XATTR} flags?",
    "fsetxattr": f"descriptor {_XATTR} flags?",
    "getxattr lgetxattr": f"path {_XATTR}",
    "fgetxattr": f"descriptor {_XATTR}",
    "listxattr llistxattr": "path length",
    "flistxattr": _READ,
    "removexattr lremovexattr": "path name",
    "fremovexattr": "descriptor name",
    # mapped files; `mode` is PROT_. The result of mmap and mremap is an address
    "mmap": "address? length mode flags descriptor offset",
    "mprotect": "address length mode",
    "mremap": "address length to_offset flags",
    "munmap": "address length",
    "msync": "address length flags",
    "madvise": "address length command",
    # not calls: a page mapped at an address is read, or has been written
    "mapped_read mapped_write": "address length",
    # tasks; the result of the first and the last row is the number of the other task
    "clone clone3 fork vfork": "flags?",
    "execve execveat": "path?",
    "exit exit_group": "mode?",
    "wait4 waitid": "",
    # not a call: what existed before. `mode` with its kind (S_IFMT), `length` in bytes
    EXISTED: "path length mode target?",
}

CALLS: Mapping[str, tuple[tuple[str, bool], ...]] = MappingProxyType(
    {
        call: tuple((word.rstrip("?"), word.endswith("?")) for word in arguments.split())
        for calls, arguments in _TABLE.items()
        for call in calls.split()
    }
)
"""Call -> its arguments by name, and whether each may be missing."""

FORKS = frozenset({"clone", "clone3", "fork", "vfork"})
"""Calls whose result is the number of a new task."""
WRITES = frozenset(
    {"write", "writev", "pwrite64", "pwritev", "pwritev2", "mapped_write"}
    | {"setxattr", "lsetxattr", "fsetxattr", EXISTED}
)
"""Rows that may have `written`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call.

    Attributes:
        task: the calling task: a number from 0, in the order in which tasks began.
        start_ns: when it began, since the recording's beginning.
        duration_ns: how long it took on the recorded machine; None if it is not known.
        cpu_ns: processor time that its task used since its previous call, or, if the recording
            says so, the time in which its task did not sleep; None if the recorder knows neither.
        name: the kernel's name of the call: a key of `CALLS`.
        arguments: by name, those of `CALLS`. A path is relative to the recorded folder (`.` is the
            folder itself), without `.` and `..`; one outside begins with `/`, and may be just that.
        result: what the call returned; -errno if it failed.
        written: the data that it wrote, as many bytes as the result says (`length`, for
            `mapped_write`). For a file that existed before: its contents, if known.
    """

    task: int
    start_ns: int
    duration_ns: int | None
    cpu_ns: int | None
    name: str
    arguments: Mapping[str, int | bytes] = field(default_factory=dict)
    result: int = 0
    written: Written | None = None

    @property
    def end_ns(self) -> int:
        """When it returned; its beginning, if how long it took is not known."""
        return self.start_ns + (self.duration_ns or 0)

    def number(self, name: str, default: int = 0) -> int:
        """A numeric argument."""
        value = self.arguments.get(name, default)
        assert isinstance(value, int)
        return value

    def path(self, name: str = "path") -> bytes | None:
        """An argument of bytes, or None if it is missing."""
        value = self.arguments.get(name)
        assert value is None or isinstance(value, bytes)
        return value


def is_outside(path: bytes) -> bool:
    """Whether a path is outside the recorded folder."""
    return path.startswith(b"/")


def pieces_of(offset: int, length: int) -> list[tuple[int, int]]:
    """Offset and length of each piece of a write."""
    pieces = []
    end = offset + length
    while offset < end:
        after = min(end, (offset // PIECE_BYTES + 1) * PIECE_BYTES)
        pieces.append((offset, after - offset))
        offset = after
    return pieces
