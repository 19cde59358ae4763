"""Adds a kernel of the user: builds user-mode Linux from its tree, and begins its profile.

The tree is copied and never changed. It is built as Debian's are (uml_kernel.py), with what of
flashbed's changes applies; the rest is kept in the manifest, by file. Where Debian's sources of the
kernel that it is most like can be had, the functions that differ from those are listed too.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.locking import locked, scratch
from flashbed.base.paths import kernel_files, own_kernels_folder, shown
from flashbed.stack.imported.begun_kernel import begun_kernel_text
from flashbed.stack.imported.kernel_facts import facts_of, options_of_storage, read_options
from flashbed.stack.imported.kernel_tree import MODELLED, KernelTree
from flashbed.stack.names import is_name
from flashbed.stack.nearest_kernel import release_of
from flashbed.stack.profiles import load_kernel
from flashbed.targets.guest.debian import run
from flashbed.targets.guest.linux_source import fetched_source, unpacked_source
from flashbed.targets.uml.kernel_changes import CHANGES_BEFORE_6_1, NotApplied, apply_changes
from flashbed.targets.uml.own_kernels import OwnKernel
from flashbed.targets.uml.programs_kernel import programs_kernel
from flashbed.targets.uml.uml_kernel import KERNELS, Recipe, can_build, compiled, plain_recipe
from flashbed.targets.unavailable import Unavailable

__all__ = ["add_kernel"]

DIFFERENCES = "differences.txt"
_SPI_TABLES = "drivers/mtd/nand/spi"
_LEFT_OUT = (
    ".git", "*.o", "*.ko", "*.a", ".*.cmd", ".config", "vmlinux", "include/generated",
    "include/config",
)  # fmt: skip
"""Of a folder: what a build of another architecture left there."""
_CONFIG_BYTES_MAX = 1 << 21
_DELAYS = "time_travel_ndelay"
"""5.4 has CONFIG_UML_TIME_TRAVEL_SUPPORT, but its delays take no virtual time."""
_NEEDED = (
    "UML_TIME_TRAVEL_SUPPORT", "MODULES", "HOSTFS", "BLK_DEV_INITRD", "MTD", "MTD_RAW_NAND",
    "MTD_UBI", "JFFS2_FS", "UBIFS_FS",
)  # fmt: skip
"""Options without which nothing runs; others are told and left out."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Work:
    """What is known while a kernel is added."""

    name: str
    source: Path
    cache: Path
    work: Path
    say: Say

    def unpacked(self, folder: str) -> Path:
        """A fresh copy of the user's tree."""
        tree = self.work / folder / "tree"
        tree.mkdir(parents=True)
        if self.source.is_dir():
            left_out = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
            packed = self.work / "packed.tar"
            run(["tar", "-cf", str(packed), *left_out, "-C", str(self.source), "."])
            run(["tar", "-xf", str(packed), "-C", str(tree)])
            packed.unlink()
        else:
            run(["tar", "-xf", str(self.source), "-C", str(tree)])
        inside = list(tree.iterdir())
        return inside[0] if len(inside) == 1 and inside[0].is_dir() else tree


def add_kernel(
    cache: Path, name: str, source: Path, *, config: Path | None, programs: bool, say: Say
) -> OwnKernel:
    """Builds a kernel from a folder or an archive, and keeps it. Raises `InputError`."""
    _check_name(cache, name)
    if not source.exists():
        raise InputError(f"--source {shown(source)}: no such folder or archive")
    options = read_options(read_text(config, _CONFIG_BYTES_MAX, InputError)) if config else {}
    if config and not options:
        raise InputError(f"--config {shown(config)}: no line CONFIG_NAME=VALUE")
    can_build()
    own_kernels_folder(cache).mkdir(parents=True, exist_ok=True)
    with locked(cache / f"kernel-{name}.lock"), scratch(cache, "build-") as folder:
        _check_name(cache, name)
        work = _Work(name=name, source=source, cache=cache, work=folder, say=say)
        try:
            return _added(work, options, programs=programs)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"{name} could not be built: {error}") from None


def _check_name(cache: Path, name: str) -> None:
    if not is_name(name):
        raise InputError(f"{name}: not a kernel's name")
    there = kernel_files().get(name)
    if there is not None or (own_kernels_folder(cache) / name).exists():
        how = ""
        if there is None or there.is_relative_to(own_kernels_folder(cache)):
            how = f"; `flashbed kernel remove {name}` removes it"
        raise InputError(f"{name}: there is a kernel of this name{how}")


def _added(work: _Work, options: Mapping[str, str | None], *, programs: bool) -> OwnKernel:
    work.say(f"unpacking {shown(work.source)}")
    tree = work.unpacked("uml")
    found = KernelTree(tree)
    release = _release(found, work.source)
    like = load_kernel(_most_like(release))
    whole = work.work / "whole"
    (whole / "spi").mkdir(parents=True)
    for file in sorted((tree / _SPI_TABLES).glob("*.c")):
        shutil.copy(file, whole / "spi")
    base, told = _base(work, like.name)
    differing = found.differing(base) if base else {}
    digest = found.sha256()
    said = f"{release}, sources {digest[:12]}"
    facts = facts_of(found, options, like, base)
    profile = begun_kernel_text(work.name, release, said, facts=facts, like=like)
    (whole / f"{work.name}.toml").write_text(profile, encoding="utf-8")
    lines = [f"{file}: {' '.join(names)}\n" for file, names in differing.items()]
    (whole / DIFFERENCES).write_text("".join(lines) if base else f"{told}\n", encoding="utf-8")
    recipes = {"uml": plain_recipe(options_of_storage(options))}
    missing: dict[str, list[str]] = {}
    built: dict[str, str] = {}
    lost: list[str] = []
    if programs:
        recipes["uml-programs"] = programs_kernel(options_of_storage(options))
    else:
        missing["uml-programs"] = _would_lack(tree, programs_kernel(), work.work / "tried")
    for kind, recipe in recipes.items():
        if kind != "uml":
            tree = work.unpacked(kind)
        built[kind], missing[kind], lost = _built(work, tree, recipe, release=release, whole=whole)
    kernel = OwnKernel(
        name=work.name, release=release, source=str(work.source.resolve()), sources_sha256=digest,
        like=like.name, builds=built, not_applied=missing, lost_options=lost, differing=differing,
    )  # fmt: skip
    kernel.save(whole)
    whole.rename(own_kernels_folder(work.cache) / work.name)
    return kernel


def _release(tree: KernelTree, source: Path) -> str:
    release = tree.release
    if release is None:
        raise InputError(f"--source {shown(source)}: no kernel: its Makefile names no version")
    if _DELAYS not in tree.text("arch/um/kernel/time.c"):
        raise InputError(
            f"--source {shown(source)}: Linux {release} has no virtual time in which a chip is busy"
            f" ({_DELAYS} of arch/um; 5.10 has it), so user-mode Linux cannot run it"
        )
    return release


def _most_like(release: str) -> str:
    """The newest kernel of user-mode Linux that is not newer, or the oldest."""
    older = [name for name in KERNELS if release_of(name) <= release_of(release)]
    return max(older, key=release_of, default=min(KERNELS, key=release_of))


def _base(work: _Work, series: str) -> tuple[KernelTree | None, str]:
    """Debian's sources of a series, as far as they are modelled; None if they cannot be had."""
    tree = work.work / "base"
    try:
        package, version = fetched_source(work.cache, series, work.say)
        work.say(f"comparing with Debian's Linux {series}")
        unpacked_source(package, tree, only=(*MODELLED, "mm/memory.c"))
    except Unavailable as why:
        return None, f"not compared with Linux {series}: {why}"
    return KernelTree(tree), version


def _would_lack(tree: Path, recipe: Recipe, tried: Path) -> list[str]:
    """The changes of a recipe that do not apply, found out on copies of the files."""
    for name in dict.fromkeys(name for name, _, _ in recipe.changes):
        if (tree / name).is_file():
            (tried / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, tried / name)
    return _by_file(apply_changes(tried, recipe.changes))


def _by_file(lacking: list[NotApplied]) -> list[str]:
    return list(dict.fromkeys(map(str, lacking)))


def _built(
    work: _Work, tree: Path, recipe: Recipe, *, release: str, whole: Path
) -> tuple[str, list[str], list[str]]:
    """The folder of a built kernel, changes that did not apply, options that it does not have."""
    lacking = _by_file(apply_changes(tree, (*recipe.changes, *CHANGES_BEFORE_6_1)))
    for line in lacking:
        work.say(f"{recipe.name}: does not apply: {line}")
    work.say(f"building {work.name}, Linux {release} for user mode (three to ten minutes, once)")
    log = work.cache / f"{recipe.name}-{work.name}.log"
    kept, lost = compiled(tree, recipe, log, series=work.name, version=release)
    needed = [line for line in lost if line.removeprefix("CONFIG_").partition("=")[0] in _NEEDED]
    if needed:
        raise Unavailable(f"Linux {release} cannot be built with {needed[0]}; log: {log}")
    folder = f"{recipe.name}-{work.name}-{recipe.digest}"
    kept.rename(whole / folder)
    return folder, lacking, lost
