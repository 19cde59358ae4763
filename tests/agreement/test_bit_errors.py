"""Bit errors that follow the chip on a real kernel: the same as in the simulator, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flashbed.stack.conditions import BitErrors, Faults, Level, State
from flashbed.stack.profiles import load_board
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget
from tests.agreement.test_state_and_faults import (
    EIO,
    HEADER,
    RAW,
    READ,
    WRITE,
    both,
    held,
    measured,
    program,
)

pytestmark = [pytest.mark.uml, pytest.mark.extension]

SAME = ("flash_reads", "flash_programs", "flash_erases", "ecc_corrected", "ecc_failed")
TIMES = {"read_array_ns": 60_000, "program_array_ns": 300_000, "erase_array_ns": 2_000_000}
STRONG = "MX30LF4G28AB"
"""Raw NAND that asks for 8 bits in 512 bytes."""


def old(*, age_days: int = 0, level: Level = "typical", reads: int = 0, seed: int = 1) -> Faults:
    return Faults(bit_errors=BitErrors(level=level, age_days=age_days, reads=reads), seed=seed)


def on(part: str | None, one: Program, *, erases: int, ecc_bits: int = 4) -> Program:
    """The program on a worn chip: of the catalogue, behind such a controller, or the board's."""
    changes: dict[str, dict[str, Any]] = {}
    if part is not None:
        changes["chip"] = {"part": part, **TIMES}
    if part == STRONG:
        changes["controller"] = {"ecc_strength_bits": ecc_bits, "ecc_step_bytes": 512}
    board = load_board("emulated").changed(changes)
    worn = State(worn=erases).erases(board.partition.blocks)
    return replace(one, stack=replace(one.stack, board=board, erases=worn))


def agreed(tmp_path: Path, one: Program) -> tuple[dict[str, Any], list[int]]:
    """Row and results of the kernel; the simulator's are the same, operation by operation."""
    real, results = held(tmp_path, one)
    simulated, same = measured(SimTarget(), one.in_user_mode)
    assert same == results
    assert [simulated[name] for name in SAME] == [real[name] for name in SAME]
    return real, results


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2"])
@pytest.mark.parametrize("body", [READ, WRITE], ids=["read", "write"])
def test_bits_that_age_made_wrong_are_the_same(tmp_path: Path, fs: str, body: str) -> None:
    one = on(STRONG, program(fs, body, faults=old(age_days=100)), erases=60_000)
    real, _ = agreed(tmp_path, one)
    assert real["ecc_corrected"] > 5


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2"])
def test_the_kernels_own_code_corrects_the_same_bits(tmp_path: Path, fs: str) -> None:
    """Its Hamming code, of a chip that is worn far beyond what it is rated for."""
    one = on(None, program(fs, READ, faults=old(age_days=1_000)), erases=5_000_000)
    real, _ = agreed(tmp_path, one)
    assert real["ecc_corrected"] > 5


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2"])
def test_what_too_weak_ecc_loses_is_lost_in_both(tmp_path: Path, fs: str) -> None:
    one = on(STRONG, program(fs, READ, faults=old(age_days=365)), erases=250_000)
    real, results = agreed(tmp_path, one)
    assert real["ecc_failed"] > 0
    assert (EIO in results) == (fs == "jffs2")


def test_ubi_scrubs_what_age_made_wrong(tmp_path: Path) -> None:
    """The order of its reads and the program's is the scheduler's, so a few may fall elsewhere."""
    one = on(STRONG, program("ubifs", READ, faults=old(age_days=365)), erases=150_000)
    real, results, simulated, same = both(tmp_path, one)
    assert results == same == [4096] * 64
    assert real["ecc_corrected"] > 5
    assert real["flash_programs"] > 60
    assert [simulated[name] for name in SAME] == [real[name] for name in SAME]


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
@pytest.mark.parametrize("part", ["W25N01GV", "MT29F1G01ABAFD"])
def test_errors_are_the_same_on_spi(tmp_path: Path, fs: str, part: str) -> None:
    erases = {"W25N01GV": 8_000_000, "MT29F1G01ABAFD": 100_000}[part]
    one = on(part, program(fs, READ, faults=old(age_days=1_000)), erases=erases)
    real, results, simulated, same = both(tmp_path, one)
    assert same == results
    assert real["ecc_corrected"] > 5
    assert [simulated[name] for name in SAME] == [real[name] for name in SAME]


def test_reads_disturb_alike(tmp_path: Path) -> None:
    """The file is read until reads of its blocks have made more of its bits wrong."""
    again = READ.split("mark\n")[1]
    body = READ + f"drop_caches\n{again}" * 40
    one = on(STRONG, program("jffs2", body, faults=old(reads=20_000)), erases=100_000)
    real, _ = agreed(tmp_path, one)
    assert real["ecc_corrected"] > 20


def test_the_partition_itself_has_the_same_errors(tmp_path: Path) -> None:
    one = on(STRONG, program("jffs2", RAW, faults=old(level="high", reads=5_000)), erases=100_000)
    stack = replace(one.stack, fs="mtd")
    one = replace(one, prepare=f"{HEADER}prepared\n", stack=stack, check_contents=False)
    agreed(tmp_path, one)
