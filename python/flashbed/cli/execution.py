"""The command `exec`: runs a program of this machine on a flash file system."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.answers.lifetimes.given import rate_per_day
from flashbed.base.errors import Interrupted, RunError
from flashbed.cli.boards import Erase, all_allowed
from flashbed.cli.lifetime import Rate
from flashbed.cli.options import (
    Dump,
    Format,
    FsName,
    Image,
    KernelName,
    OnBoard,
    Put,
    StackSet,
    Volume,
    chosen,
)
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_remarks, say_unlike
from flashbed.plan.stacks import stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flashbed.targets.exec.compared_systems import Ran
    from flashbed.targets.exec.outcome import ExecOutcome, NotRunError
    from flashbed.targets.exec.request import ExecRequest
    from flashbed.targets.unavailable import Unavailable

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "exec",
        # Options end where COMMAND begins: the words after it belong to the program.
        context_settings={"allow_interspersed_args": False},
        epilog="Examples: `flashbed exec -- sqlite3 x.db 'create table t(a); insert into t"
        " values(1)'` · `flashbed exec --set fs=jffs2,ubifs --put songs.tar -- tar xf songs.tar`",
    )(exec_)


def exec_(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="The program and its arguments."),
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="TARGET",
            help="uml: this machine's programs; sim: the same, replayed; emulator, ssh://BOARD.",
        ),
    ] = "uml",
    *,
    erase: Erase = None,
    fs: FsName = None,
    board: OnBoard = None,
    kernel: KernelName = None,
    settings: StackSet = None,
    put: Put = None,
    image: Image = None,
    dump: Dump = None,
    volume: Volume = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME[=VALUE]", help="An environment variable to pass on."),
    ] = None,
    sysctls: Annotated[
        list[str] | None,
        typer.Option(
            "--sysctl",
            metavar="NAME=VALUE,…",
            help="Set in /proc/sys first, as vm.dirty_expire_centisecs=500; several: run each.",
        ),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", metavar="MIB", help="Memory. Default: the board's.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FOLDER", help="Copy what is on the flash into this empty folder."
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Record its calls, to replay them; on uml."),
    ] = None,
    contents: Annotated[
        bool, typer.Option("--contents", help="Keep the bytes written in that recording too.")
    ] = False,
    shell: Annotated[
        bool,
        typer.Option("--shell", help="Open a shell on the flash, after COMMAND if there is one."),
    ] = False,
    until: Annotated[
        float | None,
        typer.Option(
            "--until", metavar="SECONDS", help="Virtual seconds after which it gets SIGTERM."
        ),
    ] = None,
    software: Annotated[
        str | None,
        typer.Option(
            "--software",
            metavar="HOW",
            help="Cost of calls: flat (syscall_ns each), calls (by kind), none.",
        ),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package",
            metavar="NAME",
            help="A Debian armhf package to install, on the emulator.",
        ),
    ] = None,
    sysroot: Annotated[
        Path | None,
        typer.Option("--sysroot", metavar="FOLDER", help="A root file system for the emulator."),
    ] = None,
    gdb: Annotated[
        int | None,
        typer.Option("--gdb", metavar="PORT", help="Let the emulator wait for a debugger here."),
    ] = None,
    host_timeout: Annotated[
        float | None,
        typer.Option(
            "--host-timeout", metavar="SECONDS", help="Real seconds it may run. Default: 600."
        ),
    ] = None,
    spin: Annotated[
        float | None,
        typer.Option(
            "--spin",
            metavar="SECONDS",
            help="Real seconds that it may compute without a system call; 0: any. Default: 60.",
        ),
    ] = None,
    rate: Rate = None,
    output: Format = "text",
) -> None:
    """Runs a program on a real flash file system, in virtual time, and prints what that cost.

    The program runs in a folder on the flash of a fresh user-mode Linux. It can read the files of
    this machine and cannot change them. With --format json its output goes to standard error.
    docs/guide/my-program.md is the guide.
    """
    from flashbed.api.exec_options import ExecOptions, requests_of
    from flashbed.targets.exec.account import as_json
    from flashbed.targets.exec.compared_systems import compared
    from flashbed.targets.exec.executors import load_executor
    from flashbed.targets.exec.outcome import NotRunError
    from flashbed.targets.unavailable import Unavailable

    rounds = None if rate is None else rate_per_day(rate)
    options = ExecOptions(
        words=words or [],
        on=on,
        put=put or [],
        env=env or [],
        memory=memory,
        patience=host_timeout,
        keep=keep,
        shell=shell,
        until=until,
        software=software,
        package=package or [],
        sysroot=sysroot,
        gdb=gdb,
        record=record,
        contents=contents,
        spin=spin,
        image=image or [],
        dump=dump,
        volume=volume,
    )
    wanted = chosen(settings, fs=fs, board=board, kernel=kernel)
    ran: list[Ran] = []
    try:
        if on == "sim":
            from flashbed.cli.execution_on_sim import refuse, replayed

            refuse(sysctl=sysctls, rate=rate, shell=shell)
            ran = [replayed(options, wanted, output=output, note=_note)]
            sys.exit(_status(ran))
        found = stacks(wanted, sysctls=sysctls or [], raw=on == "emulator", disks=on == "uml")
        say_remarks(one.stack.board for one in found)
        requests = requests_of(options, found, _note)
        execute = load_executor(all_allowed([on], erase)[0])
        for request in requests:
            try:
                ran.append(execute(request, _note, aside=output == "json"))
            except (NotRunError, Unavailable) as why:
                ran.append((request, _of_one_system(why, requests)))
            if output != "json":
                _print_account(*ran[-1], rounds)
        say_unlike(request.kernel_release for request, _ in ran if request.kernel_release)
    except Unavailable as why:
        raise NotRunError(str(why)) from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the program and its flash are gone") from None
    if output == "json":
        print(json.dumps({"exec": [as_json(*each, rounds) for each in ran]}, indent=1))
    elif len(ran) > 1:
        for line in compared(ran, rounds):
            say(line)
    # Not returned: `main` takes a returned 130 for Ctrl-C; here it is the program's own status.
    sys.exit(_status(ran))


def _of_one_system(why: NotRunError | Unavailable, requests: Sequence[ExecRequest]) -> NotRunError:
    """Why one of several systems could not run it. Raises what concerns all of them."""
    from flashbed.targets.exec.outcome import NotRunError

    failed = why if isinstance(why, NotRunError) else NotRunError(str(why))
    if len(requests) == 1 or failed.of_command:
        raise failed from None
    return failed


def _print_account(
    request: ExecRequest, outcome: ExecOutcome | NotRunError, rounds: float | None
) -> None:
    from flashbed.targets.exec.account import text
    from flashbed.targets.exec.outcome import NotRunError

    if isinstance(outcome, NotRunError):
        return  # the table at the end says it
    sys.stdout.flush()
    for line in text(request, outcome, rounds).splitlines():
        say(line)


def _status(ran: Sequence[Ran]) -> int:
    """1 if a system could not run the program, else the first exit status that is not 0."""
    from flashbed.targets.exec.outcome import NotRunError

    status = 0
    for _, outcome in ran:
        if isinstance(outcome, NotRunError):
            return RunError.exit_status
        # A program that `--until` ended was stopped as requested: that is no failure.
        if outcome.until is None or outcome.signal is None:
            status = status or outcome.exit_status
    return status


def _note(what: str) -> None:
    say(f"flashbed: {what}")
