"""Reads the lines of a file that may have gigabytes, one by one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.stack.names import escaped

__all__ = ["ImportedError", "check_name", "lines_of", "opened", "refuse"]

LINE_BYTES_MAX = 64 << 20
_NAME_BYTES_MAX, _DEEP_MAX = 4095, 256


class ImportedError(InputError):
    """A file that cannot be imported: FILE:LINE, and why."""


def refuse(path: Path, line: int, why: str) -> ImportedError:
    """The error of a line."""
    return ImportedError(f"{shown(path)}:{line}: {escaped(why)}")


def check_name(name: bytes) -> None:
    """Raises `ValueError` for a file's whole name that is longer or deeper than any program's."""
    deep = name.strip(b"/").count(b"/")
    if len(name) > _NAME_BYTES_MAX or deep > _DEEP_MAX:
        raise ValueError(
            f"a name of {len(name):,} bytes, {deep:,} folders deep; {_NAME_BYTES_MAX:,} bytes and"
            f" {_DEEP_MAX} folders at most"
        )
    if b"\0" in name:
        raise ValueError("a name with a NUL byte")


def opened(path: Path) -> IO[bytes]:
    """Opens a plain file. Raises `ImportedError`."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ImportedError(f"{shown(path)}: no such file") from None
    except (OSError, ValueError) as why:
        text = why.strerror if isinstance(why, OSError) else "not the path of a file"
        raise ImportedError(f"{shown(path)}: {text}") from None
    file = open(number, "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise ImportedError(f"{shown(path)}: a device or a pipe, not a file")
    return file


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of each line, without its end. Raises `ImportedError`."""
    with opened(path) as file:
        line = 0
        while data := file.readline(LINE_BYTES_MAX + 1):
            line += 1
            if len(data) > LINE_BYTES_MAX:
                raise refuse(path, line, f"longer than {LINE_BYTES_MAX >> 20} MiB")
            yield line, data.rstrip(b"\r\n")
