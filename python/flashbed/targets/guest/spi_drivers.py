"""Linux' own drivers of SPI flash as modules, for kernels that lack them, or built otherwise.

Debian's kernels have no SPI-NAND driver (drivers/mtd/nand/spi). Its SPI-NOR core (drivers/mtd/
spi-nor) erases 4 KiB where a chip can, as `CONFIG_MTD_SPI_NOR_USE_4K_SECTORS` says, and JFFS2 then
has blocks that products do not choose; here it is built without.

The drivers' files come from Debian's package of the same series' sources. The repository holds
nothing of them. kernel/flashbed_nand is the chip and its controller.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.locking import locked, scratch
from flashbed.stack.profiles import Board
from flashbed.targets.guest.linux_source import fetched_source, unpacked_source
from flashbed.targets.guest.module import BuildTree, ModuleNotBuilt, ModuleSource, built_module
from flashbed.targets.unavailable import Unavailable

__all__ = ["modules_of", "names"]

_ALIASES = re.compile(rb"^MODULE_DEVICE_TABLE\(.*\);$", re.MULTILINE)
"""Names by which a kernel loads the driver when it finds a device. Ours are loaded in order, and
Debian's tools for a foreign architecture take such tables for those of the host."""


@dataclass(frozen=True)
class _Driver:
    """A driver of Linux: our module's name, the folder of its files."""

    module: str
    title: str
    folder: str
    without: tuple[str, ...] = ()
    """Options of the kernel that its files are built without."""


_NAND = _Driver("spinand", "SPI-NAND", "drivers/mtd/nand/spi")
_NOR = _Driver(
    "spinor", "SPI-NOR", "drivers/mtd/spi-nor", without=("CONFIG_MTD_SPI_NOR_USE_4K_SECTORS",)
)


def _driver(board: Board) -> _Driver | None:
    if board.spi is not None:
        return _NAND
    return _NOR if board.nor is not None else None


def names(board: Board) -> tuple[str, ...]:
    """The module that has to be loaded before the chip's."""
    driver = _driver(board)
    return () if driver is None else (driver.module,)


def modules_of(
    board: Board, series: str, *, cache: Path, tree: BuildTree, say: Callable[[str], None]
) -> list[Path]:
    """The driver that the board's chip needs; none for raw NAND. Raises `ModuleNotBuilt`."""
    driver = _driver(board)
    if driver is None:
        return []
    try:
        return [built_module(cache, _source(driver, cache, series, say), tree, say)]
    except Unavailable as why:
        raise ModuleNotBuilt(str(why)) from None


def _source(driver: _Driver, cache: Path, series: str, say: Callable[[str], None]) -> ModuleSource:
    """The driver's files with a Kbuild of flashbed's."""
    files = {
        path.name: _ALIASES.sub(b"", path.read_bytes())
        for path in _files(driver, cache, series, say)
    }
    objects = " ".join(f"{Path(name).stem}.o" for name in files if name.endswith(".c"))
    kbuild = f"obj-m := {driver.module}.o\n{driver.module}-y := {objects}\n"
    if driver.without:
        files["without.h"] = "".join(f"#undef {one}\n" for one in driver.without).encode()
        kbuild += "ccflags-y += -include $(src)/without.h\n"
    files["Kbuild"] = kbuild.encode()
    return ModuleSource(driver.module, dict(sorted(files.items())))


def _files(driver: _Driver, cache: Path, series: str, say: Callable[[str], None]) -> list[Path]:
    """The driver's files in the cache, unpacked on first use."""
    try:
        package, version = fetched_source(cache, series, say)
        folder = cache / f"{driver.module}-{version}"
        with locked(cache / f"{driver.module}.lock"):
            if not folder.is_dir():
                say(f"unpacking the {driver.title} driver of Linux {series}")
                with scratch(cache, "fetch-") as work:
                    unpacked_source(package, work / "tree", only=(f"{driver.folder}/",))
                    (work / "tree" / driver.folder).rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        why = f"Linux' {driver.title} driver could not be fetched: {error}"
        raise Unavailable(why) from None
    return [path for path in sorted(folder.iterdir()) if path.suffix in (".c", ".h")]
