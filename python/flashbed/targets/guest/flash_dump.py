"""A dump of a device, or an image for nandwrite, as what a guest's flash holds at first.

The agent writes its pages onto the erased partition (agent/fs/dump.c): in user-mode Linux from the
host's file, on the emulated board from a copy in the initramfs. Nothing is made, and no file system
is new. Which pages and volumes it has is read before (api/dumped_flash.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import sha256_of, shown
from flashbed.program.recording.about import DumpFacts
from flashbed.stack.flash_image import read_dump
from flashbed.stack.layouts import Layout
from flashbed.targets.guest.initramfs import More
from flashbed.targets.guest.layout_images import Images, lines, uses_of

if TYPE_CHECKING:
    # Its tables are not needed to run a program.
    from flashbed.targets.base import Program

__all__ = ["AtFirst", "Dump"]

_COPY = "dump"
_OWNER = "user 0 0"


@dataclass(frozen=True)
class AtFirst:
    """What the flash of a guest's programs holds at first: a layout's images, or a dump."""

    lines: Sequence[str]
    """Of a job."""
    more: More
    mib: int
    name: str
    """Tells it from others in the name of an initramfs; empty for nothing."""

    @classmethod
    def of(cls, program: Program, images: Images) -> AtFirst:
        """That of a program. Raises `RunError`."""
        dump, stack = Dump.of(program), program.stack
        if dump is None:
            return cls(lines(stack, images), images.more, images.mib, "")
        assert program.dump is not None
        told = dump.lines(dump.place(copied=True), stack.layout)
        return cls(told, dump.more, dump.mib, f"-{program.dump.sha256[:12]}")


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
    compressor: str | None = None
    """Of UBIFS: what packs new data."""

    @classmethod
    def of(cls, program: Program) -> Dump | None:
        """What a program's flash holds at first. Raises `RunError`."""
        if program.dump is None:
            return None
        try:
            program.dump.check()
            image = read_dump(program.dump.path, program.stack.board.chip)
        except InputError as why:
            raise RunError(str(why)) from None
        oob_bytes = 0 if image.pages is None else image.pages[1]
        return cls(program.dump.path, oob_bytes, program.dump.volume)

    @property
    def told(self) -> str:
        """It, in a line for a person."""
        return shown(self.path) if self.volume is None else f"{shown(self.path)}, {self.volume}"

    @property
    def facts(self) -> DumpFacts:
        """It, as a recording names it."""
        path = self.path.resolve()
        return DumpFacts(
            file=str(path), sha256=sha256_of(path), volume=self.volume, compressor=self.compressor
        )

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

    @property
    def mib(self) -> int:
        """Memory that a copy of it takes."""
        return -(-self.path.stat().st_size >> 20)

    def lines(self, place: str, layout: Layout | None) -> list[str]:
        """It at a place, as lines of a job or a request."""
        return [f"dump {self.oob_bytes} {place}", *self._volumes(layout)]

    def _volumes(self, layout: Layout | None) -> list[str]:
        """The volumes that are mounted (agent/fs/layout_lines.c)."""
        if layout is not None:
            there = [f"volume {each.name} dynamic 0 {each.holds} - -" for each in layout.volume]
            return [*there, *uses_of(layout)]
        if self.volume is None:
            return []
        return [f"volume {self.volume} dynamic 0 ubifs - -", f"writes_to {self.volume}"]
