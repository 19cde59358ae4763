"""What the board of the ssh tests runs beside its kernel: Debian's dropbear and busybox for armhf.

Fetched by apt into the cache as the kernel is, whole or not at all. The list of packages is that of
dropbear's dependencies in Debian 12 (libtomcrypt brings libgmp); one that lacks a library shows at
the board's first boot.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from flashbed.base.locking import locked
from flashbed.targets.emulator.debian_kernel import ARCHITECTURE
from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.unavailable import Unavailable

__all__ = ["userland"]

_PACKAGES = (
    "dropbear-bin",
    "busybox-static",
    "libc6",
    "libcrypt1",
    "libtomcrypt1",
    "libtommath1",
    "libgmp10",
    "zlib1g",
)
_PROGRAMS = {
    "bin/busybox": "bin/busybox",
    "bin/dropbearkey": "usr/bin/dropbearkey",
    "sbin/dropbear": "usr/sbin/dropbear",
}
"""Path on the board -> path in the packages."""
_LIBRARIES = (
    "ld-linux-armhf.so.3",
    "libc.so.6",
    "libcrypt.so.1",
    "libgmp.so.10",
    "libtomcrypt.so.1",
    "libtommath.so.1",
    "libz.so.1",
)
_PLACES = ("lib/arm-linux-gnueabihf", "usr/lib/arm-linux-gnueabihf")


def userland(cache: Path) -> dict[str, Path]:
    """Path on the board (without the leading slash) -> file on the host.

    Fetched if they are not there yet. Raises `Unavailable`.
    """
    folder = cache / "ssh-board-armhf"
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "ssh-board.lock"):
        if not folder.is_dir():
            try:
                _fetch(cache, folder)
            except (OSError, subprocess.SubprocessError) as error:
                raise Unavailable(f"the ssh server's packages: {error}") from None
    files = {there: folder / path for there, path in _PROGRAMS.items()}
    for name in _LIBRARIES:
        found = [folder / place / name for place in _PLACES if (folder / place / name).is_file()]
        if not found:
            raise Unavailable(f"the ssh server's packages hold no {name}; remove {folder}")
        files[f"lib/{name}"] = found[0]
    return files


def _fetch(cache: Path, folder: Path) -> None:
    apt = Apt(cache / "apt", ARCHITECTURE)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as made:
        work = Path(made)
        whole = work / "whole"
        for package in _PACKAGES:
            unpack(apt.download(package, work)[0], whole)
        whole.rename(folder)
