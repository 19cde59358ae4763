"""SPI-NAND: Linux' own driver on user-mode Linux, and its twin in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flashbed.bench.validation import compare, kinds, programs, summary
from flashbed.stack.profiles import Board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program
from flashbed.targets.uml.uml_target import UmlTarget
from tests.support.spi import w25n01gv

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

FILE_SYSTEMS = ("jffs2", "ubifs", "yaffs2")
"""YAFFS2 has its tags in the pages of this part."""
PREPARE = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 8192 1 0\nfsync 0\nclose 0\nprepared\n"
LARGER = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 200000 1 50\nfsync 0\nclose 0\nprepared\n"
READ_AND_WRITE = (
    "flashbed-ops 1\ndrop_caches\nopen 0 a rw\nmark\n"
    "read 0 0 200000\nwrite 0 0 50000 4 50\nfsync 0\n"
)
READ = "flashbed-ops 1\ndrop_caches\nopen 0 a ro\nmark\nread 0 0 8192\n"


def measured(target: str, suite: list[Program]) -> pl.DataFrame:
    batches = list(load_target(target).run(suite))
    assert [failure for batch in batches for failure in batch.failures] == []
    return pl.concat([batch.cases for batch in batches], how="diagonal")


def on_both(suite: list[Program]) -> dict[str, Any]:
    """The simulator without software, as user-mode Linux is, against it."""
    alike = [program.in_user_mode for program in suite]
    return summary(compare(measured("sim", alike), measured("uml", suite)))


def chosen(suite: str, kernel: str = "6.1") -> list[Program]:
    """Its cases without those on a full partition, which take long."""
    board = w25n01gv()
    kind_of = kinds(suite, board)
    every = programs(suite, board, load_kernel(kernel))
    return [
        program
        for program in every
        if program.stack.fs in FILE_SYSTEMS and not kind_of[program.case_id].endswith("full")
    ]


@pytest.mark.uml
def test_reads_are_exact_to_the_nanosecond_of_the_chip() -> None:
    reads = chosen("reads")
    assert len(reads) == 234
    told = on_both(reads)
    for name in ("flash_reads", "flash_programs", "flash_erases", "flash_time"):
        assert told[name]["exact_share"] == 1, name


@pytest.mark.uml
def test_what_writes_do_to_the_chip_is_exact() -> None:
    writes = chosen("writes")
    assert len(writes) == 174
    told = on_both(writes)
    for name in ("flash_reads", "flash_programs", "flash_erases"):
        assert told[name]["exact_share"] == 1, name
    assert told["flash_time"]["exact_share"] > 0.95


@pytest.mark.emulator
def test_the_emulated_board_does_the_same_to_the_chip_in_nearly_the_same_time() -> None:
    """Debian builds its kernel without the driver, which is built from the same sources then."""
    board, kernel = w25n01gv(), load_kernel("6.1")
    cases = [
        Program(
            case_id=fs,
            stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=128),
            prepare=LARGER,
            body=READ_AND_WRITE,
        )
        for fs in FILE_SYSTEMS
    ]
    simulated, real = (measured(target, cases).sort("case_id") for target in ("sim", "emulator"))
    exact = ["case_id", "flash_reads", "flash_programs", "flash_erases", "flash_time_ns"]
    assert simulated.select(exact).equals(real.select(exact))
    off = (simulated["time_ns"] / real["time_ns"] - 1).abs()
    assert (off < 0.01).all(), off


@pytest.mark.uml
def test_a_partition_larger_than_the_boards_memory_fills() -> None:
    """The cells are in the guest's memory: one of 64 MiB panicked as 128 MiB of chip filled."""
    whole = w25n01gv()
    facts = whole.board.model_copy(update={"ram_mib": 64})
    partition = whole.partition.model_copy(update={"first_block": 0, "blocks": 1024})
    board = whole.model_copy(update={"board": facts, "partition": partition})
    board._path = whole.path
    rows = "".join(f"write 0 {at << 20} 1048576 1 0\n" for at in range(80))
    filled = f"flashbed-ops 1\nopen 0 a rw,create\n{rows}fsync 0\nclose 0\nprepared\n"
    one = Program(
        case_id="one",
        stack=Stack(board=board, kernel=load_kernel("6.1"), fs="ubifs", read_ahead_kib=0),
        prepare=filled,
        body=READ,
    )
    (batch,) = UmlTarget().run([one])
    assert batch.failures == ()
    assert batch.cases["flash_reads"].item() > 0


def why_not(target: UmlTarget, board: Board, fs: str) -> str:
    stack = Stack(board=board, kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0)
    one = Program(case_id="one", stack=stack, prepare=PREPARE, body=READ)
    (batch,) = target.run([one])
    (failure,) = batch.failures
    assert "\n" not in failure.message
    return failure.message


@pytest.mark.uml
def test_a_chip_that_the_kernel_does_not_know_is_refused_by_its_driver(tmp_path: Path) -> None:
    why = why_not(UmlTarget(work_dir=tmp_path), w25n01gv(id=(0xEF, 0x99)), "ubifs")
    assert "does not know the chip ef 99" in why


@pytest.mark.uml
def test_a_chip_that_the_kernel_takes_for_another_is_refused(tmp_path: Path) -> None:
    """Linux has the W25N02KV, ef aa 22, from 6.2 on. Before, it compares two bytes."""
    other = w25n01gv(id=(0xEF, 0xAA, 0x22))
    larger = other.model_copy(update={"chip": other.chip.model_copy(update={"oob_bytes": 128})})
    larger._path = other.path
    why = why_not(UmlTarget(work_dir=tmp_path), larger, "ubifs")
    assert "takes spi_id for another chip: pages of 2048 + 64 bytes" in why


@pytest.mark.uml
def test_an_operation_that_the_driver_would_not_choose_is_refused(tmp_path: Path) -> None:
    """With four lines each way Linux reads by 0xeb, not by 0x6b."""
    why = why_not(UmlTarget(work_dir=tmp_path), w25n01gv(read_opcode=0x6B), "ubifs")
    assert "with these lines Linux uses 0xeb and 0x34" in why
