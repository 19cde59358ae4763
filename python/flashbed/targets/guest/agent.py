"""The agents: which program a guest is booted with.

One is small; programs with statements need the one that has SQLite in it (agent/sql).
"""

from __future__ import annotations

from pathlib import Path

from flashbed import paths
from flashbed.targets.base import Program, Unavailable

__all__ = ["NoSqlite", "agent", "agent_with_sqlite", "has_statements", "made_by", "path_of"]


class NoSqlite(Exception):
    """The agent with SQLite is not built: what programs with statements fail with."""


def path_of(architecture: str) -> Path:
    """Where `make` puts an agent; `sql-` before the architecture is the one with SQLite."""
    return paths.root() / "build" / "agent" / f"flashbed-agent-{architecture}"


def made_by(architecture: str) -> str:
    """The command that builds the small one."""
    return "make build" if architecture in ("host", "armv7") else "make agents"


def agent(architecture: str) -> bytes:
    """The small one. Raises `Unavailable`."""
    path = path_of(architecture)
    if not path.is_file():
        make = made_by(architecture)
        raise Unavailable(f"{paths.shown(path)} is not there; `{make}` builds it")
    return path.read_bytes()


def agent_with_sqlite(architecture: str) -> bytes:
    """The one with SQLite. Raises `NoSqlite`."""
    path = path_of(f"sql-{architecture}")
    if not path.is_file():
        shown = paths.shown(path)
        raise NoSqlite(f"sql: {shown} is not there; `make sql-agents` builds it")
    return path.read_bytes()


def has_statements(program: Program) -> bool:
    """Whether SQLite has to execute statements of it."""
    return "\nsql_open " in program.prepare or "\nsql_open " in program.body
