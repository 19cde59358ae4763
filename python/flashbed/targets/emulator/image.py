"""The kernel image as the emulated board boots it: decompressed by the host.

A zImage decompresses itself, which takes the emulated CPU as long as all the rest of a boot. The
host does it once instead. A few instructions then move the image to where the decompressor
would have put it (arch/arm/boot/compressed/head.S: base of RAM plus TEXT_OFFSET), and jump there
with the boot's registers unchanged. A zImage with another compression boots unchanged.
"""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

from flashbed.base.locking import scratch

__all__ = ["bootable"]

_XZ_MAGIC = b"\xfd7zXZ\0"
_TEXT_OFFSET = 0x208000
"""TEXT_OFFSET of a multi-platform kernel; a kernel linked for less also runs at it."""
_MOVE = struct.pack(
    "<12I",
    0xE28F4030,  # add   r4, pc, #0x30         the image, which follows these words
    0xE59F5024,  # ldr   r5, [pc, #0x24]       TEXT_OFFSET
    0xE59F6024,  # ldr   r6, [pc, #0x24]       the image's size
    0xE20F84FF,  # and   r8, pc, #0xff000000   the RAM's base
    0xE0855008,  # add   r5, r5, r8
    0xE0844006,  # add   r4, r4, r6
    0xE0857006,  # add   r7, r5, r6
    0xE9340F00,  # ldmdb r4!, {r8-r11}         copies backwards: source and destination overlap
    0xE9270F00,  # stmdb r7!, {r8-r11}
    0xE1570005,  # cmp   r7, r5
    0x8AFFFFFB,  # bhi   the ldmdb
    0xE1A0F005,  # mov   pc, r5
)


def bootable(image: Path) -> Path:
    """The image for QEMU, next to the package's own; made on first use."""
    made = image.with_name(f"{image.name}.plain")
    if made.is_file():
        return made
    plain = _decompressed(image.read_bytes())
    if plain is None:
        return image
    plain += bytes(-len(plain) % 16)
    with scratch(made.parent, "plain-") as folder:
        part = folder / made.name
        part.write_bytes(_MOVE + struct.pack("<2I", _TEXT_OFFSET, len(plain)) + plain)
        part.replace(made)
    return made


def _decompressed(data: bytes) -> bytes | None:
    """The decompressed kernel. The magic number also occurs in the decompressor's own code."""
    start = data.find(_XZ_MAGIC)
    while start >= 0:
        try:
            return lzma.LZMADecompressor().decompress(data[start:])
        except lzma.LZMAError:
            start = data.find(_XZ_MAGIC, start + 1)
    return None
