"""What a guest needs on this machine, what is installed, and how to get the rest."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec

from flashbed.base import paths
from flashbed.targets.guest.agent import made_by, path_of

__all__ = ["Requirement", "agents", "program", "ziglang"]


@dataclass(frozen=True)
class Requirement:
    """One requirement: whether it is met, and how to meet it."""

    name: str
    found: bool
    detail: str
    how: str


def program(name: str, how: str) -> Requirement:
    """A program on PATH."""
    path = shutil.which(name)
    return Requirement(name, path is not None, path or "not found", how)


def agents(architecture: str) -> list[Requirement]:
    """The agents for an architecture."""
    how = {
        architecture: made_by(architecture),
        f"sql-{architecture}": "make sql-agents, for statements",
    }
    return [
        Requirement(f"agent ({name})", path_of(name).is_file(), paths.shown(path_of(name)), make)
        for name, make in how.items()
    ]


def ziglang() -> Requirement:
    """The compiler of the agents."""
    found = find_spec("ziglang") is not None
    detail = "installed" if found else "not installed"
    return Requirement("ziglang", found, detail, "pip install ziglang")
