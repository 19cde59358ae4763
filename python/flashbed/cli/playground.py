"""The command `playground`: hands a recorded program to the page that simulates in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashbed.cli.progress import bar, say, tell_written
from flashbed.errors import InputError
from flashbed.paths import playground as built_page
from flashbed.paths import shown
from flashbed.storage.files import output as written_to

__all__ = ["register"]

SUFFIX = ".play"
PAGE = ".html"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "playground",
        epilog="Examples: `flashbed playground my.rec` · `flashbed playground my.rec -o my.html`",
    )(playground)


def playground(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A recorded program.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE",
            help="Default: RECORDING with the suffix .play. One in .html is the page itself.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Makes a file of a recording that you drop onto the playground.

    The file has the program's operations for every file system and compressor. With -o NAME.html it
    is the playground itself with the program in it. docs/guide/playground.md is the guide.
    """
    from flashbed.workloads.playground_program import packed_program, page_with

    out = output or recording.with_suffix(SUFFIX)
    if out.is_file() and out.samefile(recording):
        raise InputError(f"{shown(out)}: the recording itself; -o names another file")
    with bar(f"playground {shown(recording)}", "translations") as told:
        made = packed_program(recording, told)
    if out.suffix == PAGE:
        made = page_with(built_page(), made)
    with written_to(out) as new:
        new.write_bytes(made)
    say("open it in a browser" if out.suffix == PAGE else "drop it onto the playground")
    tell_written(out, shown(out.absolute()))
