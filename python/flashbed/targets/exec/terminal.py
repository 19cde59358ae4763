"""Connects the user's terminal with a program in the guest, by a pair of pseudo-terminals.

The guest's kernel has the inner one and does all the work of a terminal: it edits lines and turns
Ctrl-C and Ctrl-Z into signals. Both terminals here are therefore raw and pass bytes unchanged. The
window's size is passed on too. Ctrl-] ends the session, whatever the guest does.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import termios
import tty
from contextlib import suppress
from types import FrameType, TracebackType

from flashbed.base.errors import InputError

__all__ = ["Terminal"]

END = b"\x1d"
"""Ctrl-]."""
_BYTES = 65_536
_OUT_S = 0.2


class Terminal:
    """The user's terminal; it is in raw mode within `with`."""

    def __init__(self) -> None:
        if not (os.isatty(0) and os.isatty(1)):
            raise InputError("--shell: standard input and output must be a terminal")
        self._outer, self.inner = os.openpty()
        tty.setraw(self.inner)
        self._saved = termios.tcgetattr(0)
        self._size()

    def __enter__(self) -> Terminal:
        sys.stdout.flush()
        self._before = signal.signal(signal.SIGWINCH, self._resized)
        tty.setraw(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._drain()
        termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
        signal.signal(signal.SIGWINCH, self._before)
        os.close(self._outer)
        os.close(self.inner)

    def relay(self, seconds: float) -> None:
        """Passes bytes on for this long. Raises `KeyboardInterrupt` at Ctrl-]."""
        ready, _, _ = select.select([0, self._outer], [], [], seconds)
        if self._outer in ready:
            self._show()
        if 0 in ready:
            keys = os.read(0, _BYTES)
            if not keys or END in keys:
                raise KeyboardInterrupt
            os.write(self._outer, keys)

    def _show(self) -> None:
        data = os.read(self._outer, _BYTES)
        while data:
            data = data[os.write(1, data) :]

    def _drain(self) -> None:
        """Shows what the guest wrote before it ended."""
        with suppress(OSError):
            while select.select([self._outer], [], [], _OUT_S)[0]:
                self._show()

    def _resized(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._size()

    def _size(self) -> None:
        with suppress(OSError):
            size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._outer, termios.TIOCSWINSZ, size)
