"""Checks a folder of results, which may be anyone's, before anything is written or removed there.

A link in it could lead anywhere: flashbed writes, removes and descends below the folder only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.files import own_path
from flashbed.base.paths import shown

__all__ = ["check_folder", "own_folder"]

_LEVELS = 3
"""Levels of a run's folder: itself, its parts, the files of a part."""


def own_folder(folder: Path) -> Path:
    """A folder's path. Raises `InputError` if a link or a file has its name."""
    if own_path(folder).exists() and not folder.is_dir():
        raise InputError(f"{shown(folder)}: not a folder")
    return folder


def check_folder(folder: Path, ours: Callable[[str], bool]) -> None:
    """Raises `InputError` for a link, a device or a pipe among the names that are ours.

    Below such a name everything is looked at. A folder below the last level is refused as well.
    """
    _check(folder, ours, _LEVELS)


def _check(folder: Path, ours: Callable[[str], bool], levels: int) -> None:
    if not levels:
        raise InputError(f"{shown(folder)}: no folder of a run; remove it")
    with os.scandir(folder) as entries:
        for entry in entries:
            if not ours(entry.name):
                continue
            own_path(Path(entry.path))
            if entry.is_dir(follow_symlinks=False):
                _check(Path(entry.path), lambda _: True, levels - 1)
