"""The cases of a calibration: programs whose only purpose is to isolate prices of the table.

They are fixed, listed in evidence/calibration.md, and shared with no experiment. A board that
lacks a file system measures the other cases.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import HEADER, HEADER_2
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board, Kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program

__all__ = ["PAUSE_NS", "programs"]

SMALL_FILE_BYTES = (200, 700, 1500, 2600, 3800)
SMALL_FILES = 8
DROPS = 4
BIG_FILE_BYTES = 1024 * 1024
SETTLE_NS = 10_000_000_000
WRITE_BYTES = 4096
CONTENT_SEED = 1
WORDS = 400
TEXT_BYTES = 65_536
RECORD_BYTES = 150
PAUSE_NS = 1_300_000_000
"""Pause of the case `paused`."""


def _reads(requests: Sequence[tuple[int, int, int]]) -> str:
    return "\n".join(f"read {slot} {offset} {length}" for slot, offset, length in requests)


def _prepare() -> str:
    small = (
        written_file(f"small-{length}-{index}", length, WRITE_BYTES, CONTENT_SEED)
        for length in SMALL_FILE_BYTES
        for index in range(SMALL_FILES)
    )
    big = written_file("big", BIG_FILE_BYTES, WRITE_BYTES, CONTENT_SEED)
    return prepared([*small, big], SETTLE_NS)


def _opens(length: int) -> str:
    """Operations that open every small file of a length."""
    return "\n".join(f"open {i} small-{length}-{i} ro" for i in range(SMALL_FILES))


Cases = dict[str, tuple[int, str]]
"""Name -> (read_ahead_kib, operations)."""


def _lines(*lines: str, header: str = HEADER) -> str:
    return "\n".join([header, *lines])


def _bodies() -> Cases:
    """Every case on a file system."""
    return _ended(
        _reading() | _writing() | _compressing() | _names() | _calls() | _cutting() | _mounts()
    )


def _ended(cases: Cases) -> Cases:
    """Each case with a line feed at its end."""
    return {name: (window, f"{body}\n") for name, (window, body) in cases.items()}


def _read_in_order(length: int) -> str:
    """Reads half of the big file, from dropped caches."""
    requests = [(0, offset, length) for offset in range(0, 524288, length)]
    return f"{HEADER}\ndrop_caches\nopen 0 big ro\nmark\n{_reads(requests)}"


def _reading() -> Cases:
    opened = f"{HEADER}\ndrop_caches\nopen 0 big ro\n"
    cached = f"{opened}read 0 0 65536\nmark\n"
    cases: Cases = {
        "cached-512": (0, cached + _reads([(0, 512 * i % 65536, 512) for i in range(256)])),
        "cached-65536": (0, cached + _reads([(0, 0, 65536)] * 16)),
    }
    for length, window in ((2048, 0), (16384, 0), (131072, 0), (131072, 64)):
        cases[f"ordered-{length}-ra{window}"] = (window, _read_in_order(length))
    draw = random.Random(7).random
    scattered = [(0, int(draw() * (BIG_FILE_BYTES - 3000)), 3000) for _ in range(40)]
    cases["scattered-3000"] = (0, f"{opened}mark\n{_reads(scattered)}")
    for length in SMALL_FILE_BYTES:
        opens = _opens(length)
        reads = _reads([(i, 0, length) for i in range(SMALL_FILES)])
        cases[f"small-{length}"] = (0, f"{HEADER}\ndrop_caches\n{opens}\nmark\n{reads}")
    cases["computed"] = (0, _lines("mark", *["compute 100000"] * 4))
    cases["opened"] = (0, f"{HEADER}\ndrop_caches\nmark\n{_opens(700)}")
    cases["dropped"] = (0, _lines("drop_caches", "mark", *["drop_caches"] * DROPS))
    return cases


def _read_in_bulk() -> Cases:
    """The big file in order: as many nodes as without bulk-read, but few reads of the partition."""
    return {f"ordered-{length}": (0, _read_in_order(length)) for length in (2048, 16384, 131072)}


def _new(*lines: str) -> tuple[int, str]:
    return 0, _lines("open 0 new rw,create", "mark", *lines)


def _ordered(length: int, count: int, percent: int = 0) -> list[str]:
    return [f"write 0 {length * i} {length} 2 {percent}" for i in range(count)]


def _writing() -> Cases:
    cases: Cases = {}
    for length in (40, 130, 300, 700, 2000, 4096):
        cases[f"written-{length}"] = _new(*_ordered(length, 32), "fsync 0")
    for length, count in ((100, 32), (3000, 40), (8192, 16), (49152, 6)):
        cases[f"kept-{length}"] = _new(*_ordered(length, count))
    for sync in ("fsync 0", "sync"):
        lines = [line for write in _ordered(450, 16) for line in (write, sync)]
        cases[f"{sync.split()[0]}ed-450"] = _new(*lines)
    cases["synced-clean"] = (0, _lines("mark", *["sync"] * 16))
    for length in (250, 1100):
        made = [
            line
            for i in range(12)
            for line in (
                f"open 0 tiny-{i} wo,create",
                f"write 0 0 {length} 2 0",
                "fsync 0",
                "close 0",
            )
        ]
        cases[f"tiny-{length}"] = (0, _lines("mark", *made))
    places = [f"write 0 {20480 * i} 200 3 0" for i in range(24)]
    cases["rewritten"] = (0, _lines("open 0 big rw", "mark", *places))
    paused = [line for write in places[:12] for line in (write, f"pause {PAUSE_NS}")]
    cases["paused"] = (0, _lines("open 0 big rw", "mark", *paused))
    return cases


def _compressing() -> Cases:
    """Compressible writes, which are smaller on the flash, and reads of them."""
    cases: Cases = {}
    for length, percent in ((4096, 30), (4096, 70), (4096, 85), (4096, 97), (1000, 60)):
        cases[f"packed-{percent}-{length}"] = _new(*_ordered(length, 32, percent), "fsync 0")
    for length, percent in ((700, 80), (3000, 92)):
        places = [f"write 0 {20480 * i + 2500} {length} 2 {percent}" for i in range(32)]
        cases[f"mixed-{percent}-{length}"] = (
            0,
            _lines("open 0 big rw", "mark", *places, "fsync 0"),
        )
    for percent in (30, 70):
        cases[f"unpacked-{percent}"] = _read_again(_ordered(16384, 16, percent), 262144)
    return cases


def _mounted_with(compressor: str, fs: str) -> Cases:
    """Writes and reads with one compressor, on a file system mounted with it.

    `none` gives a node's cost without a compressor. Random bytes give the cost of a search in vain,
    lines of zeroes that of a long match, words that of short matches and codes, records that of
    searching between matches. Words and records are appended one by one; only UBIFS joins them
    before it compresses.
    """
    cases: Cases = {}
    for length in (130, 700, 4096):
        cases[f"written-{length}"] = _new(*_ordered(length, 32), "fsync 0")
    if compressor == "none":
        return cases
    for length, percent in ((4096, 30), (4096, 70), (4096, 97), (1000, 60), (400, 40)):
        cases[f"packed-{percent}-{length}"] = _new(*_ordered(length, 32, percent), "fsync 0")
    for length, percent in ((16384, 30), (16384, 70), (16384, 97), (1000, 60)):
        writes = _ordered(length, 262144 // length if length > 4096 else 96, percent)
        cases[f"unpacked-{percent}-{length}"] = _read_again(writes, len(writes) * length)
    if fs == "ubifs":
        for name, lines in (("words", _words(TEXT_BYTES)), ("records", _records(TEXT_BYTES))):
            cases[name] = (0, _lines("open 0 new wo,create,append", *lines, "mark", "fsync 0"))
    return cases


def _words(length: int) -> list[str]:
    """Words of 3 to 12 bytes, some of them frequent, as in a text."""
    draw = random.Random(5).random
    sizes = [3 + int(draw() * 10) for _ in range(WORDS)]
    lines, at = [], 0
    while at < length:
        word = int(WORDS ** draw()) - 1
        size = min(sizes[word], length - at)
        lines.append(f"write 0 {64 * word} {size} 6 0")
        at += size
    return lines


def _records(length: int) -> list[str]:
    """Records of random bytes, each behind the same 10 bytes."""
    records = -(-length // RECORD_BYTES)
    return [
        line
        for number in range(1, records + 1)
        for line in ("write 0 0 10 6 0", f"write 0 {192 * number} {RECORD_BYTES - 10} 6 0")
    ]


def _read_again(writes: Sequence[str], length: int) -> tuple[int, str]:
    """A new file, read from the flash after all activity has ended."""
    rest = ["fsync 0", "close 0", "sync", f"pause {6 * SETTLE_NS}", *["drop_caches"] * 3]
    reads = _reads([(0, at, 16384) for at in range(0, length, 16384)])
    return 0, _lines("open 0 new rw,create", *writes, *rest, "open 0 new ro", "mark", reads)


def _rtime() -> Cases:
    """Nodes that only rtime, JFFS2's last compressor, makes smaller."""
    cases: Cases = {}
    for length in (4, 12):
        cases[f"short-{length}"] = _new(*_ordered(length, 48, 100), "fsync 0")
    cases["short-read"] = _read_again([f"write 0 {512 * at} 12 2 100" for at in range(8)], 4096)
    return cases


def _names() -> Cases:
    """Names."""
    known = ["open 0 big ro", "close 0"]
    made = [line for i in range(16) for line in (f"open 0 made-{i} wo,create", "close 0")]
    removed = [f"unlink small-{length}-{i}" for length in (200, 2600) for i in range(SMALL_FILES)]
    renamed = [f"rename small-700-{i} renamed-{i}" for i in range(SMALL_FILES)]
    folders = [f"folder-{i}" for i in range(8)]
    rest = ["sync", f"pause {SETTLE_NS}"]
    bodies = {
        "opened-known": _lines(*known, "mark", *known * 32),
        "created": _lines("mark", *made),
        "removed": _lines("mark", *removed, "sync"),
        "renamed": _lines("mark", *renamed),
        "folders": _lines(
            *[f"mkdir {name}" for name in folders],
            *rest,
            "mark",
            *[f"rmdir {name}" for name in folders],
        ),
    }
    return {name: (0, body) for name, body in bodies.items()}


def _calls() -> Cases:
    """Calls about names and inodes that write little or nothing: walks, attributes, mappings."""
    small = [f"small-700-{i}" for i in range(SMALL_FILES)]
    deep = "way/to/a"
    folders = ["mkdir way", "mkdir way/to", f"mkdir {deep}"]
    made = [*folders, f"open 0 {deep}/file wo,create", "close 0", "sync"]
    opens = _opens(700)
    maps = [f"mmap {i} {i} 0 700 ro" for i in range(SMALL_FILES)]
    faults = [f"touch 0 {BIG_FILE_BYTES // 16 * i} 1" for i in range(16)]
    whole = ["open 0 big ro", f"read 0 0 {BIG_FILE_BYTES}", f"mmap 0 0 0 {BIG_FILE_BYTES} ro"]
    touches = [f"touch {i} 0 1" for i in range(SMALL_FILES)]
    reads = [f"read {i} 0 700" for i in range(SMALL_FILES)]
    stats = [f"stat {name}" for name in small]
    bodies = {
        "stats": [*stats, "mark", *stats * 8],
        "stats-missing": ["mark", *["stat none"] * 64],
        "stats-deep": [*made, f"stat {deep}/file", "mark", *[f"stat {deep}/file"] * 64],
        "changed-modes": [*stats, "mark", *[f"chmod {name} 448" for name in small]],
        "changed-owners": [*stats, "mark", *[f"chown {name} 1 1" for name in small]],
        "closed": [opens, "mark", *[f"close {i}" for i in range(SMALL_FILES)]],
        "listed": ["open 0 . ro,directory", "readdir 0", "mark", *["readdir 0"] * 16],
        "listed-short": [
            *made,
            "open 0 way ro,directory",
            "readdir 0",
            "mark",
            *["readdir 0"] * 16,
        ],
        "mapped": [opens, "mark", *maps],
        "unmapped": [opens, *maps, "mark", *[f"munmap {i}" for i in range(SMALL_FILES)]],
        "unmapped-whole": [*whole, *faults, "mark", "munmap 0"],
        "faulted": [*whole, "mark", *faults],
        "faulted-small": [opens, *reads, *maps, "mark", *touches],
    }
    return {name: (0, _lines(*lines, header=HEADER_2)) for name, lines in bodies.items()}


def _mounts() -> Cases:
    """Remounts with everything in memory, and with nothing: few files, many, a long one."""
    many = [
        line
        for i in range(64)
        for line in (f"open 0 many-{i} wo,create", "write 0 0 500 4 0", "close 0")
    ]
    long = ["open 0 long wo,create", *_ordered(32768, 80), "close 0"]
    bodies: dict[str, list[str]] = {"": [], "-many": many, "-long": long}
    cases: Cases = {}
    for name, before in bodies.items():
        rest = [*before, "sync", f"pause {SETTLE_NS}"] if before else []
        cases[f"remounted{name}"] = (0, _lines(*rest, "mark", "remount"))
        cases[f"remounted{name}-cold"] = (0, _lines(*rest, "remount", "mark", "remount"))
    return cases


def _cutting() -> Cases:
    """A file is truncated: in steps, or at once, with cached pages or without; or extended."""
    steps = range(BIG_FILE_BYTES - 9001, BIG_FILE_BYTES - 9 * 9001, -9001)
    cuts = [line for size in steps for line in (f"truncate 0 {size}", "fsync 0")]
    clips = [f"truncate 0 {BIG_FILE_BYTES - 8192 * i}" for i in range(1, 25)]
    stretches = [f"truncate 0 {BIG_FILE_BYTES + 8192 * i}" for i in range(1, 25)]
    empty = ["open 0 big rw", "mark", "truncate 0 0", "fsync 0"]
    bodies = {
        "cut": _lines("open 0 big rw", "mark", *cuts),
        "clipped": _lines("open 0 big rw", "mark", *clips),
        "clipped-cold": _lines("drop_caches", "open 0 big rw", "mark", *clips),
        "stretched": _lines("open 0 big rw", "mark", *stretches),
        "emptied": _lines(*empty),
        "emptied-cold": _lines("drop_caches", *empty),
    }
    return {name: (0, body) for name, body in bodies.items()}


def _raw(board: Board) -> dict[str, str]:
    """Name -> operations of the cases on the bare partition, below any file system."""
    page = board.chip.page_bytes
    block = page * board.chip.pages_per_block
    opened = f"{HEADER}\nopen 0 partition rw"
    pages = [f"write 0 {page * i} {page} 1 0" for i in range(48)]
    runs = [f"write 0 {32 * page * i} {32 * page} 1 0" for i in range(4)]
    reads = [f"read 0 {page * i} {page}" for i in range(48)]
    part_reads = [f"read 0 {page * i} 1000" for i in range(48)]
    long_reads = [f"read 0 {32 * page * i} {32 * page}" for i in range(4)]
    erases = [f"erase 0 {block * i} {block}" for i in range(12)]
    return {
        "raw-written": "\n".join([opened, "mark", *pages, ""]),
        "raw-written-32": "\n".join([opened, "mark", *runs, ""]),
        "raw-read": "\n".join([opened, *runs, "mark", *reads, ""]),
        "raw-read-1000": "\n".join([opened, *runs, "mark", *part_reads, ""]),
        "raw-read-32": "\n".join([opened, *runs, "mark", *long_reads, ""]),
        "raw-erased": "\n".join([opened, "mark", *erases, ""]),
    }


def programs(board: Board, kernel: Kernel) -> list[Program]:
    """The calibration cases on a board."""
    usual = Program(
        case_id="",
        stack=Stack(board=board, kernel=kernel, fs="", read_ahead_kib=0),
        prepare=_prepare(),
        body="",
    )
    cases = [
        replace(
            usual,
            case_id=f"{fs}-{name}",
            body=body,
            stack=replace(usual.stack, fs=fs, read_ahead_kib=window),
        )
        for fs in FILE_SYSTEMS
        for name, (window, body) in _bodies().items()
    ]
    cases += [
        replace(
            usual,
            case_id=f"{fs}-{compressor}-{name}",
            body=body,
            stack=replace(usual.stack, fs=fs, compressor=compressor),
        )
        for fs, row in FILE_SYSTEMS.items()
        for compressor in row.compr
        for name, (_, body) in _ended(_mounted_with(compressor, fs)).items()
    ]
    cases += [
        replace(
            usual,
            case_id=f"jffs2-{USUAL_COMPRESSOR}-{name}",
            body=body,
            stack=replace(usual.stack, fs="jffs2"),
        )
        for name, (_, body) in _ended(_rtime()).items()
    ]
    cases += [
        replace(
            usual,
            case_id=f"ubifs-bulk-{name}",
            body=body,
            stack=replace(usual.stack, fs="ubifs", mount_options="bulk_read"),
        )
        for name, (_, body) in _ended(_read_in_bulk()).items()
    ]
    raw = replace(usual, prepare=f"{HEADER}\nprepared\n", stack=replace(usual.stack, fs="mtd"))
    cases += [replace(raw, case_id=f"mtd-{name}", body=body) for name, body in _raw(board).items()]
    return [replace(case, case_id=f"calibrate-{case.case_id}") for case in cases]
