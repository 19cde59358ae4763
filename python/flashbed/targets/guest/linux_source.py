"""Linux' sources as Debian packs them: fetched once, unpacked as far as a build needs them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from flashbed.base.locking import locked, scratch
from flashbed.targets.guest.debian import Apt, run, unpack
from flashbed.targets.unavailable import Unavailable

__all__ = ["fetched_source", "unpacked_source"]


def fetched_source(cache: Path, series: str, say: Callable[[str], None]) -> tuple[Path, str]:
    """Debian's package of a series, fetched on first use, and its version."""
    name = f"linux-source-{series}"
    with locked(cache / f"{name}.lock"):
        for package in cache.glob(f"{name}_*.deb"):
            return package, package.name.split("_")[1].replace("%3a", ":")
        say(f"downloading the sources of Linux {series} (about 140 MB, once)")
        with scratch(cache, "fetch-") as work:
            package, version = _downloaded(cache, name, work)
            return package.rename(cache / package.name), version


def _downloaded(cache: Path, name: str, folder: Path) -> tuple[Path, str]:
    """The package from the machine's release, or else from any other that its mirror has."""
    try:
        return Apt(cache / "apt-source", "amd64").download(name, folder)
    except Unavailable:
        return Apt(cache / "apt-releases", "amd64", releases=True).download(name, folder)


def unpacked_source(package: Path, tree: Path, *, only: Sequence[str] = ()) -> None:
    """Unpacks the package's sources into a new folder; `only` names files and folders of them."""
    work = tree.parent / f"{tree.name}-package"
    unpack(package, work)
    tree.mkdir()
    archive = next((work / "usr" / "src").glob("*.tar.xz"))
    command = ["tar", "-xf", str(archive), "-C", str(tree), "--strip-components=1"]
    patterns = [f"*/{name}" if Path(name).suffix else f"*/{name}*" for name in only]
    run([*command, "--wildcards", "--wildcards-match-slash", *patterns] if only else command)
    shutil.rmtree(work)
