"""Where the project's own files are: boards, kernels, experiments, the built agent.

The program runs from its checkout (an editable installation); `FLASHBED_ROOT` names another one.
Nothing here reads what is in the files.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

__all__ = ["board_file", "experiments_folder", "kernel_file", "root", "sha256_of", "shown"]


def root() -> Path:
    """The checkout: `FLASHBED_ROOT`, or the folder above python/."""
    given = os.environ.get("FLASHBED_ROOT")
    return Path(given).resolve() if given else Path(__file__).resolve().parents[2]


def board_file(name: str) -> Path:
    """The profile of a board."""
    return root() / "boards" / f"{name}.toml"


def kernel_file(name: str) -> Path:
    """The profile of a kernel."""
    return root() / "boards" / "kernels" / f"{name}.toml"


def experiments_folder() -> Path:
    """The folder of studies; each is a folder of experiments."""
    return root() / "experiments"


def shown(path: Path) -> str:
    """A path as a message names it: relative to the working folder or the checkout if below."""
    for base in (Path.cwd(), root()):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)


@cache
def _digest(path: Path, _changed_ns: int, _size_bytes: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex; read once as long as the file does not change."""
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)
