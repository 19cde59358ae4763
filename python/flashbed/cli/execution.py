"""The command that runs a program of this machine on flash: exec."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from flashbed.cli.boards import Erase, all_allowed
from flashbed.cli.lifetime import Repeat
from flashbed.cli.progress import say
from flashbed.errors import InputError, Interrupted
from flashbed.lifetimes.given import rate_per_day

__all__ = ["register"]


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
    on: Annotated[
        str,
        typer.Option(
            "--on", metavar="TARGET", help="uml: programs of this machine; emulator, ssh://BOARD."
        ),
    ] = "uml",
    erase: Erase = None,
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
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="A recording of it, to be replayed; on uml."),
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
        str | None,
        typer.Option(
            "--software", metavar="HOW", help="flat: syscall_ns a call; calls: by kind; none."
        ),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package",
            metavar="NAME",
            help="Of Debian for armhf, on the emulator; again for more.",
        ),
    ] = None,
    sysroot: Annotated[
        Path | None,
        typer.Option("--sysroot", metavar="FOLDER", help="The emulator's programs instead."),
    ] = None,
    gdb: Annotated[
        int | None,
        typer.Option("--gdb", metavar="PORT", help="The emulator waits for a debugger there."),
    ] = None,
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
    from flashbed.api.executing import launched
    from flashbed.exec.account import as_json, text
    from flashbed.exec.exec_options import ExecOptions, requests_of
    from flashbed.exec.outcome import NotRunError
    from flashbed.targets.base import Unavailable

    if output not in (None, "json"):
        raise InputError(f"--format {output}: only json")
    rounds = None if repeat is None else rate_per_day(repeat)
    systems = _file_systems(fs, settings or [])
    options = ExecOptions(
        words or [], on, board, kernel, put or [], env or [], memory, patience, keep, shell, until,
        software, package or [], sysroot, gdb, record,
    )  # fmt: skip
    status = 0
    answers = []
    try:
        requests, tree = requests_of(options, systems, _note)
        target = all_allowed([on], erase)[0]
        for given in requests:
            request, outcome = launched(given, target, tree, gdb, _note, aside=output == "json")
            # What ended because it was told to has done what it was asked.
            if outcome.until is None or outcome.signal is None:
                status = status or outcome.exit_status
            if output == "json":
                answers.append(as_json(request, outcome, rounds))
            else:
                sys.stdout.flush()
                for line in text(request, outcome, rounds).splitlines():
                    say(line)
    except Unavailable as why:
        raise NotRunError(str(why)) from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the program and its flash are gone") from None
    if output == "json":
        print(json.dumps({"exec": answers}, indent=1))
    # Not returned: 130 is the program's own here, and no interruption.
    sys.exit(status)


def _note(what: str) -> None:
    say(f"flashbed: {what}")


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
