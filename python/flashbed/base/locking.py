"""Locks for folders and files that one process at a time may write, and folders of a process.

The lock is the kernel's (flock) and is released when its holder ends in any way. The lock file's
text only names the holder, so no file has to be judged stale. The holder removes the file before it
releases the lock; a process that waited for it notices that, and locks the new file.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.files import own_file
from flashbed.base.paths import shown

__all__ = ["LOCK", "Held", "Scratch", "clear", "held", "locked", "scratch", "tidy"]

LOCK = ".lock"
KEPT_MAX = 8
"""Folders that are kept for a person to read."""
"""The lock file in a folder."""
_SAID_BYTES = 300
_HOLDER = re.compile(r"pid \d{1,19} on [A-Za-z0-9_.-]{1,255}\n")


class Held(Exception):
    """Another process has the lock; the message names it."""


def _said(lock: int) -> str:
    """The holder of a lock. Another user may have written it, so only a valid name is shown."""
    text = os.pread(lock, _SAID_BYTES, 0).decode("utf-8", "replace")
    return text.rstrip("\n") if _HOLDER.fullmatch(text) else "another process"


def _tried(path: Path, wait: bool) -> int | None:
    """The lock's descriptor; None if its holder has just removed the file. Raises `Held`.

    Raises `InputError` for a link, a device or a pipe, and for a file that has other names: the
    holder's name is written into the lock.
    """
    own_file(path)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        if os.fstat(lock).st_nlink > 1:
            raise InputError(f"{shown(path)}: a file with other names, no lock; remove it")
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.lstat()):
                with suppress(OSError):  # on a full disk the lock works without a name
                    os.ftruncate(lock, 0)
                    os.pwrite(lock, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return lock
    except BlockingIOError:
        holder = _said(lock)
        os.close(lock)
        raise Held(holder) from None
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _taken(path: Path, *, wait: bool) -> int:
    while True:
        lock = _tried(path, wait)
        if lock is not None:
            return lock


def _released(path: Path, lock: int) -> None:
    with suppress(OSError):
        path.unlink()
    os.close(lock)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for a lock file and holds it: for work of minutes at most."""
    lock = _taken(path, wait=True)
    try:
        yield
    finally:
        _released(path, lock)


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Locks a folder of results; creates it if needed, and removes it if it stays empty.

    Raises `InputError` if another process holds it, unless `wait` is set, for short writes.
    """
    lock = None
    try:
        while lock is None:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # its holder found it empty and removed it
                lock = _taken(folder / LOCK, wait=wait)
    except Held as holder:
        raise InputError(
            f"{shown(folder)}: {holder} is writing there; wait until it ends, or choose another"
            " --out"
        ) from None
    except OSError as why:
        raise InputError(f"{shown(folder)}: {why.strerror}") from None
    try:
        yield
    finally:
        _released(folder / LOCK, lock)
        with suppress(OSError):
            folder.rmdir()


@dataclass(frozen=True)
class Scratch:
    """A folder of this process, which others may remove once the process has ended."""

    path: Path
    lock: int

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, keep: bool = False) -> None:
        """Ends it; a kept folder is for a person to read, until newer ones take its place."""
        if not keep:
            _emptied(self.path)
        _released(self.path / LOCK, self.lock)
        if not keep:
            with suppress(OSError):
                self.path.rmdir()


def scratch(below: Path, prefix: str) -> Scratch:
    """A new folder below another. First removes those of killed processes."""
    clear(below, prefix)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=below))
        with suppress(Held, FileNotFoundError):  # cleared between making and locking it
            return Scratch(path, _taken(path / LOCK, wait=False))


def clear(below: Path, prefix: str) -> None:
    """Removes the folders of killed processes, as `scratch` does before it makes one.

    A folder whose lock is free belongs to a dead process. Of those without a lock, which are kept,
    the newest KEPT_MAX stay.
    """
    kept = []
    for folder in below.glob(f"{prefix}*"):
        with suppress(OSError, Held):
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            if (folder / LOCK).is_file():
                Scratch(folder, _taken(folder / LOCK, wait=False)).close()
            elif any(folder.iterdir()):
                kept.append((about.st_mtime_ns, folder))
            else:
                folder.rmdir()  # it was killed between its last two steps
    for _, folder in sorted(kept)[:-KEPT_MAX]:
        shutil.rmtree(folder, ignore_errors=True)


def tidy(cache: Path) -> None:
    """Removes what processes left in a cache when they were killed between their last steps."""
    for prefix in ("build-", "fetch-", "module-"):
        clear(cache, prefix)
    for path in cache.glob("*.lock"):
        with suppress(OSError, Held):
            _released(path, _taken(path, wait=False))


def _emptied(folder: Path) -> None:
    """Removes all but the lock, which goes last, so that an interrupted removal can continue."""
    for path in folder.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
