"""Disks with a flash translation layer, and file systems of disks on them, for a guest.

kernel/flashbed_ftl is the layer. The program that makes a file system is Debian's; apt fetches it
into the cache with its libraries. They go into the initramfs below /mkfs with the command as
agent/fs/disk.c reads it: a word a line, without the device.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from flashbed.stack.file_systems import ON_FTL, has_ftl
from flashbed.stack.profiles import Board
from flashbed.targets.guest.debian_programs import LOADER, unpacked, with_libraries
from flashbed.targets.guest.initramfs import More
from flashbed.targets.guest.module import (
    BuildTree,
    ModuleNotBuilt,
    ModuleSource,
    built_module,
    check_kernel,
    sources_of,
)
from flashbed.targets.unavailable import Unavailable

__all__ = ["disk_refusal", "makers", "memory_mib", "modules_of", "prepare"]

MODULE = "flashbed_ftl"
_MAKERS_MIB = 8
"""Memory for the program and its libraries."""
_RESERVED, _RESERVED_WITH_MAP = 2, 3
_SPARE_PERMILLE = 69
"""Of kernel/flashbed_ftl/scan.c and agent/fs/disk.c."""
_SERIES = (6, 1)
"""The kernel that kernel/flashbed_ftl is written for."""
_FOLDER = "mkfs"

Say = Callable[[str], None]


def modules_of(fs: str, cache: Path, tree: BuildTree, say: Say) -> list[Path]:
    """The module that makes a disk of the partition, if a file system needs it.

    Raises `ModuleNotBuilt`.
    """
    if not has_ftl(fs):
        return []
    check_kernel(fs, MODULE, tree, since=_SERIES, until=_SERIES)
    try:
        return [built_module(cache, ModuleSource(MODULE, sources_of(MODULE)), tree, say)]
    except Unavailable as why:
        raise ModuleNotBuilt(f"fs {fs}: {why}") from None


def disk_refusal(fs: str, board: Board, options: str) -> str | None:
    """Why a file system cannot be made on the disk of a partition; None if it can."""
    if fs not in ON_FTL:
        return None
    given = dict(word.partition("=")[::2] for word in options.split(","))
    reserve = _RESERVED_WITH_MAP if "map_pages" in given else _RESERVED
    pages = (board.partition.blocks - reserve) * board.chip.pages_per_block
    shown = pages * (1000 - int(given.get("spare_permille", _SPARE_PERMILLE))) // 1000
    mib, least = shown * board.chip.page_bytes / 2**20, ON_FTL[fs].disk_mib_min
    if mib >= least:
        return None
    blocks = board.partition.blocks
    return f"{blocks} make a disk of {mib:.1f} MiB, {fs} needs {least}"


def memory_mib(fs: str) -> int:
    """A guest's memory besides that of its board."""
    return _MAKERS_MIB if fs in ON_FTL else 0


def makers(fs: str, cache: Path, say: Say) -> More:
    """What makes a file system of disks, as a part of an initramfs; nothing for others.

    Raises `ModuleNotBuilt`.
    """
    if fs not in ON_FTL:
        return More()
    row = ON_FTL[fs]
    try:
        tree = unpacked(cache, {row.package for row in ON_FTL.values()}, say)
        program, *options = row.make
        files = with_libraries(tree, tree / program)
    except (OSError, subprocess.SubprocessError, Unavailable) as why:
        raise ModuleNotBuilt(f"fs {fs}: {why}") from None
    words = [f"/{_FOLDER}/{LOADER}", "--library-path", f"/{_FOLDER}"]
    words += [f"/{_FOLDER}/{Path(program).name}", *options]
    command = ("\n".join(words) + "\n").encode("ascii")
    return More(
        folders=(_FOLDER,),
        files={
            **{f"{_FOLDER}/{name}": (0o755, content) for name, content in files.items()},
            f"{_FOLDER}/{fs}": (0o644, command),
        },
    )


def prepare(cache: Path, tree: BuildTree, say: Say) -> None:
    """Builds the layer and fetches the programs, or says why not."""
    try:
        for fs in ON_FTL:
            modules_of(fs, cache, tree, say)
            makers(fs, cache, say)
    except ModuleNotBuilt as why:
        say(str(why))
