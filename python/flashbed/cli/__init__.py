"""The command line: a module for each group of commands, which call the rest of the package.

An error is one line on standard error. The exit status is 2 for wrong input, 1 for a run that
failed, 130 after Ctrl-C. `FLASHBED_DEBUG=1` prints where an error was raised.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from flashbed import __version__
from flashbed.base.errors import OUT_OF_MEMORY, FlashbedError
from flashbed.base.extras import missing_extra
from flashbed.cli import (
    advise,
    board_files,
    boot,
    calibrate,
    check,
    chips,
    compare,
    cost,
    doctor,
    execution,
    fuzz,
    images,
    kernels,
    latency,
    lifetime,
    listing,
    merge,
    playground,
    policies,
    power,
    powercut,
    prepare,
    recorded,
    recordings,
    run,
    show,
    space,
    trace,
    validate,
    verdicts,
)
from flashbed.cli.progress import say
from flashbed.cli.renamed import Commands

__all__ = ["app", "main"]

app = typer.Typer(
    name="flashbed",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="What will JFFS2, YAFFS2 or UBIFS on raw flash do to your program?",
    epilog="Start with `flashbed exec -- sh -c 'echo hello > file; sync file'`,"
    " then put your program in place of `sh`.",
)
listing.register(app)
run.register(app)
compare.register(app)
advise.register(app)
check.register(app)
latency.register(app)
boot.register(app)
space.register(app)
merge.register(app)
execution.register(app)
recorded.register(app)
trace.register(app)
recordings.register(app)
playground.register(app)
powercut.register(app)
lifetime.register(app)
cost.register(app)
power.register(app)
calibrate.register(app)
validate.register(app)
fuzz.register(app)
show.register(app)
verdicts.register(app)
doctor.register(app)
chips.register(app)
board_files.register(app)
kernels.register(app)
policies.register(app)
images.register(app)
prepare.register(app)

GROUPS = {
    "Run something": ("exec", "run", "record", "import", "trace"),
    "Ask a question": (
        "compare",
        "advise",
        "lifetime",
        "powercut",
        "latency",
        "boot",
        "space",
        "check",
        "cost",
        "power",
    ),
    "Look": ("list", "table", "report", "playground"),
    "Your parts": ("chip", "board", "kernel", "policy", "image", "ops"),
    "Setup and accuracy": ("doctor", "prepare"),
    "For authors of flashbed and of studies": (
        "reproduce",
        "verdicts",
        "validate",
        "fuzz",
        "merge",
        "calibrate",
    ),
}
"""The help's groups of commands, in the order in which it prints them."""


def _sort_into_groups() -> None:
    """Moves each visible command into its group of the help, and sorts them."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    for command in app.registered_commands:
        if not command.hidden:
            command.rich_help_panel = group_of[str(command.name)]
    for group in app.registered_groups:
        if not group.hidden:
            group.rich_help_panel = group_of[str(group.name)]
    Commands.order = [name for names in GROUPS.values() for name in names]


_sort_into_groups()


def _version(wanted: bool) -> None:
    if wanted:
        print(f"flashbed {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of names that no file can have. Only a name that the user gave can be one."""
_PATH_SHOWN = 200


def main() -> None:
    """The program `flashbed`: runs a command and turns whatever it raises into one line."""
    sys.exit(_status())


def _status() -> int:
    try:
        status = app(standalone_mode=False)
    except FlashbedError as error:
        for line in (error, *error.also):
            say(f"flashbed: {line}")
        return error.exit_status
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return 1
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            return _unforeseen(error)
        say(f"flashbed: {missing}")
        return missing.exit_status
    except Exception as error:
        return _unforeseen(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's panics are not `Exception`s
            raise
        return _unforeseen(error)
    if status == 130:
        say("flashbed: interrupted; finished cases are kept, the same command continues after them")
    return status if isinstance(status, int) else 0


def _in_a_folder() -> bool:
    """Whether the working folder still exists."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return False
    return True


def _unforeseen(error: BaseException) -> int:
    """Prints a wrong command line (raised by typer's parser), a full disk, or a bug."""
    message = getattr(error, "format_message", None)
    if message is not None:
        text = " ".join(str(message()).split())
        if text:
            say(f"flashbed: {text} (see flashbed --help)")
        else:
            getattr(error, "show", lambda: None)()
        return 2
    if os.environ.get("FLASHBED_DEBUG"):
        raise error
    if isinstance(error, UnicodeEncodeError):
        say(f"flashbed: {error.object[:_PATH_SHOWN]}: not UTF-8")
        return 2
    if isinstance(error, OSError):
        if error.errno == errno.ENOENT and not _in_a_folder():
            say("flashbed: the working folder was removed; run it in another one")
            return 2
        where = f"{str(error.filename)[:_PATH_SHOWN]}: " if error.filename else ""
        say(f"flashbed: {where}{error.strerror or error}")
        if error.errno in _NO_PATH:
            return 2
    elif isinstance(error, MemoryError):
        say(f"flashbed: {OUT_OF_MEMORY}")
    else:
        first = (str(error).splitlines() or [""])[0]
        say(
            f"flashbed: internal error: {type(error).__name__}: {first} (FLASHBED_DEBUG=1 shows it)"
        )
    return 1
