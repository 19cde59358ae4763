"""The emulated board's kernel: Debian's armhf packages, unpacked in the cache.

It needs the image with its modules, and headers to compile our driver against: those of the same
release, the part they share with other flavours, and linux-kbuild's tools for this machine.
Packages are unpacked in a temporary folder that is then renamed, so a folder is whole or absent.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.files import whole
from flashbed.base.locking import locked, scratch
from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.guest.module import BuildTree
from flashbed.targets.unavailable import Unavailable

__all__ = [
    "CROSS_COMPILER",
    "META_PACKAGE",
    "KernelFiles",
    "cached_kernel",
    "fetch_headers",
    "fetch_kernel",
]

META_PACKAGE = "linux-image-armmp"
ARCHITECTURE = "armhf"
CROSS_COMPILER = "arm-linux-gnueabihf-gcc"
_MANIFEST = "kernel.json"
_APT_LOCK = "apt.lock"
_HOSTS = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machine -> Debian's name for it."""


@dataclass(frozen=True)
class KernelFiles:
    """An unpacked kernel package."""

    package: str
    version: str
    image: Path
    modules: Path


def cached_kernel(cache: Path) -> KernelFiles | None:
    """The kernel fetched by an earlier run, if there is one."""
    try:
        manifest = json.loads((cache / _MANIFEST).read_text(encoding="utf-8"))
        folder = cache / manifest["folder"]
        image = next((folder / "boot").glob("vmlinuz-*"))
        modules = next((folder / "lib" / "modules").iterdir())
    except (OSError, ValueError, KeyError, StopIteration):
        return None
    return KernelFiles(manifest["package"], manifest["version"], image, modules)


def _download(cache: Path) -> dict[str, str]:
    """Fetches and unpacks the kernel; returns its manifest."""
    apt = Apt(cache / "apt", ARCHITECTURE)
    name = apt.dependency(META_PACKAGE, "linux-image-")
    with scratch(cache, "fetch-") as work:
        package, version = apt.download(name, work)
        unpack(package, work / "kernel")
        shutil.rmtree(work / "kernel" / "usr", ignore_errors=True)
        folder = f"{name}_{version.replace(':', '-')}"
        shutil.rmtree(cache / folder, ignore_errors=True)
        (work / "kernel").rename(cache / folder)
    return {"package": name, "version": version, "folder": folder}


def fetch_kernel(cache: Path, say: Callable[[str], None]) -> KernelFiles:
    """The kernel; fetches it on first use. Raises `Unavailable`."""
    found = cached_kernel(cache)
    if found:
        return found
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / _APT_LOCK):
            return cached_kernel(cache) or _fetched_kernel(cache, say)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"the board's kernel could not be fetched: {error}") from None


def _fetched_kernel(cache: Path, say: Callable[[str], None]) -> KernelFiles:
    say("downloading the board's kernel (about 45 MB, once)")
    manifest = _download(cache)
    part = cache / f"{_MANIFEST}.part"
    part.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    part.replace(cache / _MANIFEST)
    found = cached_kernel(cache)
    if not found:
        raise Unavailable(f"{manifest['package']} holds no kernel image and modules")
    return found


def fetch_headers(cache: Path, kernel: KernelFiles, say: Callable[[str], None]) -> BuildTree:
    """The headers for our driver; fetches them on first use. Raises `Unavailable`."""
    if shutil.which(CROSS_COMPILER) is None:
        raise Unavailable(
            f"{CROSS_COMPILER} is not installed; it compiles the board's NAND driver"
            " (on Debian: apt-get install gcc-arm-linux-gnueabihf)"
        )
    release = kernel.package.removeprefix("linux-image-")
    folder = cache / f"linux-headers-{release}_{kernel.version.replace(':', '-')}"
    if not folder.is_dir():
        try:
            with locked(cache / _APT_LOCK):
                if not folder.is_dir():
                    say("downloading the headers of the board's kernel (about 11 MB, once)")
                    _download_headers(cache, release, folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"the kernel's headers could not be fetched: {error}") from None
    tree = folder / "usr" / "src" / f"linux-headers-{release}"
    _find_shared(tree)
    cross = CROSS_COMPILER.removesuffix("gcc")
    # The package names a compiler of one version, which may differ from the installed one.
    return BuildTree(tree, "arm", cross, (f"CC={CROSS_COMPILER}",))


def _download_headers(cache: Path, release: str, folder: Path) -> None:
    machine = platform.machine()
    if machine not in _HOSTS:
        raise Unavailable(f"Debian's kernel tools are not known for {machine}")
    apt = Apt(cache / "apt", ARCHITECTURE)
    name = f"linux-headers-{release}"
    shared = apt.dependency(name, "linux-headers-")
    tools = apt.dependency(name, "linux-kbuild-")
    with scratch(cache, "fetch-") as work:
        unpacked = work / "whole"
        for package in (name, shared):
            unpack(apt.download(package, work)[0], unpacked)
        # Lists of its own: the same package exists for the board's architecture.
        host = Apt(cache / "apt-host", _HOSTS[machine])
        unpack(host.download(tools, work)[0], unpacked)
        unpacked.rename(folder)


def _find_shared(tree: Path) -> None:
    """Makes the headers include those that they share from beside them.

    The package includes them from where apt would have installed it. A cache moves with a
    checkout, and may come from another one.
    """
    makefile = tree / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    shared = Path(text.removeprefix("include ").strip()).parent.name
    beside = f"include ../{shared}/Makefile\n"
    if text != beside:
        with whole(makefile) as new:
            new.write_text(beside, encoding="utf-8")
