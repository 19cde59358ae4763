"""Chips of the catalogue, of each maker, attached by Linux' own SPI-NAND driver."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.base.paths import cache_folder
from flashbed.stack.conditions import BitFlips, Faults
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program
from flashbed.targets.uml.uml_kernel import cached_kernel

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

PARTS = (
    "W25N01GV", "W25M02GV", "MT29F1G01ABAFD", "MT29F4G01ABAFD", "GD5F1GQ4xA", "GD5F1GQ5UExxG",
    "MX35LF1GE4AB", "MX35LF2GE4AB", "TC58CVG0S3HRAIJ", "XT26G01A",
)  # fmt: skip
"""Of those that Linux 6.1 knows; W25M02GV has two dies, MX35LF2GE4AB two planes."""
TIMES = {"read_array_ns": 60_000, "program_array_ns": 300_000, "erase_array_ns": 2_000_000}
PREPARE = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 200000 1 0\nfsync 0\nclose 0\nprepared\n"
BODY = (
    "flashbed-ops 1\ndrop_caches\nopen 0 a rw\nmark\n"
    "read 0 0 200000\nwrite 0 0 50000 4 0\nfsync 0\n"
)


TELL = {
    "core": "W25N01GV", "tx58cxgxsxraix": "TC58CVG0S3HRAIJ", "macronix": "MX35LF1GE4AB",
    "micron_8": "MT29F1G01ABAFD", "gd5fxgq4xa": "GD5F1GQ4xA", "gd5fxgq4uexxg": "GD5F1GQ4UExxG",
    "gd5fxgq5xexxg": "GD5F1GQ5UExxG", "xt26g0xa": "XT26G01A",
}  # fmt: skip
"""A part of each way to tell corrected bits, of those that Linux 6.1 knows."""
CHIP = ("case_id", "flash_reads", "flash_programs", "flash_erases", "flash_time_ns")


def program(part: str, case_id: str, **others: Any) -> Program:
    board = load_board("emulated").changed({"chip": {"part": part, **TIMES}})
    stack = Stack(board=board, kernel=load_kernel("6.1"), fs="ubifs", read_ahead_kib=128, **others)
    return Program(case_id=case_id, stack=stack, prepare=PREPARE, body=BODY)


def measured(target: str, suite: list[Program], columns: tuple[str, ...]) -> pl.DataFrame:
    batches = list(load_target(target).run(suite))
    assert [failure for batch in batches for failure in batch.failures] == []
    cases = pl.concat([batch.cases for batch in batches], how="diagonal")
    return cases.sort("case_id").select(columns)


@pytest.mark.uml
def test_linux_attaches_a_part_of_every_maker_and_the_simulator_does_the_same_to_it() -> None:
    programs = [program(part, part) for part in PARTS]
    found = measured("uml", programs, CHIP)
    assert found.height == len(PARTS)
    assert measured("sim", [one.in_user_mode for one in programs], CHIP).equals(found)


@pytest.mark.uml
def test_linux_and_the_simulator_hear_the_same_of_corrected_bits_by_each_makers_status() -> None:
    """UBI moves a block once Linux hears of three quarters of what ECC corrects."""
    programs = []
    for status, part in TELL.items():
        board = load_board("emulated").changed({"chip": {"part": part, **TIMES}})
        assert board.spi is not None
        assert board.spi.ecc_status == status
        programs += [
            program(part, f"{part}-{bits}", faults=Faults(bit_flips=BitFlips(rate=0.2, bits=bits)))
            for bits in range(1, board.ecc.strength_bits + 1)
        ]
    told = (*CHIP, "ecc_corrected")
    found = measured("uml", programs, told)
    assert measured("sim", [one.in_user_mode for one in programs], told).equals(found)
    assert found["ecc_corrected"].n_unique() > len(TELL)


OCTAL = {
    "x1": ("W35N01JW", {"lines": 4}),
    "1S-8S-8S": ("W35N01JW", {"lines": 8}),
    "1S-8S-8S at 133 MHz": ("W35N01JW", {"lines": 8, "clock_hz": 133_000_000}),
    "8D-8D-8D": ("W35N01JW", {"lines": 8, "dtr": 1}),
    "8D-8D-8D at 120 MHz": ("W35N01JW", {"lines": 8, "dtr": 1, "clock_hz": 120_000_000}),
    "8D-8D-8D, packed": ("W35N02JW", {"lines": 8, "dtr": 1}),
}
"""Octal parts that Linux 7.3 knows, by what it moves their bytes with."""


@pytest.mark.uml
def test_linux_moves_an_octal_parts_bytes_as_the_simulator_says() -> None:
    if cached_kernel(cache_folder(), "7.3") is None:
        pytest.skip("Linux 7.3 for user mode is not built: flashbed prepare --on uml-7.3")
    programs = []
    for name, (part, controller) in OCTAL.items():
        chip = {"part": part, **TIMES}
        board = load_board("emulated").changed({"chip": chip, "controller": controller})
        for fs in ("jffs2", "ubifs"):
            stack = Stack(board=board, kernel=load_kernel("7.3"), fs=fs, read_ahead_kib=128)
            case = f"{fs} {name}"
            programs.append(Program(case_id=case, stack=stack, prepare=PREPARE, body=BODY))
    found = measured("uml", programs, CHIP)
    assert found.height == 2 * len(OCTAL)
    assert measured("sim", [one.in_user_mode for one in programs], CHIP).equals(found)


@pytest.mark.uml
def test_an_older_linux_refuses_an_octal_part_in_the_simulators_words() -> None:
    one = program("W35N01JW", "one")
    said = []
    for target in ("uml", "sim"):
        (batch,) = load_target(target).run([one])
        said += [failure.message for failure in batch.failures]
    assert len(said) == 2
    assert all("Linux' SPI-NAND driver does not know the chip ef dc 21" in why for why in said)
