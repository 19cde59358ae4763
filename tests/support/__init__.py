"""What tests share: fakes, harnesses, boards and data; no test is here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flashbed.base.locking import locked

__all__ = ["PROJECT", "SMALL", "built_once"]

PROJECT = Path(__file__).resolve().parents[2]
"""The checkout that is tested."""
SMALL = Path(__file__).parent / "small.toml"
"""A small experiment with everything that a figure of a paper has."""


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """A folder that the first process that needs it fills; the others wait for that one."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, whole = base / name, base / f"{name}.whole"
    with locked(base / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            whole.touch()
    return folder
