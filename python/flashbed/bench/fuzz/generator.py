"""Random programs: class, file system and seed determine one, the same on every machine.

Class `reads`: files are written in order and left alone; the measured part reads them, in orders
that read-ahead has rules for and in others, with advice, pauses, dropped caches and reopened files.
Class `maps`: the same with page faults in mapped files (`maps_body`).
Class `any`: everything else too, with errors that a program would meet (`any_body`).
Class `calls`: everything of `any`, and the operations that version 2 adds (`calls_body`).
Class `full`: changes to files that fill a small partition, up to ENOSPC (`full_body`).
Class `cuts`: changes and syncs of all kinds, with power cuts (`cuts`).
Class `cutcalls`: the same with the operations of version 2 (`cut_calls`).
Class `faults`: as `any`, on a chip that sometimes fails (`fault_draw`).
Class `errors`: as `any`, on a worn chip whose bit errors follow it (`fault_draw`).
Three in eight programs of classes `reads`, `any` and `faults` mount UBIFS with `bulk_read`.

Invariants:
1. Operations before the mark succeed, and slots are in order (`flashbed.program.operations.parse`).
2. Four consecutive seeds, from a multiple of four on, share the preparation of classes `reads`,
   `maps` and `cuts`, so that a target can reuse it. Each of them gives the same program when run
   alone.
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
from flashbed.bench.fuzz.fault_draw import drawn_errors, drawn_faults
from flashbed.bench.fuzz.full_body import FullBody, filled
from flashbed.bench.fuzz.maps_body import MapsBody
from flashbed.bench.fuzz.program import MARK, FuzzCase, repaired
from flashbed.bench.fuzz.reads_body import ReadsBody
from flashbed.program.operations import Operation
from flashbed.stack.conditions import NONE

__all__ = ["CLASSES", "CUT", "LEFT_OUT", "generate"]

CLASSES = ("reads", "maps", "any", "calls", "full", "cuts", "cutcalls", "faults", "errors")
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
    faults, wear = NONE, 0
    if kind == "faults":
        faults = drawn_faults(draw)
    elif kind == "errors":
        faults, wear = drawn_errors(draw)
    window = draw.weighted(WINDOWS_KIB)
    if kind in ("reads", "maps"):
        shared = Draw(f"{kind} {fs} prepared {seed // SEEDS_PER_PREPARATION}")
        prepare, sizes = _prepare(shared, _file_sizes(shared, ("a", "b", "c", "d")), without)
        reading = ReadsBody if kind == "reads" else MapsBody
        body = [*DROPPED, MARK, *reading(draw, sizes, without).operations()]
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
        wear=wear,
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
