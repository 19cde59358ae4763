"""The program after `--`: a command records it first, and then measures the recording."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown
from flashbed.cli.progress import say
from flashbed.cli.recorded import free_recording
from flashbed.cli.run import one_program

__all__ = ["AfterDashes", "What", "chosen_program"]

What = Annotated[
    str | None,
    typer.Argument(
        metavar="WHAT",
        help="An experiment, a recording, operations, or a script of SQL (.sql)."
        " -- COMMAND records a program first.",
    ),
]
_KEY = "flashbed.after_dashes"


class AfterDashes(TyperCommand):
    """A command that keeps the words after `--` for `chosen_program`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words before `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_KEY] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def chosen_program(context: typer.Context, command: str, what: str | None) -> str:
    """What to measure: WHAT, or the recording of the program after `--`, which runs now.

    Raises `InputError` for both and for none of them, `RunError` if the program failed.
    """
    words = context.meta.get(_KEY)
    if words is None:
        if what is None:
            raise InputError(
                f"{command}: what? An experiment, a recording, operations, or -- COMMAND"
            )
        one_program(
            command, [what, *context.args], f"`flashbed {command} -- {{}}` records it first"
        )
        return what
    if what is not None:
        raise InputError(f"{command}: {what} or -- {shlex.join(words)}: one of them")
    return _recorded(words)


def _recorded(words: Sequence[str]) -> str:
    from flashbed.api.recorded_command import record

    if not words:
        raise InputError("no command behind --; example: flashbed compare -- sqlite3 x.db .dump")
    if any("\0" in word for word in words):
        raise InputError("the command holds a NUL byte")
    path = free_recording(Path(words[0]).name)
    done = record(words, path)
    if done.exit_status:
        raise RunError(f"{words[0]}: exited with {done.exit_status}; {shown(path)} is not measured")
    say(f"flashbed: {shown(path)}: the recording, to be measured again without running the program")
    return str(path)
