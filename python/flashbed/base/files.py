"""Reads foreign files within limits; writes own files whole or not at all.

A file may come from anyone: it must be a regular file, no pipe or device, and within the size of
its kind. A file is written under a random new name first and then renamed. A link, a device or a
pipe is never replaced: `whole` refuses it, and `output` writes into what takes a stream.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown

__all__ = [
    "OPERATIONS_BYTES_MAX",
    "TEXT_BYTES_MAX",
    "begin_file",
    "begun",
    "is_stream",
    "output",
    "own_file",
    "own_path",
    "read_bytes",
    "read_characters",
    "read_json",
    "read_text",
    "refusal",
    "utf8_path",
    "whole",
]

TEXT_BYTES_MAX = 64 << 20
OPERATIONS_BYTES_MAX = 1 << 30
"""About forty million operations."""
_PIECE_BYTES = 1 << 20
_MORE_BYTES = 1 << 16
_LINKS_MAX = 40
_DESCRIPTORS = re.compile(r"/proc/\d+(/task/\d+)?/fd")
_INTO = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_THRIFT = "transport error"
"""The only message of Parquet's writer if the system refuses it the footer."""
_KIB = 1024


def read_bytes(path: Path, limit: int, error: type[InputError] = InputError) -> bytes:
    """All of a regular file of at most `limit` bytes. Raises `error` with one line."""
    return b"".join(_pieces(path, limit, error))


def read_characters(path: Path, limit: int, *, begin: str = "", skip: int = 0) -> str:
    """`read_bytes` with a character per byte. The text grows in place and is in memory only once.

    It begins with `begin`, and leaves out the first `skip` bytes of the file.
    """
    text = begin
    for piece in _pieces(path, limit, InputError):
        text += piece[skip:].decode("latin-1")
        skip = max(0, skip - len(piece))
    return text


def _pieces(path: Path, limit: int, error: type[InputError]) -> Iterator[bytes]:
    read = 0
    try:
        # O_NONBLOCK: opening a pipe without a writer would block.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, "rb") as file:  # noqa: PTH123
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise error(f"{shown(path)}: a device or a pipe, not a file")
            read = status.st_size
            while read <= limit and (piece := file.read(min(_PIECE_BYTES, limit + 1))):
                yield piece
                read = max(read, file.tell())
    except FileNotFoundError:
        raise error(f"{shown(path)}: no such file") from None
    except OSError as why:
        raise error(f"{shown(path)}: {why.strerror}") from None
    except ValueError:
        raise error(f"{shown(path)}: not the path of a file") from None
    if read > limit:
        raise error(f"{shown(path)}: {read // _KIB:,} KiB, {limit // _KIB:,} KiB at most")


def read_text(path: Path, limit: int = TEXT_BYTES_MAX, error: type[InputError] = InputError) -> str:
    """`read_bytes` as UTF-8 without NUL, its line ends as they are."""
    data = read_bytes(path, limit, error)
    if b"\0" in data:
        raise error(f"{shown(path)}: byte {data.index(0) + 1} is NUL")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as why:
        raise error(f"{shown(path)}: byte {why.start + 1} is not UTF-8") from None


def read_json(
    path: Path, limit: int = TEXT_BYTES_MAX, error: type[InputError] = InputError
) -> dict[str, Any]:
    """Reads a file that is one JSON object."""
    text = read_text(path, limit, error)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise error(f"{shown(path)}: not a JSON object")
    return value


def begin_file(path: Path, text: str) -> None:
    """Writes a new file, and its folder. Raises `InputError` if there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as why:
        raise InputError(f"{shown(path)}: {why.strerror}") from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write to, which then replaces it.

    Raises `RunError` with file and folder if it cannot be written, `InputError` if the path can
    only be a folder's, or is a link, a device or a pipe.
    """
    own_file(path)
    new = path.with_name(f".{path.name}.{_HOST}-{os.getpid()}-{secrets.token_hex(6)}.new")
    with _said_of(path, new):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(path)
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            yield new
            new.replace(path)
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)


@contextmanager
def output(path: Path) -> Iterator[Path]:
    """A file to write to, for a path that the user named.

    A plain file is replaced as by `whole`. Into a character device, a pipe or an open descriptor
    (`/dev/stdout`) the finished file is written. Raises as `whole` does.
    """
    if not is_stream(path):
        with whole(path) as new:
            yield new
        return
    with tempfile.TemporaryDirectory(prefix="flashbed-") as folder:
        new = Path(folder) / "new"
        with _said_of(path, new):
            new.touch()
            yield new
            _stream(new, path)


def is_stream(path: Path) -> bool:
    """Whether a path leads to a character device, a pipe, or a descriptor of a process."""
    mode = _mode(path) or 0
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or (mode != 0 and _is_descriptor(path))


def _is_descriptor(path: Path) -> bool:
    for _ in range(_LINKS_MAX):
        if not path.is_symlink():
            return False
        if _DESCRIPTORS.fullmatch(os.path.realpath(path.parent)):
            return True
        path = path.parent / path.readlink()
    return False


def own_file(path: Path) -> Path:
    """The path. Raises `InputError` unless it is free or a plain file's.

    A folder of results may come from anyone. What flashbed names there leads nowhere else.
    """
    if path.name in ("", "..") or stat.S_ISDIR(_mode(own_path(path), follow=False) or 0):
        raise InputError(f"{shown(path)}: a folder, not a file to be written")
    return path


def utf8_path(path: Path) -> Path:
    """The path. Raises `InputError` if it is not UTF-8: no table and no TOML can name it."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{shown(path)}: not UTF-8; rename it") from None
    return path


def own_path(path: Path) -> Path:
    """The path. Raises `InputError` if it is a link's, a device's, a pipe's, or no UTF-8."""
    mode = _mode(utf8_path(path), follow=False)
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a link" if stat.S_ISLNK(mode) else "a device, a pipe or a socket"
        raise InputError(f"{shown(path)}: {kind}, which flashbed does not replace; remove it")
    return path


def _mode(path: Path, *, follow: bool = True) -> int | None:
    """A path's type and mode; None if there is nothing, or nothing that can be looked at."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return None


def _stream(new: Path, path: Path) -> None:
    """Writes a finished file into a device or a pipe. A pipe without a reader is refused."""
    try:
        number = os.open(path, _INTO)
    except OSError as why:
        if why.errno == errno.ENXIO:
            raise InputError(f"{shown(path)}: a pipe that no program reads") from None
        raise
    os.set_blocking(number, True)
    with open(number, "wb") as there, new.open("rb") as written:  # noqa: PTH123
        shutil.copyfileobj(written, there, _PIECE_BYTES)


@contextmanager
def _said_of(path: Path, new: Path) -> Iterator[None]:
    """Turns a failed write into one line about the file and its folder."""
    try:
        yield
    except Exception as why:
        if isinstance(why, OSError) and why.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise InputError(f"{shown(path)[:_KIB]}: {why.strerror}") from None
        reason = _of_the_system(why) or (_THRIFT in str(why) and refusal(new)) or None
        if reason is None:
            raise
        folder = shown(path.parent.absolute())
        raise RunError(f"{path.name} could not be written to {folder}: {reason}") from None


def refusal(new: Path) -> str | None:
    """The system's refusal to extend a file that could not be written; None if it accepts."""
    try:
        with new.open("ab", buffering=0) as file:
            file.write(bytes(_MORE_BYTES))
    except OSError as why:
        return why.strerror
    return None


def _of_the_system(why: Exception) -> str | None:
    """The system's error message, which Parquet's writer wraps in words of its own."""
    found = re.search(r"\(os error (\d+)\)", str(why))
    if found:
        return os.strerror(int(found[1]))
    return (why.strerror or str(why)) if isinstance(why, OSError) else None


_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""Folders may be shared, and process numbers are those of one machine."""


_NEW = re.compile(r"\.(.+)\.([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{12}\.new")


def begun(name: str) -> str | None:
    """The file that `whole` writes under this name, if it is one of its names."""
    found = _NEW.fullmatch(name)
    return found[1] if found else None


def _remove_abandoned(path: Path) -> None:
    """Removes what killed processes of this machine left."""
    for entry in os.scandir(path.parent):
        found = _NEW.fullmatch(entry.name)
        if found and found.group(1, 2) == (path.name, _HOST) and not _lives(int(found[3])):
            with suppress(OSError):
                Path(entry.path).unlink()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
