"""Random programs: class, file system and seed determine one, the same on every machine.

Class `reads`: files are written in order and left alone; the measured part reads them, in orders
that read-ahead has rules for and in others, with advice, pauses, dropped caches and reopened files.
Class `any`: everything else too, with errors that a program would meet (`any_body`).
Class `calls`: everything of `any`, and the operations that version 2 adds (`calls_body`).
Class `full`: changes to files that fill a small partition, up to ENOSPC (`full_body`).
Class `cuts`: changes and syncs of all kinds, with power cuts (`cuts`).
Class `cutcalls`: the same with the operations of version 2 (`cut_calls`).
Class `faults`: as `any`, on a chip that sometimes fails (`fault_draw`).
Three in eight programs of classes `reads`, `any` and `faults` mount UBIFS with `bulk_read`.

Invariants:
1. Operations before the mark succeed, and slots are in order (`flashbed.program.operations.parse`).
2. Four consecutive seeds, from a multiple of four on, share the preparation of classes `reads` and
   `cuts`, so that a target can reuse it. Each of them gives the same program when run alone.
3. No program has an operation or feature that is left out by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from flashbed.base.errors import InputError
from flashbed.bench.fuzz.any_body import DROPPED, FEATURES, AnyBody
from flashbed.bench.fuzz.calls_body import CALLS, CallsBody
from flashbed.bench.fuzz.cut_calls import CutCallsBody
from flashbed.bench.fuzz.cuts import CutsBody
from flashbed.bench.fuzz.draw import Draw
from flashbed.bench.fuzz.fault_draw import drawn_faults
from flashbed.bench.fuzz.full_body import FullBody, filled
from flashbed.bench.fuzz.program import MARK, FuzzCase, repaired
from flashbed.program.operations import Operation
from flashbed.stack.conditions import NONE

__all__ = ["CLASSES", "CUT", "LEFT_OUT", "generate"]

CLASSES = ("reads", "any", "calls", "full", "cuts", "cutcalls", "faults")
CUT = ("cuts", "cutcalls")
"""Those whose programs end in power cuts."""
LEFT_OUT = tuple(sorted({*FEATURES, *CALLS, "bulk-read", "pause", "reopen", "two-slots"}))
"""What can be left out by name."""
SEEDS_PER_PREPARATION = 4
SETTLE_NS = 10_000_000_000
APPENDS_PER_FILE_MAX = 24
KIB = 1024

WINDOWS_KIB = {0: 3, 4: 1, 8: 1, 16: 2, 32: 2, 64: 2, 128: 6, 256: 1, 512: 2}
_SIZES = {(1, 600): 2, (1, 9_000): 3, (4_096, 65_536): 4, (65_536, 409_600): 3}
_REQUESTS = (300, 512, 1_000, 2_048, 4_096, 4_096, 5_000, 8_192, 16_384, 16_384, 65_536)
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


def generate(kind: str, fs: str, seed: int, without: Collection[str] = ()) -> FuzzCase:
    """The program of a class, file system and seed, without anything named in `without`.

    Raises `InputError` for an unknown class or name.
    """
    if kind not in CLASSES:
        raise InputError(f"--class {kind}: no such class; there are {', '.join(CLASSES)}")
    for name in without:
        if name not in LEFT_OUT:
            raise InputError(f"--without {name}: there are {', '.join(LEFT_OUT)}")
    draw = Draw(f"{kind} {fs} {seed}")
    faults = drawn_faults(draw) if kind == "faults" else NONE
    window = draw.weighted(WINDOWS_KIB)
    if kind == "reads":
        shared = Draw(f"{kind} {fs} prepared {seed // SEEDS_PER_PREPARATION}")
        prepare, sizes = _prepare(shared, _file_sizes(shared, ("a", "b", "c", "d")), without)
        body = [*DROPPED, MARK, *_ReadsBody(draw, sizes, without).operations()]
    elif kind == "full":
        prepare = ()
        filling, sizes = filled(draw, fs)
        body = [*filling, MARK, *FullBody(draw, sizes, without).operations()]
    elif kind in CUT:
        shared = Draw(f"{kind} {fs} prepared {seed // SEEDS_PER_PREPARATION}")
        # Not empty: JFFS2 does not mount a chip whose first node is torn.
        prepare, _ = _prepare(shared, _file_sizes(shared, ("a", "b")), without)
        cut_body = CutsBody if kind == "cuts" else CutCallsBody
        body = [MARK, *cut_body(draw, prepare, without).operations()]
    else:
        some = _file_sizes(draw, ("a", "b")) if draw.chance(50) else {}
        prepare, _ = _prepare(draw, some, without)
        start = [*DROPPED] if prepare and draw.chance(50) else []
        program = CallsBody if kind == "calls" else AnyBody
        body = [*start, MARK, *program(draw, prepare, without).operations()]
    case_id = f"fuzz-{kind}-{fs}-{seed}"
    bulk = "bulk-read" not in without and _mounted_with_bulk_read(kind, fs, seed)
    return FuzzCase(
        case_id=case_id,
        fs=fs,
        read_ahead_kib=window,
        prepare=prepare,
        body=repaired(body, close=False),
        faults=faults,
        bulk_read=bulk,
    )


def _mounted_with_bulk_read(kind: str, fs: str, seed: int) -> bool:
    """Drawn from a name of its own, so that a seed's operations do not depend on it."""
    if fs != "ubifs" or kind not in ("reads", "any", "faults"):
        return False
    return Draw(f"{kind} bulk_read {seed // SEEDS_PER_PREPARATION}").chance(37)


def _file_sizes(draw: Draw, names: Sequence[str]) -> dict[str, int]:
    """Sizes of one or more files; the last names are often left out."""
    sizes: dict[str, int] = {}
    for name in names[: draw.between(1, len(names))]:
        low, high = draw.weighted(_SIZES)
        size = draw.between(low, high)
        if size > 4_096 and draw.chance(25):
            size -= size % 4_096
        sizes[name] = size
    return sizes


def _prepare(
    draw: Draw, sizes: dict[str, int], without: Collection[str]
) -> tuple[tuple[Operation, ...], dict[str, int]]:
    """Writes the files in order, one after the other or in turn, and pauses."""
    writers = [
        _written(draw, slot, path=path, size=size, without=without)
        for slot, (path, size) in enumerate(sizes.items())
    ]
    lines: list[Operation] = []
    if draw.chance(35):
        while writers:
            writer = draw.pick(writers)
            following = next(writer, None)
            if following is None:
                writers.remove(writer)
            else:
                lines += following
    else:
        lines += [line for writer in writers for part in writer for line in part]
    if lines:
        lines += [Operation("sync"), Operation("pause", (SETTLE_NS,))]
    return repaired(lines, close=True), sizes


def _written(
    draw: Draw, slot: int, *, path: str, size: int, without: Collection[str]
) -> Iterator[list[Operation]]:
    """Writes a file in order, a piece at a time."""
    yield [Operation("open", (slot, path, "rw,create"))]
    request, steady = draw.pick(_REQUESTS), draw.chance(60)
    at, seed = 0, draw.between(1, 999)
    while at < size:
        wanted = request if steady else draw.between(1, 2 * request)
        length = min(max(wanted, -(-size // APPENDS_PER_FILE_MAX)), size - at)
        part = [Operation("write", (slot, at, length, seed, 0))]
        at += length
        if draw.chance(6) and "fsync" not in without:
            part.append(Operation("fsync", (slot,)))
        if draw.chance(4):
            part += [Operation("close", (slot,)), Operation("open", (slot, path, "wo"))]
        yield part
    yield [Operation("fsync", (slot,))] * int("fsync" not in without and draw.chance(50))
    yield [Operation("close", (slot,))]


class _ReadsBody:
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
