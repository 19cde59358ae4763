"""Starts the program `flashbed` and imports everything it needs.

The imports take half a second. Ctrl-C during them ends it silently: nothing has begun.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

__all__ = ["main", "open_streams"]

INTERRUPTED = 130


def main() -> None:
    """Imports the command line, then runs it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # otherwise the parent process wants it ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from flashbed.cli import main as run

    open_streams()
    gc.freeze()  # imported modules never become garbage
    signal.signal(signal.SIGINT, usual)
    run()


def open_streams() -> None:
    """Opens /dev/null in place of standard streams that are closed, for us and our children."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
