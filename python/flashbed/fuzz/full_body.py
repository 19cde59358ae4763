"""The operations of class `full`: files that fill much of a small partition are overwritten.

Every file system has to collect garbage then. The files keep their sizes, so that what a program
may write always has room; `emulated-small` has a partition for it.

Invariant: the bytes of all files together are at most `LIVE_BYTES_MAX`.
"""

from __future__ import annotations

from collections.abc import Collection

from flashbed.fuzz.any_body import DROPPED
from flashbed.fuzz.draw import Draw
from flashbed.operations import Operation

__all__ = ["FullBody", "filled"]

LIVE_BYTES_MAX = 1_900_000
WRITES_PER_FILE_MAX = 12
KIB = 1024
_FILES = ("a", "b", "c", "d", "e", "f")
_LENGTHS = (512, 4_096, 16 * KIB, 16 * KIB, 40_000, 64 * KIB, 128 * KIB, 300_000)
_PAUSES_NS = (1_000_000, 30_000_000, 200_000_000, 2_000_000_000, 7_000_000_000)
_DO = {"write": 60, "fsync": 14, "pause": 12, "sync": 3, "read": 6, "drop_caches": 1, "reopen": 4}


def filled(draw: Draw) -> tuple[list[Operation], dict[str, int]]:
    """Files written in order, and their sizes."""
    names = _FILES[: draw.between(1, len(_FILES))]
    live = draw.between(LIVE_BYTES_MAX // 4, LIVE_BYTES_MAX)
    sizes: dict[str, int] = {}
    lines: list[Operation] = []
    for number, name in enumerate(names):
        left = live - sum(sizes.values())
        sizes[name] = left if number == len(names) - 1 else draw.between(1, left // 2)
        lines.append(Operation("open", (0, name, "rw,create")))
        request, seed = draw.pick((16 * KIB, 50_000, 128 * KIB)), draw.between(1, 999)
        request = max(request, -(-sizes[name] // WRITES_PER_FILE_MAX))
        for at in range(0, sizes[name], request):
            length = min(request, sizes[name] - at)
            lines.append(Operation("write", (0, at, length, seed, 0)))
        lines.append(Operation("close", (0,)))
    return lines, sizes


class FullBody:
    """A program that overwrites the files it finds."""

    def __init__(self, draw: Draw, sizes: dict[str, int], without: Collection[str] = ()) -> None:
        self.draw = draw
        self.sizes = sizes
        self.weights = {name: weight for name, weight in _DO.items() if name not in without}
        self.aligned = draw.chance(50)
        self.seed = draw.between(1, 999)

    def operations(self) -> list[Operation]:
        """Tens of operations; what they write is some megabytes."""
        opens = [Operation("open", (slot, name, "rw")) for slot, name in enumerate(self.sizes)]
        lines = [*opens]
        for _ in range(self.draw.between(20, 75)):
            lines += self._step()
        return lines

    def _step(self) -> list[Operation]:
        slot = self.draw.between(0, len(self.sizes) - 1)
        name = list(self.sizes)[slot]
        match self.draw.weighted(self.weights):
            case "write":
                return [self._write(slot, self.sizes[name])]
            case "read":
                return [Operation("read", (slot, self.draw.between(0, self.sizes[name]), 16 * KIB))]
            case "pause":
                return [Operation("pause", (self.draw.pick(_PAUSES_NS),))]
            case "drop_caches":
                return [*DROPPED]
            case "reopen":
                return [Operation("close", (slot,)), Operation("open", (slot, name, "rw"))]
            case "sync":
                return [Operation("sync")]
            case other:
                return [Operation(other, (slot,))]

    def _write(self, slot: int, size: int) -> Operation:
        length = min(self.draw.pick(_LENGTHS), size)
        offset = self.draw.between(0, size - length)
        if self.aligned:
            offset -= offset % 4_096
        self.seed += 1
        return Operation("write", (slot, offset, length, self.seed, 0))
