"""What UBI keeps for a fastmap on a kernel that has them, whether or not it writes one.

Mirrors ubi_calc_fm_size of drivers/mtd/ubi/fastmap.c and ubi_fastmap_init of wl.h, Linux 6.1: a
kernel with CONFIG_MTD_UBI_FASTMAP keeps blocks for two, whether or not it writes one. Left out: the
blocks for pools that the module parameter `fm_pool_rsv` keeps besides.
"""

from __future__ import annotations

from dataclasses import replace

from flashbed.answers.space.ledger import Ledger, SpacePart
from flashbed.answers.space.parts import FASTMAP

__all__ = ["fastmap_blocks", "with_fastmap"]

_HEADERS_BYTES = 312 + 32
"""Struct ubi_fm_sb and ubi_fm_hdr."""
_POOL_BYTES = 1_048
"""Struct ubi_fm_scan_pool; there are two."""
_VOLUMES = 128 + 1
"""UBI_MAX_VOLUMES + UBI_INT_VOL_COUNT."""
_VOLUME_BYTES = 8 + 32
"""Struct ubi_fm_eba and ubi_fm_volhdr."""
_BLOCK_BYTES = 8 + 4
"""Struct ubi_fm_ec and a number of a block."""
_COPIES = 2


def fastmap_blocks(blocks: int, leb_bytes: int) -> int:
    """The erase blocks that UBI keeps of a partition for two fastmaps."""
    size = _HEADERS_BYTES + 2 * _POOL_BYTES + _VOLUMES * _VOLUME_BYTES + blocks * _BLOCK_BYTES
    return _COPIES * -(-size // leb_bytes)


def with_fastmap(space: Ledger, blocks: int, block_bytes: int) -> Ledger:
    """The ledger of a partition that has so many blocks more, which are a fastmap's."""
    part = SpacePart("ubi", FASTMAP, blocks, blocks * block_bytes)
    at = next(n for n, each in enumerate(space.parts) if each.name == "headers")
    return replace(
        space,
        partition_bytes=space.partition_bytes + part.bytes,
        parts=(*space.parts[:at], part, *space.parts[at:]),
    )
