"""The two ways in which a command can fail, and what the shell is told of each.

Everything a user can do wrong is an `InputError`, everything that went wrong while running a
`RunError`. Both say what and where in one line; the command line prints that line and nothing else.
Anything else that is raised is a bug of ours.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "CasesFailed",
    "FlashbedError",
    "InputError",
    "Interrupted",
    "MissingExtra",
    "RunError",
    "TargetUnavailable",
]


class FlashbedError(Exception):
    """An error the user is told of in one line."""

    exit_status = 1
    also: tuple[str, ...] = ()
    """What else is wrong, of the same file: a line each, told with the first."""


class InputError(FlashbedError):
    """What was asked for cannot be meant: a file, key, value or name is wrong."""

    exit_status = 2


class RunError(FlashbedError):
    """What was asked for was right, and did not work."""

    exit_status = 1


class Interrupted(FlashbedError):
    """The user has ended it; the message says how to go on."""

    exit_status = 130


class MissingExtra(InputError):
    """A package that is not installed: its `module`, and the `extra` that has it."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed: pip install 'flashbed[{extra}]'")
        self.module = module
        self.extra = extra


class TargetUnavailable(RunError):
    """Targets that cannot run here: `targets` has for each its name and the reason."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in targets.items()))
        self.targets = dict(targets)


class CasesFailed(RunError):
    """Cases that failed, or could not be measured: `failures` has for each its name and why."""

    def __init__(self, message: str, failures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failures = dict(failures)
