"""Images with wrong bytes, their sums made right again or not, and what a reader does with them.

`python -m tests.support.broken_images SECONDS [SEED]` reads such images for so many seconds of
processor time, and prints how many. A panic of the reader ends it with the bytes in a file.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from flashbed._sim import Image
from tests.support.image_files import make, with_oob

__all__ = ["broken", "good_images", "outcome", "try_broken"]

UBIFS = bytes.fromhex("31181006")
FIELD_BYTES = (1, 2, 4, 8)
FILES_READ, PIECES_READ, BYTES_READ = 200, 50, 1 << 22
_ONES = 0xFFFFFFFF
_EDGES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, _ONES)


def good_images(folder: Path) -> dict[str, bytes]:
    """Small images of each kind, with OOB too."""
    images = {}
    for kind in ("ubifs", "ubi", "jffs2", "squashfs", "erofs"):
        for seed in range(3):
            geometry = (512, 16) if kind in ("ubifs", "ubi") else None
            made = make(kind, seed, folder / f"{kind}{seed}", geometry)
            images[f"{kind} {seed}"] = made.path.read_bytes()
    images["ubi oob"] = with_oob(images["ubi 0"], 512, 16)
    images["jffs2 oob"] = with_oob(images["jffs2 0"], 2048, 64)
    return images


def broken(draw: random.Random, image: bytes) -> bytes:
    """An image with a few things wrong in it."""
    data = bytearray(image)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        _break(draw, data)
        if not data:
            return b""
    if draw.random() < 0.8:
        _repair(data)
    return bytes(data)


def _break(draw: random.Random, data: bytearray) -> None:
    at = _place(draw, data)
    size = draw.choice(FIELD_BYTES)
    match draw.randrange(8):
        case 0:
            data[at] ^= 1 << draw.randrange(8)
        case 1 | 2:
            value = draw.choice(_EDGES) if draw.random() < 0.7 else draw.randrange(1 << 32)
            field = (value % (1 << 8 * size)).to_bytes(size, "little")
            data[at : at + size] = field if draw.random() < 0.5 else field[::-1]
        case 3:
            data[at : at + size] = draw.randbytes(size)
        case 4:
            end = min(len(data), at + draw.choice((16, 512, 4096)))
            data[at:end] = draw.choice((b"\xff", b"\0")) * (end - at)
        case 5:
            other, length = _place(draw, data), draw.choice((8, 64, 512, 16384))
            data[at : at + length] = data[other : other + length][: len(data) - at]
        case 6 if draw.random() < 0.1:
            del data[at:]
        case _:
            small = int.from_bytes(data[at : at + 4], "little")
            value = (small + draw.choice((-1, 1, 8, -8, 256))) & _ONES
            data[at : at + 4] = value.to_bytes(4, "little")[: len(data) - at]


def _place(draw: random.Random, data: bytearray) -> int:
    """Mostly near the beginning of a structure: there are the fields."""
    at = draw.randrange(len(data))
    if draw.random() < 0.8:
        for magic in draw.sample((UBIFS, b"UBI#", b"UBI!", b"\x85\x19", b"\x19\x85"), 5):
            found = data.find(magic, at)
            if found >= 0:
                return min(len(data) - 1, found + draw.randrange(draw.choice((24, 80, 200))))
    return at


def _repair(data: bytearray) -> None:
    """Makes the sums right, so that what is wrong gets past them."""
    for magic in (b"UBI#", b"UBI!"):
        for at in _found(data, magic):
            data[at + 60 : at + 64] = struct.pack(">I", zlib.crc32(data[at : at + 60]) ^ _ONES)
    for at in _found(data, UBIFS):
        (length,) = struct.unpack_from("<I", data, at + 16) if at + 24 <= len(data) else (0,)
        if 24 <= length <= 8192 and at + length <= len(data):
            crc = zlib.crc32(data[at + 8 : at + length]) ^ _ONES
            data[at + 4 : at + 8] = struct.pack("<I", crc)
    for magic, order in ((b"\x85\x19", "<"), (b"\x19\x85", ">")):
        for at in _found(data, magic):
            if at % 4 == 0 and at + 68 <= len(data):
                _repair_jffs2(data, at, order)


def _found(data: bytearray, magic: bytes) -> list[int]:
    places: list[int] = []
    at = data.find(magic)
    while at >= 0 and len(places) < 20_000:
        places.append(at)
        at = data.find(magic, at + 2)
    return [at for at in places if at + 64 <= len(data)]


def _jffs2_sum(data: bytearray) -> int:
    return zlib.crc32(data, _ONES) ^ _ONES


def _repair_jffs2(data: bytearray, at: int, order: str) -> None:
    def put(place: int, begin: int, end: int) -> None:
        data[at + place : at + place + 4] = struct.pack(
            f"{order}I", _jffs2_sum(data[at + begin : at + end])
        )

    kind, length = struct.unpack_from(f"{order}HI", data, at + 2)
    put(8, 0, 8)
    if kind == 0xE001:
        put(36, 40, 40 + data[at + 28])
        put(32, 0, 32)
    elif kind == 0xE002:
        (stored,) = struct.unpack_from(f"{order}I", data, at + 48)
        put(60, 68, 68 + min(stored, 1 << 16))
        put(64, 0, 60)
    elif kind == 0x2006:
        put(24, 32, min(length, 1 << 16))
        put(28, 0, 24)


def outcome(data: bytes) -> str:
    """Reads an image, and a part of its files; any exception that is no line is a bug."""
    try:
        image = Image(data)
    except ValueError as why:
        refused = str(why)
    else:
        return _outcome_of(image)
    assert "\n" not in refused, refused
    return "refused"


def _outcome_of(image: Image) -> str:
    broken_files = 0
    for at in range(len(image.parts)):
        left = BYTES_READ
        for file in image.files(at)[:FILES_READ]:
            assert not {b"", b".", b".."} & set(file.path.split(b"/")), file.path
            for piece in range(min(file.pieces, PIECES_READ)):
                try:
                    left -= len(image.piece(at, file.inode, piece)[2])
                except ValueError:
                    broken_files += 1
                if left < 0:
                    break
    assert all("\n" not in line for line in image.problems)
    return "read" if not image.problem_count and not broken_files else "read, with problems"


def try_broken(
    seconds: float, seed: int, images: Mapping[str, bytes], outcome_of: Callable[[str, bytes], str]
) -> None:
    """Tries broken images for so long, and prints what became of how many of each kind."""
    draw, counts = random.Random(seed), Counter[str]()
    begin = time.process_time()
    slowest = 0.0
    while time.process_time() - begin < seconds:
        name = draw.choice(list(images))
        data, kind = broken(draw, images[name]), name.split()[0]
        since = time.process_time()
        try:
            counts[f"{kind} {outcome_of(kind, data)}"] += 1
        except BaseException:
            Path("broken.img").write_bytes(data)
            print(f"{name}: broken.img", file=sys.stderr)
            raise
        slowest = max(slowest, time.process_time() - since)
    print(f"{sum(counts.values()):,} images in {seconds:.0f} s, the slowest {slowest:.2f} s")
    for what, count in sorted(counts.items()):
        print(f"  {count:8,}  {what}")


def _main(seconds: float, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        images = good_images(Path(folder))
    try_broken(seconds, seed, images, lambda _, data: outcome(data))


if __name__ == "__main__":
    _main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
