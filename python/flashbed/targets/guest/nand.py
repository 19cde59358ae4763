"""Our NAND driver for a guest's kernel: kernel/flashbed_nand, compiled, and its parameters.

A module is kept in the cache by the sources it was made of and the tree it was made against; it is
built in a temporary folder and renamed.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed import places
from flashbed.conditions import PPM
from flashbed.profiles import Board
from flashbed.targets.base import Program, Unavailable
from flashbed.targets.guest.building import build, locked

__all__ = [
    "MODULE",
    "Tree",
    "begin_commands",
    "built_module",
    "cached_module",
    "parameters",
    "setup_commands",
]

MODULE = "flashbed_nand"
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Tree:
    """What a module is built against: a kernel's build tree, ARCH, a cross compiler's prefix."""

    path: Path
    arch: str
    cross: str = ""
    arguments: Sequence[str] = ()
    """Further settings of make that the tree asks for."""


def _sources() -> list[Path]:
    folder = places.root() / "kernel" / MODULE
    kinds = (".c", ".h", "")
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in kinds)


def _key(tree: Tree) -> str:
    digest = hashlib.sha256(f"{tree.path.name} {tree.arch} {tree.cross}\n".encode())
    for source in _sources():
        digest.update(f"{source.name}\n".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _folder(cache: Path, tree: Tree) -> Path:
    return cache / f"{MODULE}-{tree.arch}-{_key(tree)}"


def cached_module(cache: Path, tree: Tree) -> Path | None:
    """The module that was built before, if there is one."""
    module = _folder(cache, tree) / f"{MODULE}.ko"
    return module if module.is_file() else None


def built_module(cache: Path, tree: Tree, say: Callable[[str], None]) -> Path:
    """The module, built if it is not there yet. Raises `Unavailable`."""
    found = cached_module(cache, tree)
    if found:
        return found
    say(f"building {MODULE} for {tree.path.name}")
    log = cache / f"{MODULE}-{tree.arch}.log"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with locked(cache / f"{MODULE}.lock"):
            return cached_module(cache, tree) or _build(cache, tree, log)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{MODULE} could not be built: {error}; log: {log}") from None


def _build(cache: Path, tree: Tree, log: Path) -> Path:
    command = ["make", "-C", str(tree.path), f"ARCH={tree.arch}", *tree.arguments]
    if tree.cross:
        command.append(f"CROSS_COMPILE={tree.cross}")
    with tempfile.TemporaryDirectory(dir=cache, prefix="module-") as made:
        work = Path(made) / "module"
        work.mkdir()
        for source in _sources():
            shutil.copy(source, work)
        command += [f"M={work}", f"-j{os.cpu_count() or 1}", "modules"]
        build(MODULE, [command], log, folder=work, timeout_s=_TIMEOUT_S)
        module = work / f"{MODULE}.ko"
        # Debugging information is most of it, and has to be unpacked at every boot.
        subprocess.run([f"{tree.cross}strip", "-g", str(module)], check=True, timeout=_TIMEOUT_S)
        folder = _folder(cache, tree)
        part = Path(made) / "whole"
        part.mkdir()
        shutil.copy(module, part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder / module.name


def parameters(board: Board, *, wait: str) -> str:
    """The module's parameters that make its chip the board's (docs/flashbed_nand.md)."""
    chip, ecc, partition = board.chip, board.ecc, board.partition
    values: dict[str, int | str] = {
        **{key: value for key, value in chip.model_dump().items() if key != "source"},
        "first_block": partition.first_block,
        "partition_blocks": partition.blocks,
        "ecc": ecc.kind,
        "ecc_step_bytes": ecc.step_bytes,
        "ecc_strength_bits": ecc.strength_bits,
        "wait": wait,
    }
    return " ".join(f"{key}={value}" for key, value in values.items())


def setup_commands(program: Program) -> list[str]:
    """What makes the chip the one a program begins with: new, but for its wear and bad blocks."""
    first, faults = program.board.partition.first_block, program.faults
    commands = ["renew"]
    commands += (f"bad {first + block}" for block in faults.bad(program.board.partition.blocks))
    at = first
    for erases, run in itertools.groupby(program.erases):
        count = len(list(run))
        commands.append(f"wear {at} {count} {erases}")
        at += count
    return commands


def begin_commands(program: Program) -> list[str]:
    """What the chip is told at the mark."""
    faults = program.faults
    rates, chosen = [], []
    for kind, given in (("program", faults.program_fail), ("erase", faults.erase_fail)):
        if isinstance(given, tuple):
            chosen += [f"fail-{kind} {number}" for number in given]
        rates.append(0 if isinstance(given, tuple) else round(given * PPM))
    flips = faults.bit_flips
    rates += [round(flips.rate * PPM), flips.bits] if flips else [0, 1]
    commands = [f"faults {faults.seed} {' '.join(map(str, rates))}"] if any(rates[:3]) else []
    if faults.endurance_erases:
        commands.append(f"endurance {faults.endurance_erases} {faults.seed}")
    return [*program.chip_commands, *commands, *chosen]
