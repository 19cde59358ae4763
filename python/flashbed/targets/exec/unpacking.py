"""Unpacks what a program left on the flash into a folder of the user's (`--keep`).

The guest sends a stream (agent/host/keep.c has the format) and is not trusted. Every path must stay
below the folder; nothing is overwritten or followed. Links are made last, and only those that stay
within the folder. Files lose their owner and set-user-ID bit. Long files keep their holes, files
with several names their names. At most `LIMIT_TIMES` the flash's bytes are taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from flashbed.base.errors import InputError, RunError

__all__ = ["UnpackedFiles", "kept_folder", "unpack"]

_LINE_BYTES_MAX = 16_384
_CHUNK_BYTES = 1 << 20
LIMIT_TIMES = 16
"""As in agent/host/keep.c: more than compression makes of a program's data."""
_CHUNK = re.compile(rb"at ([0-9]{1,19}) ([0-9]{1,19})\n")
_ESCAPE = re.compile(rb"%([0-9a-f]{2})")


@dataclass
class UnpackedFiles:
    """The number and bytes of unpacked files; path and reason of each that was left out."""

    files: int = 0
    bytes: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)


def kept_folder(folder: Path) -> None:
    """Makes the folder, which must be empty if it exists. Raises `InputError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"--keep {folder}: the folder is not empty")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"--keep {folder}: cannot be written to")
    except OSError as why:
        raise InputError(f"--keep {folder}: {why.strerror}") from None


def unpack(stream: BinaryIO, folder: Path, flash_bytes: int) -> UnpackedFiles:
    """Unpacks what was on a flash of this size into an empty folder.

    Raises `RunError` for a stream that ends too soon, or holds more than a flash can.
    """
    try:
        return _unpack(stream, folder, LIMIT_TIMES * flash_bytes)
    except OSError as why:
        raise RunError(f"--keep {folder}: {why.strerror}") from None


def _unpack(stream: BinaryIO, folder: Path, limit_bytes: int) -> UnpackedFiles:
    kept = UnpackedFiles()
    files: set[str] = set()
    links: list[tuple[str, str]] = []
    modes: list[tuple[Path, int]] = []
    root = folder.resolve()
    for words in _lines(stream):
        path = _decoded(words[-1])
        _checked(path)
        place = root / path
        if words[0] == b"folder":
            place.mkdir(0o700)
            modes.append((place, int(words[1], 8) & 0o777 | 0o700))
        elif words[0] in (b"file", b"sparse"):
            size = int(words[2])
            if size > limit_bytes - kept.bytes:
                raise RunError(f"--keep: the guest sent more than {limit_bytes:,} bytes")
            copy = _copy if words[0] == b"file" else _copy_sparse
            copy(stream, place, int(words[1], 8) & 0o777, size)
            kept.files += 1
            kept.bytes += size
            files.add(path)
        elif words[0] == b"same":
            _name(root, _decoded(words[1]), path, files)
            kept.files += 1
        elif words[0] == b"large":
            kept.left_out.append(
                (path, f"its size, {int(words[1]):,} bytes, is beyond the flash's")
            )
        elif words[0] == b"link":
            links.append((path, _decoded(words[1])))
        else:
            kept.left_out.append((path, "neither a file, a folder nor a link"))
    for path, target in links:
        if _stays_within(path, target):
            (root / path).symlink_to(target)
        else:
            kept.left_out.append((path, f"a link to {target}"))
    for place, mode in reversed(modes):
        place.chmod(mode)
    return kept


def _lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    counts = {b"folder": 3, b"file": 4, b"sparse": 4, b"same": 3, b"large": 3, b"link": 3,
              b"other": 3}  # fmt: skip
    if stream.readline(_LINE_BYTES_MAX) != b"flashbed-files 1\n":
        raise RunError("--keep: the guest sent nothing")
    while True:
        line = stream.readline(_LINE_BYTES_MAX)
        words = line.removesuffix(b"\n").split(b" ")
        if line == b"end\n":
            return
        if words[0] == b"error":
            raise RunError(f"--keep: {line[6:].decode('utf-8', 'replace').strip()}")
        if not line.endswith(b"\n") or counts.get(words[0]) != len(words):
            raise RunError("--keep: the guest's stream ended early")
        yield words


def _decoded(text: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text))


def _checked(path: str) -> None:
    """Raises `RunError` for a path that leaves the folder."""
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise RunError(f"--keep: the guest named {path[:80]!r}")


def _stays_within(path: str, target: str) -> bool:
    """Whether a relative link stays within the folder, read component by component.

    `..` is allowed only at the beginning: in a/b/.., b could be a link that leads elsewhere.
    """
    if not target or target.startswith("/") or "\0" in target:
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:] and up <= path.count("/")


def _name(root: Path, first: str, path: str, files: set[str]) -> None:
    """Gives a file that is already there another name."""
    if first not in files:
        raise RunError(f"--keep: the guest named {first[:80]!r}")
    (root / path).hardlink_to(root / first)
    files.add(path)


def _new(place: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.fdopen(os.open(place, flags, 0o600), "wb")


def _copy(stream: BinaryIO, place: Path, mode: int, size: int) -> None:
    with _new(place) as to:
        _take(stream, to, size)
        os.fchmod(to.fileno(), mode)


def _copy_sparse(stream: BinaryIO, place: Path, mode: int, size: int) -> None:
    """Copies the chunks of a file that are not zeros."""
    with _new(place) as to:
        to.truncate(size)
        while (line := stream.readline(_LINE_BYTES_MAX)) != b"whole\n":
            found = _CHUNK.fullmatch(line)
            if found is None or int(found[1]) + int(found[2]) > size:
                raise RunError("--keep: the guest's stream ended early")
            to.seek(int(found[1]))
            _take(stream, to, int(found[2]))
        os.fchmod(to.fileno(), mode)


def _take(stream: BinaryIO, to: BinaryIO, size: int) -> None:
    left = size
    while left:
        data = stream.read(min(left, _CHUNK_BYTES))
        if not data:
            raise RunError("--keep: the guest's stream ended early")
        to.write(data)
        left -= len(data)
