"""Options of `flashbed exec` as they were given, checked and made requests of.

Everything is checked before anything is built or booted; what one target cannot do is refused by
the option's name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.errors import InputError
from flashbed.exec.kept import kept_folder
from flashbed.exec.request import USUAL_PATH, Put, Request, environment, find, puts_of
from flashbed.exec.software import FREE, costs_of
from flashbed.exec.sysroot import Sysroot, packages_folder, read_sysroot
from flashbed.formats.profiles import Board, load_board
from flashbed.targets.guest.debian import cache_folder
from flashbed.targets.ssh.address import is_address
from flashbed.targets.uml.programs_kernel import SERIES

__all__ = ["PATIENCE_S", "Asked", "requests_of"]

PATIENCE_S = 600.0
MEMORY_MIB = (64, 16_384)
UNTIL_MAX_S = 1e8
"""The guest's dates have seconds of 31 bits."""
PORTS = (1, 65_535)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """Options of the command, as given."""

    words: Sequence[str]
    on: str
    board: str
    kernel: str
    put: Sequence[Path]
    env: Sequence[str]
    memory: int | None
    patience: float | None
    keep: Path | None
    shell: bool
    until: float | None
    software: str | None
    package: Sequence[str]
    sysroot: Path | None
    gdb: int | None


def requests_of(
    asked: Asked, systems: Sequence[str], say: Say
) -> tuple[list[Request], Sysroot | None]:
    """A request a file system, with the tree of programs that the emulated board gets.

    Raises `InputError` and `Unavailable`.
    """
    _check(asked)
    profile = load_board(asked.board)
    puts = puts_of(asked.put, profile)
    keeps = {
        fs: asked.keep and (asked.keep / fs if len(systems) > 1 else asked.keep) for fs in systems
    }
    sysroot = None
    if asked.on == "uml":
        first = _of_this_machine(asked, profile, puts)
    elif asked.on == "emulator":
        sysroot = _sysroot(asked, say)
        first = _of_a_tree(asked, profile, puts, sysroot)
    else:
        first = _of_a_board(asked, profile, puts)
    for folder in keeps.values():
        if folder is not None:
            kept_folder(folder)
    return [first(fs, keeps[fs]) for fs in systems], sysroot


Make = Callable[[str, Path | None], Request]


def _of_this_machine(asked: Asked, profile: Board, puts: Sequence[Put]) -> Make:
    costs = costs_of(profile.software, asked.software or "flat")
    variables = environment(asked.env)
    own_shell = os.environ.get("SHELL") or "/bin/sh"
    shell = find(own_shell, variables["PATH"], ()) if asked.shell else None
    words = asked.words or [own_shell]
    program = find(words[0], variables["PATH"], puts)
    patience = asked.patience or (None if asked.shell else PATIENCE_S)

    def made(fs: str, keep: Path | None) -> Request:
        return Request(
            profile, asked.kernel, fs, words, program, variables, puts, asked.memory, patience,
            costs, asked.until, keep, not asked.words, shell if asked.words else None,
        )  # fmt: skip

    return made


def _sysroot(asked: Asked, say: Say) -> Sysroot:
    if (asked.sysroot is None) == (not asked.package):
        raise InputError("--on emulator: --package NAME or --sysroot FOLDER has its programs")
    if asked.sysroot is not None:
        return read_sysroot(asked.sysroot)
    return read_sysroot(packages_folder(cache_folder(), asked.package, say))


def _of_a_tree(asked: Asked, profile: Board, puts: Sequence[Put], sysroot: Sysroot) -> Make:
    variables = environment(asked.env, path=USUAL_PATH)
    program = asked.words[0]
    # Who looks at a kernel takes his time.
    patience = asked.patience or (None if asked.gdb else PATIENCE_S)
    if not any(put.path == os.path.normpath(program) for put in puts):
        program = sysroot.find(program, variables["PATH"])

    def made(fs: str, keep: Path | None) -> Request:
        return Request(
            profile, asked.kernel, fs, asked.words, program, variables, puts, asked.memory,
            patience, FREE, asked.until, keep, where="emulator",
        )  # fmt: skip

    return made


def _of_a_board(asked: Asked, profile: Board, puts: Sequence[Put]) -> Make:
    variables = environment(asked.env, path=USUAL_PATH)

    def made(fs: str, keep: Path | None) -> Request:
        return Request(
            profile, asked.kernel, fs, asked.words, asked.words[0], variables, puts, None,
            asked.patience or PATIENCE_S, FREE, asked.until, keep,
            where="board", address=asked.on,
        )  # fmt: skip

    return made


def _check(asked: Asked) -> None:
    """Whether the options are possible, and go together. Raises `InputError`."""
    if not asked.words and not asked.shell:
        raise InputError("a command to run, as in flashbed exec -- ls")
    if any("\0" in word for word in [*asked.words, *asked.env]):
        raise InputError("a NUL in the command")
    if asked.kernel not in SERIES:
        raise InputError(f"--kernel {asked.kernel}: programs run on Linux {' and '.join(SERIES)}")
    if asked.memory is not None and not MEMORY_MIB[0] <= asked.memory <= MEMORY_MIB[1]:
        raise InputError(f"--memory {asked.memory}: {MEMORY_MIB[0]} to {MEMORY_MIB[1]} MiB")
    if asked.patience is not None and not 0 < asked.patience < 1e9:
        raise InputError(f"--patience {asked.patience:g}: seconds above 0")
    if asked.until is not None and not 0 < asked.until < UNTIL_MAX_S:
        raise InputError(f"--until {asked.until:g}: seconds above 0, less than {UNTIL_MAX_S:g}")
    if asked.gdb is not None and not PORTS[0] <= asked.gdb <= PORTS[1]:
        raise InputError(f"--gdb {asked.gdb}: a port, {PORTS[0]} to {PORTS[1]}")
    _check_target(asked)


def _check_target(asked: Asked) -> None:
    """Whether the target has what is asked of it. Raises `InputError`."""
    if asked.on not in ("uml", "emulator") and not is_address(asked.on):
        raise InputError(f"--on {asked.on}: uml, emulator or ssh://USER@HOST")
    only = {
        "uml": {"--shell": asked.shell, "--software": asked.software is not None},
        "emulator": {
            "--package": bool(asked.package),
            "--sysroot": asked.sysroot is not None,
            "--gdb": asked.gdb is not None,
        },
    }
    for target, options in only.items():
        for name, given in options.items():
            if given and asked.on != target:
                raise InputError(f"{name}: only --on {target}")
    if is_address(asked.on) and asked.memory is not None:
        raise InputError("--memory: a board has the memory that it has")
