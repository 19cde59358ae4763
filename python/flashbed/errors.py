"""The two ways in which a command can fail, and what the shell is told of each.

Everything a user can do wrong is an `InputError`, everything that went wrong while running a
`RunError`. Both say what and where in one line; the command line prints that line and nothing else.
Anything else that is raised is a bug of ours.
"""

from __future__ import annotations

__all__ = ["FlashbedError", "InputError", "Interrupted", "RunError"]


class FlashbedError(Exception):
    """An error the user is told of in one line."""

    exit_status = 1


class InputError(FlashbedError):
    """What was asked for cannot be meant: a file, key, value or name is wrong."""

    exit_status = 2


class RunError(FlashbedError):
    """What was asked for was right, and did not work."""

    exit_status = 1


class Interrupted(FlashbedError):
    """The user has ended it; the message says how to go on."""

    exit_status = 130
