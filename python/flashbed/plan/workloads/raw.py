"""The same work at every level of the stack: the driver, MTD from user space, a file.

`read` and `write` move `requests` requests of `request_bytes` in order, on a file or on the
partition itself (the file systems `mtd` and `mtd-driver`, docs/models/mtd.md, and `mtdblock`,
docs/models/mtdblock.md). `read-random` reads the same places in an order that the case's seed
draws. `write-random` writes the whole file or disk, then overwrites places that the seed draws with
replacement, as often before the mark as after it. Each of these writes to a file is synced, as each
write to a disk is on it when it returns. Written files and disks are synced within the measured
part. Files are read from dropped caches with the file open. A partition that is read is written
before. `erase`, for the partition only, erases `requests` blocks in order, and begins again after
the last.

Reads wrap around: beyond `file_bytes` they begin again at the start.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of
from flashbed.stack.file_systems import RAW

__all__ = ["PARTITION", "operations"]


PARTITION = "partition"
FILE = "file.bin"
WRITE_BYTES = 4096
CONTENT_SEED = 1


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    size = case.request_bytes
    if case.file_bytes % size:
        raise InputError(f"{case.case_id}: file_bytes is not a multiple of the requests")
    raw = case.fs in RAW
    disk = raw and RAW[case.fs].is_block_device
    path, how = (PARTITION if raw else FILE), (",direct" if disk else "")
    offsets = (size * number % case.file_bytes for number in range(case.requests))
    if case.pattern in ("read", "read-random"):
        places = list(offsets)
        if case.pattern == "read-random":
            draw = random.Random(case.seed).random  # shuffle() may change between versions
            places = sorted(places, key=lambda _: draw())
        written = list(_written(path, case.file_bytes, how, raw=raw))
        before = ("drop_caches", f"open 0 {path} ro{how}", "mark")
        reads = (f"read 0 {offset} {size}" for offset in places)
        return prepared([written], settle_ns), text_of(itertools.chain(before, reads))
    if case.pattern == "write-random":
        if raw and not disk:
            raise InputError(f"{case.case_id}: a page of {case.fs} is written once; fs=mtdblock")
        written = list(_written(path, case.file_bytes, how, raw=raw))
        return prepared([written], settle_ns), text_of(_overwrites(case, path, how))
    if case.pattern == "write":
        if size * case.requests > case.file_bytes:
            raise InputError(f"{case.case_id}: the requests write past file_bytes")
        writes = (f"write 0 {offset} {size} {CONTENT_SEED} 0" for offset in offsets)
        opened = f"open 0 {path} {f'rw{how}' if raw else 'rw,create'}"
        synced = [] if raw and not disk else ["fsync 0"]
        return prepared([], settle_ns), text_of(itertools.chain((opened, "mark"), writes, synced))
    return prepared([], settle_ns), _erases(case)


def _overwrites(case: Case, path: str, how: str) -> Iterator[str]:
    draw = random.Random(case.seed).random
    places = case.file_bytes // case.request_bytes
    yield f"open 0 {path} rw{how}"
    for number in range(2 * case.requests):
        if number == case.requests:
            yield "mark"
        offset = int(draw() * places) * case.request_bytes
        yield f"write 0 {offset} {case.request_bytes} {CONTENT_SEED + 1 + number} 0"
        if not how:
            yield "fsync 0"
    if how:
        yield "fsync 0"


def _written(path: str, length_bytes: int, how: str, *, raw: bool) -> Iterator[str]:
    if not raw:
        yield from written_file(path, length_bytes, WRITE_BYTES, CONTENT_SEED)
        return
    yield f"open 0 {path} rw{how}"
    for offset in range(0, length_bytes, WRITE_BYTES):
        yield f"write 0 {offset} {WRITE_BYTES} {CONTENT_SEED} 0"
    yield "close 0"


def _erases(case: Case) -> str:
    board = case.profile()
    block_bytes = board.chip.block_bytes
    blocks = (number % board.partition.blocks for number in range(case.requests))
    erases = (f"erase 0 {block * block_bytes} {block_bytes}" for block in blocks)
    return text_of(itertools.chain((f"open 0 {PARTITION} rw", "mark"), erases))
