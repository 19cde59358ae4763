"""Builds kernels for user-mode Linux from Debian's linux-source packages and caches them.

The configuration is `tinyconfig` plus kernel/uml/config with ARCH=um. It is built in a temporary
folder, which is renamed when it is whole. What modules are built against stays, the other sources
go; the packages stay for other kernels. Two processes may build two kernels at once.

kernel_changes.py says what is replaced in the sources and how series differ. kernel_added.py builds
a tree of the user.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flashbed.base import paths
from flashbed.base.locking import locked, scratch
from flashbed.targets.guest.building import build
from flashbed.targets.guest.linux_source import fetched_source, unpacked_source
from flashbed.targets.uml.kernel_changes import (
    CHANGES,
    Change,
    apply_changes,
    changes_for,
    with_former_names,
)
from flashbed.targets.uml.kernel_headers import prepared_for_headers, steps_with_headers
from flashbed.targets.uml.own_kernels import own_build, own_kernel_names
from flashbed.targets.unavailable import Unavailable

__all__ = [
    "BUILD_TOOLS",
    "KERNELS",
    "VARIANTS",
    "Recipe",
    "UmlKernel",
    "built_kernel",
    "cached_kernel",
    "can_build",
    "compiled",
    "kernels",
    "plain_recipe",
    "with_options",
]

KERNELS = ("6.1", "6.12", "5.10", "7.3")
"""Kernel profiles that can be built: the series of Debian's linux-source packages, the usual one
first."""
VARIANTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "6.1-wbuf-verify": ("6.1", ("CONFIG_JFFS2_FS_WBUF_VERIFY=y",)),
    "6.1-no-summary": ("6.1", ("# CONFIG_JFFS2_SUMMARY is not set",)),
}
"""Kernel profile -> the series whose sources it is built from, and its own options."""
BUILD_TOOLS = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
"""Programs the build needs, and their Debian packages."""
_BUILD_TIMEOUT_S = 3600
_MANIFEST = "uml.json"
_KEPT = (
    "linux",
    ".config",
    "Makefile",
    "Kbuild",
    "Kconfig",
    "Module.symvers",
    "System.map",
    "scripts",
    "include",
    "arch/um",
    "arch/x86",
    "drivers/mtd/nand/raw/nandsim.ko",
)
_MAKE = (
    "make",
    "ARCH=um",
    "KBUILD_BUILD_USER=flashbed",
    "KBUILD_BUILD_HOST=flashbed",
    "KBUILD_BUILD_TIMESTAMP=2020-01-01",
)
_TARGETS = ("linux", "modules", "KBUILD_MODPOST_WARN=1")
"""A maker's modules may lack what is left out here; flashbed's own are built by themselves."""
_WITH_HEADERS = ("6.1.",)
"""Beginnings of versions whose common headers can be compiled once."""


@dataclass(frozen=True)
class Recipe:
    """How a kernel is built. `files` are added sources: path in the kernel -> content."""

    name: str
    """Prefix of its folder in the cache."""
    options: Sequence[str]
    """Lines of configurations, applied over `tinyconfig`."""
    changes: Sequence[Change] = CHANGES
    files: Mapping[str, bytes] = field(default_factory=dict)

    def of(self, series: str) -> Recipe:
        """The recipe with the changes that only this series needs."""
        return replace(self, changes=(*self.changes, *changes_for(series)))

    @property
    def digest(self) -> str:
        """Hash over everything that decides how the kernel is built."""
        digest = hashlib.sha256("\n".join(self.options).encode())
        digest.update(repr((_MAKE, _KEPT, tuple(self.changes))).encode())
        for name, content in self.files.items():
            digest.update(f"{name}\n".encode() + content)
        return digest.hexdigest()[:12]


def plain_recipe(more: Sequence[str] = ()) -> Recipe:
    """The kernel that experiments run on; `more` are options that replace its own."""
    text = (paths.root() / "kernel" / "uml" / "config").read_text(encoding="utf-8")
    return Recipe("uml", with_options(text.split("\n"), more))


def with_options(lines: Sequence[str], more: Sequence[str]) -> list[str]:
    """A configuration with other lines in the place of those for the same options."""
    others = set(map(_option_of, more))
    kept = [line for line in lines if _option_of(line) not in others] if more else lines
    return [*kept, *more]


def _option_of(line: str) -> str:
    """`CONFIG_JFFS2_LZO=y` and `# CONFIG_JFFS2_LZO is not set` are for one option."""
    return line.removeprefix("# ").partition("=")[0].partition(" ")[0]


@dataclass(frozen=True)
class UmlKernel:
    """A built kernel: the program, and the tree that modules are built against."""

    series: str
    version: str
    tree: Path

    @property
    def program(self) -> Path:
        """The kernel, a program of the host."""
        return self.tree / "linux"


def _folder(cache: Path, series: str, recipe: Recipe) -> Path:
    own = own_build(cache, series, recipe.name)
    recipe = recipe.of(series)
    return own or cache / f"{recipe.name}-{series}-{recipe.digest}"


def kernels(cache: Path) -> tuple[str, ...]:
    """The kernels that experiments can run on: Debian's, with variants, and those of the user."""
    return (*KERNELS, *VARIANTS, *own_kernel_names(cache))


def _usual(name: str, more: Sequence[str] = ()) -> tuple[str, Recipe]:
    """The series and the recipe of a kernel that experiments run on."""
    series, own = VARIANTS.get(name, (name, ()))
    return series, plain_recipe((*own, *more))


def cached_kernel(cache: Path, series: str, recipe: Recipe | None = None) -> UmlKernel | None:
    """The kernel built by an earlier run, if there is one; without a recipe, experiments'."""
    if recipe is None:
        series, recipe = _usual(series)
    tree = _folder(cache, series, recipe)
    try:
        manifest = json.loads((tree / _MANIFEST).read_text(encoding="utf-8"))
        return UmlKernel(series, manifest["version"], tree)
    except (OSError, ValueError, KeyError):
        return None


def built_kernel(
    cache: Path,
    series: str,
    say: Callable[[str], None],
    recipe: Recipe | None = None,
    *,
    more: Sequence[str] = (),
) -> UmlKernel:
    """The kernel of a series, or that of experiments with more options (kernel_options.py).

    It is built on first use. Raises `Unavailable`.
    """
    if recipe is None:
        series, recipe = _usual(series, more)
    found = cached_kernel(cache, series, recipe)
    if found:
        return found
    if series not in KERNELS:
        raise Unavailable(
            f"Linux {series}: not built for this; `flashbed kernel add {series} --source TREE`"
            " builds it (--exec for `flashbed exec`)"
        )
    can_build()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{recipe.name}-{series}.lock"):
        found = cached_kernel(cache, series, recipe)
        if found:
            return found
        try:
            return _build(cache, series, recipe, say)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"Linux {series} could not be built: {error}") from None


def can_build() -> None:
    """Raises `Unavailable` where a kernel cannot be built."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"user-mode Linux needs an x86_64 host, this is {platform.machine()}")
    missing = [tool for tool in BUILD_TOOLS if shutil.which(tool) is None]
    if missing:
        packages = " ".join(BUILD_TOOLS[tool] for tool in missing)
        needed = ", ".join(missing)
        raise Unavailable(
            f"building the kernel needs {needed} (on Debian: apt-get install {packages})"
        )


def _build(cache: Path, series: str, recipe: Recipe, say: Callable[[str], None]) -> UmlKernel:
    log = cache / f"{recipe.name}-{series}.log"
    package, version = fetched_source(cache, series, say)
    with scratch(cache, "build-") as work:
        say(f"unpacking the sources of Linux {series}")
        tree = work / "tree"
        unpacked_source(package, tree)
        lacking = apply_changes(tree, recipe.of(series).changes)
        if lacking:
            raise Unavailable(f"{lacking[0]}: unexpected code in this kernel")
        say(f"building Linux {series} for user mode (two to six minutes, once)")
        kept, dropped = compiled(tree, recipe, log, series=series, version=version)
        if dropped:
            raise Unavailable(f"the kernel cannot be built with {dropped[0]} (kernel/uml)")
        folder = _folder(cache, series, recipe)
        shutil.rmtree(folder, ignore_errors=True)
        kept.rename(folder)
    return UmlKernel(series, version, folder)


def compiled(
    tree: Path, recipe: Recipe, log: Path, *, series: str, version: str
) -> tuple[Path, list[str]]:
    """Compiles changed sources: the folder beside the tree with what is kept, and lost options."""
    for name, content in recipe.files.items():
        (tree / name).write_bytes(content)
    _make(tree, version, recipe, log)
    dropped = _dropped(tree, recipe)
    kept = tree.parent / "kept"
    _keep(tree, kept)
    manifest = {"series": series, "version": version}
    (kept / _MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    return kept, dropped


def _make(tree: Path, version: str, recipe: Recipe, log: Path) -> None:
    """Configures and compiles, with all output in the log."""
    wanted_options = tree / "flashbed.config"
    wanted_options.write_text("\n".join(recipe.options), encoding="utf-8")
    merge = ["scripts/kconfig/merge_config.sh", "-m", ".config", str(wanted_options)]
    configured = [[*_MAKE, "tinyconfig"], merge, [*_MAKE, "olddefconfig"]]
    make = [*_MAKE, f"-j{os.cpu_count() or 1}"]
    if not version.startswith(_WITH_HEADERS) or not _made_with_headers(tree, configured, make, log):
        _run_steps([*configured, [*make, *_TARGETS]], tree, log)


def _made_with_headers(
    tree: Path, configured: Sequence[Sequence[str]], make: Sequence[str], log: Path
) -> bool:
    """Whether the compiler could build the kernel with compiled headers; not every one can."""
    with prepared_for_headers(tree):
        try:
            _run_steps([*configured, *steps_with_headers(make, _TARGETS)], tree, log)
        except Unavailable:
            return False
    return True


def _run_steps(steps: Sequence[Sequence[str]], tree: Path, log: Path) -> None:
    build("the kernel", steps, log, folder=tree, timeout_s=_BUILD_TIMEOUT_S)


def _dropped(tree: Path, recipe: Recipe) -> list[str]:
    """The options that are not set: Kconfig silently drops what it cannot have."""
    have = with_former_names(set((tree / ".config").read_text(encoding="utf-8").splitlines()))
    return [line for line in recipe.options if line.startswith("CONFIG_") and line not in have]


def _keep(tree: Path, kept: Path) -> None:
    """Moves what boots and module builds need; objects and sources are left behind."""
    for name in _KEPT:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).rename(kept / name)
    for path in kept.rglob("*.o"):
        path.unlink()
