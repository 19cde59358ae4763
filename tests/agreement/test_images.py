"""`image show` and a real kernel on the same flash: images of the tools, and dumps of a chip.

In a guest the image goes onto the chip and is mounted: the kernel compares the files with those
that the tool was given, and says what `df` calls available. Then it writes, unmounts, and the chip
is dumped, mounted again and asked once more; the dump is read as one of a device in the field.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flashbed.stack.flash_image import content, read_image
from tests.support.chip_images import chip_of, dump_of
from tests.support.image_files import MadeImage, make
from tests.support.nand import DEBUGFS, NONE, Boot, boot, load, made

__all__ = ["boot", "made"]

pytestmark = [pytest.mark.uml, pytest.mark.sampled, pytest.mark.timeout(1_800)]

SEEDS, ALL_SEEDS = 3, 33
"""Images of a kind and a geometry; 198 of them with --long. After seed 33 of JFFS2 with 512-byte
pages 28 blocks are dirty, of which the kernel's thread collects some before df is asked."""

GEOMETRIES = ((512, 16, 16), (2048, 64, 128), (4096, 256, 256))
"""Bytes of a page and its OOB, KiB of a block."""
BLOCKS = 512
WEAR = "/sys/kernel/debug/ubi/ubi0/detailed_erase_block_info"


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
    """The same with OOB."""
    found: Path
    """The files of the dump, as the kernel read them."""
    last: bytes
    """A dump of UBI while it was mounted again."""
    wear: list[int]
    """Erase counters, as UBI said them then."""


def _script(kind: str, place: int, seed: int) -> list[str]:
    """Mounts an image, compares, writes, and mounts what is there again."""
    fs = "jffs2" if kind == "jffs2" else "ubifs"
    draw = random.Random(seed)
    lines = [f"copy /host/chip{place} {DEBUGFS}/chip", f"mount {fs}"]
    lines += ["space /mnt", f"comparetree /host/tree{place} /mnt"]
    names: list[str] = []
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
    lines += ["unmount", f"copy {DEBUGFS}/chip /host/after{place}", f"mount {fs}"]
    # JFFS2's thread first checks all nodes, and sees only then which are obsolete.
    lines += ["space /mnt"] if fs == "ubifs" else ["rest 9000000", "space /mnt"]
    lines.append(f"copytree /mnt /host/found{place}")
    if fs == "ubifs":
        # UBI's thread has erased by then what it had to.
        lines += ["rest 9000000", f"copy {DEBUGFS}/chip /host/last{place}"]
        lines.append(f"copy {WEAR} /host/wear{place}")
    lines.append("unmount")
    return lines


def trials(
    kind: str, geometry: tuple[int, int, int], seeds: range, boot: Boot, folder: Path
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
        wear: list[int] = []
        last = b""
        if kind == "ubi":
            rows = (line.split() for line in (host / f"wear{place}").read_text().splitlines())
            wear = [int(row[1]) for row in rows if row and row[0].isdecimal() and row[1] != "-1"]
            last = dump_of((host / f"last{place}").read_bytes())
        first_free, again_free = free
        found.append(
            Trial(
                one, one.path.read_bytes(), first_free, again_free, dump_of(chip),
                dump_of(chip, with_oob=True), host / f"found{place}", last, wear,
            )
        )  # fmt: skip
    return found


def spare_of(dump: bytes, page: int, oob: int) -> bytes:
    """All OOB of a dump."""
    both = page + oob
    return b"".join(dump[at + page : at + both] for at in range(0, len(dump), both))


def assert_files_are_the_kernels(image: Any, found: Path) -> None:
    """Names, bytes and targets, against what the kernel read."""
    files = {os.fsdecode(file.path): file for file in image.files(0)}
    paths = {str(path.relative_to(found)): path for path in found.rglob("*")}
    assert set(files) == set(paths)
    for name, path in paths.items():
        if path.is_symlink():
            assert os.fsdecode(files[name].target) == str(path.readlink())
        elif path.is_file():
            assert content(image, 0, files[name]) == path.read_bytes(), name


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: str(geometry[0]))
@pytest.mark.parametrize("kind", ["ubi", "jffs2"])
def test_images_and_dumps_are_what_the_kernel_finds(
    kind: str,
    geometry: tuple[int, int, int],
    boot: Boot,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    """What df says, to the byte, each file's bytes, and the erase counters."""
    seeds = range(ALL_SEEDS if pytestconfig.getoption("--long") else SEEDS)
    page, oob, kib = geometry
    block_bytes = None if kind == "ubi" else kib << 10
    for trial in trials(kind, geometry, seeds, boot, tmp_path):
        whole = trial.data.ljust(BLOCKS * (kib << 10), b"\xff")
        reads = [(whole, trial.first_free), (trial.dump, trial.free),
                 (trial.dump_with_oob, trial.free)]  # fmt: skip
        for number, (data, free) in enumerate(reads):
            file = tmp_path / "read"
            file.write_bytes(data)
            # An unwritten chip without ECC has nothing in its OOB: then it must be said.
            silent = number == 2 and not spare_of(data, page, oob).strip(b"\xff")
            pages = {"page_bytes": page, "oob_bytes": oob} if silent else {}
            image = read_image(file, block_bytes=block_bytes, **pages)
            where: Any = image.parts[0]["content"]
            says = where["space"] if kind == "ubi" else where
            context = (kind, geometry, number, trial.made.options)
            assert (image.problem_count, image.problems) == (0, []), context
            resized = image.ubi is not None and image.ubi["volumes"][0]["autoresize"]
            if not resized:
                assert says["available_bytes"] == free, context
            assert image.pages == ((page, oob) if number == 2 else None), context
            if number == 0:
                continue
            assert_files_are_the_kernels(image, trial.found)
        if kind == "ubi":
            (tmp_path / "read").write_bytes(trial.last)
            ubi = read_image(tmp_path / "read").ubi
            assert ubi is not None
            erases = ubi["erases"]
            assert erases is not None
            assert (erases["min"], erases["max"]) == (min(trial.wear), max(trial.wear))
            mean_milli = sum(trial.wear) * 1000 // len(trial.wear)
            assert erases["mean_milli"] == mean_milli
