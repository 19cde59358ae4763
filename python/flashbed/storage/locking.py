"""Folders and files that one process at a time may write: locks, and folders of a process's own.

The lock is the kernel's (flock): it is released when its holder ends, however it ends. What the
lock file says only names the holder, so no file has to be judged stale. The holder removes the file
before it lets go; whoever waited for it sees that the file is another one and takes that.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flashbed.errors import InputError
from flashbed.paths import shown

__all__ = ["LOCK", "Held", "Scratch", "clear", "held", "locked", "scratch", "tidy"]

LOCK = ".lock"
"""The lock file of a folder, in it."""
_SAID_BYTES = 300
_HOLDER = re.compile(r"pid \d{1,19} on [A-Za-z0-9_.-]{1,255}\n")


class Held(Exception):
    """Another process has the lock; the message names it."""


def _said(lock: int) -> str:
    """Who holds a lock. Another user may have written the file: nothing but a name is shown."""
    text = os.pread(lock, _SAID_BYTES, 0).decode("utf-8", "replace")
    return text.rstrip("\n") if _HOLDER.fullmatch(text) else "another process"


def _tried(path: Path, wait: bool) -> int | None:
    """The lock's descriptor; None if its holder removed the file meanwhile. Raises `Held`."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.lstat()):
                with suppress(OSError):  # a full disk: the lock holds, it has no name
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
    """Holds a lock file, and waits for it: for work of minutes at most."""
    lock = _taken(path, wait=True)
    try:
        yield
    finally:
        _released(path, lock)


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds a folder of results, made if need be, and removed again if nothing was put into it.

    Raises `InputError` if another process holds it, unless it is to `wait`: for a write or two.
    """
    lock = None
    try:
        while lock is None:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # its holder found it empty, and removed it
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
    """A folder of this process's own, and of nobody's once the process has ended."""

    path: Path
    lock: int

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, keep: bool = False) -> None:
        """Ends it; what is kept is for a person to read, and nothing clears it."""
        if not keep:
            _emptied(self.path)
        _released(self.path / LOCK, self.lock)
        if not keep:
            with suppress(OSError):
                self.path.rmdir()


def scratch(below: Path, prefix: str) -> Scratch:
    """A new folder below another. First clears those of processes that were killed."""
    clear(below, prefix)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=below))
        with suppress(Held, FileNotFoundError):  # cleared between the two
            return Scratch(path, _taken(path / LOCK, wait=False))


def clear(below: Path, prefix: str) -> None:
    """Removes the folders of processes that were killed, as `scratch` does before it makes one.

    A folder with a lock that nobody holds is a dead process's; one without is kept.
    """
    for folder in below.glob(f"{prefix}*"):
        with suppress(OSError, Held):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            if (folder / LOCK).is_file():
                Scratch(folder, _taken(folder / LOCK, wait=False)).close()
            else:
                folder.rmdir()  # empty, if it was killed between its last two steps


def tidy(cache: Path) -> None:
    """Removes what processes left that were killed between their last steps in a cache."""
    for prefix in ("build-", "fetch-", "module-"):
        clear(cache, prefix)
    for path in cache.glob("*.lock"):
        with suppress(OSError, Held):
            _released(path, _taken(path, wait=False))


def _emptied(folder: Path) -> None:
    """Removes all but the lock, which goes last: killed in between, the rest is cleared later."""
    for path in folder.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
