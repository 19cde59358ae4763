"""Images for tests: a drawn file tree, a drawn set of options, and the tool that makes the image.

Each image comes with what the tool was given, so that a reader can be held against it. OOB is put
behind each page here, as `nanddump -o` does it: mtd-utils needs a chip for that.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashbed.base.paths import cache_folder
from flashbed.targets.guest.image_tools import image_tool

__all__ = ["MadeImage", "Tree", "drawn_tree", "make", "run_tool", "with_oob"]

GEOMETRIES = (
    (512, 16), (512, 16), (2048, 64), (2048, 128), (2048, 256), (4096, 256),
)  # fmt: skip
"""Bytes of a page, and KiB of a block."""
OOB = {512: (16,), 2048: (64, 128), 4096: (224, 256)}
WORDS = b"the flash is written once and read often; a block is erased as a whole\n"


@dataclass
class Tree:
    """What a folder holds: bytes of files, targets of links, modes of all."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    hard: dict[str, str] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)

    def write(self, root: Path) -> None:
        """Writes it into an empty folder."""
        root.mkdir(parents=True)
        for name in sorted(self.folders):
            (root / name).mkdir(parents=True)
        for name, data in self.files.items():
            (root / name).write_bytes(data)
        for name, target in self.links.items():
            (root / name).symlink_to(target)
        for name, other in self.hard.items():
            os.link(root / other, root / name)
        for name, mode in self.modes.items():
            (root / name).chmod(mode)


def drawn_tree(draw: random.Random, files: int = 14, largest: int = 60_000) -> Tree:
    """A tree of folders, files of several kinds of content, links and hard links."""
    tree = Tree()
    folders = [""]
    for number in range(draw.randrange(5)):
        name = f"{draw.choice(folders)}d{number}{draw.choice(('', '-x', '.d'))}/"
        folders.append(name)
        tree.folders.add(name[:-1])
        tree.modes[name[:-1]] = draw.choice((0o755, 0o700, 0o1777))
    for number in range(draw.randrange(1, files)):
        name = f"{draw.choice(folders)}f{number}{'n' * draw.choice((0, 3, 60, 200))}"
        tree.files[name] = _content(draw, draw.choice((0, 1, 100, 4095, 4096, 4097, largest)))
        tree.modes[name] = draw.choice((0o644, 0o600, 0o755, 0o4755))
    for number in range(draw.randrange(3)):
        name = f"{draw.choice(folders)}l{number}"
        tree.links[name] = draw.choice(("f0", "../nowhere", "/etc/passwd", "x" * 250))
    for number in range(draw.randrange(2)):
        tree.hard[f"h{number}"] = draw.choice(list(tree.files))
    return tree


def _content(draw: random.Random, size: int) -> bytes:
    size = draw.randrange(size // 2, size + 1) if draw.random() < 0.5 else size
    kind = draw.randrange(4)
    if kind == 0:
        return draw.randbytes(size)
    if kind == 1:
        return (WORDS * (size // len(WORDS) + 1))[:size]
    if kind == 2:
        return bytes(size)
    # Text with noise in it, and holes of whole blocks.
    data = bytearray((WORDS * (size // len(WORDS) + 1))[:size])
    for _ in range(size // 40):
        data[draw.randrange(size)] = draw.randrange(256)
    if size > 20_000:
        data[8192:16384] = bytes(8192)
    return bytes(data)


@dataclass(frozen=True)
class MadeImage:
    """An image, what it was made of, and the options that the tool had."""

    path: Path
    kind: str
    trees: dict[str, Tree]
    options: dict[str, Any]


def run_tool(name: str, *words: object) -> None:
    """Runs a program of mtd-utils and the like, which must succeed."""
    command = [*image_tool(name, cache_folder(), print), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def with_oob(
    data: bytes, page: int, oob: int, *, bad: Collection[int] = (), block: int = 0
) -> bytes:
    """Each page with its OOB behind it; blocks of `bad` are marked."""
    out = bytearray()
    for at in range(0, len(data), page):
        spare = bytearray(b"\xff" * oob)
        if block and at // block in bad:
            spare[0 if page > 512 else 5] = 0
        else:
            spare[oob // 2 :] = bytes(byte ^ 0x5A for byte in data[at : at + oob - oob // 2])
        out += data[at : at + page].ljust(page, b"\xff") + spare
    return bytes(out)


def make(kind: str, seed: int, folder: Path, geometry: tuple[int, int] | None = None) -> MadeImage:
    """An image of a kind: ubifs, ubi, jffs2, squashfs or erofs.

    With a geometry, bytes of a page and KiB of a block, it is one that a kernel on the guests' chip
    mounts: its headers take a page, its first volume has files, and its order is the processor's.
    """
    draw = random.Random(f"{kind} {seed}")
    folder.mkdir(parents=True, exist_ok=True)
    return _MAKERS[kind](draw, folder, geometry)


def _ubifs(
    draw: random.Random, folder: Path, name: str, page: int, leb: int, lebs: int
) -> tuple[Path, Tree, dict[str, Any]]:
    tree = drawn_tree(draw)
    tree.write(folder / f"{name}.root")
    out = folder / f"{name}.ubifs"
    compressor = draw.choice(("lzo", "zlib", "zstd", "none"))
    more: list[object] = []
    if draw.random() < 0.3:
        more += ["-F"]
    if draw.random() < 0.3:
        more += ["-k", "test"]
    if draw.random() < 0.3:
        more += ["-f", draw.choice((4, 16))]
    run_tool("mkfs.ubifs", "-r", folder / f"{name}.root", "-m", page, "-e", leb, "-c", lebs,
         "-x", compressor, *more, "-o", out)  # fmt: skip
    return out, tree, {"compressor": compressor, "lebs_max": lebs, "page": page, "leb": leb,
                       "more": more}  # fmt: skip


def _make_ubifs(draw: random.Random, folder: Path, geometry: tuple[int, int] | None) -> MadeImage:
    page, kib = geometry or draw.choice(GEOMETRIES)
    out, tree, options = _ubifs(draw, folder, "a", page, (kib << 10) - 2 * page, 200)
    return MadeImage(out, "ubifs", {"": tree}, options)


def _make_ubi(draw: random.Random, folder: Path, geometry: tuple[int, int] | None) -> MadeImage:
    page, kib = geometry or draw.choice(GEOMETRIES)
    sub = page if geometry else draw.choice((page, page // 4 if page > 512 else page))
    block = kib << 10
    data_offset = -(-(max(sub, 64) + 64) // page) * page
    leb = block - data_offset
    trees, sections, volumes = {}, [], []
    for number in range(draw.randrange(1, 4)):
        name, kind = f"v{number}", draw.choice(("ubifs", "static", "empty"))
        if geometry and number == 0:
            kind = "ubifs"
        lines = [f"[{name}]", "mode=ubi", f"vol_id={number}", f"vol_name={name}"]
        lebs = draw.randrange(90, 130) if kind == "ubifs" else draw.randrange(3, 9)
        if kind == "ubifs":
            out, trees[name], _ = _ubifs(draw, folder, name, page, leb, lebs + 20)
            lines += ["vol_type=dynamic", f"image={out}"]
        elif kind == "static":
            raw = folder / f"{name}.raw"
            raw.write_bytes(_content(draw, draw.randrange(1, 3 * leb)))
            lines += ["vol_type=static", f"image={raw}"]
        else:
            lines += ["vol_type=dynamic"]
        lines.append(f"vol_size={lebs * leb}")
        volumes.append({"name": name, "kind": kind, "lebs": lebs, "autoresize": False})
        sections.append(lines)
    if volumes[-1]["kind"] != "static" and draw.random() < 0.5:
        sections[-1].append("vol_flags=autoresize")
        volumes[-1]["autoresize"] = True
    (folder / "u.ini").write_text("\n".join("\n".join(lines) for lines in sections) + "\n")
    erases, sequence = draw.choice((0, 7, 100_000)), draw.randrange(1, 1 << 31)
    out = folder / "u.ubi"
    run_tool("ubinize", "-o", out, "-p", block, "-m", page, "-s", sub, "-e", erases, "-Q", sequence,
         folder / "u.ini")  # fmt: skip
    options: dict[str, Any] = {
        "page": page, "sub": sub, "block": block, "erases": erases, "sequence": sequence,
        "volumes": volumes, "data_offset": data_offset, "oob": 0,
    }  # fmt: skip
    if not geometry and draw.random() < 0.4:
        oob = draw.choice(OOB[page])
        options["oob"] = oob
        out.write_bytes(with_oob(out.read_bytes(), page, oob))
    return MadeImage(out, "ubi", trees, options)


def _make_jffs2(draw: random.Random, folder: Path, geometry: tuple[int, int] | None) -> MadeImage:
    tree = drawn_tree(draw)
    tree.write(folder / "root")
    kib, order = draw.choice((16, 64, 128, 256)), draw.choice(("-l", "-b"))
    marked, summed = draw.random() < 0.6, draw.random() < 0.5
    if geometry:
        kib, order, marked = geometry[1], "-l", False
    out, block = folder / "a.jffs2", kib << 10
    words: list[object] = ["-r", folder / "root", "-o", out, "-e", f"{kib}KiB", order]
    words += [] if marked else ["-n"]
    mode = draw.choice(("none", "priority", "size"))
    lzo = draw.random() < 0.5
    run_tool("mkfs.jffs2", *words, "-m", mode, *(["-X", "lzo", "-y", "90:lzo"] if lzo else []),
         *(["-p"] if draw.random() < 0.5 else []))  # fmt: skip
    if summed:
        run_tool("sumtool", "-i", out, "-o", folder / "s.jffs2", "-e", f"{kib}KiB", order,
             *([] if marked else ["-n"]))  # fmt: skip
        out = folder / "s.jffs2"
    options = {"block": block, "big": order == "-b", "marked": marked, "summed": summed,
               "mode": mode, "lzo": lzo}  # fmt: skip
    return MadeImage(out, "jffs2", {"": tree}, options)


def _make_squashfs(draw: random.Random, folder: Path, _: tuple[int, int] | None) -> MadeImage:
    tree = drawn_tree(draw)
    tree.write(folder / "root")
    kib, compressor = (
        draw.choice((4, 64, 128, 1024)),
        draw.choice(("gzip", "lzo", "xz", "zstd", "lz4")),
    )
    out = folder / "a.squashfs"
    run_tool("mksquashfs", folder / "root", out, "-b", kib << 10, "-comp", compressor, "-noappend")
    return MadeImage(out, "squashfs", {"": tree}, {"block": kib << 10, "compressor": compressor})


def _make_erofs(draw: random.Random, folder: Path, _: tuple[int, int] | None) -> MadeImage:
    tree = drawn_tree(draw)
    tree.write(folder / "root")
    compressor = draw.choice(("", "lz4", "lz4hc"))
    out = folder / "a.erofs"
    run_tool("mkfs.erofs", *([f"-z{compressor}"] if compressor else []), out, folder / "root")
    return MadeImage(out, "erofs", {"": tree}, {"compressor": compressor[:3]})


_MAKERS = {
    "ubifs": _make_ubifs,
    "ubi": _make_ubi,
    "jffs2": _make_jffs2,
    "squashfs": _make_squashfs,
    "erofs": _make_erofs,
}
