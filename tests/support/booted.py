"""Random roots in squashfs: a boot on the kernel's own code, and one in the simulator.

`python -m tests.support.booted --seeds 0:64` prints a row for each root with the page reads of each
part, and how far off the simulator is. A root has files from none to several blocks, compressible
or not, with holes, hard links, symbolic links, folders large enough for an index; the list reads
some of them in any order, through links, twice, and names that are not there. A seed gives the
same root, layout, block size, compressor and chip. `--fastmap` attaches by a fastmap, to partitions
of several sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.exec_and_replay import FLASHBED
from tests.support.layout_settings import settings_of

__all__ = ["Booted", "booted"]

LAYOUTS = ("squashfs-overlay-ubifs", "two-slots")
CHIPS = ("W25N01GV", "MT29F2G08AACWP")
ON_MTD = ("nor-squashfs-overlay-jffs2",)
OF_MTD = ("W25Q128JV", "MT29F2G08AACWP")
COMPRESSORS = ("gzip", "xz", "lzo", "lz4", "zstd")
BLOCK_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
PARTITION_BLOCKS = (140, 200, 256, 400, 512, 700, 1_000)
"""Where there is a fastmap: of whole flashes, whose pools have 8 to 50 blocks."""
ROOT_BYTES_MAX = 6 << 20
KINDS = ("reads", "programs", "erases")
Operations = tuple[int, int, int]


@dataclass(frozen=True)
class Booted:
    """A root: what each part of its boot does to the chip, and reading each file."""

    seed: int
    setting: str
    block_kib: int
    kernel: dict[str, Operations]
    simulated: dict[str, Operations]
    kernel_files: list[tuple[int | str, int]]
    simulated_files: list[tuple[int | str, int]]
    """Of each file its size, or why it is not read, and the page reads."""

    @property
    def equal(self) -> bool:
        """Whether all of it is the same."""
        return (self.kernel, self.kernel_files) == (self.simulated, self.simulated_files)


class _Root:
    """A root as it is drawn."""

    def __init__(self, drawn: random.Random, folder: Path, block: int) -> None:
        self.drawn, self.folder, self.block = drawn, folder, block
        self.folders, self.left = [""], ROOT_BYTES_MAX
        self.paths: list[str] = []
        folder.mkdir()
        for _ in range(drawn.randrange(0, 8)):
            self.make_folder()
        for number in range(drawn.randrange(1, 60)):
            self.make_file(f"file{number}")
        if drawn.random() < 0.3:
            self.make_many()
        for number in range(drawn.randrange(0, 6)):
            self.make_link(f"link{number}")

    def make_folder(self) -> None:
        path = f"{self.drawn.choice(self.folders)}folder{len(self.folders)}/"
        (self.folder / path).mkdir()
        self.folders.append(path)

    def make_file(self, name: str) -> None:
        draw = self.drawn
        size = draw.choice([
            0, draw.randrange(1, 300), draw.randrange(300, 4096), 4096,
            draw.randrange(4097, 40_000), self.block, self.block * draw.randrange(1, 4),
            draw.randrange(1, 5 * self.block),
        ])  # fmt: skip
        size = min(size, self.left)
        self.left -= size
        words = [b"%d " % draw.randrange(1000) for _ in range(200)]
        text = b"".join(draw.choices(words, k=size // 3 + 1))[:size]
        content = draw.choice([text, text, draw.randbytes(size), text[: size // 2]])
        content += draw.randbytes(size - len(content))
        if draw.random() < 0.1:
            hole = draw.randrange(size + 1) // self.block * self.block
            content = bytes(hole) + content[hole:]
        path = f"{draw.choice(self.folders)}{name}"
        (self.folder / path).write_bytes(content)
        self.paths.append(path)

    def make_many(self) -> None:
        """A folder whose entries take several blocks of metadata."""
        for number in range(self.drawn.randrange(200, 1200)):
            path = self.folder / "many" / f"entry-{number:04}-{self.drawn.randrange(10**12)}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"%d" % number if number % 7 else self.drawn.randbytes(900))
            if self.drawn.random() < 0.01:
                self.paths.append(f"many/{path.name}")

    def make_link(self, name: str) -> None:
        at = self.drawn.choice(self.folders)
        if self.drawn.random() < 0.5:
            target = self.drawn.choice(self.paths)
            path = f"{at}{name}"
        else:
            target = self.drawn.choice(self.folders) or "."
            path = f"{at}{name}"
        up = "../" * at.count("/")
        if self.drawn.random() < 0.2 and not target.endswith(("/", ".")):
            os.link(self.folder / target, self.folder / path)
        else:
            (self.folder / path).symlink_to(f"{up}{target}".rstrip("/"))
        self.paths.append(path)

    def list(self) -> list[str]:
        """Files that are read: some through a folder's link, some again, some that are missing."""
        taken = self.drawn.choices(self.paths, k=self.drawn.randrange(1, 40))
        taken += [f"{self.drawn.choice(self.folders)}missing{number}" for number in range(2)]
        self.drawn.shuffle(taken)
        return taken


def _boot(on: str, words: Sequence[str], here: Path) -> dict[str, Any]:
    ran = subprocess.run(
        [FLASHBED, "boot", "--on", on, "--format", "json", *words],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=here, timeout=600,
    )  # fmt: skip
    if not ran.stdout:
        raise RuntimeError(ran.stderr.decode("utf-8", "replace"))
    (boot,) = json.loads(ran.stdout)["boots"]
    if boot["failed"]:
        raise RuntimeError(boot["failed"])
    found: dict[str, Any] = boot
    return found


def _parts(boot: dict[str, Any]) -> dict[str, Operations]:
    return {part["name"]: tuple(part[kind] for kind in KINDS) for part in boot["parts"]}


def _files(boot: dict[str, Any]) -> list[tuple[int | str, int]]:
    return [(each["failed"] or each["bytes"], each.get("reads", 0)) for each in boot["files"]]


def booted(seed: int, *, fastmap: bool = False, on_mtd: bool = False) -> Booted:
    """Boots the root of a seed on user-mode Linux and in the simulator."""
    drawn = random.Random(seed)
    layouts, chips = (ON_MTD, OF_MTD) if on_mtd else (LAYOUTS, CHIPS)
    layout, chip = layouts[seed % len(layouts)], chips[seed // 2 % 2]
    kib, compressor = drawn.choice(BLOCK_KIB), drawn.choice(COMPRESSORS)
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        root = _Root(drawn, here / "root", kib << 10)
        (here / "list").write_text("".join(f"{path}\n" for path in root.list()))
        settings = settings_of(layout, chip=None)
        settings += [f"layout.block_kib={kib}", f"layout.compressor={compressor}", f"chip={chip}"]
        words = [word for setting in settings for word in ("--set", setting)]
        words += ["--image", "root", "--read", "list"]
        blocks = drawn.choice(PARTITION_BLOCKS)
        if fastmap:
            words += ["--set", "layout.fastmap=1", "--set", f"partition.blocks={blocks}"]
        kernel, simulated = (_boot(on, words, here) for on in ("uml", "sim-chip"))
    return Booted(
        seed=seed,
        setting=f"{layout} {chip} {kib} KiB {compressor}" + (f" {blocks} PEBs" if fastmap else ""),
        block_kib=kib,
        kernel=_parts(kernel),
        simulated=_parts(simulated),
        kernel_files=_files(kernel),
        simulated_files=_files(simulated),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Compares what the command line names."""
    parser = argparse.ArgumentParser(prog="booted", description=__doc__)
    parser.add_argument("--seeds", default="0:64", help="FROM:TO")
    parser.add_argument("--fastmap", action="store_true")
    parser.add_argument("--on-mtd", action="store_true", help="partitions of MTD, without UBI")
    asked = parser.parse_args(words)
    first, end = map(int, asked.seeds.split(":"))
    rows = []
    for seed in range(first, end):
        row = booted(seed, fastmap=asked.fastmap, on_mtd=asked.on_mtd)
        rows.append(row)
        print(f"{seed:4} {row.setting:50} {'the same' if row.equal else ''}", flush=True)
        for name, kernel in row.kernel.items():
            if row.simulated.get(name) != kernel:
                print(f"       {name}: {kernel} {row.simulated.get(name)}", flush=True)
        for number, pair in enumerate(zip(row.kernel_files, row.simulated_files, strict=True)):
            if pair[0] != pair[1]:
                print(f"       file {number}: {pair[0]} {pair[1]}", flush=True)
    equal = sum(row.equal for row in rows)
    print(f"{equal} of {len(rows)} the same")
    for kind in dict.fromkeys(name.split()[0] for row in rows for name in row.kernel):
        pairs = [
            (kernel[0], row.simulated[name][0])
            for row in rows for name, kernel in row.kernel.items() if name.split()[0] == kind
        ]  # fmt: skip
        off = [abs(simulated - kernel) / max(kernel, 1) for kernel, simulated in pairs]
        same = sum(kernel == simulated for kernel, simulated in pairs)
        print(f"  {kind}: {same} of {len(pairs)} equal, mean {sum(off) / len(off):.3%},", end="")
        print(f" worst {max(off):.2%}")


if __name__ == "__main__":
    main()
