"""Linux' own SPI-NAND driver as a module, for kernels that are built without it, as Debian's are.

The driver's files (drivers/mtd/nand/spi) come from Debian's package of the same series' sources.
The repository holds nothing of them. kernel/flashbed_nand is the chip and its controller.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from flashbed.base.locking import locked, scratch
from flashbed.stack.profiles import Board
from flashbed.targets.guest.linux_source import fetched_source, unpacked_source
from flashbed.targets.guest.module import BuildTree, ModuleNotBuilt, ModuleSource, built_module
from flashbed.targets.unavailable import Unavailable

__all__ = ["modules_of", "names"]

_FOLDER = "drivers/mtd/nand/spi"
_MODULE = "spinand"
_ALIASES = re.compile(rb"^MODULE_DEVICE_TABLE\(.*\);$", re.MULTILINE)
"""Names by which a kernel loads the driver when it finds a device. Ours are loaded in order, and
Debian's tools for a foreign architecture take such tables for those of the host."""


def names(board: Board) -> tuple[str, ...]:
    """The module that has to be loaded before the chip's."""
    return () if board.spi is None else (_MODULE,)


def modules_of(
    board: Board, series: str, *, cache: Path, tree: BuildTree, say: Callable[[str], None]
) -> list[Path]:
    """The driver that the board's chip needs; none for raw NAND. Raises `ModuleNotBuilt`."""
    if board.spi is None:
        return []
    try:
        return [built_module(cache, _source(cache, series, say), tree, say)]
    except Unavailable as why:
        raise ModuleNotBuilt(str(why)) from None


def _source(cache: Path, series: str, say: Callable[[str], None]) -> ModuleSource:
    """The driver's files with a Kbuild of flashbed's."""
    files = {
        path.name: _ALIASES.sub(b"", path.read_bytes()) for path in _driver(cache, series, say)
    }
    objects = " ".join(f"{Path(name).stem}.o" for name in files)
    files["Kbuild"] = f"obj-m := {_MODULE}.o\n{_MODULE}-y := {objects}\n".encode()
    return ModuleSource(_MODULE, dict(sorted(files.items())))


def _driver(cache: Path, series: str, say: Callable[[str], None]) -> list[Path]:
    """The driver's files in the cache, unpacked on first use."""
    try:
        package, version = fetched_source(cache, series, say)
        folder = cache / f"{_MODULE}-{version}"
        with locked(cache / f"{_MODULE}.lock"):
            if not folder.is_dir():
                say(f"unpacking the SPI-NAND driver of Linux {series}")
                with scratch(cache, "fetch-") as work:
                    unpacked_source(package, work / "tree", only=(f"{_FOLDER}/",))
                    (work / "tree" / _FOLDER).rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"Linux' SPI-NAND driver could not be fetched: {error}") from None
    return sorted(folder.glob("*.c"))
