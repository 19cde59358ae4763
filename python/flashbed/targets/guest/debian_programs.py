"""Debian's programs for this machine, out of packages that apt fetches into the cache.

They are not installed: a program is started by the loader of its own packages, with their
libraries, so that every machine runs the same version.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

from flashbed.base.locking import locked, scratch
from flashbed.targets.guest.debian import Apt, unpack

__all__ = ["LOADER", "command", "unpacked", "with_libraries"]

LOADER = "ld-linux-x86-64.so.2"
_ARCHITECTURE = "amd64"
_TRIPLET = "x86_64-linux-gnu"
_LIBRARY = re.compile(r"=> (\S+) ")

Say = Callable[[str], None]


def unpacked(cache: Path, packages: Collection[str], say: Say) -> Path:
    """The unpacked packages with all they depend on, fetched on first use.

    Raises `Unavailable`.
    """
    names = sorted(packages)
    folder = cache / f"mkfs-{'-'.join(names)}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "apt-mkfs.lock"):
        if not folder.is_dir():
            say(f"downloading {' and '.join(names)}")
            with scratch(cache, "fetch-") as work:
                apt = Apt(cache / "apt-mkfs", _ARCHITECTURE)
                for package in apt.download_all(names, work / "packages"):
                    unpack(package, work / "tree")
                shutil.rmtree(folder, ignore_errors=True)
                (work / "tree").rename(folder)
    return folder


def command(tree: Path, program: Path) -> list[str]:
    """The words that start an unpacked program."""
    loader = tree / "lib" / _TRIPLET / LOADER
    places = [folder for folder in tree.rglob(_TRIPLET) if folder.is_dir()]
    return [str(loader), "--library-path", ":".join(map(str, places)), str(program)]


def with_libraries(tree: Path, program: Path) -> dict[str, bytes]:
    """A program, the loader and the libraries that it finds, by name."""
    loader, *options, name = command(tree, program)
    listed = subprocess.run(
        [loader, *options, "--list", name],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    found = [Path(path) for path in _LIBRARY.findall(listed.stdout)]
    return {path.name: path.read_bytes() for path in (Path(loader), program, *found)}
