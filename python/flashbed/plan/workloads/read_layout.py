"""Reads one file in order, by its layout on the flash or in memory.

`unfragmented` is written in order by requests of 4 KiB. `fragmented` is then rewritten in pieces of
512 bytes, in a random order that does not depend on the case's seed. `fragmented-12` is rewritten
in pieces of 4,096 / 12 bytes, rounded down. All are synced and left alone, and read from dropped
caches with the file open. `cached` is `unfragmented` read once before measuring, so that every page
is in memory.

Left out: requests at random (micro-read).
"""

from __future__ import annotations

import itertools
import random

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.program.operations import text_of

__all__ = ["operations"]

FILE = "file.bin"
WRITE_BYTES = 4096
PIECES = 8
"""Pieces of a page in the pattern without a number."""
CONTENT_SEED = 1


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    if case.requests * case.request_bytes > case.file_bytes:
        raise InputError(f"{case.case_id}: the requests read past the end of the file")
    written = written_file(FILE, case.file_bytes, WRITE_BYTES, CONTENT_SEED)
    layout, _, pieces = case.pattern.partition("-")
    if layout == "fragmented":
        written += _in_pieces(case.file_bytes, WRITE_BYTES // int(pieces or PIECES))
    sizes = [case.request_bytes * number for number in range(case.requests)]
    reads = [f"read 0 {offset} {case.request_bytes}" for offset in sizes]
    before = reads if case.pattern == "cached" else []
    opened = ["drop_caches", f"open 0 {FILE} ro", *before]
    return prepared([written], settle_ns), text_of(itertools.chain(opened, ("mark",), reads))


def _in_pieces(file_bytes: int, piece_bytes: int) -> list[str]:
    offsets = list(range(0, file_bytes, piece_bytes))
    draw = random.Random(CONTENT_SEED).random  # shuffle() may change between versions of Python
    order = sorted(offsets, key=lambda _: draw())
    writes = [
        f"write 0 {offset} {min(piece_bytes, file_bytes - offset)} {CONTENT_SEED} 0"
        for offset in order
    ]
    return [f"open 0 {FILE} rw", *writes, "fsync 0", "close 0"]
