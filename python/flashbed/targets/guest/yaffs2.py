"""YAFFS2 for a guest's kernel: our kernel/yaffs2 around the core that Debian's u-boot contains.

apt fetches the core with U-Boot's sources into the cache; the repository holds nothing of it. A few
lines of it are changed (`_CHANGES`, docs/models/yaffs2.md). Where it is unavailable, programs on
other file systems still run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from flashbed.base.locking import locked, scratch
from flashbed.base.paths import cache_folder
from flashbed.targets.guest.debian import Apt, run
from flashbed.targets.guest.module import (
    BuildTree,
    ModuleNotBuilt,
    ModuleSource,
    built_module,
    check_kernel,
    sources_of,
)
from flashbed.targets.guest.requirements import Requirement
from flashbed.targets.unavailable import Unavailable

__all__ = ["FS", "core_found", "modules_of", "prepare"]

FS = "yaffs2"
MODULE = "yaffs2"
_PACKAGE = "u-boot"
_PAIRS = (
    "allocator",
    "attribs",
    "bitmap",
    "checkptrw",
    "ecc",
    "guts",
    "nameval",
    "nand",
    "packedtags1",
    "packedtags2",
    "summary",
    "tagscompat",
    "verify",
    "yaffs1",
    "yaffs2",
)
_ALONE = ("trace.h", "getblockinfo.h")
_OURS = ("yaffs_attribs.c",)
"""Files that ours replace."""
_CHANGES = (
    (
        "yaffs_guts.c",
        "\t\tif (n_copy != dev->data_bytes_per_chunk ||\n\t\t    dev->param.inband_tags) {",
        "\t\tif (dev->param.n_caches > 0 || n_copy != dev->data_bytes_per_chunk ||\n"
        "\t\t    dev->param.inband_tags) {",
    ),
    (
        "yaffs_checkptrw.c",
        "dev->param.bad_block_fn(dev, i);",
        "dev->param.bad_block_fn(dev, i - dev->block_offset);",
    ),
    (
        "yaffs_yaffs2.c",
        "\t\t} else if (!in->valid) {\n\t\t\t/* we need to load",
        "\t\t} else if (!in->valid &&\n"
        "\t\t\t   in->variant_type != (oh ? oh->type : tags.extra_obj_type)) {\n"
        "\t\t\tyaffs_chunk_del(dev, chunk, 1, __LINE__);\n"
        "\t\t} else if (!in->valid) {\n\t\t\t/* we need to load",
    ),
)
"""Files of the core, what is replaced in them, and by what. As in the core of 2013, whole chunks go
through the cache, and the block whose erase failed is the one marked bad. A header that would give
an object another type than its other chunks is dropped; the core would follow it into unrelated
memory."""


_SINCE, _UNTIL = (6, 1), (6, 12)
"""Kernels that kernel/yaffs2 is written for."""


def modules_of(fs: str, cache: Path, tree: BuildTree, say: Callable[[str], None]) -> list[Path]:
    """The modules that a file system needs besides the kernel's. Raises `ModuleNotBuilt`.

    Only boots for YAFFS2 load its module: it would move the allocations of other file systems.
    """
    if fs != FS:
        return []
    check_kernel(fs, MODULE, tree, since=_SINCE, until=_UNTIL)
    try:
        return [_built(cache, tree, say)]
    except Unavailable as why:
        raise ModuleNotBuilt(f"fs {FS}: {why}") from None


def prepare(cache: Path, tree: BuildTree, say: Callable[[str], None]) -> None:
    """Builds the module, or says why not; everything else continues without it."""
    try:
        modules_of(FS, cache, tree, say)
    except ModuleNotBuilt as why:
        say(str(why))


def core_found() -> Requirement:
    """Whether the core is available, for `flashbed doctor`."""
    found = _folder(cache_folder()).is_dir()
    how = "flashbed prepare, or the first run that needs it, fetches U-Boot's sources by apt"
    return Requirement("YAFFS2's core", found, "fetched" if found else "not fetched yet", how)


def _built(cache: Path, tree: BuildTree, say: Callable[[str], None]) -> Path:
    core = _core(cache, say)
    files = sources_of(MODULE) | {f"core/{path.name}": path.read_bytes() for path in core}
    return built_module(cache, ModuleSource(MODULE, dict(sorted(files.items()))), tree, say)


def _wanted() -> list[str]:
    pairs = [f"yaffs_{name}.{kind}" for name in _PAIRS for kind in ("c", "h")]
    wanted = {*pairs, *(f"yaffs_{name}" for name in _ALONE)} - set(_OURS)
    return sorted(wanted)


def _folder(cache: Path) -> Path:
    recipe = hashlib.sha256(repr((_wanted(), _CHANGES)).encode()).hexdigest()[:12]
    return cache / f"yaffs2-core-{recipe}"


def _core(cache: Path, say: Callable[[str], None]) -> list[Path]:
    """The core's files; fetches them on first use. Raises `Unavailable`."""
    folder = _folder(cache)
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "yaffs2-core.lock"):
        if not folder.is_dir():
            say("downloading the sources of U-Boot for YAFFS2's core (about 26 MB, once)")
            try:
                _fetch(cache, folder)
            except (OSError, subprocess.SubprocessError) as error:
                raise Unavailable(f"YAFFS2's core could not be fetched: {error}") from None
    return [folder / name for name in _wanted()]


def _fetch(cache: Path, folder: Path) -> None:
    with scratch(cache, "fetch-") as work:
        archive = Apt(cache / "apt-yaffs2", "amd64", sources=True).download_source(_PACKAGE, work)
        there = work / "there"
        there.mkdir()
        unpacking = ["tar", "-xf", str(archive), "-C", str(there), "--strip-components=3"]
        run([*unpacking, "--wildcards", "*/fs/yaffs2/*"])
        whole = work / "whole"
        whole.mkdir()
        for name in _wanted():
            shutil.copy(there / name, whole)
        for name, before, after in _CHANGES:
            text = (whole / name).read_text(encoding="utf-8")
            if text.count(before) != 1:
                raise Unavailable(f"{name}: unexpected code in this core ({before.strip()})")
            (whole / name).write_text(text.replace(before, after), encoding="utf-8")
        whole.rename(folder)
