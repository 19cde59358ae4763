"""The tree of hashes that dm-verity checks a read-only volume by, as veritysetup(8) makes it.

Behind the data come a superblock and the tree, its top first: a block holds the hashes of the 128
blocks below it. Version 1 of the format, SHA-256, blocks of 4,096 bytes, one salt. The kernel reads
drivers/md/dm-verity-target.c; the superblock is read by veritysetup alone.

Left out: error correction, signed root hashes.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

__all__ = ["Verity", "with_hash_tree"]

BLOCK_BYTES = 4096
_DIGEST_BYTES = 32
_SALT = bytes(range(32))
_VERSION, _HASH_TYPE = 1, 1
_SUPERBLOCK = struct.Struct("<8sII16s32sIIQH6s256s168s")
"""`struct verity_sb` of cryptsetup: 512 bytes."""


@dataclass(frozen=True)
class Verity:
    """What the kernel is told about a volume that it checks."""

    blocks: int
    """Blocks of data; the superblock and the hashes follow them."""
    root: str
    """The hash of the topmost block, in hex."""

    @property
    def salt(self) -> str:
        """What each hash begins with, in hex: always the same, so that two images are alike."""
        return _SALT.hex()


def with_hash_tree(image: bytes) -> tuple[bytes, Verity]:
    """The image with its superblock and hashes behind it, and what the kernel is told of it."""
    data = image.ljust(-(-len(image) // BLOCK_BYTES) * BLOCK_BYTES, b"\0")
    levels = [data]
    while len(levels) == 1 or len(levels[-1]) > BLOCK_BYTES:
        levels.append(_hashes(levels[-1]))
    found = Verity(len(data) // BLOCK_BYTES, _digest(levels[-1]).hex())
    return b"".join([data, _superblock(found.blocks), *reversed(levels[1:])]), found


def _digest(block: bytes) -> bytes:
    return hashlib.sha256(_SALT + block).digest()


def _hashes(level: bytes) -> bytes:
    """The level above one: whole blocks of its hashes."""
    hashes = b"".join(
        _digest(level[at : at + BLOCK_BYTES]) for at in range(0, len(level), BLOCK_BYTES)
    )
    return hashes.ljust(-(-len(hashes) // BLOCK_BYTES) * BLOCK_BYTES, b"\0")


def _superblock(blocks: int) -> bytes:
    packed = _SUPERBLOCK.pack(
        b"verity", _VERSION, _HASH_TYPE, bytes(16), b"sha256", BLOCK_BYTES, BLOCK_BYTES, blocks,
        len(_SALT), b"", _SALT, b"",
    )  # fmt: skip
    return packed.ljust(BLOCK_BYTES, b"\0")
