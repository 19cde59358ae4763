"""What the user sees while something runs: one bar on a terminal, plain lines elsewhere.

Everything goes to standard error; standard output is for results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bar", "say"]

PLAIN_EVERY_S = 10.0

Progress = Callable[[str, int, int], None]


def say(line: str) -> None:
    """One line to standard error."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """Yields `progress(what, done, total)`: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _plain(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, what="")

        def show(what: str, done: int, total: int) -> None:
            progress.update(task, what=what, completed=done, total=total)

        yield show


def _plain(title: str) -> Progress:
    last_s = time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= PLAIN_EVERY_S:
            last_s = now_s
            say(f"{title}: {done} of {total} cases, {what}")

    return show
