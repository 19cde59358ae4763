"""A file system's space on a partition: what it keeps for itself, and what is left for files."""

from __future__ import annotations

from functools import lru_cache

from flashbed._sim import SpaceTable, fresh_space
from flashbed.base.errors import InputError
from flashbed.stack.layouts import Layout, in_layout, on_partition
from flashbed.stack.names import USUAL_KERNEL
from flashbed.stack.profiles import Board, load_kernel

__all__ = ["PAGE_BYTES", "leb_bytes", "space_table", "usable_bytes"]

PAGE_BYTES = 4096


def usable_bytes(
    fs: str, board: Board, bad_blocks: tuple[int, ...], layout: Layout | None = None
) -> int:
    """Bytes of a fresh file system that `df` calls available; the simulator formats one.

    Raises `InputError`.
    """
    return max(0, space_table(fs, board, bad_blocks, layout).left_bytes)


def space_table(
    fs: str, board: Board, bad_blocks: tuple[int, ...] = (), layout: Layout | None = None
) -> SpaceTable:
    """Where the bytes of the board's partition are on a fresh file system, in a layout or alone.

    `fs` can have mount options: `yaffs2,inband-tags`. Raises `InputError`.
    """
    if layout is not None and layout.not_simulated is not None:
        raise InputError(layout.not_simulated)
    # Only the kernel's JFFS2 matters, and no kernel has changed its reserves.
    kernel_json = in_layout(load_kernel(USUAL_KERNEL).sim_json, layout)
    return _space_table(fs, on_partition(board.sim_json, layout), kernel_json, bad_blocks)


def leb_bytes(board: Board) -> int:
    """A LEB, as the simulated UBI lays out the board's blocks. Raises `InputError`."""
    return dict(space_table("ubifs", board).facts)["leb_bytes"]


@lru_cache(maxsize=64)
def _space_table(
    fs: str, board_json: str, kernel_json: str, bad_blocks: tuple[int, ...]
) -> SpaceTable:
    try:
        found = fresh_space(board_json, kernel_json, fs, bad_blocks)
    except ValueError as why:
        raise InputError(f"{fs} on this partition: {why}") from None
    if found is None:
        raise InputError(f"{fs} does not report its free space")
    return found
