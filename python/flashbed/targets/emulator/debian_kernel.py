"""The emulated board's kernels: Debian's armhf packages, unpacked in the cache.

Each needs the image with its modules, and headers to compile our driver against: those of the same
release, the part they share with other flavours, and linux-kbuild's tools for this machine. They
come from the machine's own release of Debian, or else from any other that its mirror has. Packages
are unpacked in a temporary folder that is then renamed, so a folder is whole or absent.
"""

from __future__ import annotations

import json
import lzma
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.files import whole
from flashbed.base.locking import locked, scratch
from flashbed.targets.emulator.kernel_tools import made_runnable
from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.guest.module import BuildTree
from flashbed.targets.unavailable import Unavailable

__all__ = [
    "CROSS_COMPILER",
    "KERNELS",
    "KernelFiles",
    "cached_kernel",
    "fetch_headers",
    "fetch_kernel",
]

KERNELS = ("6.1", "6.12", "5.10", "7.3")
"""Kernel profiles that the board can boot, the usual one first."""
FLAVOUR = "armmp"
ARCHITECTURE = "armhf"
CROSS_COMPILER = "arm-linux-gnueabihf-gcc"
_APT_LOCK = "apt.lock"
_PARTS = ("linux-base-", "linux-binary-", "linux-modules-")
"""Packages that image and modules are in since 7.3; before, they are in linux-image itself."""
_NOT_KEPT = ("usr/share", "usr/lib/linux-*")
"""Documents, and trees of devices: QEMU's machine describes itself."""
_HOSTS = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machine -> Debian's name for it."""


@dataclass(frozen=True, kw_only=True)
class KernelFiles:
    """An unpacked kernel package."""

    series: str
    package: str
    version: str
    image: Path
    modules: Path


def _manifest(cache: Path, series: str) -> Path:
    return cache / ("kernel.json" if series == KERNELS[0] else f"kernel-{series}.json")


def cached_kernel(cache: Path, series: str = KERNELS[0]) -> KernelFiles | None:
    """The kernel fetched by an earlier run, if there is one."""
    try:
        manifest = json.loads(_manifest(cache, series).read_text(encoding="utf-8"))
        folder = cache / manifest["folder"]
        images = [*folder.glob("boot/vmlinuz-*"), *folder.glob("usr/lib/modules/*/vmlinuz")]
        modules = [*folder.glob("lib/modules/*"), *folder.glob("usr/lib/modules/*")]
        return KernelFiles(
            series=series, package=manifest["package"], version=manifest["version"],
            image=images[0], modules=modules[0],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _download(cache: Path, series: str) -> dict[str, str]:
    """Fetches and unpacks the kernel; returns its manifest."""
    apt, name = _found(cache, series)
    with scratch(cache, "fetch-") as work:
        package, version = apt.download(name, work)
        parts = [part for part in apt.depends(name) if part.startswith(_PARTS)]
        for file in (package, *(apt.download(part, work)[0] for part in parts)):
            unpack(file, work / "kernel")
        for pattern in _NOT_KEPT:
            for path in (work / "kernel").glob(pattern):
                path.unlink() if path.is_symlink() else shutil.rmtree(path)
        _decompress(work / "kernel")
        folder = f"{name}_{version.replace(':', '-')}"
        shutil.rmtree(cache / folder, ignore_errors=True)
        (work / "kernel").rename(cache / folder)
    return {"package": name, "version": version, "folder": folder}


def _found(cache: Path, series: str) -> tuple[Apt, str]:
    """The newest image of a series, and the lists that it is in. Raises `Unavailable`."""
    apt = Apt(cache / "apt", ARCHITECTURE)
    name = _newest(apt, series)
    if name is None:
        apt = Apt(cache / "apt-releases", ARCHITECTURE, releases=True)
        name = _newest(apt, series)
    if name is None:
        raise Unavailable(f"no linux-image-{series} for {ARCHITECTURE} in the sources of apt")
    return apt, name


def _newest(apt: Apt, series: str) -> str | None:
    prefix = f"linux-image-{series}"
    wanted = re.compile(rf"{re.escape(prefix)}(?:\.\d+)*(?:-\d+)?(?:\+deb\d+)?-{FLAVOUR}")
    names = [name for name in apt.names(prefix) if wanted.fullmatch(name)]
    return max(names, key=lambda name: [int(one) for one in re.findall(r"\d+", name)], default=None)


def _decompress(kernel: Path) -> None:
    """Modules as every boot needs them; decompressing them would cost the emulated CPU more."""
    for path in kernel.rglob("*.ko.xz"):
        path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
        path.unlink()


def fetch_kernel(cache: Path, series: str, say: Callable[[str], None]) -> KernelFiles:
    """The kernel; fetches it on first use. Raises `Unavailable`."""
    found = cached_kernel(cache, series)
    if found:
        return found
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / _APT_LOCK):
            return cached_kernel(cache, series) or _fetched_kernel(cache, series, say)
    except (OSError, subprocess.SubprocessError, lzma.LZMAError) as error:
        raise Unavailable(f"the board's kernel could not be fetched: {error}") from None


def _fetched_kernel(cache: Path, series: str, say: Callable[[str], None]) -> KernelFiles:
    say(f"downloading the board's Linux {series} (40 to 60 MB, once)")
    manifest = _download(cache, series)
    with whole(_manifest(cache, series)) as new:
        new.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    found = cached_kernel(cache, series)
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
    name = f"linux-headers-{release}"
    with scratch(cache, "fetch-") as work:
        unpacked = work / "whole"
        apt = _having(name, cache, ARCHITECTURE, "")
        for package in (name, apt.dependency(name, "linux-headers-")):
            unpack(apt.download(package, work)[0], unpacked)
        # Lists of its own: the same package exists for the board's architecture.
        tools = apt.dependency(name, "linux-kbuild-")
        host = _having(tools, cache, _HOSTS[machine], "-host")
        unpack(host.download(tools, work)[0], unpacked)
        made_runnable(unpacked / "usr" / "lib" / tools, host, work)
        unpacked.rename(folder)


def _having(package: str, cache: Path, architecture: str, lists: str) -> Apt:
    """Apt with lists that have the package: the machine's own, or those of all releases."""
    own = Apt(cache / f"apt{lists}", architecture)
    if package in own.names(package):
        return own
    return Apt(cache / f"apt-releases{lists}", architecture, releases=True)


def _find_shared(tree: Path) -> None:
    """Makes the headers include those that they share from beside them.

    The package includes them from where apt would have installed it. A cache moves with a
    checkout, and may come from another one.
    """
    makefile = tree / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    beside = re.sub(r"(?m)^include /\S+/([^/\s]+/Makefile)$", r"include ../\1", text)
    beside = re.sub(r"(?m)^KBUILD_OUTPUT=.*$", "KBUILD_OUTPUT=$(CURDIR)", beside)
    if text != beside:
        with whole(makefile) as new:
            new.write_text(beside, encoding="utf-8")
