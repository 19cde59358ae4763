"""The emulated board's initramfs: the agent as /init, and kernel modules in load order.

A module names its dependencies in its `.modinfo` section (`depends=a,b`, NUL-terminated), so depmod
is not needed. Modules that the crypto layer requests by name at run time are not dependencies;
`MODULES` lists them. The archive is the "new ASCII" cpio format of the kernel's
Documentation/driver-api/early-userspace/buffer-format.rst. It is uncompressed, because unpacking
costs the emulated CPU less than decompressing. All dates are 0: equal files give equal bytes.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.base.errors import RunError
from flashbed.base.locking import scratch
from flashbed.stack.file_systems import FILE_SYSTEMS

__all__ = ["MODULES", "More", "archive", "keep", "load_order", "modules_of", "pack"]

MODULES = (
    "crc32c_generic",
    "lzo",
    "lzo-rle",
    "deflate",
    "zstd",
    *(name for row in FILE_SYSTEMS.values() for name in row.modules),
)
"""Modules that a board loads besides its chip's driver, each after its dependencies."""
_PART_OF_LATER_KERNELS = ("crc32c_generic",)
"""Modules that there is no more, as what they do is built into newer kernels."""

_FILE, _FOLDER, _DEVICE, _LINK = 0o100000, 0o040000, 0o020000, 0o120000
_DEPENDS = re.compile(rb"\x00depends=([^\x00]*)\x00")


def modules_of(folder: Path) -> dict[str, Path]:
    """Module name (with underscores) -> file, for all modules of a kernel's folder."""
    return {path.stem.replace("-", "_"): path for path in sorted(folder.rglob("*.ko"))}


def _built_in(folder: Path) -> set[str]:
    text = (folder / "modules.builtin").read_text(encoding="ascii")
    return {Path(line).stem.replace("-", "_") for line in text.splitlines()}


def load_order(folder: Path, wanted: Sequence[str], ours: Sequence[Path] = ()) -> list[Path]:
    """The modules wanted and their dependencies, in load order.

    `ours` are modules from elsewhere. Modules built into the kernel are left out. Raises `RunError`
    for a module that does not exist.
    """
    files = modules_of(folder) | {path.stem.replace("-", "_"): path for path in ours}
    built_in = _built_in(folder)
    order: dict[str, Path] = {}

    def visit(name: str) -> None:
        gone = name in _PART_OF_LATER_KERNELS and name not in files
        if name in order or name in built_in or gone:
            return
        if name not in files:
            raise RunError(f"the kernel package has no module {name}")
        found = _DEPENDS.search(b"\0" + files[name].read_bytes())
        for needed in found[1].decode("ascii").split(",") if found else []:
            if needed:
                visit(needed.replace("-", "_"))
        order[name] = files[name]

    for name in wanted:
        visit(name.replace("-", "_"))
    return list(order.values())


def _entry(number: int, name: str, *, mode: int, data: bytes = b"", device: int = 0) -> bytes:
    """One file: 13 fields of 8 hex digits after the magic, name and data padded to 4 bytes."""
    encoded = os.fsencode(name) + b"\0"
    major, minor = divmod(device, 256)
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def pack(
    folders: Sequence[str], files: Mapping[str, tuple[int, bytes]], links: Mapping[str, str]
) -> bytes:
    """Packs folders, a console, files (mode and content) and symbolic links, all of root."""
    number = itertools.count(1)
    entries = [_entry(next(number), folder, mode=_FOLDER | 0o755) for folder in folders]
    entries.append(_entry(next(number), "dev/console", mode=_DEVICE | 0o600, device=5 * 256 + 1))
    for name, (mode, data) in files.items():
        entries.append(_entry(next(number), name, mode=_FILE | mode, data=data))
    for name, target in links.items():
        entries.append(_entry(next(number), name, mode=_LINK | 0o777, data=os.fsencode(target)))
    return b"".join([*entries, _entry(0, "TRAILER!!!", mode=0)])


@dataclass(frozen=True)
class More:
    """Further content of an initramfs: paths without a leading slash."""

    folders: Sequence[str] = ()
    files: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def and_(self, other: More) -> More:
        """Both."""
        return More(
            folders=(*self.folders, *other.folders),
            files={**self.files, **other.files},
            links={**self.links, **other.links},
        )


def archive(
    agent: bytes, modules: Sequence[Path], parameters: Mapping[str, str], more: More | None = None
) -> bytes:
    """The initramfs, with module parameters."""
    more = more or More()
    lines = []
    files = {"init": (0o755, agent)}
    for path in modules:
        given = parameters.get(path.stem, "")
        lines.append(f"/modules.d/{path.name} {given}".rstrip())
        files[f"modules.d/{path.name}"] = (0o644, path.read_bytes())
    files["modules"] = (0o644, ("\n".join(lines) + "\n").encode("ascii"))
    folders = ("dev", "modules.d", "mnt", *more.folders)
    return pack(folders, {**files, **more.files}, more.links)


def keep(image: bytes, path: Path) -> None:
    """Writes an initramfs whole or not at all: another run may be booting from it."""
    with scratch(path.parent, "image-") as folder:
        part = folder / path.name
        part.write_bytes(image)
        part.replace(path)
