"""The program `flashbed`, until everything it needs is imported.

That takes half a second, in which Ctrl-C ends it without a word: nothing has begun.
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
    if usual is signal.default_int_handler:  # else whoever started it wants it ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from flashbed.cli import main as run

    gc.freeze()  # nothing that was imported is ever garbage
    signal.signal(signal.SIGINT, usual)
    run()
