"""Copies foreign Parquet files; only the copies are read in this process.

Another process reads the file and writes the copy (`copier.py`). If damage makes Polars abort, only
that process ends. This one reports a line, and starts another copier for the next file.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from flashbed.base.copier import MEMORY_BYTES
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown

__all__ = ["DamagedError", "copied", "copy"]

_ANSWER_BYTES_MAX = 1 << 20


class DamagedError(ValueError):
    """A table cannot be read. The message is Polars'."""


def copy(path: Path) -> IO[bytes]:
    """A copy without a name, removed when it is closed. Raises what `copied` raises."""
    new = tempfile.TemporaryFile(prefix="flashbed-")  # noqa: SIM115
    try:
        copied(path, new)
    except BaseException:
        new.close()
        raise
    return new


def copied(path: Path, new: IO[bytes]) -> None:
    """Copies a file into an empty one.

    Raises `DamagedError`, `InputError` for a file that needs more memory than there is, and
    `RunError` for a copy that cannot be written.
    """
    try:
        source = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as why:
        raise DamagedError(str(why)) from None
    try:
        answer = _copier.request(path, source, new.fileno())
    finally:
        os.close(source)
    if "system" in answer:
        raise RunError(f"{shown(path)}: no copy could be made of it: {answer['system']}")
    if "damaged" in answer:
        raise DamagedError(answer["damaged"])


class _Copier:
    """The copying process, started on first use."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.close)

    def request(self, path: Path, source: int, new: int) -> Mapping[str, str]:
        """The process's answer for two open files."""
        with self._one_at_a_time:
            try:
                if self._owner != os.getpid() or self._ended():
                    self.close()
                    self._start()
                answer = self._answer(source, new)
            except BaseException:  # Ctrl-C: the answer may still arrive
                self.close()
                raise
            if answer is None:
                return self._death(path)
            return answer

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._said = os.fdopen(os.memfd_create("said"), "w+b")
        self._owner = os.getpid()
        with theirs:
            self._process = subprocess.Popen(
                # Without -P Python would import a `polars` from the working folder.
                [sys.executable, "-P", "-m", "flashbed.base.copier", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said,
                pass_fds=(theirs.fileno(),), start_new_session=True,
            )  # fmt: skip
        if self._line() is None:
            words = self._last_words().splitlines()[-1:] or ["it ended"]
            self.close()
            raise RunError(f"the process that reads tables did not start: {words[0][:200]}")

    def _answer(self, source: int, new: int) -> Mapping[str, str] | None:
        try:
            socket.send_fds(self._channel, [b"c"], [source, new])
        except OSError:
            return None
        line = self._line()
        return None if line is None else json.loads(line)

    def _line(self) -> bytes | None:
        """The process's next line; None if it has ended."""
        line = b""
        while not line.endswith(b"\n") and len(line) <= _ANSWER_BYTES_MAX:
            try:
                piece = self._channel.recv(1 << 16)
            except ConnectionError:
                piece = b""
            if not piece:
                return None
            line += piece
        return line

    def _last_words(self) -> str:
        self._said.seek(0)
        return self._said.read(_ANSWER_BYTES_MAX).decode("utf-8", "replace")

    def _death(self, path: Path) -> Mapping[str, str]:
        """The answer for a copier that died."""
        assert self._process is not None
        status = self._process.wait()
        request = re.search(r"memory allocation of (\d+) bytes failed", self._last_words())
        self.close()
        if (request and int(request[1]) < MEMORY_BYTES) or status == -signal.SIGKILL:
            raise InputError(f"{shown(path)}: it takes more memory to read than there is")
        return {"damaged": f"its reader ended ({status})"}

    def close(self) -> None:
        """Ends the process, if this process started it."""
        if self._process is None:
            return
        self._channel.close()
        self._said.close()
        if self._owner == os.getpid():
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0  # of a forked process: not ours to wait for
        self._process = None


_copier = _Copier()
