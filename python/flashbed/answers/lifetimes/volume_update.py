"""The wear of a volume's update: `update:VOLUME`, beside the programs of a product.

An update (`ubiupdatevol`, UBI_IOCVOLUP) unmaps every LEB of the volume, writes the image to new
blocks, and writes both copies of the volume table before and after (drivers/mtd/ubi/upd.c of Linux
6.1: set_update_marker, ubi_more_update_data, clear_update_marker). Its erases go to the blocks that
UBI gives out, so they spread as those of the programs do. Pure arithmetic, checked against a kernel
in tests/agreement/test_layouts_simulated.py.

Left out: a layout without images, moves for wear levelling that an update causes, volumes that the
update makes or removes.
"""

from __future__ import annotations

from dataclasses import dataclass

from flashbed.answers.lifetimes.estimate import DAY_S, Observed
from flashbed.answers.lifetimes.given import UPDATE
from flashbed.answers.lifetimes.subject import RoundWork, Subject
from flashbed.base.errors import InputError
from flashbed.stack.changes import LayoutChange
from flashbed.stack.layouts import changed_layout

__all__ = ["UpdateCost", "cost_of", "image_bytes", "update_of"]

_TABLES = 4
"""Copies of the volume table that an update writes: both, twice."""
_HEADERS = 2
"""Of each block that is erased and used again: erase counter and volume header."""
_RECORD_BYTES, _RECORDS_MAX = 172, 128


@dataclass(frozen=True, kw_only=True)
class UpdateCost:
    """What one update does to the chip."""

    image_bytes: int
    programs: int
    erases: int


def cost_of(image_bytes: int, *, leb_bytes: int, page_bytes: int) -> UpdateCost:
    """Programs and erases of an update of so many bytes; the volume had as many before."""
    lebs = -(-image_bytes // leb_bytes)
    records = min(leb_bytes // _RECORD_BYTES, _RECORDS_MAX)
    table = -(-records * _RECORD_BYTES // page_bytes)
    whole, rest = divmod(image_bytes, leb_bytes)
    pages = whole * -(-leb_bytes // page_bytes) + -(-rest // page_bytes)
    return UpdateCost(
        image_bytes=image_bytes,
        programs=pages + _HEADERS * lebs + _TABLES * (_HEADERS + table),
        erases=lebs + _TABLES,
    )


def update_of(volume: str, like: Subject, *, leb_bytes: int, rounds: float) -> Subject:
    """The update of a volume on the flash of another subject, `rounds` times a day.

    Raises `InputError` for a flash without that volume.
    """
    board = like.board
    if board is None:
        raise InputError(f"{UPDATE}{volume}: on no known board")
    written = image_bytes(str(like.axes["layout"]), volume)
    cost = cost_of(written, leb_bytes=leb_bytes, page_bytes=board.chip.page_bytes)
    blocks = cost.programs / board.chip.pages_per_block
    observed = Observed(
        seconds=DAY_S / rounds,
        blocks=like.observed.blocks,
        erases=float(cost.erases),
        worst=None,
        programmed_blocks=blocks,
        used=None if like.observed.used is None else like.observed.used - like.observed.grown,
        wl_threshold=like.observed.wl_threshold,
    )
    block_bytes = board.chip.block_bytes
    work = RoundWork(
        seconds=None,
        rounds_per_day=rounds,
        given_rate=True,
        bytes_written=cost.image_bytes,
        bytes_by_cause=None,
        bytes_programmed=cost.programs * board.chip.page_bytes,
        bytes_erased=cost.erases * block_bytes,
        programs=cost.programs,
    )
    return Subject(
        name=f"{UPDATE}{volume}",
        observed=observed,
        board=board,
        blocks_erased=cost.erases,
        target=like.target,
        fs=like.fs,
        workload=work,
        axes=like.axes,
    )


def image_bytes(axis: str, name: str) -> int:
    """The image that an update writes: the volume's own, or that of the one it is as large as.

    `axis` is a word of the axis `layout`. Raises `InputError` where it has no such volume.
    """
    layout = changed_layout(LayoutChange.parse(axis))
    if layout is None:
        raise InputError(f"{UPDATE}{name}: of a layout; --set layout=NAME too")
    if layout.on == "mtd":
        raise InputError(
            f"{UPDATE}{name}: layout {layout.name} is on partitions of MTD, each of which wears"
            " alone"
        )
    names = [volume.name for volume in layout.volume]
    if name not in names or name == layout.writes_to:
        others = ", ".join(one for one in names if one != layout.writes_to)
        raise InputError(f"{UPDATE}{name}: layout {layout.name} has {others} to update")
    volume = layout.of(name)
    while volume not in layout.images and isinstance(volume.size, str) and volume.size in names:
        volume = layout.of(volume.size)
    if volume.image_kib is None:
        raise InputError(f"{UPDATE}{name}: layout {layout.name} says no image_kib of its image")
    return volume.image_kib << 10
