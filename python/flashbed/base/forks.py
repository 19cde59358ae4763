"""What a forked process must leave to the one that it was forked from.

A fork has one thread. Polars and the simulator wait for those that it lacks, for ever. Folders and
connections of the first process are not the fork's to remove, though it has the objects too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from flashbed.base.errors import RunError

__all__ = ["by_owner", "need_threads", "remover"]

_users: list[int] = []
"""The process whose threads are in use."""


def need_threads(what: str) -> None:
    """Raises `RunError` in a fork of a process that has used its threads already."""
    if not _users:
        _users.append(os.getpid())
    if _users[0] != os.getpid():
        raise RunError(
            f"{what}: not in a process forked from one that has used flashbed; start a new one, as"
            " multiprocessing.get_context('spawn') does"
        )


def by_owner(done: Callable[[], None]) -> Callable[[], None]:
    """A call that does nothing in processes forked later."""
    owner = os.getpid()

    def only_here() -> None:
        if os.getpid() == owner:
            done()

    return only_here


def remover(folder: str | Path) -> Callable[[], None]:
    """A call that removes a folder, in this process only."""
    return by_owner(lambda: shutil.rmtree(folder, ignore_errors=True))
