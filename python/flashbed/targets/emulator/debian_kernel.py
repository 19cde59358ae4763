"""The emulated board's kernel: Debian's armhf packages, unpacked in the cache.

The image with its modules, and the headers that our driver is compiled against: those of the same
release, the part they share with other flavours, and the tools (linux-kbuild) for this machine.
Whole or not at all: packages are unpacked in a temporary folder and renamed.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashbed.storage.locking import locked, scratch
from flashbed.targets.base import Unavailable
from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.guest.module import Tree

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
"""Machine -> Debian's name of it."""


@dataclass(frozen=True)
class KernelFiles:
    """An unpacked kernel package."""

    package: str
    version: str
    image: Path
    modules: Path


def cached_kernel(cache: Path) -> KernelFiles | None:
    """The kernel that was fetched before, if there is one."""
    try:
        manifest = json.loads((cache / _MANIFEST).read_text(encoding="utf-8"))
        folder = cache / manifest["folder"]
        image = next((folder / "boot").glob("vmlinuz-*"))
        modules = next((folder / "lib" / "modules").iterdir())
    except (OSError, ValueError, KeyError, StopIteration):
        return None
    return KernelFiles(manifest["package"], manifest["version"], image, modules)


def _download(cache: Path) -> dict[str, str]:
    """Fetches and unpacks; what the manifest says."""
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
    """The kernel, fetched if it is not there yet. Raises `Unavailable`."""
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


def fetch_headers(cache: Path, kernel: KernelFiles, say: Callable[[str], None]) -> Tree:
    """What our driver is compiled against, fetched if it is not there yet. Raises `Unavailable`."""
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
    cross = CROSS_COMPILER.removesuffix("gcc")
    # The package asks for the compiler by its version, which may be another one here.
    return Tree(tree, "arm", cross, (f"CC={CROSS_COMPILER}",))


def _download_headers(cache: Path, release: str, folder: Path) -> None:
    machine = platform.machine()
    if machine not in _HOSTS:
        raise Unavailable(f"Debian's kernel tools are not known for {machine}")
    apt = Apt(cache / "apt", ARCHITECTURE)
    name = f"linux-headers-{release}"
    shared = apt.dependency(name, "linux-headers-")
    tools = apt.dependency(name, "linux-kbuild-")
    with scratch(cache, "fetch-") as work:
        whole = work / "whole"
        for package in (name, shared):
            unpack(apt.download(package, work)[0], whole)
        # Separate lists: of the same package for another machine.
        host = Apt(cache / "apt-host", _HOSTS[machine])
        unpack(host.download(tools, work)[0], whole)
        # The package names where it would be installed.
        makefile = whole / "usr" / "src" / name / "Makefile"
        shared_makefile = folder / "usr" / "src" / shared / "Makefile"
        makefile.write_text(f"include {shared_makefile.resolve()}\n", encoding="utf-8")
        whole.rename(folder)
