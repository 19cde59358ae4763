"""The guests' chip as a file ("flashbed-chip 1"), from and to what nandwrite and nanddump have."""

from __future__ import annotations

import struct
from collections.abc import Collection

__all__ = ["chip_of", "dump_of"]

MAGIC = b"flashbed-chip 1\n"
SUBPAGES = 4


def chip_of(
    data: bytes, page: int, oob: int, block: int, blocks: int, *, markers: Collection[int] = ()
) -> bytes:
    """A chip onto which nandwrite wrote `data`, from block 0; `markers` get JFFS2's cleanmarker."""
    out = bytearray(struct.pack("<16s4I", MAGIC, page, oob, block // page, blocks))
    for number in range(blocks):
        begin = number * block
        pages = []
        for at in range(block // page):
            part = data[begin + at * page : begin + (at + 1) * page]
            spare = b"\xff" * oob
            if at == 0 and number in markers:
                spare = spare[:-8] + bytes.fromhex("8519032008000000")
            if part.strip(b"\xff") or spare.strip(b"\xff"):
                pages.append((at, part.ljust(page, b"\xff"), spare))
        out += struct.pack("<IHBB", 0, len(pages), 0, 0)
        for at, part, spare in pages:
            written = int(bool(part.strip(b"\xff")))
            touched = (1 << SUBPAGES) - 1 if written else 0
            out += struct.pack("<HBBB3s", at, 1, touched, written, bytes(3)) + spare
            out += part if written else b""
    return bytes(out)


def dump_of(chip: bytes, *, with_oob: bool = False) -> bytes:
    """What `nanddump` makes of a chip, with `-o` if asked; its bad blocks are marked."""
    magic, page, oob, pages, blocks = struct.unpack_from("<16s4I", chip)
    assert magic == MAGIC
    out = bytearray()
    at = 32
    for _ in range(blocks):
        _, count, state, _ = struct.unpack_from("<IHBB", chip, at)
        at += 8
        found = {}
        for _ in range(count):
            number, _, _, areas, _ = struct.unpack_from("<HBBB3s", chip, at)
            at += 8
            spare = chip[at : at + oob]
            at += oob
            main = chip[at : at + page] if areas & 1 else b"\xff" * page
            at += page * (areas & 1) + page * (areas >> 1)
            found[number] = (main, spare)
        for number in range(pages):
            main, spare = found.get(number, (b"\xff" * page, b"\xff" * oob))
            if state and number == 0:
                mark = 0 if page > 512 else 5
                spare = spare[:mark] + b"\0" + spare[mark + 1 :]
            out += main + (spare if with_oob else b"")
    assert at == len(chip)
    return bytes(out)
