"""The programs that make images of flash file systems: mtd-utils, squashfs-tools, erofs-utils.

They are Debian's, fetched into the cache on first use (debian_programs.py): an image that is made
twice of the same files is the same image, on every machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from flashbed.base.locking import scratch
from flashbed.targets.guest.debian_programs import command, unpacked
from flashbed.targets.unavailable import Unavailable

__all__ = ["IMAGE_TOOLS", "image_tool", "volume_tools"]

IMAGE_TOOLS: Mapping[str, str] = {
    "mkfs.jffs2": "usr/sbin/mkfs.jffs2",
    "mkfs.ubifs": "usr/sbin/mkfs.ubifs",
    "sumtool": "usr/sbin/sumtool",
    "ubinize": "usr/sbin/ubinize",
    "mksquashfs": "usr/bin/mksquashfs",
    "unsquashfs": "usr/bin/unsquashfs",
    "mkfs.erofs": "usr/bin/mkfs.erofs",
    "fsck.erofs": "usr/bin/fsck.erofs",
    "dump.erofs": "usr/bin/dump.erofs",
}
"""A tool's name -> its place in its package."""
VOLUME_TOOLS = ("ubiupdatevol", "ubimkvol", "ubirmvol", "ubirename", "ubirsvol", "ubinfo")
"""What a program changes the volumes of a layout with."""
_PACKAGES = ("mtd-utils", "squashfs-tools", "erofs-utils")


def image_tool(name: str, cache: Path, say: Callable[[str], None]) -> list[str]:
    """The words that start a tool; its arguments follow them. Raises `Unavailable`."""
    tree = unpacked(cache, _PACKAGES, say)
    program = tree / IMAGE_TOOLS[name]
    if not program.is_file():
        raise Unavailable(f"{name} is not in Debian's {', '.join(_PACKAGES)}")
    return command(tree, program)


def volume_tools(cache: Path, say: Callable[[str], None]) -> Path:
    """A folder with the programs that change volumes, each a script that starts Debian's.

    Raises `Unavailable`.
    """
    tree = unpacked(cache, _PACKAGES, say)
    folder = cache / "volume-tools"
    folder.mkdir(parents=True, exist_ok=True)
    for name in VOLUME_TOOLS:
        words = shlex.join(command(tree, tree / "usr" / "sbin" / name))
        text = f'#!/bin/sh\nexec {words} "$@"\n'
        script = folder / name
        if not script.is_file() or script.read_text(encoding="utf-8") != text:
            with scratch(cache, "tool-") as work:
                (work / name).write_text(text, encoding="utf-8")
                (work / name).chmod(0o755)
                (work / name).replace(script)
    return folder
