"""The command that records a program: record."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.cli.progress import say
from flashbed.errors import InputError, RunError
from flashbed.paths import shown

if TYPE_CHECKING:
    pass

__all__ = ["register"]

RECORDINGS = Path("results") / "record"
SUFFIX = ".rec"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "record",
        # Options end where the command begins: what follows is the program's.
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
        typer.Option("-o", "--out", metavar="FILE", help="Default: results/record/NAME.rec."),
    ] = None,
    below: Annotated[
        list[str] | None,
        typer.Option("--below", metavar="DIR", help="Follow files there as well; again for more."),
    ] = None,
    contents: Annotated[
        bool, typer.Option("--contents", help="Keep written bytes, not only their sizes.")
    ] = False,
    on: Annotated[
        str, typer.Option("--on", metavar="TARGET", help="host, or ssh://USER@HOST[/DIRECTORY].")
    ] = "host",
) -> None:
    """Records what a program does to the files below its working folder.

    It runs as it is, without root. Of written data the recording keeps how small compressors make
    it, unless you ask for its contents. docs/recording.md is the guide.
    """
    from flashbed.api.recorded_command import place_of
    from flashbed.recorder import session
    from flashbed.recorder.summary_lines import summary
    from flashbed.targets.base import Unavailable

    if not words:
        raise InputError("a command to record, as in flashbed record -- ls")
    if any("\0" in word for word in [*words, *(below or [])]):
        raise InputError("a NUL in the command")
    path = out or _free(Path(words[0]).name)
    if path.exists():
        raise InputError(f"{shown(path)}: is there already")
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
    # Not returned: 130 is the program's own here, and no interruption.
    sys.exit(recorded.status)


def _free(name: str) -> Path:
    """A file of results/record that is not there yet."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name) or "program"
    numbered = (f"{plain}-{number}" for number in itertools.count(2))
    for each in itertools.chain([plain], numbered):
        path = RECORDINGS / f"{each}{SUFFIX}"
        if not path.exists() and not path.with_name(f"{path.name}.parts").exists():
            return path
    raise AssertionError
