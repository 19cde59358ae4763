"""The commands on profiles of boards: new, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.human import bytes_text, time_text
from flashbed.base.paths import shown
from flashbed.cli.doctor import write_profile
from flashbed.cli.progress import say
from flashbed.stack.begun_board import Processor, begun_board_text
from flashbed.stack.checked_board import Measured, explained, oddities
from flashbed.stack.chips import load_chip
from flashbed.stack.doubts import remarks
from flashbed.stack.names import escaped
from flashbed.stack.profiles import Board, load_board, read_board

__all__ = ["register"]

_RAM_MIB = 128


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    board = typer.Typer(no_args_is_help=True, help="Begins and checks profiles of boards.")
    board.command(
        "new",
        epilog="Example: `flashbed board new mine --chip W25N01GV --processor cortex-a7@528MHz`",
    )(new)
    board.command(
        "check",
        epilog="Examples: `flashbed board check mine` · "
        "`flashbed board check mine --measured 'dd 16MiB 2.86s'`",
    )(check)
    app.add_typer(board, name="board")


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The board's name.")],
    *,
    chip: Annotated[str, typer.Option("--chip", metavar="CHIP", help="A chip of the catalogue.")],
    processor: Annotated[
        str,
        typer.Option("--processor", metavar="CORE@NMHz", help="Core and clock: cortex-a7@528MHz."),
    ],
    ram: Annotated[
        int, typer.Option("--ram", metavar="MIB", help="Memory of the board, in MiB.")
    ] = _RAM_MIB,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="BOARD", help="Borrow this board's prices, not those of the core."
        ),
    ] = None,
) -> None:
    """Writes a short profile, boards/NAME.toml, that runs at once.

    Prices of software are borrowed by name from a calibrated board, scaled by the clock, until you
    calibrate. Answers say so.
    """
    part, core = load_chip(chip), Processor.parse(processor)
    if not 0 < ram <= 65_536:
        raise InputError(f"--ram {ram}: 1 to 65,536 MiB")
    if like is not None:
        known = load_board(like)
        if known.board.cpu_mhz is None or known.software.is_free or known.like is not None:
            raise InputError(f"--like {like}: {shown(known.path)} has no prices of its own")
    text = begun_board_text(name, part, core, ram_mib=ram, like=like)
    print(escaped(shown(write_profile(name, text))))
    say(f"next: flashbed board check {name}")


def check(
    board: Annotated[str, typer.Argument(metavar="FILE", help="A profile, or a board's name.")],
    measured: Annotated[
        str | None,
        typer.Option(
            "--measured",
            metavar="FIGURE",
            help="'dd 16MiB 2.86s', 'read 3763KiB/s' or 'attach 1008 0.813s': which bus it fits.",
        ),
    ] = None,
) -> None:
    """Says which lines of a profile are odd, and which bus a measured figure fits.

    Exits with 1 if a line is odd.
    """
    figure = Measured.parse(measured) if measured is not None else None
    found = read_board(Path(board)) if board.endswith(".toml") else load_board(board)
    odd = oddities(found)
    for line in odd:
        print(escaped(f"odd: {line}"))
    for line in remarks(found):
        print(escaped(f"note: {line}"))
    print(escaped(_summary(found)))
    if figure is not None:
        for line in explained(found, figure):
            print(escaped(line))
    if odd:
        raise typer.Exit(1)


def _summary(board: Board) -> str:
    chip, spi = board.chip, board.spi
    bus = "raw NAND"
    if spi is not None:
        bus = f"SPI, {spi.clock_hz / 1_000_000:g} MHz, {spi.read_data_lines} data lines"
    return (
        f"{board.name}: {bus}; partition of {bytes_text(board.partition_bytes)}; read"
        f" {time_text(chip.read_array_ns)}, program {time_text(chip.program_array_ns)}, erase"
        f" {time_text(chip.erase_array_ns)}"
    )
