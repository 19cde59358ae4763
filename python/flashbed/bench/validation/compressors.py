"""The compressors suite: the cost of each compressor that JFFS2 and UBIFS can be mounted with.

The same programs run under every value of the mount option `compr=`, and under the kernel's
default. They write random bytes, which no compressor shrinks, bytes as compressible as text (half
of the lines are zero), and nearly empty ones: in pages, in pieces, over an existing file, and read
back. Calibration uses none of the cases. Left out: YAFFS2, which does not compress.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from flashbed.bench.validation.suite_case import SuiteCase
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board

__all__ = ["cases"]

FILE_BYTES = 512 * 1024
CONTENT_SEED = 23
SETTLE_NS = 10_000_000_000
TEXT_PCT = 55
EMPTY_PCT = 92
CONTENTS = {"random": 0, "text": TEXT_PCT, "empty": EMPTY_PCT}

Lines = list[str]


def cases(fs: str, board: Board) -> Iterator[SuiteCase]:  # noqa: ARG001
    """The suite on a file system; empty for one that does not compress."""
    options = FILE_SYSTEMS[fs].compr
    prepare = prepared([written_file("base", FILE_BYTES, 16_384, CONTENT_SEED)], SETTLE_NS)
    for compressor in (USUAL_COMPRESSOR, *options) if options else ():
        for content, percent in CONTENTS.items():
            for name, lines in _bodies(percent):
                title = f"{compressor}-{content}-{name}"
                yield SuiteCase(
                    name=title, kind=compressor, prepare=prepare, lines=lines, compressor=compressor
                )


def _bodies(percent: int) -> Iterator[tuple[str, Lines]]:
    new = ["open 0 new rw,create"]
    ordered = [_write(at, 12_288, percent) for at in range(0, 245_760, 12_288)]
    yield "ordered", [*new, "mark", *ordered, "fsync 0"]
    pieces = [line for at in range(24) for line in (_write(at * 1400, 1400, percent), "fsync 0")]
    yield "pieces", [*new, "mark", *pieces]
    draw = random.Random(percent).random
    over = [_write(int(draw() * (FILE_BYTES - 6000)), 6000, percent) for _ in range(24)]
    yield "over", ["open 0 base rw", "mark", *over, "fsync 0"]
    rest = ["fsync 0", "close 0", "sync", "pause 60000000000", *["drop_caches"] * 3]
    reads = [f"read 0 {at} 12288" for at in range(0, 245_760, 12_288)]
    yield "read", [*new, *ordered, *rest, "open 0 new ro", "mark", *reads]


def _write(offset: int, length: int, percent: int) -> str:
    return f"write 0 {offset} {length} {CONTENT_SEED + 1} {percent}"
