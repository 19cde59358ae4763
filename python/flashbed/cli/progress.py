"""Progress of a running command: one bar on a terminal, plain lines elsewhere.

All of it goes to standard error; standard output is for results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flashbed.base.files import is_stream
from flashbed.stack.names import escaped, message

__all__ = ["bar", "say", "tell_written", "working"]

PLAIN_EVERY_S = 10.0

Progress = Callable[[str, int, int | None], None]
"""Takes what is done now, how many are done, and how many there are if that is known."""


def say(line: str) -> None:
    """Prints one line to standard error, with control characters escaped."""
    print(message(line), file=sys.stderr, flush=True)


def tell_written(path: Path, line: str) -> None:
    """Prints a line about a written file; to standard error if it may have been standard output."""
    if is_stream(path):
        say(line)
    else:
        print(escaped(line))


@contextmanager
def bar(title: str, unit: str = "cases") -> Iterator[Progress]:
    """Yields `progress(what, done, total)`: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _plain(title, unit)
        return
    from flashbed.api.shown_progress import terminal_bar

    with terminal_bar(escaped(title)) as show:
        yield lambda what, done, total: show(escaped(what), done, total)


@contextmanager
def working(title: str) -> Iterator[None]:
    """Shows on a terminal for how long something of unknown length has been running."""
    if not sys.stderr.isatty():
        yield
        return
    from flashbed.api.shown_progress import terminal_bar

    with terminal_bar(escaped(title), counted=False):
        yield


def _plain(title: str, unit: str) -> Progress:
    last_s = time.monotonic()

    def show(what: str, done: int, total: int | None) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= PLAIN_EVERY_S:
            last_s = now_s
            of = "" if total is None else f" of {total}"
            say(f"{title}: {done}{of} {unit}, {what}")

    return show
