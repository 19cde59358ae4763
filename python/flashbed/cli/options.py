"""Options that several commands have: one name, one meaning and one check each.

`--fs`, `--board` and `--kernel` are short for one `--set` each. `chosen` writes them so, and
nothing else knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flashbed.base.errors import InputError
from flashbed.base.processors import JOBS_MAX
from flashbed.stack.changes import OF_BOARD
from flashbed.stack.names import USUAL_BOARD, USUAL_FS, USUAL_KERNEL

__all__ = [
    "MACHINE",
    "OUT",
    "CaseId",
    "ChipSet",
    "Format",
    "FsName",
    "Image",
    "Jobs",
    "KernelName",
    "OnBoard",
    "Out",
    "Put",
    "Set",
    "StackSet",
    "chosen",
    "formats",
    "known",
]

OUT = ("--out", "-o")
"""What names the file or folder that a command writes."""
Out = Annotated[Path | None, typer.Option(*OUT, metavar="DIR", help="Where to keep results.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE,...",
        help="Run only these values of an axis; new numbers, kernels and boards are added.",
    ),
]
StackSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE,...",
        help="Run it on each of these: fs, board, kernel, chip.KEY, compressor, mount, …."
        f" Default: {USUAL_FS} on the board {USUAL_BOARD}, kernel {USUAL_KERNEL}.",
    ),
]
"""The axes of what programs of a suite run on; they choose the rest themselves."""
MACHINE = ("board", "kernel", *OF_BOARD)
ChipSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE",
        help=f"{', '.join(OF_BOARD)}, or kernel=KERNEL. Default: {USUAL_KERNEL}.",
    ),
]
FsName = Annotated[str | None, typer.Option("--fs", metavar="FS", help="Short for --set fs=FS.")]
OnBoard = Annotated[
    str | None,
    typer.Option("--board", metavar="BOARD", help="Short for --set board=BOARD."),
]
KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="KERNEL", help="Short for --set kernel=KERNEL."),
]
Put = Annotated[
    list[Path] | None,
    typer.Option("--put", metavar="FILES", help="Copy FILES onto the flash first."),
]
Image = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        metavar="[VOLUME=]PATH",
        help="A folder or an image for a volume of --set layout=NAME.",
    ),
]
Dump = Annotated[
    Path | None,
    typer.Option(
        "--dump",
        metavar="FILE",
        help="Begin with what a device's flash held: a dump by nanddump, an image for nandwrite.",
    ),
]
Volume = Annotated[
    str | None,
    typer.Option("--volume", metavar="NAME", help="The program's volume of it, if several."),
]
CaseId = Annotated[str | None, typer.Option("--case", metavar="ID", help="Run only this case.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        max=JOBS_MAX,
        help="Cases run at once. Default: one per processor.",
    ),
]


def known(name: str, words: Sequence[str]) -> Callable[[Any], Any]:
    """Checks an option's value, or each of several: it raises `InputError` for an unknown one."""

    def checked(given: Any) -> Any:
        for word in [given] if isinstance(given, str) else given or ():
            if word not in words:
                raise InputError(f"{name} {word}: {', '.join(words[:-1])} or {words[-1]}")
        return given

    return checked


def formats(*more: str, default: str = "") -> Any:
    """The option `--format`: text and json, which every command prints that has it, and more.

    `default` says what is printed where none is given, if that is not one format.
    """
    words = ("text", "json", *more)
    return typer.Option(
        "--format",
        metavar="|".join(words),
        callback=known("--format", words),
        help=f"How to print it.{default and f' Default: {default}.'}",
    )


Format = Annotated[str, formats()]


def chosen(settings: Sequence[str] | None, **short: str | None) -> list[str]:
    """All `--set`: those that were written, behind those of options that are short for one."""
    return [
        *(f"{axis}={value}" for axis, value in short.items() if value is not None),
        *(settings or ()),
    ]
