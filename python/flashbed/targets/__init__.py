"""The targets by name: everything that can run a case. Only this folder knows what each is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flashbed.base.errors import InputError, RunError
from flashbed.base.extras import missing_extra
from flashbed.base.paths import cache_folder
from flashbed.targets.ssh.address import (
    AllowedBoard,
    ChosenTarget,
    is_address,
    parse_address,
)
from flashbed.targets.unavailable import Unavailable

if TYPE_CHECKING:
    from flashbed.targets.base import Program, Target

__all__ = ["BOARD", "TARGETS", "check_target", "load_target"]

_SIM = "flashbed.targets.sim"
# Imported on first use, so that a command that runs nothing does not pay for them.
TARGETS: dict[str, tuple[str, str]] = {
    "sim": (_SIM, "SimTarget"),
    "sim-chip": (_SIM, "ChipOnlyTarget"),
    "uml": ("flashbed.targets.uml.uml_target", "UmlTarget"),
    "emulator": ("flashbed.targets.emulator.emulator_target", "EmulatorTarget"),
    "emulator-nandsim": ("flashbed.targets.emulator.emulator_target", "NandsimTarget"),
}
BOARD = "board"
"""The name in tables of every target that is an ssh:// address."""


def load_target(name: ChosenTarget) -> Target:
    """The target of this name, or this board; an address alone only allows to connect.

    Raises `InputError`, and `Unavailable` if a package that it needs is not installed.
    """
    if isinstance(name, AllowedBoard) or is_address(name):
        from flashbed.targets.ssh.board import BoardTarget

        board = name if isinstance(name, AllowedBoard) else AllowedBoard(parse_address(name))
        return BoardTarget(board)
    check_target(name)
    module, class_name = TARGETS[name]
    try:
        given = (_root_image,) if module == _SIM else ()
        target: Target = getattr(import_module(module), class_name)(*given)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise Unavailable(str(missing)) from None
    return target


def _root_image(program: Program) -> bytes:
    """The image of a program's root, for the simulator, which imports no guest."""
    of_guests = import_module("flashbed.targets.guest.root_files")
    try:
        image: bytes = of_guests.root_image(program, cache=cache_folder())
    except Unavailable as why:
        raise RunError(str(why)) from None
    return image


def check_target(name: str, *others: str) -> None:
    """Raises `InputError` if there is no such target; `others` are further names to suggest."""
    if is_address(name):
        parse_address(name)
    elif name not in TARGETS:
        known = ", ".join([*others, *TARGETS, "ssh://USER@HOST"])
        raise InputError(f"--on {name}: no such target; there are {known}")
