"""The writes suite: every way in which programs change a file system, up to a nearly full one.

Each case starts from a preparation of its kind: a file of 1 MiB, alone or with files that fill the
partition to 30, 60 or 90 % of its capacity. Cases write in order, at random and by appending, in
small and large requests; sync after every n writes, by fdatasync or by O_SYNC; truncate, extend,
remove and rename; pause while write-back, timers and collectors run; remount; write compressible
bytes.

A measured part takes less than some seconds, or pauses for much longer than any timer, so that no
timer expires within it on one target only. Left out: read-ahead (see the reads suite), and a
partition filled to its last byte.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from flashbed.base.errors import InputError
from flashbed.bench.validation.suite_case import SuiteCase
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import Board

__all__ = ["cases", "filled"]

FILE_BYTES = 1024 * 1024
FILL_FILE_BYTES = 512 * 1024
FILL_WRITE_BYTES = 65536
SMALL_FILES = 24
SMALL_FILE_BYTES = 5000
CONTENT_SEED = 11
SETTLE_NS = 10_000_000_000
END = "pause 10000000000"
"""The last operation of every case: what threads, above all UBI's, do in it counts too."""
FILLS_PCT = (30, 60, 90)


Lines = list[str]


def cases(fs: str, board: Board) -> Iterator[SuiteCase]:
    """The suite on a file system of a board."""
    base = prepared([_base()], SETTLE_NS)
    kinds = {
        "sequential": _sequential,
        "random": _random,
        "append": _append,
        "sync": _synced,
        "truncate": _truncate,
        "names": _names,
        "idle": _idle,
        "remount": _remount,
        "compressible": _compressible,
    }
    for kind, part in kinds.items():
        for name, lines in part():
            yield SuiteCase(name=name, kind=kind, prepare=base, lines=[*lines, END])
    for percent in FILLS_PCT:
        prepare, files = filled(fs, board, percent)
        for name, lines in _nearly_full(files):
            kind = f"{percent} % full"
            yield SuiteCase(
                name=f"full-{percent}-{name}", kind=kind, prepare=prepare, lines=[*lines, END]
            )
    yield SuiteCase(
        name=f"full-{percent}-overwrite-all",
        kind=f"{percent} % full",
        prepare=prepare,
        lines=_over_all(files),
    )


def filled(fs: str, board: Board, percent: int) -> tuple[str, list[str]]:
    """A preparation that fills the partition to `percent`, and its files.

    Each file is followed by a pause, so that timers expire in it.
    """
    capacity = FILE_SYSTEMS[fs].files_pct_of.get(board.chip.page_bytes)
    if capacity is None:
        raise InputError(
            f"{board.path}: the capacity of {fs} with pages of {board.chip.page_bytes} bytes"
            f" has not been measured (files_pct of boards/parts/file_systems.toml)"
        )
    pages = board.partition.blocks * board.chip.pages_per_block
    wanted = pages * board.chip.page_bytes * capacity * percent // 10_000
    names = [f"fill-{number}" for number in range((wanted - FILE_BYTES) // FILL_FILE_BYTES)]
    files = [
        [
            *written_file(name, FILL_FILE_BYTES, FILL_WRITE_BYTES, CONTENT_SEED + 1 + number),
            f"pause {SETTLE_NS}",
        ]
        for number, name in enumerate(names)
    ]
    return prepared([_base(), *files], SETTLE_NS), names


def _base() -> Lines:
    return [
        *written_file("base", FILE_BYTES, 16384, CONTENT_SEED),
        f"pause {SETTLE_NS}",
    ]


def _write(offset: int, length: int, compressibility: int = 0, slot: int = 0) -> str:
    return f"write {slot} {offset} {length} {CONTENT_SEED + 200} {compressibility}"


def _new(*lines: str, flags: str = "rw,create") -> Lines:
    return [f"open 0 new {flags}", "mark", *lines]


def _old(*lines: str, flags: str = "rw") -> Lines:
    return [f"open 0 base {flags}", "mark", *lines]


def _read_back(path: str, length: int) -> Lines:
    """Closes slot 0 and reads a file from the flash, together with its inode.

    The sync and the pause come first because a dirty inode is not evicted, and whether it is dirty
    depends on whether a second ended during the write. Caches are dropped three times because an
    entry that was used more than once survives one pass of the kernel's shrinkers.
    """
    reads = [f"read 0 {offset} 8192" for offset in range(0, length, 8192)]
    return [
        "close 0",
        "sync",
        "pause 60000000000",
        *["drop_caches"] * 3,
        f"open 0 {path} ro",
        *reads,
    ]


def _every(count: int, sync: str, writes: Sequence[str]) -> Lines:
    """The writes, with a sync after every `count` of them and at the end."""
    lines: Lines = []
    for number, write in enumerate(writes, start=1):
        lines += [write, sync] if number % count == 0 else [write]
    return lines if lines[-1] == sync else [*lines, sync]


def _ordered(length: int, total: int, compressibility: int = 0) -> Lines:
    return [_write(offset, length, compressibility) for offset in range(0, total, length)]


def _scattered(
    length: int, count: int, *, step: int, compressibility: int = 0, file_bytes: int = FILE_BYTES
) -> Lines:
    """Writes at random multiples of `step` in a file."""
    draw = random.Random(length * 1000 + count).random
    places = [int(draw() * ((file_bytes - length) // step)) * step for _ in range(count)]
    return [_write(place, length, compressibility) for place in places]


def _appended(length: int, count: int, compressibility: int = 0) -> Lines:
    """Writes through an appending descriptor; the offset selects the bytes."""
    return [_write(FILE_BYTES + length * part, length, compressibility) for part in range(count)]


def _sequential() -> Iterator[tuple[str, Lines]]:
    """A new file in requests of one size, also read back."""
    for length, total in ((100, 20_000), (600, 60_000), (2048, 196_608), (12_288, 294_912)):
        yield f"sequential-{length}", _new(*_ordered(length, total), "fsync 0")
    yield "sequential-131072", _new(*_ordered(131_072, 655_360), "fsync 0")
    yield "sequential-4096-sync", _new(*_ordered(4096, 327_680), "sync")
    back = _read_back("new", 163_840)
    yield "sequential-8192-read-back", _new(*_ordered(8192, 163_840), "fsync 0", *back)
    rewritten = [*_ordered(16_384, 131_072), "fsync 0"] * 3
    yield "rewritten-16384", _new(*rewritten)


def _random() -> Iterator[tuple[str, Lines]]:
    """Random writes to an existing file."""
    for length, count, step in ((100, 64, 1), (1000, 64, 1), (4096, 64, 4096), (20_000, 24, 1)):
        writes = _scattered(length, count, step=step)
        yield f"random-{length}", _old(*writes, "fsync 0")
    writes = _scattered(65_536, 10, step=4096)
    yield "random-65536-sync", _old(*writes, "sync")
    writes = _scattered(3000, 48, step=1)
    yield "random-3000-read-back", _old(*writes, "fsync 0", *_read_back("base", 262_144))
    cold = ["drop_caches", *_scattered(1500, 32, step=1), "fsync 0"]
    yield "random-1500-not-cached", _old(*cold)


def _append() -> Iterator[tuple[str, Lines]]:
    for length, count in ((100, 96), (900, 64), (5000, 32), (40_000, 10)):
        lines = [*_appended(length, count), "fsync 0"]
        yield f"append-{length}", _old(*lines, flags="wo,append")
    two = [_write(FILE_BYTES + 1200 * part, 1200, slot=part % 2) for part in range(48)]
    opened = ["open 0 base wo,append", "open 1 new wo,create,append", "mark"]
    yield "append-two-files", [*opened, *two, "fsync 0", "fsync 1"]


def _synced() -> Iterator[tuple[str, Lines]]:
    """Writes made durable after every n, in every available way."""
    for count in (1, 3, 10):
        lines = _every(count, "fsync 0", _appended(800, 30))
        yield f"append-800-fsync-{count}", _old(*lines, flags="wo,append")
    for count in (1, 8):
        lines = _every(count, "fsync 0", _scattered(4096, 32, step=4096))
        yield f"random-4096-fsync-{count}", _old(*lines)
    lines = _every(1, "fdatasync 0", _scattered(2000, 32, step=1))
    yield "random-2000-fdatasync-1", _old(*lines)
    lines = _every(4, "fdatasync 0", _appended(1000, 32))
    yield "append-1000-fdatasync-4", _old(*lines, flags="wo,append")
    yield "append-700-o-sync", _old(*_appended(700, 24), flags="wo,append,sync")
    yield "random-4096-o-dsync", _old(*_scattered(4096, 24, step=4096), flags="rw,dsync")
    yield "random-9000-o-sync", _old(*_scattered(9000, 16, step=1), flags="rw,sync")
    several = [f"open {slot} log-{slot} wo,create" for slot in range(8)]
    rounds = [
        line
        for part in range(6)
        for slot in range(8)
        for line in (_write(300 * part, 300, slot=slot), f"fsync {slot}")
    ]
    yield "eight-logs-300-fsync-1", [*several, "mark", *rounds]


def _truncate() -> Iterator[tuple[str, Lines]]:
    yield "truncate-half", _old(f"truncate 0 {FILE_BYTES // 2}", "fsync 0")
    yield "truncate-nothing-left", _old("truncate 0 0", "fsync 0")
    yield "truncate-grow", _old(f"truncate 0 {FILE_BYTES + 300_000}", "fsync 0")
    steps = [f"truncate 0 {FILE_BYTES - 7001 * part}" for part in range(1, 17)]
    yield "truncate-in-steps", _old(*_every(1, "fsync 0", steps))
    again = [f"truncate 0 {FILE_BYTES // 4}", *_ordered(4096, 65_536), "fsync 0"]
    yield "truncate-and-write", _old(*again)
    again = ["open 0 base wo,trunc", *_ordered(16_384, 262_144), "fsync 0", "close 0"]
    yield "truncate-by-open", ["mark", *again, *again]


def _small_files(first: int = 0) -> Lines:
    return [
        line
        for number in range(first, first + SMALL_FILES)
        for line in (
            f"open 0 small-{number} wo,create",
            _write(0, SMALL_FILE_BYTES),
            "close 0",
        )
    ]


def _names() -> Iterator[tuple[str, Lines]]:
    """Files and folders made, removed and renamed."""
    yield "create-small", ["mark", *_small_files(), "sync"]
    folders = [f"mkdir d-{number}" for number in range(12)]
    yield "mkdir", ["mark", *folders, "sync"]
    removed = [f"unlink small-{number}" for number in range(SMALL_FILES)]
    yield "unlink-small", [*_small_files(), "sync", f"pause {SETTLE_NS}", "mark", *removed, "sync"]
    yield "unlink-large", ["mark", "unlink base", "sync", f"pause {SETTLE_NS}"]
    still = ["unlink base", *_scattered(4096, 8, step=4096), "close 0", "sync"]
    yield "unlink-open", _old(*still)
    renamed = [f"rename small-{number} other-{number}" for number in range(SMALL_FILES)]
    yield "rename-small", [*_small_files(), "sync", f"pause {SETTLE_NS}", "mark", *renamed, "sync"]
    replaced = [
        line
        for _ in range(8)
        for line in (
            "open 0 base.new wo,create,trunc",
            *_ordered(8192, 32_768),
            "fsync 0",
            "close 0",
            "rename base.new base",
        )
    ]
    yield "replace", ["mark", *replaced, "sync"]
    yield "rmdir", [*folders, "sync", "mark", *[f"rmdir d-{n}" for n in range(12)], "sync"]


def _idle() -> Iterator[tuple[str, Lines]]:
    """No sync: timers and write-back do the work, in pauses much longer than they take."""
    yield "idle-60s-after-new", _new(*_ordered(4096, 131_072), "pause 60000000000")
    rest = ["pause 60000000000"]
    parts = [[*_scattered(4096, 16, step=4096 + part), *rest] for part in range(3)]
    yield "idle-60s-after-random", _old(*[line for part in parts for line in part])
    appended = [line for write in _appended(1000, 6) for line in (write, "pause 12000000000")]
    yield "idle-12s-after-append", _old(*appended, flags="wo,append")
    synced = [
        line
        for write in _scattered(2500, 12, step=1)
        for line in (write, "fsync 0", "pause 12000000000")
    ]
    yield "idle-12s-after-fsync", _old(*synced)


def _remount() -> Iterator[tuple[str, Lines]]:
    closed = ["close 0", "remount"]
    yield "remount-after-new", _new(*_ordered(4096, 131_072), *closed)
    reads = [f"read 0 {offset} 4096" for offset in range(0, 65_536, 4096)]
    yield "remount-and-read", ["mark", "remount", "open 0 base ro", *reads]
    writes = _scattered(4096, 16, step=4096)
    yield "remount-and-write", ["mark", "remount", "open 0 base rw", *writes, "fsync 0"]


def _compressible() -> Iterator[tuple[str, Lines]]:
    for percent in (50, 90):
        ordered = [*_ordered(8192, 262_144, percent), "fsync 0"]
        yield f"compressible-{percent}-ordered", _new(*ordered)
        scattered = [*_scattered(5000, 32, step=1, compressibility=percent), "fsync 0"]
        yield f"compressible-{percent}-random", _old(*scattered)
    lines = _every(1, "fsync 0", _appended(1500, 24, 50))
    yield "compressible-50-append-fsync-1", _old(*lines, flags="wo,append")
    back = _read_back("new", 131_072)
    yield "compressible-90-read-back", _new(*_ordered(4096, 131_072, 90), "fsync 0", *back)


def _nearly_full(files: Sequence[str]) -> Iterator[tuple[str, Lines]]:
    """Overwrites and removes until garbage collection runs, in the writer and in a pause."""
    rest = "pause 12000000000"
    over = [
        [
            f"open 0 {name} rw",
            *_scattered(4096, 30, step=4096, file_bytes=FILL_FILE_BYTES),
            "fsync 0",
            "close 0",
        ]
        for name in files[::2][:8]
    ]
    yield "overwrite", ["mark", *(line for part in over for line in part)]
    yield "overwrite-and-rest", ["mark", *(line for part in over for line in (*part, rest))]
    whole = [[*_whole(name, "rw"), rest] for name in files[:16]]
    yield "rewrite", ["mark", *(line for part in whole for line in part)]
    gone = [f"unlink {name}" for name in files[::2][:8]]
    back = [line for number in range(6) for line in _whole(f"back-{number}", "rw,create")]
    yield "unlink-and-write", ["mark", *gone, "sync", "pause 60000000000", *back]


def _over_all(files: Sequence[str]) -> Lines:
    """Rewrites a third of every file, so that no block keeps only valid data."""
    parts = [
        [
            f"open 0 {name} rw",
            *_scattered(4096, 48, step=4096, file_bytes=FILL_FILE_BYTES),
            "fsync 0",
            "close 0",
            *(["pause 12000000000"] if number % 8 == 7 else []),
        ]
        for number, name in enumerate(files)
    ]
    return ["mark", *(line for part in parts for line in part)]


def _whole(path: str, flags: str) -> Lines:
    """Writes a whole file of the fill's size."""
    writes = [_write(offset, 65_536) for offset in range(0, FILL_FILE_BYTES, 65_536)]
    return [f"open 0 {path} {flags}", *writes, "fsync 0", "close 0"]
