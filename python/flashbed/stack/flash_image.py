"""Reads flash images and dumps of devices, also those that a program's chip begins with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashbed._sim import Image, ImageFile
from flashbed.base.errors import InputError, RunError
from flashbed.base.files import read_bytes
from flashbed.base.paths import sha256_of, shown
from flashbed.stack.board_tables import Chip

__all__ = ["DumpFile", "content", "pieces_of", "read_dump", "read_image"]

IMAGE_BYTES_MAX = 4 << 30
CONTENT_BYTES_MAX = 1 << 30
ZEROS_BYTES = 1 << 20


@dataclass(frozen=True)
class DumpFile:
    """What a device's flash held, in a file."""

    path: Path
    sha256: str
    volume: str | None = None
    """Of UBI: the program's."""
    compressor: str | None = None
    """Of UBIFS: what packs new data, unless the mount says another."""

    def check(self) -> None:
        """Raises `InputError` if the file is not there, or is another one by now."""
        if not self.path.is_file():
            raise InputError(f"{shown(self.path)}: no such file; the recording began with it")
        if sha256_of(self.path) != self.sha256:
            raise InputError(f"{shown(self.path)}: not what it was when the recording was made")


def read_image(
    file: Path,
    *,
    page_bytes: int | None = None,
    oob_bytes: int | None = None,
    block_bytes: int | None = None,
) -> Image:
    """Reads an image or a dump. Raises `InputError` if it is none that flashbed knows."""
    data = read_bytes(file, IMAGE_BYTES_MAX)
    try:
        return Image(data, page_bytes=page_bytes, oob_bytes=oob_bytes, block_bytes=block_bytes)
    except ValueError as why:
        raise InputError(f"{shown(file)}: {why}") from None


def read_dump(file: Path, chip: Chip) -> Image:
    """A dump of a chip. OOB in which nothing is written shows in the file's size alone."""
    image = read_image(file)
    both = (chip.page_bytes + chip.oob_bytes) * chip.pages_per_block
    size = file.stat().st_size
    if image.pages is not None or size % both or not size % chip.block_bytes:
        return image
    return read_image(file, page_bytes=chip.page_bytes, oob_bytes=chip.oob_bytes)


def content(image: Image, part: int, file: ImageFile) -> bytes:
    """The bytes of a file. Raises `RunError` if they cannot be read."""
    if file.bytes > CONTENT_BYTES_MAX:
        raise RunError(f"{os.fsdecode(file.path)}: {file.bytes:,} bytes")
    data = bytearray(file.bytes)
    for at, piece in pieces_of(image, part, file):
        data[at : at + len(piece)] = piece
    return bytes(data[: file.bytes])


def pieces_of(image: Image, part: int, file: ImageFile) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of parts of a file, in order. Raises `RunError`."""
    for number in range(file.pieces):
        try:
            at, size, piece = image.piece(part, file.inode, number)
        except ValueError as why:
            raise RunError(f"{os.fsdecode(file.path)}: {why}") from None
        end = min(at + size, file.bytes)
        if piece:
            yield at, piece[: max(0, end - at)]
            continue
        for start in range(at, end, ZEROS_BYTES):
            yield start, bytes(min(ZEROS_BYTES, end - start))
