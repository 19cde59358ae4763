"""The files that a case begins with, where its chip begins with a dump.

Left out: what is in devices, FIFOs and sockets; they are there, and empty.
"""

from __future__ import annotations

import numpy as np

from flashbed.base.errors import InputError, RunError
from flashbed.bench.powercut.tree import Entry, Symlink, TreeFile
from flashbed.program.recording.replay_state import word
from flashbed.stack.flash_image import content, read_dump
from flashbed.targets.base import Program

__all__ = ["begun_with"]


def begun_with(program: Program) -> dict[str, Entry]:
    """Each path and what it names, all of it durable. Raises `InputError`."""
    if program.dump is None:
        return {}
    image = read_dump(program.dump.path, program.stack.board.chip)
    names = [] if image.ubi is None else [each["name"] for each in image.ubi["volumes"]]
    part = names.index(program.dump.volume) if program.dump.volume is not None else 0
    entries: dict[str, Entry] = {}
    inodes: dict[int, TreeFile] = {}
    for file in image.files(part):
        if file.kind == "folder":
            continue
        if file.kind == "link":
            entries[word(file.path)] = Symlink(word(file.target))
            continue
        if file.inode not in inodes:
            inodes[file.inode] = made = TreeFile()
            try:
                data = content(image, part, file) if file.kind == "file" else b""
            except RunError as why:
                raise InputError(str(why)) from None
            made.write(0, np.frombuffer(data, np.uint8))
            made.make_durable()
        entries[word(file.path)] = inodes[file.inode]
    return entries
