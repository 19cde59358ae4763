"""What runs a command on a stack: the second thing that targets can do (`Target.run` is the first).

A module each, imported on first use: they are no part of the code that makes the numbers of
experiments, so a change of them makes no kept result out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Protocol

from flashbed.base.errors import InputError
from flashbed.base.extras import missing_extra
from flashbed.targets.exec.outcome import ExecOutcome
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.unavailable import Unavailable

__all__ = ["EXECUTORS", "Execute", "Say", "load_executor"]

Say = Callable[[str], None]

EXECUTORS = {
    "uml": "flashbed.targets.uml.uml_program",
    "emulator": "flashbed.targets.emulator.emulator_program",
}
_ON_A_BOARD = "flashbed.targets.ssh.ssh_program"


class Execute(Protocol):
    """Runs a program and returns what it did, with the request, which may name what was found.

    With `aside` the program's standard output goes to standard error. Raises `NotRunError` and
    `Unavailable`.
    """

    def __call__(
        self, request: ExecRequest, say: Say, *, aside: bool = False
    ) -> tuple[ExecRequest, ExecOutcome]:
        """See above."""
        ...


def load_executor(target: object) -> Execute:
    """That of a target's name, or of a board that the user allowed. Raises `InputError`."""
    if not isinstance(target, str):
        execute: Execute = partial(import_module(_ON_A_BOARD).execute, target)
        return execute
    if target not in EXECUTORS:
        raise InputError(f"--on {target}: {', '.join(EXECUTORS)} or ssh://USER@HOST")
    try:
        execute = import_module(EXECUTORS[target]).execute
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise Unavailable(str(missing)) from None
    return execute
