"""The command that runs a program of this machine on flash: exec."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.cli.lifetime import Repeat, rate_per_day
from flashbed.cli.progress import say
from flashbed.errors import InputError, Interrupted

if TYPE_CHECKING:
    from flashbed.exec.request import Request

__all__ = ["register"]

PATIENCE_S = 600.0
MEMORY_MIB = (64, 16_384)
UNTIL_MAX_S = 1e8
"""The guest's dates have seconds of 31 bits."""


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "exec",
        # Options end where the command begins: what follows is the program's.
        context_settings={"allow_interspersed_args": False},
        epilog="Examples: `flashbed exec -- sqlite3 x.db 'create table t(a); insert into t"
        " values(1)'` · `flashbed exec --set fs=jffs2,ubifs --put songs.tar -- tar xf songs.tar`",
    )(exec_)


def exec_(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="A program of this machine, its arguments."),
    ] = None,
    fs: Annotated[str, typer.Option("--fs", help="ubifs, jffs2 or yaffs2.")] = "ubifs",
    board: Annotated[
        str, typer.Option("--board", help="Whose chip, partition and memory.")
    ] = "emulated",
    kernel: Annotated[str, typer.Option("--kernel", help="6.1.")] = "6.1",
    put: Annotated[
        list[Path] | None,
        typer.Option(
            "--put", metavar="FILES", help="Copied onto the flash before; again for more."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME[=VALUE]", help="A variable that the program sees."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="fs=FS,…", help="Runs it on each of these file systems."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", metavar="MIB", help="Default: the board's.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FOLDER", help="An empty folder for what is left on the flash."
        ),
    ] = None,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="A shell on the flash; behind a command, to look around."),
    ] = False,
    until: Annotated[
        float | None,
        typer.Option(
            "--until", metavar="SECONDS", help="Of virtual time, then it is told to end: daemons."
        ),
    ] = None,
    software: Annotated[
        str,
        typer.Option(
            "--software", metavar="HOW", help="flat: syscall_ns a call; calls: by kind; none."
        ),
    ] = "flat",
    patience: Annotated[
        float | None,
        typer.Option(
            "--patience", metavar="SECONDS", help="The longest it may really run. Default: 600."
        ),
    ] = None,
    repeat: Repeat = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="json", help="For a program; the output is on standard error then."
        ),
    ] = None,
) -> None:
    """Runs a program on a real flash file system, in virtual time, and says what that cost.

    The program runs in a folder on the flash of a fresh user-mode Linux. It sees the files of this
    machine and can change none of them. docs/exec.md is the guide.
    """
    from flashbed.exec.account import as_json, text
    from flashbed.exec.launch import launch
    from flashbed.exec.outcome import NotRunError
    from flashbed.targets.base import Unavailable

    if output not in (None, "json"):
        raise InputError(f"--format {output}: only json")
    rounds = None if repeat is None else rate_per_day(repeat)
    requests = _requests(
        _Asked(words or [], board, kernel, put or [], env or [], memory, patience, keep, shell,
               until, software),
        _file_systems(fs, settings or []),
    )  # fmt: skip
    status = 0
    answers = []
    for request in requests:
        try:
            outcome = launch(
                request, lambda what: say(f"flashbed: {what}"), output_aside=output == "json"
            )
        except Unavailable as why:
            raise NotRunError(str(why)) from None
        except KeyboardInterrupt:
            raise Interrupted("interrupted; the program and its flash are gone") from None
        # What ended because it was told to has done what it was asked.
        if outcome.until is None or outcome.signal is None:
            status = status or outcome.exit_status
        if output == "json":
            answers.append(as_json(request, outcome, rounds))
        else:
            sys.stdout.flush()
            for line in text(request, outcome, rounds).splitlines():
                say(line)
    if output == "json":
        print(json.dumps({"exec": answers}, indent=1))
    # Not returned: 130 is the program's own here, and no interruption.
    sys.exit(status)


def _file_systems(fs: str, settings: Sequence[str]) -> list[str]:
    from flashbed.exec.request import FILE_SYSTEMS

    chosen = [fs]
    for setting in settings:
        name, equals, values = setting.partition("=")
        if name != "fs" or not equals:
            raise InputError(f"--set {setting}: only fs, as in fs=jffs2,ubifs")
        chosen = values.split(",")
    for name in chosen:
        if name not in FILE_SYSTEMS:
            raise InputError(f"fs {name}: {' or '.join(FILE_SYSTEMS)}")
    if len(set(chosen)) != len(chosen):
        raise InputError(f"fs {','.join(chosen)}: one of them twice")
    return chosen


@dataclass(frozen=True)
class _Asked:
    """Options of the command, as given."""

    words: Sequence[str]
    board: str
    kernel: str
    put: Sequence[Path]
    env: Sequence[str]
    memory: int | None
    patience: float | None
    keep: Path | None
    shell: bool
    until: float | None
    software: str


def _requests(asked: _Asked, systems: Sequence[str]) -> list[Request]:
    """Each program that is to be run, checked. Raises `InputError`."""
    from flashbed.exec.kept import kept_folder
    from flashbed.exec.request import Request, environment, find, puts_of
    from flashbed.exec.software import costs_of
    from flashbed.formats.profiles import load_board

    _check(asked)
    profile = load_board(asked.board)
    costs = costs_of(profile.software, asked.software)
    variables = environment(asked.env)
    puts = puts_of(asked.put, profile)
    own_shell = os.environ.get("SHELL") or "/bin/sh"
    shell = find(own_shell, variables["PATH"], ()) if asked.shell else None
    words = asked.words or [own_shell]
    program = find(words[0], variables["PATH"], puts)
    keeps = {fs: asked.keep and (asked.keep / fs if len(systems) > 1 else asked.keep)
             for fs in systems}  # fmt: skip
    for folder in keeps.values():
        if folder is not None:
            kept_folder(folder)
    patience = asked.patience or (None if asked.shell else PATIENCE_S)
    return [
        Request(
            profile, asked.kernel, fs, words, program, variables, puts, asked.memory, patience,
            costs, asked.until, keeps[fs], not asked.words, shell if asked.words else None,
        )
        for fs in systems
    ]  # fmt: skip


def _check(asked: _Asked) -> None:
    """Whether the numbers are possible. Raises `InputError`."""
    from flashbed.targets.uml.programs_kernel import SERIES

    if not asked.words and not asked.shell:
        raise InputError("a command to run, as in flashbed exec -- ls")
    if any("\0" in word for word in [*asked.words, *asked.env]):
        raise InputError("a NUL in the command")
    if asked.kernel not in SERIES:
        raise InputError(f"--kernel {asked.kernel}: programs run on Linux {' and '.join(SERIES)}")
    if asked.memory is not None and not MEMORY_MIB[0] <= asked.memory <= MEMORY_MIB[1]:
        raise InputError(f"--memory {asked.memory}: {MEMORY_MIB[0]} to {MEMORY_MIB[1]} MiB")
    if asked.patience is not None and not 0 < asked.patience < 1e9:
        raise InputError(f"--patience {asked.patience:g}: seconds above 0")
    if asked.until is not None and not 0 < asked.until < UNTIL_MAX_S:
        raise InputError(f"--until {asked.until:g}: seconds above 0, less than {UNTIL_MAX_S:g}")
