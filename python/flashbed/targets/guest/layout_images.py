"""The images of a layout's volumes, and the layout as the agent reads it.

An image is a file that the user has, or it is made of a folder by the program that products use
(image_tools.py), without what differs between two runs: times, owners, the identity of the file
system. It travels into the guest with the initramfs, below /images.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.errors import InputError, RunError
from flashbed.base.locking import scratch
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.layouts import READ_ONLY, Layout, Volume
from flashbed.stack.stack import Stack
from flashbed.targets.guest.image_tools import image_tool
from flashbed.targets.guest.initramfs import More
from flashbed.targets.guest.verity import Verity, with_hash_tree

__all__ = [
    "NO_IMAGES",
    "Images",
    "given_images",
    "image_of",
    "images_of",
    "leb_bytes",
    "lines",
    "modules_of_layout",
    "modules_of_mount",
    "named",
    "partitions",
    "uses_of",
]

_FOLDER = "images"
_NO_IDENTITY = "00000000-0000-0000-0000-000000000000"
_TIMEOUT_S = 600
_SUPERBLOCK_BYTES = 4096
_CRC, _UUID = slice(4, 8), slice(108, 124)
_LEBS_MAX = 65_536
_FREE = {True: b"\xff", False: b"\0"}
"""What fills an image up, on UBIFS and elsewhere: UBI leaves what is free on UBIFS unwritten."""
_UBIFS_OWN_LEBS = 16
"""More than its areas before the main one, the index and the collector take in a small image."""
_UBIFS_DATA_PCT = 95
"""Of a LEB in the main area what is left beside headers of nodes."""
_MIB = 1 << 20

Say = Callable[[str], None]


@dataclass(frozen=True)
class Images:
    """The image of each volume that has one."""

    content: Mapping[str, bytes]
    """Volume -> what is written to it."""
    checked: Mapping[str, Verity] = field(default_factory=dict)
    """Volume -> how dm-verity checks it, if it does."""

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each."""
        return {name: len(content) for name, content in self.content.items()}

    @property
    def mib(self) -> int:
        """The memory that they take in a guest."""
        return -(-sum(self.sizes.values()) // _MIB)

    @property
    def more(self) -> More:
        """They, as a part of an initramfs."""
        files = {f"{_FOLDER}/{name}": (0o644, content) for name, content in self.content.items()}
        return More(folders=(_FOLDER,) if files else (), files=files)


def named(images: Images, parts: Mapping[str, int]) -> str:
    """What tells an initramfs with these images and partitions from others; empty for none."""
    if not images.content and not parts:
        return ""
    digest = hashlib.sha256(repr(sorted(parts.items())).encode())
    for name, content in images.content.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return f"-layout-{digest.hexdigest()[:16]}"


NO_IMAGES = Images({})
"""Of a stack without a layout."""


def leb_bytes(stack: Stack) -> int:
    """A LEB, as the simulated UBI lays out its blocks."""
    # Loads the tables of workloads, which an image of other file systems does not need.
    from flashbed.plan.workloads.space import leb_bytes as of_board

    return of_board(stack.board)


def given_images(words: Sequence[str], layout: Layout | None) -> dict[str, Path]:
    """`VOLUME=PATH` of each word, or PATH for a layout's only image. Raises `InputError`."""
    found: dict[str, Path] = {}
    names = [] if layout is None else [volume.name for volume in layout.images]
    for word in words:
        if layout is None:
            raise InputError(f"--image {word}: goes onto a volume of a layout; --set layout=NAME")
        name, equals, path = word.partition("=")
        if not equals and len(names) == 1:
            name, path = names[0], word
        if name not in names or not path:
            takes = " or ".join(f"{each}=PATH" for each in names) or "none"
            raise InputError(f"--image {word}: layout {layout.name} takes {takes}")
        if not Path(path).exists():
            raise InputError(f"--image {path}: no such file or folder")
        found[name] = Path(path)
    return found


def images_of(stack: Stack, given: Mapping[str, Path], *, cache: Path, say: Say) -> Images:
    """The images of a stack's layout; a volume that is given none gets an empty one, filled up.

    Raises `InputError`, `RunError` where a tool fails, `Unavailable`.
    """
    layout = stack.layout
    if layout is None:
        return NO_IMAGES
    made, checked = {}, {}
    for volume in layout.images:
        path = given.get(volume.name)
        if path is not None and path.is_file():
            made[volume.name] = path.read_bytes()
        else:
            image = image_of(stack, volume, folder=path, cache=cache, say=say)
            kib = (volume.image_kib or 0) if path is None or volume is layout.root_volume else 0
            made[volume.name] = image.ljust(kib << 10, _FREE[volume.holds == "ubifs"])
        if not made[volume.name]:
            raise InputError(f"--image {volume.name}: the image is empty")
        if volume.verity:
            made[volume.name], checked[volume.name] = with_hash_tree(made[volume.name])
        if layout.on == "mtd":
            made[volume.name] = _whole_pages(made[volume.name], stack.board.chip.page_bytes)
    return Images(made, checked)


def _whole_pages(image: bytes, page_bytes: int) -> bytes:
    """What is written to a partition, as nandwrite fills up the last page (`--pad`)."""
    return image.ljust(-(-len(image) // page_bytes) * page_bytes, b"\xff")


def partitions(stack: Stack, images: Images) -> dict[str, int]:
    """The partitions of a layout and the blocks of each; none for other layouts.

    Raises `InputError`.
    """
    layout, board = stack.layout, stack.board
    if layout is None or layout.on != "mtd":
        return {}
    there = board.partition.blocks
    found = layout.blocks(images.sizes, block_bytes=board.chip.block_bytes, there=there)
    return {name: len(blocks) for name, blocks in found.items()}


def lines(stack: Stack, images: Images) -> list[str]:
    """The layout as lines of a job or a request (agent/fs/layout_lines.c)."""
    layout = stack.layout
    if layout is None:
        return []
    bytes_ = layout.sizes(images.sizes)
    for volume in layout.images:
        if volume.holds == "ubifs":
            least = FILE_SYSTEMS["ubifs"].blocks_min * leb_bytes(stack)
            bytes_[volume.name] = max(bytes_[volume.name], least)
    found = [
        f"volume {volume.name} {_type(layout, volume)} {bytes_[volume.name]}"
        f" {volume.holds} - {f'/{_FOLDER}/{volume.name}' if volume.name in images.content else '-'}"
        for volume in layout.volume
    ]
    for name, of in images.checked.items():
        found.append(f"verity {name} {of.blocks} {of.root} {of.salt}")
    return [*found, *uses_of(layout)]


def uses_of(layout: Layout) -> list[str]:
    """What its volumes are for, as lines after them."""
    found = [f"writes_to {layout.writes_to}"]
    if layout.root is not None:
        found.append(f"root {layout.root}")
    if layout.layer is not None:
        found.append(f"layer {layout.layer.lower} {layout.layer.upper}")
    return found


def _type(layout: Layout, volume: Volume) -> str:
    if layout.on == "mtd":
        return "partition"
    return "static" if volume.fixed else "dynamic"


def modules_of_layout(layout: Layout | None) -> list[str]:
    """The modules of Debian's kernel that a layout needs beside the program's file system."""
    if layout is None:
        return []
    read_only = {each.holds for each in layout.volume if each.holds in READ_ONLY}
    below = ["mtdblock"] if read_only and layout.on == "mtd" else []
    checked = ["dm-verity"] if layout.verity else []
    return [*below, *sorted(read_only), *checked, *(["overlay"] if layout.layer else [])]


def modules_of_mount(stack: Stack) -> list[str]:
    """The modules of Debian's kernel that fscrypt asks for by name (fs/crypto/Kconfig)."""
    return ["sha512_generic", "ecb", "xts", "cts"] if "encrypted" in stack.protection else []


def image_of(stack: Stack, volume: Volume, *, folder: Path | None, cache: Path, say: Say) -> bytes:
    """The image of a folder, or of one without files of the user's."""
    cache.mkdir(parents=True, exist_ok=True)
    with scratch(cache, "image-") as work:
        out = work / "image"
        source = work / "empty" if folder is None else folder
        if folder is None:
            source.mkdir()
            _fill(source, stack, volume)
            os.utime(source, (0, 0))
        if volume.holds == "ubifs":
            return _ubifs(stack, volume, source, out, cache=cache, say=say)
        return _run(_words(volume, str(source), str(out)), out, cache=cache, say=say)


def _fill(folder: Path, stack: Stack, volume: Volume) -> None:
    """Fills the folder of a UBIFS image that is to take `image_kib`.

    Free space at the end of a read-only image of another kind is not looked at, so that is longer.
    """
    if volume.holds != "ubifs" or volume.image_kib is None:
        return
    leb = leb_bytes(stack)
    lebs = (volume.image_kib << 10) // leb - _UBIFS_OWN_LEBS
    if lebs > 0:
        filler = folder / "filler"
        filler.write_bytes(random.Random(0).randbytes(lebs * leb * _UBIFS_DATA_PCT // 100))
        os.utime(filler, (0, 0))


def _ubifs(
    stack: Stack, volume: Volume, source: Path, out: Path, *, cache: Path, say: Say
) -> bytes:
    """An image of UBIFS with the journal of a volume that is no larger than the image.

    mkfs.ubifs sizes the journal by the largest volume that the image may ever have (`-c`), and
    the kernel refuses a journal that is larger than the volume (ubifs_read_superblock).
    """
    leb = leb_bytes(stack)
    words = ["mkfs.ubifs", "-r", str(source), "-m", str(stack.board.chip.page_bytes)]
    words += ["-e", str(leb), "-U", "-o", str(out)]
    words += ["-x", volume.compressor] if volume.compressor else []
    needed = len(_run([*words, "-c", str(_LEBS_MAX)], out, cache=cache, say=say)) // leb
    made = _run([*words, "-c", str(needed)], out, cache=cache, say=say)
    needed, least = len(made) // leb, FILE_SYSTEMS["ubifs"].blocks_min
    if needed < least:
        # validate_sb: the main area of so small an image is less than UBIFS_MIN_MAIN_LEBS.
        raise InputError(
            f"--image {volume.name}: {needed} LEBs of UBIFS; Linux mounts images from {least} LEBs"
            f" on: more files, {least * leb // _MIB + 1} MiB that do not compress are enough"
        )
    return _without_identity(made)


def _without_identity(image: bytes) -> bytes:
    """The image without the UUID that mkfs.ubifs draws (struct ubifs_sb_node)."""
    superblock = bytearray(image[:_SUPERBLOCK_BYTES])
    superblock[_UUID] = bytes(16)
    # UBIFS does not invert its crc32 at the end.
    crc = zlib.crc32(superblock[8:]) ^ 0xFFFF_FFFF
    superblock[_CRC] = crc.to_bytes(4, "little")
    return bytes(superblock) + image[_SUPERBLOCK_BYTES:]


def _run(words: Sequence[str], out: Path, *, cache: Path, say: Say) -> bytes:
    """What a program wrote to `out`. Raises `RunError` with what it said."""
    done = subprocess.run(
        [*image_tool(words[0], cache, say), *words[1:]],
        capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
    )  # fmt: skip
    if done.returncode or not out.is_file():
        said = (done.stderr + done.stdout).strip().splitlines() or ["it said nothing"]
        raise RunError(f"{words[0]} made no image: {said[-1]}")
    return out.read_bytes()


def _words(volume: Volume, source: str, out: str) -> list[str]:
    """The program that makes a read-only image, and its arguments."""
    kib = volume.block_kib
    if volume.holds == "squashfs":
        words = ["mksquashfs", source, out, "-noappend", "-no-progress", "-no-xattrs"]
        words += ["-root-owned", "-processors", "1"]
        words += ["-comp", volume.compressor] if volume.compressor else []
        return [*words, *(["-b", f"{kib}K"] if kib else [])]
    words = ["mkfs.erofs", "-T0", f"-U{_NO_IDENTITY}", "--all-root"]
    words += [f"-z{volume.compressor}"] if volume.compressor else []
    words += [f"-C{kib * 1024}"] if kib else []
    return [*words, out, source]
