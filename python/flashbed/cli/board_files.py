"""The commands on profiles of boards: new, check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.human import bytes_text, time_text
from flashbed.base.paths import new_board_file, shown
from flashbed.cli.chips import all_chips
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_unlike
from flashbed.stack.begun_board import Processor, begun_board_text
from flashbed.stack.bounds import MHZ_MAX
from flashbed.stack.checked_board import Measured, explained, oddities
from flashbed.stack.chips import CatalogueChip, load_chip
from flashbed.stack.doubts import remarks
from flashbed.stack.imported.board_words import chip_of_words, fitting
from flashbed.stack.imported.boot_log import LoggedBoard, logged_board
from flashbed.stack.names import escaped
from flashbed.stack.profiles import Board, board_path, load_board, read_board

if TYPE_CHECKING:
    from flashbed.targets.ssh.board_profile import Like

__all__ = ["begin_blank", "register"]

LOG_BYTES_MAX = 1 << 24
_RAM_MIB, _RAM_MIB_MAX = 128, 65_536

PartitionName = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="NAME",
        help="Of the log. Default: the one that UBI attaches. With --blank: mtdN.",
    ),
]
LikeBoard = Annotated[
    str | None,
    typer.Option(
        "--like", metavar="BOARD", help="Borrow this board's prices, not those of the core."
    ),
]
Blank = Annotated[
    bool,
    typer.Option(
        "--blank", help="Name no chip: a `?` for each number that --on's board does not say."
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    board = typer.Typer(no_args_is_help=True, help="Begins and checks profiles of boards.")
    board.command(
        "new",
        epilog="Examples: `flashbed board new mine --chip W25N01GV --processor cortex-a7@528MHz` · "
        "`flashbed board new mine --log boot.log` · "
        "`flashbed board new mine --on ssh://root@board` · "
        "`flashbed board new mine --blank --like emulated --mhz 528`",
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
    partition: PartitionName = None,
    like: LikeBoard = None,
    blank: Blank = False,
    mhz: Annotated[
        int | None,
        typer.Option("--mhz", metavar="N", help="With --blank: the clock that --like scales to."),
    ] = None,
) -> None:
    """Writes a short profile, boards/NAME.toml, that runs at once.

    A boot log says chip, processor, memory and partitions; options say the rest, or otherwise.
    Prices of software are borrowed by name from a calibrated board, scaled by the clock, until you
    calibrate. Answers say so.
    """
    board_path(name)  # refuses an impossible name first
    if blank:
        _refuse("not with --blank", log=log, chip=chip, processor=processor, ram=ram)
        begin_blank(name, on=on, partition=partition, like=like, mhz=mhz)
        return
    _refuse("needs --blank; --processor CORE@NMHz says the clock", mhz=mhz)
    text, where = _log_of(log, on)
    said = logged_board(text)
    part = load_chip(chip) if chip else _chip_in(text, where)
    core = Processor.parse(processor) if processor else _processor_in(said, where)
    memory = ram if ram is not None else said.ram_mib or _RAM_MIB
    if not 0 < memory <= _RAM_MIB_MAX:
        raise InputError(f"--ram {memory}: 1 to {_RAM_MIB_MAX:,} MiB")
    if like is not None:
        _check_calibrated(like)
    profile = begun_board_text(
        name, part, core, ram_mib=memory, like=like,
        partition=said.partition(partition, part.size_bytes), said_by=where or "its options",
    )  # fmt: skip
    print(escaped(shown(write_profile(name, profile))))
    if said.release is not None:
        say(f"flashbed: {escaped(where)}: Linux {escaped(said.release)}")
        say_unlike([said.release])
    say(f"next: flashbed board check {name}")


def _refuse(why: str, **options: object) -> None:
    """Raises `InputError` for an option that was given."""
    for name, given in options.items():
        if given is not None:
            raise InputError(f"--{name}: {why}")


def _check_calibrated(like: str) -> None:
    known = load_board(like)
    if known.board.cpu_mhz is None or known.software.is_free or known.like is not None:
        raise InputError(f"--like {like}: {shown(known.path)} is not calibrated itself")


def begin_blank(
    name: str, *, on: str | None, partition: str | None, like: str | None, mhz: int | None
) -> None:
    """Writes boards/NAME.toml with a `?` for what is not known, and prints its path."""
    from flashbed.targets.ssh.board_profile import blank_profile_text

    board_path(name)  # refuses an impossible name before the board is connected to
    known = _known_prices(like, mhz)
    if on is not None:
        _begin_on_board(name, on, partition, known)
        return
    if partition is not None:
        raise InputError("--partition: needs a board; --on ssh://USER@HOST names one")
    print(escaped(shown(write_profile(name, blank_profile_text(name, known)))))
    say(f"flashbed: `flashbed board new {name} --chip CHIP` needs no `?` if the catalogue has it")


def _known_prices(like: str | None, mhz: int | None) -> Like | None:
    """Raises `InputError` unless `--like` and `--mhz` stand together."""
    from flashbed.targets.ssh.board_profile import Like

    if like is None and mhz is None:
        return None
    if like is None or mhz is None:
        raise InputError("--like BOARD, --mhz N: need each other with --blank")
    if not 0 < mhz <= MHZ_MAX:
        raise InputError(f"--mhz {mhz}: a clock of 1 to {MHZ_MAX:,} MHz")
    return Like.of(like, mhz)


def _begin_on_board(name: str, on: str, partition: str | None, like: Like | None) -> None:
    from flashbed.cli.boards import facts_of
    from flashbed.targets.ssh.address import is_address, parse_address, parse_partition
    from flashbed.targets.ssh.board_profile import profile_text

    if not is_address(on):
        raise InputError(f"--on {on}: not a board, ssh://USER@HOST")
    facts = facts_of(parse_address(on))
    if partition is None:
        known = ", ".join(f"mtd{number}" for number in facts.partitions) or "none"
        raise InputError(f"board {name}: --partition must name one of {known}")
    number = parse_partition(partition, f"--partition {partition}").number
    if number not in facts.partitions:
        raise InputError(f"--partition {partition}: the board has no such partition")
    text = profile_text(name, facts, facts.partitions[number], like)
    print(escaped(shown(write_profile(name, text))))
    say_unlike([facts.kernel])


def write_profile(name: str, text: str) -> Path:
    """Writes boards/NAME.toml, which must not exist yet."""
    path = board_path(name)
    if not path.exists():
        path = new_board_file(name)
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as why:
        raise InputError(f"{shown(path)}: {why.strerror}") from None
    return path


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
    if board.nor is not None:
        bus = f"SPI-NOR, {board.nor.clock_hz / 1_000_000:g} MHz, {board.nor.lines} data lines"
    if spi is not None:
        bus = f"SPI, {spi.clock_hz / 1_000_000:g} MHz, {spi.read_data_lines} data lines"
    return (
        f"{board.name}: {bus}; partition of {bytes_text(board.partition_bytes)}; read"
        f" {time_text(chip.read_array_ns)}, write {time_text(chip.program_array_ns)}, erase"
        f" {time_text(chip.erase_array_ns)}"
    )
