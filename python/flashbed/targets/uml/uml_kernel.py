"""Kernels for user-mode Linux: built once from Debian's linux-source packages, kept in the cache.

`tinyconfig` plus kernel/uml/config, ARCH=um, in a temporary folder that is renamed when it is
whole. What modules are built against stays, the rest of the sources goes; their package stays, for
another kernel is built of it. Two processes may build two kernels at once. Changes are made to the
kernel's code: arch/x86/um/os-Linux/registers.c offers PTRACE_SETREGSET a buffer of fixed size,
which hosts with AVX-512 or AMX refuse (the guest dies with "ptrace set fp regs failed"); without
have_xstate_support it uses PTRACE_SETFPREGS, which they all take. And arch/um/kernel/skas/syscall.c
has a system call that failed take a microsecond and then makes way to whoever has waited longer,
which no board does. arch/um/kernel/time.c counts in 256 ns while waits and timers are exact: where
a case begins within a count depends on the cases before it, so the clock counts nanoseconds here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashbed import paths
from flashbed.storage.locking import locked, scratch
from flashbed.targets.base import Unavailable
from flashbed.targets.guest.building import build
from flashbed.targets.guest.debian import Apt, run, unpack

__all__ = [
    "BUILD_TOOLS",
    "CHANGES",
    "KERNELS",
    "Change",
    "Recipe",
    "UmlKernel",
    "built_kernel",
    "cached_kernel",
]

KERNELS = ("6.1", "6.12")
"""Kernel profiles that can be built: the series of Debian's linux-source packages."""
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
"""Programs the build needs, and Debian's packages of them."""
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
Change = tuple[str, str, str]
"""A file of the kernel, what is replaced in it, and by what."""
CHANGES: tuple[Change, ...] = (
    (
        "arch/x86/um/os-Linux/registers.c",
        "have_xstate_support = 1;",
        "have_xstate_support = 0;",
    ),
    (
        "arch/um/os-Linux/util.c",
        "return getrandom(buf, len, flags);",
        "memset(buf, 0x5a, len); return len;",
    ),
    ("arch/um/kernel/skas/syscall.c", "if (IS_ERR_VALUE(ret) &&", "if (false &&"),
    ("arch/um/kernel/time.c", " / TIMER_MULTIPLIER;", ";"),
    ("arch/um/kernel/time.c", "NSEC_PER_SEC/TIMER_MULTIPLIER", "NSEC_PER_SEC"),
    ("arch/um/Kconfig", "\tselect ARCH_NO_PREEMPT\n", ""),
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 250\n"),
)
"""What is replaced in the kernel that experiments run on."""


@dataclass(frozen=True)
class Recipe:
    """How a kernel is built. `files` are sources added to it, path in the kernel -> content."""

    name: str
    """How its folder in the cache begins."""
    options: Sequence[str]
    """Lines of configurations, over those of `tinyconfig`."""
    changes: Sequence[Change] = CHANGES
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash over what decides how a kernel is built."""
        digest = hashlib.sha256("\n".join(self.options).encode())
        digest.update(repr((_MAKE, _KEPT, tuple(self.changes))).encode())
        for name, content in self.files.items():
            digest.update(f"{name}\n".encode() + content)
        return digest.hexdigest()[:12]


def _plain() -> Recipe:
    """The kernel that experiments run on."""
    return Recipe(
        "uml", (paths.root() / "kernel" / "uml" / "config").read_text(encoding="utf-8").split("\n")
    )


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
    return cache / f"{recipe.name}-{series}-{recipe.digest}"


def cached_kernel(cache: Path, series: str, recipe: Recipe | None = None) -> UmlKernel | None:
    """The kernel that was built before, if there is one; experiments' without a recipe."""
    tree = _folder(cache, series, recipe or _plain())
    try:
        manifest = json.loads((tree / _MANIFEST).read_text(encoding="utf-8"))
        return UmlKernel(series, manifest["version"], tree)
    except (OSError, ValueError, KeyError):
        return None


def built_kernel(
    cache: Path, series: str, say: Callable[[str], None], recipe: Recipe | None = None
) -> UmlKernel:
    """The kernel of a series, built if it is not there yet. Raises `Unavailable`."""
    recipe = recipe or _plain()
    found = cached_kernel(cache, series, recipe)
    if found:
        return found
    _can_build()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{recipe.name}-{series}.lock"):
        found = cached_kernel(cache, series, recipe)
        if found:
            return found
        try:
            return _build(cache, series, recipe, say)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"Linux {series} could not be built: {error}") from None


def _can_build() -> None:
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
    package, version = _sources(cache, series, say)
    with scratch(cache, "build-") as work:
        say(f"unpacking the sources of Linux {series}")
        unpack(package, work / "package")
        tree = work / "tree"
        tree.mkdir()
        archive = next((work / "package" / "usr" / "src").glob("*.tar.xz"))
        run(["tar", "-xf", str(archive), "-C", str(tree), "--strip-components=1"])
        shutil.rmtree(work / "package")
        for name, before, after in recipe.changes:
            _change(tree / name, before, after)
        for name, content in recipe.files.items():
            (tree / name).write_bytes(content)
        say(f"building Linux {series} for user mode (two to six minutes, once)")
        _make(tree, recipe, log)
        kept = work / "kept"
        _keep(tree, kept)
        manifest = {"series": series, "version": version}
        (kept / _MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
        folder = _folder(cache, series, recipe)
        shutil.rmtree(folder, ignore_errors=True)
        kept.rename(folder)
    return UmlKernel(series, version, folder)


def _sources(cache: Path, series: str, say: Callable[[str], None]) -> tuple[Path, str]:
    """Debian's package of a series, fetched if it is not there yet, and its version."""
    name = f"linux-source-{series}"
    with locked(cache / f"{name}.lock"):
        for package in cache.glob(f"{name}_*.deb"):
            return package, package.name.split("_")[1].replace("%3a", ":")
        say(f"downloading the sources of Linux {series} (about 140 MB, once)")
        with scratch(cache, "fetch-") as work:
            package, version = Apt(cache / "apt-source", "amd64").download(name, work)
            return package.rename(cache / package.name), version


def _change(source: Path, before: str, after: str) -> None:
    """Makes a change where there is something to change; `_configured` sees what came of it."""
    text = source.read_text(encoding="utf-8")
    if before not in text and source.suffix == ".c":
        raise Unavailable(f"{source.name}: this kernel's code is not as expected ({before})")
    source.write_text(text.replace(before, after), encoding="utf-8")


def _make(tree: Path, recipe: Recipe, log: Path) -> None:
    """Configures and compiles; everything that is said goes to the log."""
    jobs = f"-j{os.cpu_count() or 1}"
    asked = tree / "flashbed.config"
    asked.write_text("\n".join(recipe.options), encoding="utf-8")
    merge = ["scripts/kconfig/merge_config.sh", "-m", ".config", str(asked)]
    compiled = [*_MAKE, jobs, "linux", "modules"]
    steps = ([*_MAKE, "tinyconfig"], merge, [*_MAKE, "olddefconfig"], compiled)
    build("the kernel", steps, log, folder=tree, timeout_s=_BUILD_TIMEOUT_S)
    _configured(tree, recipe)


def _configured(tree: Path, recipe: Recipe) -> None:
    """Whether everything asked for is in: Kconfig drops in silence what it cannot have."""
    have = set((tree / ".config").read_text(encoding="utf-8").splitlines())
    dropped = [line for line in recipe.options if line.startswith("CONFIG_") and line not in have]
    if dropped:
        raise Unavailable(f"the kernel cannot be built with {dropped[0]} (kernel/uml)")


def _keep(tree: Path, kept: Path) -> None:
    """Moves what a boot and a module's build need; objects and sources are not among it."""
    for name in _KEPT:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).rename(kept / name)
    for path in kept.rglob("*.o"):
        path.unlink()
