"""Shows progress: a bar on a terminal, a line in a notebook, elsewhere nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Shown", "terminal_bar"]

Update = Callable[[str, int, int | None], None]
"""Takes what is done now, how many are done, and how many there are if that is known."""


@contextmanager
def terminal_bar(title: str, *, counted: bool = True) -> Iterator[Update]:
    """Shows a bar on standard error, which disappears at the end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        *([MofNCompleteColumn()] if counted else ()),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, what="")

        def show(what: str, done: int, total: int | None) -> None:
            progress.update(task, what=what, completed=done, total=total)

        yield show


class Shown:
    """The `Watch` of calls from Python: no messages, since exceptions say what went wrong."""

    def say(self, line: str) -> None:
        """Does nothing: the result or an exception says it."""

    @contextmanager
    def running(self, title: str) -> Iterator[Update]:
        """See `Watch.running`."""
        handle = _notebook_line(title)
        if handle is not None:
            yield handle
        elif sys.stderr is not None and sys.stderr.isatty():
            with terminal_bar(title) as show:
                yield show
        else:
            yield lambda _what, _done, _total: None


def _notebook_line(title: str) -> Update | None:
    """A line in a notebook's cell that is updated; None outside of notebooks."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    handle = ipython.display.display({"text/plain": title}, raw=True, display_id=True)

    def show(what: str, done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total}"
        handle.update({"text/plain": f"{title}: {done}{of}, {what}"}, raw=True)

    return show
