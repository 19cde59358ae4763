"""The two ways in which a command can fail, and their exit statuses.

A mistake of the user is an `InputError`; a failure of the run is a `RunError`. Both say what and
where in one line, and the command line prints only that line. Any other exception is a bug.
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

OUT_OF_MEMORY = "out of memory; cases that have ended are kept, and a smaller --jobs needs less"


class FlashbedError(Exception):
    """An error that the user sees as one line."""

    exit_status = 1
    also: tuple[str, ...] = ()
    """Further errors in the same file, a line each, printed after the first."""


class InputError(FlashbedError):
    """Wrong input: a file, key, value or name."""

    exit_status = 2


class RunError(FlashbedError):
    """The input was right, and the run failed."""

    exit_status = 1


class Interrupted(FlashbedError):
    """The user interrupted it; the message says how to continue."""

    exit_status = 130


class MissingExtra(InputError):
    """A package that is not installed: its `module`, and the `extra` that contains it."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed: pip install 'flashbed[{extra}]'")
        self.module = module
        self.extra = extra


class TargetUnavailable(RunError):
    """Targets that cannot run here: `targets` maps each name to the reason."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in targets.items()))
        self.targets = dict(targets)


class CasesFailed(RunError):
    """Cases that failed or could not be measured: `failures` maps each name to the reason."""

    def __init__(self, message: str, failures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failures = dict(failures)
