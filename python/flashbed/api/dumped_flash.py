"""Begins with what a device's flash held: checks that a dump is one of the stack's chip.

`image show` reads the same file by the same reader. What a kernel then makes of it is not foreseen
here; a partition that it refuses fails as it would on the device.

Left out: YAFFS2, layouts on partitions of MTD (a dump is of one), dm-verity.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashbed._sim import Image
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.stack.flash_image import read_dump
from flashbed.stack.layouts import Layout
from flashbed.stack.stack import Stack
from flashbed.targets.guest.flash_dump import Dump
from flashbed.targets.guest.layout_images import leb_bytes

if TYPE_CHECKING:
    from flashbed._sim import UbiImage

__all__ = ["dumped"]

_ENDIAN = "little"
_GUESSED_BY = "nodes"


def dumped(file: Path, volume: str | None, stack: Stack) -> Dump:
    """The dump for this stack; `volume` is the program's, where several have a UBIFS.

    Raises `InputError`.
    """
    image = read_dump(file, stack.board.chip)
    fs = "ubifs" if image.ubi is not None else str(image.parts[0]["content"]["format"])
    if fs == "ubifs" and image.ubi is None:
        raise InputError(f"--dump {shown(file)}: a bare image of UBIFS; ubinize makes one of UBI")
    if fs != stack.fs:
        raise InputError(f"--dump {shown(file)}: holds {fs}: --set fs={fs}")
    if image.ubi is not None:
        _check_ubi(file, image.ubi, stack)
        chosen = _volume(file, image, volume, stack)
    else:
        _check_jffs2(file, image.parts[0]["content"], stack)
        chosen = None
        if volume is not None:
            raise InputError(f"--volume {volume}: {shown(file)} has no volumes")
    oob_bytes = _oob_bytes(file, image, stack)
    chip = stack.board.chip
    whole = (chip.page_bytes + oob_bytes) * chip.pages_per_block
    blocks, there = -(-file.stat().st_size // whole), stack.board.partition.blocks
    if blocks > there:
        raise InputError(
            f"--dump {shown(file)}: {blocks:,} blocks, the partition has {there:,}:"
            f" --set partition.blocks={blocks}"
        )
    compressor = _compressor(image, chosen)
    counted = None if image.ubi is None else image.ubi["erases"]
    erases = None if counted is None else counted["max"]
    return Dump(path=file, oob_bytes=oob_bytes, volume=chosen, erases=erases, compressor=compressor)


def _compressor(image: Image, volume: str | None) -> str | None:
    """What UBIFS packs new data with; None of JFFS2, which leaves it to the kernel."""
    if image.ubi is None or volume is None:
        return None
    names = [each["name"] for each in image.ubi["volumes"]]
    content = image.parts[names.index(volume)]["content"]
    return str(content["superblock"]["compressor"])


def _check_bytes(file: Path, what: str, dump: int, chip: int) -> None:
    if dump != chip:
        raise InputError(
            f"--dump {shown(file)}: {what} of {dump:,} bytes, the chip has {chip:,}: --set chip=…"
        )


def _check_ubi(file: Path, ubi: UbiImage, stack: Stack) -> None:
    _check_bytes(file, "blocks", ubi["peb_bytes"], stack.board.chip.block_bytes)
    here = leb_bytes(stack)
    if ubi["leb_bytes"] != here:
        raise InputError(
            f"--dump {shown(file)}: LEBs of {ubi['leb_bytes']:,} bytes, {here:,} here: UBI's"
            f" headers need {'no ' if ubi['leb_bytes'] < here else ''}sub-pages; another chip"
            " or ecc.kind has them"
        )


def _check_jffs2(file: Path, content: dict[str, Any], stack: Stack) -> None:
    if content["endian"] != _ENDIAN:
        raise InputError(f"--dump {shown(file)}: JFFS2 of a big-endian device; the kernel is not")
    if content["block_bytes_by"] != _GUESSED_BY:
        _check_bytes(file, "blocks", content["block_bytes"], stack.board.chip.block_bytes)
    if stack.layout is not None:
        raise InputError("--dump: of one partition, and layouts of JFFS2 have several")


def _oob_bytes(file: Path, image: Image, stack: Stack) -> int:
    if image.pages is None:
        return 0
    page_bytes, oob_bytes = image.pages
    _check_bytes(file, "pages", page_bytes, stack.board.chip.page_bytes)
    return oob_bytes


def _volume(file: Path, image: Image, wanted: str | None, stack: Stack) -> str | None:
    """The volume that the program writes to; None where a layout says it."""
    assert image.ubi is not None
    volumes = image.ubi["volumes"]
    if stack.layout is not None:
        if wanted is not None:
            raise InputError(f"--volume {wanted}: layout={stack.layout.name} says it")
        _check_layout(file, [each["name"] for each in volumes], stack.layout)
        return None
    able = [
        each["name"]
        for each, part in zip(volumes, image.parts, strict=True)
        if part["content"]["format"] == "ubifs"
    ]
    where = f"UBIFS on {', '.join(able)}" if able else "no volume with UBIFS"
    if wanted is not None and wanted not in able:
        raise InputError(f"--volume {wanted}: {shown(file)} has {where}")
    if wanted is None and len(able) != 1:
        chooses = ": --volume NAME chooses" if able else ""
        raise InputError(f"--dump {shown(file)}: {where}{chooses}")
    found = wanted or able[0]
    if any(character.isspace() for character in found):
        raise InputError(f"--dump {shown(file)}: volume {found!r}: a name without spaces is needed")
    return found


def _check_layout(file: Path, names: Sequence[str], layout: Layout) -> None:
    """Checks that the dump has the layout's volumes."""
    if layout.verity:
        raise InputError("layout.verity: not with --dump, which has no root hash")
    for volume in layout.volume:
        if volume.name not in names:
            raise InputError(
                f"--dump {shown(file)}: no volume {volume.name} of layout={layout.name};"
                f" it has {', '.join(names) or 'none'}"
            )
