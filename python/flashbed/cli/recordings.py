"""The commands on recordings and operations: import, ops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.cli.command_group import add_group
from flashbed.cli.options import OUT
from flashbed.cli.progress import say, tell_written, working
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.program.recording.about import About

__all__ = ["about_lines", "register"]

KINDS = ("strace", "fio-job", "fio-iolog", "blktrace", "perfetto")
File = Annotated[Path, typer.Argument(metavar="FILE", help="Operations, or a recording.")]
Output = Annotated[Path, typer.Option(*OUT, metavar="FILE", help="The file to write.")]
Compressor = Annotated[
    str,
    typer.Option(
        "--compressor",
        metavar="NAME",
        help="none, lzo, zlib or zstd: show sizes under this compressor.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(
        "import",
        epilog="Examples: `strace -f -ttt -T -y -s 65536 -o my.strace ./my-program` · "
        "`flashbed import strace my.strace -o my.rec` · `flashbed run my.rec`",
    )(import_)
    add_group(
        app,
        "ops",
        about="Shows and edits operations and recordings.",
        commands={
            "show": (show, "my.rec --compressor zstd"),
            "check": (check, "my.ops"),
            "stat": (stat, "my.rec"),
            "cut": (cut, "my.rec -o short.rec --first 1000"),
            "merge": (merge, "a.rec b.rec -o both.rec"),
            "anonymise": (anonymise, "my.rec -o given-away.rec"),
        },
    )


def import_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS))],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The trace or job file.")],
    *,
    output: Output,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="DIR", help="The program's folder (strace, fio-iolog)."),
    ] = None,
    unit: Annotated[
        str, typer.Option("--unit", metavar="us|ns", help="Unit of the times in fio's log.")
    ] = "us",
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help="The largest file of a fio job, as 16m."),
    ] = None,
) -> None:
    """Converts another tool's trace or job file into a recording.

    docs/guide/other-tools.md is the guide.
    """
    if kind not in KINDS:
        raise InputError(f"import {kind}: must be one of {', '.join(KINDS)}")
    if folder is not None and kind not in ("strace", "fio-iolog"):
        raise InputError(f"--folder: applies to strace and fio-iolog, not to {kind}")
    if output.is_dir():
        raise InputError(f"{shown(output)}: not a file")
    whole = os.path.abspath(folder) if folder is not None else None  # noqa: PTH100
    most = _size(kind, size)
    with working(f"importing {file.name}"):
        about = _importer(kind, file, output=output, folder=whole, unit=unit, size=most)
    for line in about_lines(about):
        say(line)
    tell_written(output, shown(output.absolute()))


def _size(kind: str, text: str | None) -> int | None:
    from flashbed.program.imports.fio_options import size_of

    if text is None:
        return None
    if kind != "fio-job":
        raise InputError(f"--size: applies to fio-job, not to {kind}")
    try:
        size = size_of(text)
    except ValueError as why:
        raise InputError(f"--size {text[:40]}: {why}") from None
    if not size:
        raise InputError("--size: must be above 0")
    return size


def _importer(
    kind: str, file: Path, *, output: Path, folder: str | None, unit: str, size: int | None
) -> About:
    from flashbed.program.imports import blktrace, fio_iolog, fio_job, perfetto_trace, strace_trace

    if kind == "strace":
        return strace_trace.import_strace(file, output, folder)
    if kind == "fio-job":
        return fio_job.import_fio_job(file, output, size)
    if kind == "fio-iolog":
        return fio_iolog.import_fio_iolog(file, output, folder, unit)
    if kind == "blktrace":
        return blktrace.import_blktrace(file, output)
    return perfetto_trace.import_perfetto(file, output)


def about_lines(about: About) -> Iterator[str]:
    """Lines about what the recording leaves out."""
    for sentence in about.lacks:
        yield f"flashbed: not in it: {escaped(sentence)}"
    for name, times in about.not_followed.items():
        yield f"flashbed: not followed: {escaped(name)}, {times:,} times"
    if not about.complete:
        yield "flashbed: the recorder ended before the program; the recording stops there"


def show(file: File, compressor: Compressor = "none") -> None:
    """Prints operations in their canonical form; for a recording, as a run would execute them."""
    from flashbed.program.recording.recording_tools import lines_of

    for line in lines_of(file, compressor):
        print(line)


def check(file: File) -> None:
    """Reads a file to its end. Exits with status 2 and one line at the first error."""
    from flashbed.program.recording.recording_tools import checked

    with working(f"checking {file.name}"):
        found = checked(file)
    print(f"{escaped(shown(file))}: {found}")


def stat(file: File) -> None:
    """Counts what a file does: calls, bytes, files, durability, and what it leaves out."""
    from flashbed.program.recording.recording_tools import statistics

    with working(f"counting {file.name}"):
        lines = list(statistics(file))
    for line in lines:
        print(line)


def cut(
    file: File,
    output: Output,
    first: Annotated[
        int | None, typer.Option("--first", metavar="N", help="The first N calls or operations.")
    ] = None,
    until: Annotated[
        float | None, typer.Option("--until", metavar="SECONDS", help="Calls that began before it.")
    ] = None,
) -> None:
    """Keeps the beginning of a recording, or of a file of operations."""
    from flashbed.program.recording.recording_tools import cut as cut_file

    if (first is None) == (until is None):
        raise InputError("--first N, or --until SECONDS: one of them")
    if (first is not None and first < 0) or (until is not None and not 0 <= until < 1e9):
        raise InputError("--first, --until: must be 0 or more, and finite")
    until_ns = None if until is None else round(until * 1e9)
    with working(f"cutting {file.name}"):
        said = cut_file(file, output, first, until_ns)
    tell_written(output, said)


def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Two or more recordings.")],
    output: Output,
    side_by_side: Annotated[
        bool, typer.Option("--together", help="Begin all at once instead of one after the other.")
    ] = False,
) -> None:
    """Joins recordings into one: one after the other, or all at once."""
    from flashbed.program.recording.recording_tools import merged

    with working(f"merging {len(files)} recordings"):
        said = merged(files, output, together=side_by_side)
    tell_written(output, said)


def anonymise(file: File, output: Output) -> None:
    """Removes names, contents, command and machine from a recording; sizes and times stay."""
    from flashbed.program.recording.recording_tools import anonymised

    with working(f"anonymising {file.name}"):
        said = anonymised(file, output)
    tell_written(output, said)
