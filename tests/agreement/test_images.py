"""`image show` and a real kernel on the same flash: images of the tools, and dumps of a chip.

In a guest the image goes onto the chip and is mounted: the kernel compares the files with those
that the tool was given, and says what `df` calls available. Then it writes, unmounts, and the chip
is dumped, mounted again and asked once more; the dump is read as one of a device in the field.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flashbed.api.images import content, read_image
from tests.support.chip_images import chip_of, dump_of
from tests.support.image_files import MadeImage, make
from tests.support.nand import DEBUGFS, NONE, Boot, load

pytestmark = [pytest.mark.uml, pytest.mark.timeout(600)]

GEOMETRIES = ((512, 16, 16), (2048, 64, 128), (4096, 256, 256))
"""Bytes of a page and its OOB, KiB of a block."""
BLOCKS = 512
WEAR = "/sys/kernel/debug/ubi/ubi0/detailed_erase_block_info"
SYSFS = "/sys/class/ubi/ubi0_"
EC = 3


@dataclass(frozen=True)
class Trial:
    """An image on the chip: what the guest said of it."""

    made: MadeImage
    data: bytes
    first_free: int
    """What df said of the image."""
    free: int
    """And of the chip after writes and an unmount."""
    dump: bytes
    dump_with_oob: bytes
    wear: list[int]
    volumes: list[dict[str, str]]


def _script(kind: str, place: int, seed: int) -> list[str]:
    """Mounts an image, compares, writes, and mounts what is there again."""
    fs = "jffs2" if kind == "jffs2" else "ubifs"
    draw = random.Random(seed)
    lines = [f"copy /host/chip{place} {DEBUGFS}/chip", f"mount {fs}"]
    lines += ["space /mnt", f"comparetree /host/tree{place} /mnt"]
    names = []
    for number in range(draw.randrange(12)):
        name = f"/mnt/new{draw.randrange(6)}".removeprefix("/mnt/")
        if name in names and draw.random() < 0.4:
            names.remove(name)
            lines.append(f"remove {name}")
        else:
            names = sorted({*names, name})
            lines.append(f"put {name} {draw.choice((1, 5000, 90_000))} {number}")
        if name in names and draw.random() < 0.3:
            lines.append(f"truncate {name} {draw.randrange(9000)}")
    lines += ["unmount", f"copy {DEBUGFS}/chip /host/after{place}", f"mount {fs}", "space /mnt"]
    if fs == "ubifs":
        lines.append(f"copy {WEAR} /host/wear{place}")
    lines += [f"copytree /mnt /host/found{place}", "unmount"]
    return lines


def trials(
    kind: str, geometry: tuple[int, int, int], seeds: Iterator[int] | range, boot: Boot, folder: Path
) -> list[Trial]:
    """Images of these seeds in one boot."""
    page, oob, kib = geometry
    block = kib << 10
    script = [load(NONE, page_bytes=page, oob_bytes=oob, pages_per_block=block // page,
                   blocks=BLOCKS, partition_blocks=BLOCKS)]  # fmt: skip
    host, starts, made = folder / "host", [], []
    host.mkdir()
    for place, seed in enumerate(seeds):
        one = make(kind, seed, folder / f"{kind}{seed}", (page, kib))
        made.append(one)
        data = one.path.read_bytes()
        (host / f"chip{place}").write_bytes(chip_of(data, page, oob, block, BLOCKS))
        one.trees["v0" if kind == "ubi" else ""].write(host / f"tree{place}")
        starts.append(len(script))
        script += _script(kind, place, seed)
    done = boot(script, memory="512M")
    found = []
    for place, (start, one) in enumerate(zip(starts, made, strict=True)):
        end = starts[place + 1] if place + 1 < len(starts) else len(script)
        results = done.results[start:end]
        free = [int(result.detail.split()[0]) for result in results if result.command == "space"]
        chip = (host / f"after{place}").read_bytes()
        wear = []
        if kind == "ubi":
            rows = (line.split() for line in (host / f"wear{place}").read_text().splitlines())
            wear = [int(row[1]) for row in rows if row and row[0].isdecimal() and row[1] != "-1"]
        found.append(
            Trial(one, one.path.read_bytes(), *free, dump_of(chip), dump_of(chip, with_oob=True),
                  wear, [])
        )  # fmt: skip
    return found
