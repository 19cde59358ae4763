"""Builds our kernel modules for a guest's kernel and keeps them in the cache.

A cached module is keyed by its sources and the tree it is built against. It is built in a temporary
folder, which is then renamed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.base import paths
from flashbed.base.locking import locked, scratch
from flashbed.stack.nearest_kernel import release_of
from flashbed.targets.guest.building import build
from flashbed.targets.unavailable import Unavailable

__all__ = [
    "BuildTree",
    "ModuleNotBuilt",
    "ModuleSource",
    "OtherKernel",
    "built_module",
    "cached_module",
    "check_kernel",
    "sources_of",
]

_TIMEOUT_S = 600
_KINDS = (".c", ".h", "")


class ModuleNotBuilt(Unavailable):
    """A module that a stack needs is unavailable here: only cases that need it do not run."""


class OtherKernel(ModuleNotBuilt):
    """The module is not written for this kernel, so nothing can be measured."""


@dataclass(frozen=True)
class BuildTree:
    """What a module is built against: a kernel's build tree, ARCH, a cross compiler's prefix."""

    path: Path
    arch: str
    cross: str = ""
    arguments: Sequence[str] = ()
    """Further settings of make that the tree needs."""


@dataclass(frozen=True)
class ModuleSource:
    """A module's sources: path within its folder -> content, sorted by path."""

    name: str
    files: Mapping[str, bytes]


def _kernel_release(tree: BuildTree) -> str:
    """The release of a built kernel."""
    try:
        path = tree.path / "include" / "config" / "kernel.release"
        return path.read_text(encoding="utf-8").strip()
    except OSError:  # Debian's headers keep it elsewhere; their folder has it
        return tree.path.name.removeprefix("linux-headers-")


def check_kernel(
    fs: str, module: str, tree: BuildTree, *, since: tuple[int, int], until: tuple[int, int]
) -> None:
    """Raises `OtherKernel` if the module is for Linux of other series than the tree's."""
    release = _kernel_release(tree)
    if since <= release_of(release)[:2] <= until:
        return
    versions = " to ".join(".".join(map(str, one)) for one in dict.fromkeys((since, until)))
    raise OtherKernel(f"fs {fs}: kernel/{module} is for Linux {versions}, this is {release}")


def sources_of(name: str) -> dict[str, bytes]:
    """The files of kernel/NAME and its folders."""
    folder = paths.root() / "kernel" / name
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in _KINDS and not path.name.startswith(".")
    }


def _folder(cache: Path, source: ModuleSource, tree: BuildTree) -> Path:
    digest = hashlib.sha256(f"{tree.path.name} {tree.arch} {tree.cross}\n".encode())
    for name, content in source.files.items():
        digest.update(f"{name}\n".encode() + content)
    return cache / f"{source.name}-{tree.arch}-{digest.hexdigest()[:16]}"


def cached_module(cache: Path, source: ModuleSource, tree: BuildTree) -> Path | None:
    """The module built by an earlier run, if there is one."""
    module = _folder(cache, source, tree) / f"{source.name}.ko"
    return module if module.is_file() else None


def built_module(
    cache: Path, source: ModuleSource, tree: BuildTree, say: Callable[[str], None]
) -> Path:
    """The module; builds it on first use. Raises `Unavailable`."""
    found = cached_module(cache, source, tree)
    if found:
        return found
    say(f"building {source.name} for {tree.path.name}")
    log = cache / f"{source.name}-{tree.arch}.log"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with locked(cache / f"{source.name}.lock"):
            return cached_module(cache, source, tree) or _build(cache, source, tree, log)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{source.name} could not be built: {error}; log: {log}") from None


def _build(cache: Path, source: ModuleSource, tree: BuildTree, log: Path) -> Path:
    command = ["make", "-C", str(tree.path), f"ARCH={tree.arch}", *tree.arguments]
    if tree.cross:
        command.append(f"CROSS_COMPILE={tree.cross}")
    with scratch(cache, "module-") as made:
        work = made / "module"
        for name, content in source.files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
        command += [f"M={work}", f"-j{os.cpu_count() or 1}", "modules"]
        build(source.name, [command], log, folder=work, timeout_s=_TIMEOUT_S)
        module = work / f"{source.name}.ko"
        # Debugging information is most of the file, and every boot would have to unpack it.
        subprocess.run([f"{tree.cross}strip", "-g", str(module)], check=True, timeout=_TIMEOUT_S)
        folder = _folder(cache, source, tree)
        part = made / "whole"
        part.mkdir()
        shutil.copy(module, part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder / module.name
