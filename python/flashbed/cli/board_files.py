"""The commands on profiles of boards: new, check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.human import bytes_text, time_text
from flashbed.base.paths import shown
from flashbed.cli.chips import all_chips
from flashbed.cli.doctor import write_profile
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_unlike
from flashbed.stack.begun_board import Processor, begun_board_text
from flashbed.stack.checked_board import Measured, explained, oddities
from flashbed.stack.chips import CatalogueChip, load_chip
from flashbed.stack.doubts import remarks
from flashbed.stack.imported.board_words import chip_of_words, fitting
from flashbed.stack.imported.boot_log import LoggedBoard, logged_board
from flashbed.stack.names import escaped
from flashbed.stack.profiles import Board, board_path, load_board, read_board

__all__ = ["register"]

LOG_BYTES_MAX = 1 << 24
_RAM_MIB, _RAM_MIB_MAX = 128, 65_536


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    board = typer.Typer(no_args_is_help=True, help="Begins and checks profiles of boards.")
    board.command(
        "new",
        epilog="Examples: `flashbed board new mine --chip W25N01GV --processor cortex-a7@528MHz` · "
        "`flashbed board new mine --log boot.log` · "
        "`flashbed board new mine --on ssh://root@board`",
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
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="A boot log of the board, as dmesg prints it."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="ssh://USER@HOST", help="Ask this board for its log. Default: no board."
        ),
    ] = None,
    chip: Annotated[
        str | None, typer.Option("--chip", metavar="CHIP", help="A chip of the catalogue.")
    ] = None,
    processor: Annotated[
        str | None,
        typer.Option("--processor", metavar="CORE@NMHz", help="Core and clock: cortex-a7@528MHz."),
    ] = None,
    ram: Annotated[
        int | None,
        typer.Option(
            "--ram", metavar="MIB", help=f"Memory in MiB. Default: the log's, or {_RAM_MIB}."
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition", metavar="NAME", help="Of the log. Default: the one that UBI attaches."
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="BOARD", help="Borrow this board's prices, not those of the core."
        ),
    ] = None,
) -> None:
    """Writes a short profile, boards/NAME.toml, that runs at once.

    A boot log says chip, processor, memory and partitions; options say the rest, or otherwise.
    Prices of software are borrowed by name from a calibrated board, scaled by the clock, until you
    calibrate. Answers say so.
    """
    board_path(name)  # refuses an impossible name first
    text, where = _log_of(log, on)
    said = logged_board(text)
    part = load_chip(chip) if chip else _chip_in(text, where)
    core = Processor.parse(processor) if processor else _processor_in(said, where)
    memory = ram if ram is not None else said.ram_mib or _RAM_MIB
    if not 0 < memory <= _RAM_MIB_MAX:
        raise InputError(f"--ram {memory}: 1 to {_RAM_MIB_MAX:,} MiB")
    if like is not None:
        known = load_board(like)
        if known.board.cpu_mhz is None or known.software.is_free or known.like is not None:
            raise InputError(f"--like {like}: {shown(known.path)} has no prices of its own")
    profile = begun_board_text(
        name, part, core, ram_mib=memory, like=like,
        partition=said.partition(partition, part.size_bytes), said_by=where or "its options",
    )  # fmt: skip
    print(escaped(shown(write_profile(name, profile))))
    if said.release is not None:
        say(f"flashbed: {escaped(where)}: Linux {escaped(said.release)}")
        say_unlike([said.release])
    say(f"next: flashbed board check {name}")


def _log_of(log: Path | None, on: str | None) -> tuple[str, str]:
    """The text of a log and where it is from; both are empty without one."""
    if log is not None and on is not None:
        raise InputError("--log FILE, --on ssh://USER@HOST: one of them")
    if log is not None:
        return read_text(log, LOG_BYTES_MAX, InputError), shown(log)
    if on is None:
        return "", ""
    from flashbed.targets.ssh.asked_log import boot_log_of

    return boot_log_of(on), on


def _chip_in(text: str, where: str) -> CatalogueChip:
    if not where:
        raise InputError("--chip CHIP: which chip it has (`flashbed chip list`), or --log FILE")
    found = chip_of_words(text, where)
    if found is None:
        raise InputError(f"{where}: no line of its NAND; --chip CHIP says which it has")
    fit = fitting(found, all_chips())
    if len(fit) != 1:
        which = ", ".join(part.name for part in fit) or "none of the catalogue"
        raise InputError(f"{where}: {which} fit what it says of its NAND; --chip CHIP names one")
    return fit[0]


def _processor_in(said: LoggedBoard, where: str) -> Processor:
    if not where:
        raise InputError("--processor CORE@NMHz: core and clock, such as cortex-a7@528MHz")
    if said.core is None:
        raise InputError(f"{where}: does not name its processor; --processor CORE@NMHz does")
    if said.mhz is None:
        raise InputError(f"{where}: does not say its clock; --processor {said.core}@NMHz does")
    return Processor.parse(f"{said.core}@{said.mhz}MHz")


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
