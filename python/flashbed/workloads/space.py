"""A file system's space for files on a partition, and what a page of a file takes of it."""

from __future__ import annotations

from functools import lru_cache

from flashbed.errors import InputError
from flashbed.formats.profiles import Board, load_kernel

__all__ = ["NODE_BYTES", "PAGE_BYTES", "usable_bytes"]

PAGE_BYTES = 4096
NODE_BYTES = {"jffs2": 4190, "ubifs": 4070, "yaffs2": 4161}
"""Bytes that df loses when an incompressible page is written, as seen on Linux 6.1.

JFFS2: the node, its entry in the summary and the rest at a block's end. UBIFS: df counts data
bytes, and reserves more index than a page needs. YAFFS2: one page in 64 is a summary.
"""


def usable_bytes(fs: str, board: Board, bad_blocks: tuple[int, ...]) -> int:
    """Bytes of a fresh file system that `df` calls available; the simulator formats one.

    Raises `InputError`.
    """
    # Only the kernel's JFFS2 matters, and no kernel has changed its reserves.
    return _usable_bytes(fs, board.sim_json, load_kernel("6.1").sim_json, bad_blocks)


@lru_cache(maxsize=64)
def _usable_bytes(fs: str, board_json: str, kernel_json: str, bad_blocks: tuple[int, ...]) -> int:
    try:
        from flashbed._sim import fresh_bytes
    except ImportError:
        raise InputError("the simulator is not compiled; `make build` compiles it") from None
    try:
        found = fresh_bytes(board_json, kernel_json, fs, bad_blocks)
    except ValueError as why:
        raise InputError(f"{fs} on this partition: {why}") from None
    if found is None:
        raise InputError(f"{fs} does not report its free space")
    return found
