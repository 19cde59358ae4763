"""Makes flash images, and copies the files of one into a folder.

A file may come from anyone, and so may the names in it. Nothing is written outside of the folder:
it is new, a path of an image has no `..`, and what it goes through are folders that were made here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from flashbed._sim import Image, ImageFile
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import cache_folder, shown
from flashbed.plan.stacks import one_stack
from flashbed.stack.flash_image import pieces_of
from flashbed.targets.guest.layout_images import image_of

__all__ = ["extract", "new_image"]

_HOLE_BYTES_MAX = 1 << 40
_COPIED = ("file", "folder", "link")


def new_image(
    folder: Path, settings: Sequence[str], *, volume: str | None, say: Callable[[str], None]
) -> bytes:
    """The image of a folder for a volume of the layout that is set.

    Raises `InputError`, `RunError` where a tool fails, `Unavailable`.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder")
    stack = one_stack(settings)
    if stack.layout is None:
        raise InputError("image new: --set layout=NAME says how it is made")
    names = [each.name for each in stack.layout.images]
    if volume is None and len(names) == 1:
        volume = names[0]
    if volume not in names:
        raise InputError(f"--volume: layout {stack.layout.name} has images on {', '.join(names)}")
    wanted = stack.layout.of(volume)
    if wanted.verity:
        raise InputError("layout.verity: exec and boot add the hashes, veritysetup a product's")
    return image_of(stack, wanted, folder=folder, cache=cache_folder(), say=say)


def extract(image: Image, part: int, folder: Path) -> tuple[int, list[str]]:
    """Copies files, folders and symbolic links into a new folder.

    Returns how many, and a line for each that could not be copied whole. Owners and devices are
    left out, as root would be needed for them.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as why:
        raise InputError(f"{shown(folder)}: {why.strerror}") from None
    copied = 0
    left_out: list[str] = []
    first: dict[int, bytes] = {}
    files = image.files(part)
    for file in files:
        name = os.fsdecode(file.path)
        if file.kind not in _COPIED:
            left_out.append(f"{name}: a {file.kind}, left out")
            continue
        try:
            with _parent(folder, file.path) as (parent, last):
                if file.kind == "file" and file.inode in first:
                    with _parent(folder, first[file.inode]) as (other, known):
                        os.link(known, last, src_dir_fd=other, dst_dir_fd=parent,
                                follow_symlinks=False)  # fmt: skip
                elif file.kind == "folder":
                    os.mkdir(last, 0o700, dir_fd=parent)
                elif file.kind == "link":
                    os.symlink(file.target, last, dir_fd=parent)
                else:
                    first[file.inode] = file.path
                    _write(image, part, file, (parent, last))
            copied += 1
        except (RunError, OSError) as why:
            left_out.append(f"{name}: {getattr(why, 'strerror', None) or why}")
    for file in reversed(files):
        if file.kind == "folder":
            with suppress(OSError), _parent(folder, file.path + b"/") as (here, _):
                os.fchmod(here, file.mode & 0o777)
    return copied, left_out


@contextmanager
def _parent(folder: Path, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The folder that a path is in, opened without following a link, and the path's last name."""
    *above, last = path.split(b"/")
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in above:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(name, flags, dir_fd=here)
            os.close(here)
            here = below
        yield here, last
    finally:
        os.close(here)


def _write(image: Image, part: int, file: ImageFile, place: tuple[int, bytes]) -> None:
    parent, last = place
    if file.bytes > _HOLE_BYTES_MAX:
        raise RunError(f"{file.bytes:,} bytes")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(last, flags, 0o600, dir_fd=parent), "wb") as out:  # noqa: PTH123
        for at, piece in pieces_of(image, part, file):
            out.seek(at)
            out.write(piece)
        out.truncate(file.bytes)
        os.fchmod(out.fileno(), file.mode & 0o777)
