"""`fb.execute`: runs an unchanged program on a real flash file system."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashbed.answers.lifetimes.estimate import Estimate
from flashbed.answers.lifetimes.given import rate_per_day
from flashbed.api.exec_options import ExecOptions, requests_of
from flashbed.api.renamed import renamed
from flashbed.base.errors import InputError
from flashbed.base.forks import need_threads
from flashbed.plan.stacks import stacks
from flashbed.targets.exec.account import as_json, text
from flashbed.targets.exec.executors import EXECUTORS, load_executor
from flashbed.targets.exec.lasting import lasting_of
from flashbed.targets.exec.outcome import ExecOutcome, NotRunError
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.unavailable import Unavailable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Execution", "execute"]

_OF_SHELLS = "|&;<>()$`*?[]#~!{}\n"


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What a program did: `calls` and `files` are frames, `text` is what `exec` prints.

    `flash_` counts to the program's end, `flush_` what it left in cache, `bytes_programmed` both;
    the words of docs/reference/tables.md.
    """

    exit_status: int
    signal: int | None
    time_ns: int
    flash_reads: int
    flash_programs: int
    flash_erases: int
    flash_time_ns: int
    flush_reads: int
    flush_programs: int
    flush_erases: int
    failed: int | None
    bytes_written: int | None
    bytes_programmed: int
    calls: pl.DataFrame
    files: pl.DataFrame
    lifetime: Estimate | None
    """Years until a block reaches its endurance, `low` to `high`; None where they are unknown."""
    text: str
    json: dict[str, Any]
    """Everything that `flashbed exec --format json` prints."""

    @property
    def programs(self) -> int:
        """Page writes, with those left in cache: those that `bytes_programmed` counts."""
        return self.flash_programs + self.flush_programs

    def __str__(self) -> str:
        return self.text


def _assigned(values: Mapping[str, object] | None) -> list[str]:
    """As the command's options have them: `NAME=VALUE`."""
    return [f"{name}={value}" for name, value in (values or {}).items()]


@renamed(patience_s="host_timeout_s", repeat="rate")
def execute(
    command: str | Sequence[str],
    on: str = "uml",
    *,
    fs: str | None = None,
    board: str | None = None,
    kernel: str | None = None,
    put: Sequence[str | Path] = (),
    env: Mapping[str, str] | None = None,
    memory_mib: int | None = None,
    keep: str | Path | None = None,
    until_s: float | None = None,
    host_timeout_s: float | None = None,
    spin_s: float | None = None,
    package: Sequence[str] = (),
    sysroot: str | Path | None = None,
    rate: str | None = None,
    record: str | Path | None = None,
    contents: bool = False,
    set: Mapping[str, object] | None = None,  # noqa: A002
    sysctl: Mapping[str, object] | None = None,
) -> Execution:
    """Runs a program in a folder on the flash of a fresh system (docs/guide/my-program.md).

    Args:
        command: The program and its arguments; a string is split into words as a shell would.
        on: `uml` for programs of this machine, `emulator` for those of Debian's armhf.
        fs: Short for a value of `set`: `ubifs`, the default, `jffs2` or `yaffs2`.
        board: The same of `board`: the profile of chip, partition and memory.
        kernel: The same of `kernel`: its series.
        put: Files and folders to copy onto the flash first.
        env: Environment variables of the program.
        memory_mib: Memory of the machine, in place of the board's.
        keep: An empty folder for what is left on the flash.
        until_s: Virtual seconds after which the program gets SIGTERM.
        host_timeout_s: Real seconds that it may run.
        spin_s: Real seconds that it may compute without a system call, on `uml`; 0 for any.
        package: Debian packages with the emulated board's programs.
        sysroot: A root file system with its programs, in place of packages.
        rate: How often the program runs, for its lifetime: `10/h`.
        record: A new file for the recording of its calls, on `uml`.
        contents: Whether that recording keeps the bytes written, not only their sizes.
        set: Axes of the system and their values: `{"compressor": "zlib"}`.
        sysctl: Settings of the kernel: `{"vm.dirty_expire_centisecs": 500}`.

    Raises:
        errors.InputError: an argument is wrong.
        errors.FlashbedError: the program could not be run; `exit_status` says why, as env(1) does.
    """
    need_threads("fb.execute")
    if on not in EXECUTORS:
        raise InputError(f"on {on}: must be uml or emulator; `flashbed exec` runs on boards too")
    rounds = None if rate is None else rate_per_day(rate)
    short = {"fs": fs, "board": board, "kernel": kernel}.items()
    words = _assigned({axis: value for axis, value in short if value is not None})
    found = stacks([*words, *_assigned(set)], sysctls=_assigned(sysctl), disks=on == "uml")
    if len(found) > 1:
        raise InputError("set and sysctl: one value each; call fb.execute for each of several")
    options = ExecOptions(
        words=_words(command), on=on, put=[Path(each) for each in put], env=_assigned(env),
        memory=memory_mib, patience=host_timeout_s, keep=Path(keep) if keep else None,
        until=until_s, package=list(package), sysroot=Path(sysroot) if sysroot else None,
        record=Path(record) if record else None, contents=contents, spin=spin_s,
    )  # fmt: skip
    try:
        (request,) = requests_of(options, found, _silent)
        request, outcome = load_executor(on)(request, _silent)
    except Unavailable as why:
        raise NotRunError(str(why)) from None
    return _execution(request, outcome, rounds)


def _words(command: str | Sequence[str]) -> list[str]:
    """A command's words. Raises `InputError` for a string that only a shell can read."""
    if not isinstance(command, str):
        return list(command)
    character = _for_a_shell(command)
    if character is not None:
        raise InputError(
            f'command {command!r}: {character} is for a shell; write ["sh", "-c", {command!r}]'
        )
    try:
        return shlex.split(command)
    except ValueError as why:
        raise InputError(f"command {command!r}: {why}") from None


def _for_a_shell(command: str) -> str | None:
    """The first character that a shell would not take as it is: a pipe, a variable, a pattern."""
    quote, escaped = "", False
    for character in command:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif character in ("'", '"') and quote in ("", character):
            quote = "" if quote else character
        elif (not quote and character in _OF_SHELLS) or (quote == '"' and character in "$`"):
            return character
    return None


def _silent(_what: str) -> None:
    """Prints nothing."""


def _execution(request: ExecRequest, outcome: ExecOutcome, rounds: float | None) -> Execution:
    import polars as pl

    return Execution(
        exit_status=outcome.exit_status,
        signal=outcome.signal,
        time_ns=outcome.time_ns,
        flash_reads=outcome.ran.reads,
        flash_programs=outcome.ran.programs,
        flash_erases=outcome.ran.erases,
        flash_time_ns=outcome.ran.busy_ns,
        flush_reads=outcome.flushed.reads,
        flush_programs=outcome.flushed.programs,
        flush_erases=outcome.flushed.erases,
        failed=sum(failed.calls for failed in outcome.failed) if request.where == "uml" else None,
        bytes_written=outcome.bytes_written if request.where == "uml" else None,
        bytes_programmed=outcome.bytes_programmed,
        calls=pl.DataFrame([vars(call) for call in outcome.calls]),
        files=pl.DataFrame([vars(file) for file in outcome.files]),
        lifetime=lasting_of(request, outcome, rounds).found,
        text=text(request, outcome, rounds),
        json=as_json(request, outcome, rounds),
    )
