"""The operations of class `full`: changes to files that fill much of a small partition.

Every file system then has to collect garbage. Half of the programs only overwrite, so their writes
always fit. The others also append, create, truncate and remove, need more space than there is, and
get ENOSPC.

Invariant: the bytes of all files together are at most `LIVE_BYTES_MAX` until a program grows.
"""

from __future__ import annotations

from collections.abc import Collection

from flashbed.bench.fuzz.any_body import DROPPED
from flashbed.bench.fuzz.draw import Draw
from flashbed.program.operations import Operation

__all__ = ["FullBody", "filled"]

LIVE_BYTES_MAX = {"jffs2": 1_900_000, "ubifs": 2_800_000}
"""Bytes that certainly fit: into 3 MiB (`emulated-small`), into 46 LEBs (`emulated-46-lebs`)."""
FILE_BYTES_MAX = 3_000_000
FILES_MAX = 12
WRITES_PER_FILE_MAX = 12
KIB = 1024
_FILES = ("a", "b", "c", "d", "e", "f")
_LENGTHS = (512, 4_096, 16 * KIB, 16 * KIB, 40_000, 64 * KIB, 128 * KIB, 300_000)
_APPENDED = (4_096, 40_000, 128 * KIB, 300_000, 600_000)
_PAUSES_NS = (1_000_000, 30_000_000, 200_000_000, 2_000_000_000, 7_000_000_000)
_OVERWRITES = {"write": 60, "fsync": 14, "pause": 12, "sync": 3, "read": 6, "drop_caches": 1,
               "reopen": 4}  # fmt: skip
_GROWS = {**_OVERWRITES, "append": 80, "new": 20, "unlink": 6, "truncate": 6, "rename": 2,
          "remount": 2}  # fmt: skip


def filled(draw: Draw, fs: str) -> tuple[list[Operation], dict[str, int]]:
    """Operations that write files in order, and the files' sizes."""
    names = _FILES[: draw.between(1, len(_FILES))]
    live_max = LIVE_BYTES_MAX.get(fs, min(LIVE_BYTES_MAX.values()))
    live = draw.between(live_max // 4, live_max)
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
    """A program that changes existing files, each open in a slot of its own.

    `sizes` assumes that nothing failed with ENOSPC, which the program cannot know.
    """

    def __init__(self, draw: Draw, sizes: dict[str, int], without: Collection[str] = ()) -> None:
        self.draw = draw
        self.sizes = dict(sizes)
        self.slots = {name: slot for slot, name in enumerate(sizes)}
        do = _GROWS if draw.chance(50) else _OVERWRITES
        self.weights = {name: weight for name, weight in do.items() if name not in without}
        self.aligned = draw.chance(50)
        self.seed = draw.between(1, 999)
        self.made = 0

    def operations(self) -> list[Operation]:
        """Tens of operations that write some megabytes; then the files are read back."""
        lines = self._opens()
        for _ in range(self.draw.between(20, 75)):
            lines += self._step()
        for name, slot in self.slots.items():
            every = range(0, self.sizes[name] + 1, 1024 * KIB)
            lines += [Operation("read", (slot, at, 1024 * KIB)) for at in every]
        return lines

    def _opens(self) -> list[Operation]:
        return [Operation("open", (slot, name, "rw")) for name, slot in self.slots.items()]

    def _step(self) -> list[Operation]:
        name = self.draw.pick(list(self.slots)) if self.slots else ""
        choice = self.draw.weighted(self.weights)
        if not name or (choice == "new" and len(self.slots) < FILES_MAX):
            return self._new()
        slot, size = self.slots[name], self.sizes[name]
        match choice:
            case "write" | "new" if size:
                return [self._write(slot, size)]
            case "append" | "write" | "new":
                return self._append(name)
            case "read":
                return [Operation("read", (slot, self.draw.between(0, size), 16 * KIB))]
            case "pause":
                return [Operation("pause", (self.draw.pick(_PAUSES_NS),))]
            case "drop_caches":
                return [*DROPPED]
            case "reopen":
                return [Operation("close", (slot,)), Operation("open", (slot, name, "rw"))]
            case "truncate":
                self.sizes[name] = self.draw.between(0, size) if self.draw.chance(80) else 0
                return [Operation("truncate", (slot, self.sizes[name]))]
            case "unlink" | "rename":
                return self._renamed(name, choice)
            case "remount":
                return [Operation("remount"), *self._opens()]
            case "sync":
                return [Operation("sync")]
            case other:
                return [Operation(other, (slot,))]

    def _new(self) -> list[Operation]:
        self.made += 1
        name = f"n{self.made}"
        slot = next(slot for slot in range(64) if slot not in self.slots.values())
        self.slots[name], self.sizes[name] = slot, 0
        return [Operation("open", (slot, name, "rw,create")), *self._append(name)]

    def _append(self, name: str) -> list[Operation]:
        length = min(self.draw.pick(_APPENDED), FILE_BYTES_MAX - self.sizes[name])
        if length <= 0:
            return []
        self.seed += 1
        write = Operation("write", (self.slots[name], self.sizes[name], length, self.seed, 0))
        self.sizes[name] += length
        return [write]

    def _renamed(self, name: str, choice: str) -> list[Operation]:
        """Unlinks a file, or renames it over another, which is thereby removed."""
        other = self.draw.pick(list(self.slots)) if choice == "rename" else name
        closed = Operation("close", (self.slots.pop(name),))
        size = self.sizes.pop(name)
        if other == name:
            early = self.draw.chance(50)
            unlink = Operation("unlink", (name,))
            return [closed, unlink] if early else [unlink, closed]
        lines = [closed, Operation("close", (self.slots[other],))]
        self.sizes[other] = size
        opened = Operation("open", (self.slots[other], other, "rw"))
        return [*lines, Operation("rename", (name, other)), opened]

    def _write(self, slot: int, size: int) -> Operation:
        length = min(self.draw.pick(_LENGTHS), size)
        offset = self.draw.between(0, size - length)
        if self.aligned:
            offset -= offset % 4_096
        self.seed += 1
        return Operation("write", (slot, offset, length, self.seed, 0))
