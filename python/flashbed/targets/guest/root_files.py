"""A root that holds what a case's preparation makes (`layout.files=root`).

The simulator runs the preparation on the file system alone; what it leaves is packed into the
image of the layer's lower volume, with times of 1970 and without owners, so that two runs give the
same bytes. The case then begins on a fresh layer over it. Left out: files with several names,
preparations that the simulator cannot run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

from flashbed import _sim
from flashbed.base.errors import RunError
from flashbed.base.locking import scratch
from flashbed.program.operations import HEADER
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.guest.layout_images import Images, images_of

__all__ = ["RootNotMade", "images_for", "over_root", "root_image", "root_of"]

NOTHING = f"{HEADER}\nprepared\n"
"""The preparation of a case whose files are in the root."""
_FOLDER, _FILE = 0o755, 0o644


class RootNotMade(RunError):
    """A preparation that no root can hold."""


def root_of(program: Program) -> str:
    """What tells the program's root from others; empty where the image does not depend on it."""
    return "" if program.stack.root_volume is None else program.prepare


def over_root(programs: Sequence[Program]) -> list[Program]:
    """The programs without preparations whose files their root has."""
    return [replace(each, prepare=NOTHING) if root_of(each) else each for each in programs]


def images_for(program: Program, *, cache: Path, say: Callable[[str], None]) -> Images:
    """The images of the volumes of a program's layout.

    Raises `InputError`, `RootNotMade`, `RunError` where a tool fails, `Unavailable`.
    """
    volume = program.stack.root_volume
    if volume is None:
        return images_of(program.stack, {}, cache=cache, say=say)
    cache.mkdir(parents=True, exist_ok=True)
    with scratch(cache, "root-") as work:
        folder = work / "root"
        folder.mkdir()
        _write(folder, program.stack, program.prepare)
        return images_of(program.stack, {volume.name: folder}, cache=cache, say=say)


def root_image(program: Program, *, cache: Path) -> bytes:
    """The image of the root alone."""
    volume = program.stack.root_volume
    assert volume is not None
    return images_for(program, cache=cache, say=lambda _: None).content[volume.name]


def _name(text: str) -> str:
    """What a path of an operation stands for."""
    return os.fsdecode(unquote_to_bytes(text))


def _write(root: Path, stack: Stack, prepare: str) -> None:
    """Writes what the preparation leaves into a folder. Raises `RootNotMade`."""
    plain = replace(stack.in_user_mode, layout=None)
    try:
        left = _sim.prepared_files(
            plain.simulated_board, plain.simulated_kernel, plain.simulated_fs, prepare
        )
    except ValueError as why:
        raise RootNotMade(f"layout.files=root: {why}") from None
    names: dict[int, str] = {}
    for file in left:
        path = root / _name(file.path)
        if names.setdefault(file.number, file.path) != file.path:
            raise RootNotMade(f"layout.files=root: {file.path} is also {names[file.number]}")
        if file.target is not None:
            path.symlink_to(_name(file.target))
        elif file.content is None:
            path.mkdir()
        else:
            path.write_bytes(file.content)
        if file.target is None:
            path.chmod(_FOLDER if file.content is None else _FILE)
    root.chmod(_FOLDER)
    for path in [*root.rglob("*"), root]:
        os.utime(path, (0, 0), follow_symlinks=False)
