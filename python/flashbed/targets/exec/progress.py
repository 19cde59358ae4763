"""How far a program on user-mode Linux is: one line on a terminal, after two seconds.

The kernel writes its clock and its count of page writes into a file that both map
(kernel/uml/programs/tree/arch/um/include/shared/flashbed_host.h). It erases the line before the
program prints. The line waits while the program's own output is in the middle of one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import PAGESIZE, mmap
from pathlib import Path
from struct import Struct
from time import monotonic

__all__ = ["EVERY_S", "ProgressLine", "line", "progress_line"]

EVERY_S = 0.5
_AFTER_S = 2.0
_FILE = "progress"
_LAYOUT = Struct("=QQQQII")
"""began_ns, now_ns, programs_before, programs, shown, mid_line."""
_SHOWN_AT = 32
_ERASE = "\r\x1b[K"


def line(passed_ns: int, until_s: float | None, programs: int) -> str:
    """What is shown: virtual time, of what and how much of it where the end is known."""
    of = ""
    if until_s is not None:
        percent = min(int(passed_ns / until_s / 1e7), 100)
        of = f" of {until_s:,.10g} s ({percent} %)"
    return f"{passed_ns // 10**9:,} s{of} of virtual time, {programs:,} page writes"


class ProgressLine:
    """The line of one run; `None` as the map shows nothing."""

    def __init__(self, shared: mmap | None, until_s: float | None) -> None:
        self._shared = shared
        self._until_s = until_s
        self._began_s = monotonic()

    def show(self) -> None:
        """Writes the line, if the program runs and this is not too early."""
        if self._shared is None or monotonic() - self._began_s < _AFTER_S:
            return
        began_ns, now_ns, before, programs, _, mid_line = _LAYOUT.unpack_from(self._shared)
        if not began_ns or mid_line:
            return
        text = line(max(now_ns - began_ns, 0), self._until_s, programs - before)
        self._write(_ERASE + text, shown=1)

    def erase(self) -> None:
        """Removes the line, before something else is printed."""
        if self._shared is not None and _LAYOUT.unpack_from(self._shared)[4]:
            self._write(_ERASE, shown=0)

    def _write(self, text: str, *, shown: int) -> None:
        assert self._shared is not None
        self._shared[_SHOWN_AT : _SHOWN_AT + 4] = shown.to_bytes(4, sys.byteorder)
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def progress_line(folder: Path, until_s: float | None) -> Iterator[ProgressLine]:
    """The line for a kernel that is started in this folder; nothing where there is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield ProgressLine(None, until_s)
        return
    file = folder / _FILE
    file.write_bytes(bytes(PAGESIZE))
    with file.open("r+b") as opened, mmap(opened.fileno(), PAGESIZE) as shared:
        shown = ProgressLine(shared, until_s)
        try:
            yield shown
        finally:
            shown.erase()
