"""A process that runs tasks for the process that started it (processes.py).

It receives tasks and sends answers through a connection whose number is its argument. At SIGINT it
sends the target's finished results and ends. It also ends when the other process has ended.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any, Protocol

from flashbed.base.errors import OUT_OF_MEMORY, RunError
from flashbed.targets import load_target
from flashbed.targets.base import Target
from flashbed.targets.unavailable import Unavailable

__all__ = ["ENDED", "PART", "RAISED", "SAID", "WorkerTask", "main"]

SAID, PART, ENDED, RAISED = "said", "part", "ended", "raised"
"""Kinds of answers: progress, a result of a task, the end of a task, an exception."""
SAY_EVERY_S = 0.2


class _ProgressSender:
    """Sends progress, at most now and then."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self._last_s = 0.0

    def __call__(self, what: str, done: int) -> None:
        now_s = monotonic()
        if now_s - self._last_s >= SAY_EVERY_S:
            self._last_s = now_s
            self._parent.send((SAID, (what, done)))


class WorkerTask(Protocol):
    """A unit of work for a process, which can be pickled."""

    @property
    def number(self) -> int:
        """Its number among all tasks."""
        ...

    @property
    def cases(self) -> int:
        """The number of its cases."""
        ...

    def run(
        self,
        target_of: Callable[[str], Target],
        processor: int,
        progress: Callable[[str, int], None],
    ) -> Iterator[Any]:
        """Yields its results, which can be pickled."""
        ...


def main(number: int, processor: int) -> None:
    """Runs tasks until there are no more."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Programs and rows form no cycles; looking for them takes a fifth of the time.
    gc.set_threshold(100_000, 50, 1000)
    target_of = cache(load_target)
    with Connection(number) as parent:
        said = _ProgressSender(parent)
        try:
            while True:
                task: WorkerTask = parent.recv()
                for answer in task.run(target_of, processor, said):
                    parent.send((PART, answer))
                parent.send((ENDED, None))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return
        except BaseException as why:
            parent.send((RAISED, _sendable(why)))


def _sendable(why: BaseException) -> Any:
    """The exception as the other process should raise it."""
    if isinstance(why, (KeyboardInterrupt, Unavailable, OSError)) or hasattr(why, "exit_status"):
        return why
    if isinstance(why, MemoryError):
        return RunError(OUT_OF_MEMORY)
    return RunError(f"internal error in a process of --jobs: {type(why).__name__}: {why}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
