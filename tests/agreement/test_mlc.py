"""Cells of several bits: what Linux refuses on them, and its SLC mode, on both targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from flashbed.bench.validation import compare, kinds, programs, summary
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Cut, Program, RunOptions

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

TIMES = {"read_array_ns": 100_000, "program_array_ns": 1_600_000, "erase_array_ns": 3_500_000}
ECC = {"ecc_strength_bits": 40, "ecc_step_bytes": 1024}
PREPARE = "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 200000 1 0\nfsync 0\nclose 0\nprepared\n"
BODY = (
    "flashbed-ops 1\ndrop_caches\nopen 0 a rw\nmark\nread 0 0 200000\n"
    "write 0 0 50000 4 0\nfsync 0\n"
)
BLOCKS = 120


def board(part: str = "H27UCG8T2ETR-BC", **chip: Any) -> Board:
    """MLC of 16 KiB pages and 256 a block."""
    changes = {"chip": {"part": part, **TIMES, **chip}, "controller": ECC}
    return load_board("emulated").changed({**changes, "partition": {"blocks": BLOCKS}})


def program(fs: str, kernel: str = "6.1", **chip: Any) -> Program:
    stack = Stack(board=board(**chip), kernel=load_kernel(kernel), fs=fs, read_ahead_kib=128)
    return Program(case_id=fs, stack=stack, prepare=PREPARE, body=BODY)


def measured(target: str, one: Program) -> Batch:
    (batch,) = load_target(target).run([one], RunOptions(trace_flash=True))
    return batch


REFUSED = [("ubifs", 0), ("jffs2", 0), ("jffs2", 1), ("yaffs2", 0), ("yaffs2", 1)]


@pytest.mark.parametrize(("fs", "slc_mode"), REFUSED)
def test_the_simulator_refuses_what_linux_refuses(fs: str, *, slc_mode: int) -> None:
    (failure,) = measured("sim", program(fs, slc_mode=slc_mode)).failures
    words = {
        "ubifs": "ubi: refuse attaching mtd0 - MLC NAND is not supported",
        "jffs2": "jffs2: mount: EINVAL (jffs2_do_fill_super: MLC NAND is not supported)",
        "yaffs2": "yaffs: MTD device is not NAND it's type 8",
    }
    assert failure.message == words[fs]


@pytest.mark.uml
@pytest.mark.parametrize(("fs", "slc_mode"), REFUSED)
def test_linux_refuses_them(fs: str, *, slc_mode: int) -> None:
    (failure,) = measured("uml", program(fs, slc_mode=slc_mode)).failures
    assert "EINVAL" in failure.message


def test_older_kernels_mount_what_later_ones_refuse() -> None:
    assert measured("sim", program("ubifs", "4.0")).failures == ()
    assert measured("sim", program("jffs2", "3.12")).failures == ()
    (failure,) = measured("sim", program("ubifs", "5.4", slc_mode=1)).failures
    assert failure.message == "chip.slc_mode: Linux 5.4 has no such partitions (5.8 has)"


def test_power_cuts_are_refused_by_name() -> None:
    one = replace(program("ubifs", slc_mode=1), cuts=(Cut(change=1, seed=1),))
    (failure,) = measured("sim", one).failures
    assert failure.not_modelled == "a power cut on cells of several bits"


def test_tlc_has_no_slc_mode_because_linux_knows_no_pairs_of_it() -> None:
    with pytest.raises(Exception, match="the kernel needs to know which pages are pairs"):
        board("TLC-2012", slc_mode=1)


@pytest.mark.uml
def test_ubifs_in_slc_mode_does_the_same_to_the_same_pages_in_the_same_time() -> None:
    one = program("ubifs", slc_mode=1)
    simulated, real = measured("sim", one.in_user_mode), measured("uml", one)
    counts = ["flash_reads", "flash_programs", "flash_erases", "flash_time_ns"]
    assert simulated.cases.select(counts).rows() == real.cases.select(counts).rows()
    places = [pl.col("kind", "block", "page", "offset_bytes", "length_bytes")]
    assert simulated.flash.select(places).rows() == real.flash.select(places).rows()


@pytest.mark.uml
def test_the_reads_suite_in_slc_mode_is_exact() -> None:
    slc = board(slc_mode=1)
    of_kind = kinds("reads", slc)
    cases = [
        case
        for case in programs("reads", slc, load_kernel("6.1"))
        if case.stack.fs == "ubifs" and not of_kind[case.case_id].endswith("full")
    ]
    real = list(load_target("uml").run(cases))
    simulated = list(load_target("sim").run([case.in_user_mode for case in cases]))
    assert [one for batch in (*real, *simulated) for one in batch.failures] == []
    cases_of = [
        pl.concat([batch.cases for batch in found], how="diagonal") for found in (simulated, real)
    ]
    told = summary(compare(cases_of[0], cases_of[1]))
    for name in ("flash_reads", "flash_programs", "flash_erases", "flash_time"):
        assert told[name]["exact_share"] == 1, name
