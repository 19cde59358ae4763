"""What lies on the flash besides the program's file system: volumes, images, a layer over them.

boards/layouts/ has a file for each layout that products ship (docs/models/layouts.md). A layout is
part of a stack: UBI's volumes in the order in which they are made, or partitions of MTD, what each
holds, which one the program writes to, and a layer of overlayfs over two of them. What an image
holds is given with the program; a layout says how the image is made of it.

Left out: partitions beside UBI's, more than one layer, volumes that the program mounts itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.stack.changes import Files, LayoutChange
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.names import Name, Text

__all__ = [
    "READ_ONLY", "Layer", "Layout", "Volume", "changed_layout", "in_layout", "load_layout",
    "on_partition", "unfit_layout",
]  # fmt: skip

READ_ONLY = ("squashfs", "erofs")
"""What a block device of UBI or MTD can hold."""
_OF_IMAGE, _ALL_LEFT = "image", "rest"
_MIB = 1 << 20
_WRITABLE = {each.stands_on: name for name, each in FILE_SYSTEMS.items() if each.modules}
"""What a layout is on -> Linux' file system that a program can write to there."""
_HOLDABLE = (*READ_ONLY, *_WRITABLE.values(), "nothing")


def _holdable(name: str) -> str:
    if name not in _HOLDABLE:
        raise ValueError(f"{name}: a volume holds {', '.join(_HOLDABLE[:-1])} or {_HOLDABLE[-1]}")
    return name


class Volume(Strict):
    """`[[volume]]`: a volume of the UBI device, or a partition of MTD."""

    name: Name
    """Its name, as UBI keeps it or MTD has it."""
    size: Name | Annotated[int, Field(gt=0, lt=2**20)]
    """MiB, `image` for as much as its image needs, `rest` for all that is left, or a volume whose
    size it shares. A partition has whole erase blocks.
    """
    spare_pct: Annotated[int, Field(ge=0, le=1000)] = 0
    """Percent that it is larger than its image: room for later ones."""
    fixed: bool = False
    """Whether it is a static volume, whose data UBI checks at the first opening."""
    holds: Annotated[Name, AfterValidator(_holdable)]
    """What is mounted of it: `squashfs`, `erofs`, `ubifs` on UBI, `jffs2` on MTD, or `nothing`."""
    compressor: Name | None = None
    """The compressor of its image, as the program that makes it calls it."""
    image_kib: Annotated[int, Field(gt=0, lt=2**22)] | None = None
    """Size of its image where none is given."""
    block_kib: Annotated[int, Field(gt=0, le=1024)] | None = None
    """Bytes that the image compresses as one: blocks of squashfs, physical clusters of EROFS."""
    verity: Annotated[int, Field(ge=0, le=1)] = 0
    """Whether dm-verity checks what is read of it."""

    @model_validator(mode="after")
    def _can_be_checked(self) -> Self:
        if self.verity and self.holds not in READ_ONLY:
            raise ValueError(f"volume {self.name}: verity: of {' and '.join(READ_ONLY)} only")
        return self


class Layer(Strict):
    """`[layer]`: overlayfs; a file that the program changes is copied up first."""

    lower: Name
    """The volume that is never changed."""
    upper: Name
    """The volume with all changes."""


class Layout(FromFile):
    """A file of boards/layouts/."""

    title: Text
    """What it is, in a line."""
    source: Text
    """Which products have it."""
    on: Literal["ubi", "mtd"] = "ubi"
    """Whether its volumes are those of one UBI device, or partitions of MTD without UBI."""
    writes_to: Name
    """The program's volume; with a layer its upper one."""
    volume: Annotated[list[Volume], Field(min_length=1, max_length=16)]
    """The volumes, in the order of their numbers; partitions, one after the other."""
    fastmap: Annotated[int, Field(ge=0, le=1)] = 0
    """Whether UBI attaches by a fastmap (fm_autoconvert)."""
    layer: Layer | None = None
    """Where there is one, the program's folder is on it."""
    files: Files = "layer"
    """Where a preparation's files are: in the image below the layer, or on it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names = [volume.name for volume in self.volume]
        if len(set(names)) != len(names):
            raise ValueError("volume: two have the same name")
        named = [self.writes_to]
        if self.layer is not None:
            named += [self.layer.lower, self.layer.upper]
            if self.layer.upper != self.writes_to:
                raise ValueError("layer.upper: the program writes to it, so writes_to names it")
        for name in named:
            if name not in names:
                raise ValueError(f"{name}: no such volume")
        if self.fastmap and self.on == "mtd":
            raise ValueError("fastmap: UBI's, and this layout is on mtd")
        if self.of(self.writes_to).holds != _WRITABLE[self.on]:
            raise ValueError(f"writes_to: a volume of {_WRITABLE[self.on]}, on {self.on}")
        able = (*READ_ONLY, "nothing", _WRITABLE[self.on])
        for volume in self.volume:
            if volume.holds not in able or (volume.fixed and self.on == "mtd"):
                what = "fixed" if volume.holds in able else f"holds {volume.holds}"
                raise ValueError(f"volume {volume.name}: {what}: not on {self.on}")
        for at, volume in enumerate(self.volume):
            if volume.size == _ALL_LEFT and at + 1 < len(names):
                raise ValueError(f"volume {volume.name}: the one that takes the rest is the last")
            shares = isinstance(volume.size, str) and volume.size not in (_OF_IMAGE, _ALL_LEFT)
            if shares and volume.size not in names[:at]:
                raise ValueError(f"volume {volume.name}: size {volume.size}: no volume before it")
        return self

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.stem

    @property
    def fs(self) -> str:
        """The file system that the program writes to."""
        return self.of(self.writes_to).holds

    @property
    def images(self) -> list[Volume]:
        """The volumes that hold an image."""
        return [each for each in self.volume if each.size == _OF_IMAGE]

    @property
    def verity(self) -> bool:
        """Whether dm-verity checks a volume."""
        return any(volume.verity for volume in self.volume)

    @property
    def root_volume(self) -> Volume | None:
        """The volume whose image holds what a preparation makes; None where it makes that."""
        if self.layer is None or self.files != "root":
            return None
        return self.of(self.layer.lower)

    @property
    def root(self) -> str | None:
        """The volume that a device boots from; None for the layer."""
        return None if self.layer or not self.images else self.images[0].name

    def sizes(self, image_bytes: Mapping[str, int]) -> dict[str, int]:
        """Bytes of each volume, given those of the images; 0 for all that is left."""
        found: dict[str, int] = {}
        for volume in self.volume:
            if isinstance(volume.size, int):
                found[volume.name] = volume.size * _MIB
            elif volume.size == _OF_IMAGE:
                bytes_ = image_bytes[volume.name]
                found[volume.name] = bytes_ * (100 + volume.spare_pct) // 100
            else:
                found[volume.name] = found.get(volume.size, 0)
        return found

    def blocks(
        self, image_bytes: Mapping[str, int], *, block_bytes: int, there: int
    ) -> dict[str, range]:
        """The erase blocks of each partition, of those that are there. Raises `InputError`."""
        found: dict[str, range] = {}
        at = 0
        for name, bytes_ in self.sizes(image_bytes).items():
            blocks = -(-bytes_ // block_bytes) if bytes_ else there - at
            if not 0 < blocks <= there - at:
                wanted = f"{blocks:,} blocks" if blocks else "the rest"
                raise InputError(
                    f"layout {self.name}: {name} takes {wanted};"
                    f" {there - at:,} of the partition's {there:,} blocks are left"
                )
            found[name] = range(at, at + blocks)
            at += blocks
        return found

    def program_blocks(
        self, images: Mapping[str, int] | None, *, block_bytes: int, there: int
    ) -> range:
        """The blocks of a partition that the program's file system lies on.

        Without sizes of images they are as the layout says. Raises `InputError`.
        """
        if self.on == "ubi":
            return range(there)
        sizes = self.image_bytes if images is None else images
        return self.blocks(sizes, block_bytes=block_bytes, there=there)[self.writes_to]

    @property
    def image_bytes(self) -> dict[str, int]:
        """The sizes of its images where none is given."""
        return {each.name: (each.image_kib or 0) << 10 for each in self.images}

    @property
    def not_simulated(self) -> str | None:
        """Why the simulator cannot have it; None if it can."""
        if self.verity:
            return "layout.verity: the simulator has none; --on uml,emulator has it"
        if self.root_volume is not None and self.root_volume.holds != "squashfs":
            return f"layout.files=root: the simulator reads no {self.root_volume.holds}"
        for volume in self.images:
            if volume.image_kib is None:
                return f"layout {self.name}: image_kib of volume {volume.name} is not given"
        return None

    @property
    def simulated(self) -> dict[str, object]:
        """The volumes and the layer as the simulator reads them, if it can have them."""
        return self.simulated_with(self.image_bytes)

    def simulated_with(self, images: Mapping[str, int]) -> dict[str, object]:
        """The same with images of so many bytes."""
        ubifs_lebs_min = FILE_SYSTEMS["ubifs"].blocks_min
        sizes = self.sizes(images)
        volumes = [
            {
                "bytes": sizes[volume.name],
                "lebs_min": ubifs_lebs_min if volume.holds == "ubifs" else 0,
                "image_bytes": images.get(volume.name, 0),
            }
            for volume in self.volume
        ]
        names = [volume.name for volume in self.volume]
        if self.on == "mtd":
            return {"overlay": self.layer is not None}
        return {
            "volumes": {
                "volumes": volumes,
                "program": names.index(self.writes_to),
                "fastmap": bool(self.fastmap),
            },
            "overlay": self.layer is not None,
        }

    def of(self, name: str) -> Volume:
        """A volume by its name."""
        return next(volume for volume in self.volume if volume.name == name)

    def changed(self, values: Mapping[str, Any]) -> Layout:
        """The layout with other values: its own, and those of all volumes that have an image.

        Raises `InputError` for what none of its volumes can have.
        """
        own = {key: value for key, value in values.items() if key in type(self).model_fields}
        of_images = {key: value for key, value in values.items() if key not in own}
        if "verity" in of_images and not any(each.holds in READ_ONLY for each in self.images):
            raise InputError(f"layout.verity: {self.name} has no {' and no '.join(READ_ONLY)}")
        if own.get("fastmap") and self.on == "mtd":
            raise InputError(f"layout.fastmap=1: UBI's, and {self.name} has partitions of MTD")
        volumes = [
            volume.model_copy(update=of_images) if volume in self.images else volume
            for volume in self.volume
        ]
        return self.model_copy(update={"volume": volumes, **own})


@lru_cache
def load_layout(name: str) -> Layout:
    """The layout of a name. Raises `InputError`."""
    there_are = paths.layout_files()
    if name not in there_are:
        raise InputError(f"layout {name}: no such layout; there are {', '.join(sorted(there_are))}")
    path = there_are[name]
    found = read_model(Layout, read_toml(path, InputError), path, InputError)
    found._path = path
    return found


def changed_layout(change: LayoutChange) -> Layout | None:
    """The layout that a value of the axis means; None for none. Raises `InputError`."""
    values = {key: value for key, value in change.values.items() if key != "part"}
    if change.part is not None:
        layout = load_layout(change.part).changed(values)
        if layout.files == "root" and layout.root_volume is None:
            raise InputError(f"layout.files=root: layout {layout.name} has no layer over a root")
        return layout
    if values:
        raise InputError(f"layout.{next(iter(values))}: of a layout; --set layout=NAME too")
    return None


def in_layout(
    kernel_json: str, layout: Layout | None, images: Mapping[str, int] | None = None
) -> str:
    """A kernel as the simulator reads it, with a layout and images of so many bytes."""
    if layout is None:
        return kernel_json
    values = layout.simulated if images is None else layout.simulated_with(images)
    kernel = {**json.loads(kernel_json), **values}
    if layout.on == "mtd":
        # As the kernels of such layouts have it (targets/uml/kernel_options.py).
        kernel["jffs2"]["xattr"] = "on"
    return json.dumps(kernel)


def on_partition(
    board_json: str, layout: Layout | None, images: Mapping[str, int] | None = None
) -> str:
    """A board as the simulator reads it, with the program's partition of a layout on MTD.

    Raises `InputError`.
    """
    if layout is None or layout.on == "ubi":
        return board_json
    board = json.loads(board_json)
    chip, partition = board["chip"], board["partition"]
    block_bytes = chip["page_bytes"] * chip["pages_per_block"]
    there = partition["blocks"]
    blocks = layout.program_blocks(images, block_bytes=block_bytes, there=there)
    partition |= {"first_block": partition["first_block"] + blocks.start, "blocks": len(blocks)}
    return json.dumps(board)


def unfit_layout(fs: str, change: LayoutChange) -> str | None:
    """Why a file system cannot be the program's in a layout; None if it can."""
    layout = changed_layout(change)
    if layout is None or layout.fs == fs:
        return None
    return f"the program writes to {layout.fs} there, not to {fs}"
