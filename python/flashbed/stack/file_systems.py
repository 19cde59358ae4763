"""The file systems: what is true of each whatever the kernel and the board.

boards/parts/file_systems.toml has a row for each, and for each way of using a partition without
one. No other file lists them; what is special about one is asked of its row. A kernel's version has
its own facts (kernel_tables.py), and so has the simulator's code of a file system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import Strict, read_model, read_toml
from flashbed.stack.names import USUAL_FS, Name, Text

__all__ = [
    "COMPRESSING", "FILE_SYSTEMS", "FTL", "ON_FTL", "RAW", "USUAL_FIRST", "FileSystem",
    "FileSystemFacts", "FileSystemTable", "OnFtlFacts", "RawFacts", "has_ftl", "only_in_user_mode",
]  # fmt: skip

Bytes = Annotated[int, Field(gt=0, lt=2**20)]


class FilesPct(Strict):
    """The part of a partition that files can take, by the size of a page."""

    page_bytes: Bytes
    """The chip's page."""
    pct: Annotated[int, Field(gt=0, lt=100)]
    """Percent of a partition of 50 MiB that incompressible files filled."""


class FileSystemFacts(Strict):
    """`[[file_system]]`: a file system that keeps files on raw NAND flash."""

    name: Name
    """What mount(8) and the axis `fs` call it."""
    title: Text
    """What its authors call it."""
    source: Text
    """Where the row's values come from."""
    stands_on: Literal["mtd", "ubi"]
    """What is below it. UBI levels wear, and takes blocks of its own.
    From: the file system's super.c.
    """
    window_of: Literal["mtd", "own", "mount"]
    """The device whose read-ahead window its files have: the MTD device's, one of its `own` that is
    named as it is, or that of what the kernel mounts it on.
    From: its super.c (super_setup_bdi) and `backing_devices` of a kernel.
    """
    modules: list[Name]
    """The kernel's modules, in the order in which they are loaded.
    From: its Makefile.
    """
    compr: list[Literal["none", "lzo", "zlib", "zstd"]]
    """What its mount option `compr=` takes in any kernel; empty if it never compresses.
    From: its super.c.
    """
    compresses: Literal["writes", "pages"] | None = None
    """Whether it compresses what a call writes, or whole pages at write-back.
    From: its file.c.
    """
    blocks_min: Annotated[int, Field(gt=0, le=65_536)]
    """The fewest blocks it can be mounted on, without those that UBI takes.
    From: where it refuses a smaller partition.
    """
    blocks_min_why: Text | None = None
    """What a refusal adds to that number."""
    mib_end: Bytes | None = None
    """The size of partition, MiB, from which on it cannot be mounted.
    From: the types it counts bytes in.
    """
    df_page_bytes: Bytes
    """What df loses when an incompressible page of 4 KiB is written.
    From: user-mode Linux.
    """
    df_per_node: Annotated[list[Bytes], Field(min_length=2, max_length=2)]
    """Bytes of df for bytes of flash.
    From: its statfs.
    """
    files_pct: list[FilesPct]
    """How much of a partition files can take.
    From: user-mode Linux: files of 1 MiB in requests of 64 KiB until one failed.
    """
    rewritten_pct_max: Annotated[int, Field(gt=0, lt=100)]
    """Percent of a block that may be obsolete before it collects the block unasked.
    From: its garbage collector.
    """
    fills_blocks: bool = False
    """Whether a block is full of its writes before it is erased. Others erase blocks early: those
    of a log, of a checkpoint.
    From: its garbage collector.
    """
    writes_back: bool = False
    """Whether written pages stay in the page cache until write-back.
    From: its address_space_operations.
    """
    own_name: Text | None = None
    """A name in its root that no program made.
    From: its mount.
    """
    on_nor: bool = False
    """Whether it is made on SPI-NOR too.
    From: its code for flash without a spare area; `flashbed exec`.
    """

    @property
    def files_pct_of(self) -> dict[int, int]:
        """Size of a page -> percent of a partition that files can take."""
        return {each.page_bytes: each.pct for each in self.files_pct}


class RawFacts(Strict):
    """`[[raw]]`: a way to use a partition without a file system."""

    name: Name
    """What the axis `fs` calls it."""
    title: Text
    """What it is."""
    modules: list[Name]
    """The kernel's modules that are loaded for it alone.
    From: drivers/mtd/Makefile.
    """
    is_block_device: bool = False
    """Whether it is a disk of 512-byte sectors, opened with O_DIRECT. Others erase and program as
    the chip does.
    """


class OnFtlFacts(Strict):
    """`[[on_ftl]]`: a file system of disks, on the disk that `ftl` makes of the partition."""

    name: Name
    """What mount(8) and the axis `fs` call it."""
    title: Text
    """What its authors call it."""
    source: Text
    """Where its code and the program that makes it are from."""
    disk_mib_min: Bytes
    """The smallest disk that the program takes, in MiB.
    From: trying it.
    """
    package: Name
    """Debian's package of the program that makes it."""
    own_name: Text | None = None
    """A name in its root that no program made.
    From: its program.
    """
    make: Annotated[list[Text], Field(min_length=1)]
    """That program in the package and its options; the device is the last word.
    From: its manual.
    """


class FileSystemTable(Strict):
    """The whole file."""

    file_system: list[FileSystemFacts]
    """The file systems, in the order of tables."""
    raw: list[RawFacts]
    """The ways to use a partition without one."""
    on_ftl: list[OnFtlFacts]
    """File systems of disks. Real kernels have them, the simulator has not."""


def _read() -> FileSystemTable:
    path = paths.own_file("boards", "parts", "file_systems.toml")
    return read_model(FileSystemTable, read_toml(path, InputError), path, InputError)


_TABLE = _read()
FILE_SYSTEMS: Mapping[str, FileSystemFacts] = {row.name: row for row in _TABLE.file_system}
"""The file systems by name, in the order of tables."""
RAW: Mapping[str, RawFacts] = {row.name: row for row in _TABLE.raw}
"""The ways to use a partition without a file system, by name."""
FTL = "ftl"
"""The disk with a flash translation layer."""
ON_FTL: Mapping[str, OnFtlFacts] = {row.name: row for row in _TABLE.on_ftl}
"""The file systems of disks by name, which are on that disk."""
USUAL_FIRST = tuple(sorted(FILE_SYSTEMS, key=lambda name: name != USUAL_FS))
"""The names of all, that of the usual one first."""
COMPRESSING = tuple(name for name, row in FILE_SYSTEMS.items() if row.compr)
"""The file systems with a mount option `compr=`."""

if TYPE_CHECKING:
    FileSystem = str
else:
    FileSystem = Literal[(*FILE_SYSTEMS, *RAW, *ON_FTL)]
"""A value of the axis `fs`."""


def has_ftl(fs: str) -> bool:
    """Whether the partition is a disk with a flash translation layer."""
    return fs == FTL or fs in ON_FTL


def only_in_user_mode(fs: str) -> str | None:
    """Why the emulated board and a real one cannot have it; None if they can."""
    if not has_ftl(fs):
        return None
    others = "--on sim and --on uml have" if fs == FTL else "--on uml has"
    return f"fs {fs}: its flash translation layer is a model, which {others}"
