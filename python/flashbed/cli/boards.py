"""Boards over ssh on the command line: which part of one may be used, and that it may be erased.

A partition is named by `--erase` and confirmed: its name beside its number, or typed when asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.errors import InputError, RunError
from flashbed.targets.ssh.address import (
    Address,
    AllowedBoard,
    ChosenTarget,
    ConfirmedPartition,
    Partition,
    is_address,
    parse_address,
    parse_partition,
)

if TYPE_CHECKING:
    from flashbed.targets.ssh.facts import BoardFacts, MtdPartition

__all__ = ["Erase", "all_allowed", "allowed", "facts_of", "shown_target"]

Erase = Annotated[
    str | None,
    typer.Option(
        "--erase",
        metavar="mtdN[:NAME]",
        help="The partition of an ssh:// board that is erased and used; asks, or takes its name.",
    ),
]
_KIB = 1024


def shown_target(target: ChosenTarget) -> str:
    """A target as a message has it."""
    return str(target)


def allowed(name: str, erase: str | None) -> ChosenTarget:
    """A target by its name; a board with the partition that is confirmed to be erased.

    Raises `InputError` for a board of which nothing may be used, `RunError` if it cannot be asked.
    """
    if not is_address(name):
        return name
    address = parse_address(name)
    if erase is None:
        if address.directory is None:
            raise InputError(
                f"--on {name}: of what on the board? --erase mtdN:NAME (it is erased), or a mounted"
                f" directory: {name}/DIRECTORY; `flashbed doctor --on {name}` shows what there is"
            )
        return AllowedBoard(address)
    if address.directory is not None:
        raise InputError(f"--erase {erase}: {name} names a directory, which is used instead")
    partition = parse_partition(erase, f"--erase {erase}")
    return AllowedBoard(address, _confirmed(address, partition))


def all_allowed(names: Sequence[str], erase: str | None) -> list[ChosenTarget]:
    """`allowed` of each; `--erase` has to be of one of them."""
    if erase is not None and not any(is_address(name) for name in names):
        raise InputError(f"--erase {erase}: of a board; --on ssh://USER@HOST names it")
    return [allowed(name, erase) for name in names]


def _confirmed(address: Address, partition: Partition) -> ConfirmedPartition:
    """The partition with its name, which the board checks again before it erases anything."""
    if partition.name is not None:
        return ConfirmedPartition(partition.number, partition.name)
    if not sys.stdin.isatty():
        raise InputError(
            f"--erase {partition}: nobody can be asked; --erase {partition}:NAME, with the name it"
            f" has on the board, is as good (`flashbed doctor --on {address}` shows it)"
        )
    there = facts_of(address).partitions.get(partition.number)
    if there is None:
        raise InputError(f"--erase {partition}: there is no {partition} on {address.destination}")
    if there.refused is not None:
        raise InputError(f"--erase {partition} ({there.name}): {there.refused}")
    typer.echo(
        f"{_described(there)} of {address.destination}: all that is on it will be lost", err=True
    )
    typed = typer.prompt(
        f"Its name, {there.name}, to go on", default="", show_default=False, err=True
    )
    if typed != there.name:
        raise InputError(f"--erase {partition}: not confirmed, nothing was done")
    return ConfirmedPartition(partition.number, there.name)


def _described(partition: MtdPartition) -> str:
    size_kib = partition.size_bytes // _KIB
    return f"mtd{partition.number}, {partition.name}, {size_kib:,} KiB"


def facts_of(address: Address) -> BoardFacts:
    """Connects, and takes the agent away again. Raises `RunError`."""
    from flashbed.targets.base import Unavailable
    from flashbed.targets.ssh.board import OnBoard

    try:
        board = OnBoard(AllowedBoard(address))
    except Unavailable as why:
        raise RunError(str(why)) from None
    board.leave()
    return board.facts
