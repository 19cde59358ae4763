"""Starts the program, `flashbed` or `python -m flashbed`, and imports everything it needs.

The imports take half a second. Ctrl-C during them ends it silently: nothing has begun.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from importlib.util import find_spec

__all__ = ["main", "open_streams"]

INTERRUPTED = 130
WRONG = 2
LEAST = (("v", resource.RLIMIT_AS, 1 << 10, 1536 << 10), ("n", resource.RLIMIT_NOFILE, 1, 32))
"""Limits as the shell has them, their units, and what loading tables needs."""


def main() -> None:
    """Imports the command line, then runs it."""
    _speak_utf8()
    _check_limits()
    _check_compiled()
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # otherwise the parent process wants it ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from flashbed.cli import main as run

    open_streams()
    gc.freeze()  # imported modules never become garbage
    signal.signal(signal.SIGINT, usual)
    run()


def _speak_utf8() -> None:
    """Begins again in UTF-8 where the locale has another encoding, in which few names are right."""
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _check_limits() -> None:
    """Ends with one line where Polars and its allocator would panic, or wait for ever."""
    for option, limit, unit, least in LEAST:
        most = resource.getrlimit(limit)[0]
        if 0 <= most < least * unit:
            line = f"flashbed: `ulimit -{option}` is {most // unit}: raise it to {least} at least"
            sys.exit(_said(line))


def _check_compiled() -> None:
    """Ends with one line in a checkout that was not built."""
    if find_spec("flashbed._sim") is None:
        sys.exit(_said("flashbed: not compiled; `make build` compiles it (needs Rust)"))


def _said(line: str) -> int:
    if sys.stderr is not None:
        print(line, file=sys.stderr)
    return WRONG


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


if __name__ == "__main__":
    main()
