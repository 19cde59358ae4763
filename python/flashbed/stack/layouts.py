"""What lies on the flash besides the program's file system: volumes, images, a layer over them.

boards/layouts/ has a file for each layout that products ship (docs/models/layouts.md). A layout is
part of a stack: UBI's volumes in the order in which they are made, what each holds, which one the
program writes to, and a layer of overlayfs over two of them. What an image holds is given with the
program; a layout says how the image is made of it.

Left out: partitions beside UBI's, more than one layer, volumes that the program mounts itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.stack.changes import LayoutChange
from flashbed.stack.names import Name, Text

__all__ = [
    "READ_ONLY", "Layer", "Layout", "Volume", "changed_layout", "load_layout", "unfit_layout",
]  # fmt: skip

READ_ONLY = ("squashfs", "erofs")
"""What a block device of UBI can hold."""
_OF_IMAGE, _ALL_LEFT = "image", "rest"


class Volume(Strict):
    """`[[volume]]`: a volume of the UBI device."""

    name: Name
    """Its name, as UBI keeps it."""
    size: Name | Annotated[int, Field(gt=0, lt=2**20)]
    """MiB, `image` for as much as its image needs, `rest` for all that is left, or a volume whose
    size it shares.
    """
    spare_pct: Annotated[int, Field(ge=0, le=1000)] = 0
    """Percent that it is larger than its image: room for later ones."""
    fixed: bool = False
    """Whether it is a static volume, whose data UBI checks when it is first opened."""
    holds: Literal["squashfs", "erofs", "ubifs", "nothing"]
    """What is on it, and mounted: a read-only file system, or UBIFS."""
    compressor: Name | None = None
    """The compressor of its image, as the program that makes it calls it."""
    block_kib: Annotated[int, Field(gt=0, le=1024)] | None = None
    """Bytes that the image compresses as one: blocks of squashfs, physical clusters of EROFS."""


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
    writes_to: Name
    """The volume whose file system the program writes to; with a layer its upper one."""
    volume: Annotated[list[Volume], Field(min_length=1, max_length=16)]
    """The volumes, in the order of their numbers."""
    fastmap: Annotated[int, Field(ge=0, le=1)] = 0
    """Whether UBI attaches by a fastmap, which it writes when it first can (fm_autoconvert)."""
    layer: Layer | None = None
    """Where there is one, the program's folder is on it."""

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
        if self.of(self.writes_to).holds != "ubifs":
            raise ValueError("writes_to: a volume of UBIFS")
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
    def root(self) -> str | None:
        """The volume that a device boots from; None for the layer."""
        return None if self.layer or not self.images else self.images[0].name

    def of(self, name: str) -> Volume:
        """A volume by its name."""
        return next(volume for volume in self.volume if volume.name == name)

    def changed(self, values: Mapping[str, Any]) -> Layout:
        """The layout with other values: its own, and those of all volumes that have an image."""
        own = {key: value for key, value in values.items() if key in type(self).model_fields}
        of_images = {key: value for key, value in values.items() if key not in own}
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
        return load_layout(change.part).changed(values)
    if values:
        raise InputError(f"layout.{next(iter(values))}: of a layout; --set layout=NAME too")
    return None


def unfit_layout(fs: str, change: LayoutChange) -> str | None:
    """Why a file system cannot be the program's in a layout; None if it can."""
    layout = changed_layout(change)
    if layout is None or layout.fs == fs:
        return None
    return f"the program writes to {layout.fs} there, not to {fs}"
