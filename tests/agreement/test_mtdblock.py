"""A partition as a disk, on mtdblock: the simulator's flash operations are the kernel's."""

from __future__ import annotations

import random
from collections.abc import Iterator

import polars as pl
import pytest

from flashbed.program.operations import HEADER
from flashbed.stack.conditions import NONE, BitFlips, Faults
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Program, RunOptions

pytestmark = [pytest.mark.extension, pytest.mark.timeout(300)]

SECTOR = 512
PREPARE = f"{HEADER}\nopen 0 partition rw,direct\nwrite 0 65536 262144 1 0\nclose 0\nprepared\n"
ANSWERS = """open 0 partition rw,direct
open 1 partition ro,direct
open 2 partition wo,direct,sync
open 3 partition rw,direct,append,trunc
mark
write 0 0 512 1 0
read 0 0 4096
read 1 512 1024
read 2 0 512
write 1 0 512 1 0
read 0 100 512
read 0 512 100
write 0 512 1000 1 0
write 0 {last} 4096 1 0
write 0 {size} 512 1 0
read 0 {last} 4096
read 0 {last} 700
read 0 {size} 512
write 3 1024 1024 1 0
write 2 0 1024 1 0
write 2 131072 130560 1 0
erase 0 0 {block}
erase 1 0 {block}
truncate 0 0
truncate 1 0
fadvise 0 0 0 random
fadvise 0 0 0 dontneed
write 0 4096 1048576 1 0
read 1 512 1048576
write 0 1536 262144 1 0
sync
drop_caches
read 1 0 512
fsync 1
fdatasync 0
write 0 0 512 1 0
close 0
close 3
close 2
close 1
open 0 partition ro,direct
read 0 0 {block}
"""


def measured(
    target: str, board: str, bodies: list[str], faults: Faults, prepare: str, fs: str = "mtdblock"
) -> list[Batch]:
    stack = Stack(
        board=load_board(board),
        kernel=load_kernel("6.1"),
        fs=fs.partition(",")[0],
        mount_options=fs.partition(",")[2],
        read_ahead_kib=0,
        faults=faults,
    )
    programs = [
        Program(case_id=f"{at}", stack=stack, prepare=prepare, body=f"{HEADER}\n{body}")
        for at, body in enumerate(bodies)
    ]
    batches = list(load_target(target).run(programs, RunOptions(trace_flash=True)))
    assert not [failure for batch in batches for failure in batch.failures]
    return batches


def assert_equal(
    board: str,
    bodies: list[str],
    faults: Faults = NONE,
    prepare: str = PREPARE,
    target: str = "uml",
    fs: str = "mtdblock",
) -> pl.DataFrame:
    """The same answers, chip times and flash operations; returns the operations."""
    simulated, real = (measured(on, board, bodies, faults, prepare, fs) for on in ("sim", target))
    columns = ["case_id", "seq", "op", "result", "flash_time_ns"]
    requests, truth = (
        pl.concat([batch.requests.select(columns) for batch in batches]).sort("case_id", "seq")
        for batches in (simulated, real)
    )
    for ours, theirs in zip(requests.rows(), truth.rows(), strict=True):
        assert ours == theirs
    worker = pl.col("task").str.contains("kworker|background|flashbed_ftl").alias("worker")
    places = [pl.col("case_id", "kind", "block", "page", "offset_bytes", "length_bytes"), worker]
    flash, there = (
        pl.concat([batch.flash.select(places) for batch in batches])
        for batches in (simulated, real)
    )
    assert flash.rows() == there.rows()
    return flash


def drawn(seed: int, size: int, block: int, *, fails: bool = False) -> Iterator[str]:
    """A program that writes, reads, syncs and closes, mostly in a few blocks.

    One of a chip that `fails` has no synchronous writes, and stays within `size`.
    """
    draw = random.Random(seed)
    flags = ["direct", "direct", *([] if fails else ["direct,dsync", "direct,sync"])]
    open_slots: dict[int, str] = {}
    yield "mark"
    for _ in range(120):
        slot = draw.randrange(3)
        if slot not in open_slots:
            open_slots[slot] = draw.choice(flags)
            yield f"open {slot} partition rw,{open_slots[slot]}"
        word = draw.choices(
            ["write", "read", "fsync", "fdatasync", "close", "sync", "drop_caches"],
            [50, 30, 3, 3, 8, 1, 1],
        )[0]
        if word in ("write", "read"):
            most = 255 if word == "write" and "sync" in open_slots[slot] else 2048
            sectors = min(most, draw.choice([1, 2, 3, 8, 9, 64, 255, 300, 2048]))
            offset = draw.choice([draw.randrange(4 * block), draw.randrange(size)])
            offset = offset // SECTOR * SECTOR
            sectors = min(sectors, (size - offset) // SECTOR) if fails else sectors
            seed_of = f" {draw.randrange(9)} 0" if word == "write" else ""
            yield f"{word} {slot} {offset} {sectors * SECTOR}{seed_of}"
        elif word in ("sync", "drop_caches"):
            yield word
        else:
            yield f"{word} {slot}"
        if word == "close":
            del open_slots[slot]


def sizes(board: str) -> tuple[int, int]:
    chip = load_board(board).chip
    block = chip.page_bytes * chip.pages_per_block
    return load_board(board).partition.blocks * block, block


@pytest.mark.uml
@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_a_disk_answers_as_the_kernels(board: str) -> None:
    size, block = sizes(board)
    body = ANSWERS.format(size=size, last=size - SECTOR, block=block)
    flash = assert_equal(board, [body])
    assert set(flash["kind"]) == {"read", "program", "erase"}
    assert not flash["worker"].all(), "the last close writes back within the call"


@pytest.mark.uml
@pytest.mark.parametrize("board", ["emulated", "emulated-4k"])
def test_drawn_programs_have_the_kernels_flash_operations(board: str) -> None:
    size, block = sizes(board)
    assert_equal(board, ["\n".join(drawn(seed, size, block)) for seed in range(12)])


@pytest.mark.uml
@pytest.mark.parametrize(
    "faults",
    [
        Faults(bad_blocks=(1, 3)),
        Faults(program_fail=0.003),
        Faults(erase_fail=(2, 5)),
        Faults(bit_flips=BitFlips(rate=0.2)),
        Faults(bit_flips=BitFlips(rate=0.02, bits=2)),
    ],
    ids=str,
)
def test_a_disk_fails_as_the_kernels(faults: Faults) -> None:
    """A write into a bad block is lost when its block is written back: mtdblock knows none.

    All that is read was written before: of a page of ones, a program that fails changes nothing.
    """
    _, block = sizes("emulated")
    bodies = ["\n".join(drawn(seed, 8 * block, block, fails=True)) for seed in range(50, 53)]
    first = 4 if faults.bad_blocks else 0
    prepare = PREPARE.replace("65536 262144", f"{first * block} {(8 - first) * block}")
    assert_equal("emulated", bodies, faults, prepare)


@pytest.mark.emulator
@pytest.mark.long
def test_the_emulated_board_has_the_same_flash_operations() -> None:
    size, block = sizes("emulated")
    short = ["\n".join([*drawn(seed, size, block)][:40]) for seed in range(2)]
    assert_equal("emulated", short, target="emulator")
