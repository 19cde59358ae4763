"""Draws programs of class `maps`: page faults in mapped files, among reads.

A program maps parts of its files, touches pages of the mappings in order, at random and again, and
reads in between, with every window of read-ahead and every advice. Left out: stores, which the
classes `cutcalls` and recordings have; pages behind the end of a file.
"""

from __future__ import annotations

from collections.abc import Collection

from flashbed.bench.fuzz.any_body import DROPPED
from flashbed.bench.fuzz.draw import Draw
from flashbed.bench.fuzz.reads_body import ReadsBody
from flashbed.program.operations import Operation

__all__ = ["MapsBody"]

_PAGE = 4096
_LENGTHS = (1, 1, 1, _PAGE, 20_000, 65_536, 200_000)
_MAPPINGS = 3
_DO = {"map": 3, "touch": 12, "on": 8, "again": 2, "unmap": 1, "drop": 2}


class MapsBody(ReadsBody):
    """Measured operations that write nothing."""

    def __init__(self, draw: Draw, sizes: dict[str, int], without: Collection[str]) -> None:
        super().__init__(draw, sizes, without)
        self.mapped: dict[int, int] = {}
        """Mapping -> bytes of it that the file has."""
        self.touched: dict[int, int] = {}

    def _open(self) -> Operation:
        """Read-only: JFFS2 maps nothing shared that could be written (EINVAL)."""
        opened = super()._open()
        slot, path, _ = opened.fields
        return Operation("open", (slot, path, "ro"))

    def _step(self) -> list[Operation]:
        if not self.draw.chance(60):
            return super()._step()
        choice = self.draw.weighted(_DO)
        if choice == "drop":
            return [*DROPPED] if "drop_caches" in self.weights else []
        if choice == "map" or not self.mapped:
            return self._map()
        mapping = self.draw.pick(list(self.mapped))
        if choice == "unmap":
            del self.mapped[mapping]
            return [Operation("munmap", (mapping,))]
        return [self._touch(choice, mapping)]

    def _map(self) -> list[Operation]:
        """Maps a part of a file that is open, with all of its end or less."""
        slots = [slot for slot, path in self.held.items() if self.sizes.get(path or "")]
        free = [mapping for mapping in range(_MAPPINGS) if mapping not in self.mapped]
        if not slots or not free:
            return []
        slot, draw = self.draw.pick(slots), self.draw
        size = self.sizes[self.held[slot] or ""]
        offset = draw.between(0, (size - 1) // _PAGE) * _PAGE if draw.chance(50) else 0
        length = size - offset if draw.chance(70) else draw.between(1, size - offset)
        self.mapped[free[0]] = length
        self.touched[free[0]] = 0
        how = "private" if draw.chance(20) else "ro"
        return [Operation("mmap", (free[0], slot, offset, length, how))]

    def _touch(self, choice: str, mapping: int) -> Operation:
        draw, bytes_mapped = self.draw, self.mapped[mapping]
        at = self.touched[mapping]
        if choice == "touch" or at >= bytes_mapped:
            at = draw.between(0, bytes_mapped - 1)
        elif choice == "again":
            at = max(0, at - draw.pick(_LENGTHS))
        length = min(draw.pick(_LENGTHS), bytes_mapped - at)
        self.touched[mapping] = at + length
        return Operation("touch", (mapping, at, length))
