"""The command `playground`: hands a recorded program to the page that simulates in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import output as written_to
from flashbed.base.paths import playground as built_page
from flashbed.base.paths import shown
from flashbed.cli.options import OUT
from flashbed.cli.progress import bar, say, tell_written

if TYPE_CHECKING:
    from flashbed.plan.workloads.playground_program import Opening

__all__ = ["register"]

SUFFIX = ".play"
PAGE = ".html"
MIX = Path("mix")
"""What a file of several recordings is called."""


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "playground",
        epilog="Examples: `flashbed playground my.rec` · `flashbed playground my.rec -o my.html` · "
        "`flashbed playground logger.rec@6/h update.rec@1/mo`",
    )(playground)


def playground(
    recordings: Annotated[
        list[str],
        typer.Argument(
            metavar="RECORDING...",
            help="Recorded programs. RECORDING@N/UNIT says how often one runs, as in lifetime.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            *OUT, metavar="FILE",
            help="Default: RECORDING with the suffix .play, of several mix.play. One in .html is"
            " the page itself.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="AXIS=VALUE",
            help="What the page opens on: fs, board, kernel, partition.blocks, chip.KEY, …."
            " Default: as flashbed run.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Writes a file of recordings that you drop onto the playground.

    The file has each program's operations for every file system and compressor. Of several, the
    page shows how long the flash lasts under all of them. --set says on what the page opens, also a
    board of yours. With -o NAME.html it is the playground
    itself with the programs in it. docs/guide/playground.md is the guide.
    """
    from flashbed.answers.lifetimes.given import rate_per_day, with_rate
    from flashbed.plan.workloads.playground_program import packed_mix, packed_program, page_with

    named = [(word, None) if Path(word).exists() else with_rate(word) for word in recordings]
    rates = [None if rate is None else rate_per_day(rate) for _, rate in named]
    paths = [Path(name) for name, _ in named]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError(f"{shown(path)}: is named twice; add up its rates")
    is_mix = len(paths) > 1 or rates != [None]
    out = output or (MIX if len(paths) > 1 else paths[0]).with_suffix(SUFFIX)
    if out.is_file() and any(path.exists() and out.samefile(path) for path in paths):
        raise InputError(f"{shown(out)}: the recording itself; -o names another file")
    opening = _opening(paths[0], settings or [])
    with bar(f"playground {' '.join(map(shown, paths))}", "calls") as told:
        if is_mix:
            made = packed_mix(list(zip(paths, rates, strict=True)), opening, told)
        else:
            made = packed_program(paths[0], opening, told)
    if out.suffix == PAGE:
        made = page_with(built_page(), made)
    with written_to(out) as new:
        new.write_bytes(made)
    say("open it in a browser" if out.suffix == PAGE else "drop it onto the playground")
    tell_written(out, shown(out.absolute()))


def _opening(recording: Path, settings: Sequence[str]) -> Opening:
    """What the page opens on. Raises `InputError` for what its controls cannot say."""
    from flashbed.plan.experiment import load_experiment
    from flashbed.plan.narrowing import parse_settings, plan
    from flashbed.plan.workloads.playground_program import Opening
    from flashbed.report.playground import opening

    chosen = parse_settings(settings)
    several = [axis for axis, values in chosen.items() if len(values) > 1]
    if several:
        raise InputError(f"--set {several[0]}: the page opens on one value; its controls change it")
    case = plan(load_experiment(str(recording)), chosen)[0].case
    address = opening(case)
    if address is None:
        raise InputError(f"--set {' '.join(settings)}: the page has no control for that")
    return Opening(address, case.board)
