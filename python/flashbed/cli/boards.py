"""Boards over ssh on the command line: which partition flashbed may erase and use.

The user names a partition with `--erase mtdN:NAME`, or types its name when asked for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.targets.ssh.address import (
    Address,
    AllowedBoard,
    BoardPartition,
    ChosenTarget,
    ConfirmedPartition,
    is_address,
    parse_address,
    parse_partition,
)

if TYPE_CHECKING:
    from flashbed.targets.ssh.facts import FoundBoard, MtdPartition

__all__ = ["Erase", "all_allowed", "allowed", "facts_of", "shown_target"]

Erase = Annotated[
    str | None,
    typer.Option(
        "--erase",
        metavar="mtdN[:NAME]",
        help="The partition of an ssh:// board to erase and use. mtdN alone asks for its name.",
    ),
]
_KIB = 1024


def shown_target(target: ChosenTarget) -> str:
    """A target's name as messages show it."""
    return str(target)


def allowed(name: str, erase: str | None) -> ChosenTarget:
    """Resolves a target's name; for a board, with the partition that the user confirmed.

    Raises `InputError` if the user allowed nothing on a board, `RunError` if it does not answer.
    """
    if not is_address(name):
        return name
    address = parse_address(name)
    if erase is None:
        if address.directory is None:
            raise InputError(
                f"--on {name}: which part of the board to use? --erase mtdN:NAME (erases it), or"
                f" a mounted directory: {name}/DIRECTORY; `flashbed doctor --on {name}` lists both"
            )
        return AllowedBoard(address)
    if address.directory is not None:
        raise InputError(f"--erase {erase}: {name} names a directory, so no partition is erased")
    partition = parse_partition(erase, f"--erase {erase}")
    return AllowedBoard(address, _confirmed(address, partition))


def all_allowed(names: Sequence[str], erase: str | None) -> list[ChosenTarget]:
    """Resolves each name; `--erase` must belong to a board among them."""
    if erase is not None and not any(is_address(name) for name in names):
        raise InputError(f"--erase {erase}: needs a board; --on ssh://USER@HOST names one")
    return [allowed(name, erase) for name in names]


def _confirmed(address: Address, partition: BoardPartition) -> ConfirmedPartition:
    """The partition with its name. The board checks the name again before it erases anything."""
    if partition.name is not None:
        return ConfirmedPartition(partition.number, partition.name)
    if not sys.stdin.isatty():
        raise InputError(
            f"--erase {partition}: there is no terminal to confirm it on; --erase {partition}:NAME"
            f" confirms it by its name on the board (`flashbed doctor --on {address}` shows it)"
        )
    there = facts_of(address).partitions.get(partition.number)
    if there is None:
        raise InputError(f"--erase {partition}: there is no {partition} on {address.destination}")
    if there.refused is not None:
        raise InputError(f"--erase {partition} ({there.name}): {there.refused}")
    typer.echo(f"{_described(there)} of {address.destination}: all its data will be lost", err=True)
    typed = typer.prompt(
        f"Type its name, {there.name}, to continue", default="", show_default=False, err=True
    )
    if typed != there.name:
        raise InputError(f"--erase {partition}: not confirmed, nothing was done")
    return ConfirmedPartition(partition.number, there.name)


def _described(partition: MtdPartition) -> str:
    size_kib = partition.size_bytes // _KIB
    return f"mtd{partition.number}, {partition.name}, {size_kib:,} KiB"


def facts_of(address: Address) -> FoundBoard:
    """Connects, reads the facts and removes the agent again. Raises `RunError`."""
    from flashbed.targets.ssh.board import OnBoard
    from flashbed.targets.unavailable import Unavailable

    try:
        board = OnBoard(AllowedBoard(address))
    except Unavailable as why:
        raise RunError(str(why)) from None
    board.leave()
    return board.facts
