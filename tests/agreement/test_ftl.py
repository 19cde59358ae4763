"""A flash translation layer: the simulator's flash operations are those of the kernel's module."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from flashbed.program.operations import HEADER
from flashbed.stack.profiles import load_board
from tests.agreement.test_mtdblock import SECTOR, assert_equal, drawn

pytestmark = [pytest.mark.extension, pytest.mark.uml, pytest.mark.timeout(300)]

LAYERS = ["ftl", "ftl,spare_permille=300", "ftl,spare_permille=300,map_pages=2"]


def disk_bytes(board: str) -> int:
    """Of the smallest of these disks."""
    chip, partition = load_board(board).chip, load_board(board).partition
    pages = (partition.blocks - 3) * chip.pages_per_block * 700 // 1000
    return pages * chip.page_bytes


def prepared(size: int) -> str:
    writes = "".join(f"write 0 {at} 65536 1 0\n" for at in range(0, size - 65536, 65536))
    return f"{HEADER}\nopen 0 partition rw,direct\n{writes}close 0\nprepared\n"


def overwrites(seed: int, size: int) -> Iterator[str]:
    """Enough of them that blocks are collected, and attached again now and then."""
    draw = random.Random(seed)
    yield "open 0 partition rw,direct"
    yield "mark"
    for number in range(3000):
        sectors = draw.choice([1, 2, 4, 8, 8, 16, 100])
        at = draw.randrange(size // SECTOR - sectors) * SECTOR
        if draw.random() < 0.3:
            yield f"read 0 {at} {sectors * SECTOR}"
        else:
            yield f"write 0 {at} {sectors * SECTOR} {number} 0"
        if number % 1000 == 999:
            yield "close 0"
            yield "remount"
            yield "open 0 partition rw,direct"


@pytest.mark.parametrize("fs", LAYERS)
@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_drawn_programs_have_the_modules_flash_operations(board: str, fs: str) -> None:
    chip, size = load_board(board).chip, disk_bytes(board)
    block = chip.page_bytes * chip.pages_per_block
    assert_equal(board, ["\n".join(drawn(seed, size, block)) for seed in range(4)], fs=fs)


@pytest.mark.parametrize("fs", LAYERS)
def test_collections_and_scans_have_the_modules_flash_operations(fs: str) -> None:
    size = disk_bytes("emulated-46-lebs")
    flash = assert_equal(
        "emulated-46-lebs", ["\n".join(overwrites(1, size))], prepare=prepared(size), fs=fs
    )
    assert flash.filter(kind="erase").height > 100
