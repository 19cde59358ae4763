"""Chips of the catalogue, of each maker, attached by Linux' own SPI-NAND driver."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

PARTS = (
    "W25N01GV", "W25M02GV", "MT29F1G01ABAFD", "MT29F4G01ABAFD", "GD5F1GQ4xA", "GD5F1GQ5UExxG",
    "MX35LF1GE4AB", "MX35LF2GE4AB", "TC58CVG0S3HRAIJ", "XT26G01A",
)  # fmt: skip
"""Of those that Linux 6.1 knows; W25M02GV has two dies, MX35LF2GE4AB two planes."""
TIMES = {"read_array_ns": 60_000, "program_array_ns": 300_000, "erase_array_ns": 2_000_000}
PREPARE = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 200000 1 50\nfsync 0\nclose 0\nprepared\n"
BODY = (
    "flashbed-ops 1\ndrop_caches\nopen 0 a rw\nmark\n"
    "read 0 0 200000\nwrite 0 0 50000 4 50\nfsync 0\n"
)


@pytest.mark.uml
def test_linux_attaches_a_part_of_every_maker_and_the_simulator_does_the_same_to_it() -> None:
    kernel = load_kernel("6.1")
    programs = [
        Program(
            case_id=part,
            stack=Stack(
                board=load_board("emulated").changed({"chip": {"part": part, **TIMES}}),
                kernel=kernel, fs="ubifs", read_ahead_kib=128,
            ),
            prepare=PREPARE,
            body=BODY,
        )
        for part in PARTS
    ]  # fmt: skip
    alike = [program.in_user_mode for program in programs]
    found = {}
    for target, suite in (("uml", programs), ("sim", alike)):
        batches = list(load_target(target).run(suite))
        assert [failure for batch in batches for failure in batch.failures] == []
        cases = pl.concat([batch.cases for batch in batches], how="diagonal").sort("case_id")
        exact = ["case_id", "flash_reads", "flash_programs", "flash_erases", "flash_time_ns"]
        found[target] = cases.select(exact)
    assert found["uml"].height == len(PARTS)
    assert found["sim"].equals(found["uml"])
