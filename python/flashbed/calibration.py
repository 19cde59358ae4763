"""The software cost table of a board, fitted to cases that do nothing but isolate its entries.

Chip timing is known and not fitted. What is left of a case's time is the CPU's, and the simulator
says how often each cost of the table occurs in it: run with one cost set to a unit and all others
to zero, it counts (the model is linear in its costs). Non-negative least squares over the relative
errors does the rest. The cases are fixed, listed in docs/calibration.md, and disjoint from every
experiment's.

A board that lacks a file system measures the other cases; the costs that none of them has stay what
the profile says. Left out: costs that cannot be told apart by any case are folded into a neighbour
(`FOLDED`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from flashbed.analysis.least_squares import non_negative
from flashbed.errors import InputError
from flashbed.formats.operations import HEADER
from flashbed.formats.profiles import USUAL_COMPRESSOR, Board, Kernel
from flashbed.targets.base import Program
from flashbed.targets.sim import row_of
from flashbed.workloads.layout_files import prepared, written_file

__all__ = ["FITTED", "FOLDED", "Fit", "fit", "programs", "seen_costs", "with_software_table"]

FILE_SYSTEMS = ("jffs2", "yaffs2", "ubifs")
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
COMPRESSORS = {"jffs2": ("none", "lzo", "zlib"), "ubifs": ("none", "lzo", "zlib", "zstd")}

FITTED = (
    "syscall_ns",
    "open_ns",
    "name_add_ns",
    "name_remove_ns",
    "name_move_ns",
    "write_ns",
    "page_find_ns",
    "copy_to_user_byte_ps",
    "copy_from_user_byte_ps",
    "page_add_ns",
    "page_write_ns",
    "page_dirty_ns",
    "page_drop_ns",
    "inode_drop_ns",
    "page_slot_ps",
    "truncate_ns",
    "sync_ns",
    "time_update_ns",
    "drop_caches_ns",
    "mtd_call_ns",
    "nand_read_ns",
    "nand_program_ns",
    "nand_erase_ns",
    "nand_bounce_byte_ps",
    "ecc_step_ns",
    "jffs2_node_ns",
    "jffs2_inode_ns",
    "jffs2_byte_ps",
    "jffs2_write_node_ns",
    "jffs2_write_byte_ps",
    "jffs2_add_node_ns",
    "jffs2_obsolete_ns",
    "jffs2_gc_pass_ns",
    "ubi_attach_ns",
    "ubi_write_ns",
    "ubifs_node_ns",
    "ubifs_bulk_node_ns",
    "ubifs_hole_ns",
    "ubifs_inode_ns",
    "ubifs_znode_ns",
    "ubifs_leaf_drop_ns",
    "ubifs_byte_ps",
    "ubifs_write_node_ns",
    "ubifs_commit_ns",
    "ubifs_write_byte_ps",
    "ubifs_budget_ns",
    "yaffs2_chunk_ns",
    "yaffs2_write_ns",
    "yaffs2_header_ns",
    "yaffs2_inode_ns",
    "yaffs2_delete_ns",
    "yaffs2_checkpoint_byte_ps",
    "yaffs2_entry_ns",
    "yaffs2_mount_ns",
    "yaffs2_object_ns",
    "compute_step_ps",
    "compressors.lzo.node_ns",
    "compressors.lzo.search_ns",
    "compressors.lzo.match_ns",
    "compressors.lzo.matched_byte_ps",
    "compressors.lzo.literal_byte_ps",
    "compressors.lzo.unpack.node_ns",
    "compressors.lzo.unpack.packed_byte_ps",
    "compressors.lzo.unpack.saved_byte_ps",
    "compressors.deflate.node_ns",
    "compressors.deflate.byte_ps",
    "compressors.deflate.position_ns",
    "compressors.deflate.insert_ps",
    "compressors.deflate.candidate_ps",
    "compressors.deflate.compared_byte_ps",
    "compressors.deflate.block_ns",
    "compressors.deflate.symbol_ns",
    "compressors.deflate.code_ps",
    "compressors.deflate.slide_ns",
    "compressors.deflate.unpack.node_ns",
    "compressors.deflate.unpack.packed_byte_ps",
    "compressors.deflate.unpack.saved_byte_ps",
    "compressors.deflate.unpack_codes_ns",
    "compressors.zstd.node_ns",
    "compressors.zstd.search_ns",
    "compressors.zstd.sequence_ns",
    "compressors.zstd.matched_byte_ps",
    "compressors.zstd.literal_byte_ps",
    "compressors.zstd.symbol_ns",
    "compressors.zstd.huffman_byte_ps",
    "compressors.zstd.codes_ns",
    "compressors.zstd.unpack.node_ns",
    "compressors.zstd.unpack.packed_byte_ps",
    "compressors.zstd.unpack.saved_byte_ps",
    "compressors.rtime.node_ns",
    "compressors.rtime.pair_ns",
    "compressors.rtime.run_byte_ps",
    "compressors.rtime.unpack.node_ns",
    "compressors.rtime.unpack.packed_byte_ps",
    "compressors.rtime.unpack.saved_byte_ps",
)
"""Costs by their keys in `[software]`."""
FOLDED = {
    "fill_byte_ps": "the agent's own work, between the requests of the cases",
    "wake_ns": "how late a program goes on after a pause",
    "nand_byte_ps": "in ecc_step_ns, or in nand_read_ns where pages are read whole",
}
BY_HAND = {
    "jffs2_erased_byte_ps": "between two reads of a check; by hand, for the thread erases as well",
    "yaffs2_erased_byte_ps": "in a fresh mount alone; by hand, from a log of instructions",
}
PAUSE_NS = 1_300_000_000
"""Of the case `paused`."""
TIMER_SLACK_NS = 50_000
"""How much later than it asked an ordinary thread's timer rings (timer_slack_ns)."""
UNIT = 10_000
"""The unit that costs are set to for counting: large enough that rounding to ns does not show, and
small enough that no case takes a second, in which timers end and time stamps change."""
LOOP_UNIT = 100
"""The same of what a compressor's loops do thousands of times a page, in whole nanoseconds."""


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


def _lines(*lines: str) -> str:
    return "\n".join([HEADER, *lines])


def _bodies() -> Cases:
    """Every case on a file system."""
    return _ended(_reading() | _writing() | _compressing() | _names() | _cutting() | _mounts())


def _ended(cases: Cases) -> Cases:
    """Each with a whole last line."""
    return {name: (window, f"{body}\n") for name, (window, body) in cases.items()}


def _read_in_order(length: int) -> str:
    """Half the big file, from dropped caches."""
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
    """What is written is smaller on the flash, and read from there."""
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
    """Written and read with one compressor, on a file system mounted with it.

    `none` says what a node costs without any. Random bytes tell what looking in vain costs, lines
    of zeroes what a long match does, words what short ones and codes do, records what looking does
    between matches. Words and records are appended one by one, which only UBIFS puts together
    before it compresses them.
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
    """Words of 3 to 12 bytes, some of them often, as a text has them."""
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
    """Random bytes, of every record others, behind 10 that begin each of them."""
    records = -(-length // RECORD_BYTES)
    return [
        line
        for number in range(1, records + 1)
        for line in ("write 0 0 10 6 0", f"write 0 {192 * number} {RECORD_BYTES - 10} 6 0")
    ]


def _read_again(writes: Sequence[str], length: int) -> tuple[int, str]:
    """A new file, read from the flash when everything has come to rest."""
    rest = ["fsync 0", "close 0", "sync", f"pause {6 * SETTLE_NS}", *["drop_caches"] * 3]
    reads = _reads([(0, at, 16384) for at in range(0, length, 16384)])
    return 0, _lines("open 0 new rw,create", *writes, *rest, "open 0 new ro", "mark", reads)


def _rtime() -> Cases:
    """Nodes of which only the last compressor of JFFS2's makes less."""
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


def _mounts() -> Cases:
    """With everything in memory, and with nothing: few files, many, a long one."""
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
    """A file becomes shorter: a little at a time; at once; its pages cached or not. Or longer."""
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
    """Name -> operations of the cases on the partition itself, below any file system."""
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
        fs="",
        board=board,
        kernel=kernel,
        read_ahead_kib=0,
        prepare=_prepare(),
        body="",
    )
    cases = [
        replace(usual, case_id=f"{fs}-{name}", fs=fs, read_ahead_kib=window, body=body)
        for fs in FILE_SYSTEMS
        for name, (window, body) in _bodies().items()
    ]
    cases += [
        replace(usual, case_id=f"{fs}-{compressor}-{name}", fs=fs, compressor=compressor, body=body)
        for fs, compressors in COMPRESSORS.items()
        for compressor in compressors
        for name, (_, body) in _ended(_mounted_with(compressor, fs)).items()
    ]
    cases += [
        replace(usual, case_id=f"jffs2-{USUAL_COMPRESSOR}-{name}", fs="jffs2", body=body)
        for name, (_, body) in _ended(_rtime()).items()
    ]
    cases += [
        replace(usual, case_id=f"ubifs-bulk-{name}", fs="ubifs", bulk_read=True, body=body)
        for name, (_, body) in _ended(_read_in_bulk()).items()
    ]
    raw = replace(usual, fs="mtd", prepare=f"{HEADER}\nprepared\n")
    cases += [replace(raw, case_id=f"mtd-{name}", body=body) for name, body in _raw(board).items()]
    return [replace(case, case_id=f"calibrate-{case.case_id}") for case in cases]


def seen_costs(requests: pl.DataFrame, syscall_ns: int) -> dict[str, int]:
    """The costs that are seen between or in single requests, where no fit is needed."""
    return {"fill_byte_ps": _fill_byte_ps(requests), "wake_ns": _wake_ns(requests, syscall_ns)}


def _fill_byte_ps(requests: pl.DataFrame) -> int:
    """What making a byte costs the program that writes it: it is done between two requests.

    From the cases with long writes, of which nothing else that is done there is a thousandth.
    """
    case = pl.col("case_id")
    long = case.str.ends_with("kept-8192") | case.str.ends_with("kept-49152")
    ended = (pl.col("start_ns") + pl.col("latency_ns")).shift(1).over("case_id")
    gap = (pl.col("start_ns") - ended).alias("gap_ns")
    gaps = requests.filter(long).select(gap, "length_bytes").drop_nulls()
    gap_ns, filled = (int(gaps[column].sum()) for column in ("gap_ns", "length_bytes"))
    return round(1000 * gap_ns / filled)


def _wake_ns(requests: pl.DataFrame, syscall_ns: int) -> int:
    """From the interrupt of a timer to the program that slept.

    Their lower decile: a thread or a tick that comes in between makes many of them longer, and
    what has already brought the processor out of its idle state makes one in thirty shorter.
    """
    pauses = requests.filter(pl.col("case_id").str.ends_with("paused"), op="pause")
    undisturbed = pauses.select(pl.col("latency_ns").quantile(0.1, "lower")).item()
    return max(0, int(undisturbed) - PAUSE_NS - TIMER_SLACK_NS - syscall_ns)


def with_software_table(
    text: str, fitted: Fit, seen: dict[str, int], board: Board, source: str
) -> str:
    """A board profile's text with the fitted costs as its `[software]`, which has to be last."""
    head, found, tail = text.partition("[software]")
    if not found or "\n[" in tail:
        raise InputError(f"{board.path}: [software] is not the last table of the profile")
    lines = ["[software]", f"source = {json.dumps(source)}"]
    kept = {name: _price(board, name) for name in fitted.kept}
    lines += [
        f"{name} = {value:_}  # not measured" for name, value in kept.items() if value is not None
    ]
    for name, value in fitted.costs.items():
        error = fitted.standard_errors[name]
        known = f"+- {error:,.0f}" if value else "0 fits best"
        lines.append(f"{name} = {value:_}  # {known}")
    # What is no cost but a fact of the board's kernel.
    for name in ("sched_clock_ns", "pointer_bytes"):
        if name in board.software.model_fields_set:
            lines.append(f"{name} = {getattr(board.software, name):_}")
    for name, why in FOLDED.items():
        lines.append(f"{name} = {seen.get(name, 0):_}  # {why}")
    for name, why in BY_HAND.items():
        lines.append(f"{name} = {getattr(board.software, name):_}  # {why}")
    return "\n".join([head.rstrip("\n"), "", *lines, ""])


@dataclass(frozen=True)
class Fit:
    """Fitted costs (ns or ps), their standard errors, and each case's relative error (percent).

    `kept` are the costs that no case has.
    """

    costs: dict[str, int]
    standard_errors: dict[str, float]
    cases: pl.DataFrame
    kept: tuple[str, ...] = ()


def _unit(name: str) -> int:
    return LOOP_UNIT if name.startswith("compressors.") and name.endswith("_ns") else UNIT


def _price(board: Board, name: str) -> int | None:
    """A cost of the profile by its key; None of a compressor that has no price there."""
    at: Any = board.software
    for key in name.split("."):
        at = getattr(at, key) if at is not None else None
    return at if isinstance(at, int) else None


def _priced(board: Board, costs: dict[str, int]) -> str:
    """The board's simulator profile with these costs and no others."""
    profile = json.loads(board.sim_json)
    kept = {name: profile["software"].pop(name) for name in ("sched_clock_ns", "pointer_bytes")}
    software: dict[str, Any] = dict.fromkeys(profile["software"], 0) | kept | {"compressors": {}}
    for name in FITTED:
        *tables, key = name.split(".")
        table = software
        for each in tables:
            table = table.setdefault(each, {})
        table[key] = costs.get(name, 0)
    profile["software"] = software | {n: v for n, v in costs.items() if "." not in n}
    return json.dumps(profile)


def _times_ns(cases: Sequence[Program], costs: dict[str, int]) -> np.ndarray:
    """Simulated time of every case with these costs and no others."""
    from flashbed._sim import run_cases

    board = _priced(cases[0].board, costs)
    alike: dict[str, list[int]] = {}
    for at, program in enumerate(cases):
        alike.setdefault(program.simulated_kernel, []).append(at)
    times = np.zeros(len(cases))
    for kernel, places in alike.items():
        raw = run_cases(board, kernel, [row_of(cases[at]) for at in places], [], 1)
        if raw["interrupted"] is not None:
            raise raw["interrupted"]
        if raw["failures"]:
            case_id, message = raw["failures"][0]
            raise InputError(f"{case_id}: {message}")
        times[places] = np.frombuffer(raw["cases"]["time_ns"], dtype="<i8").astype(float)
    return times


def fit(cases: Sequence[Program], measured_ns: Sequence[int]) -> Fit:
    """Fits the cost table of the cases' board to their measured times, ns, in the same order."""
    measured = np.asarray(measured_ns, dtype=float)
    chip = _times_ns(cases, {})
    units = {name: _unit(name) for name in FITTED}
    counts = np.column_stack(
        [(_times_ns(cases, {name: unit}) - chip) / unit for name, unit in units.items()]
    )
    occurs = np.asarray(counts.any(axis=0))
    names = [name for name, there in zip(FITTED, occurs, strict=True) if there]
    weights = 1.0 / measured
    system = counts[:, occurs] * weights[:, None]
    found = non_negative(system, (measured - chip) * weights)
    table = pl.DataFrame(
        {
            "case_id": [program.case_id for program in cases],
            "measured_ns": [int(value) for value in measured],
            "chip_ns": [int(value) for value in chip],
            "error_pct": [round(100 * float(value), 2) for value in found.residual],
        }
    )
    costs = {name: round(float(value)) for name, value in zip(names, found.values, strict=True)}
    errors = [float(error) for error in found.standard_errors]
    kept = tuple(name for name in FITTED if name not in costs)
    return Fit(costs, dict(zip(names, errors, strict=True)), table, kept)
