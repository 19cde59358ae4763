"""The emulated board's kernel: Debian's armhf package, by apt into a cache of the project's own.

apt works on private folders (Dir::State, Dir::Cache), for a foreign architecture and an ordinary
user; it reads the machine's own sources, so no mirror is named here, and the host's package state
stays as it is. `update` may end with an error for a source that is listed but out of reach: what
counts is whether the package is found. Whole or not at all: a kernel is unpacked in a temporary
folder and renamed. Leaves out other distributions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed import places
from flashbed.targets.base import Unavailable

__all__ = ["KernelFiles", "cache_folder", "cached_kernel", "fetch_kernel"]

META_PACKAGE = "linux-image-armmp"
ARCHITECTURE = "armhf"
_TIMEOUT_S = 900
_MANIFEST = "kernel.json"


@dataclass(frozen=True)
class KernelFiles:
    """An unpacked kernel package."""

    package: str
    version: str
    image: Path
    modules: Path


def cache_folder() -> Path:
    """`FLASHBED_CACHE`, or build/cache of the checkout."""
    given = os.environ.get("FLASHBED_CACHE")
    return Path(given).resolve() if given else places.root() / "build" / "cache"


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


class _Apt:
    """apt on private folders."""

    def __init__(self, folder: Path) -> None:
        state, cache = folder / "state", folder / "cache"
        for below in (state / "lists" / "partial", cache / "archives" / "partial"):
            below.mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        options = {
            "APT::Architecture": ARCHITECTURE,
            "APT::Architectures": ARCHITECTURE,
            "Dir::State": state,
            "Dir::State::Lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": cache,
            "Acquire::Languages": "none",
        }
        if os.geteuid() == 0:
            options["APT::Sandbox::User"] = "root"
        self.options = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        """What it prints; whether it failed is for the caller to see in that."""
        done = subprocess.run(
            [program, *self.options, *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )
        return done.stdout + done.stderr


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Unavailable(
                f"{program} is not there; the board's kernel comes from Debian packages"
                " (on Debian: apt-get install apt dpkg)"
            )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(("E:", "Err:"))]
    return lines[-1] if lines else "apt found no such package"


def _resolve(apt: _Apt, said: str) -> str:
    found = re.search(r"Depends: (linux-image-\S+)", apt.run("apt-cache", "depends", META_PACKAGE))
    if not found:
        raise Unavailable(
            f"no package {META_PACKAGE} for {ARCHITECTURE} in the sources of apt"
            f" ({_last_line(said)})"
        )
    return found[1]


def _unpack(package: Path, folder: Path) -> None:
    _run(["dpkg-deb", "-x", str(package), str(folder)])
    shutil.rmtree(folder / "usr", ignore_errors=True)


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{command[0]} failed: {error}") from None


def _download(cache: Path) -> dict[str, str]:
    """Fetches and unpacks; what the manifest says."""
    apt = _Apt(cache / "apt")
    said = apt.run("apt-get", "update")
    name = _resolve(apt, said)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as made:
        work = Path(made)
        said = apt.run("apt-get", "download", name, folder=work)
        packages = sorted(work.glob("*.deb"))
        if not packages:
            raise Unavailable(f"{name} could not be downloaded ({_last_line(said)})")
        version = packages[0].name.split("_")[1].replace("%3a", ":")
        _unpack(packages[0], work / "kernel")
        folder = f"{name}_{version.replace(':', '-')}"
        shutil.rmtree(cache / folder, ignore_errors=True)
        (work / "kernel").rename(cache / folder)
    return {"package": name, "version": version, "folder": folder}


def fetch_kernel(cache: Path, say: Callable[[str], None]) -> KernelFiles:
    """The kernel, fetched if it is not there yet. Raises `Unavailable`."""
    found = cached_kernel(cache)
    if found:
        return found
    _need("apt-get", "apt-cache", "dpkg-deb")
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
