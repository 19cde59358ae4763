"""Fetches Debian packages into a cache of the project's own, without touching the host's packages.

apt runs on private folders (Dir::State, Dir::Cache), for a foreign architecture and without root.
It reads the machine's own sources, so no mirror is named here. `update` may report an error for an
unreachable source; what counts is whether the package is found. Other distributions are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from flashbed.targets.unavailable import Unavailable

__all__ = ["Apt", "run", "unpack"]

_TIMEOUT_S = 900
_CODENAMES = ("bullseye", "bookworm", "trixie")
_RELEASES = (*_CODENAMES, "trixie-backports", "sid", "experimental")
"""Suites of Debian that have kernels of user-mode Linux. apt says which of them it cannot reach."""


class Apt:
    """apt on private folders, for one architecture.

    `sources` selects source packages, `releases` those of Debian's other releases too.
    """

    def __init__(
        self, folder: Path, architecture: str, *, sources: bool = False, releases: bool = False
    ) -> None:
        _need("apt-get", "apt-cache", "dpkg-deb")
        self.architecture = architecture
        state, cache = folder / "state", folder / "cache"
        for below in (state / "lists" / "partial", cache / "archives" / "partial"):
            below.mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        options: dict[str, Path | str] = {
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "Dir::State": state,
            "Dir::State::Lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": cache,
            "Acquire::Languages": "none",
        }
        if sources or releases:
            rewritten = _for_sources if sources else _for_releases
            options["Dir::Etc::SourceList"] = "/dev/null"
            options["Dir::Etc::SourceParts"] = _copied_lists(folder / "sources", rewritten)
        if os.geteuid() == 0:
            options["APT::Sandbox::User"] = "root"
        self.options = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        self._said = self._run("apt-get", "update")

    def _run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        """The program's output; the caller finds out from it whether it failed."""
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

    def names(self, prefix: str) -> list[str]:
        """The packages whose names begin so."""
        return self._run("apt-cache", "pkgnames", prefix).split()

    def depends(self, package: str) -> list[str]:
        """The packages that a package depends on."""
        return re.findall(r"Depends: ([^\s<]+)", self._run("apt-cache", "depends", package))

    def dependency(self, package: str, prefix: str) -> str:
        """The package whose name begins so, of a package's dependencies. Raises `Unavailable`."""
        found = [name for name in self.depends(package) if name.startswith(prefix)]
        if not found:
            raise Unavailable(
                f"no package {package} for {self.architecture} in the sources of apt"
                f" ({_last_line(self._said)})"
            )
        return found[0]

    def download(self, package: str, folder: Path) -> tuple[Path, str]:
        """Downloads NAME or NAME=VERSION; returns file and version. Raises `Unavailable`."""
        said = self._run("apt-get", "download", package, folder=folder)
        name = package.partition("=")[0]
        files = sorted(folder.glob(f"{name}_*.deb"))
        if not files:
            raise Unavailable(f"{package} could not be downloaded ({_last_line(said)})")
        return files[0], files[0].name.split("_")[1].replace("%3a", ":")

    def download_all(self, packages: Sequence[str], folder: Path) -> list[Path]:
        """Downloads packages with dependencies, sorted by name. Raises `Unavailable`."""
        (folder / "partial").mkdir(parents=True, exist_ok=True)
        arguments = ("-y", "--download-only", "--no-install-recommends", "install", *packages)
        said = self._run("apt-get", "-o", f"Dir::Cache::archives={folder}", *arguments)
        files = sorted(folder.glob("*.deb"))
        names = {file.name.partition("_")[0] for file in files}
        missing = [name for name in packages if name.partition("=")[0] not in names]
        if missing:
            raise Unavailable(f"{missing[0]} could not be downloaded ({_last_line(said)})")
        return files

    def download_source(self, package: str, folder: Path) -> Path:
        """Downloads the upstream archive of a source package. Raises `Unavailable`."""
        said = self._run("apt-get", "source", "--download-only", package, folder=folder)
        files = sorted(folder.glob(f"{package}_*.orig.tar.*"))
        if not files:
            raise Unavailable(f"sources of {package} could not be downloaded ({_last_line(said)})")
        return files[0]


def _copied_lists(folder: Path, rewritten: Callable[[str, str], str]) -> Path:
    """A copy of the machine's source lists in a folder, each rewritten."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    etc = Path("/etc/apt")
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            (folder / path.name).write_text(rewritten(text, path.suffix), encoding="utf-8")
    return folder


def _for_sources(text: str, kind: str) -> str:
    """The same lists for source packages."""
    if kind == ".sources":
        return re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*deb-src\s.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^\s*deb(?=\s)", "deb-src", text, flags=re.MULTILINE)


def _for_releases(text: str, kind: str) -> str:
    """The lines of Debian's own suites, for all of `_RELEASES`; other lines are left out."""
    if kind == ".sources":
        stanzas = (re.sub(r"(?m)^#.*\n?", "", part) for part in re.split(r"\n\s*\n", text))
        found = [
            re.sub(r"(?m)^Suites:(.*)$", f"Suites: {' '.join(suites)}", stanza)
            for stanza in stanzas
            if (suites := _suites(re.findall(r"(?m)^Suites:(.*)$", stanza)))
        ]
        return "\n\n".join(found) + "\n"
    lines = re.findall(r"(?m)^\s*deb\s+((?:\[[^\]]*\]\s+)?\S+)\s+(\S+)\s+(.*)$", text)
    return "".join(
        f"deb {where} {suite} {components}\n"
        for where, given, components in lines
        for suite in _suites([given])
    )


def _suites(given: Sequence[str]) -> list[str]:
    """The suites of all releases that stand for some of one; none for those of other archives."""
    words = {word for text in given for word in text.split()}
    plain = words & set(_CODENAMES)
    if plain:
        return list(_RELEASES)
    secured = [word for word in words if word.removesuffix("-security") in _CODENAMES]
    of_security = [f"{name}-security" for name in _CODENAMES]
    return of_security if any(word.endswith("-security") for word in secured) else []


def _need(*programs: str) -> None:
    """Raises `Unavailable` if a program is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            raise Unavailable(
                f"{program} is not there; the kernel comes from Debian packages"
                " (on Debian: apt-get install apt dpkg)"
            )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(("E:", "Err:"))]
    return lines[-1] if lines else "apt found no such package"


def unpack(package: Path, folder: Path) -> None:
    """Unpacks a package into a folder. Raises `Unavailable`."""
    run(["dpkg-deb", "-x", str(package), str(folder)])


def run(command: Sequence[str], *, timeout_s: float = _TIMEOUT_S) -> None:
    """Runs a command that must succeed. Raises `Unavailable`."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{command[0]} failed: {error}") from None
