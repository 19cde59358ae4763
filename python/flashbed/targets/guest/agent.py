"""The agents: which program a guest is booted with, and where it comes from.

There is a small agent, and one with SQLite (agent/sql) for programs with statements. In a checkout
`make` builds them. From a wheel they are compiled into the cache on first use, by the same recipe
(agent/agent.mk). ziglang compiles them if it is installed, otherwise this machine's C compiler
compiles this machine's agent. The emulated board's agent needs ziglang: its times are calibrated
with that.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flashbed.base import paths
from flashbed.base.locking import locked
from flashbed.targets.guest.building import build
from flashbed.targets.unavailable import Unavailable

if TYPE_CHECKING:
    from flashbed.targets.base import Program

__all__ = [
    "NoSqlite",
    "agent",
    "agent_file",
    "agent_with_sqlite",
    "has_statements",
    "made_by",
    "path_of",
]

_TIMEOUT_S = 900
_COMPILERS = ("cc", "gcc", "clang")
"""Compilers of this machine, by preference. Debian's musl-gcc lacks the kernel's headers."""


class NoSqlite(Exception):
    """The agent with SQLite is not built, which fails programs with statements."""


def path_of(architecture: str) -> Path:
    """The path of an agent, built or not; a prefix `sql-` means the one with SQLite."""
    digest = "" if paths.in_checkout() else _sources_digest(paths.root())
    return paths.agents_folder(digest) / f"flashbed-agent-{architecture}"


def made_by(architecture: str) -> str:
    """The command that builds the small agent."""
    if not paths.in_checkout():
        what = "" if architecture == "host" and _compiler() else _NEEDED[architecture == "host"]
        return what or f"flashbed prepare --on {'uml' if architecture == 'host' else 'emulator'}"
    return "make build" if architecture in ("host", "armv7") else "make agents"


_NEEDED = {
    True: "apt-get install gcc libc6-dev make, or pip install 'flashbed[emulator]'",
    False: "pip install 'flashbed[emulator]'",
}
"""How to get a compiler: for this machine's agent, and for other machines' agents."""


def agent_file(architecture: str) -> Path:
    """The small agent's file; compiles it outside a checkout. Raises `Unavailable`."""
    path = path_of(architecture)
    if path.is_file():
        return path
    if paths.in_checkout():
        make = made_by(architecture)
        raise Unavailable(f"{paths.shown(path)} is not there; `{make}` builds it")
    _compile(path, architecture)
    return path


def agent(architecture: str) -> bytes:
    """The small agent. Raises `Unavailable`."""
    return agent_file(architecture).read_bytes()


def agent_with_sqlite(architecture: str) -> bytes:
    """The agent with SQLite. Raises `NoSqlite`."""
    path = path_of(f"sql-{architecture}")
    if path.is_file():
        return path.read_bytes()
    if paths.in_checkout():
        shown = paths.shown(path)
        raise NoSqlite(f"sql: {shown} is not there; `make sql-agents` builds it")
    source = path.parents[1] / "sqlite" / "sqlite3.c"
    if shutil.which("cargo") is None and not source.is_file():
        raise NoSqlite(
            f"sql: cargo fetches the source of SQLite and is not installed; put sqlite3.c "
            f"and sqlite3.h of its amalgamation into {source.parent}"
        )
    try:
        _compile(path, architecture)
    except Unavailable as why:
        raise NoSqlite(f"sql: {why}") from None
    return path.read_bytes()


def has_statements(program: Program) -> bool:
    """Whether SQLite has to execute statements of the program."""
    return "\nsql_open " in program.prepare or "\nsql_open " in program.body


@cache
def _sources_digest(root: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted((root / "agent").rglob("*")):
        if file.is_file():
            digest.update(f"{file.relative_to(root)}\n{paths.sha256_of(file)}\n".encode())
    return digest.hexdigest()[:16]


def _compiler() -> str | None:
    """The command of ziglang, or a compiler of this machine."""
    if find_spec("ziglang") is not None:
        return "zig"
    return next((name for name in _COMPILERS if shutil.which(name)), None)


def _compile(path: Path, architecture: str) -> None:
    """Compiles an agent from the package's sources. Raises `Unavailable`."""
    compiler = _compiler()
    if compiler is None or (compiler != "zig" and architecture != "host"):
        raise Unavailable(
            f"the agent for {architecture} cannot be compiled: {_NEEDED[architecture == 'host']}"
        )
    if shutil.which("make") is None:
        raise Unavailable("the agent cannot be compiled: apt-get install make")
    folder = path.parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    made = [f"BUILD={folder}", f"AGENT_PYTHON={sys.executable}", f"PYTHON={sys.executable}"]
    own = [] if compiler == "zig" else [f"HOST_CC={compiler}"]
    command = ["make", "-s", "-f", "agent/agent.mk", *made, *own, str(path)]
    try:
        with locked(folder / "agent.lock"):
            build("the agent", [command], folder / "agent.log", folder=paths.root(),
                  timeout_s=_TIMEOUT_S)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as why:
        raise Unavailable(f"the agent could not be compiled: {why}") from None
