"""Starts the program `flashbed` and imports everything it needs.

The imports take half a second. Ctrl-C during them ends it silently: nothing has begun.
"""

from __future__ import annotations

import gc
import os
import signal

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Imports the command line, then runs it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # otherwise the parent process wants it ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from flashbed.cli import main as run

    gc.freeze()  # imported modules never become garbage
    signal.signal(signal.SIGINT, usual)
    run()
