"""Draws programs of class `reads`: reads in orders that read-ahead has rules for, and in others."""

from __future__ import annotations

from collections.abc import Collection

from flashbed.bench.fuzz.any_body import DROPPED
from flashbed.bench.fuzz.draw import Draw
from flashbed.program.operations import Operation

__all__ = ["ReadsBody"]

_LENGTHS = (1, 100, 512, 2_048, 4_095, 4_096, 4_096, 4_097, 8_192, 12_288, 16_384, 65_536, 131_072)
_ADVICE = ("normal", "random", "sequential", "willneed", "willneed", "dontneed", "noreuse")
_PAUSES_NS = (1, 1_000_000, 50_000_000, 2_000_000_000, 12_000_000_000)
_READS_DO = {
    "read": 60,
    "open": 8,
    "close": 4,
    "fadvise": 8,
    "pause": 3,
    "drop_caches": 3,
    "missing": 1,
    "fsync": 1,
}
_PLACES = {
    "next": 40,
    "byte": 18,
    "page": 14,
    "again": 6,
    "back": 6,
    "skip": 6,
    "end": 6,
    "beyond": 2,
}


class ReadsBody:
    """Measured operations that write nothing."""

    def __init__(self, draw: Draw, sizes: dict[str, int], without: Collection[str]) -> None:
        self.draw = draw
        self.sizes = sizes
        self.weights = {name: w for name, w in _READS_DO.items() if name not in without}
        self.slots_max = 1 if "two-slots" in without else draw.pick((1, 2, 3, 5))
        self.held: dict[int, str | None] = {}
        self.next_byte: dict[int, int] = {}
        self.last: dict[int, tuple[int, int]] = {}
        self.steady_length = draw.pick(_LENGTHS)

    def operations(self) -> list[Operation]:
        """Tens of operations; the first opens a file."""
        lines = [self._open()]
        for _ in range(self.draw.between(4, 40)):
            lines += self._step()
        return lines

    def _step(self) -> list[Operation]:
        choice = self.draw.weighted(self.weights)
        if choice in ("open", "missing") and len(self.held) >= self.slots_max:
            choice = "close"
        if choice not in ("open", "missing", "pause", "drop_caches") and not self.held:
            choice = "open"
        match choice:
            case "open":
                return [self._open()]
            case "missing":
                slot = self._free_slot()
                self.held[slot] = None
                return [Operation("open", (slot, "nothing", "ro"))]
            case "pause":
                return [Operation("pause", (self.draw.pick(_PAUSES_NS),))]
            case "drop_caches":
                return [*DROPPED]
            case _:
                return self._on_slot(choice, self.draw.pick(list(self.held)))

    def _on_slot(self, choice: str, slot: int) -> list[Operation]:
        if choice == "close":
            del self.held[slot]
            self.last.pop(slot, None)
            return [Operation("close", (slot,))]
        if choice == "fsync":
            return [Operation("fsync", (slot,))]
        size = self.sizes.get(self.held[slot] or "", 1)
        if choice == "fadvise":
            whole = self.draw.chance(60)
            offset = 0 if whole else self.draw.between(0, size)
            length = 0 if whole else self.draw.between(0, size)
            return [Operation("fadvise", (slot, offset, length, self.draw.pick(_ADVICE)))]
        run = self.draw.between(2, 6) if self.draw.chance(25) else 1
        return [self._read(slot, size, in_order=part > 0) for part in range(run)]

    def _free_slot(self) -> int:
        return next(slot for slot in range(64) if slot not in self.held)

    def _open(self) -> Operation:
        slot = self._free_slot()
        self.held[slot] = path = self.draw.pick(list(self.sizes))
        self.next_byte[slot] = 0
        return Operation("open", (slot, path, "rw" if self.draw.chance(10) else "ro"))

    def _read(self, slot: int, size: int, *, in_order: bool) -> Operation:
        draw = self.draw
        steady = in_order or draw.chance(50)
        length = self.steady_length if steady else draw.between(1, draw.pick(_LENGTHS))
        following = self.next_byte.get(slot, 0)
        offset, before = self.last.get(slot, (0, length))
        place = "next" if in_order else draw.weighted(_PLACES)
        if place == "next" and following >= size and draw.chance(75):
            place = "byte"
        match place:
            case "next":
                offset = following
            case "byte":
                offset = draw.between(0, size)
            case "page":
                offset = draw.between(0, size // 4096) * 4096
            case "again":
                length = before
            case "back":
                offset = max(0, offset - length)
            case "skip":
                offset = following + length * draw.between(1, 3)
            case "end":
                offset = max(0, size - draw.between(0, length))
            case _:
                offset = size + draw.between(0, 100_000)
        self.last[slot], self.next_byte[slot] = (offset, length), offset + length
        return Operation("read", (slot, offset, length))
