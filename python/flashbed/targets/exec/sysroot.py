"""Programs for the emulated board: a folder of the user's, or Debian packages for armhf.

apt resolves and downloads the packages in private folders (flashbed.targets.guest.debian): their
dependencies, without what they only recommend. They are unpacked without running their scripts. The
tree goes into the initramfs, which is memory and never counts as flash.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.locking import locked, scratch
from flashbed.targets.exec.folders import AT, COVERS, KERNELS
from flashbed.targets.guest.debian import Apt, unpack
from flashbed.targets.guest.initramfs import More
from flashbed.targets.unavailable import Unavailable

__all__ = ["BASE_PACKAGES", "Sysroot", "packages_folder", "read_sysroot"]

BASE_PACKAGES = ("dash",)
"""Packages in every tree: scripts need /bin/sh."""
_ARCHITECTURE = "armhf"
_VIEW = "view"
"""VIEW of agent/host/view.c."""
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_UNREAD = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
           "usr/share/lintian", "usr/share/bug")  # fmt: skip
"""Folders that no program needs to run; they would take memory."""
_BYTES_MAX = 1 << 30
_MANIFEST = "packages.json"

Say = Callable[[str], None]


@dataclass
class Sysroot:
    """The tree as it goes into an initramfs, at `view/`."""

    folders: list[str] = field(default_factory=list)
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    size_bytes: int = 0

    def more(self, files: dict[str, tuple[int, bytes]], folders: Sequence[str]) -> More:
        """The tree together with other files."""
        return More([*folders, *self._with_mounts()], {**files, **self.files}, self.links)

    def _with_mounts(self) -> list[str]:
        """The tree's folders, and mount points."""
        there = [*self.folders]
        for place in (*COVERS, *KERNELS, AT):
            parts = f"{_VIEW}{place}".split("/")
            for count in range(2, len(parts) + 1):
                path = "/".join(parts[:count])
                if path not in there and path not in self.links:
                    there.append(path)
        return there

    def find(self, word: str, search: str) -> str:
        """The path of a command in the tree. Raises `InputError`."""
        places = [word] if "/" in word else [f"{folder}/{word}" for folder in search.split(":")]
        for place in places:
            if self._executable(place):
                return place
        raise InputError(f"{word}: no such command in the sysroot")

    def _executable(self, place: str) -> bool:
        """Whether the file, or what it links to, is executable."""
        path = os.path.normpath(f"{_VIEW}/{place}")
        for _ in range(40):
            path, moved = self._step(path)
            if not moved:
                break
        return path in self.files and bool(self.files[path][0] & 0o111)

    def _step(self, path: str) -> tuple[str, bool]:
        """The path with its first link followed."""
        parts = path.split("/")
        for count in range(2, len(parts) + 1):
            target = self.links.get("/".join(parts[:count]))
            if target is not None:
                base = _VIEW if target.startswith("/") else "/".join(parts[: count - 1])
                rest = "/".join(parts[count:])
                return os.path.normpath(f"{base}/{target.lstrip('/')}/{rest}"), True
        return path, False


def read_sysroot(folder: Path) -> Sysroot:
    """Reads a whole tree. Raises `InputError`."""
    root = Sysroot([_VIEW])
    try:
        _walk(folder, "", root)
    except OSError as why:
        raise InputError(f"--sysroot {folder}: {why.strerror}") from None
    return root


def _walk(folder: Path, below: str, root: Sysroot) -> None:
    for path in sorted(folder.iterdir()):
        name = f"{below}/{path.name}" if below else path.name
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode):
            root.links[f"{_VIEW}/{name}"] = str(path.readlink())
        elif stat.S_ISDIR(about.st_mode):
            if name not in _UNREAD:
                root.folders.append(f"{_VIEW}/{name}")
                _walk(path, name, root)
        elif stat.S_ISREG(about.st_mode):
            root.size_bytes += about.st_size
            if root.size_bytes > _BYTES_MAX:
                raise InputError(f"--sysroot: more than {_BYTES_MAX >> 20:,} MiB of files")
            root.files[f"{_VIEW}/{name}"] = (stat.S_IMODE(about.st_mode), path.read_bytes())


def packages_folder(cache: Path, names: Sequence[str], say: Say) -> Path:
    """Unpacks packages into the cache. Raises `InputError` and `Unavailable`."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"--package {name}: not the name of a package")
    wanted = sorted({*names, *BASE_PACKAGES})
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    folder = cache / f"sysroot-{_ARCHITECTURE}-{digest}"
    if (folder / _MANIFEST).is_file():
        return folder / "tree"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with locked(cache / "apt.lock"):
            if not (folder / _MANIFEST).is_file():
                say(f"downloading {' '.join(wanted)} for {_ARCHITECTURE}, with dependencies")
                _fetch(cache, wanted, folder)
    except (OSError, subprocess.SubprocessError) as why:
        raise Unavailable(f"packages could not be fetched: {why}") from None
    return folder / "tree"


def _fetch(cache: Path, names: Sequence[str], folder: Path) -> None:
    apt = Apt(cache / "apt", _ARCHITECTURE)
    with scratch(cache, "fetch-") as work:
        whole = work / "whole"
        (whole / "tree").mkdir(parents=True)
        packages = apt.download_all(names, work / "packages")
        for package in packages:
            unpack(package, whole / "tree")
        manifest = [package.name.removesuffix(".deb") for package in packages]
        text = json.dumps(manifest, indent=1) + "\n"
        (whole / _MANIFEST).write_text(text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
