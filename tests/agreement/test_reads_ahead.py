"""Chips that load a page while another is moved: simulator and Linux 6.12 do the same to them.

Sequential cache reads of raw NAND, and continuous reads of SPI-NAND.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.base.paths import cache_folder
from flashbed.bench.validation import compare, kinds, programs, summary
from flashbed.stack.conditions import BitFlips, Faults
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.uml.uml_kernel import cached_kernel

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(600)]

KERNEL = "6.12"
SPI_TIMES = {"read_array_ns": 60_000, "program_array_ns": 300_000, "erase_array_ns": 2_000_000}
CHIPS: dict[str, dict[str, Any]] = {
    "raw": {"part": "MT29F4G08ABADA", "bus_read_ns": 52_800, "bus_program_ns": 52_800},
    "fast-raw": {"part": "MT29F4G08ABADA", "bus_read_ns": 10_560, "bus_program_ns": 10_560},
    "spi": {"part": "MX35UF2GE4AD", **SPI_TIMES},
}
"""`fast-raw`: the transfer of a page is shorter than tR, so that the chip waits for its array."""
COUNTS = ("flash_reads", "flash_programs", "flash_erases", "flash_time")
RAW = """flashbed-ops 1
open 0 partition rw
mark
read 0 0 131072
read 0 0 4096
read 0 1000 4096
read 0 1000 7000
read 0 2000 100
read 0 129024 4096
read 0 122880 16384
read 0 126976 12288
read 0 100000 200000
read 0 5 1
"""
"""Whole blocks, pages, parts of them, and reads that cross a block's border."""
FLIPPED = "flashbed-ops 1\nopen 0 partition rw\nmark\n" + "".join(
    f"read 0 {at * 10_000} {length}\n" for at in range(20) for length in (2_048, 9_000, 30_000)
)


@pytest.fixture(autouse=True)
def _built() -> None:
    if cached_kernel(cache_folder(), KERNEL) is None:
        pytest.skip("Linux 6.12 for user mode is not built: flashbed prepare --on uml-6.12")


def board(chip: str) -> Board:
    return load_board("emulated").changed({"chip": CHIPS[chip]})


def measured(target: str, suite: list[Program]) -> list[Batch]:
    batches = list(load_target(target).run(suite, RunOptions(trace_flash=True)))
    assert [failure for batch in batches for failure in batch.failures] == []
    return batches


@pytest.mark.parametrize("chip", CHIPS)
def test_file_systems_read_the_same_in_the_same_time_of_the_chip(chip: str) -> None:
    of_kind = kinds("reads", board(chip))
    suite = [
        program
        for program in programs("reads", board(chip), load_kernel(KERNEL))
        if program.stack.fs in ("jffs2", "ubifs") and not of_kind[program.case_id].endswith("full")
    ]
    real = pl.concat([batch.cases for batch in measured("uml", suite)], how="diagonal")
    alike = [program.in_user_mode for program in suite]
    simulated = pl.concat([batch.cases for batch in measured("sim", alike)], how="diagonal")
    told = summary(compare(simulated, real))
    assert len(suite) > 100
    for name in COUNTS:
        assert told[name]["exact_share"] == 1, name


def raw(chip: str, body: str, **others: Any) -> Program:
    stack = Stack(
        board=board(chip), kernel=load_kernel(KERNEL), fs="mtd", read_ahead_kib=0, **others
    )
    return Program(case_id="raw", stack=stack, prepare="flashbed-ops 1\nprepared\n", body=body)


@pytest.mark.parametrize("chip", CHIPS)
def test_reads_of_the_partition_are_equal_operation_by_operation(chip: str) -> None:
    one = raw(chip, RAW)
    (simulated,), (real,) = measured("sim", [one.in_user_mode]), measured("uml", [one])
    columns = ["seq", "op", "result", "flash_time_ns"]
    assert simulated.requests.select(columns).rows() == real.requests.select(columns).rows()
    places = [pl.col("kind", "block", "page", "offset_bytes", "length_bytes")]
    assert simulated.flash.select(places).rows() == real.flash.select(places).rows()


@pytest.mark.parametrize("bits", [1, 5, 8, 12])
def test_corrected_and_lost_bits_of_a_continuous_read_are_told_alike(bits: int) -> None:
    """Each page of a continuous read counts the most corrected bits of any."""
    one = raw("spi", FLIPPED, faults=Faults(bit_flips=BitFlips(rate=0.2, bits=bits)))
    (simulated,), (real,) = measured("sim", [one.in_user_mode]), measured("uml", [one])
    told = ["flash_reads", "flash_time_ns", "ecc_corrected", "ecc_failed"]
    assert simulated.cases.select(told).rows() == real.cases.select(told).rows()
    columns = ["seq", "result"]
    assert simulated.requests.select(columns).rows() == real.requests.select(columns).rows()
    assert real.cases["ecc_failed" if bits > 8 else "ecc_corrected"].item() > 0
