"""The emulated board's kernel: Debian's armhf package, unpacked in the cache.

Whole or not at all: a kernel is unpacked in a temporary folder and renamed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashbed.targets.base import Unavailable
from flashbed.targets.guest.debian import Apt, need, unpack

__all__ = ["ARCHITECTURE", "META_PACKAGE", "KernelFiles", "cached_kernel", "fetch_kernel"]

META_PACKAGE = "linux-image-armmp"
ARCHITECTURE = "armhf"
_MANIFEST = "kernel.json"


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
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as made:
        work = Path(made)
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
    need("apt-get", "apt-cache", "dpkg-deb")
    say("downloading the board's kernel (about 45 MB, once)")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        manifest = _download(cache)
        part = cache / f"{_MANIFEST}.part"
        part.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        part.replace(cache / _MANIFEST)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"the board's kernel could not be fetched: {error}") from None
    found = cached_kernel(cache)
    if not found:
        raise Unavailable(f"{manifest['package']} holds no kernel image and modules")
    return found
