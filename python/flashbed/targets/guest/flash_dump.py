"""A dump of a device, or an image for nandwrite, as what a guest's flash holds at first.

The agent writes its pages onto the erased partition (agent/fs/dump.c): in user-mode Linux from the
host's file, on the emulated board from a copy in the initramfs. Nothing is made, and no file system
is new. Which pages and volumes it has is read before (api/dumped_flash.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flashbed.base.paths import sha256_of, shown
from flashbed.program.recording.about import DumpFacts
from flashbed.stack.layouts import Layout
from flashbed.targets.guest.initramfs import More
from flashbed.targets.guest.layout_images import uses_of

__all__ = ["Dump"]

_COPY = "dump"
_OWNER = "user 0 0"


@dataclass(frozen=True)
class Dump:
    """A dump, and how it is read."""

    path: Path
    oob_bytes: int
    """Behind each page of the file; 0 for none."""
    volume: str | None
    """The volume with the program's UBIFS; None without UBI, and where a layout says it."""
    erases: int | None = None
    """Of the block that was erased most; None where nothing counts them."""

    @property
    def told(self) -> str:
        """It, in a line for a person."""
        return shown(self.path) if self.volume is None else f"{shown(self.path)}, {self.volume}"

    @property
    def facts(self) -> DumpFacts:
        """It, as a recording names it."""
        path = self.path.resolve()
        return DumpFacts(file=str(path), sha256=sha256_of(path), volume=self.volume)

    @property
    def user(self) -> str:
        """The program's user: root, to whom a device's files belong."""
        return _OWNER

    @property
    def more(self) -> More:
        """It, as a part of an initramfs."""
        return More(files={_COPY: (0o600, self.path.read_bytes())})

    def place(self, *, copied: bool) -> str:
        """Where the agent finds it."""
        return f"/{_COPY}" if copied else str(self.path.resolve())

    def volumes(self, layout: Layout | None) -> list[str]:
        """The volumes that are mounted, as lines of a request (agent/fs/layout_lines.c)."""
        if layout is not None:
            there = [f"volume {each.name} dynamic 0 {each.holds} - -" for each in layout.volume]
            return [*there, *uses_of(layout)]
        if self.volume is None:
            return []
        return [f"volume {self.volume} dynamic 0 ubifs - -", f"writes_to {self.volume}"]
