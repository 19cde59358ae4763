"""Bit errors that follow the chip on a real kernel: the same as in the simulator, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.stack.conditions import BitErrors, Faults, Level, State
from flashbed.stack.profiles import load_board
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget
from tests.agreement.test_state_and_faults import (
    EIO,
    PREPARE,
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
CHANGES = ("flash_programs", "flash_erases", "bad_blocks")


def old(*, age_days: int, level: Level = "typical", reads: int = 0, seed: int = 1) -> Faults:
    return Faults(bit_errors=BitErrors(level=level, age_days=age_days, reads=reads), seed=seed)


def on(part: str, one: Program) -> Program:
    """The program on a chip of the catalogue, driven by the emulated board."""
    board = load_board("emulated").changed({"chip": {"part": part, **TIMES}})
    erases = State(worn=200_000).erases(board.partition.blocks)
    return replace(one, stack=replace(one.stack, board=board, erases=erases))


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2"])
@pytest.mark.parametrize("body", [READ, WRITE], ids=["read", "write"])
def test_bits_that_age_made_wrong_are_the_same(tmp_path: Path, fs: str, body: str) -> None:
    """A part that asks for 4 bits in 512 bytes behind the kernel's Hamming code."""
    one = on("K9F2G08U0C", program(fs, body, faults=old(age_days=1_000)))
    real, _ = held(tmp_path, one)
    assert real["ecc_corrected"] > 5
    (simulated, _) = measured(SimTarget(), one.in_user_mode)
    assert [simulated[name] for name in SAME] == [real[name] for name in SAME]
