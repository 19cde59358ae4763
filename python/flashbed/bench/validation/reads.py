"""The reads suite: read patterns used for nothing else.

Requests of 512 B to 128 KiB under windows of 0 to 512 KiB: in order, at random, backward, in
strides, interleaved on two files and on one; unaligned, past the end, repeated; the advices of
posix_fadvise; pauses; caches dropped in between; opening after the inode was evicted. All start
from one prepared state with dropped caches. On UBIFS some run again with bulk-read, and on a file
that was not written in order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from flashbed.bench.validation.suite_case import SuiteCase
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.stack.profiles import Board

__all__ = ["cases"]

FILES = {"a": 2 * 1024 * 1024, "b": 1024 * 1024, "c": 307_300}
SETTLE_NS = 10_000_000_000
WRITE_BYTES = 16384
CONTENT_SEED = 3

Body = tuple[int, Sequence[str]]
"""read_ahead_kib, and the operations between drop_caches and the end."""


def _prepare() -> str:
    """Writes the files, with a pause after each.

    Timers (JFFS2's write-buffer, 5 s) then expire in a pause and not in a slow board's write.
    """
    rest = f"pause {SETTLE_NS}"
    files = (
        [*written_file(path, size, WRITE_BYTES, CONTENT_SEED), rest] for path, size in FILES.items()
    )
    return prepared(files, SETTLE_NS)


def _opened(*reads: str, path: str = "a") -> list[str]:
    return [f"open 0 {path} ro", "mark", *reads]


def _read(offset: int, length: int, slot: int = 0) -> str:
    return f"read {slot} {offset} {length}"


def _in_order() -> Iterator[tuple[str, Body]]:
    """The first 192 KiB in requests of one size, under every window."""
    for length in (512, 2048, 4096, 12288, 32768, 131072):
        for window in (0, 16, 32, 128, 512):
            reads = [_read(offset, length) for offset in range(0, 196608, length)]
            yield f"ordered-{length}-ra{window}", (window, _opened(*reads))


def _at_random() -> Iterator[tuple[str, Body]]:
    """Random positions in the file, at any byte and at pages."""
    for length in (512, 2048, 4096, 16384, 131072):
        for window in (0, 128):
            draw = random.Random(length + window).random
            places = [int(draw() * (FILES["a"] - length)) for _ in range(24)]
            reads = [_read(place, length) for place in places]
            yield f"scattered-{length}-ra{window}", (window, _opened(*reads))
    for window in (16, 32, 128, 512):
        draw = random.Random(window).random
        pages = [int(draw() * (FILES["b"] // 4096)) for _ in range(96)]
        reads = [_read(4096 * page, 4096) for page in pages]
        yield f"pages-ra{window}", (window, _opened(*reads, path="b"))


def _patterns() -> Iterator[tuple[str, Body]]:
    """Orders that read-ahead has rules for."""
    for window in (0, 128):
        again = [_read(offset, 8192) for offset in range(0, 131072, 8192)]
        yield f"again-ra{window}", (window, _opened(*again, *again))
        both = [_read(4096 * page, 4096, slot) for page in range(24) for slot in (0, 1)]
        two = ["open 0 a ro", "open 1 b ro", "mark", *both]
        yield f"two-files-ra{window}", (window, two)
        one = ["open 0 a ro", "open 1 a ro", "mark"]
        one += [_read(4096 * page, 4096) for page in range(8)]
        for page in range(8, 24):
            one += [_read(4096 * page, 4096), _read(1048576 + 4096 * page, 4096, 1)]
        yield f"two-readers-ra{window}", (window, one)
    backward = [_read(4096 * page, 4096) for page in range(60, 0, -1)]
    yield "backward-ra128", (128, _opened(*backward))
    for stride in (2, 3, 5):
        strided = [_read(4096 * page, 4096) for page in range(0, 40 * stride, stride)]
        yield f"stride-{stride}-ra128", (128, _opened(*strided))
    tail = [_read(FILES["c"] - 9000 + 1000 * part, 1000) for part in range(9)]
    past = [_read(FILES["c"] - 100, 4096), _read(FILES["c"], 4096), _read(FILES["c"] + 9999, 1)]
    yield "end-of-file-ra128", (128, _opened(*tail, *past, path="c"))
    whole = [_read(offset, 65536) for offset in range(0, FILES["c"], 65536)]
    yield "whole-file-ra128", (128, _opened(*whole, path="c"))
    middle = [_read(700_001 + 3333 * part, 3333) for part in range(40)]
    yield "from-the-middle-ra128", (128, _opened(*middle))


def _advised() -> Iterator[tuple[str, Body]]:
    """posix_fadvise."""
    ordered = [_read(4096 * page, 4096) for page in range(24)]
    yield "advice-random-ra128", (128, _opened("fadvise 0 0 0 random", *ordered))
    yield "advice-sequential-ra128", (128, _opened("fadvise 0 0 0 sequential", *ordered))
    taken_back = ("fadvise 0 0 0 random", "fadvise 0 0 0 normal")
    yield "advice-normal-ra128", (128, _opened(*taken_back, *ordered))
    yield "advice-noreuse-ra128", (128, _opened("fadvise 0 0 0 noreuse", *ordered))
    needed = ("fadvise 0 65536 65536 willneed", _read(65536, 4096), _read(126976, 4096))
    yield "advice-willneed-ra128", (128, _opened(*needed))
    yield "advice-willneed-ra0", (0, _opened(*needed))
    dropped = (*ordered[:8], "fadvise 0 0 16384 dontneed", *ordered[:8])
    yield "advice-dontneed-ra128", (128, _opened(*dropped))


def _caches() -> Iterator[tuple[str, Body]]:
    """Pauses, caches dropped in between, and a measured open."""
    ordered = [_read(4096 * page, 4096) for page in range(12)]
    paused = [line for read in ordered for line in (read, "pause 50000000")]
    yield "paused-ra128", (128, _opened(*paused))
    yield "dropped-ra128", (128, _opened(*ordered, "drop_caches", *ordered))
    for path in FILES:
        opening = ["mark", f"open 0 {path} ro", _read(0, 4096)]
        yield f"opening-{path}-ra0", (0, opening)


_AGAIN_IN_BULK = (
    "ordered-512-ra0", "ordered-4096-ra0", "ordered-4096-ra16", "ordered-12288-ra128",
    "ordered-32768-ra0", "ordered-131072-ra0", "ordered-131072-ra128", "scattered-16384-ra0",
    "scattered-131072-ra0", "pages-ra16", "two-files-ra0", "two-readers-ra0", "two-readers-ra128",
    "backward-ra128", "stride-2-ra128", "end-of-file-ra128", "from-the-middle-ra128",
    "advice-random-ra128", "advice-willneed-ra0", "advice-dontneed-ra128", "dropped-ra128",
)  # fmt: skip
"""Cases that exercise bulk-read."""


def _patched() -> str:
    """A file with rewritten pages, compressible pages, holes and a truncation."""
    rest = f"pause {SETTLE_NS}"
    pieces = ((40960, 4096), (86016, 8192), (150000, 12288), (300000, 20480))
    return prepared(
        (
            [*written_file("d", 512 * 1024, WRITE_BYTES, CONTENT_SEED), rest],
            [
                "open 0 d rw",
                *(f"write 0 {offset} {length} 7 0" for offset, length in pieces),
                "fsync 0",
                "truncate 0 700000",
                "write 0 655360 131072 9 50",
                "fsync 0",
                "truncate 0 400001",
                "write 0 409600 4096 8 0",
                "write 0 569344 81920 8 90",
                "close 0",
                "sync",
                rest,
            ],
        ),
        SETTLE_NS,
    )


def _in_bulk() -> Iterator[tuple[str, str, Body]]:
    """Name, preparation and body of cases mounted with `bulk_read`."""
    prepare, patched = _prepare(), _patched()
    for part in (_in_order, _at_random, _patterns, _advised, _caches):
        for name, body in part():
            if name in _AGAIN_IN_BULK:
                yield f"bulk-{name}", prepare, body
    for length in (1000, 4096, 65536):
        for window in (0, 128):
            reads = [_read(offset, length) for offset in range(0, 655360, length)]
            name = f"bulk-patched-{length}-ra{window}"
            yield name, patched, (window, _opened(*reads, path="d"))


def cases(fs: str, board: Board) -> Iterator[SuiteCase]:  # noqa: ARG001 - the same on all
    """The suite on a file system of a board."""
    prepare = _prepare()
    kinds = {
        "in order": _in_order,
        "at random": _at_random,
        "patterns": _patterns,
        "advised": _advised,
        "caches": _caches,
    }
    for kind, part in kinds.items():
        for name, (window, lines) in part():
            yield SuiteCase(
                name=name,
                kind=kind,
                prepare=prepare,
                lines=("drop_caches", *lines),
                read_ahead_kib=window,
            )
    if fs == "ubifs":
        for name, start, (window, lines) in _in_bulk():
            lines = (*["drop_caches"] * 3, *lines)
            yield SuiteCase(
                name=name,
                kind="in bulk",
                prepare=start,
                lines=lines,
                read_ahead_kib=window,
                bulk_read=True,
            )
