"""The command `record`: records the system calls of a program."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown
from flashbed.cli.options import OUT
from flashbed.cli.progress import say

if TYPE_CHECKING:
    pass

__all__ = ["free_recording", "register"]

RECORDINGS = Path("results") / "record"
SUFFIX = ".rec"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "record",
        # Options end where COMMAND begins: the words after it belong to the program.
        context_settings={"allow_interspersed_args": False},
        epilog="Examples: `flashbed record -- sqlite3 x.db 'create table t(a)'` · "
        "`flashbed record -o ../unpack.rec -- tar xf ../songs.tar` · "
        "`flashbed record --on ssh://root@board/data -- /usr/bin/logger-of-mine`",
    )(record)


def record(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="A program and its arguments."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(*OUT, metavar="FILE", help="Default: results/record/NAME.rec."),
    ] = None,
    *,
    below: Annotated[
        list[str] | None,
        typer.Option("--below", metavar="DIR", help="Also follow files in DIR."),
    ] = None,
    contents: Annotated[
        bool, typer.Option("--contents", help="Keep the bytes written, not only their sizes.")
    ] = False,
    on: Annotated[
        str, typer.Option("--on", metavar="TARGET", help="host, or ssh://USER@HOST[/DIRECTORY].")
    ] = "host",
) -> None:
    """Records what a program does to the files below its working folder.

    The program runs unchanged, without root. Instead of the bytes written, the recording keeps
    how small the compressors make them, unless you pass --contents. docs/guide/other-tools.md is
    the guide.
    """
    from flashbed.api.recorded_command import place_of
    from flashbed.targets.recorder import session
    from flashbed.targets.recorder.summary_lines import summary
    from flashbed.targets.unavailable import Unavailable

    if not words:
        raise InputError("no command to record; example: flashbed record -- ls")
    if any("\0" in word for word in [*words, *(below or [])]):
        raise InputError("the command holds a NUL byte")
    path = out or free_recording(Path(words[0]).name)
    if path.exists():
        raise InputError(f"{shown(path)}: exists already")
    try:
        place = place_of(on)
        try:
            recorded = session.record(place, words, path, below=below or [], contents=contents)
        finally:
            place.leave()
    except Unavailable as why:
        raise RunError(f"not recorded: {why}") from None
    sys.stdout.flush()
    for line in summary(recorded):
        say(line)
    # Not returned: `main` takes a returned 130 for Ctrl-C; here it is the program's own status.
    sys.exit(recorded.status)


def free_recording(name: str) -> Path:
    """A file name in results/record that is not taken yet."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name) or "program"
    numbered = (f"{plain}-{number}" for number in itertools.count(2))
    for each in itertools.chain([plain], numbered):
        path = RECORDINGS / f"{each}{SUFFIX}"
        if not path.exists() and not path.with_name(f"{path.name}.parts").exists():
            return path
    raise AssertionError
